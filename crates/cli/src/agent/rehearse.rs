//! `notbefore agent check --run`: a rule's steps carried out for real, once each, with an event that is none.
//!
//! It leaves the VM as the agent would: where a step before the event fails, or somebody says Ctrl-C, the steps that follow
//! it are not run, and those after the event are, as for one that was cancelled. Where it is the notice that a step runs out
//! of, the steps that follow are run with what they keep, and a `wait` has waited for as long as there was time: it is done.
//! Ctrl-C during the steps after ends it all. Under a dry run the steps are told and none is run.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use notbefore_agent::config::Config;
use notbefore_agent::hooks::facts::Facts;
use notbefore_agent::hooks::{self, stop};
use notbefore_agent::machine::io::{Stage, StepOutcome};
use notbefore_agent::platform::goes_by;
use notbefore_agent::rules::{Deed, OnFailure, Rule, Step};
use notbefore_agent::run::Order;
use notbefore_agent::{check, describe};
use notbefore_client::clock::Clock;
use notbefore_client::document::{Event, EventKind};
use notbefore_wire::text::printable;
use serde::Serialize;
use tokio::sync::mpsc;

use super::check::platform;
use super::{ORDERS_MAX, orders};
use crate::args::{Check, Output, RunStage};
use crate::confirm::{self, Question, Unattended};
use crate::output;

/// How it went, for programs.
#[derive(Serialize)]
struct Report {
    rule: String,
    r#type: EventKind,
    vm: String,
    dry_run: bool,
    steps: Vec<Tried>,
}

/// A step, and what became of it.
#[derive(Serialize)]
struct Tried {
    stage: Stage,
    step: String,
    outcome: Outcome,
    /// What there is to say of it.
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Done,
    Failed,
    TimedOut,
    Stopped,
    NotRun,
}

/// Runs the steps of the rule that has this name.
pub async fn run(config: &Config, name: &str, check: &Check, output: Output) -> Result<()> {
    let rule = config.rules.iter().find(|rule| rule.name == name).with_context(|| {
        let names: Vec<&str> = config.rules.iter().map(|rule| rule.name.as_str()).collect();
        format!("there is no rule {name:?}; there are {}", names.join(", "))
    })?;
    let before = if check.stage == RunStage::After { &[] } else { rule.before.as_slice() };
    let after = if check.stage == RunStage::Before { &[] } else { rule.after.as_slice() };
    if before.is_empty() && after.is_empty() {
        bail!("the rule {name} has no such steps");
    }
    let (vm, kind) = (vm(config, check.offline).await?, kind(rule, check));
    let how = if config.dry_run { "this would run" } else { "this runs for real" };
    output::complain(&format!("{how}, on this machine, as if a {kind} came for {}:", printable(&vm)));
    let all =
        before.iter().map(|step| (Stage::Before, step)).chain(after.iter().map(|step| (Stage::After, step)));
    for (stage, step) in all.clone() {
        output::complain(&format!("  {}  {}", word(stage), describe::step(step, stage)));
    }
    let mut report =
        Report { rule: rule.name.clone(), r#type: kind, vm, dry_run: config.dry_run, steps: Vec::new() };
    if config.dry_run {
        report.steps.extend(all.map(|(stage, step)| not_run(stage, step)));
        return stay_dry(config, &report, check, output);
    }
    let nothing = "nothing was run";
    let unattended = Unattended::NeedsYes;
    confirm::ask(check.yes, &Question { ask: "Run them?", nothing, unattended })?;
    let (tell, told) = mpsc::channel(ORDERS_MAX);
    orders::listen(tell)?;
    let clock = Clock::start();
    let event = check::sample_event(report.r#type.clone(), &report.vm, clock.now().wall);
    let mut rehearsal = Rehearsal { rule, event, clock, told, output, report };
    let ready = rehearsal.stage(Stage::Before, before, false).await;
    rehearsal.stage(Stage::After, after, !ready).await;
    rehearsal.ended(check)
}

/// A rehearsal under way.
struct Rehearsal<'a> {
    rule: &'a Rule,
    event: Event,
    clock: Clock,
    /// Ctrl-C, and other signals to end.
    told: mpsc::Receiver<Order>,
    output: Output,
    report: Report,
}

impl Rehearsal<'_> {
    /// Runs the steps of a stage, and answers whether none has kept the next from being run.
    async fn stage(&mut self, stage: Stage, steps: &[Step], cancelled: bool) -> bool {
        let (mut goes_on, mut ready) = (true, true);
        for step in steps {
            let (tried, cut) = match goes_on {
                true => self.attempt(stage, step, cancelled).await,
                false => (not_run(stage, step), false),
            };
            let passes = match tried.outcome {
                Outcome::Done => true,
                Outcome::Failed | Outcome::TimedOut => step.on_failure == OnFailure::GoOn,
                Outcome::Stopped | Outcome::NotRun => false,
            };
            ready &= passes;
            // One that the event's time ran out on does not keep the others from theirs.
            goes_on &= passes || cut;
            if self.output == Output::Table {
                // Nobody may be reading any more. What was begun is brought to its end all the same.
                let _ = output::line(&tried.line());
            }
            self.report.steps.push(tried);
        }
        ready
    }

    /// Tries a step, and answers whether it was the event's time that it ran out of, and not its own.
    async fn attempt(&mut self, stage: Stage, step: &Step, cancelled: bool) -> (Tried, bool) {
        let begun = self.clock.now().tick;
        let run = check::sample_run(self.rule, stage, step, &self.event, begun, cancelled);
        let facts = Facts::new(&run, &self.report.vm, false);
        let outcome = match run.budget.is_zero() {
            true => StepOutcome::TimedOut,
            false => self.interruptible(&run.step.does, &facts, run.budget).await,
        };
        let cut = outcome == StepOutcome::TimedOut && run.budget < step.timeout;
        let took = self.clock.now().tick.saturating_sub(begun).as_secs_f64();
        let (outcome, text) = match outcome {
            StepOutcome::Done => (Outcome::Done, format!("done in {took:.1} s")),
            StepOutcome::Failed { reason } => (Outcome::Failed, reason),
            StepOutcome::TimedOut if cut && matches!(step.does, Deed::Wait { .. }) => {
                (Outcome::Done, format!("done: cut short to the {took:.1} s that the notice leaves it"))
            }
            StepOutcome::TimedOut if cut => {
                (Outcome::TimedOut, format!("not done in {took:.1} s, which is what the notice leaves it"))
            }
            StepOutcome::TimedOut => (Outcome::TimedOut, format!("not done in {took:.1} s")),
            StepOutcome::Stopped => (Outcome::Stopped, format!("stopped after {took:.1} s")),
        };
        (Tried { stage, step: step.name.clone(), outcome, text }, cut)
    }

    /// A Ctrl-C ends the step, and all that it has started.
    async fn interruptible(&mut self, deed: &Deed, facts: &Facts, budget: Duration) -> StepOutcome {
        let (stopper, mut stop) = stop::pair();
        let running = hooks::carry_out(deed, facts, budget, &mut stop);
        tokio::pin!(running);
        tokio::select! {
            outcome = &mut running => return outcome,
            _ = self.told.recv() => stopper.stop(stop::STOP_GRACE),
        }
        let outcome = running.await;
        // Somebody who has said it more than once meant this step.
        while self.told.try_recv().is_ok() {}
        outcome
    }

    /// Says how it went; well is only what has done every step.
    fn ended(self, check: &Check) -> Result<()> {
        if self.output == Output::Json {
            output::json(&self.report)?;
        }
        let is_wrong = |tried: &&Tried| !matches!(tried.outcome, Outcome::Done | Outcome::NotRun);
        let wrong: Vec<String> = self.report.steps.iter().filter(is_wrong).map(Tried::line).collect();
        let left = check.stage == RunStage::Before && !self.rule.after.is_empty();
        match (wrong.is_empty(), left) {
            (true, _) => Ok(()),
            (false, false) => bail!("{}", wrong.join("; ")),
            (false, true) => bail!(
                "{}; the steps after it were not run: 'notbefore agent check --run {} --stage after' runs them",
                wrong.join("; "),
                self.rule.name
            ),
        }
    }
}

impl Tried {
    fn line(&self) -> String {
        format!("{} {}: {}", word(self.stage), self.step, self.text)
    }
}

fn not_run(stage: Stage, step: &Step) -> Tried {
    Tried { stage, step: step.name.clone(), outcome: Outcome::NotRun, text: "not run".to_owned() }
}

/// What a dry run comes to. Whoever has typed `--dry-run` knows; a script that wants the steps run must not take it for that.
fn stay_dry(config: &Config, report: &Report, check: &Check, output: Output) -> Result<()> {
    if output == Output::Json {
        output::json(report)?;
    }
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
        None if offline => Ok(goes_by(config).name().to_owned()),
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
