//! `notbefore agent check --run`: runs a rule's steps once each, for a made-up event.
//!
//! `notbefore_agent::rehearsal` handles the event. This module prints the steps, asks for confirmation and reports the
//! results. With `--dry-run` the steps are only printed.

use anyhow::{Context, Result, bail};
use notbefore_agent::config::Config;
use notbefore_agent::describe;
use notbefore_agent::machine::io::Stage;
use notbefore_agent::platform::initial_identity;
use notbefore_agent::rehearsal::{self, Outcome, StepResult};
use notbefore_agent::rules::Rule;
use notbefore_client::document::EventKind;
use notbefore_wire::text::printable;
use serde::Serialize;
use tokio::sync::mpsc;

use super::check::platform;
use super::{ORDERS_MAX, orders};
use crate::args::{Check, Output, RunStage};
use crate::confirm::{self, Question};
use crate::exit::UsageError;
use crate::output;

/// JSON output.
#[derive(Serialize)]
struct Report {
    rule: String,
    r#type: EventKind,
    vm: String,
    dry_run: bool,
    steps: Vec<StepResult>,
}

pub async fn run(config: &Config, name: &str, check: &Check, output: Output) -> Result<()> {
    let whole = config.rules.iter().find(|rule| rule.name == name).ok_or_else(|| {
        let names: Vec<&str> = config.rules.iter().map(|rule| rule.name.as_str()).collect();
        UsageError(format!("no rule {name:?}; rules: {}", names.join(", ")))
    })?;
    let mut rule = whole.clone();
    match check.stage {
        RunStage::Both => {}
        RunStage::Before => rule.after.clear(),
        RunStage::After => rule.before.clear(),
    }
    if rule.before.is_empty() && rule.after.is_empty() {
        return Err(UsageError(format!("rule {name} has no such steps; choose another --stage")).into());
    }
    let (vm, kind) = (vm(config, check.offline).await?, kind(&rule, check));
    let how = if config.dry_run { "dry run, would run" } else { "running for real" };
    output::eprint(&format!("{how} on this machine, as for a {kind} event of {}:", printable(&vm)));
    let before = rule.before.iter().map(|step| (Stage::Before, step));
    let all = before.chain(rule.after.iter().map(|step| (Stage::After, step)));
    for (stage, step) in all.clone() {
        output::eprint(&format!("  {:<6}  {}", stage.as_str(), describe::step(step, stage)));
    }
    let report = |vm, kind, steps| Report {
        rule: rule.name.clone(),
        r#type: kind,
        vm,
        dry_run: config.dry_run,
        steps,
    };
    if config.dry_run {
        let steps = all.map(|(stage, step)| StepResult::not_run(stage, step)).collect();
        return finish_dry_run(config, &report(vm, kind, steps), check, output);
    }
    confirm::ask(check.yes, Question::needed("Run them?", "nothing was run"))?;
    let (orders, received) = mpsc::channel(ORDERS_MAX);
    orders::listen(orders)?;
    let show = |tried: &StepResult| {
        if output.is_text() {
            // Ignore errors: started steps are finished even if standard output is closed.
            let _ = output::line(&line(tried));
        }
    };
    let steps = rehearsal::run(config, &rule, kind.clone(), &vm, received, show).await;
    let is_left = check.stage == RunStage::Before && !whole.after.is_empty();
    ended(&report(vm, kind, steps), is_left, output)
}

/// Prints the report; fails if a step failed.
fn ended(report: &Report, is_left: bool, output: Output) -> Result<()> {
    output.answer(report, |_| Ok(()))?;
    let is_not_run = |tried: &StepResult| tried.outcome == Outcome::NotRun && tried.stage == Stage::After;
    let is_left = is_left || report.steps.iter().any(is_not_run);
    let is_wrong = |tried: &&StepResult| !matches!(tried.outcome, Outcome::Done | Outcome::NotRun);
    let wrong: Vec<String> = report.steps.iter().filter(is_wrong).map(line).collect();
    match (wrong.is_empty(), is_left) {
        (true, _) => Ok(()),
        (false, false) => bail!("{}", wrong.join("; ")),
        (false, true) => bail!(
            "{}; the VM is not restored: run the steps after it with 'notbefore agent check --run {} --stage after'",
            wrong.join("; "),
            report.rule
        ),
    }
}

fn line(tried: &StepResult) -> String {
    format!("{} {}: {}", tried.stage.as_str(), tried.step, tried.text)
}

/// Ends a dry run. It succeeds only with the `--dry-run` flag: if the file or environment sets it, a script must not
/// assume that the steps ran.
fn finish_dry_run(config: &Config, report: &Report, check: &Check, output: Output) -> Result<()> {
    output.answer(report, |_| Ok(()))?;
    match check.settings.dry_run {
        true => Ok(()),
        false => bail!(
            "nothing was run: {} or NOTBEFORE_AGENT_DRY_RUN sets dry_run = true; remove it, or set \
             NOTBEFORE_AGENT_DRY_RUN=false for this run",
            config.file.display()
        ),
    }
}

/// This VM's name: from the configuration, else from the platform, or with `--offline` the agent's initial name.
async fn vm(config: &Config, offline: bool) -> Result<String> {
    match &config.name {
        Some(name) => Ok(name.clone()),
        None if offline => Ok(initial_identity(config).name().to_owned()),
        None => Ok(platform(config).await.context("cannot determine this VM's name")?.1),
    }
}

/// The event's type: from `--type`, else the rule's first, else Reboot.
fn kind(rule: &Rule, check: &Check) -> EventKind {
    let said = check.r#type.clone().map(EventKind::from);
    said.or_else(|| rule.matches.kinds.first().cloned()).unwrap_or(EventKind::Reboot)
}
