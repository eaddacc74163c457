//! Fairness: p99 latency of quiet guests with and without a guest that floods the service.
//!
//! The service runs with default limits. Both cases alternate, because p99 is sensitive to the machine.

use std::time::Duration;

use super::Bench;
use crate::fleet::{Callers, Fleet};
use crate::flood::{Flood, FloodKind};
use crate::http;
use crate::load::generator::Generator;
use crate::load::{Arrivals, Traffic, Use};
use crate::report::{Goal, digits};
use crate::service::{POLL, Rate, Service};

/// Number of quiet guests; each polls about once a second.
const QUIET_GUESTS: usize = 2_000;

/// Quiet guests, with a misbehaving one.
struct QuietGuests {
    request: Vec<u8>,
    flood: Flood,
}

impl Traffic for QuietGuests {
    fn request(&mut self, _connection: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.request);
    }

    fn between_requests(&mut self) {
        self.flood.work();
    }
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let data = bench.directory("fairness")?.join("data");
    let fleet = Fleet { scopes: QUIET_GUESTS / 10 + 1, per_scope: 10, callers: Callers::All };
    fleet.import(&bench.binary, &data)?;
    let service = Service::start(&bench.binary, &data, Rate::Usual, &[])?;
    let span = Duration::from_secs(if bench.quick { 1 } else { 2 });
    // The p99 of two seconds depends on forty polls: a stable median needs many rounds.
    let rounds = if bench.quick { 2 } else { 15 };
    let mut generator = Generator::new(service.guest, Use::KeepAlive)?;
    generator.add(0..QUIET_GUESTS)?;
    let mut p99 = |kind: FloodKind| -> anyhow::Result<f64> {
        let request = http::request("GET", POLL, "Metadata: true\r\n", "").into_bytes();
        let flood = Flood::new(kind, service.guest, QUIET_GUESTS);
        let mut quiet_guests = QuietGuests { request, flood };
        let outcome = generator.run(Arrivals::Open { rate: QUIET_GUESTS as f64 }, span, &mut quiet_guests)?;
        outcome.only(200)?;
        Ok(outcome.milliseconds(99.0))
    };
    p99(FloodKind::None)?;
    let mut quiet = Vec::new();
    for (kind, what) in [
        (FloodKind::Pipelining, "pipelines on 64 connections"),
        (FloodKind::Garbage, "sends garbage"),
        (FloodKind::SlowSender, "sends slowly on 64 connections"),
        (FloodKind::Reconnecting, "reconnects continuously"),
    ] {
        let (mut flooded, mut ratios) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (without, with) = (p99(FloodKind::None)?, p99(kind)?);
            bench.progress(&format!(
                "one guest {what}: p99 {} ms, no flood {} ms",
                digits(with),
                digits(without)
            ));
            quiet.push(without);
            flooded.push(with);
            ratios.push(with / without);
        }
        bench.measured(&format!("poll latency p99 of other guests, one guest {what}"), "ms", &flooded, None);
        bench.measured(
            &format!("poll latency p99, one guest {what} ÷ no flood"),
            "",
            &ratios,
            Goal::at_most(2.0, 2.0),
        );
    }
    bench.measured("poll latency p99 of other guests, no flood", "ms", &quiet, None);
    Ok(())
}
