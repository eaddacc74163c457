//! A million VMs in 100,000 scopes: memory, disk, recovery time after a crash, and the cost of a poll relative to a
//! small fleet.

use std::path::PathBuf;
use std::time::Duration;

use super::Bench;
use super::schedule::years_from_now;
use crate::clock;
use crate::fleet::{Callers, Fleet};
use crate::load::guests;
use crate::price;
use crate::report::{Goal, digits};
use crate::schedules::{Announcement, announce};
use crate::service::{Rate, Service};
use crate::usage;

/// Number of VMs that can call, each in its own scope.
pub const CALLERS: usize = 10_000;

/// The large fleet; a tenth of it in a short run.
pub fn fleet(bench: &Bench) -> Fleet {
    let scopes = if bench.quick { 10_000 } else { 100_000 };
    Fleet { scopes, per_scope: 10, callers: Callers::FirstOfEvery(scopes / CALLERS) }
}

/// Data directory of the large fleet, created on first use. Each binary has one of its own, because an older one may
/// have another file format.
pub fn data(bench: &Bench) -> anyhow::Result<PathBuf> {
    let binary = bench.binary.path.to_string_lossy().replace('/', "-");
    let data = bench.dir.join(format!("million{binary}"));
    if !data.exists() {
        let (fleet, begun) = (fleet(bench), clock::now());
        fleet.import(&bench.binary, &data)?;
        bench.progress(&format!("imported {} VMs in {:.0} s", fleet.vms(), begun.elapsed().as_secs_f64()));
    }
    Ok(data)
}

/// Bytes of memory per VM. No goal for the short run, where the service's base memory dominates.
pub fn memory(bench: &mut Bench) -> anyhow::Result<()> {
    let empty = bench.directory("empty")?;
    let nothing = Service::start(&bench.binary, &empty.join("data"), Rate::Usual, &[])?;
    let base = settled(&nothing)?;
    drop(nothing);
    let data = data(bench)?;
    let service = Service::start(&bench.binary, &data, Rate::Usual, &[])?;
    let full = settled(&service)?;
    let vms = fleet(bench).vms();
    let mib = |bytes: u64| digits(bytes as f64 / 1048576.0);
    bench.progress(&format!("{} MiB with {vms} VMs, {} MiB with none", mib(full), mib(base)));
    let each = full.saturating_sub(base) as f64 / vms as f64;
    let goal = Goal::at_most(400.0, 200.0).filter(|_| !bench.quick);
    bench.measured(&format!("memory per VM, {vms} VMs"), "B", &[each], goal);
    Ok(())
}

fn settled(service: &Service) -> anyhow::Result<u64> {
    usage::settled_memory(service.pid(), || service.wait_until_ready())
}

/// Time from `kill -9` to ready.
pub fn restart(bench: &mut Bench) -> anyhow::Result<()> {
    let data = data(bench)?;
    let fleet = fleet(bench);
    let mut times = Vec::new();
    let mut service = Service::start_anywhere(&bench.binary, &data, Rate::Usual, &[])?;
    for round in 0..bench.rounds().min(5) {
        // Kill it under load, not when it is idle.
        let announcements: Vec<Announcement> = (0..100)
            .map(|n| Announcement {
                vm: fleet.first_vm(round * 100 + n),
                address: guests::address(0),
                not_before: years_from_now(),
            })
            .collect();
        announce(&service, &announcements, None)?;
        service.kill();
        let begun = clock::now();
        service = Service::start_anywhere(&bench.binary, &data, Rate::Usual, &[])?;
        service.wait_until_ready()?;
        times.push(begun.elapsed().as_secs_f64());
        bench.progress(&format!("ready after {} s", digits(begun.elapsed().as_secs_f64())));
    }
    let vms = fleet.vms();
    let what = format!("time to ready after kill -9, {vms} VMs");
    bench.measured(&what, "s", &times, Goal::at_most(8.0, 3.0));
    let file = std::fs::metadata(data.join("store.redb"))?.len() as f64 / vms as f64;
    let goal = Goal::desired_at_most(500.0).filter(|_| !bench.quick);
    bench.measured("store file per VM", "B", &[file], goal);
    Ok(())
}

/// CPU time of a poll in the large fleet relative to a fleet of the callers only.
pub fn scale(bench: &mut Bench) -> anyhow::Result<()> {
    let large = fleet(bench);
    let small = Fleet { scopes: CALLERS, per_scope: 1, callers: Callers::All };
    let small_data = bench.directory("small")?.join("data");
    small.import(&bench.binary, &small_data)?;
    let services = [
        (large, Service::start(&bench.binary, &data(bench)?, Rate::Usual, &[])?),
        (small, Service::start(&bench.binary, &small_data, Rate::Usual, &[])?),
    ];
    for (fleet, service) in &services {
        let mut announcements = Vec::new();
        for caller in 0..CALLERS {
            // Events of earlier scenarios are present.
            let address = guests::address(caller);
            let document = service.poll(address)?.json()?;
            if document["Events"].as_array().is_some_and(Vec::is_empty) {
                let vm = fleet.first_vm(fleet.scope_of_caller(caller));
                announcements.push(Announcement { vm, address, not_before: years_from_now() });
            }
        }
        announce(service, &announcements, None)?;
        price(service)?;
    }
    let (mut prices, mut ratios) = ([Vec::new(), Vec::new()], Vec::new());
    for round in 1..=bench.rounds() {
        let (small, large) = (price(&services[1].1)?, price(&services[0].1)?);
        bench.progress(&format!(
            "round {round} of {}: {CALLERS} VMs {} µs, {} VMs {} µs, ratio {}",
            bench.rounds(),
            digits(small),
            services[0].0.vms(),
            digits(large),
            digits(large / small)
        ));
        prices[0].push(large);
        prices[1].push(small);
        ratios.push(large / small);
    }
    let vms = services[0].0.vms();
    bench.measured(&format!("CPU of a poll, random callers, {vms} VMs"), "µs", &prices[0], None);
    bench.measured(&format!("CPU of a poll, random callers, {CALLERS} VMs"), "µs", &prices[1], None);
    bench.measured(
        &format!("CPU of a poll, {vms} VMs ÷ {CALLERS} VMs"),
        "",
        &ratios,
        Goal::at_most(1.10, 1.05),
    );
    Ok(())
}

fn price(service: &Service) -> anyhow::Result<f64> {
    price::of_a_poll(service.into(), 0..CALLERS, Duration::from_millis(1_500))
}
