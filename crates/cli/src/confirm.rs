//! Plan and confirmation before a command makes an irreversible change.
//!
//! The command asks only if standard input and standard output are a terminal. The question goes to standard error;
//! any answer but `y` or `yes` means no.

use std::io::{self, BufRead, IsTerminal};

use anyhow::{Result, bail};
use serde::Serialize;

use crate::args::{ConfirmArgs, Output};
use crate::exit::UsageError;
use crate::output;

#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// For example `Remove it?`
    ask: &'static str,
    /// Message after no, for example `nothing was removed`.
    nothing: &'static str,
    /// Whether `--yes` is required without a terminal.
    needs_yes: bool,
}

impl Question {
    /// Without a terminal the command proceeds.
    pub const fn optional(ask: &'static str, nothing: &'static str) -> Self {
        Self { ask, nothing, needs_yes: false }
    }

    /// Without a terminal the command requires `--yes`.
    pub const fn needed(ask: &'static str, nothing: &'static str) -> Self {
        Self { ask, nothing, needs_yes: true }
    }
}

pub enum Decision<P> {
    /// Only the plan was requested (`--dry-run`).
    DryRun,
    /// Make the change; with the plan if the user confirmed one.
    Proceed(Option<P>),
}

pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Shows the plan if needed, and asks for confirmation. The plan is computed only if it is shown.
pub fn show_and_ask<P: Serialize>(
    confirmation: &ConfirmArgs,
    output: Output,
    question: Question,
    plan: impl FnOnce() -> Result<P>,
    lines: impl FnOnce(&P) -> Vec<String>,
) -> Result<Decision<P>> {
    if confirmation.dry_run {
        let plan = plan()?;
        show_only(output, question, &plan, lines)?;
        return Ok(Decision::DryRun);
    }
    if confirmation.yes || (!is_interactive() && !question.needs_yes) {
        return Ok(Decision::Proceed(None));
    }
    let plan = plan()?;
    show(output, &lines(&plan))?;
    ask(false, question)?;
    Ok(Decision::Proceed(Some(plan)))
}

/// Shows the plan of a dry run.
pub fn show_only<P: Serialize>(
    output: Output,
    question: Question,
    plan: &P,
    lines: impl FnOnce(&P) -> Vec<String>,
) -> Result<()> {
    output.answer(plan, |plan| {
        output::lines(&lines(plan))?;
        output::line(&format!("{} (--dry-run)", question.nothing))
    })
}

/// Shows a plan before it is carried out; on standard error with output for programs, since standard output has the result.
pub fn show(output: Output, lines: &[String]) -> Result<()> {
    match output.is_text() {
        true => output::lines(lines),
        false => {
            lines.iter().for_each(|line| output::eprint(line));
            Ok(())
        }
    }
}

/// Asks for confirmation; fails if it is denied.
pub fn ask(yes: bool, question: Question) -> Result<()> {
    let Question { ask, nothing, needs_yes } = question;
    match (yes, is_interactive(), needs_yes) {
        (true, _, _) | (false, false, false) => Ok(()),
        (false, false, true) => {
            let cure = "no terminal for confirmation; use --yes to continue without it";
            Err(UsageError(format!("{nothing}: {cure}")).into())
        }
        (false, true, _) => {
            output::ask(&format!("{ask} [y/N]"))?;
            let mut answer = String::new();
            io::stdin().lock().read_line(&mut answer)?;
            match answer.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => Ok(()),
                _ => bail!("{nothing}"),
            }
        }
    }
}
