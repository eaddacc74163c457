//! One request without IO: identifies the caller, applies rate limit and rules, and returns a verdict.
//!
//! A read is answered here while the head is still borrowed from its buffer. A request that waits for a body, the
//! platform or a change leaves with the resolved guest. Both paths ([`super::fast_path`] and [`super::connection`]) use
//! this module, so there is one set of rules.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_wire::guest::error::GuestError;
use notbefore_wire::guest::instance::path::{self, Format};
use notbefore_wire::guest::instance::{InstanceVersion, versions_body};
use notbefore_wire::guest::version::EventsVersion;

use super::caller::{Caller, ListenerIdentity, ProxyClaim};
use super::client::Client;
use super::fast_path::Turn;
use super::head::{self, Framing, Head, Name};
use super::head_cache::{HeadCache, PlainPoll};
use super::long_poll::{self, LongPoll};
use super::platform::{GuestHandle, Platform, RefusedRequest, Rendered};
use super::prefer::Wait;
use super::response::{Persistence, Response, ResponseMeta};
use super::rules::{self, RequestKind};
use super::settings::Mode;
use super::{GuestServer, conditional};
use crate::clock::UPTIME;

/// A request whose head is complete and examined.
pub(super) struct Exchange<G> {
    /// Length of the head in the buffer, in bytes.
    pub head_length: usize,
    pub framing: Framing,
    pub expects_continue: bool,
    pub meta: ResponseMeta,
    pub verdict: Verdict<G>,
    /// The parsed plain poll, if it is one: its head may be cached.
    pub plain: Option<PlainPoll>,
}

/// What to do with a request.
pub(super) enum Verdict<G> {
    /// Send this response.
    Response(Response),
    /// Answer 304, or hold the poll: the client has this document.
    Unchanged { edition: u64, incarnation: u64 },
    /// Send the guest its document, then record the delivery.
    Document { guest: G, version: EventsVersion, rendered: Rendered },
    /// Look up the guest's instance metadata and answer with the part at `path`.
    Instance { guest: G, version: InstanceVersion, path: Vec<String>, format: Format },
    /// Read event ids from the body and approve them for this guest.
    Approve(G),
    /// The guest may have a newer document than this node: read it from the store.
    ReadThrough(Box<NewerTag<G>>),
    /// Answer when the document differs from the client's, or the wait is over.
    LongPoll(Box<LongPoll>, Wait),
}

/// A poll with a tag that is newer than this node's document.
pub(super) struct NewerTag<G> {
    pub guest: G,
    pub version: EventsVersion,
    pub tag: u64,
    /// The edition of this node's document.
    edition: u64,
    /// If the guest's document is the newest: the poll to hold.
    pub hold: Option<(Box<LongPoll>, Wait)>,
}

/// A request that passed all checks.
pub(super) struct Evaluation<G> {
    pub verdict: Verdict<G>,
    /// How long the answer may be held back.
    pub wait: Option<Wait>,
    /// The api-version, if the request is a poll.
    pub version: Option<EventsVersion>,
}

impl<G> From<Verdict<G>> for Evaluation<G> {
    fn from(verdict: Verdict<G>) -> Self {
        Evaluation { verdict, wait: None, version: None }
    }
}

pub(super) fn proxy_claim<'b>(head: &Head<'_, 'b>) -> ProxyClaim<'b> {
    let [instance_id, signature] = [Name::XInstanceId, Name::XInstanceIdSignature].map(|name| head.one(name));
    ProxyClaim { instance_id, signature }
}

impl<P: Platform> GuestServer<P> {
    /// [`GuestServer::examine`] with a worker's head cache.
    pub(super) fn examine_cached(
        &self,
        head_cache: &mut HeadCache,
        bytes: &[u8],
        caller: &Caller,
        Turn { now, uptime, is_first, .. }: Turn,
    ) -> Result<Option<Exchange<P::Guest>>, GuestError> {
        if !caller.is_proxy
            && let Some(cached) = head_cache.find(bytes)
        {
            let (head_length, poll) = (cached.head_length(), cached.poll);
            let guest =
                self.platform.guest_by_address(caller, uptime).ok_or_else(|| self.unknown_caller())?;
            let verdict = match self.check_rate(&guest, uptime) {
                Ok(()) => {
                    if is_first {
                        self.platform.record_client(&guest, &cached.client(), now);
                    }
                    self.poll(guest, poll.version, cached.tags().into_iter(), now)
                }
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

    /// Examines the request at the start of `bytes`, if its head is complete. An error closes the connection.
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

    /// Parses the head at the start of `bytes`; returns it with its length, if it is complete.
    pub(super) fn parse<'h, 'b>(
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
            true => proxy_claim(head),
            false => ProxyClaim::default(),
        };
        let guest = self.platform.guest(caller, &claim).ok_or_else(|| self.unknown_caller())?;
        let framing = head.framing()?;
        let evaluation = self.evaluate(head, self.settings.mode, guest, now, |guest, version| {
            self.poll_or_hold(head, &claim, guest, version, now)
        });
        Ok(self.exchange(head, head_length, framing, evaluation, now))
    }

    /// The exchange of an evaluated request.
    pub(super) fn exchange(
        &self,
        head: &Head<'_, '_>,
        head_length: usize,
        framing: Framing,
        evaluation: Result<Evaluation<P::Guest>, GuestError>,
        now: Timestamp,
    ) -> Exchange<P::Guest> {
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
        Exchange {
            plain,
            head_length,
            framing,
            expects_continue: head.expects_continue(),
            meta: ResponseMeta { now, persistence, head_only: head.method == "HEAD", wait },
            verdict,
        }
    }

    /// Reports a refused request to the platform. `head` is as much of its head as has arrived.
    #[cold]
    pub(super) fn record_refusal(&self, caller: &Caller, refused: &RefusedRequest<'_>) {
        let is_unknown = refused.error == GuestError::UnknownCaller;
        let guest = match (is_unknown, caller.is_proxy) {
            (true, _) => None,
            (false, false) => self.platform.guest(caller, &ProxyClaim::default()),
            (false, true) => {
                let mut headers = head::header_slots();
                let head = head::parse(refused.head, &mut headers).ok().flatten();
                head.and_then(|(head, _)| self.platform.guest(caller, &proxy_claim(&head)))
            }
        };
        self.platform.record_refusal(guest.as_ref(), caller, refused);
    }

    /// Whether the caller is no known VM now. False for trusted proxies and callers of a bound listener.
    pub(super) fn is_unknown_caller(&self, caller: &Caller) -> bool {
        match &*caller.listener {
            ListenerIdentity::Bound(_) => false,
            ListenerIdentity::Network(_) if caller.is_proxy => false,
            ListenerIdentity::Network(_) => self.platform.guest(caller, &ProxyClaim::default()).is_none(),
        }
    }

    /// The error to send: an unknown caller gets no other error.
    pub(super) fn hide_if_unknown(&self, caller: &Caller, error: GuestError) -> GuestError {
        match self.platform.guest(caller, &ProxyClaim::default()) {
            Some(_) => error,
            None => self.unknown_caller(),
        }
    }

    /// The error of a caller that is no VM.
    #[cold]
    pub(super) fn unknown_caller(&self) -> GuestError {
        match self.platform.trusts_addresses() {
            true => GuestError::UnknownCaller,
            false => GuestError::StoreAway,
        }
    }

    /// Applies the VM's rate limit.
    fn check_rate(&self, guest: &P::Guest, uptime: Duration) -> Result<(), GuestError> {
        match self.rate_limit.zip(guest.rate_state()) {
            Some((limit, rate_state)) if !limit.try_acquire(rate_state, uptime) => {
                Err(GuestError::TooManyRequests)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Runs the checks; returns the verdict or the first error. `poll` answers a poll that passed them.
    pub(super) fn evaluate(
        &self,
        head: &Head<'_, '_>,
        mode: Mode,
        guest: P::Guest,
        now: Timestamp,
        poll: impl FnOnce(P::Guest, EventsVersion) -> Evaluation<P::Guest>,
    ) -> Result<Evaluation<P::Guest>, GuestError> {
        self.check_rate(&guest, UPTIME.elapsed())?;
        let newest = self.settings.newest_version;
        let verdict = match rules::decide(head, mode, newest, guest.is_proxied())? {
            RequestKind::Approve => Verdict::Approve(guest),
            RequestKind::Document(version) => {
                self.platform.record_client(&guest, &Client::new(head.user_agent(), version), now);
                return Ok(poll(guest, version));
            }
            RequestKind::Instance { version, path, format } => {
                let path = path.into_iter().map(Cow::into_owned).collect();
                Verdict::Instance { guest, version, path, format }
            }
            RequestKind::Versions => {
                Verdict::Response(Response::Metadata { is_text: false, body: Bytes::from(versions_body()) })
            }
        };
        Ok(verdict.into())
    }

    /// Answers a poll, or holds it if the client asks for that.
    fn poll_or_hold(
        &self,
        head: &Head<'_, '_>,
        claim: &ProxyClaim<'_>,
        guest: P::Guest,
        version: EventsVersion,
        now: Timestamp,
    ) -> Evaluation<P::Guest> {
        let wait = long_poll::requested_wait(head);
        let verdict = match (self.poll(guest, version, head.all(Name::IfNoneMatch), now), wait) {
            (Verdict::Unchanged { edition, .. }, Some(wait)) => {
                Verdict::LongPoll(Box::new(LongPoll::new(head, claim, version, edition)), wait)
            }
            (Verdict::ReadThrough(mut newer), Some(wait)) => {
                let hold = LongPoll::new(head, claim, version, newer.edition);
                newer.hold = Some((Box::new(hold), wait));
                Verdict::ReadThrough(newer)
            }
            (verdict, _) => verdict,
        };
        Evaluation { verdict, wait, version: Some(version) }
    }

    /// Answers a poll: the document, or unchanged.
    fn poll<'a>(
        &self,
        guest: P::Guest,
        version: EventsVersion,
        tags: impl Iterator<Item = &'a [u8]> + Clone,
        now: Timestamp,
    ) -> Verdict<P::Guest> {
        self.platform.record_poll(&guest, version, now);
        let rendered = self.platform.document(&guest, version);
        self.answer_poll(guest, version, rendered, tags)
    }

    /// The verdict on a poll: this document, or unchanged.
    pub(super) fn answer_poll<'a>(
        &self,
        guest: P::Guest,
        version: EventsVersion,
        rendered: Rendered,
        tags: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Verdict<P::Guest> {
        let Rendered { edition, incarnation, .. } = rendered;
        if conditional::matches_etag(tags.clone(), incarnation) {
            return Verdict::Unchanged { edition, incarnation };
        }
        match self.newer_tag(tags, incarnation) {
            Some(tag) => {
                Verdict::ReadThrough(Box::new(NewerTag { guest, version, tag, edition, hold: None }))
            }
            None => Verdict::Document { guest, version, rendered },
        }
    }

    /// The guest's tag, if another node may have sent it a newer document than this incarnation.
    pub(super) fn newer_tag<'a>(
        &self,
        tags: impl Iterator<Item = &'a [u8]>,
        incarnation: u64,
    ) -> Option<u64> {
        // A single node stops here, so its polls cost nothing more.
        if self.platform.may_lag() { conditional::newer_tag(tags, incarnation) } else { None }
    }

    /// The guest's instance metadata, or the part of it at `path`.
    pub(super) async fn instance(
        &self,
        guest: &P::Guest,
        version: InstanceVersion,
        path: &[String],
        format: Format,
    ) -> Response {
        let Some(instance) = self.platform.instance(guest).await else {
            return Response::Refused(GuestError::StoreAway);
        };
        match path::answer(&instance, version, path.iter().map(String::as_str), format) {
            Ok(body) => Response::Metadata { is_text: format == Format::Text, body: Bytes::from(body) },
            Err(error) => Response::Refused(error),
        }
    }
}
