//! A pace for what a platform changes: token buckets (GCRA) between the documents and the machine. Every event that comes
//! or changes costs a token; that it goes costs nothing, since it came. A change without a token is left out: a new event is
//! not there yet, any other stays as it was. The newest document waits, and is taken in as tokens come. So a platform that
//! changes everything at each poll has the agent run a few hooks a minute, and a thousand real events at once are not late.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

use notbefore_client::document::{Document, EVENTS_MAX, Event, EventId, EventsVersion};
use notbefore_client::identity::Identity;

use crate::machine::tracked_event::TrackedEvent;

/// Changes of this VM's own events that are taken in at once: a hundred events that come and start.
const OWN_BURST: u32 = 200;
/// One more after each of these: an event that flaps has its hooks run six times a minute.
const OWN_EVERY: Duration = Duration::from_secs(10);
/// The same for events of other VMs: the largest scope there is, all of whose events come and start.
const OTHERS_BURST: u32 = 2 * EVENTS_MAX as u32;
/// Most rules have no steps for such an event, and then it costs a few lines of the log.
const OTHERS_EVERY: Duration = Duration::from_secs(1);
/// How many events of this VM are known at most, those included that are gone and not yet undone. A VM has one or two;
/// each may have an approval that is sent again every 15 seconds.
const OWN_MAX: usize = 256;
/// The same for events of other VMs: a full document, and as many that are gone and not yet undone.
const OTHERS_MAX: usize = 2 * EVENTS_MAX;
/// How much the platform may have sent for all events that are known: eight of the largest documents. The journal holds
/// them, in two forms, and has to stay well below its limit.
const BYTES_MAX: usize = 8 << 20;

/// A token bucket. It is full, or will be at a tick.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    burst: u32,
    every: Duration,
    full_at: Duration,
}

impl TokenBucket {
    /// It is full, and gets one token after each `every`.
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

/// The pace of changes. One for each run of an agent.
#[derive(Clone, Debug)]
pub struct Admission {
    own: TokenBucket,
    others: TokenBucket,
}

/// What the machine is told of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The document without the changes that wait.
    pub document: Document,
    /// How many changes are in it, or events of which the machine has not heard since it was started.
    pub changes: usize,
    /// How many changes wait.
    pub held: usize,
}

/// How much of the machine's room is taken.
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

    /// Takes room for an event, or for what it has grown by.
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
    /// All buckets are full.
    pub fn new() -> Self {
        Admission {
            own: TokenBucket::new(OWN_BURST, OWN_EVERY),
            others: TokenBucket::new(OTHERS_BURST, OTHERS_EVERY),
        }
    }

    /// What of a document is taken in now, by a machine that knows these events. This VM's own events come first.
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
        // What is gone, and what was not heard of since the agent was started, is told and costs nothing.
        let there: HashSet<&EventId> = document.events.iter().map(|event| &event.id).collect();
        let is_told = |handled: &&TrackedEvent| match there.contains(&handled.event.id) {
            true => !handled.boot.is_confirmed(),
            false => {
                !handled.boot.is_confirmed() || handled.is_listed() && handled.event.kind.is_shown_at(version)
            }
        };
        let mut changes = known.iter().filter(is_told).count();
        // Of each event that differs: its place in the document, and whether it is this VM's.
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

/// How many bytes the platform has sent for an event.
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
            assert_eq!(agent.read(&full, 0).changes, 0, "the same again is no change");
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
