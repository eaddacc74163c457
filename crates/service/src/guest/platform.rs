//! What the server asks of the platform behind it.
//!
//! The server knows HTTP and the order of checks; which VM is calling, what its scope's document is and what
//! an approval does are the platform's. A poll asks two questions, and both must be answered from memory,
//! without waiting: [`Platform::guest`] and [`Platform::document`]. When its answer is out, the platform is told
//! ([`Platform::record_delivery`]). A poll that waits for a change does so at the platform's [`WaitQueues`]. Only an approval and
//! instance metadata may take their time.

use std::future::Future;
use std::hash::Hash;

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_wire::guest::instance::Instance;
use notbefore_wire::guest::version::EventsVersion;
use uuid::Uuid;

use super::caller::{Caller, ProxyClaim};
use super::rate::RateState;
use crate::wait_queues::WaitQueues;

/// The VM a request speaks for, as the platform resolved it.
pub trait GuestHandle: Send + Sync + 'static {
    /// The VM's id. Polls that wait are counted by it.
    fn vm(&self) -> Uuid;

    /// How fast the VM has asked lately; one of which nothing is kept is not limited.
    fn rate_state(&self) -> Option<&RateState>;

    /// Whether a trusted proxy spoke for it: then `X-Forwarded-For` is expected and passed over.
    fn is_proxied(&self) -> bool {
        false
    }
}

/// A document as it is sent.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// A number that only this document has: incarnations of two scopes may be the same.
    pub edition: u64,
    /// The document's incarnation, which is its ETag.
    pub incarnation: u64,
    /// The document's bytes at the version asked for.
    pub body: Bytes,
}

/// Why an approval was not kept, or is not known to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApproveError {
    /// One of the events is unknown or belongs to another scope; none was approved.
    #[error("an event is not one of the guest's scope")]
    UnknownEvent,
    /// The caller's VM or address has become another's since it was found.
    #[error("the caller is no longer the VM that it was")]
    UnknownCaller,
    /// The commit may or may not have happened.
    #[error("the outcome of the commit is unknown")]
    OutcomeUnknown,
    /// Nothing was done; the reason is for the log.
    #[error("unavailable: {0}")]
    Unavailable(String),
}

/// The platform behind the server. Resolved anew at each request.
pub trait Platform: Send + Sync + 'static {
    /// A resolved VM: whatever the platform needs to answer for it without looking it up again.
    type Guest: GuestHandle;
    /// What tells one scope from another.
    type Scope: Clone + Eq + Hash + Send + 'static;

    /// Whether a caller is a proxy that may speak for others. Asked once a connection.
    fn is_trusted_proxy(&self, caller: &Caller) -> bool;

    /// The VM that this request speaks for at this moment, if it is one of ours. The claim is empty unless the
    /// caller is a trusted proxy.
    fn guest(&self, caller: &Caller, claim: &ProxyClaim<'_>) -> Option<Self::Guest>;

    /// The guest asks for its scope's document at a version. The platform may note it.
    fn record_poll(&self, guest: &Self::Guest, version: EventsVersion, now: Timestamp);

    /// Its scope's document at a version, rendered already.
    fn document(&self, guest: &Self::Guest, version: EventsVersion) -> Rendered;

    /// Its scope, at which to wait for a change of the document.
    fn scope(&self, guest: &Self::Guest) -> Self::Scope;

    /// Rings when a scope's document may have changed, or who its guests are.
    fn wait_queues(&self) -> &WaitQueues<Self::Scope>;

    /// The document was sent to the guest at a version, whole, to a request made at `at`.
    fn record_delivery(&self, guest: &Self::Guest, version: EventsVersion, at: Timestamp);

    /// What the VM can read about itself, unless it cannot be read now.
    fn instance(&self, guest: &Self::Guest) -> impl Future<Output = Option<Instance>> + Send;

    /// Approves events for all of their resources, all of them or none. Resolves when it is durable and
    /// published.
    fn approve(
        &self,
        guest: &Self::Guest,
        caller: &Caller,
        events: Vec<Uuid>,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), ApproveError>> + Send;
}
