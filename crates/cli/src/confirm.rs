//! The one way in which a command shows its plan and asks before it does something that cannot be undone.
//!
//! A person is asked where standard input and standard output are a terminal. The question goes to standard error, and
//! anything but `y` or `yes` is a no.

use std::io::{self, BufRead, IsTerminal};

use anyhow::{Result, bail};
use serde::Serialize;

use crate::args::{ConfirmArgs, Output};
use crate::exit::UsageError;
use crate::output;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The question, as in `Remove it?`
    ask: &'static str,
    /// What a no comes to, as in `nothing was removed`
    nothing: &'static str,
    /// Whether `--yes` is needed where nobody can be asked.
    needs_yes: bool,
}

impl Question {
    /// A command that goes on where nobody can be asked.
    pub const fn optional(ask: &'static str, nothing: &'static str) -> Self {
        Self { ask, nothing, needs_yes: false }
    }

    /// A command that needs `--yes` where nobody can be asked.
    pub const fn needed(ask: &'static str, nothing: &'static str) -> Self {
        Self { ask, nothing, needs_yes: true }
    }
}

/// What became of a question.
pub enum Decision<P> {
    /// The plan was all that was wanted (`--dry-run`).
    DryRun,
    /// The change is to be made, according to this plan if a person has agreed to one.
    Proceed(Option<P>),
}

/// Whether there is a terminal to ask at.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Shows the plan where it is wanted, and asks. The plan is worked out only if it is shown.
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

/// Shows a plan that is not carried out.
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

/// Shows a plan before it is carried out. Programs read the outcome from standard output, so theirs goes to standard error.
pub fn show(output: Output, lines: &[String]) -> Result<()> {
    match output {
        Output::Table => output::lines(lines),
        Output::Json => {
            lines.iter().for_each(|line| output::eprint(line));
            Ok(())
        }
    }
}

/// Asks; an error unless the answer is yes.
pub fn ask(yes: bool, question: Question) -> Result<()> {
    let Question { ask, nothing, needs_yes } = question;
    match (yes, is_interactive(), needs_yes) {
        (true, _, _) | (false, false, false) => Ok(()),
        (false, false, true) => {
            let cure = "there is no terminal to ask at; say --yes to go on without a question";
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
