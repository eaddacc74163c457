//! Arguments of `rehearse`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use notbefore_rehearse::handler::MarkerSource;

use super::Output;
use crate::time::parse_span;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Rehearse {
    #[command(subcommand)]
    pub verb: Option<RehearseVerb>,
    /// A scenario of 'rehearse list', or a file
    #[arg(required = true)]
    pub scenario: Option<String>,
    #[command(flatten)]
    pub play: Play,
}

/// How to play, and what to write.
#[derive(Debug, clap::Args)]
pub struct Play {
    /// Divide the scenario's waits by this
    #[arg(long, value_name = "N", default_value_t = notbefore_rehearse::pace::COMPRESS, value_parser = parse_compress)]
    pub compress: f64,
    /// Shortest wait after division
    #[arg(long, value_name = "SPAN", default_value = "5s", allow_hyphen_values = true, value_parser = parse_span)]
    pub floor: Duration,
    /// Longest allowed gap between two polls, instead of the scenario's; raises --floor to twice that
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = parse_span)]
    pub polls_every: Option<Duration>,
    /// How the handler shows that the VM is drained: line:REGEX, file:PATH ({vm} is the VM's name) or call
    #[arg(long, value_name = "SOURCE")]
    pub drained: Option<MarkerSource>,
    /// How the handler shows that the VM is restored
    #[arg(long, value_name = "SOURCE")]
    pub restored: Option<MarkerSource>,
    /// Run the handler again, so long after each exit, as cron or Pacemaker do
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = parse_span)]
    pub repeat: Option<Duration>,
    /// Give each handler a network of its own, in which 169.254.169.254 is the rehearsal
    #[arg(long)]
    pub netns: bool,
    /// Write what happened and the verdict to this file (JSON), for 'rehearse report'
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Write the verdict to this file as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write a page with timeline and verdict to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Words of a handler that is not after --, for the error message
    #[arg(hide = true, value_name = "WORD")]
    pub misplaced: Vec<OsString>,
    /// The handler and its arguments; without one, point a handler at the address that is printed
    #[arg(last = true, value_name = "HANDLER")]
    pub handler: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub enum RehearseVerb {
    /// List the scenarios that come with the program
    List,
    /// Print a scenario, to read it or to change a copy
    Show {
        /// A scenario of 'rehearse list'
        scenario: String,
    },
    /// Play all scenarios, several side by side, and print a report card
    #[command(after_help = include_str!("help/rehearse_doctor.txt").trim_end())]
    Doctor {
        /// Only these scenarios; may be repeated
        #[arg(long, value_name = "SCENARIO")]
        only: Vec<String>,
        /// Scenarios at a time
        #[arg(long, value_name = "N", default_value_t = notbefore_rehearse::doctor::SIDE_BY_SIDE)]
        side_by_side: usize,
        #[command(flatten)]
        play: Box<Play>,
    },
    /// Make one page of recordings
    Report {
        /// Files of --record
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// The page [default: report.html; none with --output json or yaml]
        #[arg(long, short = 'o', value_name = "FILE")]
        html: Option<PathBuf>,
        /// Output format
        // In the place of the global flag of this id, whose short form is -o.
        #[arg(long, help_heading = "Global options", value_enum, default_value_t = Output::Table)]
        output: Output,
    },
    /// Print the JSON schema of scenario files
    Schema,
}

fn parse_compress(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (1.0..=1_000_000.0).contains(number));
    number.ok_or_else(|| format!("{text:?} is no divisor; write a number from 1 (real time) to 1000000"))
}
