//! The runtime around the engine: what `notbefore serve` is.
//!
//! ```text
//!   guests ──► guest/ ──► platform ──┐                     ┌──► view (what everyone reads)
//!                                    ├──► runtime (engine) ┤
//!   people ──► operator/ ────────────┘                     └──► store (what is never lost)
//! ```
//!
//! A poll goes `guest/` → [`platform`] → [`view`] and back, and touches nothing else. A change goes to the
//! engine through [`runtime::EngineHandle`], is committed, published to the view, and only then answered.
//! [`serve`](serve()) puts the parts together, and takes them apart in good order when it is told to stop.

pub mod clock;
pub mod config;
pub mod data_dir;
pub mod delivery;
pub mod driver;
pub mod exec;
pub mod guest;
pub mod hosts;
pub mod integrity;
pub mod janitor;
pub mod listen;
pub mod metrics;
pub mod names;
pub mod operator;
pub mod platform;
pub mod proxy;
pub mod refusals;
pub mod running;
pub mod runtime;
mod scan;
pub mod serve;
pub mod tokens;
pub mod transfer;
pub mod view;
pub mod wait_queues;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use config::{GuestListener, GuestVm, ServeConfig};
pub use listen::ListenAddress;
pub use operator::server::OperatorServerConfig;
pub use proxy::{AddressPrefix, ProxyAddress, ProxyConfig};
pub use serve::{ServeError, serve};

/// Locks what a holder may have left by a panic. No holder leaves its value half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
