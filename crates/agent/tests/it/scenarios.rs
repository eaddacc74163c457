//! Named scenarios of the state machine.

use std::time::Duration;

use jiff::SignedDuration;
use notbefore_agent::machine::io::{ApprovalAnswer, FactKind, Input, Run, Stage, StepOutcome};
use notbefore_agent::machine::{RESERVE, RUNNING_MAX};
use notbefore_agent::rules::{
    Approve, DurationRange, Match, OnFailure, OnInterrupt, ResourceMatch, Restore, Rule, Step, StepAction,
};
use notbefore_client::document::{Event, EventId, EventKind, EventsVersion};

use crate::world::{ME, World, event, rule, seconds, step};

mod advisories;
mod ownership;
mod restarts;
mod several_events;
mod single_event;
mod steps;
mod time;

const QUARTER: Duration = Duration::from_secs(900);

fn failed() -> StepOutcome {
    StepOutcome::Failed { reason: "exit code 1".into() }
}

fn has_fact(world: &World, id: &str, what: &FactKind) -> bool {
    world.facts.contains(&(EventId::new(id), what.clone()))
}

/// A world with an announced and read event of this VM.
fn with_event(rules: Vec<Rule>, kind: EventKind, notice: Duration) -> World {
    let mut world = World::new(rules);
    world.announce("A", kind, notice);
    world.poll();
    world
}

/// Like the world above, with both steps done and the approval accepted.
fn approved(rules: Vec<Rule>, kind: EventKind) -> World {
    let mut world = with_event(rules, kind, QUARTER);
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    world.answer(ApprovalAnswer::Accepted);
    world
}
