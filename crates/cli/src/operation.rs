//! `notbefore operation …`, and what is shown of an operation that was just made.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::Result;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use notbefore_wire::operator::{Operation, OperationProgress, OperationTarget};

use crate::args::{self, Output};
use crate::client::{Client, encode};
use crate::output::{self, Table, or_dash};
use crate::time::Pause;
use crate::vm::when;

/// How often an operation that is waited for is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub fn run(client: &Client, verb: args::Operation, output: Output) -> Result<()> {
    match verb {
        args::Operation::List => {
            let operations: Vec<Operation> = client.list("/v1/operations", &[])?;
            if output == Output::Json {
                return output::json(&operations);
            }
            let mut table = Table::new(&[
                "OPERATION",
                "CAUSE",
                "HOST",
                "STATE",
                "RELEASE",
                "NOT BEFORE",
                "EVENTS",
                "APPROVED",
                "STARTED",
                "ENDED",
            ]);
            for one in &operations {
                table.row([
                    one.id.to_string(),
                    one.cause.clone(),
                    or_dash(one.host.as_deref()),
                    one.state.clone(),
                    one.release.clone(),
                    when(one.not_before),
                    one.progress.events.to_string(),
                    one.progress.approved.to_string(),
                    one.progress.started.to_string(),
                    one.progress.ended.to_string(),
                ]);
            }
            table.print("no operation is open")
        }
        args::Operation::Show { operation } => {
            show(&client.get(&format!("/v1/operations/{}", encode(&operation)))?, output)
        }
        args::Operation::Cancel { operation } => {
            let path = format!("/v1/operations/{}/cancel", encode(&operation));
            show(&client.post(&path, &serde_json::json!({}))?, output)
        }
        args::Operation::Wait { operations } => wait(client, &operations, output),
    }
}

fn show(operation: &Operation, output: Output) -> Result<()> {
    if output == Output::Json {
        return output::json(operation);
    }
    let cancelled = if operation.cancelled { ", cancelled" } else { "" };
    output::line(&format!("{} {} ({}{cancelled})", operation.id, operation.cause, operation.state))?;
    if let Some(host) = &operation.host {
        output::line(&format!("  host          {host}"))?;
    }
    output::line(&format!("  asked for by  {} at {:.0}", operation.by, operation.requested_at))?;
    output::line(&format!("  not before    {}", when(operation.not_before)))?;
    output::line(&format!("  release       {}", operation.release))?;
    output::line(&format!("  progress      {}", progress(&operation.progress)))?;
    let mut table = Table::new(&["EVENT", "SCOPE", "UD", "STATUS", "APPROVAL", "VMS"]);
    for part in &operation.targets {
        table.row([
            part.event.to_string(),
            part.scope.clone(),
            part.update_domain.to_string(),
            part.status.clone(),
            match &part.refused {
                Some(code) => format!("refused: {code}"),
                None => part.state.clone(),
            },
            names(part),
        ]);
    }
    table.print("")
}

/// How far an operation is, in a line.
fn progress(progress: &OperationProgress) -> String {
    let OperationProgress { scopes, scopes_told, waiting, approved, started, ended, refused, .. } = progress;
    let refused = if *refused == 0 { String::new() } else { format!(", {refused} refused") };
    format!(
        "{scopes_told} of {scopes} scopes told; events: {waiting} waiting, {approved} approved, {started} started, {ended} ended{refused}"
    )
}

/// Shows how far operations are until all of them are closed: as a bar at a terminal, else a line at each change.
pub fn wait(client: &Client, ids: &[String], output: Output) -> Result<()> {
    let bars = MultiProgress::new();
    let at_terminal = output == Output::Table && io::stderr().is_terminal();
    let style = ProgressStyle::with_template("{prefix} [{bar:24}] {msg}")?.progress_chars("=> ");
    let mut open: Vec<(String, ProgressBar, String)> = Vec::new();
    for id in ids {
        let bar = if at_terminal { bars.add(ProgressBar::new(1)) } else { ProgressBar::hidden() };
        open.push((id.clone(), bar.with_style(style.clone()).with_prefix(id.clone()), String::new()));
    }
    let mut closed: Vec<Operation> = Vec::new();
    let pause = Pause::default();
    loop {
        let mut still_open = Vec::new();
        for (id, bar, last) in open {
            let one: Operation = client.get(&format!("/v1/operations/{}", encode(&id)))?;
            let said = progress(&one.progress);
            bar.set_length(one.progress.events as u64);
            bar.set_position((one.progress.ended + one.progress.refused) as u64);
            bar.set_message(said.clone());
            if !at_terminal && output == Output::Table && said != last {
                output::line(&format!("{} {}: {said}", one.id, one.state))?;
            }
            match one.state.as_str() {
                "closed" => {
                    bar.finish();
                    closed.push(one);
                }
                _ => still_open.push((id, bar, said)),
            }
        }
        if still_open.is_empty() {
            break;
        }
        open = still_open;
        pause.for_a(LOOK_EVERY);
    }
    match output {
        Output::Json => output::json(&closed),
        Output::Table => closed.iter().try_for_each(|one| {
            let how = if one.cancelled { "called off" } else { "done" };
            output::line(&format!("operation {} is closed: {how}", one.id))
        }),
    }
}

fn names(part: &OperationTarget) -> String {
    part.resources.iter().map(|resource| resource.name.as_str()).collect::<Vec<_>>().join(",")
}

/// Tells of an operation that was just made: an event a line.
pub fn announced(operation: &Operation, output: Output) -> Result<()> {
    if output == Output::Json {
        return output::json(operation);
    }
    for part in &operation.targets {
        let what = match (&part.started_because, part.status.as_str()) {
            (Some(why), _) => format!("started at once: {why}"),
            (None, "Ended") => "over already".to_owned(),
            (None, _) => format!("not before {}", when(operation.not_before)),
        };
        output::line(&format!("event {}: {} of {}, {what}", part.event, operation.cause, names(part)))?;
    }
    let Some(first) = operation.targets.first() else { return Ok(()) };
    let id = first.event.to_string();
    let short = id.split('-').next().unwrap_or_default();
    output::line(&format!("follow it with 'notbefore event show {short}' or 'notbefore event watch'"))
}
