//! `notbefore agent`: the guest's side, on a VM.

mod check;
mod logs;
mod orders;
mod status;

use std::io::Write;
use std::net::SocketAddr;

use anyhow::Result;
use clap::Parser;
use notbefore_agent::config::{self, Sources};
use tokio::sync::mpsc;

use crate::args::{Agent, LogFormat, Output, Run, Settings};
use crate::guest::in_runtime;
use crate::output;

/// How many orders may wait; a person sends them one by one.
const ORDERS_MAX: usize = 8;

/// What was typed, if it is to run the agent and nothing else. An agent is at rest for nearly all of its life, in every VM:
/// it does not even look at what the other commands need. Whatever else is typed, mistakes included, is for everybody's
/// own parser.
pub fn alone() -> Option<Agent> {
    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        run: Run,
    }
    let words: Vec<_> = std::env::args_os().collect();
    let is_run =
        words.get(1).is_some_and(|word| word == "agent") && words.get(2).is_some_and(|word| word == "run");
    let alone = is_run.then(|| Alone::try_parse_from(words.into_iter().skip(2)));
    alone?.ok().map(|alone| Agent::Run(alone.run))
}

pub fn run(verb: Agent, output: Output) -> Result<()> {
    match verb {
        Agent::Run(run) => until_told_to_stop(&run.settings, run.log_format),
        Agent::Check(check) => check::run(&check, output),
        Agent::Status(settings) => status::run(&settings, output),
        Agent::Sample => output::text(config::SAMPLE),
    }
}

fn until_told_to_stop(settings: &Settings, log_format: LogFormat) -> Result<()> {
    let sources = sources(settings);
    let config = config::load(&sources)?;
    logs::start(&config.log, log_format)?;
    in_runtime(async {
        let (orders, told) = mpsc::channel(ORDERS_MAX);
        orders::listen(orders)?;
        Ok(notbefore_agent::run::run(config, sources, told, announce).await?)
    })
}

/// What is said besides the file.
fn sources(settings: &Settings) -> Sources {
    let said = [
        ("endpoint", &settings.endpoint),
        ("name", &settings.name),
        ("api_version", &settings.api_version),
        ("state", &settings.state),
        ("listen", &settings.listen),
        ("log", &settings.log),
    ];
    let said = said.into_iter().filter_map(|(key, value)| Some((key, value.clone()?)));
    let dry_run = settings.dry_run.then(|| ("dry_run", true.to_string()));
    Sources {
        file: settings.config.clone(),
        environment: config::process_environment(),
        flags: said.chain(dry_run).collect(),
    }
}

/// Tells whoever has started the agent where to look.
fn announce(signals: Option<SocketAddr>) {
    let mut lines = vec![format!("notbefore agent {} is ready", env!("CARGO_PKG_VERSION"))];
    lines
        .extend(signals.map(|at| format!("  signals  http://{at}/readyz /drainz /events /metrics /healthz")));
    // Nobody may be reading any more; the agent runs all the same.
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}", lines.join("\n")).and_then(|()| out.flush());
}
