//! `notbefore`: the one binary. It runs the service and is the operator's hand on it.
//!
//! [`args`] is what can be typed; each noun has a file of its own that turns it into calls of the operator
//! API. Results go to stdout, as a table for people or as JSON for programs; errors go to stderr with the
//! next step, and the exit code is 1 for what was refused and 2 for what could not be understood.

mod args;
mod audit;
mod client;
mod config;
mod event;
mod export;
mod fleet;
mod fleet_apply;
mod fleet_file;
mod host;
mod import;
mod operation;
mod output;
mod progress;
mod serve;
mod systemd;
mod time;
mod token;
mod trust;
mod vm;

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use args::{Args, Noun};
use client::Client;

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = match args.noun {
        Noun::Serve(serve) => serve::run(*serve, args.output),
        Noun::Fleet(verb) => fleet::run(&args.reach, verb, args.output),
        Noun::Vm(verb) => Client::find(&args.reach).and_then(|client| vm::run(&client, verb, args.output)),
        Noun::Host(verb) => {
            Client::find(&args.reach).and_then(|client| host::run(&client, verb, args.output))
        }
        Noun::Event(verb) => {
            Client::find(&args.reach).and_then(|client| event::run(&client, verb, args.output))
        }
        Noun::Operation(verb) => {
            Client::find(&args.reach).and_then(|client| operation::run(&client, verb, args.output))
        }
        Noun::Token(verb) => {
            Client::find(&args.reach).and_then(|client| token::run(&client, verb, args.output))
        }
        Noun::Audit(audit) => {
            Client::find(&args.reach).and_then(|client| audit::run(&client, audit, args.output))
        }
        Noun::OpenApi => output::json(&notbefore_service::operator::description()),
        Noun::Export(verb) => {
            Client::find(&args.reach).and_then(|client| export::run(&client, verb, args.output))
        }
        Noun::ExecKeeper { results, command } => {
            notbefore_service::exec::keeper::keep(&results, &command).context("cannot keep a command")
        }
        Noun::Import(verb) => import::run(&args.reach, verb, args.output),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A reader that has seen enough (`| head`) is no error.
            if output::is_broken_pipe(&error) {
                return ExitCode::SUCCESS;
            }
            eprintln!("notbefore: {error:#}");
            if error.is::<config::Mistakes>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}
