//! The one way in which a command shows its plan and asks before it does something that cannot be undone.
//!
//! A person is asked where standard input and standard output are a terminal. The question goes to standard error, and
//! anything but `y` or `yes` is a no.

use std::io::{self, BufRead, IsTerminal};

use anyhow::{Result, bail};
use serde::Serialize;

use crate::args::{Care, Output};
use crate::exit::NotUnderstood;
use crate::output;

/// What a command does where nobody can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unattended {
    GoesOn,
    NeedsYes,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The question, as in `Remove it?`
    pub ask: &'a str,
    /// What a no comes to, as in `nothing was removed`
    pub nothing: &'a str,
    pub unattended: Unattended,
}

/// What became of a question.
pub enum Verdict<P> {
    /// The plan was all that was wanted (`--dry-run`).
    OnlyShown,
    /// The change is to be made, according to this plan if a person has agreed to one.
    GoAhead(Option<P>),
}

/// Whether there is a terminal to ask at.
pub fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Shows the plan where it is wanted, and asks. The plan is worked out only if it is shown.
pub fn agree<P: Serialize>(
    care: &Care,
    output: Output,
    question: &Question<'_>,
    plan: impl FnOnce() -> Result<P>,
    lines: impl FnOnce(&P) -> Vec<String>,
) -> Result<Verdict<P>> {
    if care.dry_run {
        let plan = plan()?;
        show_only(output, question.nothing, &plan, lines)?;
        return Ok(Verdict::OnlyShown);
    }
    if care.yes || (!is_attended() && question.unattended == Unattended::GoesOn) {
        return Ok(Verdict::GoAhead(None));
    }
    let plan = plan()?;
    show(output, &lines(&plan))?;
    ask(false, question)?;
    Ok(Verdict::GoAhead(Some(plan)))
}

/// Shows a plan that is not carried out.
pub fn show_only<P: Serialize>(
    output: Output,
    nothing: &str,
    plan: &P,
    lines: impl FnOnce(&P) -> Vec<String>,
) -> Result<()> {
    match output {
        Output::Json => output::json(plan),
        Output::Table => {
            show(output, &lines(plan))?;
            output::line(&format!("{nothing} (--dry-run)"))
        }
    }
}

/// Shows a plan before it is carried out. Programs read the outcome from standard output, so theirs goes to standard error.
pub fn show(output: Output, lines: &[String]) -> Result<()> {
    match output {
        Output::Table => lines.iter().try_for_each(|line| output::line(line)),
        Output::Json => {
            lines.iter().for_each(|line| output::complain(line));
            Ok(())
        }
    }
}

/// Asks; an error unless the answer is yes.
pub fn ask(yes: bool, question: &Question<'_>) -> Result<()> {
    let nothing = question.nothing;
    match (yes, is_attended(), question.unattended) {
        (true, _, _) | (false, false, Unattended::GoesOn) => Ok(()),
        (false, false, Unattended::NeedsYes) => {
            let cure = "there is no terminal to ask at; say --yes to go on without a question";
            Err(NotUnderstood(format!("{nothing}: {cure}")).into())
        }
        (false, true, _) => {
            output::ask(&format!("{} [y/N]", question.ask))?;
            let mut answer = String::new();
            io::stdin().lock().read_line(&mut answer)?;
            match answer.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => Ok(()),
                _ => bail!("{nothing}"),
            }
        }
    }
}
