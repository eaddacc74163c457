//! `notbefore agent check`: checks the configuration, hooks and platform without an event. `--run` is in `rehearse.rs`.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use notbefore_agent::config::{self, Config};
use notbefore_agent::coverage::{self, Gap};
use notbefore_agent::platform::initial_identity;
use notbefore_agent::{check, describe, signals};
use notbefore_client::client::Options;
use notbefore_client::discovery::Discovery;
use notbefore_client::identity::Identity;
use notbefore_settings::kind::LogFormat;
use serde::Serialize;

use super::{rehearse, sources, status};
use crate::args::{Check, Output};
use crate::guest::in_runtime;
use crate::{logs, output};

/// Timeout for the platform.
const PLATFORM_WITHIN: Duration = Duration::from_secs(20);

/// JSON output.
#[derive(Serialize)]
struct Report {
    file: String,
    rules: Vec<Vec<String>>,
    /// Events of this VM that no rule matches.
    uncovered: Vec<Gap>,
    endpoint: Option<String>,
    vm: Option<String>,
    problems: Vec<String>,
}

pub fn run(check: &Check, output: Output) -> Result<()> {
    let sources = sources(&check.settings);
    let config = config::load(&sources)?;
    // With --run, show the output of hooks.
    let hooks = "warn,notbefore_agent::hook=debug,notbefore_agent::hooks=warn";
    let usual = if check.run.is_some() { hooks } else { "warn" };
    logs::start(check.settings.log.as_deref().unwrap_or(usual), LogFormat::Text)?;
    match &check.run {
        Some(rule) => in_runtime(rehearse::run(&config, rule, check, output)),
        None => {
            let cannot_listen = config.listen.and_then(cannot_listen);
            in_runtime(check_agent(&config, cannot_listen, check.offline, output))
        }
    }
}

/// Why the listen address is not usable. An address in use by a running agent is fine.
fn cannot_listen(address: SocketAddr) -> Option<String> {
    let error = signals::check_address(address).err()?;
    let by_an_agent = error.is_taken() && status::ask(address).is_ok();
    (!by_an_agent).then(|| error.to_string())
}

async fn check_agent(
    config: &Config,
    cannot_listen: Option<String>,
    offline: bool,
    output: Output,
) -> Result<()> {
    let mut report = Report {
        file: config.file.display().to_string(),
        rules: config.rules.iter().map(describe::rule).collect(),
        uncovered: coverage::gaps(&config.rules),
        endpoint: None,
        vm: None,
        problems: check::problems(&config.rules).iter().map(ToString::to_string).collect(),
    };
    report.problems.extend(check::setting_problems(config));
    report.problems.extend(cannot_listen);
    if !offline {
        match platform(config).await {
            Ok((endpoint, vm)) => (report.endpoint, report.vm) = (Some(endpoint), Some(vm)),
            Err(error) => report.problems.push(format!("{error:#}")),
        }
    }
    if config.rules.is_empty() {
        output::eprint(&format!("warning: {}", check::NO_RULES));
    }
    output.answer(&report, |report| {
        output::line(&format!("{}: no errors", report.file))?;
        for line in report.rules.iter().flatten().chain(&coverage::describe(&report.uncovered)) {
            output::line(line)?;
        }
        if let (Some(endpoint), Some(vm)) = (&report.endpoint, &report.vm) {
            output::line(&format!("platform: {endpoint}, VM: {vm}"))?;
        }
        Ok(())
    })?;
    match report.problems.as_slice() {
        [] => Ok(()),
        [one] => bail!("{one}"),
        several => bail!("{} problems:\n  {}", several.len(), several.join("\n  ")),
    }
}

/// The platform's endpoint and this VM's name.
pub async fn platform(config: &Config) -> Result<(String, String)> {
    let discovery = Discovery::new(config.endpoint.clone(), Options::from(config.api_version));
    let found = tokio::time::timeout(PLATFORM_WITHIN, discovery.find()).await;
    let found = found.with_context(|| {
        format!(
            "the platform did not answer within {} s; use --offline to skip it",
            PLATFORM_WITHIN.as_secs()
        )
    })??;
    let me = Identity::find(&found.client, initial_identity(config)).await;
    Ok((found.client.endpoint().to_string(), me.name().to_owned()))
}
