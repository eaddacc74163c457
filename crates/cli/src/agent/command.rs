//! `notbefore agent reload` and `retry`: commands to the running agent, by its control socket.

use std::path::Path;

use anyhow::{Result, bail};
use notbefore_agent::check;
use notbefore_agent::control::{self, Answer, AppliedFile, FactText, Reloaded, Request, Retried};
use notbefore_agent::overview::Overview;
use notbefore_wire::text::counted;
use serde::Serialize;

use super::{check_id, state_dir, status};
use crate::args::{Output, Retry, StateDir};
use crate::exit::UsageError;
use crate::guest::in_runtime;
use crate::output;

/// Message for an answer of another kind, which only another release can give.
pub const ANOTHER: &str = "the agent answers another command; restart it to use the installed version";

/// Sends a request to the agent that uses this state directory.
pub fn ask(state: &Path, request: &Request) -> Result<Answer> {
    in_runtime(async { Ok(control::ask(state, request).await?) })
}

pub fn reload(dir: &StateDir, output: Output) -> Result<()> {
    let reloaded = match ask(&state_dir(dir)?, &Request::Reload)? {
        Answer::Reloaded(reloaded) => reloaded,
        Answer::Mistakes(text) => {
            return Err(UsageError(format!("{text}\nthe previous rules stay in effect")).into());
        }
        Answer::Refused(why) => bail!("{why}"),
        Answer::Retried(_) | Answer::Fact(_) | Answer::Outcome(_) | Answer::Status(_) => bail!("{ANOTHER}"),
    };
    warn(&reloaded.file);
    output.answer(&reloaded, |Reloaded { file, facts }| {
        output::line(&format!("{}: reloaded, {}", file.file, counted(file.rules, "rule")))?;
        facts.iter().try_for_each(show)
    })
}

/// Warnings about a file that is applied.
fn warn(file: &AppliedFile) {
    if file.rules == 0 {
        output::eprint(&format!("warning: {}", check::NO_RULES));
    }
    for problem in &file.missing_programs {
        output::eprint(&format!("warning: {problem}; install the program or correct the rule"));
    }
    if file.restart_needed {
        output::eprint(
            "warning: settings other than rules and notify have changed; restart the agent to apply them",
        );
    }
}

/// JSON output of `retry`.
#[derive(Serialize)]
struct Report {
    event: String,
    facts: Vec<FactText>,
    /// None if the event is over and nothing is left to do, and with `--no-wait`.
    outcome: Option<Overview>,
}

pub fn retry(retry: &Retry, output: Output) -> Result<()> {
    check_id(&retry.event)?;
    let request = Request::Retry { event: retry.event.clone(), wait: !retry.no_wait };
    let state = state_dir(&retry.dir)?;
    let report = in_runtime(async {
        let (answer, mut answers) = control::begin(&state, &request).await?;
        let mut report = retried(answer, output)?;
        if retry.no_wait {
            return Ok(report);
        }
        loop {
            match answers.next().await? {
                Answer::Fact(fact) => {
                    if output.is_text() {
                        show(&fact)?;
                    }
                    report.facts.push(fact);
                }
                Answer::Outcome(outcome) => {
                    report.outcome = outcome.map(|outcome| *outcome);
                    return Ok(report);
                }
                Answer::Refused(why) => bail!("{why}"),
                Answer::Reloaded(_) | Answer::Mistakes(_) | Answer::Retried(_) | Answer::Status(_) => {
                    bail!("{ANOTHER}")
                }
            }
        }
    })?;
    // In text, the facts are printed.
    output.answer(&report, |_| Ok(()))?;
    report.outcome.as_ref().map_or(Ok(()), ended)
}

/// The first answer to a retry. In text, its facts are printed.
fn retried(answer: Answer, output: Output) -> Result<Report> {
    let Retried { event, file, facts } = match answer {
        Answer::Retried(retried) => retried,
        Answer::Mistakes(text) => {
            let unchanged = "nothing is retried, and the previous rules stay in effect";
            return Err(UsageError(format!("{text}\n{unchanged}")).into());
        }
        Answer::Refused(why) => bail!("{why}"),
        Answer::Reloaded(_) | Answer::Fact(_) | Answer::Outcome(_) | Answer::Status(_) => bail!("{ANOTHER}"),
    };
    warn(&file);
    if output.is_text() {
        match facts.is_empty() {
            true => output::line(&format!("event {event}: the approval is sent again"))?,
            false => facts.iter().try_for_each(show)?,
        }
    }
    Ok(Report { event, facts, outcome: None })
}

/// Fails as `agent status` does if the event still needs attention, or if its approval has failed.
fn ended(event: &Overview) -> Result<()> {
    if let Some(state) = status::trouble_of(event) {
        return Err(state.into());
    }
    match event.is_approval_failed() {
        true => bail!("the approval of event {} has {}", event.id, event.approval),
        false => Ok(()),
    }
}

fn show(fact: &FactText) -> Result<()> {
    let FactText { event, text } = fact;
    output::line(&format!("event {event}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    fn outcome(phase: &str, approval: &str) -> Overview {
        Overview {
            id: "A-1".to_owned(),
            r#type: "Reboot".to_owned(),
            status: "Scheduled".to_owned(),
            not_before: None,
            resources: vec!["web-0".to_owned()],
            mine: true,
            seen_at: jiff::Timestamp::UNIX_EPOCH,
            rule: Some("all".to_owned()),
            phase: phase.to_owned(),
            step: Some("drain".to_owned()),
            approval: approval.to_owned(),
            draining: true,
        }
    }

    #[test]
    fn retry_ends_with_the_code_of_its_outcome() {
        for (phase, approval, code, text) in [
            ("ready", "given", 0, ""),
            ("restoring", "given", 0, ""),
            ("ready", "failed 2 times, tried again", 1, "the approval of event A-1 has failed 2 times"),
            (
                "stranded",
                "given",
                11,
                "this VM is not restored after event A-1: step drain of rule all failed",
            ),
            ("withheld", "none: the step `drain` failed", 12, "event A-1 is not approved by rule all"),
            ("unmatched", "none: no rule matches", 13, "no rule matches event A-1"),
        ] {
            let ended = ended(&outcome(phase, approval));
            let (found, why) = match ended {
                Ok(()) => (Exit::Done, String::new()),
                Err(error) => (Exit::of(&error), error.to_string()),
            };
            assert_eq!(found.code(), code, "{phase}, {approval}: {why}");
            assert!(why.starts_with(text), "{why}");
        }
    }
}
