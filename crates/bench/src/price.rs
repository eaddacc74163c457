//! What a poll costs the service, in CPU time, from guests drawn at random.

use std::ops::Range;
use std::time::Duration;

use crate::http;
use crate::load::generator::Generator;
use crate::load::{Arrivals, Same, Use};
use crate::service::{POLL, Service};
use crate::usage;

/// How many polls are in flight.
const IN_FLIGHT: usize = 64;

/// Microseconds of CPU time for each poll; these guests are connected all the while.
pub fn of_a_poll(service: &Service, guests: Range<usize>, span: Duration) -> anyhow::Result<f64> {
    let request = http::request("GET", POLL, "Metadata: true\r\n", "").into_bytes();
    let in_flight = IN_FLIGHT.min(guests.len());
    let mut generator = Generator::new(service.guest, Use::KeepAlive)?;
    generator.add(guests)?;
    let before = usage::cpu(service.pid())?;
    let outcome = generator.run(Arrivals::Closed { in_flight }, span, &mut Same(request))?;
    let used = usage::cpu(service.pid())? - before;
    outcome.only(200)?;
    Ok(used.as_secs_f64() * 1e6 / outcome.answers() as f64)
}
