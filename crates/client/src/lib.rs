//! A client of Scheduled Events: what a VM asks of its platform, on Azure and on notbefore alike.
//!
//! - [`document`]: what the endpoint answers, read tolerantly and never taken for less than it is;
//! - [`client`]: one question, one answer: the document, an approval;
//! - [`watch`]: following the document, and [`changes`]: what changes from one to the next;
//! - [`poll`]: what to ask next and when, without IO;
//! - [`endpoint`]: where the platform answers, and [`discovery`]: finding it;
//! - [`identity`]: which of an event's resources is this VM;
//! - [`clock`]: the one place that reads the clocks.
//!
//! From here to a stream of changes:
//!
//! ```no_run
//! use notbefore_client::{changes::Change, client::Client, endpoint::Endpoint, watch::Watch};
//!
//! # async fn follow() {
//! let client = Client::new(Endpoint::usual(), Default::default());
//! let mut changes = Watch::new(client.clone()).changes();
//! loop {
//!     if let Change::Appeared(event) = changes.next().await {
//!         println!("{} of {:?}, not before {:?}", event.kind, event.resources, event.not_before);
//!     }
//! }
//! # }
//! ```

pub mod changes;
pub mod client;
pub mod clock;
mod dice;
pub mod discovery;
pub mod document;
pub mod endpoint;
pub mod failure;
mod http;
pub mod identity;
pub mod poll;
#[cfg(windows)]
mod registry;
mod versions;
pub mod watch;

/// The page's own example.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
struct Page;
