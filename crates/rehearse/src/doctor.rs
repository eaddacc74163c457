//! The doctor: plays many scenarios to one handler, several side by side.

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

/// Plays the scenarios, `side_by_side` at a time, and reports each when it is done. The order of the result is that of
/// the scenarios.
pub async fn examine(
    scenarios: Vec<Scenario>,
    options: &Options,
    side_by_side: usize,
    stop: watch::Receiver<bool>,
    mut report: impl FnMut(&Examined),
) -> Vec<Examined> {
    let names: Vec<String> = scenarios.iter().map(|scenario| scenario.name.clone()).collect();
    // The longest first: the two minutes of a late first answer pass beside all others.
    let mut waiting: Vec<Scenario> = scenarios;
    waiting.sort_by_key(|scenario| scenario.setup().count());
    let (mut playing, mut examined) = (JoinSet::new(), Vec::new());
    loop {
        if *stop.borrow() {
            waiting.clear();
        }
        while playing.len() < side_by_side.max(1)
            && let Some(scenario) = waiting.pop()
        {
            let (options, stop, name) = (options.clone(), stop.clone(), scenario.name.clone());
            playing.spawn(async move {
                let result = rehearse(scenario, options, stop).await;
                Examined {
                    scenario: name,
                    result: result.map(|(recording, verdict)| Report::new(recording, verdict)),
                }
            });
        }
        match playing.join_next().await {
            None => break,
            // A rehearsal does not panic; if one does, its scenario is missing.
            Some(Err(_)) => {}
            Some(Ok(one)) => {
                report(&one);
                examined.push(one);
            }
        }
    }
    examined.sort_by_key(|one| names.iter().position(|name| *name == one.scenario));
    examined
}
