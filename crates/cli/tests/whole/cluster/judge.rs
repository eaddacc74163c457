//! Judges a history; pure.
//!
//! | claim | check |
//! |---|---|
//! | nothing acknowledged is lost | every later state shows the effect of every acknowledged command |
//! | nothing is applied twice | a tag has one operation, and a repeated command the same response; no trail has a fact twice; no setting returns to an earlier value |
//! | a refused command changes nothing | no state has its tag or its VM |
//! | a refusal is right | an event that "does not exist" or "has ended" for a command or a guest had ended then |
//! | no guest sees another scope | every event of a document carries the guest's scope in its description, and names VMs of it; while its address moves, all events are of the scope before or of the one after, or the guest gets 403 |
//! | documents do not go back | a poll with a tag never gets an older incarnation; one incarnation of a scope is one document |
//! | no event starts early | by the leader's clock not before NotBefore; by that of the guest not two seconds before |
//!
//! A restored backup divides a history. What was acknowledged after the backup and before the nodes ended is lost on
//! purpose, and must not return.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::history::{
    Attempt, Command, Document, DocumentEvent, EventState, Made, Micros, Move, Outcome, Poll, Record,
    Restore, State, TrailFact, Verb, wall,
};

/// How far the leader's clock may be ahead of the true one.
const AHEAD_MAX: SignedDuration = SignedDuration::from_secs(2);
/// How much later than it happened a fact may be dated: the leader's clock may be ahead, and times are in whole seconds in
/// some places.
const DATED_LATER_MAX: SignedDuration = SignedDuration::from_secs(3);
/// Longest time from a decision about a response to its end; a long poll waits before the decision.
const ANSWER_MAX: Micros = 2_000_000;

/// What was checked, so that a history that shows nothing is noticed.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub commands: usize,
    pub acknowledged: usize,
    pub refused: usize,
    /// Commands with an attempt whose outcome was unknown.
    pub in_doubt: usize,
    pub repeats: usize,
    pub polls: usize,
    pub documents: usize,
    /// Polls of a guest that has moved to another node, with the tag of a document.
    pub moved: usize,
    pub states: usize,
    pub trails: usize,
    /// Moves of addresses, and documents that guests got meanwhile.
    pub address_moves: usize,
    pub documents_during_moves: usize,
    pub restores: usize,
    pub faults: BTreeMap<String, usize>,
}

/// What contradicts the claims, with what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A command with all its attempts.
struct Tried<'a> {
    key: &'a str,
    command: &'a Command,
    attempts: Vec<&'a Attempt>,
}

impl<'a> Tried<'a> {
    fn acknowledgements(&self) -> impl Iterator<Item = (&'a Attempt, &'a Made)> {
        self.attempts.iter().filter_map(|&attempt| match &attempt.outcome {
            Outcome::Acknowledged(made) => Some((attempt, made)),
            Outcome::NotSent
            | Outcome::Unanswered
            | Outcome::Refused { .. }
            | Outcome::Unavailable { .. } => None,
        })
    }

    fn begun(&self) -> Micros {
        self.attempts.iter().map(|attempt| attempt.begun).min().unwrap_or(0)
    }

    fn ended(&self) -> Micros {
        self.attempts.iter().map(|attempt| attempt.ended).max().unwrap_or(0)
    }

    fn is_refused(&self) -> bool {
        matches!(self.attempts.last(), Some(Attempt { outcome: Outcome::Refused { .. }, .. }))
    }
}

struct Judge<'a> {
    begin: Timestamp,
    restores: Vec<&'a Restore>,
    moves: HashMap<usize, Vec<&'a Move>>,
    vms: HashMap<&'a str, &'a str>,
    tried: Vec<Tried<'a>>,
    /// VMs that a client has tried to remove.
    removed: HashSet<&'a str>,
    /// When a client began to set a value, by scope and value.
    set: HashMap<(&'a str, u32), Micros>,
    violations: Vec<Violation>,
    tally: Tally,
}

/// Returns what was checked, and what contradicts the claims.
pub fn judge(records: &[Record]) -> (Tally, Vec<Violation>) {
    let mut judge = Judge {
        begin: Timestamp::UNIX_EPOCH,
        restores: Vec::new(),
        moves: HashMap::new(),
        vms: HashMap::new(),
        tried: Vec::new(),
        removed: HashSet::new(),
        set: HashMap::new(),
        violations: Vec::new(),
        tally: Tally::default(),
    };
    let (mut polls, mut states, mut places) = (Vec::new(), Vec::new(), HashMap::new());
    for record in records {
        match record {
            Record::Begin { wall, .. } => judge.begin = *wall,
            Record::Fleet { scopes } => {
                let vms = scopes.iter().flat_map(|(scope, vms)| vms.iter().map(move |vm| (&**vm, &**scope)));
                judge.vms.extend(vms);
            }
            Record::Fault { name, .. } => *judge.tally.faults.entry(name.clone()).or_default() += 1,
            Record::Attempt(attempt) => {
                let place = *places.entry(&*attempt.key).or_insert_with(|| {
                    judge.tried.push(Tried {
                        key: &attempt.key,
                        command: &attempt.command,
                        attempts: Vec::new(),
                    });
                    judge.tried.len() - 1
                });
                judge.tried[place].attempts.push(attempt);
            }
            Record::Poll(poll) => polls.push(poll),
            Record::Move(moved) => judge.moves.entry(moved.guest).or_default().push(moved),
            Record::Restore(restore) => judge.restores.push(restore),
            Record::State(state) => states.push(state),
        }
    }
    judge.index();
    judge.count();
    judge.check_repeats();
    judge.check_polls(&polls);
    for state in &states {
        judge.check_state(state, &polls);
    }
    judge.tally.states = states.len();
    (judge.tally, judge.violations)
}

impl<'a> Judge<'a> {
    fn violated(&mut self, text: String) {
        self.violations.push(Violation(text));
    }

    /// Number of restores before a time. Nodes run before and after a restore, not in between.
    fn era(&self, at: Micros) -> usize {
        self.restores.iter().filter(|restore| restore.nodes_ended <= at).count()
    }

    /// Whether a change that was acknowledged then is in states of a later time. None: it may be.
    fn is_kept(&self, attempt: &Attempt, shown: Micros) -> Option<bool> {
        let between =
            |restore: &&&Restore| attempt.ended < restore.nodes_ended && restore.nodes_ended <= shown;
        let mut restores = self.restores.iter().filter(between).peekable();
        if restores.peek().is_none() {
            return Some(true);
        }
        let mut kept = Some(true);
        for restore in restores {
            if attempt.begun > restore.backup_ended {
                return Some(false);
            }
            if attempt.ended > restore.backup_begun {
                kept = None;
            }
        }
        kept
    }

    fn index(&mut self) {
        for one in &self.tried {
            match one.command {
                Command::RemoveVm { name } => _ = self.removed.insert(name),
                Command::SetNotice { scope, seconds } => {
                    let last = self.set.entry((scope, *seconds)).or_default();
                    *last = one.begun().max(*last);
                }
                Command::Schedule { .. }
                | Command::Event { .. }
                | Command::GuestApproval { .. }
                | Command::AddVm { .. } => {}
            }
        }
    }

    fn count(&mut self) {
        let unknown = |attempt: &&Attempt| match &attempt.outcome {
            Outcome::Unanswered => true,
            Outcome::Unavailable { code } => code == "outcome_unknown",
            Outcome::NotSent | Outcome::Acknowledged(_) | Outcome::Refused { .. } => false,
        };
        self.tally.restores = self.restores.len();
        self.tally.address_moves = self.moves.values().map(Vec::len).sum();
        self.tally.commands = self.tried.len();
        self.tally.acknowledged =
            self.tried.iter().filter(|one| one.acknowledgements().next().is_some()).count();
        self.tally.refused = self.tried.iter().filter(|one| one.is_refused()).count();
        self.tally.in_doubt =
            self.tried.iter().filter(|one| one.attempts.iter().copied().any(|one| unknown(&one))).count();
    }

    /// All acknowledgements of a command are the same, and none is followed by a refusal.
    fn check_repeats(&mut self) {
        let mut found = Vec::new();
        for one in &self.tried {
            let mut first: Option<(usize, &Made)> = None;
            for attempt in &one.attempts {
                let era = self.era(attempt.begun);
                if era != self.era(attempt.ended) {
                    continue;
                }
                match (&attempt.outcome, first) {
                    (Outcome::Acknowledged(made), Some((before, same))) if before == era => {
                        self.tally.repeats += 1;
                        if made != same {
                            found.push(format!(
                                "{}: acknowledged with {same:?} and then with {made:?}",
                                one.key
                            ));
                        }
                    }
                    (Outcome::Acknowledged(made), _) => first = Some((era, made)),
                    // An approval that changes nothing is not recorded, so a repeat is judged again.
                    (Outcome::Refused { status, code }, Some((before, _)))
                        if before == era
                            && !matches!(one.command, Command::Event { verb: Verb::Approve, .. }) =>
                    {
                        found.push(format!("{}: acknowledged and then refused: {status} {code}", one.key));
                    }
                    (
                        Outcome::Refused { .. }
                        | Outcome::NotSent
                        | Outcome::Unanswered
                        | Outcome::Unavailable { .. },
                        _,
                    ) => {}
                }
            }
        }
        self.violations.extend(found.into_iter().map(Violation));
    }

    fn check_polls(&mut self, polls: &[&'a Poll]) {
        // The newest tag of each guest: restore, node.
        let mut tags: HashMap<(usize, u64), (usize, usize)> = HashMap::new();
        let mut documents: HashMap<(usize, &str, u64), &Document> = HashMap::new();
        let mut found = Vec::new();
        for poll in polls {
            let Poll { guest, scope, node, tag, status, .. } = poll;
            self.tally.polls += 1;
            let era = self.era(poll.begun);
            let known = tag.and_then(|tag| tags.get(&(*guest, tag)));
            if known.is_some_and(|(_, from)| from != node) && *status != 0 {
                self.tally.moved += 1;
            }
            let (scopes, is_moving) = self.scopes_of(poll);
            if !(matches!(status, 0 | 200 | 304 | 503) || is_moving && *status == 403) {
                found.push(format!("guest {guest} of {scope} got {status}: {poll:?}"));
            }
            let Some(document) = &poll.document else { continue };
            self.tally.documents += 1;
            let is_own = |event: &DocumentEvent, scope: &str| {
                let vms_are_own = event.resources.iter().all(|vm| self.vms.get(&**vm) == Some(&scope));
                event.description.split(' ').next_back() == Some(scope) && vms_are_own
            };
            if !scopes.iter().any(|scope| document.events.iter().all(|event| is_own(event, scope))) {
                found.push(format!("guest {guest} of {scopes:?} sees an event of another scope: {poll:?}"));
            }
            if is_moving {
                self.tally.documents_during_moves += 1;
                continue;
            }
            let Some(&scope) = scopes.first() else { continue };
            if era != self.era(poll.ended) {
                continue;
            }
            if let (Some(tag), Some((of, _))) = (tag, known)
                && *of == era
                && document.incarnation <= *tag
            {
                found.push(format!("guest {guest} has {tag} and got {}: {poll:?}", document.incarnation));
            }
            let first = documents.entry((era, scope, document.incarnation)).or_insert(document);
            if **first != *document {
                found
                    .push(format!("two documents of one incarnation in {scope}: {first:?} and {document:?}"));
            }
            tags.insert((*guest, document.incarnation), (era, *node));
        }
        self.violations.extend(found.into_iter().map(Violation));
    }

    /// The scopes of which a poll may show the document, and whether the guest's address moves.
    fn scopes_of(&self, poll: &'a Poll) -> (Vec<&'a str>, bool) {
        let decided = poll.begun.max(poll.ended.saturating_sub(ANSWER_MAX));
        let (mut scope, mut after, mut is_moving) = (&*poll.scope, None, false);
        for moved in self.moves.get(&poll.guest).into_iter().flatten() {
            if moved.settled <= decided {
                scope = &moved.to;
            } else if moved.begun <= poll.ended {
                is_moving = true;
                after = Some(&*moved.to);
                if moved.node == poll.node && moved.acknowledged < decided {
                    scope = &moved.to;
                }
            }
        }
        ([Some(scope), after].into_iter().flatten().collect(), is_moving)
    }

    /// Whether the address of a guest moved during an attempt.
    fn moved_during(&self, guest: usize, attempt: &Attempt) -> bool {
        let overlaps = |moved: &&Move| moved.begun <= attempt.ended && attempt.begun <= moved.settled;
        self.moves.get(&guest).into_iter().flatten().any(overlaps)
    }

    fn check_state(&mut self, state: &State, polls: &[&Poll]) {
        let events: HashMap<Uuid, &EventState> = state.events.iter().map(|event| (event.id, event)).collect();
        let mut of_tag: HashMap<&str, BTreeSet<Uuid>> = HashMap::new();
        let mut ids_of_tag: HashMap<&str, BTreeSet<Uuid>> = HashMap::new();
        for event in &state.events {
            of_tag.entry(&event.description).or_default().insert(event.operation);
            ids_of_tag.entry(&event.description).or_default().insert(event.id);
        }
        if events.len() != state.events.len() {
            self.violated(format!("node {} shows an event twice", state.node));
        }
        for (tag, operations) in of_tag.iter().filter(|(_, operations)| operations.len() > 1) {
            self.violated(format!("applied twice: {tag} has the operations {operations:?}"));
        }
        let known: HashSet<&str> = self
            .tried
            .iter()
            .filter_map(|one| match one.command {
                Command::Schedule { tag } => Some(&**tag),
                Command::Event { .. }
                | Command::GuestApproval { .. }
                | Command::SetNotice { .. }
                | Command::AddVm { .. }
                | Command::RemoveVm { .. } => None,
            })
            .collect();
        for tag in of_tag.keys().filter(|tag| !known.contains(**tag)) {
            self.violated(format!("no client has requested {tag:?}"));
        }
        let vms: HashSet<&str> = state.vms.iter().map(|vm| &**vm).collect();
        if vms.len() != state.vms.len() {
            self.violated(format!("node {} shows a VM twice", state.node));
        }
        let mut lost = Vec::new();
        for one in &self.tried {
            if one.is_refused()
                && one.acknowledgements().next().is_none()
                && one.ended() < state.complete_since
            {
                let has_effect = match one.command {
                    Command::Schedule { tag } => of_tag.contains_key(&**tag),
                    Command::AddVm { name } => vms.contains(&**name),
                    Command::Event { .. }
                    | Command::GuestApproval { .. }
                    | Command::SetNotice { .. }
                    | Command::RemoveVm { .. } => false,
                };
                if has_effect {
                    lost.push(format!("{}: was refused and has taken effect: {:?}", one.key, one.command));
                }
            }
            for (attempt, made) in
                one.acknowledgements().filter(|(attempt, _)| attempt.ended <= state.complete_since)
            {
                let kept = self.is_kept(attempt, state.ended);
                let text = match (kept, one.command) {
                    (None, _) => None,
                    (Some(true), Command::Schedule { tag }) => {
                        let expected: BTreeSet<Uuid> = made.events.iter().copied().collect();
                        let shown = ids_of_tag.get(&**tag).cloned().unwrap_or_default();
                        (expected != shown).then(|| {
                            format!("acknowledged with the events {expected:?}, shown with {shown:?}")
                        })
                    }
                    (Some(false), Command::Schedule { tag }) => {
                        let is_of_other = self.is_of_other_attempt(one, attempt, state.ended);
                        (of_tag.contains_key(&**tag) && !is_of_other)
                            .then(|| "made after the backup, and is in the restored state".to_owned())
                    }
                    (Some(true), Command::Event { event, verb }) => match events.get(event) {
                        None => Some("its event is missing".to_owned()),
                        Some(shown) => (!shows(shown, *verb, self.time(attempt.ended)))
                            .then(|| format!("is not in {shown:?}")),
                    },
                    (Some(true), Command::GuestApproval { event, .. }) => match events.get(event) {
                        None => Some("its event is missing".to_owned()),
                        Some(shown) => (!shows(shown, Verb::Approve, self.time(attempt.ended)))
                            .then(|| format!("is not in {shown:?}")),
                    },
                    (Some(true), Command::AddVm { name }) => (!vms.contains(&**name)
                        && !self.removed.contains(&**name))
                    .then(|| "its VM is missing".to_owned()),
                    (Some(true), Command::RemoveVm { name }) => {
                        vms.contains(&**name).then(|| "its VM is there".to_owned())
                    }
                    (Some(true), Command::SetNotice { scope, seconds }) => {
                        let shown = state.notices.get(&**scope).copied().flatten();
                        let is_newer = shown == Some(*seconds) || self.is_set_later(one, scope, shown);
                        (!is_newer).then(|| format!("is now {shown:?}"))
                    }
                    (
                        Some(false),
                        Command::Event { .. }
                        | Command::GuestApproval { .. }
                        | Command::AddVm { .. }
                        | Command::RemoveVm { .. }
                        | Command::SetNotice { .. },
                    ) => None,
                };
                if let Some(text) = text {
                    let command = one.command;
                    lost.push(format!(
                        "{}: node {} acknowledged {command:?}, node {}: {text}",
                        one.key, attempt.node, state.node
                    ));
                }
            }
        }
        lost.extend(self.tried.iter().filter_map(|one| self.wrong_refusal(one, state, &events)));
        self.violations.extend(lost.into_iter().map(Violation));
        for event in state.events.iter().filter(|event| !event.trail.is_empty()) {
            self.tally.trails += 1;
            if let Err(text) = check_trail(event) {
                self.violated(format!(
                    "event {} ({}): {text}: {:?}",
                    event.id, event.description, event.trail
                ));
            }
        }
        self.check_true_time(state, &events, polls);
    }

    /// A command that was refused because its event had ended, and its event had not.
    fn wrong_refusal(
        &self,
        one: &Tried<'_>,
        state: &State,
        events: &HashMap<Uuid, &EventState>,
    ) -> Option<String> {
        let last = one.attempts.last()?;
        let Outcome::Refused { status, code } = &last.outcome else { return None };
        let event = match one.command {
            Command::GuestApproval { guest, event } if *status == 400 && !self.moved_during(*guest, last) => {
                event
            }
            Command::Event { event, .. } if matches!(&**code, "unknown_event" | "event_ended") => event,
            Command::GuestApproval { .. }
            | Command::Event { .. }
            | Command::Schedule { .. }
            | Command::SetNotice { .. }
            | Command::AddVm { .. }
            | Command::RemoveVm { .. } => return None,
        };
        let shown = events.get(event).filter(|shown| !shown.trail.is_empty())?;
        if self.era(one.begun()) != self.era(state.ended) {
            return None;
        }
        let has_ended = |fact: &TrailFact| {
            matches!(&*fact.kind, "EventCancelled" | "EventCompleted")
                && fact.at <= self.time(last.ended) + DATED_LATER_MAX
        };
        let is_right = shown.trail.iter().any(has_ended);
        (!is_right).then(|| {
            let (key, node, at) = (one.key, last.node, self.time(last.ended));
            format!(
                "{key}: node {node} refused {:?} with {status} {code} at {at}, and it lived: {shown:?}",
                one.command
            )
        })
    }

    fn time(&self, at: Micros) -> Timestamp {
        wall(self.begin, at)
    }

    /// Whether another attempt may have made what this one was acknowledged for: a later one, or one before the backup,
    /// which this one only repeated.
    fn is_of_other_attempt(&self, one: &Tried<'_>, attempt: &Attempt, shown: Micros) -> bool {
        let is_other =
            |other: &&Attempt| other.ended > attempt.ended || self.is_kept(other, shown) != Some(false);
        one.attempts.iter().any(is_other)
    }

    /// Whether a command that began after this one has set this value.
    fn is_set_later(&self, one: &Tried<'_>, scope: &str, shown: Option<u32>) -> bool {
        shown.and_then(|seconds| self.set.get(&(scope, seconds))).is_some_and(|begun| *begun > one.begun())
    }

    /// No guest has seen an event Started more than two seconds before NotBefore, unless it was to start at once.
    fn check_true_time(&mut self, state: &State, events: &HashMap<Uuid, &EventState>, polls: &[&Poll]) {
        let era = self.era(state.ended);
        let mut checked = HashSet::new();
        let mut early = Vec::new();
        for poll in polls.iter().filter(|poll| self.era(poll.begun) == era) {
            for event in poll.document.iter().flat_map(|document| &document.events) {
                let Some(shown) = events.get(&event.id).filter(|_| event.status == "Started") else {
                    continue;
                };
                let (Some(not_before), Some("NotBefore passed")) = (not_before(shown), why_started(shown))
                else {
                    continue;
                };
                let seen = self.time(poll.ended);
                if checked.insert(event.id) && seen + AHEAD_MAX < not_before {
                    early.push(format!(
                        "event {} was seen Started at {seen}, NotBefore is {not_before}",
                        event.id
                    ));
                }
            }
        }
        self.violations.extend(early.into_iter().map(Violation));
    }
}

fn fact<'a>(event: &'a EventState, kind: &str) -> Option<&'a TrailFact> {
    event.trail.iter().find(|fact| fact.kind == kind)
}

fn not_before(event: &EventState) -> Option<Timestamp> {
    fact(event, "EventScheduled")?.not_before
}

fn why_started(event: &EventState) -> Option<&str> {
    fact(event, "EventStarted")?.why.as_deref()
}

/// Whether an event shows a change that was acknowledged at this time.
fn shows(event: &EventState, verb: Verb, acknowledged: Timestamp) -> bool {
    let status = &*event.status;
    match verb {
        Verb::Cancel => status == "Cancelled",
        Verb::Complete => status == "Completed",
        Verb::Start => matches!(status, "Started" | "Completed"),
        Verb::Approve if event.trail.is_empty() => true,
        Verb::Approve => {
            // An approval of an event that has started or ended adds nothing.
            let is_late = |fact: &TrailFact| {
                matches!(&*fact.kind, "EventStarted" | "EventCancelled" | "EventCompleted")
                    && fact.at < acknowledged + DATED_LATER_MAX
            };
            fact(event, "EventApproved").is_some() || event.trail.iter().any(is_late)
        }
    }
}

fn check_trail(event: &EventState) -> Result<(), String> {
    let count = |kind: &str| event.trail.iter().filter(|fact| fact.kind == kind).count();
    let [scheduled, approved, released, started, completed, cancelled] = [
        "EventScheduled",
        "EventApproved",
        "EventReleased",
        "EventStarted",
        "EventCompleted",
        "EventCancelled",
    ]
    .map(count);
    if scheduled != 1 || approved > 1 || released > 1 || started > 1 || completed + cancelled > 1 {
        return Err("applied twice: its trail has a fact twice".to_owned());
    }
    let expected = match &*event.status {
        "Scheduled" => (0, 0, 0),
        "Started" => (1, 0, 0),
        "Completed" => (1, 1, 0),
        "Cancelled" => (0, 0, 1),
        other => return Err(format!("has the status {other}")),
    };
    if (started, completed, cancelled) != expected {
        return Err(format!("its trail is not that of an event that is {}", event.status));
    }
    let (not_before, Some(start)) = (not_before(event), fact(event, "EventStarted")) else { return Ok(()) };
    match (start.why.as_deref(), not_before) {
        (Some("NotBefore passed"), Some(not_before)) if start.at < not_before => {
            Err(format!("started early, at {}; NotBefore is {not_before}", start.at))
        }
        (Some("NotBefore passed"), None) => Err("started at a NotBefore that it does not have".to_owned()),
        (Some("approved"), _) if approved + released == 0 => Err("started without an approval".to_owned()),
        (Some("no guest of the scope listens"), _) => {
            Err("started without notice, and guests of its scope polled all the time".to_owned())
        }
        (
            Some("NotBefore passed" | "approved" | "started by an operator" | "its cause gives no notice"),
            _,
        ) => Ok(()),
        (why, _) => Err(format!("started because of {why:?}")),
    }
}

/// The judge finds each kind of violation in a history that is correct otherwise.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::history::DocumentEvent;

    const SCOPE: &str = "tenant-0/group/scope-0";
    const TAG: &str = "c0-1 tenant-0/group/scope-0";

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).unwrap()
    }

    fn attempt(key: &str, at: Micros, command: Command, outcome: Outcome) -> Record {
        let (key, is_repeat) = (key.to_owned(), false);
        Record::Attempt(Attempt { key, is_repeat, node: 1, command, begun: at, ended: at + 1, outcome })
    }

    fn schedule() -> Command {
        Command::Schedule { tag: TAG.to_owned() }
    }

    fn made(events: &[u128]) -> Outcome {
        Outcome::Acknowledged(Made {
            id: Some(id(100)),
            events: events.iter().map(|event| id(*event)).collect(),
        })
    }

    fn fact(kind: &str, at: i64) -> TrailFact {
        let not_before = (kind == "EventScheduled").then(|| second(9));
        let why = (kind == "EventStarted").then(|| "NotBefore passed".to_owned());
        TrailFact { kind: kind.to_owned(), at: second(at), not_before, why }
    }

    fn event(event: u128, operation: u128) -> EventState {
        EventState {
            id: id(event),
            operation: id(operation),
            scope: SCOPE.to_owned(),
            description: TAG.to_owned(),
            status: "Started".to_owned(),
            cause: "host-reboot".to_owned(),
            trail: vec![fact("EventScheduled", 0), fact("EventStarted", 9)],
        }
    }

    fn state(at: Micros, events: Vec<EventState>) -> Record {
        let notices = [("pool".to_owned(), Some(300))].into();
        Record::State(State {
            node: 2,
            complete_since: at,
            ended: at + 1,
            events,
            notices,
            vms: vec!["vm-0_0".to_owned()],
        })
    }

    fn poll(
        guest: usize,
        at: Micros,
        tag: Option<u64>,
        incarnation: u64,
        description: &str,
        status: &str,
    ) -> Record {
        let event = DocumentEvent {
            id: id(1),
            status: status.to_owned(),
            not_before: String::new(),
            description: description.to_owned(),
            resources: vec!["vm-0_0".to_owned()],
        };
        let document = Some(Document { incarnation, events: vec![event] });
        let (scope, node) = (SCOPE.to_owned(), guest);
        Record::Poll(Poll { guest, scope, node, tag, begun: at, ended: at + 1, status: 200, document })
    }

    /// A history without a violation.
    fn good() -> Vec<Record> {
        let vms = [(SCOPE.to_owned(), vec!["vm-0_0".to_owned()])];
        vec![
            Record::Begin { wall: second(0), seed: 1 },
            Record::Fleet { scopes: vms.into() },
            attempt("a", 10, schedule(), Outcome::Unanswered),
            attempt("a", 20, schedule(), made(&[1])),
            poll(0, 30, None, 2, TAG, "Scheduled"),
            poll(0, 9_500_000, Some(2), 3, TAG, "Started"),
            state(10_000_000, vec![event(1, 100)]),
        ]
    }

    /// Violations after a change of the good history.
    fn found(change: impl FnOnce(&mut Vec<Record>)) -> String {
        let mut records = good();
        change(&mut records);
        let found: Vec<String> = judge(&records).1.iter().map(ToString::to_string).collect();
        found.join("\n")
    }

    #[test]
    fn judge_accepts_a_good_history() {
        assert_eq!(found(|_| {}), "");
        let (tally, _) = judge(&good());
        assert_eq!((tally.commands, tally.acknowledged, tally.in_doubt, tally.trails), (1, 1, 1, 1));
    }

    #[test]
    fn judge_finds_lost_acknowledgements() {
        assert!(
            found(|records| records[6] = state(10_000_000, Vec::new())).contains("acknowledged Schedule")
        );
        let lost = |command: Command| {
            found(|records| {
                records.insert(4, attempt("b", 25, command, Outcome::Acknowledged(Made::default())))
            })
        };
        assert!(lost(Command::AddVm { name: "new".to_owned() }).contains("its VM is missing"));
        assert!(lost(Command::RemoveVm { name: "vm-0_0".to_owned() }).contains("its VM is there"));
        assert!(
            lost(Command::SetNotice { scope: "pool".to_owned(), seconds: 400 }).contains("is now Some(300)")
        );
        assert_eq!(lost(Command::SetNotice { scope: "pool".to_owned(), seconds: 300 }), "");
        for verb in [Verb::Cancel, Verb::Complete] {
            assert!(lost(Command::Event { event: id(1), verb }).contains("is not in"), "{verb:?}");
        }
        assert!(lost(Command::GuestApproval { guest: 0, event: id(1) }).contains("is not in"));
        assert_eq!(lost(Command::Event { event: id(1), verb: Verb::Start }), "");
    }

    #[test]
    fn judge_finds_changes_that_are_applied_twice() {
        let twice = vec![event(1, 100), event(2, 200)];
        assert!(found(|records| records[6] = state(10_000_000, twice)).contains("applied twice"));
        let other = |records: &mut Vec<Record>| records.insert(4, attempt("a", 25, schedule(), made(&[2])));
        assert!(found(other).contains("and then with"));
        let twice = EventState {
            trail: vec![fact("EventScheduled", 0), fact("EventStarted", 9), fact("EventStarted", 10)],
            ..event(1, 100)
        };
        assert!(found(|records| records[6] = state(10_000_000, vec![twice])).contains("a fact twice"));
    }

    #[test]
    fn judge_finds_effects_of_refused_commands() {
        let refused = Outcome::Refused { status: 409, code: "conflict".to_owned() };
        assert!(found(|records| records[3] = attempt("a", 20, schedule(), refused)).contains("was refused"));
    }

    #[test]
    fn judge_finds_refusals_of_events_that_live() {
        let refused = |command: Command, status, code: &str| {
            let outcome = Outcome::Refused { status, code: code.to_owned() };
            found(|records| records.insert(4, attempt("b", 25, command, outcome)))
        };
        assert!(refused(Command::GuestApproval { guest: 0, event: id(1) }, 400, "").contains("and it lived"));
        let cancel = Command::Event { event: id(1), verb: Verb::Cancel };
        assert!(refused(cancel.clone(), 404, "unknown_event").contains("and it lived"));
        assert_eq!(refused(cancel, 409, "event_started"), "");
        assert_eq!(refused(Command::GuestApproval { guest: 0, event: id(2) }, 400, ""), "");
    }

    #[test]
    fn judge_finds_events_of_other_scopes() {
        let other = "c0-1 tenant-1/group/scope-0";
        assert!(
            found(|records| records[4] = poll(0, 30, None, 2, other, "Scheduled")).contains("another scope")
        );
    }

    #[test]
    fn judge_knows_which_scope_an_address_has() {
        let other = "c0-1 tenant-1/group/scope-0";
        let to = "tenant-1/group/scope-0".to_owned();
        let moved = Move {
            guest: 5,
            from: SCOPE.to_owned(),
            to,
            begun: 100,
            node: 5,
            acknowledged: 150,
            settled: 200,
        };
        let at = |at, description: &str| {
            found(|records| {
                records.insert(0, Record::Move(moved.clone()));
                records.insert(1, Record::Fleet { scopes: [(moved.to.clone(), vec!["vm-1".into()])].into() });
                let Record::Poll(mut poll) = poll(5, at, None, 7, description, "Scheduled") else { panic!() };
                if description == other {
                    poll.document.as_mut().unwrap().events[0].resources = vec!["vm-1".into()];
                }
                records.insert(6, Record::Poll(poll));
            })
        };
        for (second, before, after) in
            [(50, true, false), (120, true, true), (160, false, true), (250, false, true)]
        {
            assert_eq!(at(second, TAG).is_empty(), before, "{second}: {}", at(second, TAG));
            assert_eq!(at(second, other).is_empty(), after, "{second}: {}", at(second, other));
        }
    }

    #[test]
    fn judge_finds_documents_that_go_back() {
        assert!(
            found(|records| records.insert(5, poll(0, 40, Some(2), 1, TAG, "Scheduled")))
                .contains("has 2 and got 1")
        );
        let other = |records: &mut Vec<Record>| records.insert(5, poll(1, 40, None, 2, TAG, "Started"));
        assert!(found(other).contains("two documents"));
    }

    #[test]
    fn judge_finds_early_starts() {
        let trail = vec![fact("EventScheduled", 0), fact("EventStarted", 8)];
        let early = EventState { trail, ..event(1, 100) };
        assert!(found(|records| records[6] = state(10_000_000, vec![early])).contains("started early"));
        let seen = |at| found(|records| records[5] = poll(0, at, Some(2), 3, TAG, "Started"));
        assert!(seen(6_900_000).contains("was seen Started"));
        assert_eq!(seen(7_100_000), "");
    }

    #[test]
    fn judge_expects_the_loss_of_what_followed_a_backup() {
        let restore = |begun, ended| {
            Record::Restore(Restore { backup_begun: begun, backup_ended: ended, nodes_ended: 9_900_000 })
        };
        // The command was acknowledged after the backup: it must not be in the restored state.
        assert!(found(|records| records.push(restore(1, 2))).contains("in the restored state"));
        let lost = |records: &mut Vec<Record>| {
            records[6] = state(10_000_000, Vec::new());
            records.push(restore(1, 2));
        };
        assert_eq!(found(lost), "");
        // It was acknowledged before the backup: it must be there.
        assert_eq!(found(|records| records.push(restore(100, 200))), "");
        let lost = |records: &mut Vec<Record>| {
            records[6] = state(10_000_000, Vec::new());
            records.push(restore(100, 200));
        };
        assert!(found(lost).contains("acknowledged Schedule"));
        // The same if it was repeated after the backup.
        let repeated = |records: &mut Vec<Record>| {
            records.push(attempt("a", 300, schedule(), made(&[1])));
            records.push(restore(100, 200));
        };
        assert_eq!(found(repeated), "");
        // A guest that polls after the restore may get an older document.
        let back = |records: &mut Vec<Record>| {
            records.push(restore(100, 200));
            records.insert(6, poll(0, 9_950_000, Some(3), 2, TAG, "Scheduled"));
        };
        assert_eq!(found(back), "");
    }
}
