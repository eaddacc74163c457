//! Whole rehearsals with a real handler, right and with planted bugs. Each bug fails its expectation.

use std::collections::BTreeMap;
use std::time::Duration;

use notbefore_rehearse::handler::{HandlerSpec, MarkerSource};
use notbefore_rehearse::library;
use notbefore_rehearse::pace::Pace;
use notbefore_rehearse::recording::{Marker, Recording, What};
use notbefore_rehearse::scenario::{self, Scenario};
use notbefore_rehearse::stage::{Options, rehearse};
use notbefore_rehearse::verdict::{Outcome, Verdict};
use tokio::sync::watch;
use tokio::task::JoinSet;

const HANDLER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/tests/handler.py");

/// Plays a scenario of the library to the handler with a habit, or without one.
async fn verdict(scenario: &str, habit: &str) -> Verdict {
    let line = |pattern: &str| format!("line:{pattern}").parse::<MarkerSource>().unwrap();
    let markers =
        BTreeMap::from([(Marker::Drained, line("^drained")), (Marker::Restored, line("^restored"))]);
    let scenario = library::find(scenario).unwrap().unwrap();
    // Between the second fault and the end of the event, a busy machine must have time for a poll.
    let pace = Pace { compress: 300.0, floor: Duration::from_secs(10) };
    play(scenario, pace, &["python3", HANDLER, habit], markers).await.1
}

async fn play(
    scenario: Scenario,
    pace: Pace,
    command: &[&str],
    markers: BTreeMap<Marker, MarkerSource>,
) -> (Recording, Verdict) {
    let command = command.iter().map(Into::into).collect();
    let options = Options {
        pace,
        polls_every: None,
        handler: Some(HandlerSpec { command, repeat: None, markers, keeper: None }),
        uses_namespaces: false,
        watcher: None,
    };
    let (_stop, stopped) = watch::channel(false);
    rehearse(scenario, options, stopped).await.unwrap()
}

fn failures(verdict: &Verdict) -> Vec<String> {
    let failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed { .. });
    let findings = verdict.findings.iter().filter(|finding| failed(&finding.outcome));
    findings.map(|finding| finding.expectation.clone()).collect()
}

/// A scenario, a habit, and the beginning of an expectation that must fail.
const PLANTED: [(&str, &str, &str); 7] = [
    ("other-vm-only", "approves-everything", "web-0 approves only events that affect it"),
    ("other-vm-only", "ignores-resources", "web-0 is not drained for other"),
    ("server-errors", "reads-errors-as-empty", "web-0 is restored within"),
    ("user-reboot", "approves-before-draining", "web-0 is drained before restart is approved"),
    ("advisory-nothing", "takes-advice-for-eviction", "web-0 does not approve advice"),
    ("server-errors", "panics-on-status", "the handler of web-0 keeps running"),
    ("cancelled-maintenance", "approves-after-cancel", "web-0 does not approve an event that was cancelled"),
];

#[tokio::test(flavor = "multi_thread")]
async fn planted_bugs_are_found_and_a_right_handler_passes() {
    let mut playing = JoinSet::new();
    for (scenario, habit, expectation) in PLANTED {
        playing.spawn(async move {
            let failed = failures(&verdict(scenario, habit).await);
            assert!(
                failed.iter().any(|one| one.starts_with(expectation)),
                "{habit} in {scenario}: {failed:?}"
            );
        });
    }
    let scenarios: std::collections::BTreeSet<&str> =
        PLANTED.iter().map(|(scenario, _, _)| *scenario).collect();
    for scenario in scenarios {
        playing.spawn(async move {
            let verdict = verdict(scenario, "").await;
            assert!(verdict.is_passed(), "{verdict:#?}");
        });
    }
    while let Some(played) = playing.join_next().await {
        played.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn state_of_a_handler_outlives_a_reboot() {
    let text = "summary: The VM is rebooted\nvms: [web-0]\nkeeps_running: false\nrests: 1m\nsteps:\n  \
                - { at: 1s, stop_handlers: true }\n  - { at: 2s, start_handlers: true }\n";
    let scenario = scenario::parse("reboot.yaml", "reboot", text).unwrap();
    // The second run ends by itself, and the rehearsal with it.
    let handler = "echo \"known: $(ls \"$NOTBEFORE_STATE\")\"; [ ! -e \"$NOTBEFORE_STATE/journal\" ] || exit 0; \
                   touch \"$NOTBEFORE_STATE/journal\"; \
                   curl --silent --noproxy '*' \"$NOTBEFORE_ENDPOINT/metadata/scheduledevents\"; exec sleep 600";
    let pace = Pace { compress: 1.0, floor: Duration::ZERO };
    let (recording, _) = play(scenario, pace, &["sh", "-c", handler], BTreeMap::new()).await;
    let lines = recording.entries.iter().filter_map(|entry| {
        let What::Output { line } = &entry.what else { return None };
        line.starts_with("known:").then_some(line.as_str())
    });
    assert_eq!(lines.collect::<Vec<_>>(), ["known:", "known: journal"]);
}
