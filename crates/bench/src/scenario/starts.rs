//! A hundred thousand events due within a minute, on whole seconds: none may be seen as Started early, and all must
//! be soon after.
//!
//! Guests poll, because their view counts. A sample of each second's events is watched, from shortly before NotBefore
//! until Started is read; the interval between a guest's polls is part of the result. For the other events, the
//! operator listener reports the start times.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use hdrhistogram::Histogram;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Bench;
use super::schedule::years_from_now;
use crate::clock;
use crate::fleet::{Callers, Fleet};
use crate::http::{self, Answer};
use crate::load::generator::Generator;
use crate::load::{Arrivals, Traffic, Use, guests};
use crate::random::Random;
use crate::report::{Goal, digits};
use crate::schedules::{Announcement, announce};
use crate::service::{POLL, Rate, Service};

/// Watched events per second.
const WATCHED_A_SECOND: usize = 50;

/// Most polls a second, over all watchers.
const POLLS_A_SECOND: f64 = 10_000.0;

/// Minimum interval between two polls of a guest.
const BETWEEN: SignedDuration = SignedDuration::from_millis(4);

/// Sample that measures the rate of scheduling, so that all events are scheduled in time.
const PROBE: usize = 2_000;

/// How long before NotBefore the watch starts, to detect early starts.
const BEFORE: SignedDuration = SignedDuration::from_millis(200);

/// Guests that wait for their event to start.
struct Watch {
    /// By second: guests that have not seen it yet.
    unseen: Vec<Vec<usize>>,
    begin: Timestamp,
    request: Vec<u8>,
    /// By guest: time of the last poll, and whether it is in flight.
    sent: Vec<(Timestamp, bool)>,
    turn: usize,
    early: u64,
    latency: Histogram<u64>,
}

impl Watch {
    fn not_before(&self, second: usize) -> Timestamp {
        self.begin + SignedDuration::from_secs(second as i64)
    }

    /// The second of a guest's event; guests connect in order of seconds.
    fn second_of(connection: usize) -> usize {
        connection / WATCHED_A_SECOND
    }
}

impl Traffic for Watch {
    fn pick(&mut self, _random: &mut Random, _connections: usize) -> Option<usize> {
        let now = clock::wall();
        // Round-robin over the due guests.
        let coming = (now + BEFORE).as_second() - self.begin.as_second();
        let latest = usize::try_from(coming).ok()?.min(self.unseen.len() - 1);
        let earliest = latest.saturating_sub(30);
        let waiting: usize = (earliest..=latest).map(|second| self.unseen[second].len()).sum();
        self.turn = (self.turn + 1) % waiting.max(1);
        let guest = *(earliest..=latest).flat_map(|second| &self.unseen[second]).nth(self.turn)?;
        let (sent_at, waits) = self.sent[guest];
        (!waits && now.duration_since(sent_at) >= BETWEEN).then_some(guest)
    }

    fn request(&mut self, connection: usize, out: &mut Vec<u8>) {
        self.sent[connection] = (clock::wall(), true);
        out.extend_from_slice(&self.request);
    }

    fn answered(&mut self, connection: usize, answer: &Answer<'_>, _at: Instant) -> anyhow::Result<()> {
        let seen_at = clock::wall();
        self.sent[connection].1 = false;
        let started = br#""EventStatus":"Started""#;
        if !answer.body.windows(started.len()).any(|part| part == started) {
            return Ok(());
        }
        let second = Self::second_of(connection);
        let Some(place) = self.unseen[second].iter().position(|guest| *guest == connection) else {
            return Ok(());
        };
        self.unseen[second].swap_remove(place);
        let late = seen_at.duration_since(self.not_before(second));
        if late.is_negative() {
            self.early += 1;
        }
        self.latency.saturating_record(late.as_micros().max(1) as u64);
        Ok(())
    }
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let seconds = if bench.quick { 10 } else { 60 };
    let count = if bench.quick { 20_000 } else { 100_000 };
    let data = bench.directory("starts")?.join("data");
    let fleet = Fleet { scopes: count + PROBE, per_scope: 1, callers: Callers::All };
    fleet.import(&bench.binary, &data)?;
    let service = Service::start_anywhere(&bench.binary, &data, Rate::Unlimited, &["--notice", "0.0001"])?;
    let announcement = |n: usize, not_before| Announcement {
        vm: fleet.first_vm(n),
        address: guests::address(n),
        not_before,
    };
    let probe: Vec<Announcement> =
        (count..count + PROBE).map(|n| announcement(n, years_from_now())).collect();
    let (outcome, _) = announce(&service, &probe, None)?;
    let rate = outcome.answers() as f64 / outcome.seconds;
    let needed = Duration::from_secs_f64(count as f64 / rate * 2.0 + 10.0);
    let begin = Timestamp::from_second((clock::wall() + needed).as_second() + 1)?;
    bench.progress(&format!(
        "announcing {count} events at some {}/s, the first due in {} s",
        digits(rate),
        needed.as_secs()
    ));

    // Scheduled in another order than due.
    let per_second = count / seconds;
    let second = |n: usize| (n / per_second).min(seconds - 1);
    let due = |n: usize| begin + SignedDuration::from_secs(second(n) as i64);
    let mut order: Vec<usize> = (0..count).collect();
    let mut random = Random::new(3);
    for at in (1..count).rev() {
        order.swap(at, random.below(at + 1));
    }
    let all: Vec<Announcement> = order.iter().map(|&n| announcement(n, due(n))).collect();
    announce(&service, &all, None)?;
    let left = begin.duration_since(clock::wall());
    anyhow::ensure!(
        left.is_positive(),
        "announcing took until the first events were due; the machine is too slow"
    );
    bench.progress(&format!("announced, {} s before the first is due", left.as_secs()));

    // A sample spread over each second's events, independent of the service's order.
    let mut generator = Generator::new(service.guest, Use::KeepAlive)?;
    let sample = |second: usize| {
        (0..WATCHED_A_SECOND).map(move |one| second * per_second + one * per_second / WATCHED_A_SECOND)
    };
    generator.add((0..seconds).flat_map(sample))?;
    let mut watch = Watch {
        unseen: (0..seconds)
            .map(|at| (at * WATCHED_A_SECOND..(at + 1) * WATCHED_A_SECOND).collect())
            .collect(),
        begin,
        request: http::request("GET", POLL, "Metadata: true\r\n", "").into_bytes(),
        sent: vec![(Timestamp::UNIX_EPOCH, false); seconds * WATCHED_A_SECOND],
        turn: 0,
        early: 0,
        latency: Histogram::new_with_max(600_000_000, 3)?,
    };
    let quiet = begin.duration_since(clock::wall()) - SignedDuration::from_secs(1);
    clock::pause(quiet.try_into().unwrap_or_default());
    bench.progress("watching");
    let span = Duration::from_secs(seconds as u64 + 6);
    let outcome = generator.run(Arrivals::Open { rate: POLLS_A_SECOND }, span, &mut watch)?;
    outcome.only(200)?;
    let unseen: usize = watch.unseen.iter().map(Vec::len).sum();
    anyhow::ensure!(unseen == 0, "{unseen} of the watched events were not seen as Started");

    let (early, worst) = reported_starts(&service, &fleet, count, due)?;
    let p99 = watch.latency.value_at_percentile(99.0) as f64 / 1000.0;
    let median = watch.latency.value_at_percentile(50.0) as f64 / 1000.0;
    let early = watch.early + early;
    bench.measured(
        &format!("events started early, of {count}"),
        "",
        &[early as f64],
        Goal::at_most(0.0, 0.0),
    );
    bench.measured("from NotBefore to Started at a guest, median", "ms", &[median], None);
    bench.measured("from NotBefore to Started at a guest, p99", "ms", &[p99], Goal::at_most(250.0, 50.0));
    bench.measured("from NotBefore to started_at, maximum", "ms", &[worst], None);
    bench.measured("latency of these polls, p99", "ms", &[outcome.milliseconds(99.0)], None);
    Ok(())
}

/// Number of early starts, and the largest delay in milliseconds, as reported by the service.
fn reported_starts(
    service: &Service,
    fleet: &Fleet,
    count: usize,
    due: impl Fn(usize) -> Timestamp,
) -> anyhow::Result<(u64, f64)> {
    let due: HashMap<String, Timestamp> =
        (0..count).map(|n| (fleet.first_vm(n).to_string(), due(n))).collect();
    let mut operator = service.operator()?;
    let (mut early, mut worst, mut reported, mut cursor) = (0, 0.0_f64, 0, String::new());
    loop {
        let target = format!("/v1/events?status=Started&limit=1000{cursor}");
        let page: Value = operator.request("GET", &target, "")?.json()?;
        for event in page["items"].as_array().context("a page without items")? {
            let vm = event["resources"][0]["vm"].as_str().unwrap_or_default();
            let Some(due) = due.get(vm) else { continue };
            let started: Timestamp = event["started_at"].as_str().context("no started_at")?.parse()?;
            let late = started.duration_since(*due);
            early += u64::from(late.is_negative());
            worst = worst.max(late.as_secs_f64() * 1e3);
            reported += 1;
        }
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    anyhow::ensure!(reported > 0, "the operator listener lists no started event");
    Ok((early, worst))
}
