//! Differences between consecutive documents.
//!
//! Documents may be skipped, so an event may first appear as started, or disappear without being seen as started.
//! Events are matched by id only. If the platform falls back to an older api-version, events of types that it does
//! not list are kept as last seen, not reported as gone.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::document::{Document, Event, EventId, EventStatus, EventsVersion};
use crate::watch::{Outage, Update, Watch};

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new event. It may have started already; see its status.
    Appeared(Event),
    /// A known event has started.
    Started(Event),
    /// Another field changed: its time, its resources, or a status that went back.
    Changed {
        /// Before the change.
        before: Box<Event>,
        /// After the change.
        event: Event,
    },
    /// The event is over or was cancelled; as last seen.
    Gone(Event),
}

/// Computes changes from document to document.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    events: Vec<Event>,
}

impl Tracker {
    /// The changes since the last document: vanished events first, then the others in document order.
    pub fn update(&mut self, document: &Document, version: EventsVersion) -> Vec<Change> {
        let before = std::mem::replace(&mut self.events, document.events.clone());
        let by_id = |events: &'_ [Event]| -> HashMap<EventId, usize> {
            events.iter().enumerate().map(|(index, event)| (event.id.clone(), index)).collect()
        };
        let (known, there) = (by_id(&before), by_id(&self.events));
        let unlisted = before.iter().filter(|event| !there.contains_key(&event.id)).cloned();
        let (gone, unsaid): (Vec<Event>, Vec<Event>) =
            unlisted.partition(|event| event.kind.is_shown_at(version));
        let now = self.events.iter().filter_map(|event| {
            let Some(before) = known.get(&event.id).map(|index| &before[*index]) else {
                return Some(Change::Appeared(event.clone()));
            };
            if event.status == EventStatus::Started && before.status != EventStatus::Started {
                return Some(Change::Started(event.clone()));
            }
            let changed = || Change::Changed { before: Box::new(before.clone()), event: event.clone() };
            (before != event).then(changed)
        });
        let changes = gone.into_iter().map(Change::Gone).chain(now).collect();
        self.events.extend(unsaid);
        changes
    }

    /// The current events, as last seen.
    pub fn events(&self) -> &[Event] {
        &self.events
    }
}

/// A [`Watch`] that yields changes. Outages are logged and retried; [`Changes::outage`] reports a current one.
pub struct Changes {
    watch: Watch,
    tracker: Tracker,
    found: VecDeque<Change>,
    outage: Option<Outage>,
}

impl Changes {
    pub(crate) fn of(watch: Watch) -> Self {
        Changes { watch, tracker: Tracker::default(), found: VecDeque::new(), outage: None }
    }

    /// The next change. Cancel-safe: the future may be dropped and called again.
    pub async fn next(&mut self) -> Change {
        loop {
            if let Some(change) = self.found.pop_front() {
                return change;
            }
            self.outage = match self.watch.next().await {
                Update::Document { document, version, .. } => {
                    self.found.extend(self.tracker.update(&document, version));
                    None
                }
                Update::Unchanged { .. } => None,
                Update::Outage(outage) => {
                    tracing::warn!(tries = outage.tries, "request to the platform failed: {}", outage.text);
                    Some(outage)
                }
            };
        }
    }

    /// The current outage, if any: during one, the absence of changes means nothing. May be read between calls of
    /// [`Changes::next`].
    pub fn outage(&self) -> Option<&Outage> {
        self.outage.as_ref()
    }

    /// Converts into a [`Stream`], which never ends.
    pub fn into_stream(self) -> ChangeStream {
        ChangeStream { next: next_change(self) }
    }
}

/// Changes as a [`Stream`].
pub struct ChangeStream {
    next: Pin<Box<dyn Future<Output = (Change, Changes)> + Send>>,
}

fn next_change(mut changes: Changes) -> Pin<Box<dyn Future<Output = (Change, Changes)> + Send>> {
    Box::pin(async move { (changes.next().await, changes) })
}

impl Stream for ChangeStream {
    type Item = Change;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Change>> {
        self.next.as_mut().poll(context).map(|(change, changes)| {
            self.next = next_change(changes);
            Some(change)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn document(events: &[(&str, &str, &str)]) -> Document {
        let event = |&(id, status, not_before): &(&str, &str, &str)| json!({"EventId": id, "EventStatus": status, "NotBefore": not_before});
        let events: Vec<Value> = events.iter().map(event).collect();
        let body = json!({"DocumentIncarnation": 1, "Events": events}).to_string();
        Document::read(body.as_bytes(), EventsVersion::NEWEST).unwrap()
    }

    /// Changes as text.
    fn describe(changes: Vec<Change>) -> Vec<String> {
        let word = |change| match change {
            Change::Appeared(event) => format!("{} appeared {}", event.id, event.status.as_str()),
            Change::Started(event) => format!("{} started", event.id),
            Change::Changed { before, event } => {
                format!("{} changed {} to {}", event.id, before.status.as_str(), event.status.as_str())
            }
            Change::Gone(event) => format!("{} gone", event.id),
        };
        changes.into_iter().map(word).collect()
    }

    #[test]
    fn event_lifecycle_yields_changes() {
        let mut tracker = Tracker::default();
        let mut take = |events: &[(&str, &str, &str)]| {
            describe(tracker.update(&document(events), EventsVersion::NEWEST))
        };
        assert!(take(&[]).is_empty());
        assert_eq!(take(&[("a", "Scheduled", "2016-09-19T18:29:47Z")]), ["a appeared Scheduled"]);
        assert!(take(&[("A", "Scheduled", "2016-09-19T18:29:47Z")]).len() < 2);
        assert_eq!(take(&[("a", "Started", ""), ("b", "Started", "")]), ["a started", "b appeared Started"]);
        assert_eq!(take(&[("b", "Started", "")]), ["a gone"]);
        assert_eq!(take(&[("c", "Scheduled", "")]), ["b gone", "c appeared Scheduled"]);
        assert_eq!(take(&[]), ["c gone"]);
    }

    #[test]
    fn changed_time_or_reverted_status_is_a_change() {
        let mut tracker = Tracker::default();
        let mut take = |events: &[(&str, &str, &str)]| {
            describe(tracker.update(&document(events), EventsVersion::NEWEST))
        };
        take(&[("a", "Scheduled", "2016-09-19T18:29:47Z")]);
        assert_eq!(take(&[("a", "Scheduled", "2016-09-19T19:29:47Z")]), ["a changed Scheduled to Scheduled"]);
        take(&[("a", "Started", "")]);
        assert_eq!(take(&[("a", "Scheduled", "2016-09-19T19:29:47Z")]), ["a changed Started to Scheduled"]);
        assert!(take(&[("a", "Scheduled", "2016-09-19T19:29:47Z")]).is_empty());
    }

    #[test]
    fn kinds_hidden_by_version_are_not_gone() {
        let (newer, older) = (EventsVersion::NEWEST, EventsVersion::V2017_11_01);
        let read = |kinds: &[&str], version| {
            let event = |kind: &&str| json!({"EventId": kind, "EventStatus": "Scheduled", "EventType": kind});
            let events: Vec<Value> = kinds.iter().map(event).collect();
            let body = json!({"DocumentIncarnation": 1, "Events": events}).to_string();
            Document::read(body.as_bytes(), version).unwrap()
        };
        let mut tracker = Tracker::default();
        let mut take = |kinds: &[&str], version| describe(tracker.update(&read(kinds, version), version));
        assert_eq!(take(&["Terminate", "Reboot"], newer).len(), 2);
        assert_eq!(take(&[], older), ["Reboot gone"]);
        assert_eq!(take(&["Freeze"], older), ["Freeze appeared Scheduled"]);
        assert!(take(&["Freeze", "Terminate"], newer).is_empty());
        assert!(take(&["Freeze"], older).is_empty());
        assert_eq!(take(&["Freeze"], newer), ["Terminate gone"]);
        assert_eq!(tracker.events().len(), 1);
    }
}
