//! A poll that is held back until there is news: `Prefer: wait=N` with `If-None-Match`.
//!
//! A held poll is its connection's place at a worker and what is needed to respond to it again: no task, no timer, no
//! buffer. It counted as a poll when it came. Whenever its scope is notified it is resolved from the beginning,
//! as a new poll would be, since the VM may have moved to another scope or be no VM any more.

use notbefore_wire::guest::error::GuestError;
use notbefore_wire::guest::version::EventsVersion;

use super::caller::{Caller, ProxyClaim};
use super::head::{Head, Name};
use super::platform::{Platform, Rendered};
use super::prefer::{self, Wait};
use super::response::{Response, ResponseMeta};
use super::{GuestServer, conditional};

/// The most bytes that are kept of a request while it is held. Tags are a few digits each.
const ETAGS_BYTES_MAX: usize = 1024;

/// What a held poll asked.
#[derive(Debug)]
pub(super) struct LongPoll {
    pub version: EventsVersion,
    /// The document that the client has.
    edition: u64,
    /// The values of `If-None-Match`, one after the other.
    tags: Box<[u8]>,
    /// What a proxy said about who it is for.
    claim: Option<Box<(String, String)>>,
}

/// A poll to be held, and how its connection stands.
pub(super) struct Pending {
    pub hold: LongPoll,
    pub wait: Wait,
    pub meta: ResponseMeta,
    /// What was read after it.
    pub rest: Vec<u8>,
    /// Whether there may be more that nobody will be told of.
    pub has_unread: bool,
}

/// What a second look at a held poll shows.
pub(super) enum PollUpdate<G> {
    /// The document is the same; this is its incarnation.
    Unchanged { guest: G, incarnation: u64 },
    /// It can be answered.
    Response(Response),
    /// It can be answered with another document.
    Document { guest: G, rendered: Rendered },
}

/// How long a poll may be held back, if it asks for that and says what it has. One that says it at great length
/// is answered at once.
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
        // A claim that was found good has an id and a signature, both short.
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
    /// The guest that a held poll is from, as things are now.
    pub(super) fn current_guest(&self, hold: &LongPoll, caller: &Caller) -> Option<P::Guest> {
        self.platform.guest(caller, &hold.claim())
    }

    /// What a held poll would be answered now.
    pub(super) fn recheck(&self, hold: &LongPoll, caller: &Caller) -> PollUpdate<P::Guest> {
        let Some(guest) = self.current_guest(hold, caller) else {
            return PollUpdate::Response(Response::Refused(GuestError::UnknownCaller));
        };
        let rendered = self.platform.document(&guest, hold.version);
        let incarnation = rendered.incarnation;
        if rendered.edition == hold.edition {
            PollUpdate::Unchanged { guest, incarnation }
        } else if conditional::matches_etag(std::iter::once(&*hold.tags), incarnation) {
            PollUpdate::Response(Response::NotModified { incarnation })
        } else {
            PollUpdate::Document { guest, rendered }
        }
    }
}
