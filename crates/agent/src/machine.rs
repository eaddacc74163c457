//! The agent's state machine: `(state, input, now) → (state, actions)`, pure: no IO, clock or randomness.
//!
//! A [`State`] holds all that the agent remembers, with a [`TrackedEvent`] for every event. [`State::handle`] applies
//! an input and then *settles*: it advances every event until each one waits. The driver saves the state, executes
//! the actions, and calls again on the next input or at [`State::next_due`]. Deadlines are ticks of a monotonic
//! clock. The wall clock is used only to convert NotBefore into a tick, once per document, and only for the fraction
//! of a second where the platform reports its own time.
//!
//! - [`io`]: inputs and actions;
//! - [`tracked_event`]: the states of one event;
//! - `read`: applies a document;
//! - `settle`: advances an event until it waits;
//! - `attempts`: handles the end of a step's attempt;
//! - `approval`: decides on and sends approvals;
//! - `resume`: continues after a restart of the agent or a reboot of the VM.
//!
//! # Invariants
//!
//! - An event is approved only when its own steps are done; never for other VMs only, never because of another event.
//! - Every preparation is undone when its event is over, cancelled or not, and only then. While another event keeps
//!   this VM out of service, it stays out.
//! - The last document is valid until a newer one arrives. An error is not a document.

use std::time::Duration;

use notbefore_client::clock::Moment;
use notbefore_client::identity::Identity;
use serde::{Deserialize, Serialize};

use crate::rules::Rule;
use io::{Action, Fact, FactKind, Input};
use read::platform_time;
use tracked_event::{Phase, TrackedEvent};

mod approval;
mod attempts;
pub mod io;
mod read;
mod resume;
mod settle;
pub mod tracked_event;

pub use read::PREEMPT_NOTICE;
pub use settle::step_budget;

/// Time kept free before NotBefore for sending the approval and for clock error: steps end this much earlier. Kept
/// small, because up to one of Preempt's 30 seconds may pass before the event is seen.
pub const RESERVE: Duration = Duration::from_millis(500);

/// Most steps running at once over all events. A VM usually has one or two events; the limit keeps a platform that
/// announces a thousand from starting a thousand programs.
pub const RUNNING_MAX: usize = 32;

/// Configuration of the machine; changes only on reload or when the VM's name becomes known.
#[derive(Clone, Debug)]
pub struct Setup {
    pub rules: Vec<Rule>,
    /// Identifies this VM among an event's resources.
    pub me: Identity,
    /// Whether the name is confirmed by the platform or set by the operator. An unconfirmed name is a guess: the
    /// agent prepares for events of that name but approves none.
    pub sure: bool,
}

/// All that the agent remembers; the content of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Id of the current boot; none where the system has none.
    boot: Option<String>,
    next_run: u64,
    /// In order of first sight.
    events: Vec<TrackedEvent>,
    /// Whether the VM has booted and no document was read since.
    unheard_boot: bool,
    /// Tick until which, after a start, pending work waits for a document.
    resting_until: Option<Duration>,
}

impl State {
    /// An empty state. `boot` identifies the current boot; none where the system has no boot id.
    pub fn new(boot: Option<String>) -> State {
        State { boot, next_run: 1, events: Vec::new(), unheard_boot: false, resting_until: None }
    }

    /// Applies an input and returns the actions to execute. Save the state before executing them.
    pub fn handle(self, setup: &Setup, input: Input, now: Moment) -> (State, Vec<Action>) {
        let mut turn = Turn { setup, now, state: self, actions: Vec::new() };
        match input {
            Input::Document { document, served_at, version } => {
                turn.read(document, platform_time(served_at, now), version);
            }
            Input::Unchanged { served_at } => turn.anchor(platform_time(Some(served_at), now)),
            Input::Named => turn.on_renamed(),
            Input::Back => turn.send_approvals(),
            Input::Retry => {
                (0..turn.state.events.len()).for_each(|index| turn.retry_step(index));
                turn.state.events.iter_mut().for_each(|handled| handled.is_unmatched_told = false);
            }
            Input::RetryEvent { event } => turn.retry_now(&event),
            Input::StepEnded { run, outcome } => turn.ended(run, outcome),
            Input::Answered { event, answer } => turn.on_approval_answer(&event, answer),
            Input::Tick => {}
        }
        turn.settle();
        (turn.state, turn.actions)
    }

    /// The tick at which [`Input::Tick`] is due if no other input arrives before.
    pub fn next_due(&self, setup: &Setup, now: Moment) -> Option<Duration> {
        if let Some(rest) = self.resting_until {
            return Some(rest);
        }
        let due = self.events.iter().flat_map(|handled| settle::due(handled, setup));
        // Work that was due and is not done waits for another input.
        due.filter(|due| *due > now.tick).min()
    }

    /// The tick of the next NotBefore of this VM's events; None if none of them waits for one.
    pub fn next_not_before(&self) -> Option<Duration> {
        self.events.iter().filter(|handled| handled.mine).filter_map(TrackedEvent::deadline).min()
    }

    /// Whether this VM should get no new work now.
    pub fn is_draining(&self) -> bool {
        self.events.iter().any(TrackedEvent::is_draining)
    }

    /// The tracked events, in order of first sight.
    pub fn events(&self) -> &[TrackedEvent] {
        &self.events
    }
}

/// The processing of one input.
struct Turn<'a> {
    setup: &'a Setup,
    now: Moment,
    state: State,
    actions: Vec<Action>,
}

impl Turn<'_> {
    fn set(&mut self, index: usize, phase: Phase) {
        if let Some(course) = &mut self.state.events[index].course {
            course.phase = phase;
        }
    }

    fn report(&mut self, index: usize, kind: FactKind) {
        let handled = &self.state.events[index];
        let rule = handled.rule().map(|rule| rule.name.clone());
        self.actions.push(Action::Report(Box::new(Fact {
            event: handled.event.clone(),
            mine: handled.mine,
            rule,
            kind,
        })));
    }
}
