//! The scenarios, one per file. Each measures one thing and adds its numbers to the report.

mod agent;
mod cli;
mod cluster;
mod digest;
mod fairness;
mod growth;
mod idle;
mod long_poll;
mod micro;
mod million;
mod rehearse;
mod schedule;
mod side_by_side;
mod starts;

use std::path::PathBuf;

pub use self::side_by_side::fleet_of_one;

use crate::process::Cores;
use crate::report::{Goal, Measure, Report, Table};
use crate::service::Binary;
use crate::stats::Estimate;

/// A scenario.
pub struct Scenario {
    /// Name on the command line.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// Runs it.
    pub run: fn(&mut Bench) -> anyhow::Result<()>,
}

/// All scenarios, in the order in which they run.
pub const ALL: &[Scenario] = &[
    Scenario {
        name: "poll",
        about: "CPU of a keep-alive poll, compared with nginx",
        run: side_by_side::poll,
    },
    Scenario {
        name: "connection",
        about: "CPU of a poll with its own connection, compared with nginx",
        run: side_by_side::connection,
    },
    Scenario {
        name: "not-modified",
        about: "CPU of a poll answered 304, compared with nginx",
        run: side_by_side::not_modified,
    },
    Scenario {
        name: "approval",
        about: "CPU of a repeated approval, compared with nginx",
        run: side_by_side::approval,
    },
    Scenario { name: "idle", about: "memory of an idle connected guest", run: idle::run },
    Scenario { name: "memory", about: "memory per VM in a fleet of a million", run: million::memory },
    Scenario {
        name: "restart",
        about: "time to time to ready after kill -9, a million VMs",
        run: million::restart,
    },
    Scenario {
        name: "scale", about: "CPU of a poll, fleet of a million ÷ small fleet", run: million::scale
    },
    Scenario {
        name: "schedule",
        about: "durable changes a second ÷ fdatasync rate of the disk",
        run: schedule::run,
    },
    Scenario { name: "starts", about: "100,000 events due within a minute", run: starts::run },
    Scenario { name: "long-poll", about: "10,000 long polls notified by one operation", run: long_poll::run },
    Scenario {
        name: "fairness",
        about: "poll latency of other guests while one guest floods the service",
        run: fairness::run,
    },
    Scenario {
        name: "digest",
        about: "CPU of digests between nodes, 100,000 VMs that poll each second",
        run: digest::run,
    },
    Scenario {
        name: "growth",
        about: "CPU of a poll by number of VMs, events, connections",
        run: growth::run,
    },
    Scenario {
        name: "agent",
        about: "idle agent, latency from event to hook, time for hooks of Preempt",
        run: agent::run,
    },
    Scenario {
        name: "cli",
        about: "status and the first page of each list with 100,000 VMs and 1,000 events",
        run: cli::run,
    },
    Scenario {
        name: "cluster",
        about: "three nodes on etcd: commands and visibility compared with a bare client, take-over, 100,000 VMs",
        run: cluster::run,
    },
    Scenario {
        name: "cluster-million",
        about: "three nodes on etcd with a million VMs: load time and memory",
        run: cluster::million,
    },
    Scenario {
        name: "rehearse",
        about: "first answer of a rehearsal, the whole library, a scope of 1,000 polling VMs",
        run: rehearse::run,
    },
    Scenario { name: "micro", about: "apply and render alone", run: micro::run },
];

/// Context of scenarios.
pub struct Bench {
    /// Binary of the service.
    pub binary: Binary,
    /// Cores of server and load.
    pub cores: Cores,
    /// Whether to run the short form.
    pub quick: bool,
    /// The results so far.
    pub report: Report,
    /// The current scenario.
    pub scenario: &'static str,
    /// Temporary directory; removed at the end.
    pub dir: PathBuf,
}

impl Bench {
    /// Number of rounds per number.
    pub fn rounds(&self) -> usize {
        if self.quick { 3 } else { 10 }
    }

    /// Creates a new directory.
    pub fn directory(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.dir.join(name);
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Prints progress.
    pub fn progress(&self, what: &str) {
        eprintln!("{}: {what}", self.scenario);
    }

    /// Records a number from several rounds.
    pub fn measured(&mut self, what: &str, unit: &'static str, rounds: &[f64], goal: Option<Goal>) {
        self.report.measures.push(Measure {
            scenario: self.scenario,
            what: what.to_owned(),
            unit,
            value: Estimate::of(rounds),
            rounds: rounds.len(),
            goal,
        });
    }

    /// Records a table.
    pub fn table(&mut self, title: &str, columns: &[&str], rows: Vec<Vec<String>>) {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        self.report.tables.push(Table { scenario: self.scenario, title: title.to_owned(), columns, rows });
    }

    /// Records a note, without duplicates.
    pub fn note(&mut self, note: &str) {
        if !self.report.notes.iter().any(|known| known == note) {
            self.report.notes.push(note.to_owned());
        }
    }
}
