//! CPU time of one poll on a server, from randomly chosen guests.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use crate::http;
use crate::load::generator::Generator;
use crate::load::{Arrivals, Same, Use};
use crate::service::{POLL, Service};
use crate::usage;

/// Polls in flight.
const IN_FLIGHT: usize = 64;

/// A server's process and address.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// The process; children count as well.
    pub pid: u32,
    /// Address of the guest listener.
    pub guest: SocketAddr,
}

impl From<&Service> for Server {
    fn from(service: &Service) -> Self {
        Self { pid: service.pid(), guest: service.guest }
    }
}

/// Microseconds of CPU time per poll; these guests stay connected.
pub fn of_a_poll(server: Server, guests: Range<usize>, span: Duration) -> anyhow::Result<f64> {
    let request = http::request("GET", POLL, "Metadata: true\r\n", "").into_bytes();
    let in_flight = IN_FLIGHT.min(guests.len());
    let mut generator = Generator::new(server.guest, Use::KeepAlive)?;
    generator.add(guests)?;
    let before = usage::cpu(server.pid)?;
    let outcome = generator.run(Arrivals::Closed { in_flight }, span, &mut Same(request))?;
    let used = usage::cpu(server.pid)? - before;
    outcome.only(200)?;
    Ok(used.as_secs_f64() * 1e6 / outcome.answers() as f64)
}
