//! The clients that people have written against this endpoint, each through a whole event.
//!
//! They call the fixed address 169.254.169.254:80, so every test makes a network namespace of its own, gives
//! that address to its loopback device and runs service and client inside it. Nothing is ever sent to that
//! address from outside: on a real Azure machine the real service would answer.
//!
//! | where | what |
//! |---|---|
//! | `namespace`, `service`, `program` | the ground: a namespace, a service in it, a client in it |
//! | `curl` | the command lines that the documents print |
//! | `azure_events_az` | Pacemaker's agent, as Debian ships it |
//! | `csharp_2017`, `python` | clients written by us after the documents' samples, which do not run as printed |
//! | `pypi` | dask-cloudprovider and ai4s-jobq, as PyPI has them |
//! | `leader` | three agents of ours, of which the first VM's approves |
//! | `callers` | who is who: the VM of the first run, bound listeners, guests behind links |
//!
//! A client that is not installed fails its test and names the package: a test that skips itself proves
//! nothing. Making namespaces takes root. Nothing waits for luck: an event is kept Started until its test has
//! seen the client see that, and then completed by hand.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

#[path = "clients/azure_events_az.rs"]
mod azure_events_az;
#[path = "clients/callers.rs"]
mod callers;
#[path = "clients/csharp_2017.rs"]
mod csharp_2017;
#[path = "clients/curl.rs"]
mod curl;
#[path = "clients/leader.rs"]
mod leader;
#[path = "clients/namespace.rs"]
mod namespace;
#[path = "clients/program.rs"]
mod program;
#[path = "clients/pypi.rs"]
mod pypi;
#[path = "clients/python.rs"]
mod python;
#[path = "clients/service.rs"]
mod service;
