//! Word to an administrator: a POST for every fact that the configuration names, and for trouble of the agent's own. It
//! has a queue and a task of its own, so that a server that hangs delays nothing, and a full queue drops what is new and
//! says so. When the agent ends, what waits has some seconds more: a VM that is shut down is just when somebody should hear.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::config::{Notify, NotifyOn};
use crate::fact_text;
use crate::hooks::webhook::{self, Call};
use crate::machine::io::Fact;
use crate::machine::tracked_event::TrackedEvent;

/// How many words may wait: a few events with all that can happen to them.
const QUEUE_MAX: usize = 64;
/// How often a word is sent before it is given up.
const TRIES: u32 = 3;
/// How long to rest in between.
const REST: Duration = Duration::from_secs(2);

/// How long what waits has when the agent ends. The service unit gives all of it twenty seconds, and no reboot should take
/// longer because an administrator's server is slow.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(8);

/// Where words are handed in.
#[derive(Debug)]
pub struct Notifier {
    queue: mpsc::Sender<(Notify, String)>,
    sending: JoinHandle<()>,
    /// How many were handed in and are neither sent nor given up.
    waiting: Arc<AtomicUsize>,
}

#[derive(Serialize)]
struct Message<'a> {
    what: NotifyOn,
    text: String,
    vm: &'a str,
    rule: Option<&'a str>,
    dry_run: bool,
    event: Option<&'a Value>,
}

impl Notifier {
    /// Starts the task that sends; it ends with the notifier.
    pub fn start() -> Notifier {
        let (queue, mut handed_in) = mpsc::channel(QUEUE_MAX);
        let waiting = Arc::new(AtomicUsize::new(0));
        let sending = tokio::spawn({
            let waiting = waiting.clone();
            async move {
                while let Some((to, body)) = handed_in.recv().await {
                    send(&to, body).await;
                    waiting.fetch_sub(1, Ordering::Relaxed);
                }
            }
        });
        Notifier { queue, sending, waiting }
    }

    /// Sends what waits, within `FLUSH_TIMEOUT`; what that is not enough for is dropped, and said to be.
    pub async fn finish(self) {
        let Notifier { queue, sending, waiting } = self;
        drop(queue);
        let abort = sending.abort_handle();
        if tokio::time::timeout(FLUSH_TIMEOUT, sending).await.is_err() {
            abort.abort();
            let dropped = waiting.load(Ordering::Relaxed);
            tracing::warn!(
                dropped,
                "the administrator was not told all there was to tell within {} s of the agent's end",
                FLUSH_TIMEOUT.as_secs()
            );
        }
    }

    /// Hands in a fact, if whoever is to be told wants to hear of it.
    pub fn send_fact(&self, to: &Notify, fact: &Fact, vm: &str, dry_run: bool) {
        let Some(what) = fact_text::notify_on(fact).filter(|what| to.on.contains(what)) else { return };
        let (rule, event) = (fact.rule.as_deref(), Some(&fact.event.raw));
        self.enqueue(to, &Message { what, text: fact_text::sentence(fact), vm, rule, dry_run, event });
    }

    /// Hands in trouble of the agent's own, or with an event: what no fact says.
    pub fn send_problem(
        &self,
        to: &Notify,
        text: String,
        about: Option<&TrackedEvent>,
        vm: &str,
        dry_run: bool,
    ) {
        let what = NotifyOn::Failed;
        if !to.on.contains(&what) {
            return;
        }
        let rule = about.and_then(TrackedEvent::rule).map(|rule| rule.name.as_str());
        let event = about.map(|handled| &handled.event.raw);
        self.enqueue(to, &Message { what, text, vm, rule, dry_run, event });
    }

    fn enqueue(&self, to: &Notify, message: &Message<'_>) {
        let body = serde_json::to_string(message).unwrap_or_default();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if self.queue.try_send((to.clone(), body)).is_err() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            tracing::warn!("{QUEUE_MAX} words to the administrator wait already; one is dropped");
        }
    }
}

async fn send(to: &Notify, body: String) {
    let host = webhook::host(&to.url);
    for attempt in 1..=TRIES {
        let call = Call {
            url: to.url.clone(),
            method: "POST".to_owned(),
            headers: to.headers.clone(),
            body: body.clone(),
            timeout: to.timeout,
        };
        match webhook::send(call).await {
            Ok(()) => return,
            Err(reason) if attempt < TRIES => {
                tracing::debug!(attempt, "the administrator was not told: {reason}");
                tokio::time::sleep(REST).await;
            }
            Err(reason) => tracing::warn!(host, "the administrator was not told, given up: {reason}"),
        }
    }
}
