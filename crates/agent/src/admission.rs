//! Rate limit for changes from the platform: token buckets (GCRA) between documents and machine.
//!
//! Every new or changed event costs a token; a vanished event is free. A change without a token is left out of the
//! document that the machine sees: a new event is absent, a known one unchanged. The newest document is kept and
//! applied as tokens arrive. So a platform that changes everything at each poll causes a few hook runs a minute, and
//! a thousand real events at once are not delayed.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

use notbefore_client::document::{Document, EVENTS_MAX, Event, EventId, EventsVersion};
use notbefore_client::identity::Identity;

use crate::machine::tracked_event::TrackedEvent;

/// Burst of changes of this VM's own events: a hundred events that appear and start.
const OWN_BURST: u32 = 200;
/// Refill interval: a flapping event runs its hooks six times a minute.
const OWN_EVERY: Duration = Duration::from_secs(10);
/// Burst for events of other VMs: the largest scope, all of whose events appear and start.
const OTHERS_BURST: u32 = 2 * EVENTS_MAX as u32;
/// Refill interval. Most rules have no steps for such an event, so it costs only log lines.
const OTHERS_EVERY: Duration = Duration::from_secs(1);
/// Most tracked events of this VM, including those gone and not yet restored. Usually there are one or two; each may
/// resend its approval every 15 seconds.
const OWN_MAX: usize = 256;
/// Most tracked events of other VMs: a full document, and as many gone and not yet restored.
const OTHERS_MAX: usize = 2 * EVENTS_MAX;
/// Most bytes that the platform sent for all tracked events: eight of the largest documents. The journal holds them
/// twice and must stay below its limit.
const BYTES_MAX: usize = 8 << 20;

/// A token bucket as GCRA: it stores the tick at which it is full again.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    burst: u32,
    every: Duration,
    full_at: Duration,
}

impl TokenBucket {
    /// A full bucket that gains one token per `every`.
    pub fn new(burst: u32, every: Duration) -> Self {
        TokenBucket { burst, every, full_at: Duration::ZERO }
    }

    /// Takes a token, if there is one.
    pub fn take(&mut self, now: Duration) -> bool {
        let full_at = self.full_at.max(now).saturating_add(self.every);
        let has_token = full_at <= now.saturating_add(self.every.saturating_mul(self.burst));
        if has_token {
            self.full_at = full_at;
        }
        has_token
    }
}

/// Rate limits of one agent process.
#[derive(Clone, Debug)]
pub struct Admission {
    own: TokenBucket,
    others: TokenBucket,
}

/// The admitted part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Without the deferred changes.
    pub document: Document,
    /// Number of changes in it, plus events that the machine has not seen since its start.
    pub changes: usize,
    /// Number of deferred changes.
    pub held: usize,
}

/// Used capacity of the machine.
#[derive(Clone, Copy, Debug)]
struct Room {
    own: usize,
    others: usize,
    bytes: usize,
}

impl Room {
    fn taken_by(known: &[TrackedEvent]) -> Self {
        let own = known.iter().filter(|handled| handled.mine).count();
        let bytes = known.iter().map(|handled| size(&handled.event)).sum();
        Room { own, others: known.len() - own, bytes }
    }

    /// Reserves capacity for an event, or for its growth.
    fn take(&mut self, is_own: bool, event: &Event, before: Option<&TrackedEvent>) -> bool {
        let (count, max) = if is_own { (&mut self.own, OWN_MAX) } else { (&mut self.others, OTHERS_MAX) };
        let growth = size(event).saturating_sub(before.map_or(0, |before| size(&before.event)));
        let bytes = self.bytes.saturating_add(growth);
        let has_room = (before.is_some() || *count < max) && (growth == 0 || bytes <= BYTES_MAX);
        if has_room {
            *count += usize::from(before.is_none());
            self.bytes = bytes;
        }
        has_room
    }
}

impl Admission {
    pub fn new() -> Self {
        Admission {
            own: TokenBucket::new(OWN_BURST, OWN_EVERY),
            others: TokenBucket::new(OTHERS_BURST, OTHERS_EVERY),
        }
    }

    /// Admits the changes of a document, given the tracked events. This VM's own events go first.
    pub fn admit(
        &mut self,
        document: &Document,
        version: EventsVersion,
        known: &[TrackedEvent],
        me: &Identity,
        now: Duration,
    ) -> Admitted {
        let by_id: HashMap<&EventId, &TrackedEvent> = known.iter().map(|one| (&one.event.id, one)).collect();
        let is_own = |event: &Event| event.resources.iter().any(|resource| me.is(resource));
        // Vanished events, and events not seen since the agent's start, pass without a token.
        let there: HashSet<&EventId> = document.events.iter().map(|event| &event.id).collect();
        let is_told = |handled: &&TrackedEvent| match there.contains(&handled.event.id) {
            true => !handled.boot.is_confirmed(),
            false => {
                !handled.boot.is_confirmed() || handled.is_listed() && handled.event.kind.is_shown_at(version)
            }
        };
        let mut changes = known.iter().filter(is_told).count();
        // Position in the document, and whether it is this VM's, of each event that differs.
        let mut differing: Vec<(usize, bool)> = Vec::new();
        for (place, event) in document.events.iter().enumerate() {
            let before = by_id.get(&event.id);
            if !before.is_some_and(|before| before.is_listed() && before.event == *event) {
                differing.push((place, is_own(event) || before.is_some_and(|before| before.mine)));
            }
        }
        differing.sort_by_key(|(_, is_own)| !is_own);
        let mut room = Room::taken_by(if differing.is_empty() { &[] } else { known });
        let mut waiting = HashSet::new();
        for (place, is_own) in differing {
            let event = &document.events[place];
            let bucket = if is_own { &mut self.own } else { &mut self.others };
            match room.take(is_own, event, by_id.get(&event.id).copied()) && bucket.take(now) {
                true => changes += 1,
                false => drop(waiting.insert(place)),
            }
        }
        let mut admitted = Document { incarnation: document.incarnation.clone(), events: Vec::new() };
        for (place, event) in document.events.iter().enumerate() {
            if !waiting.contains(&place) {
                admitted.events.push(event.clone());
            } else if let Some(before) = by_id.get(&event.id).filter(|before| before.is_listed()) {
                admitted.events.push(before.event.clone());
            }
        }
        Admitted { document: admitted, changes, held: waiting.len() }
    }
}

/// Bytes that the platform sent for an event.
fn size(event: &Event) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting does not fail.
    let _ = serde_json::to_writer(&mut count, &event.raw);
    count.0
}

#[cfg(test)]
mod tests {
    use notbefore_client::clock::Moment;
    use serde_json::{Value, json};

    use super::*;
    use crate::machine::io::Input;
    use crate::machine::{Setup, State};

    const VERSION: EventsVersion = EventsVersion::NEWEST;

    fn document(events: impl Iterator<Item = (String, &'static str)>) -> Document {
        let event = |(id, vm): (String, &str)| json!({"EventId": id, "EventType": "Reboot", "EventStatus": "Scheduled", "Resources": [vm]});
        let events: Vec<Value> = events.map(event).collect();
        Document::read(json!({"DocumentIncarnation": 1, "Events": events}).to_string().as_bytes(), VERSION)
            .unwrap()
    }

    /// A machine without rules behind an admission.
    struct Agent {
        admission: Admission,
        setup: Setup,
        state: State,
    }

    impl Agent {
        fn new() -> Self {
            let setup = Setup { rules: Vec::new(), me: Identity::named("me"), sure: true };
            Agent { admission: Admission::new(), setup, state: State::new(None) }
        }

        fn read(&mut self, document: &Document, second: u64) -> Admitted {
            let tick = Duration::from_secs(second);
            let known = self.state.events().to_vec();
            let admitted = self.admission.admit(document, VERSION, &known, &self.setup.me, tick);
            let now = Moment { tick, wall: jiff::Timestamp::UNIX_EPOCH };
            let input =
                Input::Document { document: admitted.document.clone(), served_at: None, version: VERSION };
            self.state =
                std::mem::replace(&mut self.state, State::new(None)).handle(&self.setup, input, now).0;
            admitted
        }

        fn known(&self) -> Vec<&str> {
            self.state.events().iter().map(|handled| handled.event.id.as_str()).collect()
        }
    }

    #[test]
    fn full_document_with_a_hundred_own_events_comes_twice_at_once() {
        let mut agent = Agent::new();
        for _ in 0..2 {
            let others = (0..900).map(|one| (format!("o{one}"), "other"));
            let full = document((0..100).map(|one| (format!("m{one}"), "me")).chain(others));
            let admitted = agent.read(&full, 0);
            assert_eq!((admitted.changes, admitted.held), (1_000, 0));
            assert_eq!(agent.read(&full, 0).changes, 0, "an identical document has no changes");
            assert_eq!(agent.read(&document(std::iter::empty()), 0).changes, 1_000);
            assert!(agent.known().is_empty());
        }
    }

    #[test]
    fn event_that_flaps_waits_for_a_token_and_goes_without_one() {
        let mut agent = Agent::new();
        let (there, gone) = (document(std::iter::once(("a".to_owned(), "me"))), document(std::iter::empty()));
        for flap in 0..OWN_BURST {
            assert_eq!(agent.read(&there, 0).held, 0, "{flap}");
            assert_eq!((agent.read(&gone, 0).changes, agent.known().len()), (1, 0), "{flap}");
        }
        let admitted = agent.read(&there, 0);
        assert_eq!((admitted.changes, admitted.held, agent.known().len()), (0, 1, 0));
        assert_eq!(agent.read(&there, 9).held, 1);
        assert_eq!((agent.read(&there, 10).held, agent.known()), (0, vec!["a"]));
    }

    #[test]
    fn change_that_waits_leaves_the_event_as_it_was() {
        let mut agent = Agent::new();
        let id = |vm| document(std::iter::once(("a".to_owned(), vm)));
        for change in 0..OWN_BURST {
            assert_eq!(agent.read(&id(if change % 2 == 0 { "me" } else { "other" }), 0).held, 0);
        }
        assert_eq!(agent.read(&id("me"), 0).held, 1);
        assert_eq!(agent.state.events()[0].event.resources, ["other"]);
        assert_eq!(agent.read(&id("me"), 10).held, 0);
        assert_eq!(agent.state.events()[0].event.resources, ["me"]);
    }

    #[test]
    fn noise_of_other_vms_does_not_delay_an_event_of_this_one() {
        let mut agent = Agent::new();
        let noise = |round: u64| (0..900).map(move |one| (format!("{round}-{one}"), "other"));
        for round in 0..10 {
            agent.read(&document(noise(round)), round);
        }
        let admitted = agent.read(&document(noise(10).chain([("mine".to_owned(), "me")])), 10);
        assert!(admitted.held > 500, "{}", admitted.held);
        assert!(agent.known().contains(&"mine"));
    }

    #[test]
    fn no_more_events_are_known_than_there_is_room_for() {
        let mut agent = Agent::new();
        let all = document((0..OWN_MAX + 10).map(|one| (one.to_string(), "me")));
        assert!(agent.read(&all, 0).held > 10);
        assert_eq!(agent.read(&all, 1_000_000).held, 10);
        assert_eq!(agent.known().len(), OWN_MAX);
    }
}
