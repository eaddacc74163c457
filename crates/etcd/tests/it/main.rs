//! The store against real etcd processes on loopback: Debian's `etcd-server` and `etcd-client`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod auth;
mod compaction;
mod contract;
mod limits;
mod members;
mod restored;
mod start;
mod support;
mod tls;
mod watch;
mod wire;
