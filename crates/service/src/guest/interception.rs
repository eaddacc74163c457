//! Interception of requests: faults and recording, for rehearsals.
//!
//! A worker reads one flag (`Interception::is_on`, a relaxed load). While it is on, the worker passes every request to
//! a task (`connection`), which asks the fault table and records the exchange. `Prefer: wait` is ignored then,
//! as the real service does, so that no answer takes another path.
//!
//! The flag is on while there is a recorder, an active fault, or a VM whose incarnations a fault has changed.

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use jiff::fmt::{rfc2822, temporal};
use jiff::{SignedDuration, Timestamp};
use notbefore_wire::guest::error::GuestError;
use notbefore_wire::guest::version::EventsVersion;
use notbefore_wire::operator::FaultKind;
use tokio::sync::watch;
use uuid::Uuid;

use super::caller::{Caller, ProxyClaim};
use super::exchange::{Evaluation, Exchange, Verdict, proxy_claim};
use super::faults::{After, Answer, Before, Ending, FaultTable, RequestClass};
use super::head::{self, Head, Name};
use super::platform::{GuestHandle, Platform, Rendered};
use super::response::{FaultResponse, Response};
use super::settings::Mode;
use super::{GuestServer, conditional, rules};
use crate::metrics::Tally;

/// A request of a guest and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// When its head was complete, by the service's clock.
    pub received_at: Timestamp,
    /// What [`RequestSink::arrived`] returned; zero if the VM is not known.
    pub arrived_at: Duration,
    /// When the answer was written or the connection was reset.
    pub answered_at: Timestamp,
    /// What [`RequestSink::answering`] returned, before the client could have the answer.
    pub answering_at: Option<Duration>,
    /// The VM that sent it, if it is known.
    pub vm: Option<RecordedVm>,
    /// The caller's address.
    pub caller: IpAddr,
    /// Empty if the input was no request.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The value of the first `Metadata` header.
    pub metadata: Option<String>,
    pub user_agent: Option<String>,
    pub if_none_match: Option<String>,
    pub body: Vec<u8>,
    /// None if no whole response was sent: the connection was reset, or the client was gone.
    pub status: Option<u16>,
    /// The incarnation that the response showed.
    pub incarnation: Option<u64>,
    pub response_body: Bytes,
    /// The faults that affected it, in the order in which they apply.
    pub faults: Vec<FaultKind>,
}

/// The VM of a recorded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedVm {
    pub id: Uuid,
    /// Its full path.
    pub path: String,
}

/// Gets every request of guests.
pub trait RequestSink: Send + Sync + 'static {
    /// Called when the head of a VM's request is complete, before it has any effect; it must not block for long. Returns
    /// the time by the sink's own clock.
    fn arrived(&self, vm: &RecordedVm) -> Duration {
        let _ = vm;
        Duration::ZERO
    }

    /// Called before the answer is written, or when it is known that there is none. Returns the time by the sink's own
    /// clock.
    fn answering(&self) -> Duration {
        Duration::ZERO
    }

    /// Called after the answer was written or the connection was reset, by the task of the connection: it must not block.
    fn record(&self, request: RecordedRequest);
}

/// A shared sink for requests.
#[derive(Clone)]
pub struct Recorder(pub Arc<dyn RequestSink>);

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}

/// Faults and recorder of a guest server.
#[derive(Debug, Default)]
pub struct Interception {
    is_on: AtomicBool,
    faults: Mutex<FaultTable>,
    /// Changes when faults were cleared, for requests that wait because of them.
    clears: watch::Sender<()>,
    recorder: Option<Recorder>,
    /// Number of requests by kind of fault, in the order of `FaultKind::ALL`.
    effects: [Tally; FaultKind::ALL.len()],
}

impl Interception {
    pub fn new(recorder: Option<Recorder>) -> Interception {
        let is_on = AtomicBool::new(recorder.is_some());
        Interception { is_on, recorder, ..Interception::default() }
    }

    /// Whether requests are recorded or may be affected.
    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Uses the fault table, then sets the flag by it.
    pub fn with_faults<T>(&self, work: impl FnOnce(&mut FaultTable) -> T) -> T {
        let mut faults = crate::lock(&self.faults);
        let result = work(&mut faults);
        self.is_on.store(self.recorder.is_some() || faults.is_needed(), Relaxed);
        result
    }

    /// Ends a fault, or all of them, and releases requests that wait because of it; returns how many faults.
    pub fn clear_faults(&self, id: Option<u64>, now: Timestamp) -> usize {
        let cleared = self.with_faults(|faults| faults.clear(id, now));
        self.clears.send_replace(());
        cleared
    }

    /// Notified after each clear of faults.
    pub(super) fn clears(&self) -> watch::Receiver<()> {
        self.clears.subscribe()
    }

    /// Number of affected requests, by kind of fault.
    pub fn effects(&self) -> impl Iterator<Item = (&'static FaultKind, u64)> {
        FaultKind::ALL.iter().zip(&self.effects).map(|(kind, tally)| (kind, tally.get()))
    }

    fn count(&self, kinds: &[FaultKind]) {
        for kind in kinds {
            let place = FaultKind::ALL.iter().position(|known| known == kind);
            if let Some(tally) = place.and_then(|place| self.effects.get(place)) {
                tally.add();
            }
        }
    }

    fn before(&self, vm: Uuid, class: RequestClass, is_strict: bool, now: Timestamp) -> Before {
        let before = self.with_faults(|faults| faults.before(vm, class, is_strict, now));
        self.count(&before.kinds);
        before
    }

    fn after(&self, vm: Uuid, class: RequestClass, answer: Answer<'_>, now: Timestamp) -> After {
        let after = self.with_faults(|faults| faults.after(vm, class, answer, now));
        self.count(&after.kinds);
        after
    }

    fn arrived(&self, vm: &RecordedVm) -> Duration {
        self.recorder.as_ref().map_or(Duration::ZERO, |Recorder(sink)| sink.arrived(vm))
    }

    pub(super) fn answering(&self) -> Option<Duration> {
        self.recorder.as_ref().map(|Recorder(sink)| sink.answering())
    }

    pub(super) fn record(&self, request: RecordedRequest) {
        if let Some(Recorder(sink)) = &self.recorder {
            sink.record(request);
        }
    }
}

/// An intercepted request: its record so far, and what the fault table decided.
pub(super) struct Intercepted {
    pub record: RecordedRequest,
    class: RequestClass,
    pub before: Before,
    /// When its head was complete, as time since boot.
    pub received_since_boot: Duration,
    /// None until the answer is known.
    pub after: Option<After>,
}

/// An examined request, and what was decided about it.
pub(super) type InterceptedExchange<G> = (Exchange<G>, Box<Intercepted>);

/// The beginning of a record.
pub(super) fn begin_record(head: Option<&Head<'_, '_>>, caller: &Caller, now: Timestamp) -> RecordedRequest {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let value = |name| head.and_then(|head| head.all(name).next()).map(text);
    RecordedRequest {
        received_at: now,
        arrived_at: Duration::ZERO,
        answered_at: now,
        answering_at: None,
        vm: None,
        caller: caller.source,
        method: head.map(|head| head.method.to_owned()).unwrap_or_default(),
        target: head.map(|head| head.target.to_owned()).unwrap_or_default(),
        metadata: value(Name::Metadata),
        user_agent: value(Name::UserAgent),
        if_none_match: value(Name::IfNoneMatch),
        body: Vec::new(),
        status: None,
        incarnation: None,
        response_body: Bytes::new(),
        faults: Vec::new(),
    }
}

impl Intercepted {
    /// Decides what the answer looks like, unless that is decided, and changes the response.
    pub(super) fn change(
        &mut self,
        interception: &Interception,
        response: Response,
        now: Timestamp,
    ) -> Response {
        if self.before.ending.is_some() {
            return response;
        }
        let vm = self.record.vm.as_ref().map(|vm| vm.id).unwrap_or_default();
        let answer = match &response {
            Response::Metadata { is_text: false, .. } => Answer::Json,
            Response::Document { .. }
            | Response::NotModified { .. }
            | Response::Approved
            | Response::Metadata { .. }
            | Response::Refused(_)
            | Response::Fault(_) => Answer::Plain,
        };
        let after = self.after.get_or_insert_with(|| interception.after(vm, self.class, answer, now));
        let (incarnation, is_text, body) = match response {
            Response::Document { incarnation, body } if after.is_text || after.is_empty => {
                (Some(incarnation), after.is_text, body)
            }
            Response::Metadata { is_text, body } if after.has_raw_newlines => {
                (None, is_text || after.is_text, Bytes::from(add_newlines(&body, STRING, true)))
            }
            Response::Metadata { is_text, body } => (None, is_text || after.is_text, body),
            other @ (Response::Document { .. }
            | Response::NotModified { .. }
            | Response::Approved
            | Response::Refused(_)
            | Response::Fault(_)) => return other,
        };
        match (incarnation, after.is_empty) {
            (None, false) => Response::Metadata { is_text, body },
            (incarnation, is_empty) => {
                let body = if is_empty { Bytes::new() } else { body };
                Response::Fault(FaultResponse { status: 200, is_text, incarnation, body })
            }
        }
    }
}

impl<P: Platform> GuestServer<P> {
    /// [`GuestServer::examine`] for a request that is recorded or may be affected by faults.
    pub(super) fn examine_intercepted(
        &self,
        bytes: &[u8],
        caller: &Caller,
        now: Timestamp,
    ) -> Result<Option<InterceptedExchange<P::Guest>>, GuestError> {
        let mut headers = head::header_slots();
        let Some((head, head_length)) = self.parse(bytes, &mut headers, caller)? else { return Ok(None) };
        let claim = match caller.is_proxy {
            true => proxy_claim(&head),
            false => ProxyClaim::default(),
        };
        let guest = self.platform.guest(caller, &claim).ok_or_else(|| self.unknown_caller())?;
        let framing = head.framing()?;
        let (id, class) = (guest.vm(), rules::classify(&head, self.settings.mode));
        let before = self.interception.before(id, class, rules::has_strict_metadata(&head), now);
        let received_since_boot = self.clock.since_boot();
        let vm = RecordedVm { id, path: self.platform.path(&guest) };
        let arrived_at = self.interception.arrived(&vm);
        let vm = Some(vm);
        let record = RecordedRequest { vm, arrived_at, ..begin_record(Some(&head), caller, now) };
        let mut after = None;
        let evaluation = match before.ending {
            Some(Ending::Reset | Ending::Status(_)) => {
                // A reset sends nothing; the status is then not seen.
                let status = if let Some(Ending::Status(status)) = before.ending { status } else { 500 };
                Ok(Verdict::Response(Response::Fault(FaultResponse::error(status))).into())
            }
            None => {
                let mode = if before.is_strict { Mode::Strict } else { self.settings.mode };
                self.evaluate(&head, mode, guest, now, |guest, version| {
                    let (verdict, decided) = self.poll_intercepted(&head, guest, version, class, now);
                    after = Some(decided);
                    Evaluation { verdict, wait: None, version: None }
                })
            }
        };
        let exchange = self.exchange(&head, head_length, framing, evaluation, now);
        Ok(Some((exchange, Box::new(Intercepted { record, class, before, received_since_boot, after }))))
    }

    fn poll_intercepted(
        &self,
        head: &Head<'_, '_>,
        guest: P::Guest,
        version: EventsVersion,
        class: RequestClass,
        now: Timestamp,
    ) -> (Verdict<P::Guest>, After) {
        self.platform.record_poll(&guest, version, now);
        let rendered = self.platform.document(&guest, version);
        let tags = head.all(Name::IfNoneMatch);
        let answer = Answer::Document {
            incarnation: rendered.incarnation,
            has_events: has_events(&rendered.body),
            is_known: &|incarnation| conditional::matches_etag(tags.clone(), incarnation),
        };
        let after = self.interception.after(guest.vm(), class, answer, now);
        let rendered = change_document(rendered, &after);
        (self.answer_poll(guest, version, rendered, tags), after)
    }
}

/// The beginning of a rendered document, before the incarnation, and what follows it.
const START: &[u8] = b"{\"DocumentIncarnation\":";
const EVENTS: &[u8] = b",\"Events\":[";
/// Keys with the quotes around them, which no string of a document contains: there, quotes are escaped.
const NOT_BEFORE: &[u8] = b"\"NotBefore\":\"";
const DESCRIPTION: &[u8] = b"\"Description\":\"";
/// The end of any key whose value is a string.
const STRING: &[u8] = b"\":\"";

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

fn has_events(body: &[u8]) -> bool {
    find(body, EVENTS).is_some_and(|at| body.get(at + EVENTS.len()) != Some(&b']'))
}

/// Changes a rendered document as decided.
fn change_document(rendered: Rendered, after: &After) -> Rendered {
    let Rendered { edition, incarnation, body } = rendered;
    let incarnation = after.incarnation.unwrap_or(incarnation);
    let start = find(&body, EVENTS).unwrap_or(body.len());
    let mut changed = body.to_vec();
    if after.hides_events {
        changed.truncate(start);
        changed.extend_from_slice(EVENTS);
        changed.extend_from_slice(b"]}");
    }
    if after.misses_events {
        changed.truncate(start);
        changed.push(b'}');
    }
    if after.incarnation.is_some() && changed.starts_with(START) {
        changed.splice(START.len()..start, incarnation.to_string().into_bytes());
    }
    if !after.skew.is_zero() {
        changed = map_strings(&changed, NOT_BEFORE, |text| shift(text, after.skew));
    }
    if after.has_raw_newlines {
        let has_description = find(&changed, DESCRIPTION).is_some();
        changed = add_newlines(&changed, if has_description { DESCRIPTION } else { NOT_BEFORE }, false);
    }
    Rendered { edition, incarnation, body: Bytes::from(changed) }
}

/// Adds a raw newline at the end of each string after `key`, or of the first one.
fn add_newlines(body: &[u8], key: &[u8], only_first: bool) -> Vec<u8> {
    let mut is_done = false;
    map_strings(body, key, |text| match std::mem::replace(&mut is_done, only_first) {
        true => text.to_vec(),
        false => [text, b"\n"].concat(),
    })
}

/// Replaces each string that follows `key`, which ends with the string's first quote.
fn map_strings(body: &[u8], key: &[u8], mut map: impl FnMut(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = find(rest, key) {
        let (before, string) = rest.split_at(at + key.len());
        out.extend_from_slice(before);
        let mut is_escaped = false;
        let end = string.iter().position(|byte| {
            let is_end = *byte == b'"' && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            is_end
        });
        let (text, after) = string.split_at(end.unwrap_or(string.len()));
        out.extend_from_slice(&map(text));
        rest = after;
    }
    out.extend_from_slice(rest);
    out
}

/// A time of a document, shifted, in the same format. An empty one stays.
fn shift(text: &[u8], by: SignedDuration) -> Vec<u8> {
    const RFC: rfc2822::DateTimePrinter = rfc2822::DateTimePrinter::new();
    const ISO: temporal::DateTimePrinter = temporal::DateTimePrinter::new().precision(Some(0));
    let shifted = std::str::from_utf8(text).ok().and_then(|text| {
        if let Ok(time) = text.parse::<Timestamp>() {
            return Some(ISO.timestamp_to_string(&time.saturating_add(by).ok()?));
        }
        let time = rfc2822::parse(text).ok()?.timestamp().saturating_add(by).ok()?;
        RFC.timestamp_to_rfc9110_string(&time).ok()
    });
    shifted.map_or_else(|| text.to_vec(), String::into_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"DocumentIncarnation":7,"Events":[{"EventId":"A","NotBefore":"Mon, 19 Sep 2016 18:29:47 GMT","Description":"say \"NotBefore\":\"x\" \\"},{"EventId":"B","NotBefore":"","Description":""}]}"#;

    fn changed(after: After) -> String {
        let rendered = Rendered { edition: 1, incarnation: 7, body: Bytes::from_static(BODY) };
        let changed = change_document(rendered, &after);
        assert_eq!(changed.incarnation, after.incarnation.unwrap_or(7));
        String::from_utf8(changed.body.to_vec()).unwrap()
    }

    #[test]
    fn documents_change_as_decided() {
        let body = std::str::from_utf8(BODY).unwrap();
        assert_eq!(changed(After::default()), body);
        let shown = After { incarnation: Some(19), ..After::default() };
        assert_eq!(changed(shown.clone()), body.replace(":7,", ":19,"));
        let hidden = After { hides_events: true, ..shown.clone() };
        assert_eq!(changed(hidden.clone()), r#"{"DocumentIncarnation":19,"Events":[]}"#);
        let missing = After { misses_events: true, ..hidden };
        assert_eq!(changed(missing), r#"{"DocumentIncarnation":19}"#);
        let skewed = After { skew: SignedDuration::from_secs(-60), ..After::default() };
        assert_eq!(changed(skewed), body.replace("18:29:47", "18:28:47"));
        let raw = After { has_raw_newlines: true, ..After::default() };
        let expected =
            body.replace(r#"\\"}"#, "\\\\\n\"}").replace(r#"Description":"""#, "Description\":\"\n\"");
        assert_eq!(changed(raw), expected);
        assert!(has_events(BODY) && !has_events(br#"{"DocumentIncarnation":7,"Events":[]}"#));
    }

    #[test]
    fn times_keep_their_format() {
        let by = SignedDuration::from_secs(90);
        for (text, expected) in [
            ("Mon, 19 Sep 2016 18:29:47 GMT", "Mon, 19 Sep 2016 18:31:17 GMT"),
            ("2016-09-19T18:29:47Z", "2016-09-19T18:31:17Z"),
            ("", ""),
            ("soon", "soon"),
        ] {
            assert_eq!(shift(text.as_bytes(), by), expected.as_bytes());
        }
    }
}
