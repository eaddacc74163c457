//! `/v1/stream`: facts as server-sent events.
//!
//! Each message is a fact with the fact's id. A client that reconnects with `Last-Event-ID` gets each later fact once,
//! as long as the store still has the commits. `Last-Event-ID` can also be the revision of a list. An idle stream sends
//! its position now and then.
//!
//! A client that falls behind the store's watch is disconnected. A token has a limited number of streams. When all
//! tokens together reach the limit, the oldest stream of the token with the most ends; its client reconnects.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use notbefore_listener::slots::AdmissionSlot;
use notbefore_store::{Batch, Revision, Watch, WatchError};
use notbefore_wire::operator::facts::BadFactId;
use notbefore_wire::operator::{Fact, FactId};
use tokio::sync::watch;
use tokio::time::{Interval, interval};

use super::facts;
use super::problem::Problem;
use super::visibility::Caller;

/// Interval of checks whether the token or the session has expired.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Checks between two heartbeats of an idle stream.
const HEARTBEAT_CHECKS: u32 = 15;

/// The position of a client: after this fact. After all facts of a revision, the number is the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position(FactId);

impl Position {
    fn at_end_of(revision: Revision) -> Self {
        Self(FactId { revision: revision.0, n: u64::MAX })
    }

    /// The revision to watch from. For a fact, its commit is read again, because it may have further facts.
    fn watched_after(self) -> Revision {
        let FactId { revision, n } = self.0;
        Revision(if n == u64::MAX { revision } else { revision.saturating_sub(1) })
    }
}

impl FromStr for Position {
    type Err = BadFactId;

    fn from_str(text: &str) -> Result<Self, BadFactId> {
        match text.parse() {
            Ok(revision) => Ok(Self::at_end_of(Revision(revision))),
            Err(_) => text.parse().map(Self),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.n == u64::MAX { self.0.revision.fmt(f) } else { self.0.fmt(f) }
    }
}

struct Follower {
    caller: Caller,
    watch: Box<dyn Watch>,
    check: Interval,
    quiet_checks: u32,
    shutdown: watch::Receiver<bool>,
    slot: AdmissionSlot,
    /// The client has all facts up to here.
    position: Position,
}

/// Follow facts as server-sent events
///
/// Each message is a fact, with its id. To resume, send the last id, or the `revision` of a list, as `Last-Event-ID`.
#[utoipa::path(get, path = "/stream", tag = "events", params(("Last-Event-ID" = Option<String>, Header, description = "The id of the last fact that was read, or the `revision` of a list")), responses((status = 200, description = "One message for each fact: `id`, `event: fact`, and the fact as `data`", body = Fact, content_type = "text/event-stream")))]
pub async fn follow(caller: Caller, headers: HeaderMap) -> Result<Response, Problem> {
    let slot = caller.reserve_stream()?;
    let newest = caller.snapshot().await?.revision();
    let position = match headers.get("Last-Event-ID").map(|value| value.to_str().unwrap_or_default().parse())
    {
        None => Position::at_end_of(newest),
        Some(Ok(position)) => position,
        Some(Err(BadFactId)) => {
            let detail = "Last-Event-ID is neither a fact's id nor a list's revision";
            return Err(Problem::bad_request("bad_last_event_id", detail));
        }
    };
    let gone = |why: &str| {
        let detail = format!("{why}; read the list again, and follow from its revision");
        Problem::new(StatusCode::GONE, "stream_position_gone", detail)
    };
    // A later revision comes from another store; waiting for it could take forever.
    if position.0.revision > newest.0 {
        return Err(gone(&format!("revision {} is later than the store's", position.0.revision)));
    }
    let watch = caller.watch(position.watched_after()).await.map_err(|error| match error {
        WatchError::Compacted { .. } => gone(&format!("the commits after {position} are no longer held")),
        WatchError::Closed => {
            let detail = "the service is stopping; reconnect when it has started again";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
        }
    })?;
    let follower = Follower {
        shutdown: caller.shutdown(),
        caller,
        watch,
        check: interval(CHECK_EVERY),
        quiet_checks: 0,
        slot,
        position,
    };
    // Send the position first, so that the client knows that it is connected.
    let greeting = stream::iter([follower.at("connected")]);
    let messages = stream::unfold(follower, |mut follower| async move {
        let messages = follower.next().await?;
        Some((stream::iter(messages), follower))
    });
    let events = greeting.chain(messages.flatten()).map(Ok::<_, Infallible>);
    Ok(([(header::CACHE_CONTROL, "no-store")], Sse::new(events)).into_response())
}

impl Follower {
    /// The next messages; none at the end of the stream, for example when the token or the session expires.
    async fn next(&mut self) -> Option<Vec<Event>> {
        loop {
            let batch = tokio::select! {
                _ = self.shutdown.wait_for(|closing| *closing) => return None,
                () = self.slot.evicted() => return None,
                batch = self.watch.next() => Some(batch.ok()?),
                _ = self.check.tick() => None,
            };
            if !self.caller.is_valid() {
                return None;
            }
            let messages = match batch {
                Some(batch) if self.caller.is_revoked_by(&batch) => return None,
                Some(batch) => self.messages(&batch),
                None => {
                    self.quiet_checks += 1;
                    let is_quiet = self.quiet_checks >= HEARTBEAT_CHECKS;
                    if is_quiet { vec![self.at("alive")] } else { Vec::new() }
                }
            };
            if !messages.is_empty() {
                self.quiet_checks = 0;
                return Some(messages);
            }
        }
    }

    /// A message without a fact. Its id is the position, from which a client resumes.
    fn at(&self, comment: &str) -> Event {
        Event::default().comment(comment).id(self.position.to_string())
    }

    /// The messages of a commit: the facts that the caller sees.
    fn messages(&mut self, batch: &Batch) -> Vec<Event> {
        let (caller, reasons) = (&self.caller, self.caller.reasons());
        let facts = facts::of_batch(batch, reasons, |scope, fact| caller.can_see_fact(scope, fact));
        let unsent = facts.into_iter().filter(|(id, _)| *id > self.position.0);
        let message = |(id, fact): (FactId, Fact)| {
            Event::default().id(id.to_string()).event("fact").json_data(fact).ok()
        };
        let messages = unsent.filter_map(message).collect();
        self.position = Position::at_end_of(batch.revision);
        messages
    }
}
