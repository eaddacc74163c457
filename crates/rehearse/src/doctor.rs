//! The doctor: plays many scenarios to one handler, several side by side.

use std::collections::HashMap;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::report::Report;
use crate::scenario::Scenario;
use crate::stage::{Options, StageError, rehearse};

/// Rehearsals at a time. Most of a rehearsal is waiting; more would slow down handlers on a small machine.
pub const SIDE_BY_SIDE: usize = 10;

/// The outcome of one scenario.
pub struct Examined {
    pub scenario: String,
    pub result: Result<Report, StageError>,
}

/// Progress of an examination.
pub enum DoctorNews<'a> {
    /// The scenario of this name begins.
    Begun(&'a str),
    Done(&'a Examined),
}

/// Plays the scenarios, `side_by_side` at a time, and tells `tell` when each begins and is done. The order of the result
/// is that of the scenarios.
pub async fn examine(
    scenarios: Vec<Scenario>,
    options: &Options,
    side_by_side: usize,
    stop: watch::Receiver<bool>,
    mut tell: impl FnMut(DoctorNews<'_>),
) -> Vec<Examined> {
    let names: Vec<String> = scenarios.iter().map(|scenario| scenario.name.clone()).collect();
    // The longest first: the two minutes of a late first answer pass beside all others.
    let mut waiting: Vec<Scenario> = scenarios;
    waiting.sort_by_key(|scenario| scenario.setup().count());
    let (mut playing, mut playing_names) = (JoinSet::new(), HashMap::new());
    let mut examined = Vec::new();
    loop {
        if *stop.borrow() {
            waiting.clear();
        }
        while playing.len() < side_by_side.max(1)
            && let Some(scenario) = waiting.pop()
        {
            let (options, stop, name) = (options.clone(), stop.clone(), scenario.name.clone());
            tell(DoctorNews::Begun(&name));
            let task = playing.spawn(rehearse(scenario, options, stop));
            playing_names.insert(task.id(), name);
        }
        let Some(played) = playing.join_next_with_id().await else { break };
        let (id, result) = match played {
            Ok((id, result)) => (id, result),
            Err(error) => (error.id(), Err(StageError::Panicked(error.to_string()))),
        };
        let scenario = playing_names.remove(&id).unwrap_or_default();
        let result = result.map(|(recording, verdict)| Report::new(recording, verdict));
        let one = Examined { scenario, result };
        tell(DoctorNews::Done(&one));
        examined.push(one);
    }
    examined.sort_by_key(|one| names.iter().position(|name| *name == one.scenario));
    examined
}
