//! Interface between the guest server and the service behind it.
//!
//! The server implements HTTP and the order of checks. The platform knows the VMs, their documents and the effect of an
//! approval. A poll calls [`Platform::guest`] and [`Platform::document`]; both answer from memory and never wait. After
//! the response is sent, [`Platform::record_delivery`] is called. A long poll waits in the platform's [`WaitQueues`].
//! Only approvals, instance metadata and reads of newer documents are asynchronous.

use std::future::Future;
use std::hash::Hash;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_wire::guest::error::GuestError;
use notbefore_wire::guest::instance::Instance;
use notbefore_wire::guest::version::EventsVersion;
use uuid::Uuid;

use super::caller::{Caller, ProxyClaim};
use super::client::Client;
use super::rate::RateState;
use crate::wait_queues::WaitQueues;

/// The VM that a request is for, resolved by the platform.
pub trait GuestHandle: Send + Sync + 'static {
    /// The VM's id; long polls are counted by it.
    fn vm(&self) -> Uuid;

    /// The VM's rate limit state; none means no limit.
    fn rate_state(&self) -> Option<&RateState>;

    /// Whether a trusted proxy sent the request: then `X-Forwarded-For` is expected and ignored.
    fn is_proxied(&self) -> bool {
        false
    }
}

/// A rendered document.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// Unique among all documents: incarnations of two scopes may be equal.
    pub edition: u64,
    /// The document's incarnation, which is its ETag.
    pub incarnation: u64,
    /// The document's bytes at the requested api-version.
    pub body: Bytes,
}

/// The answer to a guest whose document is newer than this node's.
pub enum ReadThrough<G> {
    /// The guest has the newest document, or keeps what it has because the store does not answer.
    NotModified,
    /// The newest document, and the guest in the scope that it is of.
    Document { guest: G, rendered: Rendered },
}

/// Why an approval failed, or may have failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApproveError {
    /// This event is unknown or belongs to another scope; none was approved.
    #[error("event {0} does not belong to the guest's scope")]
    UnknownEvent(Uuid),
    /// The VM was removed or lost its address after the request was identified.
    #[error("the caller is no longer the same VM")]
    UnknownCaller,
    /// The commit may or may not have happened.
    #[error("the outcome of the commit is unknown")]
    OutcomeUnknown,
    /// Nothing was changed; the reason is for the log.
    #[error("unavailable: {0}")]
    Unavailable(String),
}

/// A refused request, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedRequest<'a> {
    /// The bytes of its head, as far as they have arrived.
    pub head: &'a [u8],
    /// Why it was refused.
    pub error: GuestError,
    /// What the error leaves out, or empty. The guest is not told.
    pub detail: &'a str,
    /// When it was answered.
    pub at: Timestamp,
}

/// The service behind the guest server. It is asked again at each request.
pub trait Platform: Send + Sync + 'static {
    /// A resolved VM, with all that later calls need.
    type Guest: GuestHandle;
    /// Identifies a scope.
    type Scope: Clone + Eq + Hash + Send + 'static;

    /// Whether a caller is a trusted proxy. Called once for each connection.
    fn is_trusted_proxy(&self, caller: &Caller) -> bool;

    /// The VM that this request is for now, if it is known. The claim is empty unless the caller is a trusted proxy.
    fn guest(&self, caller: &Caller, claim: &ProxyClaim<'_>) -> Option<Self::Guest>;

    /// [`Platform::guest`] of a caller that is no proxy. `uptime` is when its worker woke
    /// up, by [`UPTIME`](crate::clock::UPTIME): the fast path reads no clock of its own.
    fn guest_by_address(&self, caller: &Caller, uptime: Duration) -> Option<Self::Guest> {
        let _ = uptime;
        self.guest(caller, &ProxyClaim::default())
    }

    /// The VM's full path, for records.
    fn path(&self, guest: &Self::Guest) -> String;

    /// Whether the platform can say which VM has an address. If not, [`Platform::guest`] knows no caller by its address,
    /// and such callers get 503: an old answer may be that of another tenant.
    fn trusts_addresses(&self) -> bool {
        true
    }

    /// Called before the first poll of each connection, and before each poll whose head was parsed.
    fn record_client(&self, guest: &Self::Guest, client: &Client<'_>, now: Timestamp);

    /// Called for each request that is refused; `guest` is none if the caller is no VM.
    fn record_refusal(&self, guest: Option<&Self::Guest>, caller: &Caller, refused: &RefusedRequest<'_>);

    /// Called for each poll before it is answered.
    fn record_poll(&self, guest: &Self::Guest, version: EventsVersion, now: Timestamp);

    /// The document of the guest's scope at a version, rendered.
    fn document(&self, guest: &Self::Guest, version: EventsVersion) -> Rendered;

    /// Whether another node may show newer documents than this one.
    fn may_lag(&self) -> bool;

    /// The answer to a guest with a tag that is newer than [`Platform::document`], from the store. Takes at most two
    /// seconds.
    fn read_through(
        &self,
        guest: &Self::Guest,
        tag: u64,
        version: EventsVersion,
    ) -> impl Future<Output = ReadThrough<Self::Guest>> + Send;

    /// The guest's scope, whose wait queue a long poll uses.
    fn scope(&self, guest: &Self::Guest) -> Self::Scope;

    /// Wait queues, notified when a scope's document or its guests may have changed.
    fn wait_queues(&self) -> &WaitQueues<Self::Scope>;

    /// The document was sent whole to the guest; the request arrived at `at`.
    fn record_delivery(&self, guest: &Self::Guest, version: EventsVersion, at: Timestamp);

    /// The VM's instance metadata; none if it cannot be read now.
    fn instance(&self, guest: &Self::Guest) -> impl Future<Output = Option<Instance>> + Send;

    /// Approves all of these events for all of their resources, or none. Resolves when durable and published.
    fn approve(
        &self,
        guest: &Self::Guest,
        caller: &Caller,
        events: Vec<Uuid>,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), ApproveError>> + Send;
}
