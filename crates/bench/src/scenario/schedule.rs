//! Durable changes a second relative to the disk's fsync rate: how well concurrent requests share a sync (group
//! commit).

use std::time::Duration;

use jiff::Timestamp;

use super::Bench;
use crate::disk;
use crate::fleet::{Callers, Fleet};
use crate::load::guests;
use crate::report::{Goal, digits};
use crate::schedules::{Announcement, announce};
use crate::service::{Rate, Service};
use crate::usage;

/// Events per round, each in its own scope.
const PER_ROUND: usize = 4_000;

/// Number of acknowledgements between two verifications by a poll.
const VERIFY_EVERY: usize = 40;

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let dir = bench.directory("schedule")?;
    let data = dir.join("data");
    let fleet = Fleet { scopes: PER_ROUND * (bench.rounds() + 1), per_scope: 1, callers: Callers::All };
    fleet.import(&bench.binary, &data)?;
    let service = Service::start_anywhere(&bench.binary, &data, Rate::Unlimited, &[])?;
    let announcement = |n: usize| Announcement {
        vm: fleet.first_vm(n),
        address: guests::address(n),
        not_before: years_from_now(),
    };
    let all: Vec<Announcement> = (0..fleet.scopes).map(announcement).collect();
    let mut parts = all.chunks(PER_ROUND);
    if let Some(first) = parts.next() {
        announce(&service, first, None)?;
    }
    let (mut rates, mut syncs, mut ratios, mut verified) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut prices = Vec::new();
    for (round, part) in parts.enumerate() {
        let before = disk::syncs_a_second(&dir, Duration::from_millis(500))?;
        let cpu = usage::cpu(service.pid())?;
        let (outcome, found) = announce(&service, part, Some(VERIFY_EVERY))?;
        prices.push((usage::cpu(service.pid())? - cpu).as_secs_f64() * 1e6 / outcome.answers() as f64);
        let after = disk::syncs_a_second(&dir, Duration::from_millis(500))?;
        let (rate, sync) = (outcome.answers() as f64 / outcome.seconds, f64::midpoint(before, after));
        bench.progress(&format!(
            "round {} of {}: {} events/s, {} syncs/s, ratio {}",
            round + 1,
            bench.rounds(),
            digits(rate),
            digits(sync),
            digits(rate / sync)
        ));
        verified += found;
        rates.push(rate);
        syncs.push(sync);
        ratios.push(rate / sync);
    }
    bench.measured("durable schedules, 64 in flight", "/s", &rates, None);
    bench.measured("CPU of a durable schedule", "µs", &prices, None);
    bench.measured("fdatasync of 4 KiB appends", "/s", &syncs, None);
    bench.measured("durable schedules ÷ fdatasync rate", "", &ratios, Goal::at_least(2.0, 5.0));
    bench.note(&format!(
        "schedule: {verified} polls right after an acknowledgement, on another connection, all found the event."
    ));
    Ok(())
}

/// Far in the future, so that nothing starts during the measurement.
pub fn years_from_now() -> Timestamp {
    Timestamp::constant(4_070_908_800, 0)
}
