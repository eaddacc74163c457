//! Whether the platform kept up with the polls of the rehearsal itself. These polls are counted, not recorded, so a
//! failure has numbers and cites no entries.

use std::time::Duration;

use super::{failed, not_judged, passed, seconds};
use crate::recording::CrowdSummary;
use crate::scenario::{Action, Scenario};
use crate::verdict::Finding;

/// Least answers, in percent of one for each VM and second: a busy machine has pauses.
const ANSWERS_PERCENT_MIN: u64 = 80;
/// Longest time to an answer. Handlers give up on a request after five seconds or more.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// The first polls are spread over so much time.
const SPREAD: Duration = Duration::from_secs(1);

pub(super) fn judge(scenario: &Scenario, crowd: &CrowdSummary) -> Finding {
    let expectation =
        format!("the platform answers {} VMs once a second, each within {}", crowd.vms, seconds(ANSWER_MAX));
    let polled = crowd.polled_for.saturating_sub(SPREAD);
    let expected = polled.as_millis() * crowd.vms as u128 / 1_000;
    let expected = u64::try_from(expected).unwrap_or(u64::MAX);
    let note = format!(
        "{} answers in {}, slowest {}",
        crowd.answers,
        seconds(crowd.polled_for),
        seconds(crowd.slowest)
    );
    if has_faults(scenario) {
        return not_judged(expectation, format!("faults of the scenario affect these polls; {note}"));
    }
    let why = if crowd.failures > 0 {
        format!("{} polls were not answered; {note}", crowd.failures)
    } else if crowd.answers.saturating_mul(100) < expected.saturating_mul(ANSWERS_PERCENT_MIN) {
        format!("{note}; {ANSWERS_PERCENT_MIN} % of {expected} are needed")
    } else if crowd.slowest > ANSWER_MAX {
        note
    } else {
        return passed(expectation, note);
    };
    failed(expectation, why, "close other programs on this machine, or use fewer VMs", Vec::new())
}

/// Whether a fault affects VMs that the rehearsal polls.
fn has_faults(scenario: &Scenario) -> bool {
    let is_polled = |name: &String| scenario.vms.iter().any(|vm| vm.is_polled && vm.name == *name);
    scenario.steps.iter().any(|step| {
        let Action::AddFault(fault) = &step.action else { return false };
        fault.vm.as_ref().is_none_or(is_polled)
    })
}
