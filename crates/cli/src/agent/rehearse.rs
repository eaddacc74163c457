//! `notbefore agent check --run`: a rule's steps carried out for real, once each, with an event that is none.
//!
//! `notbefore_agent::rehearsal` has the agent handle the event; here it is said what is going to happen, asked whether it
//! shall, and told what came of it. Under a dry run the steps are told and none is run.

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
use crate::output;

/// How it went, for programs.
#[derive(Serialize)]
struct Report {
    rule: String,
    r#type: EventKind,
    vm: String,
    dry_run: bool,
    steps: Vec<StepResult>,
}

/// Runs the steps of the rule that has this name.
pub async fn run(config: &Config, name: &str, check: &Check, output: Output) -> Result<()> {
    let whole = config.rules.iter().find(|rule| rule.name == name).with_context(|| {
        let names: Vec<&str> = config.rules.iter().map(|rule| rule.name.as_str()).collect();
        format!("there is no rule {name:?}; there are {}", names.join(", "))
    })?;
    let mut rule = whole.clone();
    match check.stage {
        RunStage::Both => {}
        RunStage::Before => rule.after.clear(),
        RunStage::After => rule.before.clear(),
    }
    if rule.before.is_empty() && rule.after.is_empty() {
        bail!("the rule {name} has no such steps");
    }
    let (vm, kind) = (vm(config, check.offline).await?, kind(&rule, check));
    let how = if config.dry_run { "this would run" } else { "this runs for real" };
    output::eprint(&format!("{how}, on this machine, as if a {kind} came for {}:", printable(&vm)));
    let before = rule.before.iter().map(|step| (Stage::Before, step));
    let all = before.chain(rule.after.iter().map(|step| (Stage::After, step)));
    for (stage, step) in all.clone() {
        output::eprint(&format!("  {}  {}", word(stage), describe::step(step, stage)));
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
        if output == Output::Table {
            // Nobody may be reading any more. What was begun is brought to its end all the same.
            let _ = output::line(&line(tried));
        }
    };
    let steps = rehearsal::run(config, &rule, kind.clone(), &vm, received, show).await;
    let is_left = check.stage == RunStage::Before && !whole.after.is_empty();
    ended(&report(vm, kind, steps), is_left, output)
}

/// Says how it went; well is only what has done every step.
fn ended(report: &Report, is_left: bool, output: Output) -> Result<()> {
    output.answer(report, |_| Ok(()))?;
    let is_wrong = |tried: &&StepResult| !matches!(tried.outcome, Outcome::Done | Outcome::NotRun);
    let wrong: Vec<String> = report.steps.iter().filter(is_wrong).map(line).collect();
    match (wrong.is_empty(), is_left) {
        (true, _) => Ok(()),
        (false, false) => bail!("{}", wrong.join("; ")),
        (false, true) => bail!(
            "{}; the steps after it were not run: 'notbefore agent check --run {} --stage after' runs them",
            wrong.join("; "),
            report.rule
        ),
    }
}

fn line(tried: &StepResult) -> String {
    format!("{} {}: {}", word(tried.stage), tried.step, tried.text)
}

/// What a dry run comes to. Whoever has typed `--dry-run` knows; a script that wants the steps run must not take it for that.
fn finish_dry_run(config: &Config, report: &Report, check: &Check, output: Output) -> Result<()> {
    output.answer(report, |_| Ok(()))?;
    match check.settings.dry_run {
        true => Ok(()),
        false => bail!(
            "nothing was run: {} or NOTBEFORE_AGENT_DRY_RUN says dry_run = true; take that out, or say \
             NOTBEFORE_AGENT_DRY_RUN=false this once",
            config.file.display()
        ),
    }
}

/// What this VM is called: what is set, or what the platform says, or without that what an agent would go by.
async fn vm(config: &Config, offline: bool) -> Result<String> {
    match &config.name {
        Some(name) => Ok(name.clone()),
        None if offline => Ok(initial_identity(config).name().to_owned()),
        None => Ok(platform(config).await.context("cannot learn this VM's name")?.1),
    }
}

/// A type that the rule is for: the one that was said, the first that it names, or Reboot.
fn kind(rule: &Rule, check: &Check) -> EventKind {
    let said = check.r#type.clone().map(EventKind::from);
    said.or_else(|| rule.matches.kinds.first().cloned()).unwrap_or(EventKind::Reboot)
}

fn word(stage: Stage) -> &'static str {
    match stage {
        Stage::Before => "before",
        Stage::After => "after",
    }
}
