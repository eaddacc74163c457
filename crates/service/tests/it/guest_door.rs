//! The guest door over real sockets, with a small platform behind it.
//!
//! - `table`, `answers`: requests and their exact answers, and whole answers byte for byte;
//! - `streams`: requests split, pipelined, held back, in chunks;
//! - `waiting`: polls that are held back until there is news;
//! - `limits`: what happens to clients that are slow, greedy or hostile, and when the door closes.

mod answers;
pub mod harness;
mod limits;
mod streams;
mod table;
mod table_more;
mod table_proxy;
mod waiting;
