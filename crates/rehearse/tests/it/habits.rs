//! Whole rehearsals with a real handler, right and with planted bugs. Each bug fails its expectation, in a test of its own.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{LazyLock, Mutex};
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

/// Tests of whole rehearsals: the scenario, the handler's habit, and the beginning of an expectation that must fail. A
/// right handler has none.
macro_rules! rehearsals {
    ($($name:ident: $scenario:literal, $habit:literal => $failure:expr;)*) => {
        const REHEARSALS: &[Rehearsal] = &[$(($scenario, $habit)),*];

        $(
            #[test]
            fn $name() {
                check(($scenario, $habit), $failure);
            }
        )*
    };
}

/// A scenario and a habit.
type Rehearsal = (&'static str, &'static str);

/// Verdicts by rehearsal. All are played side by side, because each has half a minute of waits.
static PLAYED: LazyLock<BTreeMap<Rehearsal, Mutex<Receiver<Verdict>>>> = LazyLock::new(|| {
    let (mut playing, mut played) = (Vec::new(), BTreeMap::new());
    for &(scenario, habit) in REHEARSALS {
        let (sender, receiver) = channel();
        // Fails if the test has failed.
        playing.push(async move { _ = sender.send(verdict(scenario, habit).await) });
        assert!(played.insert((scenario, habit), Mutex::new(receiver)).is_none(), "{scenario} {habit}");
    }
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut playing: JoinSet<()> = playing.into_iter().collect();
            while playing.join_next().await.is_some() {}
        });
    });
    played
});

fn check(rehearsal: Rehearsal, failure: impl Into<Option<&'static str>>) {
    // An error: the rehearsal panicked, and its message is above.
    let verdict = PLAYED[&rehearsal].lock().unwrap().recv().unwrap();
    match failure.into() {
        Some(failure) => {
            assert!(failures(&verdict).iter().any(|one| one.starts_with(failure)), "{verdict:#?}");
        }
        None => assert!(verdict.is_passed(), "{verdict:#?}"),
    }
}

rehearsals! {
    approves_everything: "other-vm-only", "approves-everything" => "web-0 approves only events that affect it";
    ignores_resources: "other-vm-only", "ignores-resources" => "web-0 is not drained for other";
    reads_errors_as_empty: "server-errors", "reads-errors-as-empty" => "web-0 is restored within";
    approves_before_draining: "user-reboot", "approves-before-draining" => "web-0 is drained before restart is approved";
    drains_with_the_answer: "user-reboot", "drains-with-the-answer" => "web-0 is drained before restart is approved";
    takes_advice_for_eviction: "advisory-nothing", "takes-advice-for-eviction" => "web-0 does not approve advice";
    stays_drained_after_advice: "advisory-nothing", "stays-drained-after-advice" => "web-0 is restored within";
    panics_on_status: "server-errors", "panics-on-status" => "the handler of web-0 keeps running";
    approves_after_cancel: "cancelled-maintenance", "approves-after-cancel" => "web-0 does not approve an event that was cancelled";
    approves_once: "approval-errors", "approves-once" => "web-0 approves restart before it starts";
    approves_what_is_gone: "user-reboot", "approves-what-is-gone" => "web-0 does not approve an event that its last document does not list";
    matches_substrings: "similar-names", "matches-substrings" => "web-1 approves only events that affect it";
    never_waits: "user-reboot", "never-waits" => "web-0 polls at most 5 times a second";
    approves_the_first: "events-at-once", "approves-the-first" => "web-0 approves restart before it starts";
    approves_the_last: "events-at-once", "approves-the-last" => "web-0 approves freeze before it starts";
    drains_when_started: "host-failure", "drains-when-started" => "web-0 is restored within";
    reads_utc_as_local_time: "other-time-zone", "reads-utc-as-local-time" => "web-0 approves restart before it starts";
    right_in_approval_errors: "approval-errors", "" => None;
    right_in_similar_names: "similar-names", "" => None;
    right_in_events_at_once: "events-at-once", "" => None;
    right_in_host_failure: "host-failure", "" => None;
    right_in_other_time_zone: "other-time-zone", "" => None;
    right_in_other_vm_only: "other-vm-only", "" => None;
    right_in_server_errors: "server-errors", "" => None;
    right_in_user_reboot: "user-reboot", "" => None;
    right_in_advisory_nothing: "advisory-nothing", "" => None;
    right_in_cancelled_maintenance: "cancelled-maintenance", "" => None;
    right_in_vanishing_event: "vanishing-event", "" => None;
    right_in_two_events: "two-events", "" => None;
    // It drains on advice and stays drained for the eviction.
    right_on_advice: "advisory-preempt", "drains-on-advice" => None;
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
