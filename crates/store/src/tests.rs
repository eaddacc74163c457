//! Tests shared by all stores.

pub mod contract;
