//! Memory of an idle connected guest, the usual state of guests.
//!
//! Each guest first reads its instance metadata and approves an event, because a connection should not keep memory
//! for those. The slope over thousands of connections excludes the service's base memory. Kernel memory is not
//! included; it is the same for every server.

use std::time::Duration;

use serde_json::json;

use super::Bench;
use crate::clock;
use crate::fleet::{Callers, Fleet};
use crate::http;
use crate::load::generator::Generator;
use crate::load::{Arrivals, Traffic, Use};
use crate::nginx::Nginx;
use crate::random::Random;
use crate::report::{Goal, digits};
use crate::schedules::{Announcement, announce};
use crate::service::{POLL, Rate, Service};
use crate::usage;

/// Numbers of connected guests at which memory is measured.
const POINTS: [usize; 4] = [1_000, 5_000, 10_000, 15_000];

/// Idle time before memory is measured: threads that read the disk end after ten seconds without work and free their
/// memory.
const REST: Duration = Duration::from_secs(12);

/// Warm-up requests per guest.
const PASSES_BEFORE: usize = 4;

/// VMs per scope.
const PER_SCOPE: usize = 100;

/// One request from each new guest.
struct Once<'a> {
    next: usize,
    request: &'a dyn Fn(usize) -> String,
}

impl Traffic for Once<'_> {
    fn pick(&mut self, _random: &mut Random, connections: usize) -> Option<usize> {
        let at = self.next;
        self.next += 1;
        (at < connections).then_some(at)
    }

    fn request(&mut self, connection: usize, out: &mut Vec<u8>) {
        out.extend_from_slice((self.request)(connection).as_bytes());
    }
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let dir = bench.directory("idle")?;
    let data = dir.join("data");
    let vms = POINTS[POINTS.len() - 1];
    let fleet = Fleet { scopes: vms / PER_SCOPE, per_scope: PER_SCOPE, callers: Callers::All };
    fleet.import(&bench.binary, &data)?;
    // No executor is configured, so approved events stay.
    let service = Service::start(&bench.binary, &data, Rate::Usual, &["--driver", "manual"])?;
    let announcements: Vec<Announcement> = (0..fleet.scopes)
        .map(|scope| Announcement {
            vm: fleet.first_vm(scope),
            address: crate::load::guests::address(scope * PER_SCOPE),
            not_before: super::schedule::years_from_now(),
        })
        .collect();
    announce(&service, &announcements, None)?;
    let mut events = Vec::new();
    for announcement in &announcements {
        let document = service.poll(announcement.address)?.json()?;
        events.push(document["Events"][0]["EventId"].clone());
    }
    let metadata = "Metadata: true\r\n";
    let instance = |_: usize| http::request("GET", "/metadata/instance?api-version=2021-02-01", metadata, "");
    let approval = |guest: usize| {
        let body = json!({ "StartRequests": [{ "EventId": events[guest / PER_SCOPE] }] });
        http::request("POST", POLL, metadata, &body.to_string())
    };
    // Warm up on connections that are then closed. This excludes per-VM state, commits of approvals and startup
    // memory of the allocator from the slope.
    let mut before = Generator::new(service.guest, Use::ConnectionEach)?;
    before.add(0..vms)?;
    for _ in 0..PASSES_BEFORE {
        for request in [&instance as &dyn Fn(usize) -> String, &approval] {
            let request = |guest: usize| request(guest).replacen("\r\n", "\r\nConnection: close\r\n", 1);
            request_once(&mut before, 0, &request)?;
        }
        clock::pause(REST / 4);
    }
    drop(before);
    let ours = slope(bench, "notbefore", service.pid(), service.guest, &[&instance, &approval], REST)?;
    drop(service);

    let nginx = Nginx::start(bench.cores.server, &dir, "{}", "1")?;
    let poll = |_: usize| http::request("GET", POLL, metadata, "");
    let theirs = slope(bench, "nginx", nginx.pid(), nginx.poll, &[&poll], Duration::ZERO)?;
    bench.measured("memory of an idle guest", "B", &[ours], Goal::at_most(2048.0, 1024.0));
    bench.measured("memory of an idle guest, nginx", "B", &[theirs], None);
    bench.note("idle: nginx's guests polled once. Its slope has no memory that nginx allocates before connections open.");
    Ok(())
}

/// Bytes per guest: the slope of memory over idle guests that have made these requests.
fn slope(
    bench: &mut Bench,
    name: &str,
    pid: u32,
    to: std::net::SocketAddr,
    requests: &[&dyn Fn(usize) -> String],
    rest: Duration,
) -> anyhow::Result<f64> {
    let mut generator = Generator::new(to, Use::KeepAlive)?;
    let (mut points, mut rows) = (Vec::new(), Vec::new());
    for guests in POINTS {
        let known = generator.len();
        generator.add(known..guests)?;
        for request in requests {
            request_once(&mut generator, known, request)?;
        }
        clock::pause(rest);
        let memory = usage::settled_memory(pid, || Ok(()))?;
        bench.progress(&format!("{name}: {guests} guests, {} MiB", digits(memory as f64 / 1048576.0)));
        points.push((guests as f64, memory as f64));
        rows.push(vec![guests.to_string(), digits(memory as f64 / 1048576.0)]);
    }
    bench.table(&format!("Idle guests of {name}"), &["connections", "PSS, MiB"], rows);
    Ok(crate::stats::slope(&points))
}

/// Sends one request from every guest from this index on.
fn request_once(
    generator: &mut Generator,
    from: usize,
    request: &dyn Fn(usize) -> String,
) -> anyhow::Result<()> {
    let arrivals = Arrivals::Closed { in_flight: 32 };
    let outcome = generator.run(arrivals, Duration::from_secs(60), &mut Once { next: from, request })?;
    outcome.only(200)?;
    anyhow::ensure!(outcome.answers() == (generator.len() - from) as u64, "not every guest was answered");
    Ok(())
}
