//! `notbefore agent check`: the configuration, the hooks and the platform, looked over without an event.

use std::io::{self, BufRead, IsTerminal, Write};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use notbefore_agent::config::{self, Config};
use notbefore_agent::hooks::facts::Facts;
use notbefore_agent::hooks::{self, stop};
use notbefore_agent::machine::io::{Stage, StepOutcome};
use notbefore_agent::rules::{Deed, OnFailure, Rule, Step};
use notbefore_agent::{check, signals, words};
use notbefore_client::client::Options;
use notbefore_client::clock::Clock;
use notbefore_client::discovery::Discovery;
use notbefore_client::document::EventKind;
use notbefore_client::identity::{self, Identity};
use serde::Serialize;

use super::{logs, sources, status};
use crate::args::{Check, LogFormat, Output, RunStage};
use crate::guest::in_runtime;
use crate::output;

/// How long the platform has to answer a person who waits.
const PLATFORM_WITHIN: Duration = Duration::from_secs(20);

/// What was found, for programs.
#[derive(Serialize)]
struct Report {
    file: String,
    rules: Vec<Vec<String>>,
    endpoint: Option<String>,
    vm: Option<String>,
    problems: Vec<String>,
}

pub fn run(check: &Check, output: Output) -> Result<()> {
    let sources = sources(&check.settings);
    let config = config::load(&sources)?;
    logs::targets(&config.log)?;
    logs::start(check.settings.log.as_deref().unwrap_or("warn"), LogFormat::Text)?;
    match &check.run {
        Some(rule) => in_runtime(rehearse(&config, rule, check)),
        None => in_runtime(look_over(&config, check.offline, output)),
    }
}

/// Why the signals could not be served. Where an agent serves them already, they can be.
fn cannot_listen(address: SocketAddr) -> Option<String> {
    let error = signals::look_over(address).err()?;
    let by_an_agent = error.is_taken() && status::ask(address).is_ok();
    (!by_an_agent).then(|| error.to_string())
}

async fn look_over(config: &Config, offline: bool, output: Output) -> Result<()> {
    let mut report = Report {
        file: config.file.display().to_string(),
        rules: config.rules.iter().map(words::rule).collect(),
        endpoint: None,
        vm: None,
        problems: check::problems(&config.rules),
    };
    report.problems.extend(check::problems_of_settings(config));
    report.problems.extend(config.listen.and_then(cannot_listen));
    if !offline {
        match platform(config).await {
            Ok((endpoint, vm)) => (report.endpoint, report.vm) = (Some(endpoint), Some(vm)),
            Err(error) => report.problems.push(format!("{error:#}")),
        }
    }
    match output {
        Output::Json => output::json(&report)?,
        Output::Table => {
            output::line(&format!("{}: no mistakes", report.file))?;
            for line in report.rules.iter().flatten() {
                output::line(line)?;
            }
            if let (Some(endpoint), Some(vm)) = (&report.endpoint, &report.vm) {
                output::line(&format!("the platform answers at {endpoint}, and this VM is {vm}"))?;
            }
        }
    }
    match report.problems.as_slice() {
        [] => Ok(()),
        [one] => bail!("{one}"),
        several => bail!("there are {} problems:\n  {}", several.len(), several.join("\n  ")),
    }
}

/// Tries endpoint and identity.
async fn platform(config: &Config) -> Result<(String, String)> {
    let discovery = Discovery::new(config.endpoint.clone(), Options { newest: config.api_version });
    let found = tokio::time::timeout(PLATFORM_WITHIN, discovery.find()).await;
    let found = found.with_context(|| {
        format!(
            "the platform has not answered within {} s; --offline leaves it out",
            PLATFORM_WITHIN.as_secs()
        )
    })??;
    let me = Identity::find(&found.client, config.name.as_deref(), &identity::host_name()).await;
    Ok((found.client.endpoint().to_string(), me.name().to_owned()))
}

/// Runs a rule's steps for real, with an event that is none.
async fn rehearse(config: &Config, name: &str, check: &Check) -> Result<()> {
    let rule = config.rules.iter().find(|rule| rule.name == name).with_context(|| {
        let names: Vec<&str> = config.rules.iter().map(|rule| rule.name.as_str()).collect();
        format!("there is no rule {name:?}; there are {}", names.join(", "))
    })?;
    let steps = steps(rule, check.stage);
    if steps.is_empty() {
        bail!("the rule {name} has no such steps");
    }
    output::line(&format!("this runs for real, on this machine, as if a {} came:", kind(rule, check)))?;
    for (stage, step) in &steps {
        output::line(&format!("  {}  {}", stage_word(*stage), words::step(step, *stage)))?;
    }
    agreed(check.yes)?;
    let vm =
        config.name.clone().unwrap_or_else(|| Identity::of_host(&identity::host_name()).name().to_owned());
    let clock = Clock::start();
    let event = check::sample_event(kind(rule, check), &vm, clock.now().wall);
    for (stage, step) in steps {
        let run = check::sample_run(rule, stage, step, &event);
        let begun = clock.now().tick;
        let outcome = interruptible(&run.step.does, &Facts::new(&run, &vm, false), run.budget).await;
        let took = clock.now().tick.saturating_sub(begun).as_secs_f64();
        let place = format!("{} {}", stage_word(stage), step.name);
        let went_on = step.on_failure == OnFailure::GoOn;
        match outcome {
            StepOutcome::Done => output::line(&format!("{place}: done in {took:.1} s"))?,
            StepOutcome::Stopped => bail!("{place}: stopped"),
            StepOutcome::TimedOut if went_on => output::line(&format!("{place}: not done in {took:.1} s"))?,
            StepOutcome::Failed { reason } if went_on => output::line(&format!("{place}: {reason}"))?,
            StepOutcome::TimedOut => bail!("{place}: not done in {took:.1} s"),
            StepOutcome::Failed { reason } => bail!("{place}: {reason}"),
        }
    }
    Ok(())
}

/// A Ctrl-C ends the step, and all that it has started.
async fn interruptible(deed: &Deed, facts: &Facts, budget: Duration) -> StepOutcome {
    let (stopper, mut stop) = stop::pair();
    let running = hooks::carry_out(deed, facts, budget, &mut stop);
    tokio::pin!(running);
    tokio::select! {
        outcome = &mut running => return outcome,
        _ = tokio::signal::ctrl_c() => stopper.stop(stop::STOP_GRACE),
    }
    running.await
}

/// A type that the rule is for: the one that was said, the first that it names, or Reboot.
fn kind(rule: &Rule, check: &Check) -> EventKind {
    let said = check.r#type.clone().map(EventKind::from);
    said.or_else(|| rule.matches.kinds.first().cloned()).unwrap_or(EventKind::Reboot)
}

fn steps(rule: &Rule, stage: RunStage) -> Vec<(Stage, &Step)> {
    let before = rule.before.iter().map(|step| (Stage::Before, step));
    let after = rule.after.iter().map(|step| (Stage::After, step));
    match stage {
        RunStage::Before => before.collect(),
        RunStage::After => after.collect(),
        RunStage::Both => before.chain(after).collect(),
    }
}

fn stage_word(stage: Stage) -> &'static str {
    match stage {
        Stage::Before => "before",
        Stage::After => "after",
    }
}

/// A person says yes, or has said so already.
fn agreed(yes: bool) -> Result<()> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        bail!("nothing was run: nobody is there to be asked; say --yes");
    }
    print!("Run them? [y/N] ");
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was run"),
    }
}
