//! What the agent does next: `(state, input, now) → (state, actions)`, without IO, clock or randomness.
//!
//! A [`State`] is all that the agent remembers, a [`TrackedEvent`] for every event. [`State::handle`] takes in what happened
//! and then *settles*: it goes on with every event until there is nothing left to do but wait. Whoever drives the
//! machine saves the state, does what the actions say, and comes back when something has happened or at
//! [`State::next_due`]. Deadlines are in ticks of a clock that nobody can set; the wall clock only says, once for
//! every document, how far away NotBefore is, and less than a second of that where the platform told its own time.
//!
//! - [`io`]: what the machine is told and what it wants done;
//! - [`handled`]: one event's way;
//! - `read`: what a document says of it;
//! - `settle`: how it goes on;
//! - `attempts`: how it goes on after an attempt at a step;
//! - `approval`: whether it is approved;
//! - `resume`: how it goes on after the agent, or the VM, has been started again;
//! - [`format_2`]: the state as an older journal has it.
//!
//! # What is kept to, whatever happens
//!
//! - An event is approved only when its own steps are done; never for other VMs only, never because of another event.
//! - What was begun is undone when the event is over, cancelled or not, and only then; while another event keeps this
//!   VM out of service, it stays out.
//! - The last document is believed until there is another. An error is no document.

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
pub mod format_2;
pub mod io;
mod read;
mod resume;
mod settle;
pub mod tracked_event;

pub use read::PREEMPT_NOTICE;
pub use settle::step_budget;

/// What is left of the notice for the approval itself, and for a slow clock: the steps end so long before NotBefore.
/// Of the 30 seconds of Preempt a second may be gone before the event is seen, so it cannot be much.
pub const RESERVE: Duration = Duration::from_millis(500);

/// How many steps run at once, of however many events. A VM has one or two; a platform that announces a thousand shall not
/// have it start a thousand programs.
pub const RUNNING_MAX: usize = 32;

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
    /// This boot of the VM; none where the system does not tell boots apart.
    boot: Option<String>,
    next_run: u64,
    /// In the order in which they were first seen.
    events: Vec<TrackedEvent>,
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
            Input::Named => turn.on_renamed(),
            Input::Back => turn.send_approvals(),
            Input::Retry => (0..turn.state.events.len()).for_each(|index| turn.retry_step(index)),
            Input::StepEnded { run, outcome } => turn.ended(run, outcome),
            Input::Answered { event, answer } => turn.on_approval_answer(&event, answer),
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
    pub fn is_draining(&self) -> bool {
        self.events.iter().any(TrackedEvent::is_draining)
    }

    /// The events that it knows of, in the order in which they were first seen.
    pub fn events(&self) -> &[TrackedEvent] {
        &self.events
    }
}

/// One input's worth of work.
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
        self.actions.push(Action::Report(Box::new(Fact { event: handled.event.clone(), rule, kind })));
    }
}
