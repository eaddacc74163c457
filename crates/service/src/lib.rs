//! The runtime around the engine: implements `notbefore serve`.
//!
//! ```text
//!   guests    ──► guest/ ──► platform ──┐                     ┌──► view (published state)
//!                                       ├──► runtime (engine) ┤
//!   operators ──► operator/ ────────────┘                     └──► store (durable state)
//! ```
//!
//! A poll goes `guest/` → [`platform`] → [`view`] and back, and uses nothing else. A change goes to the engine through
//! [`runtime::EngineHandle`]. It is committed, published to the view, and then answered. [`serve`](serve()) starts all
//! parts and stops them in order.

// Without the feature, the macros that describe handlers write nothing.
#[cfg(not(feature = "describe"))]
extern crate notbefore_undescribed as utoipa;

pub mod clock;
pub mod cluster;
pub mod config;
pub mod data_dir;
pub mod delivery;
pub mod driver;
pub mod engine_stats;
pub mod event_log;
pub mod exec;
pub mod faults;
pub mod fenced_store;
pub mod fleet;
mod follow;
pub mod guest;
pub mod hosts;
pub mod integrity;
pub mod janitor;
pub mod leveled_store;
pub mod listen;
pub mod metrics;
pub mod names;
pub mod nodes;
pub mod operator;
pub mod platform;
pub mod proxy;
pub mod refusals;
pub mod remove_tree;
pub mod running;
pub mod runtime;
mod scan;
mod secret_file;
pub mod serve;
pub mod sessions;
mod starting;
pub mod stored_key;
pub mod tokens;
pub mod transfer;
pub mod view;
pub mod vm_log;
pub mod wait_queues;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use config::{BoundSocket, GuestListener, GuestVm, ServeConfig};
pub use listen::ListenAddress;
pub use operator::server::OperatorServerConfig;
pub use proxy::{AddressPrefix, ProxyAddress, ProxyConfig};
pub use serve::{Ready, ServeError, serve, serve_in_background};

/// Random bytes for secrets and nonces.
pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Locks a mutex and ignores poisoning: no holder leaves its value half changed when it panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
