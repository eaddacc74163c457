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
//! From here to a handler that approves what happens to this VM, once it is ready for it:
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
//! The page `docs/guide/rust-client.md` of the repository says what is tolerated, when it asks and where.

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

/// The page's own example.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/rust-client.md")]
struct Page;
