//! `notbefore agent`: runs, checks and installs the agent on a VM.

mod check;
mod command;
mod history;
mod orders;
mod rehearse;
mod status;
#[cfg(windows)]
mod windows;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use notbefore_agent::config::{self, Config, FlagValue, Sources};
use notbefore_agent::run::Order;
use tokio::sync::mpsc;

use crate::args::{Agent, Output, Run, Settings, StateDir};
use crate::exit::UsageError;
use crate::guest::in_runtime;
use crate::{logs, output};

/// Longest id of an event on the command line. Platforms use GUIDs, of 36 characters.
const ID_CHARACTERS_MAX: usize = 200;

/// Queue length for orders; signals arrive one by one.
const ORDERS_MAX: usize = 8;

/// Fast path for `agent run`: parses only its own arguments. The agent idles in every VM, so it avoids the memory of
/// the full command tree. Returns `None` for anything else, errors included; the full parser handles those.
pub fn parse_run_only() -> Option<Agent> {
    #[derive(Parser)]
    struct RunOnly {
        #[command(flatten)]
        run: Run,
    }
    let words: Vec<_> = std::env::args_os().collect();
    let is_run =
        words.get(1).is_some_and(|word| word == "agent") && words.get(2).is_some_and(|word| word == "run");
    let parsed = is_run.then(|| RunOnly::try_parse_from(words.into_iter().skip(2)));
    parsed?.ok().map(|parsed| Agent::Run(parsed.run))
}

pub fn run(verb: Agent, output: Output) -> Result<()> {
    match verb {
        Agent::Run(run) => run_in_foreground(&run.settings),
        Agent::Check(check) => check::run(&check, output),
        Agent::Status(status) => status::run(&status, output),
        Agent::History(history) => history::run(&history, output),
        Agent::Reload(dir) => command::reload(&dir, output),
        Agent::Retry(retry) => command::retry(&retry, output),
        Agent::Sample => output::data(config::SAMPLE.as_bytes()),
        #[cfg(windows)]
        Agent::Install(install) => windows::install(&install),
        #[cfg(windows)]
        Agent::Uninstall => windows::service::uninstall(),
        #[cfg(windows)]
        Agent::Service(settings) => windows::serve(settings),
        #[cfg(not(windows))]
        Agent::Install(_) | Agent::Uninstall => Err(UsageError(
            "only on Windows; on Linux use systemd: 'systemctl enable --now notbefore-agent' \
             with the unit from the package or dist/systemd"
                .to_owned(),
        )
        .into()),
    }
}

/// Runs until a signal or Ctrl-C.
fn run_in_foreground(settings: &Settings) -> Result<()> {
    let (orders, received) = mpsc::channel(ORDERS_MAX);
    let log = |config: &Config| logs::start(&config.log, config.log_format);
    run_until_stopped(settings, log, received, || orders::listen(orders))
}

/// Runs until an order to stop. `listen` is called inside the runtime, so that it can register signal handlers.
fn run_until_stopped(
    settings: &Settings,
    start_log: impl FnOnce(&Config) -> Result<()>,
    orders: mpsc::Receiver<Order>,
    listen: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let sources = sources(settings);
    logs::expect_format(&sources, "NOTBEFORE_AGENT_LOG_FORMAT");
    let config = config::load(&sources)?;
    start_log(&config)?;
    in_runtime(async {
        listen()?;
        Ok(notbefore_agent::run::run(config, sources, orders, announce).await?)
    })
}

fn sources(settings: &Settings) -> Sources {
    Sources::of_process(settings.config.clone(), flag_values(settings))
}

/// The state directory of the agent. Fails if the file that may name it is not read: the default directory may be that
/// of another agent. The default file may be missing, or closed to this user.
fn state_dir(dir: &StateDir) -> Result<PathBuf> {
    let StateDir { config, state } = dir.clone();
    let sources = sources(&Settings { config, state, ..Settings::default() });
    let place = config::find_running_agent(&sources)?;
    let is_state_given = dir.state.is_some() || sources.variable("NOTBEFORE_AGENT_STATE").is_some();
    let is_file_named = dir.config.is_some() || sources.variable("NOTBEFORE_AGENT_CONFIG").is_some();
    match place.unread {
        Some(why) if !is_state_given && (is_file_named || place.is_untrusted) => {
            let cure = "the state directory of the agent is not known; it can be named with --state";
            Err(UsageError(format!("{why}; {cure}")).into())
        }
        Some(_) | None => Ok(place.state),
    }
}

/// Refuses an argument that is too long for an event's id, without repeating it.
fn check_id(event: &str) -> Result<()> {
    match event.chars().count() {
        0..=ID_CHARACTERS_MAX => Ok(()),
        chars => Err(UsageError(format!(
            "the event has {chars} characters, an id has at most {ID_CHARACTERS_MAX}; give the id, or its first digits"
        ))
        .into()),
    }
}

/// Ids of the events that the agent of this machine handles, for completion.
pub fn event_ids() -> Result<Vec<String>> {
    let place = config::find_running_agent(&sources(&Settings::default()))?;
    let address = place.listen.context("the agent has no listener")?;
    Ok(status::ask(address)?.events.into_iter().map(|event| event.id).collect())
}

/// Ids of the events in its history, for completion.
pub fn past_event_ids() -> Result<Vec<String>> {
    let place = config::find_running_agent(&sources(&Settings::default()))?;
    Ok(notbefore_agent::history::read(&place.state)?.into_iter().map(|event| event.id).collect())
}

/// Settings given by flags, with their keys.
fn flag_values(settings: &Settings) -> Vec<FlagValue> {
    let values = [
        ("endpoint", &settings.endpoint),
        ("name", &settings.name),
        ("api_version", &settings.api_version),
        ("state", &settings.state),
        ("listen", &settings.listen),
        ("log", &settings.log),
        ("log_format", &settings.log_format),
    ];
    let values = values.into_iter().filter_map(|(key, value)| Some(FlagValue::of_key(key, value.clone()?)));
    let dry_run = settings.dry_run.then(|| FlagValue::of_key("dry_run", true.to_string()));
    values.chain(dry_run).collect()
}

/// Prints the addresses of the signals.
fn announce(signals: Option<SocketAddr>) {
    let mut lines = vec![format!("notbefore agent {} is ready", env!("CARGO_PKG_VERSION"))];
    lines
        .extend(signals.map(|at| format!("  signals  http://{at}/readyz /drainz /events /metrics /healthz")));
    // Ignore errors: the agent runs even if standard output is closed.
    let _ = output::lines(&lines);
}
