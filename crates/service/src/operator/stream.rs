//! `/v1/stream`: what happens, as it happens, as server-sent events.
//!
//! Each message is what one commit made happen; its id is the commit's revision, so a reader that comes back
//! with `Last-Event-ID` misses nothing, as long as the store still holds what came after. A reader that is
//! slower than the store's memory is told so and let go. A token has a limited number of streams; where all tokens
//! together have too many, the oldest of the token that has most ends for another's, which resumes in the same way.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use notbefore_engine::records::{self, FactBatch, prefix};
use notbefore_listener::places::Place;
use notbefore_store::{Batch, Change, Revision, Watch, WatchError};
use tokio::sync::watch;
use tokio::time::{Interval, interval};

use super::problem::Problem;
use super::sight::Caller;

/// How soon a stream notices that its token has expired.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// How long a stream may be quiet before it shows that it is alive.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(15);

struct Follower {
    caller: Caller,
    watch: Box<dyn Watch>,
    check: Interval,
    shutdown: watch::Receiver<bool>,
    place: Place,
}

/// Follow what happens, as server-sent events
///
/// Each message is what one commit made happen; its id is a revision, to come back with as `Last-Event-ID`.
#[utoipa::path(get, path = "/stream", tag = "events", params(("Last-Event-ID" = Option<u64>, Header, description = "The last message that was read")), responses((status = 200, body = String, content_type = "text/event-stream")))]
pub async fn follow(caller: Caller, headers: HeaderMap) -> Result<Response, Problem> {
    let place = caller.stream_place()?;
    let newest = caller.snapshot().await?.revision();
    let after = match headers.get("Last-Event-ID").map(|value| value.to_str().unwrap_or_default().parse()) {
        None => newest,
        // A later one comes from a store that is no more; waiting for it to be reached would be silence.
        Some(Ok(revision)) if revision > newest.0 => {
            let detail = format!("revision {revision} is not one of this store; begin without Last-Event-ID");
            return Err(Problem::new(StatusCode::GONE, "stream_position_gone", detail));
        }
        Some(Ok(revision)) => Revision(revision),
        Some(Err(_)) => {
            return Err(Problem::bad_request("bad_last_event_id", "Last-Event-ID is not a revision"));
        }
    };
    let watch = caller.watch(after).await.map_err(|error| {
        let status = match &error {
            WatchError::Compacted { .. } => StatusCode::GONE,
            WatchError::Closed => StatusCode::SERVICE_UNAVAILABLE,
        };
        Problem::new(status, "stream_position_gone", error.to_string())
    })?;
    let follower =
        Follower { shutdown: caller.shutdown(), caller, watch, check: interval(CHECK_EVERY), place };
    let messages = stream::unfold(follower, |mut follower| async move {
        let messages = follower.next().await?;
        Some((stream::iter(messages), follower))
    });
    // Something to read at once, so that a client knows that it is connected.
    let greeting = stream::iter([Event::default().comment("connected")]);
    let events = greeting.chain(messages.flatten()).map(Ok::<_, Infallible>);
    let alive = KeepAlive::new().interval(HEARTBEAT_EVERY).text("alive");
    Ok(([(header::CACHE_CONTROL, "no-store")], Sse::new(events).keep_alive(alive)).into_response())
}

impl Follower {
    /// The messages of the next commit that made something happen; none at the stream's end, which comes at the latest
    /// when the caller's token ends.
    async fn next(&mut self) -> Option<Vec<Event>> {
        loop {
            let batch = tokio::select! {
                _ = self.shutdown.wait_for(|closing| *closing) => return None,
                () = self.place.taken() => return None,
                batch = self.watch.next() => Some(batch.ok()?),
                _ = self.check.tick() => None,
            };
            if !self.caller.holds() {
                return None;
            }
            let Some(batch) = batch else { continue };
            if self.caller.is_revoked_by(&batch) {
                return None;
            }
            let messages = self.messages(&batch);
            if !messages.is_empty() {
                return Some(messages);
            }
        }
    }

    /// A commit as messages: what it made happen that the caller would call a fact.
    fn messages(&self, batch: &Batch) -> Vec<Event> {
        let facts = batch.changes.iter().filter(|change| change.key.starts_with(prefix::FACT));
        let message = |change: &Change| {
            let facts = records::decode::<FactBatch>(&change.key, change.value.as_ref()?).ok()?;
            let facts = self.caller.facts(facts)?;
            Event::default().id(batch.revision.to_string()).event("facts").json_data(facts).ok()
        };
        facts.filter_map(message).collect()
    }
}
