//! Delivery assurance: whether word reaches the guests.
//!
//! A poll writes nothing down. It stores its time in a slot that belongs to the VM ([`Hearing`]); the slot is
//! found in the same lookup that finds the VM's scope, outlives every change of the scope, and is gone when
//! the VM or the process is.

pub mod hearing;

pub use hearing::Hearing;
