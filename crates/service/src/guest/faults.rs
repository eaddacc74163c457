//! Table of active faults: decides what happens to a request and to its answer. Pure; the time is an argument.
//!
//! A request is asked about twice. [`FaultTable::before`] decides before the request is evaluated: delay, reset, status,
//! strict header. [`FaultTable::after`] decides what the answer looks like. Each fault belongs to one of the two, in the
//! order of `FaultKind::ALL`.
//!
//! **Selection.** A fault selects every Nth matching request of each VM, so that VMs do not take each other's turns.
//! An effect is counted when the answer really differs: a body fault does not count on a 304.
//!
//! **Shown incarnation.** A VM that a fault has shown another incarnation keeps its own count
//! (`ShownIncarnation`). The count continues after the fault ends; otherwise numbers would go back, which only
//! `reset-incarnation` does.
//!
//! **Not enabled.** `not-enabled` changes no answer. [`Faults`](crate::faults::Faults) makes the engine forget the polls
//! of the scope when the fault is added; the first poll of each VM afterwards counts as its effect.
//!
//! **Waits.** `late-first-answer` and `slow-body` make a request wait ([`Waits`]). A fault that has reached its count or
//! its time selects no further request, and those that it has selected wait to their end. A fault that is cleared
//! releases them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_wire::operator::faults::{Fault, FaultEffect, NewFault};
use notbefore_wire::operator::{FaultKind, FaultRequests};
use uuid::Uuid;

pub use super::rules::RequestClass;

/// Maximum number of active faults. Each request of a guest is compared with all of them.
pub const FAULTS_MAX: usize = 64;

/// What happens before a request is evaluated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// How much later the answer is sent.
    pub delay: Waits,
    pub ending: Option<Ending>,
    /// The header `Metadata` is checked strictly.
    pub is_strict: bool,
    pub kinds: Vec<FaultKind>,
}

/// How long a request waits, by fault. Other threads clear faults meanwhile.
#[derive(Clone, Debug, Default)]
pub struct Waits(Vec<(Duration, Arc<AtomicBool>)>);

impl Waits {
    /// The longest wait of a fault that was not cleared; none if the request need not wait.
    pub fn longest(&self) -> Option<Duration> {
        self.0.iter().filter(|(_, is_cleared)| !is_cleared.load(Relaxed)).map(|(time, _)| *time).max()
    }

    fn add(&mut self, seconds: impl Into<u64>, fault: &ActiveFault) {
        self.0.push((Duration::from_secs(seconds.into()), Arc::clone(&fault.is_cleared)));
    }
}

/// By their times.
impl PartialEq for Waits {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().map(|(time, _)| time).eq(other.0.iter().map(|(time, _)| time))
    }
}

impl Eq for Waits {}

/// How a request ends without being carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Reset,
    Status(u16),
}

/// The answer to a request, as far as faults depend on it.
#[derive(Clone, Copy)]
pub enum Answer<'a> {
    /// A document, or a 304 if the client has it.
    Document {
        incarnation: u64,
        has_events: bool,
        /// Whether the client has the document with this incarnation.
        is_known: &'a dyn Fn(u64) -> bool,
    },
    /// Another answer with a JSON body.
    Json,
    /// No body, or an error.
    Plain,
}

/// What the answer looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct After {
    /// The incarnation to show, if it differs.
    pub incarnation: Option<u64>,
    pub hides_events: bool,
    /// Added to `Date` and NotBefore.
    pub skew: SignedDuration,
    pub misses_events: bool,
    pub has_raw_newlines: bool,
    pub is_text: bool,
    pub is_empty: bool,
    /// Time that the body takes.
    pub slow: Waits,
    pub kinds: Vec<FaultKind>,
}

impl After {
    /// Whether the guest cannot see the events of its document.
    pub fn withholds_events(&self) -> bool {
        self.hides_events || self.misses_events || self.is_empty
    }
}

/// All active faults.
#[derive(Debug, Default)]
pub struct FaultTable {
    faults: Vec<ActiveFault>,
    /// Faults that reached their count or time, and for which requests still wait; at most one for each of these.
    ended: Vec<(u64, Arc<AtomicBool>)>,
    last_id: u64,
    shown: HashMap<Uuid, ShownIncarnation>,
}

#[derive(Debug)]
struct ActiveFault {
    shown: Fault,
    effect: FaultEffect,
    vm: Option<Uuid>,
    every: u64,
    /// Matching requests by VM.
    seen: HashMap<Uuid, u64>,
    /// Shared with the requests that wait because of it.
    is_cleared: Arc<AtomicBool>,
}

impl ActiveFault {
    fn has_ended(&self, now: Timestamp) -> bool {
        self.shown.ends_at.is_some_and(|at| at <= now)
            || self.shown.fault.count.is_some_and(|count| self.shown.effects >= u64::from(count))
    }

    /// Whether this request is one of those to affect. Called once for each request.
    fn selects(&mut self, vm: Uuid, class: RequestClass) -> bool {
        let is_matching = match &self.shown.fault.requests {
            None | Some(FaultRequests::Polls) => class == RequestClass::Poll,
            Some(FaultRequests::Approvals) => class == RequestClass::Approval,
            Some(FaultRequests::All) => true,
            Some(FaultRequests::Unknown(_)) => false,
        };
        if !is_matching || self.vm.is_some_and(|only| only != vm) {
            return false;
        }
        let seen = self.seen.entry(vm).or_default();
        *seen += 1;
        match self.effect {
            // Once for each VM.
            FaultEffect::LateFirstAnswer { .. } | FaultEffect::NotEnabled | FaultEffect::ResetIncarnation => {
                *seen == self.every
            }
            FaultEffect::Reset
            | FaultEffect::Status(_)
            | FaultEffect::StrictHeader
            | FaultEffect::SkipIncarnations { .. }
            | FaultEffect::HideEvents
            | FaultEffect::ClockSkew { .. }
            | FaultEffect::MissingEvents
            | FaultEffect::RawNewlines
            | FaultEffect::TextPlain
            | FaultEffect::EmptyBody
            | FaultEffect::SlowBody { .. } => seen.is_multiple_of(self.every),
        }
    }

    fn count(&mut self, kinds: &mut Vec<FaultKind>) {
        self.shown.effects += 1;
        kinds.push(self.effect.kind());
    }
}

/// A VM's own count of incarnations.
#[derive(Clone, Copy, Debug)]
struct ShownIncarnation {
    actual: u64,
    shown: u64,
    is_hidden: bool,
}

impl ShownIncarnation {
    /// The count at a poll. A change raises it by `by`, and so do events that vanish or return.
    fn advance(&mut self, actual: u64, is_hidden: bool, by: u64) {
        match actual.checked_sub(self.actual) {
            Some(changes) => {
                let changes = changes.max(u64::from(is_hidden != self.is_hidden));
                self.shown = self.shown.saturating_add(changes.saturating_mul(by));
            }
            // The VM is in another scope now.
            None => self.shown = actual,
        }
        (self.actual, self.is_hidden) = (actual, is_hidden);
    }
}

impl FaultTable {
    /// Adds a checked fault for a VM, or for all. None if there are too many.
    pub fn add(
        &mut self,
        fault: NewFault,
        effect: FaultEffect,
        vm: Option<Uuid>,
        now: Timestamp,
    ) -> Option<Fault> {
        self.remove_ended(now);
        if self.faults.len() >= FAULTS_MAX {
            return None;
        }
        self.last_id += 1;
        let every = u64::from(fault.every.unwrap_or(1).max(1));
        let active = fault.active_seconds.map(|seconds| SignedDuration::from_secs(seconds.into()));
        let ends_at = active.and_then(|active| now.saturating_add(active).ok());
        let shown = Fault { id: self.last_id, fault, added_at: now, ends_at, effects: 0 };
        // A wrong order of the two would apply a later fault to an earlier one's result.
        let place = |effect: &FaultEffect| FaultKind::ALL.iter().position(|kind| *kind == effect.kind());
        let at = self.faults.partition_point(|other| place(&other.effect) <= place(&effect));
        let active = ActiveFault {
            shown: shown.clone(),
            effect,
            vm,
            every,
            seen: HashMap::new(),
            is_cleared: Arc::default(),
        };
        self.faults.insert(at, active);
        Some(shown)
    }

    /// The active faults, in the order in which they were added.
    pub fn list(&mut self, now: Timestamp) -> Vec<Fault> {
        self.remove_ended(now);
        let mut all: Vec<Fault> = self.faults.iter().map(|fault| fault.shown.clone()).collect();
        all.sort_by_key(|fault| fault.id);
        all
    }

    /// Ends a fault, or all of them, and releases requests that wait because of it; returns how many faults.
    pub fn clear(&mut self, id: Option<u64>, now: Timestamp) -> usize {
        self.remove_ended(now);
        let is_kept = |fault: u64, is_cleared: &AtomicBool| {
            let is_kept = id.is_some_and(|id| id != fault);
            is_cleared.store(!is_kept, Relaxed);
            is_kept
        };
        let before = self.faults.len() + self.ended.len();
        self.faults.retain(|fault| is_kept(fault.shown.id, &fault.is_cleared));
        self.ended.retain(|(fault, is_cleared)| is_kept(*fault, is_cleared));
        before - self.faults.len() - self.ended.len()
    }

    /// Whether requests have to be compared with this table.
    pub fn is_needed(&self) -> bool {
        !self.faults.is_empty() || !self.shown.is_empty()
    }

    fn remove_ended(&mut self, now: Timestamp) {
        let has_requests = |is_cleared: &Arc<AtomicBool>| Arc::strong_count(is_cleared) > 1;
        self.ended.retain(|(_, is_cleared)| has_requests(is_cleared));
        let ended = self.faults.extract_if(.., |fault| fault.has_ended(now));
        let ended = ended.filter(|fault| has_requests(&fault.is_cleared));
        self.ended.extend(ended.map(|fault| (fault.shown.id, fault.is_cleared)));
    }

    /// What happens before a request is evaluated. `is_strict`: its header `Metadata` is exactly `true`.
    pub fn before(&mut self, vm: Uuid, class: RequestClass, is_strict: bool, now: Timestamp) -> Before {
        self.remove_ended(now);
        let mut before = Before::default();
        for fault in &mut self.faults {
            let effect = fault.effect;
            // A request that has ended takes no turn of the later faults.
            let applies = match effect {
                FaultEffect::LateFirstAnswer { .. } => fault.selects(vm, class),
                FaultEffect::Reset | FaultEffect::Status(_) => {
                    before.ending.is_none() && fault.selects(vm, class)
                }
                FaultEffect::StrictHeader => {
                    before.ending.is_none() && fault.selects(vm, class) && !is_strict
                }
                FaultEffect::NotEnabled
                | FaultEffect::ResetIncarnation
                | FaultEffect::SkipIncarnations { .. }
                | FaultEffect::HideEvents
                | FaultEffect::ClockSkew { .. }
                | FaultEffect::MissingEvents
                | FaultEffect::RawNewlines
                | FaultEffect::TextPlain
                | FaultEffect::EmptyBody
                | FaultEffect::SlowBody { .. } => false,
            };
            if !applies {
                continue;
            }
            match effect {
                FaultEffect::LateFirstAnswer { seconds } => before.delay.add(seconds, fault),
                FaultEffect::Reset => before.ending = Some(Ending::Reset),
                FaultEffect::Status(status) => before.ending = Some(Ending::Status(status)),
                FaultEffect::StrictHeader => before.is_strict = true,
                FaultEffect::NotEnabled
                | FaultEffect::ResetIncarnation
                | FaultEffect::SkipIncarnations { .. }
                | FaultEffect::HideEvents
                | FaultEffect::ClockSkew { .. }
                | FaultEffect::MissingEvents
                | FaultEffect::RawNewlines
                | FaultEffect::TextPlain
                | FaultEffect::EmptyBody
                | FaultEffect::SlowBody { .. } => {}
            }
            fault.count(&mut before.kinds);
        }
        // Those that this request has used up.
        self.remove_ended(now);
        before
    }

    /// What the answer looks like.
    pub fn after(&mut self, vm: Uuid, class: RequestClass, answer: Answer<'_>, now: Timestamp) -> After {
        self.remove_ended(now);
        let mut after = After::default();
        let (mut is_reset, mut by) = (false, None);
        let (is_document, mut shows_events) = match answer {
            Answer::Document { has_events, .. } => (true, has_events),
            Answer::Json | Answer::Plain => (false, false),
        };
        let mut has_body = !matches!(answer, Answer::Plain);
        let mut is_settled = false;
        for fault in &mut self.faults {
            let effect = fault.effect;
            let settles = match effect {
                FaultEffect::LateFirstAnswer { .. }
                | FaultEffect::Reset
                | FaultEffect::Status(_)
                | FaultEffect::StrictHeader
                | FaultEffect::NotEnabled
                | FaultEffect::ResetIncarnation
                | FaultEffect::SkipIncarnations { .. }
                | FaultEffect::HideEvents => false,
                FaultEffect::ClockSkew { .. }
                | FaultEffect::MissingEvents
                | FaultEffect::RawNewlines
                | FaultEffect::TextPlain
                | FaultEffect::EmptyBody
                | FaultEffect::SlowBody { .. } => true,
            };
            // Those of the incarnation come first in the order; then it is known, and with it a 304.
            if settles && !std::mem::replace(&mut is_settled, true) {
                has_body &= !settle(&mut self.shown, vm, answer, is_reset, by, &mut after);
            }
            let applies = match effect {
                FaultEffect::LateFirstAnswer { .. }
                | FaultEffect::Reset
                | FaultEffect::Status(_)
                | FaultEffect::StrictHeader => false,
                FaultEffect::NotEnabled
                | FaultEffect::ResetIncarnation
                | FaultEffect::SkipIncarnations { .. } => is_document && fault.selects(vm, class),
                FaultEffect::HideEvents => shows_events && fault.selects(vm, class),
                FaultEffect::ClockSkew { .. } => fault.selects(vm, class),
                FaultEffect::MissingEvents => is_document && has_body && fault.selects(vm, class),
                FaultEffect::RawNewlines => {
                    has_body && (shows_events || !is_document) && fault.selects(vm, class)
                }
                FaultEffect::TextPlain | FaultEffect::EmptyBody => has_body && fault.selects(vm, class),
                FaultEffect::SlowBody { .. } => has_body && !after.is_empty && fault.selects(vm, class),
            };
            if !applies {
                continue;
            }
            match effect {
                FaultEffect::LateFirstAnswer { .. }
                | FaultEffect::Reset
                | FaultEffect::Status(_)
                | FaultEffect::StrictHeader
                // The poll itself enables the scope again.
                | FaultEffect::NotEnabled => {}
                FaultEffect::ResetIncarnation => is_reset = true,
                FaultEffect::SkipIncarnations { by: rise } => by = Some(by.unwrap_or(1).max(rise)),
                FaultEffect::HideEvents => (after.hides_events, shows_events) = (true, false),
                FaultEffect::ClockSkew { seconds } => after.skew += SignedDuration::from_secs(seconds),
                FaultEffect::MissingEvents => (after.misses_events, shows_events) = (true, false),
                FaultEffect::RawNewlines => after.has_raw_newlines = true,
                FaultEffect::TextPlain => after.is_text = true,
                FaultEffect::EmptyBody => after.is_empty = true,
                FaultEffect::SlowBody { seconds } => after.slow.add(seconds, fault),
            }
            fault.count(&mut after.kinds);
        }
        if !is_settled {
            settle(&mut self.shown, vm, answer, is_reset, by, &mut after);
        }
        self.remove_ended(now);
        after
    }
}

/// Sets the incarnation to show. Returns whether the client has that document.
fn settle(
    shown: &mut HashMap<Uuid, ShownIncarnation>,
    vm: Uuid,
    answer: Answer<'_>,
    is_reset: bool,
    by: Option<u64>,
    after: &mut After,
) -> bool {
    let Answer::Document { incarnation: actual, is_known, .. } = answer else { return false };
    if is_reset || by.is_some() || after.hides_events || shown.contains_key(&vm) {
        let first = ShownIncarnation { actual, shown: actual, is_hidden: false };
        let one = shown.entry(vm).or_insert(first);
        one.advance(actual, after.hides_events, by.unwrap_or(1));
        if is_reset {
            one.shown = 1;
        }
        after.incarnation = Some(one.shown).filter(|shown| *shown != actual);
    }
    is_known(after.incarnation.unwrap_or(actual))
}

#[cfg(test)]
mod tests;
