//! The guest listener over real sockets, with a test platform.
//!
//! - `table`, `responses`: requests and their exact responses;
//! - `streams`: requests that are split, pipelined, held back or chunked;
//! - `records`: what is recorded of refused requests and of clients;
//! - `long_polls`: polls that wait for a change;
//! - `newer_tags`: guests that are ahead of the node that they poll;
//! - `faults`: faults, and the record of requests;
//! - `limits`: slow, greedy and hostile clients, and shutdown.

mod faults;
pub mod harness;
mod limits;
mod long_polls;
mod newer_tags;
mod records;
mod responses;
mod streams;
mod table;
mod table_more;
mod table_proxy;
