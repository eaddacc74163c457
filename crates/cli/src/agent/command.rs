//! `notbefore agent reload` and `retry`: commands to the running agent, by its control socket.

use std::path::Path;

use anyhow::{Result, bail};
use notbefore_agent::control::{self, Answer, FactText, Reloaded, Request, Retried};
use notbefore_wire::text::counted;

use super::{check_id, state_dir};
use crate::args::{Output, Retry, StateDir};
use crate::exit::UsageError;
use crate::guest::in_runtime;
use crate::output;

/// Message for an answer of another kind, which only another release can give.
const ANOTHER: &str = "the agent answers another command; restart it to use the installed version";

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
        Answer::Retried(_) | Answer::Status(_) => bail!("{ANOTHER}"),
    };
    for problem in &reloaded.missing_programs {
        output::eprint(&format!("warning: {problem}; install the program or correct the rule"));
    }
    if reloaded.restart_needed {
        output::eprint(
            "warning: settings other than rules and notify have changed; restart the agent to apply them",
        );
    }
    output.answer(&reloaded, |Reloaded { file, rules, facts, .. }| {
        output::line(&format!("{file}: reloaded, {}", counted(*rules, "rule")))?;
        show(facts)
    })
}

pub fn retry(retry: &Retry, output: Output) -> Result<()> {
    check_id(&retry.event)?;
    let request = Request::Retry { event: retry.event.clone() };
    let retried = match ask(&state_dir(&retry.dir)?, &request)? {
        Answer::Retried(retried) => retried,
        Answer::Refused(why) => bail!("{why}"),
        Answer::Reloaded(_) | Answer::Mistakes(_) | Answer::Status(_) => bail!("{ANOTHER}"),
    };
    output.answer(&retried, |Retried { event, facts }| match facts.is_empty() {
        true => output::line(&format!("event {event}: the approval is sent again")),
        false => show(facts),
    })
}

fn show(facts: &[FactText]) -> Result<()> {
    facts.iter().try_for_each(|FactText { event, text }| output::line(&format!("event {event}: {text}")))
}
