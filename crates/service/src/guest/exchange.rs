//! One request's head, judged: who asks, whether it may, and what it gets.
//!
//! This is everything about a request that needs neither the socket nor waiting. A read is answered here,
//! with the head still borrowed from the buffer it came in; what has to wait for a body, for the platform or for a
//! change leaves with the resolved guest. Both ways that serve connections ([`super::fast_path`] and
//! [`super::connection`]) come through here, so there is one set of rules.

use std::borrow::Cow;

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_wire::guest::error::GuestError;
use notbefore_wire::guest::instance::path::{self, Format};
use notbefore_wire::guest::instance::{InstanceVersion, versions_body};
use notbefore_wire::guest::version::EventsVersion;

use super::caller::{Caller, ListenerIdentity, ProxyClaim};
use super::head::{self, Framing, Head, Name};
use super::head_cache::{CachedHead, HeadCache, PlainPoll};
use super::long_poll::{self, LongPoll};
use super::platform::{GuestHandle, Platform, Rendered};
use super::prefer::Wait;
use super::response::{Persistence, Response, ResponseMeta};
use super::rules::{self, RequestKind};
use super::{GuestServer, conditional};

/// A request whose head is there and judged.
pub(super) struct Exchange<G> {
    /// How much of the buffer was the head.
    pub head_length: usize,
    pub framing: Framing,
    pub expects_continue: bool,
    pub meta: ResponseMeta,
    pub verdict: Verdict<G>,
    /// How it was read, if it is a plain poll: then its head may be remembered.
    pub plain: Option<PlainPoll>,
}

/// What is to be done about a request.
pub(super) enum Verdict<G> {
    /// Send this response.
    Response(Response),
    /// Tell the client that it has the document.
    Unchanged { edition: u64, incarnation: u64 },
    /// Send the guest its document, and tell the platform once it is out.
    Document { guest: G, version: EventsVersion, rendered: Rendered },
    /// Look up what the guest may read about itself, and answer with the part that was asked for.
    Instance { guest: G, version: InstanceVersion, path: Vec<String>, format: Format },
    /// Read the events from its body and approve them for this guest.
    Approve(G),
    /// Respond when the document is another than the one that the client has, or the wait is over.
    LongPoll(Box<LongPoll>, Wait),
}

/// A request that nothing speaks against.
struct Evaluation<G> {
    verdict: Verdict<G>,
    /// How long its answer may be held back.
    wait: Option<Wait>,
    /// At which version it asks for the document, if that is what it does.
    version: Option<EventsVersion>,
}

impl<P: Platform> GuestServer<P> {
    /// The same as [`GuestServer::examine`], for a worker, with its head cache.
    pub(super) fn examine_cached(
        &self,
        head_cache: &mut HeadCache,
        bytes: &[u8],
        caller: &Caller,
        now: Timestamp,
    ) -> Result<Option<Exchange<P::Guest>>, GuestError> {
        if !caller.is_proxy
            && let Some(CachedHead { head_length, tags, poll }) = head_cache.find(bytes)
        {
            let guest =
                self.platform.guest(caller, &ProxyClaim::default()).ok_or(GuestError::UnknownCaller)?;
            let verdict = match self.check_rate(&guest, now) {
                Ok(()) => self.poll(guest, poll.version, tags.into_iter(), now),
                Err(error) => Verdict::Response(Response::Refused(error)),
            };
            let meta = ResponseMeta { now, persistence: poll.persistence, head_only: false, wait: None };
            let framing = Framing::Empty;
            let plain = Some(poll);
            return Ok(Some(Exchange {
                head_length,
                framing,
                expects_continue: false,
                meta,
                verdict,
                plain,
            }));
        }
        let mut headers = head::header_slots();
        let Some((head, head_length)) = self.parse(bytes, &mut headers, caller)? else { return Ok(None) };
        let exchange = self.examine_head(&head, head_length, caller, now)?;
        if let Some(poll) = exchange.plain.filter(|_| !caller.is_proxy) {
            head_cache.observe(&bytes[..head_length], &head, poll);
        }
        Ok(Some(exchange))
    }

    /// The exchange that the bytes begin, if its head is complete. An error closes the connection.
    pub(super) fn examine(
        &self,
        bytes: &[u8],
        caller: &Caller,
        now: Timestamp,
    ) -> Result<Option<Exchange<P::Guest>>, GuestError> {
        let mut headers = head::header_slots();
        let Some((head, head_length)) = self.parse(bytes, &mut headers, caller)? else { return Ok(None) };
        self.examine_head(&head, head_length, caller, now).map(Some)
    }

    /// The head that the bytes begin with, and its length, if it is complete.
    fn parse<'h, 'b>(
        &self,
        bytes: &'b [u8],
        headers: &'h mut head::HeaderSlots<'b>,
        caller: &Caller,
    ) -> head::Parsed<'h, 'b> {
        head::parse(bytes, headers).map_err(|error| self.hide_if_unknown(caller, error))
    }

    fn examine_head(
        &self,
        head: &Head<'_, '_>,
        head_length: usize,
        caller: &Caller,
        now: Timestamp,
    ) -> Result<Exchange<P::Guest>, GuestError> {
        let claim = match caller.is_proxy {
            true => ProxyClaim {
                instance_id: head.one(Name::XInstanceId),
                signature: head.one(Name::XInstanceIdSignature),
            },
            false => ProxyClaim::default(),
        };
        let guest = self.platform.guest(caller, &claim).ok_or(GuestError::UnknownCaller)?;
        let framing = head.framing()?;
        let evaluation = self.evaluate(head, &claim, guest, now);
        let Evaluation { verdict, wait, version } = evaluation.unwrap_or_else(|error| Evaluation {
            verdict: Verdict::Response(Response::Refused(error)),
            wait: None,
            version: None,
        });
        let persistence = match (head.keeps_alive(), head.is_http10) {
            (true, false) => Persistence::Open,
            (true, true) => Persistence::KeptAlive,
            (false, _) => Persistence::Closing,
        };
        let is_plain = framing == Framing::Empty && !head.has(Name::Prefer);
        let plain = version.filter(|_| is_plain).map(|version| PlainPoll { version, persistence });
        Ok(Exchange {
            plain,
            head_length,
            framing,
            expects_continue: head.expects_continue(),
            meta: ResponseMeta { now, persistence, head_only: head.method == "HEAD", wait },
            verdict,
        })
    }

    /// Whether a caller is none of the VMs now. Trusted proxies and callers of a VM's own listener never are.
    pub(super) fn is_unknown_caller(&self, caller: &Caller) -> bool {
        match &*caller.listener {
            ListenerIdentity::Bound(_) => false,
            ListenerIdentity::Network(_) if caller.is_proxy => false,
            ListenerIdentity::Network(_) => self.platform.guest(caller, &ProxyClaim::default()).is_none(),
        }
    }

    /// An error as it is told to a caller: one that is no VM of ours learns nothing else.
    pub(super) fn hide_if_unknown(&self, caller: &Caller, error: GuestError) -> GuestError {
        match self.platform.guest(caller, &ProxyClaim::default()) {
            Some(_) => error,
            None => GuestError::UnknownCaller,
        }
    }

    /// Whether the guest asks no more often than it may.
    fn check_rate(&self, guest: &P::Guest, now: Timestamp) -> Result<(), GuestError> {
        match self.rate_limit.zip(guest.rate_state()) {
            Some((limit, rate_state)) if !limit.try_acquire(rate_state, now) => {
                Err(GuestError::TooManyRequests)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// What is to be done about a request, or why nothing is.
    fn evaluate(
        &self,
        head: &Head<'_, '_>,
        claim: &ProxyClaim<'_>,
        guest: P::Guest,
        now: Timestamp,
    ) -> Result<Evaluation<P::Guest>, GuestError> {
        self.check_rate(&guest, now)?;
        let verdict = match rules::decide(head, self.settings.mode, guest.is_proxied())? {
            RequestKind::Approve => Verdict::Approve(guest),
            RequestKind::Document(version) => {
                let wait = long_poll::requested_wait(head);
                let verdict = match (self.poll(guest, version, head.all(Name::IfNoneMatch), now), wait) {
                    (Verdict::Unchanged { edition, .. }, Some(wait)) => {
                        Verdict::LongPoll(Box::new(LongPoll::new(head, claim, version, edition)), wait)
                    }
                    (verdict, _) => verdict,
                };
                return Ok(Evaluation { verdict, wait, version: Some(version) });
            }
            RequestKind::Instance { version, path, format } => {
                let path = path.into_iter().map(Cow::into_owned).collect();
                Verdict::Instance { guest, version, path, format }
            }
            RequestKind::Versions => {
                Verdict::Response(Response::Metadata { is_text: false, body: Bytes::from(versions_body()) })
            }
        };
        Ok(Evaluation { verdict, wait: None, version: None })
    }

    /// A poll: the document, or that the client has it.
    fn poll<'a>(
        &self,
        guest: P::Guest,
        version: EventsVersion,
        tags: impl Iterator<Item = &'a [u8]>,
        now: Timestamp,
    ) -> Verdict<P::Guest> {
        self.platform.record_poll(&guest, version, now);
        let rendered = self.platform.document(&guest, version);
        let Rendered { edition, incarnation, .. } = rendered;
        match conditional::matches_etag(tags, incarnation) {
            true => Verdict::Unchanged { edition, incarnation },
            false => Verdict::Document { guest, version, rendered },
        }
    }

    /// What a guest may read about itself, or the part of it that the path leads to.
    pub(super) async fn instance(
        &self,
        guest: &P::Guest,
        version: InstanceVersion,
        path: &[String],
        format: Format,
    ) -> Response {
        let Some(instance) = self.platform.instance(guest).await else {
            return Response::Refused(GuestError::Unavailable);
        };
        match path::answer(&instance, version, path.iter().map(String::as_str), format) {
            Ok(body) => Response::Metadata { is_text: format == Format::Text, body: Bytes::from(body) },
            Err(error) => Response::Refused(error),
        }
    }
}
