//! What the tests of every store share.

pub mod contract;
