//! What the agent does next: `(state, input, now) → (state, actions)`, without IO, clock or randomness.

use std::time::Duration;

use notbefore_client::clock::Moment;
use notbefore_client::identity::Identity;
use serde::{Deserialize, Serialize};

use crate::rules::Rule;
use io::{Action, Input};

pub mod io;

/// What does not change while the agent runs.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The rules, in their order.
    pub rules: Vec<Rule>,
    /// Which of an event's resources is this VM.
    pub me: Identity,
}

/// All that the agent remembers. It is what the journal holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {}

impl State {
    /// Nothing is remembered. `boot` tells this boot of the VM from every other; none where the system does not say.
    pub fn new(_boot: Option<String>) -> State {
        State {}
    }

    /// Goes on with what an agent before this one remembered: steps that were begun and had not ended, a boot since
    /// then, ticks of a clock that counts anew. To be called once, before anything else.
    pub fn resume(self, _setup: &Setup, _boot: Option<String>, _now: Moment) -> (State, Vec<Action>) {
        (self, Vec::new())
    }

    /// Takes in what happened, and says what is to be done about it. The state is to be saved before that.
    pub fn handle(self, _setup: &Setup, _input: Input, _now: Moment) -> (State, Vec<Action>) {
        (self, Vec::new())
    }

    /// At which tick something is due, if nothing happens before: [`Input::Tick`] is wanted then.
    pub fn next_due(&self) -> Option<Duration> {
        None
    }

    /// Whether this VM should get no new work now.
    pub fn draining(&self) -> bool {
        false
    }
}
