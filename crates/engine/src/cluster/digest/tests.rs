//! Tables of each machine, and a property test of nodes and leaders over a bad network.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;
use notbefore_core::samples::{at, event_id, scope_id, vm};
use notbefore_store::Revision;
use proptest::collection::vec;
use proptest::prelude::*;

use super::held::{HELD_NOTES_MAX, HELD_TIME_MAX};
use super::recent::{RECENT_MAX, RecentNotes};
use super::sender::{
    GREET_EVERY, NOTES_MAX, REPEAT_AFTER, REQUEST_NOTES_BYTES_MAX, SEND_EVERY, SEND_URGENT_EVERY,
};
use super::wire::{DIGEST_BYTES_MAX, Digest};
use super::*;

const LEADER: &str = "a~1";
/// The view of a sender.
const SHOWN: Revision = Revision(77);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn heard(second: i64) -> Heard {
    Heard { at: at(second), version: 6 }
}

fn read(second: i64) -> FirstRead {
    FirstRead { at: at(second), version: 6 }
}

fn log_note(n: u128, what: &[u8]) -> LogNote {
    LogNote { vm: vm(n), first_at: at(1), last_at: at(2), count: 3, what: what.into() }
}

fn some_notes() -> Notes {
    let mut notes = Notes::default();
    notes.add_scope(scope_id("s/g/web"), at(7));
    notes.add_read(event_id(1), vm(2), read(3));
    notes.add_heard(vm(2), heard(9));
    notes.log.push(log_note(2, b"what"));
    notes
}

/// A sender whose leader has taken everything at second 0.
fn settled_sender() -> Sender {
    let mut sender = Sender::default();
    sender.set_leader(Some(LEADER));
    sender.next(seconds(0), at(0), SHOWN).unwrap();
    sender.acknowledge(Ack { number: 1, term: 5 });
    assert!(sender.start_everything());
    sender.add_everything(Notes::default());
    sender.next(seconds(0), at(0), SHOWN).unwrap();
    sender.acknowledge(Ack { number: 2, term: 5 });
    sender
}

fn decoded(bytes: &[u8]) -> Digest {
    Digest::decode(bytes, at(0)).unwrap()
}

#[test]
fn format_of_a_digest_is_fixed() {
    let digest = Digest { number: 3, term: 258, revision: SHOWN, is_whole: true, notes: some_notes() };
    let bytes = digest.encode(at(10));
    let id = |n: u128| n.to_be_bytes().map(|byte| format!("{byte:02x}")).concat();
    let [vm, event] = [id(vm(2).0.as_u128()), id(event_id(1).0.as_u128())];
    let expected = [
        "01 01 0300000000000000 0201000000000000 4d00000000000000",
        "01000000 07 732f672f776562 b80b0000",
        &format!("01000000 {event} {vm} 581b0000 06"),
        &format!("01000000 {vm} e8030000 06"),
        &format!("01000000 {vm} 28230000 401f0000 03000000 0400 77686174"),
    ];
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, expected.concat().replace(' ', ""));
    assert_eq!(Digest::decode(&bytes, at(10)), Ok(digest));
    let ack = Ack { number: 3, term: 258 };
    assert_eq!(ack.encode(), [1, 3, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(Ack::decode(&ack.encode()), Ok(ack));
}

#[test]
fn ages_follow_the_clock_of_the_reader() {
    let mut notes = Notes::default();
    notes.add_heard(vm(1), heard(7));
    let bytes = Digest { notes, ..Digest::default() }.encode(at(10));
    let taken = Digest::decode(&bytes, at(1_000)).unwrap().notes;
    assert_eq!(taken.heard[&vm(1)].at, at(997));
    let mut notes = Notes::default();
    notes.add_heard(vm(1), heard(11));
    let bytes = Digest { notes, ..Digest::default() }.encode(at(10));
    assert_eq!(decoded(&bytes).notes.heard[&vm(1)].at, at(0), "a poll in the future is now");
}

#[test]
fn other_levels_and_large_messages_are_refused_with_the_reason() {
    let mut bytes = Digest::default().encode(at(0));
    bytes[0] = 2;
    let error = Digest::decode(&bytes, at(0)).unwrap_err();
    assert_eq!(error, DigestError::Level(2));
    assert!(error.to_string().ends_with("run the same release on all nodes"), "{error}");
    let large = vec![1; DIGEST_BYTES_MAX + 1];
    assert_eq!(Digest::decode(&large, at(0)), Err(DigestError::TooLarge(DIGEST_BYTES_MAX + 1)));
    let mut many = Digest::default().encode(at(0));
    many[26..30].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(Digest::decode(&many, at(0)), Err(DigestError::Malformed(30)));
}

#[test]
fn nothing_is_sent_without_a_leader_and_first_a_greeting() {
    let mut sender = Sender::default();
    sender.add_heard(vm(1), heard(0));
    assert_eq!((sender.due_at(), sender.next(seconds(9), at(9), SHOWN)), (None, None));
    assert!(sender.notes_for_request(at(9), SHOWN).is_some());
    sender.set_leader(Some(LEADER));
    let greeting = decoded(&sender.next(seconds(9), at(9), SHOWN).unwrap());
    assert_eq!(
        greeting,
        Digest { number: 1, revision: SHOWN, ..Digest::default() },
        "the caller adds everything later"
    );
    assert!(!sender.start_everything());
    sender.acknowledge(Ack { number: 1, term: 5 });
    assert!(sender.start_everything() && !sender.start_everything());
    sender.add_heard(vm(2), heard(0));
    assert_eq!(sender.next(seconds(9), at(9), SHOWN), None, "the caller collects");
    sender.add_everything(some_notes());
    let everything = decoded(&sender.next(seconds(9), at(9), SHOWN).unwrap());
    assert!(everything.is_whole && everything.notes.heard.len() == 2);
    assert_eq!(everything.notes.scopes.len(), 1);
}

#[test]
fn digests_are_sent_once_a_second_and_first_reads_at_once() {
    let mut sender = settled_sender();
    assert_eq!(sender.due_at(), Some(SEND_EVERY));
    sender.add_heard(vm(1), heard(0));
    assert_eq!(sender.next(SEND_EVERY - Duration::from_millis(1), at(0), SHOWN), None);
    let first = decoded(&sender.next(SEND_EVERY, at(0), SHOWN).unwrap());
    assert_eq!((first.number, first.term, first.notes.heard.len(), first.is_whole), (3, 5, 1, false));
    sender.acknowledge(Ack { number: 3, term: 5 });
    assert_eq!(sender.next(SEND_EVERY * 2, at(2), SHOWN), None, "nothing happened");
    assert_eq!(sender.next(SEND_EVERY * 3, at(3), SHOWN), None);
    assert_eq!(sender.due_at(), Some(SEND_EVERY * 4));
    sender.add_read(event_id(1), vm(1), read(0));
    assert_eq!(sender.due_at(), Some(SEND_EVERY * 3 + SEND_URGENT_EVERY));
    sender.next(SEND_EVERY * 4, at(4), SHOWN).unwrap();
    sender.acknowledge(Ack { number: 4, term: 5 });
    sender.add_scope(scope_id("web"), at(4));
    assert_eq!(sender.due_at(), Some(SEND_EVERY * 4 + SEND_URGENT_EVERY), "a scope's first poll");
    sender.next(SEND_EVERY * 5, at(5), SHOWN).unwrap();
    sender.acknowledge(Ack { number: 5, term: 5 });
    assert_eq!(sender.next(SEND_EVERY * 6, at(6), SHOWN), None);
    let greeting = decoded(&sender.next(SEND_EVERY * 5 + GREET_EVERY, at(8), SHOWN).unwrap());
    assert!(greeting.notes.is_empty(), "the leader may have taken the lead again");
}

#[test]
fn unacknowledged_digest_is_repeated_unchanged_with_older_ages() {
    let mut sender = settled_sender();
    sender.add_heard(vm(1), heard(0));
    let first = sender.next(seconds(1), at(1), SHOWN).unwrap();
    sender.add_heard(vm(2), heard(1));
    assert_eq!(sender.next(seconds(1) + REPEAT_AFTER / 2, at(1), SHOWN), None);
    let second = sender.next(seconds(1) + REPEAT_AFTER, at(2), SHOWN).unwrap();
    let times = |bytes: &[u8], now| Digest::decode(bytes, at(now)).unwrap().notes.heard;
    assert_eq!(times(&first, 1), BTreeMap::from([(vm(1), heard(0))]));
    assert_eq!(times(&second, 2), times(&first, 1));
    sender.acknowledge(Ack { number: 2, term: 5 });
    assert!(sender.next(seconds(3), at(3), SHOWN).is_some(), "an answer to an older digest changes nothing");
    sender.acknowledge(Ack { number: 3, term: 5 });
    let third = decoded(&sender.next(seconds(4), at(4), SHOWN).unwrap());
    assert_eq!((third.number, third.notes.heard.len()), (4, 1), "what piled up");
}

#[test]
fn everything_goes_in_parts_and_the_last_is_whole() {
    let mut sender = Sender::default();
    sender.set_leader(Some(LEADER));
    sender.next(seconds(0), at(0), SHOWN).unwrap();
    sender.acknowledge(Ack { number: 1, term: 5 });
    assert!(sender.start_everything());
    let mut everything = some_notes();
    (0..120_000).for_each(|n| everything.add_heard(vm(n), heard(0)));
    sender.add_everything(everything.clone());
    let mut receiver = Receiver::new(Revision(5));
    let (mut parts, mut taken) = (0, Notes::default());
    while let Some(bytes) = sender.next(seconds(0), at(10), SHOWN) {
        assert!(bytes.len() <= DIGEST_BYTES_MAX && !receiver.may_judge(["b~1"], seconds(1)));
        let Taken { ack, notes } = receiver.take("b~1", &bytes, at(10), seconds(0)).unwrap();
        taken.merge(notes.unwrap().notes);
        sender.acknowledge(ack);
        parts += 1;
    }
    assert_eq!((parts, taken), (3, everything));
    assert!(receiver.may_judge(["b~1"], seconds(1)));
}

#[test]
fn too_many_notes_are_dropped_and_everything_is_sent_again() {
    let mut sender = settled_sender();
    for n in 0..=NOTES_MAX as u128 {
        sender.add_heard(vm(n), heard(0));
    }
    let kept =
        Receiver::notes_of_request(&sender.notes_for_request(at(1), SHOWN).unwrap(), at(1)).unwrap().notes;
    assert_eq!(kept.heard.len(), 1, "the last one");
    let greeting = decoded(&sender.next(seconds(1), at(1), SHOWN).unwrap());
    assert_eq!((greeting.number, greeting.term), (3, 0));
    sender.acknowledge(Ack { number: 3, term: 5 });
    assert!(sender.start_everything());
}

#[test]
fn forwarded_request_carries_the_newest_unacknowledged_notes() {
    let mut sender = settled_sender();
    assert_eq!(sender.notes_for_request(at(0), SHOWN), None);
    sender.add_scope(scope_id("s/g/first"), at(1));
    sender.next(seconds(1), at(1), SHOWN).unwrap();
    sender.add_scope(scope_id("s/g/second"), at(2));
    sender.add_read(event_id(1), vm(1), read(2));
    sender.add_log(log_note(1, b"counted"));
    let taken = |sender: &Sender| {
        let bytes = sender.notes_for_request(at(9), SHOWN).unwrap();
        assert!(bytes.len() <= REQUEST_NOTES_BYTES_MAX);
        let ReceivedNotes { revision, notes } = Receiver::notes_of_request(&bytes, at(9)).unwrap();
        assert_eq!(revision, SHOWN);
        notes
    };
    let notes = taken(&sender);
    assert_eq!((notes.scopes.len(), notes.reads.len(), notes.log.len()), (2, 1, 0));
    for n in 0..5_000 {
        sender.add_scope(scope_id(&format!("s/g/vm-{n}")), at(10 + n));
    }
    let scopes = taken(&sender).scopes;
    assert!(scopes.contains_key(&scope_id("s/g/vm-4999")) && !scopes.contains_key(&scope_id("s/g/first")));
}

#[test]
fn notes_for_a_request_cost_the_same_with_any_backlog() {
    let lookups = |backlog: u128| {
        let (mut recent, mut notes, visited) = (RecentNotes::default(), Notes::default(), Cell::new(0));
        for n in 0..backlog {
            let scope = scope_id(&format!("s/g/vm-{n}"));
            recent.add_scope(scope.clone());
            notes.add_scope(scope, at(1));
            recent.add_read(event_id(n), vm(n));
            notes.add_read(event_id(n), vm(n), read(1));
            recent.add_heard(vm(n));
            notes.add_heard(vm(n), heard(1));
        }
        let all = [&notes].into_iter().inspect(|_| visited.set(visited.get() + 1));
        let found = recent.find(all, REQUEST_NOTES_BYTES_MAX);
        assert!(!found.scopes.is_empty());
        visited.get()
    };
    assert_eq!(lookups(10), 3 * 10);
    assert_eq!((lookups(1_000), lookups(20_000)), (3 * RECENT_MAX, 3 * RECENT_MAX));
}

#[test]
fn notes_of_a_request_are_merged_from_what_waits_and_what_is_under_way() {
    let mut sender = settled_sender();
    let scope = scope_id("s/g/web");
    sender.add_scope(scope.clone(), at(1));
    sender.add_read(event_id(1), vm(1), read(1));
    sender.add_heard(vm(1), heard(1));
    sender.next(seconds(1), at(1), SHOWN).unwrap();
    sender.add_scope(scope.clone(), at(2));
    sender.add_read(event_id(1), vm(1), read(2));
    sender.add_heard(vm(1), heard(2));
    let bytes = sender.notes_for_request(at(2), SHOWN).unwrap();
    let notes = Receiver::notes_of_request(&bytes, at(2)).unwrap().notes;
    assert_eq!(notes.scopes, BTreeMap::from([(scope, at(2))]));
    assert_eq!(notes.reads, BTreeMap::from([((event_id(1), vm(1)), read(1))]));
    assert_eq!(notes.heard, BTreeMap::from([(vm(1), heard(2))]));
}

#[test]
fn notes_wait_until_the_leaders_view_shows_what_they_are_about() {
    let mut held = HeldNotes::default();
    let now = seconds(100);
    assert_eq!(held.add(some_notes(), Revision(7), Revision(7), now), some_notes(), "the view has it");
    let ready = held.add(some_notes(), Revision(8), Revision(7), now);
    assert_eq!((ready.scopes, ready.log), (some_notes().scopes, some_notes().log), "need no view");
    assert!(ready.reads.is_empty() && ready.heard.is_empty() && !held.is_empty());
    let mut later = Notes::default();
    later.add_read(event_id(9), vm(9), read(9));
    assert!(held.add(later.clone(), Revision(9), Revision(7), now).is_empty());
    assert!(held.take_due(Revision(7), now).is_empty(), "the view has not come");
    let due = held.take_due(Revision(8), now);
    assert_eq!((due.reads, due.heard), (some_notes().reads, some_notes().heard));
    assert!(held.take_due(Revision(8), now).is_empty(), "once");
    assert!(held.take_due(Revision(8), now + HELD_TIME_MAX - seconds(1)).is_empty());
    assert_eq!(held.take_due(Revision(8), now + HELD_TIME_MAX), later, "a view that does not come");
    assert!(held.is_empty());
}

#[test]
fn oldest_held_notes_are_taken_when_too_many_wait() {
    let mut held = HeldNotes::default();
    let notes = |from: usize, count: usize| {
        let mut notes = Notes::default();
        (from..from + count).for_each(|n| notes.add_heard(vm(n as u128), heard(0)));
        notes
    };
    assert!(held.add(notes(0, 10), Revision(8), Revision(7), seconds(0)).is_empty());
    assert!(held.add(notes(10, HELD_NOTES_MAX - 10), Revision(8), Revision(7), seconds(0)).is_empty());
    let taken = held.add(notes(HELD_NOTES_MAX, 1), Revision(8), Revision(7), seconds(0));
    assert_eq!(taken, notes(0, 10), "none is lost");
    assert_eq!(held.take_due(Revision(8), seconds(0)), notes(10, HELD_NOTES_MAX - 9));
}

#[test]
fn leader_judges_while_all_living_nodes_send_everything() {
    let mut receiver = Receiver::new(Revision(5));
    assert!(receiver.may_judge([], seconds(100)), "no other node lives");
    let digest =
        |number, term, is_whole| Digest { number, term, is_whole, ..Digest::default() }.encode(at(0));
    let mut take = |from: &str, bytes: &[u8]| receiver.take(from, bytes, at(0), seconds(100)).unwrap();
    assert_eq!(take("b~1", &digest(1, 4, true)), Taken { ack: Ack { number: 1, term: 5 }, notes: None });
    assert!(take("b~1", &digest(2, 5, true)).notes.is_some());
    assert!(take("b~1", &digest(2, 5, true)).notes.is_none(), "doubled");
    assert!(take("b~1", &digest(1, 5, true)).notes.is_none(), "old");
    assert!(take("c~1", &digest(1, 5, false)).notes.is_some());
    assert!(!receiver.may_judge(["b~1", "c~1"], seconds(104)), "c has not sent everything");
    assert!(!receiver.may_judge(["b~2"], seconds(104)), "another process");
    assert!(receiver.may_judge(["b~1"], seconds(104)));
    assert!(!receiver.may_judge(["b~1", "c~1"], seconds(108)), "c lives, and its guests are unknown");
    assert!(!receiver.may_judge(["b~1"], seconds(110)), "b lives, and its digests do not arrive any more");
    assert!(receiver.may_judge([], seconds(110)), "b is gone");
    let mut take = |from: &str, bytes: &[u8]| receiver.take(from, bytes, at(0), seconds(100)).unwrap();
    (0..100).for_each(|n| assert!(take(&format!("n{n}~1"), &digest(1, 5, true)).notes.is_some()));
    assert!(take("n99~1", &digest(1, 5, true)).notes.is_none());
    assert!(take("n0~1", &digest(1, 5, true)).notes.is_some(), "the process heard last is remembered");
}

/// A node of the property test: what it knows is what the service finds in its slots, ledger and logs.
#[derive(Default)]
struct TestNode {
    sender: Sender,
    known: Notes,
    unsent_log: Vec<LogNote>,
    /// Collected, and not added yet.
    collected: Option<Notes>,
}

/// A leader of the property test.
struct TestLeader {
    name: String,
    receiver: Receiver,
    merged: Notes,
}

#[derive(Clone, Debug)]
enum Step {
    Scope(usize, u8),
    Heard(usize, u8),
    Read(usize, u8, u8),
    Log(usize, u8),
    /// A node's turn: its digest is delivered, lost, or delivered late; its answer arrives or is lost.
    Turn(usize, Fate),
    /// Late messages are delivered, again or for the first time.
    Late(usize),
    /// Another leader, or the same one in another term; whether the nodes hear of it.
    Elect(bool, bool),
    Wait(u16),
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives { answered: bool, doubled: bool },
    Lost,
    Late,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let node = || 0..2_usize;
    let fate = prop_oneof![
        4 => (any::<bool>(), any::<bool>()).prop_map(|(answered, doubled)| Fate::Arrives { answered, doubled }),
        1 => Just(Fate::Lost),
        1 => Just(Fate::Late),
    ];
    let step = prop_oneof![
        2 => (node(), 0..6_u8).prop_map(|(node, scope)| Step::Scope(node, scope)),
        3 => (node(), 0..6_u8).prop_map(|(node, vm)| Step::Heard(node, vm)),
        2 => (node(), 0..3_u8, 0..6_u8).prop_map(|(node, event, vm)| Step::Read(node, event, vm)),
        2 => (node(), 0..6_u8).prop_map(|(node, vm)| Step::Log(node, vm)),
        8 => (node(), fate).prop_map(|(node, fate)| Step::Turn(node, fate)),
        2 => (0..4_usize).prop_map(Step::Late),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(same, heard)| Step::Elect(same, heard)),
        5 => (0..1_500_u16).prop_map(Step::Wait),
    ];
    vec(step, 0..120)
}

struct TestCluster {
    nodes: [TestNode; 2],
    leader: TestLeader,
    late: Vec<(usize, Vec<u8>, Duration)>,
    now: Duration,
    /// The longest way of a message whose notes were taken.
    longest_way: Duration,
}

impl TestCluster {
    fn new() -> Self {
        let leader = TestLeader {
            name: "leader-0~1".into(),
            receiver: Receiver::new(Revision(1)),
            merged: Notes::default(),
        };
        let mut nodes: [TestNode; 2] = Default::default();
        nodes.iter_mut().for_each(|node| node.sender.set_leader(Some(&leader.name)));
        Self { nodes, leader, late: Vec::new(), now: Duration::ZERO, longest_way: Duration::ZERO }
    }

    fn clock(&self) -> Timestamp {
        at(0) + SignedDuration::try_from(self.now).unwrap()
    }

    fn deliver(&mut self, node: usize, bytes: &[u8], sent_at: Duration) -> Ack {
        let clock = self.clock();
        let Taken { ack, notes } =
            self.leader.receiver.take(&format!("n{node}~1"), bytes, clock, self.now).unwrap();
        if let Some(notes) = notes {
            self.longest_way = self.longest_way.max(self.now - sent_at);
            self.leader.merged.merge(notes.notes);
        }
        ack
    }

    fn turn(&mut self, node: usize, fate: Fate) {
        let (clock, now) = (self.clock(), self.now);
        let one = &mut self.nodes[node];
        if let Some(collected) = one.collected.take() {
            one.sender.add_everything(collected);
        } else if one.sender.start_everything() {
            one.unsent_log.clear();
            one.collected = Some(one.known.clone());
        }
        if one.collected.is_none() && one.sender.is_ready(now) {
            one.unsent_log.drain(..).for_each(|note| one.sender.add_log(note));
        }
        let Some(bytes) = one.sender.next(now, clock, SHOWN) else { return };
        match fate {
            Fate::Lost => {}
            Fate::Late => self.late.push((node, bytes, now)),
            Fate::Arrives { answered, doubled } => {
                let ack = self.deliver(node, &bytes, now);
                if answered {
                    self.nodes[node].sender.acknowledge(ack);
                }
                if doubled {
                    self.late.push((node, bytes, now));
                }
            }
        }
    }

    fn play(&mut self, step: Step, number: usize) {
        let clock = self.clock();
        match step {
            Step::Scope(node, scope) => {
                let scope = scope_id(&format!("s/g/{scope}"));
                self.nodes[node].known.add_scope(scope.clone(), clock);
                self.nodes[node].sender.add_scope(scope, clock);
            }
            Step::Heard(node, of) => {
                let heard = Heard { at: clock, version: 6 };
                self.nodes[node].known.add_heard(vm(of.into()), heard);
                self.nodes[node].sender.add_heard(vm(of.into()), heard);
            }
            Step::Read(node, event, of) => {
                let (event, of, read) =
                    (event_id(event.into()), vm(of.into()), FirstRead { at: clock, version: 6 });
                self.nodes[node].known.add_read(event, of, read);
                self.nodes[node].sender.add_read(event, of, read);
            }
            Step::Log(node, of) => {
                let what = Box::from(number.to_le_bytes());
                let note = LogNote { vm: vm(of.into()), first_at: clock, last_at: clock, count: 1, what };
                self.nodes[node].known.log.push(note.clone());
                self.nodes[node].unsent_log.push(note);
            }
            Step::Turn(node, fate) => self.turn(node, fate),
            Step::Late(index) => {
                if let Some((node, bytes, sent_at)) = self.late.get(index).cloned() {
                    let ack = self.deliver(node, &bytes, sent_at);
                    self.nodes[node].sender.acknowledge(ack);
                }
            }
            Step::Elect(same, is_heard) => {
                if !same {
                    self.leader.name = format!("leader-{number}~1");
                }
                self.leader.receiver = Receiver::new(Revision(10 + number as u64));
                self.leader.merged = Notes::default();
                if is_heard {
                    let name = self.leader.name.clone();
                    self.nodes.iter_mut().for_each(|node| node.sender.set_leader(Some(&name)));
                }
            }
            Step::Wait(millis) => self.now += Duration::from_millis(millis.into()),
        }
    }

    /// The network is good again, and all is acknowledged.
    fn settle(&mut self) {
        let name = self.leader.name.clone();
        for _ in 0..12 {
            self.now += SEND_EVERY;
            for node in 0..self.nodes.len() {
                self.nodes[node].sender.set_leader(Some(&name));
                // One turn for the greeting, two for everything.
                for _ in 0..4 {
                    self.turn(node, Fate::Arrives { answered: true, doubled: false });
                }
            }
        }
        // Old messages may still arrive.
        for (node, bytes, sent_at) in self.late.clone() {
            self.deliver(node, &bytes, sent_at);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Whatever was lost, late or doubled: the leader has the union of the notes, and each log entry once.
    #[test]
    fn leader_has_exactly_the_union_of_all_notes(steps in steps()) {
        let mut cluster = TestCluster::new();
        for (number, step) in steps.into_iter().enumerate() {
            cluster.play(step, number);
        }
        cluster.settle();
        let mut union = Notes::default();
        cluster.nodes.iter().for_each(|node| union.merge(node.known.clone()));
        let (merged, longest_way) = (&cluster.leader.merged, cluster.longest_way);
        // A note is later by the way of its message, and ages are whole milliseconds.
        let allowed = SignedDuration::try_from(longest_way).unwrap();
        let is_near = |found: Timestamp, noted: Timestamp| {
            let later = found.duration_since(noted);
            SignedDuration::ZERO <= later && later <= allowed
        };
        prop_assert!(merged.scopes.keys().eq(union.scopes.keys()));
        prop_assert!(merged.scopes.iter().all(|(scope, at)| is_near(*at, union.scopes[scope])));
        prop_assert!(merged.heard.keys().eq(union.heard.keys()));
        prop_assert!(merged.heard.iter().all(|(vm, heard)| is_near(heard.at, union.heard[vm].at)));
        prop_assert!(merged.reads.keys().eq(union.reads.keys()));
        prop_assert!(merged.reads.iter().all(|(key, read)| is_near(read.at, union.reads[key].at)));
        let sorted = |notes: &Notes| {
            let mut all: Vec<_> = notes.log.iter().map(|note| note.what.clone()).collect();
            all.sort();
            all
        };
        prop_assert_eq!(sorted(merged), sorted(&union), "each entry once");
        let receiver = &cluster.leader.receiver;
        prop_assert!(receiver.may_judge(["n0~1", "n1~1"], Duration::ZERO));
        if longest_way.is_zero() {
            prop_assert_eq!(&merged.heard, &union.heard);
            prop_assert_eq!(&merged.reads, &union.reads);
        }
    }

    /// Any bytes are a digest or an error.
    #[test]
    fn hostile_bytes_are_refused(bytes in vec(any::<u8>(), 0..200), level in any::<bool>()) {
        let mut bytes = bytes;
        if level && let Some(first) = bytes.first_mut() {
            *first = wire::DIGEST_LEVEL;
        }
        if let Ok(digest) = Digest::decode(&bytes, at(0)) {
            prop_assert_eq!(Digest::decode(&digest.encode(at(0)), at(0)), Ok(digest));
        }
        let _ = Ack::decode(&bytes);
    }

    /// A damaged digest is a digest or an error.
    #[test]
    fn damaged_digests_are_refused(
        position in any::<prop::sample::Index>(), value in any::<u8>(), cut in any::<prop::sample::Index>()
    ) {
        let mut bytes = Digest { number: 1, term: 2, is_whole: true, notes: some_notes(), ..Digest::default() }.encode(at(10));
        let length = bytes.len();
        bytes[position.index(length)] = value;
        let _ = Digest::decode(&bytes, at(10));
        prop_assert!(Digest::decode(&bytes[..cut.index(length)], at(10)).is_err());
    }
}
