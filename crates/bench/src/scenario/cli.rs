//! The command line in a large fleet: `status` and the first page of each list, with 100,000 VMs and 1,000 events.
//!
//! A person waits for these, so the time is that of the whole process, from its start to its end.

use std::process::Command;

use jiff::SignedDuration;

use super::Bench;
use crate::clock;
use crate::fleet::{Callers, Fleet};
use crate::load::guests;
use crate::process::output;
use crate::report::Goal;
use crate::schedules::{Announcement, announce};
use crate::service::{Rate, Service};

/// Live events, spread over the second half of the next hour.
const EVENTS: usize = 1_000;
/// VMs per scope.
const PER_SCOPE: usize = 10;
/// The commands. A page of the command line has up to 1,000 items.
const COMMANDS: &[&str] = &[
    "status",
    "vm list --limit 1000",
    "event list --limit 1000",
    "operation list --limit 1000",
    "host list --limit 1000",
];

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let vms = if bench.quick { 10_000 } else { 100_000 };
    let data = bench.directory("cli")?.join("data");
    let fleet = Fleet { scopes: vms / PER_SCOPE, per_scope: PER_SCOPE, callers: Callers::FirstOfEvery(10) };
    fleet.import(&bench.binary, &data)?;
    let service = Service::start(&bench.binary, &data, Rate::Usual, &["--notice", "0.0001"])?;
    let half_an_hour = clock::wall() + SignedDuration::from_mins(30);
    let announcements: Vec<Announcement> = (0..EVENTS)
        .map(|n| Announcement {
            vm: fleet.first_vm(n),
            address: guests::address(0),
            not_before: half_an_hour + SignedDuration::from_secs(n as i64),
        })
        .collect();
    announce(&service, &announcements, None)?;
    for words in COMMANDS {
        let mut times = Vec::new();
        for _ in 0..2 * bench.rounds() {
            let begun = clock::now();
            let mut command = Command::new(&bench.binary.path);
            output(command.args(words.split(' ')).arg("--data").arg(&data))?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        let what = format!("{words}, {vms} VMs, {EVENTS} events");
        bench.measured(&what, "ms", &times, Goal::at_most(300.0, 100.0));
    }
    Ok(())
}
