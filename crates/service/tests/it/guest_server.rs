//! The guest listener over real sockets, with a small platform behind it.
//!
//! - `table`, `responses`: requests and their exact answers, and whole answers byte for byte;
//! - `streams`: requests split, pipelined, held back, in chunks;
//! - `long_polls`: polls that are held back until there is news;
//! - `limits`: what happens to clients that are slow, greedy or hostile, and when the server closes.

pub mod harness;
mod limits;
mod long_polls;
mod responses;
mod streams;
mod table;
mod table_more;
mod table_proxy;
