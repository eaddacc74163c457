//! Long polls: `Prefer: wait=N` with `If-None-Match`.
//!
//! A held poll is an entry in its worker's slab and the data needed to check it again: no task, no timer, no buffer. It
//! is recorded as a poll when it arrives. When its scope is notified, it is resolved like a new poll, since the VM may
//! have moved to another scope or been removed.

use notbefore_wire::guest::error::GuestError;
use notbefore_wire::guest::version::EventsVersion;

use super::caller::{Caller, ProxyClaim};
use super::head::{Head, Name};
use super::platform::{Platform, Rendered};
use super::prefer::{self, Wait};
use super::response::{Response, ResponseMeta};
use super::{GuestServer, conditional};

/// Maximum bytes kept of a held request's ETags. An ETag has a few digits.
const ETAGS_BYTES_MAX: usize = 1024;

/// The request of a held poll.
#[derive(Debug)]
pub(super) struct LongPoll {
    pub version: EventsVersion,
    /// The edition of the document that the client has.
    edition: u64,
    /// The values of `If-None-Match`, joined.
    tags: Box<[u8]>,
    /// The proxy's claim: instance id and signature.
    claim: Option<Box<(String, String)>>,
}

/// A poll to hold, and the state of its connection.
pub(super) struct Pending {
    pub hold: LongPoll,
    pub wait: Wait,
    pub meta: ResponseMeta,
    /// Input after the request.
    pub rest: Vec<u8>,
    /// The socket may have more input that epoll will not report.
    pub has_unread: bool,
}

/// Result of checking a held poll again.
pub(super) enum PollUpdate<G> {
    /// The client has the newest document that is known, with this incarnation.
    Unchanged { guest: G, incarnation: u64 },
    /// Answer with this response.
    Response(Response),
    /// The document has changed.
    Document { guest: G, rendered: Rendered },
}

/// The wait that the request asks for, if it has an `If-None-Match`. A request with too long ETags is answered at once.
pub(super) fn requested_wait(head: &Head<'_, '_>) -> Option<Wait> {
    if !head.has(Name::Prefer) || !head.has(Name::IfNoneMatch) {
        return None;
    }
    let kept: usize = head.all(Name::IfNoneMatch).map(|tags| tags.len() + 1).sum();
    prefer::wait(head.all(Name::Prefer)).filter(|_| kept <= ETAGS_BYTES_MAX)
}

impl LongPoll {
    pub(super) fn new(
        head: &Head<'_, '_>,
        claim: &ProxyClaim<'_>,
        version: EventsVersion,
        edition: u64,
    ) -> LongPoll {
        let tags: Vec<&[u8]> = head.all(Name::IfNoneMatch).collect();
        // A valid claim has an id and a signature, both short.
        let claim = claim.instance_id.zip(claim.signature);
        LongPoll {
            version,
            edition,
            tags: tags.join(&b',').into(),
            claim: claim.map(|(id, signature)| Box::new((id.to_owned(), signature.to_owned()))),
        }
    }

    fn claim(&self) -> ProxyClaim<'_> {
        let (instance_id, signature) =
            self.claim.as_deref().map(|(id, signature)| (&**id, &**signature)).unzip();
        ProxyClaim { instance_id, signature }
    }
}

impl<P: Platform> GuestServer<P> {
    /// The guest of a held poll, resolved now.
    pub(super) fn current_guest(&self, hold: &LongPoll, caller: &Caller) -> Option<P::Guest> {
        self.platform.guest(caller, &hold.claim())
    }

    /// The current answer to a held poll.
    pub(super) fn recheck(&self, hold: &LongPoll, caller: &Caller) -> PollUpdate<P::Guest> {
        let Some(guest) = self.current_guest(hold, caller) else {
            return PollUpdate::Response(Response::Refused(GuestError::UnknownCaller));
        };
        let rendered = self.platform.document(&guest, hold.version);
        let incarnation = rendered.incarnation;
        // A node that catches up shows documents that are older than the client's.
        if let Some(incarnation) = self.newer_tag(std::iter::once(&*hold.tags), incarnation) {
            PollUpdate::Unchanged { guest, incarnation }
        } else if rendered.edition == hold.edition {
            PollUpdate::Unchanged { guest, incarnation }
        } else if conditional::matches_etag(std::iter::once(&*hold.tags), incarnation) {
            PollUpdate::Response(Response::NotModified { incarnation })
        } else {
            PollUpdate::Document { guest, rendered }
        }
    }
}
