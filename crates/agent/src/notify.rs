//! Notifications for the administrator: a POST for each configured fact and for problems of the agent itself.
//!
//! A bounded queue and its own task, so that a hanging server delays nothing; a full queue drops new messages and
//! logs it. At shutdown, queued messages get a few more seconds, because a shutdown is an important time to notify.

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

/// Queue capacity: several events with all their facts.
const QUEUE_MAX: usize = 64;
/// Attempts per message.
const TRIES: u32 = 3;
/// Pause between attempts.
const REST: Duration = Duration::from_secs(2);

/// Time for queued messages at shutdown. The service unit allows 20 seconds in total, and a slow server must not
/// delay a reboot.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(8);

#[derive(Debug)]
pub struct Notifier {
    queue: mpsc::Sender<(Notify, String)>,
    sending: JoinHandle<()>,
    /// Messages queued or being sent.
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
    /// Starts the sending task; it ends with the notifier.
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

    /// Sends queued messages within `FLUSH_TIMEOUT`; drops and logs the rest.
    pub async fn finish(self) {
        let Notifier { queue, sending, waiting } = self;
        drop(queue);
        let abort = sending.abort_handle();
        if tokio::time::timeout(FLUSH_TIMEOUT, sending).await.is_err() {
            abort.abort();
            let dropped = waiting.load(Ordering::Relaxed);
            tracing::warn!(
                dropped,
                "not all notifications were sent within {} s of the shutdown",
                FLUSH_TIMEOUT.as_secs()
            );
        }
    }

    /// Queues a fact, if it is configured.
    pub fn send_fact(&self, to: &Notify, fact: &Fact, vm: &str, dry_run: bool) {
        let Some(what) = fact_text::notify_on(fact).filter(|what| to.on.contains(what)) else { return };
        let (rule, event) = (fact.rule.as_deref(), Some(&fact.event.raw));
        self.enqueue(to, &Message { what, text: fact_text::sentence(fact), vm, rule, dry_run, event });
    }

    /// Queues a problem that is not a fact.
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
            tracing::warn!("{QUEUE_MAX} notifications are queued; a new one is dropped");
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
                tracing::debug!(attempt, "notification failed: {reason}");
                tokio::time::sleep(REST).await;
            }
            Err(reason) => tracing::warn!(host, "notification failed, giving up: {reason}"),
        }
    }
}
