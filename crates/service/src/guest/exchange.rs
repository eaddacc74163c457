//! One request's head, judged: who asks, whether it may, and what it gets.
//!
//! This is everything about a request that needs neither the socket nor waiting. A read is answered here,
//! with the head still borrowed from the buffer it came in; what has to wait for a body, for the platform or for a
//! change leaves with the resolved guest. Both ways that serve connections ([`super::lean`] and
//! [`super::connection`]) come through here, so there is one set of rules.

use std::borrow::Cow;

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_wire::guest::error::GuestError;
use notbefore_wire::guest::instance::path::{self, Format};
use notbefore_wire::guest::instance::{InstanceVersion, versions_body};
use notbefore_wire::guest::version::EventsVersion;

use super::answer::{Answer, Manner, Persistence};
use super::caller::{Caller, ProxyClaim};
use super::head::{self, Framing, Head, Name};
use super::hold::{self, Hold};
use super::platform::{GuestHandle, Platform, Rendered};
use super::prefer::Wait;
use super::rules::{self, Asked};
use super::{GuestDoor, conditional};

/// A request whose head is there and judged.
pub(super) struct Exchange<G> {
    /// How much of the buffer was the head.
    pub head_length: usize,
    pub framing: Framing,
    pub expects_continue: bool,
    pub manner: Manner,
    pub verdict: Verdict<G>,
}

/// What is to be done about a request.
pub(super) enum Verdict<G> {
    /// Answer it.
    Answer(Answer),
    /// Send the guest its document, and tell the platform once it is out.
    Document { guest: G, version: EventsVersion, rendered: Rendered },
    /// Look up what the guest may read about itself, and answer with the part that was asked for.
    Instance { guest: G, version: InstanceVersion, path: Vec<String>, format: Format },
    /// Read the events from its body and approve them for this guest.
    Approve(G),
    /// Answer when the document is another than the one that the client has, or the wait is over.
    Hold(Box<Hold>, Wait),
}

impl<P: Platform> GuestDoor<P> {
    /// The exchange that the bytes begin, if its head is complete. An error closes the connection.
    pub(super) fn examine(
        &self,
        bytes: &[u8],
        caller: &Caller,
        now: Timestamp,
    ) -> Result<Option<Exchange<P::Guest>>, GuestError> {
        let mut headers = head::room();
        let (head, head_length) = match head::parse(bytes, &mut headers) {
            Ok(Some(parsed)) => parsed,
            Ok(None) => return Ok(None),
            Err(error) => return Err(self.if_known(caller, error)),
        };
        let claim = match caller.is_proxy {
            true => ProxyClaim {
                instance_id: head.one(Name::XInstanceId),
                signature: head.one(Name::XInstanceIdSignature),
            },
            false => ProxyClaim::default(),
        };
        let guest = self.platform.guest(caller, &claim).ok_or(GuestError::UnknownCaller)?;
        let framing = head.framing()?;
        let (verdict, wait) = match self.judge(&head, &claim, guest, now) {
            Ok(judged) => judged,
            Err(error) => (Verdict::Answer(Answer::Refused(error)), None),
        };
        let persistence = match (head.keeps_alive(), head.is_http10) {
            (true, false) => Persistence::Open,
            (true, true) => Persistence::KeptAlive,
            (false, _) => Persistence::Closing,
        };
        Ok(Some(Exchange {
            head_length,
            framing,
            expects_continue: head.expects_continue(),
            manner: Manner { now, persistence, head_only: head.method == "HEAD", wait },
            verdict,
        }))
    }

    /// An error as it is told to a caller: one that is no VM of ours learns nothing else.
    pub(super) fn if_known(&self, caller: &Caller, error: GuestError) -> GuestError {
        match self.platform.guest(caller, &ProxyClaim::default()) {
            Some(_) => error,
            None => GuestError::UnknownCaller,
        }
    }

    /// What is to be done about a request, and how long its answer may be held back.
    fn judge(
        &self,
        head: &Head<'_, '_>,
        claim: &ProxyClaim<'_>,
        guest: P::Guest,
        now: Timestamp,
    ) -> Result<(Verdict<P::Guest>, Option<Wait>), GuestError> {
        if let Some((limit, pace)) = self.rate_limit.zip(guest.pace())
            && !limit.take(pace, now)
        {
            return Err(GuestError::TooManyRequests);
        }
        let verdict = match rules::decide(head, self.settings.mode, guest.by_proxy())? {
            Asked::Approve => Verdict::Approve(guest),
            Asked::Document(version) => {
                self.platform.polled(&guest, version, now);
                let rendered = self.platform.document(&guest, version);
                let incarnation = rendered.incarnation;
                let wait = hold::asked_for(head);
                return Ok(match (conditional::client_has(head.all(Name::IfNoneMatch), incarnation), wait) {
                    (false, wait) => (Verdict::Document { guest, version, rendered }, wait),
                    (true, None) => (Verdict::Answer(Answer::NotModified { incarnation }), None),
                    (true, Some(wait)) => {
                        let hold = Hold::new(head, claim, version, rendered.edition);
                        (Verdict::Hold(Box::new(hold), wait), Some(wait))
                    }
                });
            }
            Asked::Instance { version, path, format } => {
                let path = path.into_iter().map(Cow::into_owned).collect();
                Verdict::Instance { guest, version, path, format }
            }
            Asked::Versions => {
                Verdict::Answer(Answer::Metadata { is_text: false, body: Bytes::from(versions_body()) })
            }
        };
        Ok((verdict, None))
    }

    /// What a guest may read about itself, or the part of it that the path leads to.
    pub(super) async fn instance(
        &self,
        guest: &P::Guest,
        version: InstanceVersion,
        path: &[String],
        format: Format,
    ) -> Answer {
        let Some(instance) = self.platform.instance(guest).await else {
            return Answer::Refused(GuestError::Unavailable);
        };
        match path::answer(&instance, version, path.iter().map(String::as_str), format) {
            Ok(body) => Answer::Metadata { is_text: format == Format::Text, body: Bytes::from(body) },
            Err(error) => Answer::Refused(error),
        }
    }
}
