//! `/v1/stream`: what happens, as it happens, as server-sent events.
//!
//! Each message is what one commit made happen; its id is the commit's revision, so a reader that comes back
//! with `Last-Event-ID` misses nothing, as long as the store still holds what came after. A reader that is
//! slower than the store's memory is told so and let go. A token has a limited number of streams; where all tokens
//! together have too many, the oldest of the token that has most ends for another's, which resumes in the same way.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use notbefore_engine::records::{self, FactBatch, prefix};
use notbefore_listener::places::Place;
use notbefore_store::{Batch, Revision, Watch, WatchError};
use tokio::sync::watch;
use tokio::time::{Interval, interval};

use super::problem::Problem;
use super::sight::Caller;

/// How soon a stream notices that its token has expired.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// After how many such checks a quiet stream shows that it is alive.
const HEARTBEAT_CHECKS: u32 = 15;

struct Follower {
    caller: Caller,
    watch: Box<dyn Watch>,
    check: Interval,
    quiet_checks: u32,
    shutdown: watch::Receiver<bool>,
    greeted: bool,
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
    let follower = Follower {
        shutdown: caller.shutdown(),
        caller,
        watch,
        check: interval(CHECK_EVERY),
        quiet_checks: 0,
        greeted: false,
        place,
    };
    let messages = stream::unfold(follower, |mut follower| async move {
        let message = follower.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(message)), follower))
    });
    let mut response = Body::from_stream(messages).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

impl Follower {
    /// The next piece of the stream; none at its end, which comes at the latest when the caller's token ends.
    async fn next(&mut self) -> Option<String> {
        if !std::mem::replace(&mut self.greeted, true) {
            // Something to read at once, so that a client knows that it is connected.
            return Some(": connected\n\n".to_owned());
        }
        loop {
            let batch = tokio::select! {
                _ = self.shutdown.wait_for(|closing| *closing) => return None,
                () = self.place.taken() => return None,
                batch = self.watch.next() => Some(batch),
                _ = self.check.tick() => None,
            };
            if !self.caller.holds() {
                return None;
            }
            let message = match batch {
                Some(Ok(batch)) if self.caller.is_revoked_by(&batch) => return None,
                Some(Ok(batch)) => self.message(&batch),
                Some(Err(_)) => return None,
                None => {
                    self.quiet_checks += 1;
                    (self.quiet_checks >= HEARTBEAT_CHECKS).then(|| ": alive\n\n".to_owned())
                }
            };
            if message.is_some() {
                self.quiet_checks = 0;
                return message;
            }
        }
    }

    /// A commit as a message; none if it made nothing happen that the caller would call a fact.
    fn message(&self, batch: &Batch) -> Option<String> {
        let mut text = String::new();
        for change in batch.changes.iter().filter(|change| change.key.starts_with(prefix::FACT)) {
            let decoded = change.value.as_ref().map(|value| records::decode::<FactBatch>(&change.key, value));
            let Some(facts) = decoded.and_then(Result::ok).and_then(|facts| self.caller.facts(facts)) else {
                continue;
            };
            let json = serde_json::to_string(&facts).ok()?;
            text.push_str(&format!("id: {}\nevent: facts\ndata: {json}\n\n", batch.revision));
        }
        (!text.is_empty()).then_some(text)
    }
}
