//! `notbefore agent check`: the configuration, the hooks and the platform, looked over without an event. With `--run` a
//! rule's steps are carried out, which is in `rehearse.rs`.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use notbefore_agent::config::{self, Config};
use notbefore_agent::platform::initial_identity;
use notbefore_agent::{check, describe, signals};
use notbefore_client::client::Options;
use notbefore_client::discovery::Discovery;
use notbefore_client::identity::Identity;
use serde::Serialize;

use super::{logs, rehearse, sources, status};
use crate::args::{Check, LogFormat, Output};
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
    // Whoever tries hooks wants to see what they print.
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

/// Why the signals could not be served. Where an agent serves them already, they can be.
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
        endpoint: None,
        vm: None,
        problems: check::problems(&config.rules),
    };
    report.problems.extend(check::setting_problems(config));
    report.problems.extend(cannot_listen);
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

/// Where the platform answers, and what it calls this VM.
pub async fn platform(config: &Config) -> Result<(String, String)> {
    let discovery = Discovery::new(config.endpoint.clone(), Options::from(config.api_version));
    let found = tokio::time::timeout(PLATFORM_WITHIN, discovery.find()).await;
    let found = found.with_context(|| {
        format!(
            "the platform has not answered within {} s; --offline leaves it out",
            PLATFORM_WITHIN.as_secs()
        )
    })??;
    let me = Identity::find(&found.client, initial_identity(config)).await;
    Ok((found.client.endpoint().to_string(), me.name().to_owned()))
}
