//! One request's head, judged: who asks, whether it may, and what it gets.
//!
//! This is everything about a request that needs neither the socket nor waiting. A read is answered here,
//! with the head still borrowed from the connection's buffer; an approval has to wait for its body and for
//! the platform, so it leaves with the resolved guest. `now` is taken once, here.

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_wire::guest::error::GuestError;
use notbefore_wire::guest::instance::path::{self, Format};
use notbefore_wire::guest::instance::versions_body;
use notbefore_wire::guest::version::EventsVersion;

use super::answer::{Answer, Persistence};
use super::caller::{Caller, ProxyClaim};
use super::head::{self, Framing, Head};
use super::platform::{GuestHandle, Platform, Rendered};
use super::rules::{self, Asked};
use super::settings::HEADERS_MAX;
use super::{GuestDoor, conditional};

/// A request whose head is there and judged.
pub(super) struct Exchange<G> {
    /// How much of the buffer was the head.
    pub head_length: usize,
    pub framing: Framing,
    pub expects_continue: bool,
    pub persistence: Persistence,
    pub head_only: bool,
    pub now: Timestamp,
    pub verdict: Verdict<G>,
}

/// What is to be done about a request.
pub(super) enum Verdict<G> {
    /// Answer it.
    Answer(Answer),
    /// Send the guest its document, and tell the platform once it is out.
    Document { guest: G, version: EventsVersion, rendered: Rendered },
    /// Read the events from its body and approve them for this guest.
    Approve(G),
}

impl<P: Platform> GuestDoor<P> {
    /// The exchange that the bytes begin, if its head is complete. An error closes the connection.
    pub(super) fn examine(
        &self,
        bytes: &[u8],
        caller: &Caller,
    ) -> Result<Option<Exchange<P::Guest>>, GuestError> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let (head, head_length) = match head::parse(bytes, &mut headers) {
            Ok(Some(parsed)) => parsed,
            Ok(None) => return Ok(None),
            Err(error) => return Err(self.if_known(caller, error)),
        };
        let now = self.clock.now();
        let claim = match caller.is_proxy {
            true => ProxyClaim {
                instance_id: head.one("X-Instance-ID"),
                signature: head.one("X-Instance-ID-Signature"),
            },
            false => ProxyClaim::default(),
        };
        let guest = self.platform.guest(caller, &claim).ok_or(GuestError::UnknownCaller)?;
        let framing = head.framing()?;
        let persistence = match (head.keeps_alive(), head.is_http10) {
            (true, false) => Persistence::Open,
            (true, true) => Persistence::KeptAlive,
            (false, _) => Persistence::Closing,
        };
        Ok(Some(Exchange {
            head_length,
            framing,
            expects_continue: head.expects_continue(),
            persistence,
            head_only: head.method == "HEAD",
            now,
            verdict: self
                .judge(&head, guest, now)
                .unwrap_or_else(|error| Verdict::Answer(Answer::Refused(error))),
        }))
    }

    /// An error as it is told to a caller: one that is no VM of ours learns nothing else.
    pub(super) fn if_known(&self, caller: &Caller, error: GuestError) -> GuestError {
        match self.platform.guest(caller, &ProxyClaim::default()) {
            Some(_) => error,
            None => GuestError::UnknownCaller,
        }
    }

    fn judge(
        &self,
        head: &Head<'_, '_>,
        guest: P::Guest,
        now: Timestamp,
    ) -> Result<Verdict<P::Guest>, GuestError> {
        if self.rate_limit.as_ref().is_some_and(|limit| !limit.take(guest.vm(), now)) {
            return Err(GuestError::TooManyRequests);
        }
        let answer = match rules::decide(head, self.settings.mode, guest.by_proxy())? {
            Asked::Approve => return Ok(Verdict::Approve(guest)),
            Asked::Document(version) => {
                let rendered = self.platform.document(&guest, version, now);
                let incarnation = rendered.incarnation;
                if conditional::client_has(head.all("If-None-Match"), incarnation) {
                    Answer::NotModified { incarnation }
                } else {
                    return Ok(Verdict::Document { guest, version, rendered });
                }
            }
            Asked::Instance { version, path, format } => {
                let instance = self.platform.instance(&guest);
                let body = path::answer(&instance, version, path.iter().map(|element| &**element), format)?;
                Answer::Metadata { is_text: format == Format::Text, body: Bytes::from(body) }
            }
            Asked::Versions => Answer::Metadata { is_text: false, body: Bytes::from(versions_body()) },
        };
        Ok(Verdict::Answer(answer))
    }
}
