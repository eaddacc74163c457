//! Client for Scheduled Events: the protocol between a VM and its platform, on Azure and on notbefore.
//!
//! - [`document`]: tolerant parser of the endpoint's document;
//! - [`client`]: single requests: read the document, approve an event;
//! - [`watch`]: follows the document by polling; [`changes`]: differences between documents;
//! - [`poll`]: the polling schedule as a pure state machine;
//! - [`endpoint`]: the endpoint's address; [`discovery`]: how to find it;
//! - [`identity`]: which of an event's resources is this VM;
//! - [`clock`]: the only module that reads clocks.
//!
//! A handler that approves events of this VM once it is ready:
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use notbefore_client::changes::Change;
//! use notbefore_client::client::Options;
//! use notbefore_client::discovery::{Discovery, NotFound};
//! use notbefore_client::identity::Identity;
//! use notbefore_client::watch::Watch;
//!
//! # async fn follow() -> Result<(), NotFound> {
//! let found = Discovery::new(None, Options::default()).find().await?;
//! let (client, me) = (found.client.clone(), Identity::from_metadata(&found.client).await);
//! let mut changes = Watch::after(found.client, found.reading).changes();
//! loop {
//!     if let Change::Appeared(event) = changes.next().await
//!         && !event.is_advisory()
//!         && event.resources.iter().any(|resource| me.is(resource))
//!     {
//!         println!("{} of this VM, not before {:?}", event.kind, event.not_before);
//!         if let Err(why) = client.approve_within(&event.id, Duration::from_secs(30)).await {
//!             eprintln!("{} is not approved: {why}", event.id);
//!         }
//!     }
//! }
//! # }
//! ```
//!
//! `docs/guide/rust-client.md` in the repository describes tolerance, polling and discovery in detail.

#![warn(missing_docs)]

pub mod changes;
pub mod client;
pub mod clock;
pub mod discovery;
pub mod document;
pub mod endpoint;
pub mod failure;
mod http;
pub mod identity;
pub mod poll;
mod random;
#[cfg(windows)]
mod registry;
mod versions;
pub mod watch;

/// Compiles the examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/rust-client.md")]
struct Page;
