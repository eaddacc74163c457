//! Rehearsals in one process, with a clock that the test moves. No test sleeps for the platform's time.

use std::time::Duration;

use notbefore_client::client::{Client, Options};
use notbefore_client::document::{Event, EventStatus};
use notbefore_rehearse::by_hand::{Rehearsal, Reporter};
use notbefore_rehearse::recording::{Marker, State};
use notbefore_rehearse::report::Report;
use notbefore_rehearse::scenario::Expectation;
use notbefore_rehearse::stage::StageError;
use notbefore_rehearse::verdict::Outcome;

const MINUTE: Duration = Duration::from_secs(60);
const NOTICE: Duration = Duration::from_secs(900);

/// A handler that a test drives step by step, or as a task.
struct Handler {
    client: Client,
    reporter: Reporter,
    handled: Vec<Event>,
}

impl Handler {
    fn of(rehearsal: &Rehearsal, vm: &str) -> Self {
        let client = Client::new(rehearsal.endpoint(vm).parse().unwrap(), Options::default());
        Self { client, reporter: rehearsal.reporter(vm), handled: Vec::new() }
    }

    async fn events(&self) -> Vec<Event> {
        self.client.get().await.unwrap().document.events
    }

    /// One poll: drains for new events and approves them, restores after those that are gone.
    async fn step(&mut self) {
        let events = self.events().await;
        if self.handled.iter().any(|handled| events.iter().all(|event| event.id != handled.id)) {
            self.reporter.report(Marker::Restored);
            self.handled.clear();
        }
        for event in events {
            let is_new = self.handled.iter().all(|handled| handled.id != event.id);
            if is_new && event.status == EventStatus::Scheduled {
                self.reporter.report(Marker::Drained);
                self.client.approve(&event.id).await.unwrap();
                self.handled.push(event);
            }
        }
    }
}

async fn scheduled() -> Rehearsal {
    let mut rehearsal = Rehearsal::start(["web-0"]).await.unwrap();
    rehearsal.schedule("restart", "user-restart", &["web-0"], NOTICE).await.unwrap();
    rehearsal
}

fn failures(report: &Report) -> Vec<&str> {
    let failed = report.verdict.findings.iter().filter(|finding| finding.is_failed());
    failed.map(|finding| finding.expectation.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn right_handler_passes_step_by_step() {
    let mut rehearsal = scheduled().await;
    let mut handler = Handler::of(&rehearsal, "web-0");
    handler.step().await;
    rehearsal.wait_for("restart", State::Started).await.unwrap();
    for _ in 0..60 {
        rehearsal.advance(Duration::from_secs(10)).await.unwrap();
        handler.step().await;
    }
    rehearsal.complete("restart").await.unwrap();
    handler.step().await;
    rehearsal.polls_every = Some(Duration::from_secs(10));
    let expected = [
        Expectation::drains("restart"),
        Expectation::Approves { event: "restart".into(), within: Some(MINUTE) },
        Expectation::restores("restart"),
    ];
    let report = rehearsal.judge(expected).await.unwrap();
    report.assert_passed();
    let always = ["web-0 polls at least every 10.0 s", "web-0 sends", "web-0 approves only"];
    let own = ["web-0 is drained before restart", "web-0 approves restart", "web-0 is restored"];
    for (finding, expected) in report.verdict.findings.iter().zip(always.iter().chain(&own)) {
        assert!(finding.expectation.starts_with(expected), "{finding:?}");
        assert!(matches!(finding.outcome, Outcome::Passed { .. }), "{finding:?}");
    }
    assert_eq!(report.verdict.findings.len(), always.len() + own.len());
    let restart = &report.recording.events["restart"];
    let gone_at = restart.gone_at.unwrap();
    assert!(gone_at > 10 * MINUTE && gone_at < 11 * MINUTE, "by the clock by hand: {gone_at:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn handler_that_runs_as_a_task_passes() {
    let mut rehearsal = scheduled().await;
    let mut handler = Handler::of(&rehearsal, "web-0");
    let task = tokio::spawn(async move {
        loop {
            handler.step().await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    rehearsal.wait_for("restart", State::Approved).await.unwrap();
    rehearsal.advance(10 * MINUTE).await.unwrap();
    rehearsal.complete("restart").await.unwrap();
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    rehearsal.judge([Expectation::approves("restart")]).await.unwrap().assert_passed();
}

#[tokio::test(flavor = "multi_thread")]
async fn event_that_nobody_approves_starts_at_its_not_before() {
    let mut rehearsal = scheduled().await;
    let handler = Handler::of(&rehearsal, "web-0");
    rehearsal.advance(NOTICE - Duration::from_secs(1)).await.unwrap();
    assert_eq!(handler.events().await[0].status, EventStatus::Scheduled);
    rehearsal.advance(Duration::from_secs(1)).await.unwrap();
    assert_eq!(handler.events().await[0].status, EventStatus::Started);
    rehearsal.wait_for("restart", State::Started).await.unwrap();
    rehearsal.polls_every = Some(MINUTE);
    let report = rehearsal.judge([Expectation::approves("restart")]).await.unwrap();
    assert_eq!(failures(&report), ["web-0 approves restart before it starts"]);
    let started_at = report.recording.events["restart"].started_at.unwrap();
    assert!(started_at >= NOTICE && started_at < NOTICE + Duration::from_secs(1), "{started_at:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_handlers_fail() {
    // It approves what concerns another VM, and does not poll for ten minutes.
    let mut rehearsal = Rehearsal::start(["web-0", "web-1"]).await.unwrap();
    rehearsal.schedule("other", "host-reboot", &["web-1"], NOTICE).await.unwrap();
    Handler::of(&rehearsal, "web-0").step().await;
    Handler::of(&rehearsal, "web-1").events().await;
    rehearsal.advance(10 * MINUTE).await.unwrap();
    rehearsal.polls_every = Some(MINUTE);
    let report = rehearsal.judge([Expectation::does_not_drain("other")]).await.unwrap();
    assert_eq!(
        failures(&report),
        [
            "web-0 polls at least every 60.0 s",
            "web-0 approves only events that affect it",
            "web-1 polls at least every 60.0 s",
            "web-0 is not drained for other",
        ]
    );

    // It has read that the event is gone.
    let mut rehearsal = scheduled().await;
    let handler = Handler::of(&rehearsal, "web-0");
    let event = handler.events().await.remove(0);
    rehearsal.cancel("restart").await.unwrap();
    assert_eq!(handler.events().await, []);
    // The platform refuses it.
    let _ = handler.client.approve(&event.id).await;
    let report = rehearsal.judge([]).await.unwrap();
    assert_eq!(failures(&report), ["web-0 does not approve an event that was cancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_of_the_test_are_errors() {
    let mut rehearsal = scheduled().await;
    for (refused, said) in [
        (rehearsal.cancel("restrat").await, "step 'cancel restrat' was refused: there is no event restrat"),
        (
            rehearsal.schedule("restart", "user-restart", &["web-0"], NOTICE).await,
            "an event of this name exists",
        ),
        (rehearsal.schedule("x", "reboot", &["web-0"], NOTICE).await, "there is no cause \"reboot\""),
        (rehearsal.schedule("x", "user-restart", &["web-9"], NOTICE).await, "there is no VM"),
    ] {
        let error: StageError = refused.unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}
