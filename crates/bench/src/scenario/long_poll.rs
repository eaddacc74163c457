//! Long polls: 100 scopes of 100 guests hold a poll each, and one operation notifies all of them.
//!
//! Latency counts from the operator's request, an upper bound for the commit, and also from the acknowledgement,
//! which follows when the operation has reached every scope.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Bench;
use super::schedule::years_from_now;
use crate::clock;
use crate::fleet::{Callers, Fleet};
use crate::http::{self, Answer, Client};
use crate::load::generator::Generator;
use crate::load::{Arrivals, Traffic, Use};
use crate::random::Random;
use crate::report::{Goal, digits};
use crate::service::{POLL, Rate, Service};

/// Number of scopes, and guests per scope.
const SCOPES: usize = 100;

/// How long guests wait before the operation, so that all are parked.
const HELD: Duration = Duration::from_millis(1_500);

/// Every guest waits for a change of its document.
struct Waiting {
    etags: Vec<String>,
    next: usize,
    answered: Vec<Instant>,
}

impl Traffic for Waiting {
    fn pick(&mut self, _random: &mut Random, connections: usize) -> Option<usize> {
        let at = self.next;
        self.next += 1;
        (at < connections).then_some(at)
    }

    fn request(&mut self, connection: usize, out: &mut Vec<u8>) {
        let headers =
            format!("Metadata: true\r\nPrefer: wait=60\r\nIf-None-Match: {}\r\n", self.etags[connection]);
        out.extend_from_slice(http::request("GET", POLL, &headers, "").as_bytes());
    }

    fn answered(&mut self, connection: usize, answer: &Answer<'_>, at: Instant) -> anyhow::Result<()> {
        if let Some(etag) = answer.header("etag") {
            etag.clone_into(&mut self.etags[connection]);
        }
        self.answered.push(at);
        Ok(())
    }
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let data = bench.directory("long-poll")?.join("data");
    let fleet = Fleet { scopes: SCOPES, per_scope: 100, callers: Callers::All };
    fleet.import(&bench.binary, &data)?;
    let service = Service::start_anywhere(&bench.binary, &data, Rate::Usual, &[])?;
    let vms: Vec<uuid::Uuid> = (0..SCOPES).map(|scope| fleet.first_vm(scope)).collect();
    let body = json!({ "type": "Freeze", "vms": vms, "not_before": years_from_now() }).to_string();
    let mut generator = Generator::new(service.guest, Use::KeepAlive)?;
    generator.add(0..fleet.vms())?;
    let mut waiting = Waiting { etags: vec!["1".to_owned(); fleet.vms()], next: 0, answered: Vec::new() };
    let (mut from_acknowledged, mut from_request) = (Vec::new(), Vec::new());
    for round in 1..=bench.rounds().min(5) {
        waiting.next = 0;
        waiting.answered.clear();
        let operation = operation(service.operator, service.authorization(), body.clone());
        let arrivals = Arrivals::Closed { in_flight: fleet.vms() };
        let outcome = generator.run(arrivals, Duration::from_secs(20), &mut waiting)?;
        let (requested, acknowledged) =
            operation.join().map_err(|_| anyhow::anyhow!("the operator's thread died"))??;
        outcome.only(200)?;
        let early = waiting.answered.iter().filter(|at| **at < requested).count();
        anyhow::ensure!(early == 0, "{early} guests were answered before a change: long polls are not held");
        let p99 = |since: Instant| {
            // A response before the acknowledgement counts as zero.
            let mut spans: Vec<f64> = waiting
                .answered
                .iter()
                .map(|at| at.saturating_duration_since(since).as_secs_f64() * 1e3)
                .collect();
            spans.sort_by(f64::total_cmp);
            spans[spans.len() * 99 / 100]
        };
        from_acknowledged.push(p99(acknowledged));
        from_request.push(p99(requested));
        bench.progress(&format!(
            "round {round}: p99 {} ms from the acknowledgement, {} ms from the request",
            digits(p99(acknowledged)),
            digits(p99(requested))
        ));
    }
    let who = format!("{SCOPES} scopes of 100 long polls notified, p99");
    let goal = Goal::at_most(500.0, 150.0);
    bench.measured(&format!("{who} from the request"), "ms", &from_request, goal);
    bench.measured(&format!("{who} from the acknowledgement"), "ms", &from_acknowledged, None);
    Ok(())
}

/// Starts an operation over all scopes; returns the times of request and acknowledgement.
fn operation(
    to: SocketAddr,
    headers: String,
    body: String,
) -> std::thread::JoinHandle<anyhow::Result<(Instant, Instant)>> {
    std::thread::spawn(move || {
        let mut operator = Client::connect(std::net::Ipv4Addr::LOCALHOST, to, headers)?;
        clock::pause(HELD);
        let requested = clock::now();
        operator.request("POST", "/v1/events", &body)?.json()?;
        Ok((requested, clock::now()))
    })
}
