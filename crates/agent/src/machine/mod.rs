//! What the agent does next: `(state, input, now) → (state, actions)`, without IO, clock or randomness.
//!
//! A [`State`] is all that the agent remembers, a [`Handled`] for every event. [`State::handle`] takes in what happened
//! and then *settles*: it goes on with every event until there is nothing left to do but wait. Whoever drives the
//! machine saves the state, does what the actions say, and comes back when something has happened or at
//! [`State::next_due`]. Deadlines are in ticks of a clock that nobody can set; the wall clock only says, once for
//! every document, how far away NotBefore is, and less than a second of that where the platform told its own time.
//!
//! - [`io`]: what the machine is told and what it wants done;
//! - [`handled`]: one event's way;
//! - `settle`: how it goes on;
//! - `resume`: how it goes on after the agent, or the VM, has been started anew.
//!
//! # What is kept to, whatever happens
//!
//! - An event is approved only when its own steps are done; never for other VMs only, never because of another event.
//! - What was begun is undone when the event is over, cancelled or not, and only then; while another event keeps this
//!   VM out of service, it stays out.
//! - The last document is believed until there is another. An error is no document.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_client::clock::Moment;
use notbefore_client::document::{Document, Event, EventId, EventKind, EventStatus, EventsVersion};
use notbefore_client::identity::Identity;
use serde::{Deserialize, Serialize};

use crate::rules::matching::first;
use crate::rules::{Deed, OnFailure, Rule, Whose};
use handled::{Approval, Bound, Doing, Handled, Phase, Progress};
use io::{Action, ApprovalAnswer, Fact, Input, RunId, Stage, StepOutcome, Then, What};

pub mod handled;
pub mod io;
mod resume;
mod settle;

/// What is left of the notice for the approval itself, and for a slow clock: the steps end so long before NotBefore.
/// Of the 30 seconds of Preempt a second may be gone before the event is seen, so it cannot be much.
pub const RESERVE: Duration = Duration::from_millis(500);

/// How many steps run at once, of however many events. A VM has one or two; a platform that announces a thousand shall not
/// have it start a thousand programs.
pub const RUNNING_MAX: usize = 32;

/// The notice of an eviction, where the platform does not say it.
pub const PREEMPT_NOTICE: Duration = Duration::from_secs(30);

/// How far NotBefore may be from where it was thought to be before that is taken for news: the platform's clock tells whole
/// seconds, and an answer takes some time. Ticks stand still while a VM is frozen.
const ANCHOR_SLACK: Duration = Duration::from_secs(2);

/// How long an approval that did not get through rests, at first; it doubles each time, up to [`APPROVAL_REST_MAX`].
const APPROVAL_REST: Duration = Duration::from_millis(500);
/// The same for one that was refused though the event still waits: the platform has to change its mind.
const REFUSED_REST: Duration = Duration::from_secs(5);
/// The longest that an approval rests. Shorter than any notice but that of Preempt.
const APPROVAL_REST_MAX: Duration = Duration::from_secs(15);

/// What does not change while the agent runs.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The rules, in their order.
    pub rules: Vec<Rule>,
    /// Which of an event's resources is this VM.
    pub me: Identity,
    /// Whether the platform calls it so, or somebody who knows. Otherwise it is what it goes by until the platform says: it
    /// prepares for the events of that name, and approves none.
    pub sure: bool,
}

/// All that the agent remembers. It is what the journal holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    boot: Option<String>,
    next_run: u64,
    /// In the order in which they were first seen.
    events: Vec<Handled>,
    /// Whether the VM has booted, and no document was read since.
    unheard_boot: bool,
    /// Until when, after a start, what was under way waits for a document to say how things are.
    resting_until: Option<Duration>,
}

impl State {
    /// Nothing is remembered. `boot` tells this boot of the VM from every other; none where the system does not say.
    pub fn new(boot: Option<String>) -> State {
        State { boot, next_run: 1, events: Vec::new(), unheard_boot: false, resting_until: None }
    }

    /// Takes in what happened, and says what is to be done about it. The state is to be saved before that.
    pub fn handle(self, setup: &Setup, input: Input, now: Moment) -> (State, Vec<Action>) {
        let mut turn = Turn { setup, now, state: self, actions: Vec::new() };
        match input {
            Input::Document { document, served_at, version } => {
                turn.read(document, platform_time(served_at, now), version);
            }
            Input::Unchanged { served_at } => turn.anchor(platform_time(Some(served_at), now)),
            Input::Back => turn.send_approvals(),
            Input::Retry => (0..turn.state.events.len()).for_each(|place| turn.try_again(place)),
            Input::StepEnded { run, outcome } => turn.ended(run, outcome),
            Input::Answered { event, answer } => turn.answered(&event, answer),
            Input::Tick => {}
        }
        turn.settle();
        (turn.state, turn.actions)
    }

    /// At which tick something is due, if nothing happens before: [`Input::Tick`] is wanted then.
    pub fn next_due(&self, setup: &Setup, now: Moment) -> Option<Duration> {
        if let Some(rest) = self.resting_until {
            return Some(rest);
        }
        let due = self.events.iter().flat_map(|handled| settle::due(handled, setup));
        // What was due by now and is not done waits for something else to happen.
        due.filter(|due| *due > now.tick).min()
    }

    /// Whether this VM should get no new work now.
    pub fn draining(&self) -> bool {
        self.events.iter().any(Handled::drains)
    }

    /// The events that it knows of, in the order in which they were first seen.
    pub fn events(&self) -> &[Handled] {
        &self.events
    }
}

/// What time it is for the platform. Its own clock tells whole seconds: the moment lies in the second that it names. This
/// VM's clock says where, if it agrees with that; if it does not, it is taken to be as late as it may be.
fn platform_time(served_at: Option<Timestamp>, now: Moment) -> Timestamp {
    let Some(earliest) = served_at else { return now.wall };
    let latest = earliest.saturating_add(SignedDuration::from_secs(1)).unwrap_or(earliest);
    if (earliest..=latest).contains(&now.wall) { now.wall } else { latest }
}

/// The NotBefore of an event that has to say when and does not: an eviction, seen at this time, has half a minute, as every
/// other has.
fn unsaid_notice(event: &Event, seen: Timestamp) -> Option<Timestamp> {
    (event.kind == EventKind::Preempt && event.not_before.is_none())
        .then(|| seen.saturating_add(PREEMPT_NOTICE).unwrap_or(seen))
}

/// One input's worth of work.
struct Turn<'a> {
    setup: &'a Setup,
    now: Moment,
    state: State,
    actions: Vec<Action>,
}

impl Turn<'_> {
    fn tell(&mut self, place: usize, what: What) {
        let handled = &self.state.events[place];
        let rule = handled.rule.as_ref().map(|rule| rule.name.clone());
        self.actions.push(Action::Tell(Box::new(Fact { event: handled.event.clone(), rule, what })));
    }

    /// Takes in a document, of a version that may not have words for every event.
    fn read(&mut self, document: Document, served_at: Timestamp, version: EventsVersion) {
        self.state.resting_until = None;
        for place in 0..self.state.events.len() {
            let Event { id, kind, .. } = &self.state.events[place].event;
            if !document.events.iter().any(|listed| listed.id == *id) && kind.is_shown_at(version) {
                self.gone(place);
            }
        }
        let booted = std::mem::take(&mut self.state.unheard_boot);
        for event in document.events {
            match self.state.events.iter().position(|handled| handled.event.id == event.id) {
                Some(place) => self.seen_again(place, event, served_at),
                None => self.appeared(event, served_at, booted),
            }
        }
    }

    /// Time has passed by the platform's clock and, if the VM stood still, not by this one's.
    fn anchor(&mut self, served_at: Timestamp) {
        for place in 0..self.state.events.len() {
            let handled = &self.state.events[place];
            let Some(deadline) = self.deadline(&handled.event, served_at).filter(|_| handled.listed) else {
                continue;
            };
            if handled.deadline.is_none_or(|before| before.abs_diff(deadline) > ANCHOR_SLACK) {
                self.state.events[place].deadline = Some(deadline);
            }
        }
    }

    /// What could not be sent while the platform was silent is sent now.
    fn send_approvals(&mut self) {
        for handled in &mut self.state.events {
            if let Approval::Wanted { due, .. } = &mut handled.approval {
                *due = self.now.tick;
            }
        }
    }

    /// Tries again what has failed for good.
    fn try_again(&mut self, place: usize) {
        let now = self.now.tick;
        let handled = &mut self.state.events[place];
        let waits = handled.listed && !handled.started() && !handled.is_over();
        match (&mut handled.phase, &handled.approval) {
            (Phase::Ready, Approval::Withheld { step, .. }) if waits => {
                handled.phase = Phase::Preparing(Progress::at(*step));
                handled.approval = Approval::Undecided;
            }
            (Phase::Restoring(progress), _) if progress.doing == Doing::Halted => {
                (progress.doing, progress.attempt) = (Doing::Due(now), 1);
            }
            _ => return,
        }
        let again = handled.step().map(|(stage, step)| What::TriedAgain { step: step.name.clone(), stage });
        if let Some(again) = again {
            self.tell(place, again);
        }
    }

    /// The tick of an event's NotBefore. The platform's times are compared with the platform's clock.
    fn deadline(&self, event: &Event, served_at: Timestamp) -> Option<Duration> {
        let scheduled = event.status != EventStatus::Started;
        let not_before = event.not_before.filter(|_| scheduled)?;
        let left = Duration::try_from(not_before.duration_since(served_at)).unwrap_or(Duration::ZERO);
        Some(self.now.tick.saturating_add(left))
    }

    /// The same for an event that is new, or there again: it may be one that has to say when, and does not.
    fn first_deadline(&self, event: &Event, served_at: Timestamp) -> Option<Duration> {
        let said = self.deadline(event, served_at);
        let unsaid = unsaid_notice(event, served_at).filter(|_| event.status != EventStatus::Started);
        said.or_else(|| unsaid.map(|_| self.now.tick.saturating_add(PREEMPT_NOTICE)))
    }

    /// Takes in an event that is new. One that has started when this VM, just booted, first hears of it is most likely what
    /// it booted for: there is nothing to prepare any more.
    fn appeared(&mut self, event: Event, served_at: Timestamp, booted: bool) {
        let mine = self.mine(&event);
        let deadline = self.first_deadline(&event, served_at);
        let booted = booted && event.status == EventStatus::Started;
        self.state.events.push(Handled {
            event,
            mine,
            seen_at: self.now.wall,
            rule: None,
            phase: Phase::Unmatched,
            approval: Approval::Undecided,
            prepared: false,
            begun: false,
            booted,
            heard: true,
            listed: true,
            cancelled: false,
            went_back: false,
            held: false,
            replaced: false,
            deadline,
        });
        self.tell_appeared(self.state.events.len() - 1);
    }

    fn tell_appeared(&mut self, place: usize) {
        let Handled { deadline, mine, .. } = self.state.events[place];
        let time_left = deadline.map(|deadline| deadline.saturating_sub(self.now.tick));
        self.tell(place, What::Appeared { time_left, mine });
    }

    fn mine(&self, event: &Event) -> bool {
        event.resources.iter().any(|resource| self.setup.me.is(resource))
    }

    fn gone(&mut self, place: usize) {
        let now = self.now.tick;
        let handled = &mut self.state.events[place];
        handled.heard = true;
        if !handled.listed {
            return;
        }
        handled.listed = false;
        // Documents may be missed: what was approved, or was due, has most likely happened meanwhile.
        let approved = matches!(handled.approval, Approval::Given | Approval::Moot);
        let due = handled.deadline.is_some_and(|deadline| deadline <= now);
        handled.cancelled = !handled.started() && !approved && !due && !handled.booted;
        handled.deadline = None;
        let what = if handled.cancelled { What::Cancelled } else { What::Ended };
        self.tell(place, what);
    }

    /// Takes in an event that is known already.
    fn seen_again(&mut self, place: usize, mut event: Event, served_at: Timestamp) {
        let mine = self.mine(&event);
        let (deadline, first_deadline) =
            (self.deadline(&event, served_at), self.first_deadline(&event, served_at));
        let handled = &mut self.state.events[place];
        handled.heard = true;
        let back = !handled.listed;
        if back {
            // It was gone, and is there again: what is being put back is prepared anew, by the same rule.
            handled.begin_anew();
            handled.listed = true;
            handled.event = event;
            handled.deadline = first_deadline;
            handled.mine = mine;
            self.tell_appeared(place);
            return;
        }
        let was_started = handled.started();
        let takes_back = was_started && event.status != EventStatus::Started;
        if takes_back {
            // Phases never go back; whatever it means, the VM stays as it is until the event is gone.
            event.status = EventStatus::Started;
            event.not_before = None;
        }
        let starts = !was_started && event.status == EventStatus::Started;
        let changed = handled.event != event && !starts && !takes_back;
        let was_mine = std::mem::replace(&mut handled.mine, mine);
        handled.event = event;
        handled.deadline = if handled.started() { None } else { deadline.or(handled.deadline) };
        handled.cancelled |= was_mine && handled.is_lost();
        if !was_mine && mine {
            self.becomes_mine(place);
        }
        let handled = &self.state.events[place];
        if let Approval::NotMine { .. } = handled.approval
            && self.reason_not_to_approve(handled).is_none()
        {
            // Somebody else was to approve, and is not any more.
            self.state.events[place].approval = Approval::Wanted { failures: 0, due: self.now.tick };
        }
        let handled = &mut self.state.events[place];
        // An event that still waits is not what the VM booted for.
        handled.booted &= handled.started();
        let tell_back = takes_back && !handled.went_back;
        handled.went_back |= takes_back;
        let prepared = handled.prepared;
        if starts {
            self.tell(place, What::Started { prepared });
        }
        if tell_back {
            self.tell(place, What::WentBack);
        }
        if changed {
            self.tell(place, What::Changed);
        }
    }

    /// An event that was for other VMs only is for this one, too. It was this VM's before, or its rule is for anybody's
    /// events, or another rule is for it now.
    fn becomes_mine(&mut self, place: usize) {
        let handled = &self.state.events[place];
        let fits = first(&self.setup.rules, &settle::sight(handled, self.now.tick));
        let same = handled.rule.as_ref() == fits;
        let handled = &mut self.state.events[place];
        match handled.rule.as_ref().map(|rule| rule.matches.resources) {
            Some(Whose::Mine) => handled.begin_anew(),
            Some(Whose::Others | Whose::Any) if same => return,
            Some(Whose::Others | Whose::Any) => handled.replaced = true,
            None => {}
        }
        self.tell_appeared(place);
    }

    /// Takes in that an attempt has ended.
    fn ended(&mut self, run: RunId, outcome: StepOutcome) {
        let Some(place) = self.state.events.iter().position(|handled| handled.running() == Some(run)) else {
            return;
        };
        let handled = &mut self.state.events[place];
        if let Phase::Over { stopping } = &mut handled.phase {
            *stopping = None;
            return;
        }
        let Some((stage, step)) = handled.step() else { return };
        let name = step.name.clone();
        match outcome {
            StepOutcome::Done => {
                self.tell(place, What::StepDone { step: name, stage });
                self.next_step(place);
            }
            StepOutcome::Failed { reason } => self.failed(place, reason),
            StepOutcome::TimedOut if self.is_out_of_time(place) => {
                self.out_of_time(place, "NotBefore came before it was done")
            }
            StepOutcome::TimedOut => self.failed(place, "it took longer than it may".into()),
            StepOutcome::Stopped => {
                self.out_of_time(place, "it was stopped: NotBefore is nearer than it was")
            }
        }
    }

    /// Whether it is NotBefore that a step has no more time for, and not its own timeout.
    fn is_out_of_time(&self, place: usize) -> bool {
        let handled = &self.state.events[place];
        let Phase::Preparing(progress) = &handled.phase else { return false };
        let left = settle::time_for_step(handled, self.now.tick);
        progress.bound != Bound::Passed && left.is_some_and(|left| left.is_zero())
    }

    /// NotBefore left no time for a step before the event. The event comes all the same, so what follows is done with the time
    /// that was kept for it. Who was only to wait has waited as long as there was time.
    fn out_of_time(&mut self, place: usize, reason: &str) {
        let Some((stage, step)) = self.state.events[place].step() else { return };
        let (name, on_failure) = (step.name.clone(), step.on_failure);
        if let Deed::Wait { .. } = step.does {
            self.tell(place, What::StepDone { step: name, stage });
            return self.next_step(place);
        }
        let then = match on_failure {
            OnFailure::GoOn => Then::GoOn,
            OnFailure::Withhold => Then::WithholdAndGoOn,
        };
        self.tell(place, What::StepFailed { step: name.clone(), stage, reason: reason.to_owned(), then });
        if then == Then::WithholdAndGoOn {
            self.withhold(place, &name);
        }
        self.note_failure(place, then == Then::WithholdAndGoOn);
        self.next_step(place);
    }

    /// Does not approve the event because of a step, and says so, once.
    fn withhold(&mut self, place: usize, name: &str) {
        let handled = &mut self.state.events[place];
        let Phase::Preparing(Progress { step, .. }) = handled.phase else { return };
        if let Approval::Undecided = handled.approval {
            let reason = format!("the step `{name}` failed");
            handled.approval = Approval::Withheld { reason: reason.clone(), step };
            self.tell(place, What::Withheld { reason });
        }
    }

    /// Goes to the next step of the list that is being run.
    fn next_step(&mut self, place: usize) {
        match &mut self.state.events[place].phase {
            Phase::Preparing(progress) | Phase::Restoring(progress) => *progress = progress.next(),
            Phase::Unmatched | Phase::Ready | Phase::Over { .. } | Phase::Done => {}
        }
    }

    /// Notes that a step has failed, and that the VM is not ready for the event if that step had to be done.
    fn note_failure(&mut self, place: usize, unready: bool) {
        match &mut self.state.events[place].phase {
            Phase::Preparing(progress) | Phase::Restoring(progress) => {
                progress.failed = true;
                progress.unready |= unready;
            }
            Phase::Unmatched | Phase::Ready | Phase::Over { .. } | Phase::Done => {}
        }
    }

    /// An attempt has failed: it is tried again, or passed over, or it is the end of the list.
    fn failed(&mut self, place: usize, reason: String) {
        let now = self.now.tick;
        let handled = &self.state.events[place];
        let Some((stage, step)) = handled.step() else { return };
        let (Phase::Preparing(progress) | Phase::Restoring(progress)) = &handled.phase else { return };
        let again_at = now.saturating_add(step.retry_delay);
        let in_time = settle::time_for_step(handled, again_at).is_none_or(|left| !left.is_zero());
        let then = if progress.attempt <= step.retries && in_time {
            Then::Retry
        } else {
            match step.on_failure {
                OnFailure::Withhold => Then::Withhold,
                OnFailure::GoOn => Then::GoOn,
            }
        };
        let mut progress = *progress;
        let step = step.name.clone();
        self.tell(place, What::StepFailed { step: step.clone(), stage, reason, then });
        match then {
            Then::Retry => {
                progress.attempt += 1;
                progress.doing = Doing::Due(again_at);
                self.state.events[place].phase = match stage {
                    Stage::Before => Phase::Preparing(progress),
                    Stage::After => Phase::Restoring(progress),
                };
            }
            Then::GoOn => {
                self.note_failure(place, false);
                self.next_step(place);
            }
            Then::Withhold => match stage {
                Stage::Before => {
                    self.withhold(place, &step);
                    self.state.events[place].phase = Phase::Ready;
                }
                Stage::After => {
                    progress.doing = Doing::Halted;
                    self.state.events[place].phase = Phase::Restoring(progress);
                    self.tell(place, What::Stranded { step });
                }
            },
            Then::WithholdAndGoOn => {}
        }
    }

    fn restored(&mut self, place: usize, whole: bool) {
        let handled = &mut self.state.events[place];
        let told = handled.begun;
        handled.phase = Phase::Done;
        handled.begun = false;
        handled.held = false;
        if handled.replaced {
            handled.without_rule();
        }
        if told {
            self.tell(place, What::Restored { whole });
        }
    }

    /// Takes in what became of an approval.
    fn answered(&mut self, event: &EventId, answer: ApprovalAnswer) {
        let now = self.now.tick;
        let Some(place) = self.state.events.iter().position(|handled| handled.event.id == *event) else {
            return;
        };
        let handled = &mut self.state.events[place];
        let Approval::Sent { failures } = handled.approval else { return };
        let (reason, first) = match answer {
            ApprovalAnswer::Accepted => {
                handled.approval = Approval::Given;
                return self.tell(place, What::Approved);
            }
            ApprovalAnswer::Moot => {
                handled.approval = Approval::Moot;
                return self.tell(place, What::ApprovalMoot);
            }
            ApprovalAnswer::Refused { reason } => (reason, REFUSED_REST),
            ApprovalAnswer::Failed { reason } => (reason, APPROVAL_REST),
        };
        let again_in = first.saturating_mul(1 << failures.min(8)).min(APPROVAL_REST_MAX);
        handled.approval =
            Approval::Wanted { failures: failures.saturating_add(1), due: now.saturating_add(again_in) };
        self.tell(place, What::ApprovalFailed { reason, again_in });
    }
}
