//! Cost of one request relative to nginx: both alternate on the same core, wrk uses the other.
//!
//! Compares CPU time, not requests a second, because wrk may be the bottleneck. The two runs of a round are adjacent,
//! so a slow phase of the machine affects both.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::Bench;
use crate::nginx::Nginx;
use crate::report::{Goal, digits};
use crate::service::{POLL, Rate, Service};
use crate::usage;
use crate::wrk::{self, WrkRequest};

/// A scope with a VM at 127.0.0.1, wrk's address.
pub fn fleet_of_one() -> Value {
    json!({ "kind": "availability-set", "vms": [{ "name": "web-0", "addresses": ["127.0.0.1"] }] })
}

/// A service with one event, and nginx with the same document.
struct Pair {
    service: Service,
    nginx: Nginx,
    event: String,
    etag: String,
}

impl Pair {
    fn start(bench: &Bench) -> anyhow::Result<Self> {
        let dir = bench.directory("side-by-side")?;
        let data = dir.join("data");
        // No executor is configured, so an approved event stays.
        let service = Service::start(&bench.binary, &data, Rate::Unlimited, &["--driver", "manual"])?;
        service.operate("PUT", "/v1/scopes/default/default/web", &fleet_of_one())?;
        // Years ahead, so that nothing happens during the measurement.
        let reboot = json!({ "type": "Reboot", "vms": ["web-0"], "not_before": "2099-01-01T00:00:00Z" });
        service.operate("POST", "/v1/events", &reboot)?;
        let answer = service.poll(Ipv4Addr::LOCALHOST)?;
        let event = answer.json()?["Events"][0]["EventId"].as_str().context("no event")?.to_owned();
        let etag = answer.etag.context("a document without an ETag")?;
        let nginx = Nginx::start(bench.cores.server, &dir, &answer.body, &etag)?;
        Ok(Self { service, nginx, event, etag })
    }
}

/// Keep-alive polls.
pub fn poll(bench: &mut Bench) -> anyhow::Result<()> {
    let pair = Pair::start(bench)?;
    let goal = Goal::at_most(1.0, 0.85);
    compare(bench, &pair, pair.nginx.poll, "a keep-alive poll", &WrkRequest::default(), goal)
}

/// One connection per poll.
pub fn connection(bench: &mut Bench) -> anyhow::Result<()> {
    let pair = Pair::start(bench)?;
    let request = WrkRequest { headers: vec!["Connection: close".to_owned()], script: None };
    compare(
        bench,
        &pair,
        pair.nginx.poll,
        "a poll with its own connection",
        &request,
        Goal::at_most(1.15, 1.0),
    )
}

/// Polls with the current tag (304).
pub fn not_modified(bench: &mut Bench) -> anyhow::Result<()> {
    let pair = Pair::start(bench)?;
    let request = WrkRequest { headers: vec![format!("If-None-Match: {}", pair.etag)], script: None };
    compare(bench, &pair, pair.nginx.not_modified, "a poll answered 304", &request, None)
}

/// Repeated approvals of an approved event.
pub fn approval(bench: &mut Bench) -> anyhow::Result<()> {
    let pair = Pair::start(bench)?;
    let body = json!({ "StartRequests": [{ "EventId": pair.event }] }).to_string();
    let first = pair.service.guest(Ipv4Addr::LOCALHOST)?.request("POST", POLL, &body)?;
    anyhow::ensure!(first.status == 200, "an approval was answered {}: {}", first.status, first.body);
    let script = bench.dir.join("approval.lua");
    std::fs::write(&script, format!("wrk.method = \"POST\"\nwrk.body = '{body}'\n"))?;
    let request = WrkRequest { headers: Vec::new(), script: Some(script) };
    compare(bench, &pair, pair.nginx.approval, "a repeated approval", &request, None)
}

fn compare(
    bench: &mut Bench,
    pair: &Pair,
    nginx: SocketAddr,
    what: &str,
    request: &WrkRequest,
    goal: Option<Goal>,
) -> anyhow::Result<()> {
    let span = Duration::from_secs(if bench.quick { 1 } else { 2 });
    let ours = |span| price(pair.service.pid(), pair.service.guest, request, span);
    let theirs = |span| price(pair.nginx.pid(), nginx, request, span);
    // Warm up caches, connection tables and the allocator.
    ours(Duration::from_secs(1))?;
    theirs(Duration::from_secs(1))?;
    let mut prices = (Vec::new(), Vec::new());
    for round in 1..=bench.rounds() {
        let (theirs, ours) = (theirs(span)?, ours(span)?);
        bench.progress(&format!(
            "round {round} of {}: nginx {} µs, notbefore {} µs, ratio {}",
            bench.rounds(),
            digits(theirs),
            digits(ours),
            digits(ours / theirs)
        ));
        prices.0.push(ours);
        prices.1.push(theirs);
    }
    let ratios: Vec<f64> = prices.0.iter().zip(&prices.1).map(|(ours, theirs)| ours / theirs).collect();
    bench.measured(&format!("CPU of {what}"), "µs", &prices.0, None);
    bench.measured(&format!("CPU of {what}, nginx"), "µs", &prices.1, None);
    bench.measured(&format!("CPU of {what} ÷ nginx's"), "", &ratios, goal);
    bench.note(
        "wrk calls from one address, so the rate limit is set too high to be reached. It is still checked.",
    );
    Ok(())
}

/// CPU time of one response, in microseconds.
fn price(pid: u32, to: SocketAddr, request: &WrkRequest, span: Duration) -> anyhow::Result<f64> {
    let before = usage::cpu(pid)?;
    let answers = wrk::run(to, request, span)?;
    let used = usage::cpu(pid)? - before;
    Ok(used.as_secs_f64() * 1e6 / answers as f64)
}
