//! `notbefore`: the one binary. It runs the service, is the operator's hand on it, and the guest's side of it inside of a VM.
//!
//! [`args`] is what can be typed; each noun has a file of its own that turns it into calls of the operator
//! API, or of the platform (`guest`, `agent`). Results go to stdout, as a table for people or as JSON for programs; errors go
//! to stderr with the next step. [`exit`] has the exit codes of all commands.
//!
//! The service runs on Linux, so its code and the commands that need it are there on Unix only. Everything else speaks
//! HTTP and is there on Windows too.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod agent;
mod args;
mod audit;
#[cfg(unix)]
mod check;
mod client;
mod clock;
#[cfg(unix)]
mod config;
mod confirm;
mod data_files;
mod destination;
mod event;
mod exit;
#[cfg(unix)]
mod export;
mod fact;
mod fleet;
mod fleet_apply;
mod fleet_file;
mod fleet_plan;
mod guest;
mod host;
mod http;
#[cfg(unix)]
mod import;
mod manual;
mod operation;
mod output;
mod pause;
mod progress;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod systemd;
mod time;
mod token;
mod trust;
mod vm;

use std::process::ExitCode;

#[cfg(unix)]
use anyhow::Context;
use clap::FromArgMatches;

use args::{Args, Output, TopCommand};
use client::Client;
use exit::Exit;

fn main() -> ExitCode {
    let outcome = match agent::parse_run_only() {
        Some(verb) => agent::run(verb, Output::Table),
        None => run(parse_args()),
    };
    let exit = match outcome {
        Ok(()) => Exit::Done,
        // A reader that has seen enough (`| head`) is no error.
        Err(error) if output::is_broken_pipe(&error) => Exit::Done,
        Err(error) => {
            output::eprint(&format!("notbefore: {error:#}"));
            Exit::of(&error)
        }
    };
    exit.into()
}

/// What was typed. What cannot be understood ends the program, with the next step.
fn parse_args() -> Args {
    let mut command = args::shown::command();
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let args = matches
        .and_then(|matches| Args::from_arg_matches(&matches).map_err(|error| error.format(&mut command)));
    args.unwrap_or_else(|error| {
        // Help and version go to standard output, and show nothing that was typed.
        if error.use_stderr() {
            output::eprint(error.render().to_string().trim_end());
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}

fn run(args: Args) -> anyhow::Result<()> {
    let client = || Client::find(&args.reach);
    match args.command {
        #[cfg(unix)]
        TopCommand::Serve(serve) => serve::run(*serve, args.output),
        TopCommand::Fleet(verb) => fleet::run(&args.reach, verb, args.output),
        TopCommand::Vm(verb) => vm::run(&client()?, verb, args.output),
        TopCommand::Host(verb) => host::run(&client()?, verb, args.output),
        TopCommand::Event(verb) => event::run(&client()?, verb, args.output),
        TopCommand::Operation(verb) => operation::run(&client()?, verb, args.output),
        TopCommand::Token(verb) => token::run(&client()?, verb, args.output),
        TopCommand::Clock(verb) => clock::run(&client()?, verb, args.output),
        TopCommand::Audit(audit) => audit::run(&client()?, audit, args.output),
        #[cfg(unix)]
        TopCommand::OpenApi => output::json(&notbefore_service::operator::description()),
        #[cfg(unix)]
        TopCommand::Export(verb) => export::run(&args.reach, verb, args.output),
        #[cfg(unix)]
        TopCommand::Check => check::run(&args.reach, args.output),
        #[cfg(unix)]
        TopCommand::ExecKeeper { result, command } => {
            notbefore_service::exec::keeper::keep(&result, &command).context("cannot keep a command")
        }
        #[cfg(unix)]
        TopCommand::Import(verb) => import::run(&args.reach, verb, args.output),
        TopCommand::Get(get) => guest::get(get, args.output),
        TopCommand::Approve(approve) => guest::approve(approve, args.output),
        TopCommand::Agent(verb) => agent::run(verb, args.output),
        TopCommand::Completions { shell } => manual::completions(shell),
        TopCommand::ManualPages { dir } => manual::pages(&dir),
        #[cfg(not(unix))]
        TopCommand::LinuxOnly { words: _ } => Err(exit::UsageError(
            "the service, its store and its description are there on Linux only; \
             this program is the guest's side of it, and the operator's hand on a service elsewhere (--operator-url)"
                .to_owned(),
        )
        .into()),
    }
}
