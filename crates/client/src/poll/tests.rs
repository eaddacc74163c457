//! Tests of the polling schedule: rule by rule, and with random responses.

use proptest::prelude::*;

use super::*;

const EMPTY: &str = r#"{"DocumentIncarnation":1,"Events":[]}"#;
const EVENT: &str = r#"{"DocumentIncarnation":2,"Events":[{"EventId":"a","EventStatus":"Scheduled"}]}"#;
const BAD_VERSION: &str =
    r#"{"error":"Bad request. api-version is invalid or was not specified in the request."}"#;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn answer(status: u16, body: &str) -> Result<PollResponse, Failure> {
    Ok(PollResponse {
        status,
        etag: (status == 200).then(|| "7".to_owned()),
        waited: false,
        retry_after: None,
        served_at: None,
        body: Bytes::copy_from_slice(body.as_bytes()),
    })
}

fn waited(status: u16, body: &str) -> Result<PollResponse, Failure> {
    answer(status, body).map(|answer| PollResponse { waited: true, ..answer })
}

fn failure(kind: FailureKind) -> Result<PollResponse, Failure> {
    Err(Failure::new(kind, "it failed"))
}

/// A poller with its own version state.
#[derive(Clone)]
struct PollerWithVersions {
    poller: Poller,
    versions: Versions,
}

impl PollerWithVersions {
    fn new(newest: EventsVersion) -> Self {
        PollerWithVersions { poller: Poller::default(), versions: Versions::new(newest) }
    }

    fn due(&self) -> Duration {
        self.poller.due()
    }

    fn begin(&mut self, now: Duration) -> StartedPoll {
        self.poller.begin(&mut self.versions, now)
    }

    fn answered(
        &mut self,
        begun: &StartedPoll,
        response: Result<PollResponse, Failure>,
        now: Duration,
        random: u32,
    ) -> PollOutcome {
        self.poller.answered(&mut self.versions, begun, response, now, random)
    }
}

/// Polls when due, with a response after some time. Returns the request, the outcome, and the delay until the next
/// poll.
fn round(
    poller: &mut PollerWithVersions,
    response: Result<PollResponse, Failure>,
    takes: Duration,
) -> (PollRequest, PollOutcome, Duration) {
    let at = poller.due();
    let begun = poller.begin(at);
    let outcome = poller.answered(&begun, response, at + takes, 0);
    (begun.ask, outcome, poller.due() - at - takes)
}

fn is_changed(outcome: &PollOutcome) -> bool {
    matches!(outcome, PollOutcome::Changed { .. })
}

#[test]
fn polls_once_a_second_with_etag() {
    let mut poller = PollerWithVersions::new(EventsVersion::NEWEST);
    let (ask, outcome, rest) = round(&mut poller, answer(200, EMPTY), seconds(0));
    assert_eq!((ask.if_none_match, ask.wait, ask.timeout), (None, None, FIRST_TIMEOUT));
    assert!(is_changed(&outcome));
    assert_eq!(rest, PACE);
    let (ask, outcome, rest) = round(&mut poller, answer(304, ""), Duration::from_millis(300));
    assert_eq!(ask.if_none_match.as_deref(), Some("7"));
    assert_eq!((ask.wait, ask.timeout), (Some(INITIAL_WAIT), TIMEOUT + INITIAL_WAIT));
    assert_eq!((outcome, rest), (PollOutcome::Unchanged, Duration::from_millis(700)));
    // A response slower than the rate limit is followed by the next poll at once.
    let (_, outcome, rest) = round(&mut poller, answer(200, EVENT), seconds(3));
    assert!(is_changed(&outcome));
    assert_eq!(rest, seconds(0));
}

#[test]
fn long_poll_requires_preference_applied() {
    let mut poller = PollerWithVersions::new(EventsVersion::NEWEST);
    round(&mut poller, answer(200, EMPTY), seconds(0));
    assert_eq!(round(&mut poller, waited(304, ""), seconds(5)).0.wait, Some(INITIAL_WAIT));
    let (ask, outcome, rest) = round(&mut poller, waited(200, EVENT), Duration::from_millis(10));
    assert_eq!((ask.wait, ask.timeout), (Some(WAIT), TIMEOUT + WAIT));
    assert!(is_changed(&outcome));
    assert_eq!(rest, seconds(0), "the next change is delivered at once, too");
    // An immediate 304: the server has too many waiters. The rate stays.
    let (_, _, rest) = round(&mut poller, waited(304, ""), Duration::from_millis(10));
    assert_eq!(rest, PACE - Duration::from_millis(10));
    let (_, _, rest) = round(&mut poller, answer(304, ""), Duration::from_millis(10));
    assert_eq!(rest, PACE - Duration::from_millis(10));
    assert_eq!(round(&mut poller, answer(304, ""), seconds(0)).0.wait, Some(INITIAL_WAIT));
}

#[test]
fn frequent_changes_keep_the_pace() {
    let mut poller = PollerWithVersions::new(EventsVersion::NEWEST);
    round(&mut poller, answer(200, EMPTY), seconds(0));
    let mut at = Vec::new();
    for turn in 0..40 {
        at.push(poller.due());
        round(&mut poller, waited(200, if turn % 2 == 0 { EVENT } else { EMPTY }), Duration::from_millis(1));
    }
    assert!(at[3] - at[0] < seconds(1), "{at:?}");
    assert!(at[39] - at[0] > seconds(34), "{at:?}");
}

#[test]
fn document_change_is_detected_by_content() {
    let mut poller = PollerWithVersions::new(EventsVersion::NEWEST);
    round(&mut poller, answer(200, EVENT), seconds(0));
    assert_eq!(round(&mut poller, answer(200, EVENT), seconds(0)).1, PollOutcome::Unchanged);
    // The platform reset its counter and reached the same number.
    let other = EVENT.replace("\"a\"", "\"b\"");
    assert!(is_changed(&round(&mut poller, answer(200, &other), seconds(0)).1));
    // It decreases and skips.
    assert!(is_changed(&round(&mut poller, answer(200, EMPTY), seconds(0)).1));
    assert!(is_changed(&round(&mut poller, answer(200, &EMPTY.replace('1', "9")), seconds(0)).1));
}

#[test]
fn etag_is_omitted_once_a_minute() {
    let mut poller = PollerWithVersions::new(EventsVersion::NEWEST);
    round(&mut poller, answer(200, EMPTY), seconds(0));
    let asked = (0..120).map(|_| round(&mut poller, answer(304, ""), seconds(0)).0);
    let without: Vec<usize> =
        asked.enumerate().filter(|(_, ask)| ask.if_none_match.is_none()).map(|(index, _)| index).collect();
    // The request without a tag got 304, which is a failure and drops the document.
    assert_eq!(without.first(), Some(&59));
    let mut poller = PollerWithVersions::new(EventsVersion::NEWEST);
    round(&mut poller, answer(200, EMPTY), seconds(0));
    let mut without = 0;
    for _ in 0..600 {
        let tag = poller.clone().begin(poller.due()).ask.if_none_match;
        without += u32::from(tag.is_none());
        round(&mut poller, if tag.is_some() { answer(304, "") } else { answer(200, EMPTY) }, seconds(0));
    }
    assert_eq!(without, 10);
}

#[test]
fn refresh_poll_does_not_slow_long_polls() {
    let mut poller = PollerWithVersions::new(EventsVersion::NEWEST);
    round(&mut poller, answer(200, EMPTY), seconds(0));
    for _ in 0..4 {
        round(&mut poller, waited(304, ""), WAIT);
    }
    let (ask, _, rest) = round(&mut poller, answer(200, EMPTY), Duration::from_millis(1));
    assert_eq!((ask.if_none_match, rest), (None, seconds(0)));
    assert_eq!(round(&mut poller, waited(304, ""), WAIT).0.wait, Some(WAIT));
}

#[test]
fn no_long_poll_after_failure() {
    let mut poller = PollerWithVersions::new(EventsVersion::NEWEST);
    round(&mut poller, answer(200, EMPTY), seconds(0));
    round(&mut poller, waited(304, ""), INITIAL_WAIT);
    round(&mut poller, failure(FailureKind::Broken), seconds(11));
    let (ask, outcome, rest) = round(&mut poller, answer(200, EMPTY), Duration::from_millis(1));
    assert_eq!((ask.if_none_match, ask.wait), (None, None));
    assert_eq!((outcome, rest), (PollOutcome::Unchanged, seconds(0)));
    assert_eq!(round(&mut poller, waited(304, ""), WAIT).0.wait, Some(WAIT));
}

#[test]
fn not_modified_without_a_document_is_an_error() {
    let mut poller = PollerWithVersions::new(EventsVersion::NEWEST);
    let (_, outcome, _) = round(&mut poller, answer(304, ""), seconds(0));
    assert!(
        matches!(outcome, PollOutcome::Failed(Failure { kind: FailureKind::Status(304), .. })),
        "{outcome:?}"
    );
    // A document without a tag is requested without one.
    let no_tag = answer(200, EMPTY).map(|answer| PollResponse { etag: None, ..answer });
    round(&mut poller, no_tag, seconds(0));
    let (ask, outcome, _) = round(&mut poller, answer(304, ""), seconds(0));
    assert_eq!((ask.if_none_match, ask.wait), (None, None));
    assert!(matches!(outcome, PollOutcome::Failed(_)));
}

#[test]
fn invalid_document_is_a_failure() {
    for body in ["", "<html>", "{}", r#"{"Events":null}"#] {
        let mut poller = PollerWithVersions::new(EventsVersion::NEWEST);
        let (_, outcome, _) = round(&mut poller, answer(200, body), seconds(0));
        assert!(
            matches!(outcome, PollOutcome::Failed(Failure { kind: FailureKind::Unreadable, .. })),
            "{body}"
        );
    }
}

#[test]
fn failures_back_off_with_jitter_until_success() {
    let mut poller = PollerWithVersions::new(EventsVersion::DOCUMENTED);
    for (status, least) in [(410, 1), (429, 2), (500, 4), (503, 8), (403, 8), (404, 8), (302, 8)] {
        let mut lucky = poller.clone();
        let at = poller.due();
        let begun = poller.begin(at);
        lucky.begin(at);
        poller.answered(&begun, answer(status, "no"), at, 0);
        lucky.answered(&begun, answer(status, "no"), at, u32::MAX);
        assert_eq!(poller.due() - at, seconds(least), "{status}");
        assert_eq!(lucky.due() - at, seconds(least) * 3 / 2, "{status}");
    }
    round(&mut poller, answer(200, EMPTY), seconds(0));
    assert_eq!(round(&mut poller, failure(FailureKind::Unreachable), seconds(0)).2, seconds(1));
}

#[test]
fn retry_after_is_honoured_up_to_a_minute() {
    for (said, rest) in [(0, 1), (7, 7), (60, 60), (3_600, 60)] {
        let mut poller = PollerWithVersions::new(EventsVersion::NEWEST);
        let busy = answer(429, "").map(|answer| PollResponse { retry_after: Some(seconds(said)), ..answer });
        assert_eq!(round(&mut poller, busy, seconds(0)).2, seconds(rest), "{said}");
    }
}

#[test]
fn timeout_extends_next_timeout_without_backoff() {
    let mut poller = PollerWithVersions::new(EventsVersion::NEWEST);
    assert_eq!(round(&mut poller, failure(FailureKind::TimedOut), FIRST_TIMEOUT).0.timeout, FIRST_TIMEOUT);
    assert_eq!(round(&mut poller, answer(200, EMPTY), seconds(100)).0.timeout, FIRST_TIMEOUT);
    let mut timeouts = Vec::new();
    for _ in 0..6 {
        let (ask, _, rest) = round(&mut poller, failure(FailureKind::TimedOut), seconds(0));
        timeouts.push((ask.timeout - ask.wait.unwrap_or_default()).as_secs());
        assert_eq!(rest, PACE, "it has rested while it waited");
    }
    assert_eq!(timeouts, [10, 20, 20, 20, 20, 20]);
    round(&mut poller, answer(503, ""), seconds(0));
    let (ask, _, _) = round(&mut poller, answer(304, ""), seconds(0));
    assert_eq!(ask.timeout - ask.wait.unwrap_or_default(), TIMEOUT);
}

#[test]
fn version_refusal_falls_back_stepwise() {
    // The list is that of the instance metadata, not of this document.
    let general = r#"{"error":"api-version","newest-versions":["2018-02-01","2017-12-01","2017-08-01"]}"#;
    let not_found = "{ \"error\": \"Not found. Invalid version requested\" }";
    let mut poller = PollerWithVersions::new(EventsVersion::DOCUMENTED);
    for (status, body) in
        [(400, "Your browser's version"), (404, "{\"error\":\"Not found\"}"), (500, BAD_VERSION)]
    {
        let (_, outcome, _) = round(&mut poller, answer(status, body), seconds(0));
        assert!(matches!(outcome, PollOutcome::Failed(_)), "{body}");
        assert_eq!(poller.clone().begin(poller.due()).ask.version, EventsVersion::DOCUMENTED);
    }
    let mut versions =
        EventsVersion::ALL.into_iter().rev().filter(|version| *version <= EventsVersion::DOCUMENTED);
    let mut refused = versions.next().unwrap();
    for ((status, body), next) in
        [(400, BAD_VERSION), (400, general), (404, not_found)].into_iter().zip(versions)
    {
        let (ask, outcome, rest) = round(&mut poller, answer(status, body), seconds(0));
        assert_eq!(ask.version, refused);
        assert_eq!((outcome, rest), (PollOutcome::OtherVersion { refused, next }, PACE), "{body}");
        refused = next;
    }
    // Failures in between do not restart the negotiation.
    round(&mut poller, answer(503, ""), seconds(0));
    assert_eq!(round(&mut poller, answer(200, EMPTY), seconds(0)).0.version, refused);
}

/// The platform is being updated and temporarily refuses versions that it supports.
#[test]
fn transient_version_refusal_recovers_quickly() {
    let mut poller = PollerWithVersions::new(EventsVersion::NEWEST);
    round(&mut poller, answer(200, EMPTY), seconds(0));
    for _ in 0..6 {
        round(&mut poller, answer(400, BAD_VERSION), seconds(0));
    }
    let (ask, outcome, _) = round(&mut poller, answer(200, EMPTY), seconds(0));
    assert!(ask.version < EventsVersion::V2017_11_01 && is_changed(&outcome), "{ask:?}");
    let down_at = poller.due();
    while round(&mut poller, answer(200, EMPTY), seconds(0)).0.version < EventsVersion::NEWEST {
        assert!(poller.due() - down_at < RETRY_INTERVAL + seconds(2));
    }
    assert_eq!(round(&mut poller, answer(304, ""), seconds(0)).0.version, EventsVersion::NEWEST);
}

#[test]
fn all_versions_refused_starts_over() {
    let mut poller = PollerWithVersions::new(EventsVersion::NEWEST);
    let mut asked = Vec::new();
    for turn in 0..9 {
        let (ask, outcome, _) = round(&mut poller, answer(400, BAD_VERSION), seconds(0));
        assert_eq!(matches!(outcome, PollOutcome::Failed(_)), turn == 7, "{turn}");
        asked.push(ask.version);
    }
    let mut expected: Vec<_> = EventsVersion::ALL.into_iter().rev().collect();
    expected.push(EventsVersion::NEWEST);
    assert_eq!(asked, expected);
}

#[test]
fn hourly_version_probe_keeps_old_etag() {
    let mut poller = PollerWithVersions::new(EventsVersion::NEWEST);
    round(&mut poller, answer(400, BAD_VERSION), seconds(0));
    round(&mut poller, answer(400, BAD_VERSION), seconds(0));
    let works = EventsVersion::V2019_08_01;
    let mut raised = Vec::new();
    let mut polls = 0;
    let mut began = None;
    while raised.len() < 3 {
        let at = poller.due();
        polls += 1;
        assert!(polls < 4 * 3_600, "three times within as many hours");
        let begun = poller.begin(at);
        let ask = &begun.ask;
        let response = match (ask.version == works, ask.if_none_match.is_some()) {
            (false, tag) => {
                assert!(!tag, "the tag is the other version's");
                raised.push(at - *began.get_or_insert(at));
                answer(400, BAD_VERSION)
            }
            (true, true) => answer(304, ""),
            (true, false) => answer(200, EMPTY),
        };
        let outcome = poller.answered(&begun, response, at, 0);
        if ask.version != works {
            // Straight back to the version that worked; its document is still current.
            assert_eq!(outcome, PollOutcome::OtherVersion { refused: EventsVersion::NEWEST, next: works });
        }
    }
    assert!(raised[1] >= RAISE_INTERVAL && raised[1] < RAISE_INTERVAL + seconds(3), "{raised:?}");
    assert!(raised[2] - raised[1] >= RAISE_INTERVAL, "{raised:?}");
    // The platform supports it now.
    loop {
        polls += 1;
        assert!(polls < 5 * 3_600, "once more within another hour");
        let (ask, outcome, _) = round(&mut poller, answer(200, EMPTY), seconds(0));
        if ask.version == EventsVersion::NEWEST {
            assert!(is_changed(&outcome));
            break;
        }
    }
    assert_eq!(round(&mut poller, answer(304, ""), seconds(0)).0.version, EventsVersion::NEWEST);
}

#[test]
fn documentation_matches_constants() {
    let page = include_str!("../../../../docs/guide/rust-client.md");
    for (phrase, number) in [
        ("at most {} poll a second", PACE),
        ("and waits {} s", WAIT),
        ("| first answer | within {} s", FIRST_TIMEOUT),
        ("| later answers | within {} s", TIMEOUT),
        ("after a timeout {} s", SLOW_TIMEOUT),
        ("is tried again after {} s", RETRY_INTERVAL),
        ("| requests without a tag | once in {} s", REFRESH),
        ("then {} s, and up to half of that more", BACKOFF_MAX),
        ("honoured up to {} s", RETRY_AFTER_MAX),
        ("one, kept open; {} s to connect", crate::http::CONNECT_TIME_MAX),
        ("is asked again for {} s", crate::discovery::BUSY_TIME_MAX),
    ] {
        let text = phrase.replace("{}", &number.as_secs().to_string());
        assert!(page.contains(&text), "{text}");
    }
    assert_eq!(RAISE_INTERVAL, seconds(3_600), "every hour");
}

fn any_answer() -> impl Strategy<Value = Result<PollResponse, Failure>> {
    let kinds =
        prop_oneof![Just(FailureKind::Unreachable), Just(FailureKind::TimedOut), Just(FailureKind::Broken)];
    let answered = (
        prop_oneof![4 => Just(200_u16), 4 => Just(304), 1 => Just(400), 1 => 100_u16..600],
        prop_oneof![Just(EMPTY), Just(EVENT), Just(BAD_VERSION), Just(""), Just("<html>")],
        any::<bool>(),
        proptest::option::of(0_u64..100_000),
        proptest::option::of("[0-9]{1,2}"),
    );
    let answered = answered.prop_map(|(status, body, waited, retry_after, etag)| {
        let retry_after = retry_after.map(seconds);
        answer(status, body).map(|answer| PollResponse { waited, retry_after, etag, ..answer })
    });
    prop_oneof![1 => kinds.prop_map(failure), 5 => answered]
}

proptest! {
    /// For any responses and delays: the rate limit holds, no delay exceeds its limit, no error counts as a document,
    /// and every valid 200 counts.
    #[test]
    fn invariants_hold_for_random_responses(answers in prop::collection::vec((any_answer(), 0_u64..40_000, any::<u32>()), 1..80)) {
        let mut poller = PollerWithVersions::new(EventsVersion::NEWEST);
        let mut began: Vec<Duration> = Vec::new();
        let (mut granted, mut read) = (false, false);
        for (response, takes, random) in answers {
            let at = poller.due();
            // Without long polls never two within a second; with them at most a few ahead.
            if let Some(last) = began.last() {
                prop_assert!(granted || at - *last >= PACE);
            }
            if began.len() > AHEAD_OF_PACE_MAX as usize + 1 {
                let before = began[began.len() - AHEAD_OF_PACE_MAX as usize - 1];
                prop_assert!(at >= before + PACE, "{began:?} {at:?}");
            }
            began.push(at);
            let begun = poller.begin(at);
            let ask = begun.ask.clone();
            let patience = if read { SLOW_TIMEOUT } else { FIRST_TIMEOUT };
            prop_assert!(ask.timeout <= patience + ask.wait.unwrap_or_default());
            prop_assert_eq!(ask.wait.is_some(), ask.if_none_match.is_some());
            let now = at + Duration::from_millis(takes);
            let expected = response.as_ref().ok().filter(|answer| answer.status == 200);
            let expected = expected.and_then(|answer| Document::read(&answer.body, ask.version).ok());
            read |= expected.is_some();
            granted |= response.as_ref().is_ok_and(|answer| answer.waited);
            let outcome = poller.answered(&begun, response.clone(), now, random);
            prop_assert!(poller.due() <= now + RETRY_AFTER_MAX + BACKOFF_MAX);
            match outcome {
                PollOutcome::Changed { document, version, .. } => {
                    prop_assert_eq!(Some(document), expected);
                    prop_assert_eq!(version, ask.version);
                }
                PollOutcome::Unchanged => prop_assert!(expected.is_some() || (ask.if_none_match.is_some() && response.is_ok_and(|answer| answer.status == 304))),
                PollOutcome::OtherVersion { refused, next } => prop_assert!(next < refused && expected.is_none()),
                PollOutcome::Failed(_) => prop_assert!(expected.is_none()),
            }
        }
    }
}
