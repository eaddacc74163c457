//! Whole rehearsals: what the platform does, and what becomes of a rehearsal that fails.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use notbefore_rehearse::doctor::{DoctorNews, examine};
use notbefore_rehearse::handler::{HandlerSpec, MarkerSource};
use notbefore_rehearse::library;
use notbefore_rehearse::pace::Pace;
use notbefore_rehearse::recording::{Marker, What};
use notbefore_rehearse::scenario::{Scenario, parse};
use notbefore_rehearse::stage::{Options, rehearse};
use tokio::sync::watch;

use crate::support::shell;

const HANDLER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/tests/handler.py");

fn options(handler: HandlerSpec, pace: Pace) -> Options {
    Options { pace, polls_every: None, handler: Some(handler), uses_namespaces: false, watcher: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn restart_after_an_idle_day_has_no_notice() {
    let line = |pattern: &str| format!("line:{pattern}").parse::<MarkerSource>().unwrap();
    let markers =
        BTreeMap::from([(Marker::Drained, line("^drained")), (Marker::Restored, line("^restored"))]);
    let command = ["python3", HANDLER].map(Into::into).to_vec();
    let handler = HandlerSpec { command, repeat: None, markers, keeper: None };
    let scenario = library::find("idle-day").unwrap().unwrap();
    let pace = Pace { compress: 120.0, ..Pace::default() };
    let (_stop, stopped) = watch::channel(false);
    let (recording, verdict) = rehearse(scenario, options(handler, pace), stopped).await.unwrap();
    assert!(verdict.is_passed(), "{verdict:#?}");
    let event = |name: &str| &recording.events[name];
    let [first, unannounced, second] = ["first", "unannounced", "second"].map(event);
    assert!(first.started_at > Some(first.scheduled_at), "an enabled scope gives notice");
    assert_eq!(unannounced.started_at, Some(unannounced.scheduled_at));
    // The handler comes back after it, and its first poll comes before the next event.
    let started = recording.entries.iter().filter(|entry| entry.what == What::HandlerStarted);
    let back_at = started.map(|entry| entry.at).max().unwrap();
    assert!(unannounced.gone_at.unwrap() <= back_at, "{unannounced:?}");
    let polls = recording.requests("web-0").filter(|(_, at, request)| *at >= back_at && request.is_poll());
    let (_, first_at, poll) = polls.min_by_key(|(_, at, _)| *at).unwrap();
    assert_eq!(poll.incarnation, Some(1));
    assert!(first_at < second.scheduled_at, "{first_at:?} {second:?}");
    assert_eq!(poll.shows.as_deref(), Some(&[][..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn scenario_whose_rehearsal_panics_is_not_played() {
    let scenario = |name: &str| -> Scenario {
        let text = "summary: x\nvms: [web-0]\nsteps:\n  - { at: 1s, clear_faults: true }\n";
        parse(name, name, text).unwrap()
    };
    // The handler ends at once, and each rehearsal with it.
    let mut options = options(shell("exit 0"), Pace { compress: 1.0, floor: Duration::ZERO });
    options.watcher = Some(Arc::new(|_| panic!("planted")));
    let (_stop, stopped) = watch::channel(false);
    let mut news = Vec::new();
    let tell = |one: DoctorNews<'_>| {
        news.push(match one {
            DoctorNews::Begun(name) => format!("begun {name}"),
            DoctorNews::Done(one) => format!("done {}", one.scenario),
        });
    };
    let examined = examine(vec![scenario("a"), scenario("b")], &options, 1, stopped, tell).await;
    let errors = examined.iter().map(|one| (&*one.scenario, one.result.as_ref().unwrap_err().to_string()));
    for ((name, error), expected) in errors.zip(["a", "b"]) {
        assert_eq!(name, expected);
        assert!(error.starts_with("the rehearsal has a bug: ") && error.contains("planted"), "{error}");
    }
    assert_eq!(
        (examined.len(), news),
        (2, ["begun b", "done b", "begun a", "done a"].map(String::from).to_vec())
    );
}
