//! `notbefore`: one binary for the service, the operator commands, the guest commands and the agent.
//!
//! `args` defines the arguments. Each command has a module that calls the operator API, or the platform (`guest`,
//! `agent`). Results go to stdout as a table, JSON or YAML; errors go to stderr with the next step. `exit` has the exit
//! codes.
//!
//! The service and the commands that need its code exist on Unix only. All other commands use HTTP and exist on Windows
//! too.
//!
//! The program is a library with a `main` of one line, so that './dev dist' links it a second time, with line tables,
//! without compiling it again.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod agent;
mod args;
mod audit;
mod block;
#[cfg(unix)]
mod check;
mod client;
mod clock;
mod cluster;
mod completion;
#[cfg(unix)]
mod config;
mod confirm;
mod console;
mod data_files;
#[cfg(unix)]
mod demo;
mod destination;
mod each;
#[cfg(unix)]
mod etcd;
mod event;
mod exit;
#[cfg(unix)]
mod export;
mod fact;
mod fault;
mod fleet;
mod fleet_apply;
mod fleet_file;
mod fleet_plan;
mod guest;
mod healthy;
mod host;
mod host_totals;
mod http;
#[cfg(unix)]
mod import;
mod logs;
#[cfg(all(test, unix))]
mod manual;
mod many;
mod operation;
mod output;
mod pause;
mod progress;
#[cfg(unix)]
mod rehearse;
#[cfg(unix)]
mod serve;
mod status;
#[cfg(unix)]
mod systemd;
mod table;
mod time;
mod token;
mod trust;
mod vm;
mod wait;
mod watch;

use std::process::ExitCode;
use std::time::Duration;

#[cfg(unix)]
use anyhow::Context;
use clap::FromArgMatches;
use notbefore_settings::suggest;

use args::{Args, Output, TopCommand};
use client::Client;
use exit::Exit;

/// Runs the command of the process's arguments.
pub fn main() -> ExitCode {
    let outcome = match agent::parse_run_only() {
        Some(verb) => agent::run(verb, Output::Table),
        None => run(parse_args()),
    };
    let exit = match outcome {
        Ok(()) => Exit::Done,
        // A closed pipe (`| head`) is not an error.
        Err(error) if output::is_broken_pipe(&error) => Exit::Done,
        Err(error) => {
            logs::fatal(&error);
            Exit::of(&error)
        }
    };
    exit.into()
}

/// Parses the command line; on error prints it and exits.
fn parse_args() -> Args {
    let mut command = args::shown::command();
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let args = matches
        .and_then(|matches| Args::from_arg_matches(&matches).map_err(|error| error.format(&mut command)));
    args.unwrap_or_else(|error| {
        let error = args::shown::without_hidden_suggestions(error, &command);
        // Help and version go to standard output, and do not echo arguments.
        if error.use_stderr() {
            output::eprint(error.render().to_string().trim_end());
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}

fn run(args: Args) -> anyhow::Result<()> {
    if args.output == Output::Name && !args.command.has_names() {
        let cure = "use it with vm, host, event, operation, token, get or 'fleet show'";
        return Err(exit::UsageError(format!("--output name: this command prints no names; {cure}")).into());
    }
    if args.local_time {
        time::use_local();
    }
    let client = || Client::find(&args.reach);
    match args.command {
        #[cfg(unix)]
        TopCommand::Serve(serve) => serve::run(*serve, &args.reach, args.output),
        TopCommand::Status(watch) => status::run(&client()?, &watch, args.output),
        TopCommand::Fleet(verb) => fleet::run(&args.reach, verb, args.output),
        TopCommand::Vm(verb) => vm::run(&client()?, verb, args.output),
        TopCommand::Host(verb) => host::run(&client()?, verb, args.output),
        TopCommand::Event(verb) => event::run(&client()?, verb, args.output),
        TopCommand::Operation(verb) => operation::run(&client()?, verb, args.output),
        TopCommand::Token(verb) => token::run(&args.reach, verb, args.output),
        TopCommand::Fault(verb) => fault::run(&client()?, verb, args.output),
        TopCommand::Clock(verb) => clock::run(&client()?, verb, args.output),
        TopCommand::Cluster(verb) => cluster::run(&client()?, verb, args.output),
        TopCommand::Console => console::run(&client()?, args.output),
        TopCommand::Audit(audit) => audit::run(&client()?, audit, args.output),
        TopCommand::Healthy(healthy) => healthy::run(&args.reach, &healthy, args.output),
        #[cfg(unix)]
        TopCommand::OpenApi => output::raw_json(notbefore_service::operator::DESCRIPTION.trim_end()),
        #[cfg(unix)]
        TopCommand::Export(verb) => export::run(&args.reach, verb, args.output),
        #[cfg(unix)]
        TopCommand::Check => check::run(&args.reach, args.output),
        #[cfg(unix)]
        TopCommand::ExecKeeper { lease_until, result, command } => {
            let lease_until = lease_until.map(std::time::Duration::from_millis);
            notbefore_service::exec::keeper::keep(&result, &command, lease_until)
                .context("cannot supervise the command")
        }
        #[cfg(unix)]
        TopCommand::RehearseKeeper { value } => {
            notbefore_rehearse::keeper::keep(std::io::stdin().lock(), &value, &mut std::io::stderr())
                .context("cannot watch over the handlers")
        }
        #[cfg(unix)]
        TopCommand::Import(verb) => import::run(&args.reach, verb, args.output),
        #[cfg(unix)]
        TopCommand::Rehearse(rehearse) => rehearse::run(*rehearse, args.output),
        TopCommand::Get(get) => guest::get(get, args.output),
        TopCommand::Approve(approve) => guest::approve(approve, args.output),
        TopCommand::Agent(verb) => agent::run(verb, args.output),
        TopCommand::Completions { shell } => completion::print_script(shell),
        TopCommand::CompleteNames { kind, within } => {
            completion::print_names(args.reach, kind, Duration::from_millis(within))
        }
        #[cfg(not(unix))]
        TopCommand::LinuxOnly { words: _ } => Err(exit::UsageError(
            "this command exists on Linux only; \
             on Windows this program has the guest commands, the agent, and operator commands for a remote service (--operator-url)"
                .to_owned(),
        )
        .into()),
    }
}
