//! Growth of the cost of a poll with the VMs of the fleet, the events of the scope, and open connections. It should
//! depend only on the size of the response.

use std::time::Duration;

use serde_json::json;

use super::schedule::years_from_now;
use super::{Bench, million};
use crate::fleet::{Callers, Fleet};
use crate::load::guests;
use crate::nginx::Nginx;
use crate::price::{self, Server};
use crate::report::digits;
use crate::service::{Rate, Service};
use crate::stats::Estimate;

/// Measures all three.
pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    by_vms(bench)?;
    by_events(bench)?;
    by_connections(bench)
}

fn by_vms(bench: &mut Bench) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for vms in [1_000, 10_000, 100_000] {
        let data = bench.directory("growth")?.join("data");
        let scopes = vms / 10;
        let fleet = Fleet { scopes, per_scope: 10, callers: Callers::FirstOfEvery(scopes / 100) };
        fleet.import(&bench.binary, &data)?;
        let service = Service::start(&bench.binary, &data, Rate::Unlimited, &[])?;
        rows.push(row(bench, vms, Server::from(&service), 0..100)?);
    }
    let large = million::fleet(bench).vms();
    if large > 100_000 {
        let service = Service::start(&bench.binary, &million::data(bench)?, Rate::Unlimited, &[])?;
        // Scopes of some callers may have an event of an earlier scenario; the last ones do not.
        let quiet = million::CALLERS - 100..million::CALLERS;
        rows.push(row(bench, large, Server::from(&service), quiet)?);
    }
    let columns = ["VMs", "CPU of a poll, µs", "90 % interval"];
    bench.table("CPU of a poll by VMs in the fleet, 100 callers", &columns, rows);
    Ok(())
}

fn by_events(bench: &mut Bench) -> anyhow::Result<()> {
    let data = bench.directory("growth")?.join("data");
    let fleet = Fleet { scopes: 4, per_scope: 100, callers: Callers::All };
    fleet.import(&bench.binary, &data)?;
    let service = Service::start(&bench.binary, &data, Rate::Unlimited, &[])?;
    let mut rows = Vec::new();
    for (scope, events) in [0, 1, 10, 100].into_iter().enumerate() {
        let vms: Vec<uuid::Uuid> = (0..events).map(|member| fleet.vm_of(scope, member)).collect();
        if events > 0 {
            // Each VM of a redeployment has its own event.
            let body = json!({ "type": "Redeploy", "vms": vms, "not_before": years_from_now() });
            service.operate("POST", "/v1/events", &body)?;
        }
        let callers = scope * 100..(scope + 1) * 100;
        let document = service.poll(guests::address(callers.start))?;
        let shown = document.json()?["Events"].as_array().map_or(0, Vec::len);
        anyhow::ensure!(shown == events, "{shown} events instead of {events}");
        let mut row = row(bench, events, Server::from(&service), callers)?;
        row.insert(1, document.body.len().to_string());
        rows.push(row);
    }
    let columns = ["events in the scope", "bytes of the document", "CPU of a poll, µs", "90 % interval"];
    bench.table("CPU of a poll by live events in the caller's scope, 100 callers", &columns, rows);
    Ok(())
}

fn by_connections(bench: &mut Bench) -> anyhow::Result<()> {
    let data = bench.directory("growth")?.join("data");
    let fleet = Fleet { scopes: 1_000, per_scope: 10, callers: Callers::All };
    fleet.import(&bench.binary, &data)?;
    let service = Service::start(&bench.binary, &data, Rate::Unlimited, &[])?;
    // The growth here is the kernel's, as nginx shows, which has no lookups.
    let document = service.poll(guests::address(0))?;
    let nginx = Nginx::start(bench.cores.server, &bench.directory("growth-nginx")?, &document.body, "1")?;
    let mut rows = Vec::new();
    for connections in [100, 1_000, 10_000] {
        let mut ours = row(bench, connections, Server::from(&service), 0..connections)?;
        let theirs = Server { pid: nginx.pid(), guest: nginx.poll };
        ours.extend(row(bench, connections, theirs, 0..connections)?.split_off(1));
        rows.push(ours);
    }
    let columns = ["connections", "CPU of a poll, µs", "90 % interval", "nginx, µs", "90 % interval"];
    bench.table("CPU of a poll by open connections, 64 polls in flight among them", &columns, rows);
    Ok(())
}

/// One row of a table: the varied value and the cost of a poll.
fn row(
    bench: &Bench,
    varied: usize,
    server: Server,
    callers: std::ops::Range<usize>,
) -> anyhow::Result<Vec<String>> {
    let rounds = if bench.quick { 2 } else { 5 };
    price::of_a_poll(server, callers.clone(), Duration::from_millis(300))?;
    let prices: Vec<f64> = (0..rounds)
        .map(|_| price::of_a_poll(server, callers.clone(), Duration::from_millis(800)))
        .collect::<anyhow::Result<_>>()?;
    let price = Estimate::of(&prices);
    bench.progress(&format!("{varied}: {} µs", digits(price.median)));
    let interval = format!("{}–{}", digits(price.low), digits(price.high));
    Ok(vec![varied.to_string(), digits(price.median), interval])
}
