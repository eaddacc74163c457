//! Scenarios that come with the program.

use crate::scenario::{Scenario, parse};

macro_rules! library {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../scenarios/", $name, ".yaml")))),*]
    };
}

/// Names and texts, in the order of `rehearse list`: ordinary events first, then hostile ones.
pub const ALL: &[(&str, &str)] = library![
    "user-reboot",
    "user-redeploy",
    "handler-restart",
    "live-migration",
    "host-maintenance",
    "redeploy",
    "degraded-hardware",
    "host-failure",
    "preempt",
    "preempt-short",
    "terminate",
    "cancelled-maintenance",
    "two-events",
    "events-at-once",
    "other-vm-only",
    "similar-names",
    "multi-vm-event",
    "update-domains",
    "approved-elsewhere",
    "longer-than-announced",
    "reboot-turns-freeze",
    "advisory-nothing",
    "advisory-preempt",
    "advisory-date",
    "version-probe",
    "late-first-answer",
    "idle-day",
    "not-found",
    "gone",
    "too-many-requests",
    "server-errors",
    "approval-errors",
    "empty-body",
    "text-plain",
    "missing-events",
    "raw-newlines",
    "slow-body",
    "connection-resets",
    "strict-header",
    "missed-incarnations",
    "vanishing-event",
    "clock-skew",
    "other-time-zone",
];

/// The scenario of this name.
pub fn find(name: &str) -> Option<Result<Scenario, String>> {
    let (name, text) = ALL.iter().find(|(known, _)| *known == name)?;
    Some(parse(&format!("{name}.yaml"), name, text))
}

/// All scenarios.
pub fn all() -> Result<Vec<Scenario>, String> {
    ALL.iter().map(|(name, text)| parse(&format!("{name}.yaml"), name, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_parses_and_every_file_is_listed() {
        let scenarios = all().unwrap();
        assert!(scenarios.iter().all(|scenario| scenario.summary.len() <= 80));
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        assert_eq!(std::fs::read_dir(directory).unwrap().count(), ALL.len());
        assert!(find("user-reboot").unwrap().is_ok() && find("user-rebot").is_none());
    }

    #[test]
    fn samples_parse() {
        let page = include_str!("../../../docs/guide/rehearse.md");
        let of_guide = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        for sample in [include_str!("../../../examples/rehearse/spot.yaml"), of_guide] {
            assert!(!parse("sample.yaml", "sample", sample).unwrap().expectations.is_empty());
        }
    }
}
