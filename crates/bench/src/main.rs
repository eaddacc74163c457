//! `./dev bench`: measures the cost of the service, compared with nginx where useful, in one run.
//!
//! Everything is real: the release binary, nginx, wrk, loopback sockets, files on disk. The server has one core and
//! the load generator another. Related measurements alternate within one run, so ratios are meaningful even on a
//! shared machine; absolute numbers depend on the machine. docs/internals/benchmarks.md explains them.
//!
//! | file | what is in it |
//! |---|---|
//! | `scenario` | the scenarios, one per file |
//! | `service`, `cluster`, `etcd`, `nginx`, `wrk` | the programs under test and load |
//! | `load`, `schedules` | load generator; bulk scheduling of events |
//! | `fleet`, `flood` | synthetic fleets as exports; a misbehaving guest |
//! | `process`, `usage`, `price`, `disk` | processes, CPU time, memory, fsync |
//! | `compare` | A/B comparison of two binaries |
//! | `cost` | countable cost of a poll, for the tests |
//! | `stats`, `report`, `machine`, `docs` | statistics and output |

mod clock;
mod cluster;
mod compare;
mod cost;
mod disk;
mod docs;
mod endpoint;
mod etcd;
mod fleet;
mod flood;
mod http;
mod load;
mod machine;
mod nginx;
mod price;
mod process;
mod random;
mod report;
mod scenario;
mod schedules;
mod service;
mod stats;
mod usage;
mod wrk;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use tempfile::TempDir;

use crate::compare::{Comparison, Side};
use crate::load::command::LoadArgs;
use crate::machine::Machine;
use crate::process::Cores;
use crate::report::Report;
use crate::scenario::{ALL, Bench, Scenario};
use crate::service::Binary;

/// Measure the service: all scenarios, or those named
#[derive(Parser, Debug)]
#[command(name = "./dev bench", args_conflicts_with_subcommands = true, after_help = scenarios())]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Scenarios to run [default: all]
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Fewer rounds and smaller fleets: minutes instead of a quarter of an hour
    #[arg(long)]
    quick: bool,
    /// Write the numbers to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the tables to docs/internals/benchmarks.md
    #[arg(long, conflicts_with_all = ["scenarios", "quick"])]
    docs: bool,
    /// Binary of the service
    #[arg(long, value_name = "FILE", hide = true)]
    binary: Option<PathBuf>,
    /// Compare with an older binary: measure both in turns and report whether the 90 % intervals overlap
    #[arg(long, value_name = "FILE", conflicts_with = "docs")]
    against: Option<PathBuf>,
    /// Number of turns per binary with --against
    #[arg(long, value_name = "N", default_value_t = 5, requires = "against")]
    turns: usize,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run the load generator
    Load(LoadArgs),
    /// Count system calls and instructions of one poll and enforce the limits
    Cost,
}

fn scenarios() -> String {
    let lines: Vec<String> =
        ALL.iter().map(|scenario| format!("  {:<14} {}", scenario.name, scenario.about)).collect();
    format!("Scenarios:\n{}", lines.join("\n"))
}

fn main() -> ExitCode {
    match work(Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs the command; false if a number misses its goal.
fn work(args: Args) -> anyhow::Result<bool> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    match &args.command {
        Some(Command::Load(load)) => return load::command::run(load).map(|()| true),
        Some(Command::Cost) => return cost::run(&root),
        None => {}
    }
    let chosen = choose(&args.scenarios)?;
    let cores = Cores::choose()?;
    usage::raise_open_files()?;
    cores.pin_to_load_core()?;
    let target = root.join("target/bench");
    let (_lock, dir) = run_directory(&target)?;
    let path = args.binary.unwrap_or_else(|| root.join("target/release/notbefore"));
    let mut bench = Bench {
        binary: Binary {
            path: path.canonicalize().with_context(|| format!("{}", path.display()))?,
            core: cores.server,
            under: Vec::new(),
        },
        cores,
        quick: args.quick,
        report: Report {
            machine: Machine::look(&root, cores)?,
            quick: args.quick,
            measures: Vec::new(),
            tables: Vec::new(),
            notes: Vec::new(),
            failures: Vec::new(),
        },
        scenario: "",
        dir: dir.path().to_owned(),
    };
    if let Some(old) = &args.against {
        let old = old.canonicalize().with_context(|| format!("{}", old.display()))?;
        return compared(&mut bench, &chosen, old, args.turns);
    }
    measure(&mut bench, &chosen);
    println!("{}", bench.report.summary());
    let json = args.json.unwrap_or_else(|| target.join("results.json"));
    std::fs::write(&json, serde_json::to_string_pretty(&bench.report)? + "\n")?;
    println!("written to {}", json.display());
    if args.docs {
        docs::write(&root.join("docs/internals/benchmarks.md"), &bench.report)?;
    }
    Ok(bench.report.reached())
}

fn measure(bench: &mut Bench, chosen: &[&'static Scenario]) {
    for scenario in chosen {
        bench.scenario = scenario.name;
        bench.progress(scenario.about);
        let begun = clock::now();
        if let Err(error) = (scenario.run)(bench) {
            bench.report.failures.push(format!("{}: {error:#}", scenario.name));
            bench.progress(&format!("{error:#}"));
        }
        println!(
            "\n== {}: {:.0} s\n{}",
            scenario.name,
            begun.elapsed().as_secs_f64(),
            bench.report.of_scenario(scenario.name)
        );
    }
}

/// Compares an older binary with this one; false if a number differs.
fn compared(
    bench: &mut Bench,
    chosen: &[&'static Scenario],
    old: PathBuf,
    turns: usize,
) -> anyhow::Result<bool> {
    let new = bench.binary.path.clone();
    let mut comparison = Comparison::default();
    for side in compare::turns(turns) {
        bench.binary.path = if side == Side::Old { old.clone() } else { new.clone() };
        bench.progress(&format!("{side:?}: {}", bench.binary.path.display()));
        measure(bench, chosen);
        comparison.take(side, &mut bench.report);
    }
    let (table, overlap) = comparison.summary();
    println!("{}\n\n{turns} turns each\n\n{table}", bench.report.machine);
    for failure in &bench.report.failures {
        println!("{failure}");
    }
    Ok(overlap && bench.report.failures.is_empty())
}

/// Creates a directory for this run next to the build, because the temporary directory may not be on a disk. Removes
/// leftovers of killed runs. A lock prevents concurrent runs.
fn run_directory(target: &Path) -> anyhow::Result<(File, TempDir)> {
    std::fs::create_dir_all(target)?;
    let lock = File::create(target.join("lock"))?;
    lock.try_lock().context("another benchmark run is in progress")?;
    for entry in std::fs::read_dir(target)? {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("run-")) {
            std::fs::remove_dir_all(path)?;
        }
    }
    Ok((lock, tempfile::Builder::new().prefix("run-").tempdir_in(target)?))
}

fn choose(names: &[String]) -> anyhow::Result<Vec<&'static Scenario>> {
    if names.is_empty() {
        return Ok(ALL.iter().collect());
    }
    for name in names {
        let known = ALL.iter().any(|scenario| scenario.name == name);
        anyhow::ensure!(known, "there is no scenario {name}\n{}", scenarios());
    }
    Ok(ALL.iter().filter(|scenario| names.iter().any(|name| name == scenario.name)).collect())
}
