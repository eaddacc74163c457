//! `notbefore operation …`, and what is shown of an operation that was just made.

use anyhow::Result;
use notbefore_wire::operator::{Operation, OperationTarget};

use crate::args::{self, Output};
use crate::client::{Client, encode};
use crate::output::{self, Table};
use crate::vm::when;

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
                "STATE",
                "RELEASE",
                "NOT BEFORE",
                "PARTS",
                "APPROVED",
                "ENDED",
            ]);
            for one in &operations {
                let count =
                    |state: &str| one.targets.iter().filter(|part| part.state == state).count().to_string();
                table.row([
                    one.id.to_string(),
                    one.cause.clone(),
                    one.state.clone(),
                    one.release.clone(),
                    when(one.not_before),
                    one.targets.len().to_string(),
                    count("approved"),
                    count("ended"),
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
    }
}

fn show(operation: &Operation, output: Output) -> Result<()> {
    if output == Output::Json {
        return output::json(operation);
    }
    let cancelled = if operation.cancelled { ", cancelled" } else { "" };
    output::line(&format!("{} {} ({}{cancelled})", operation.id, operation.cause, operation.state))?;
    output::line(&format!("  asked for by  {} at {:.0}", operation.by, operation.requested_at))?;
    output::line(&format!("  not before    {}", when(operation.not_before)))?;
    output::line(&format!("  release       {}", operation.release))?;
    let mut table = Table::new(&["EVENT", "SCOPE", "UD", "STATUS", "APPROVAL", "VMS"]);
    for part in &operation.targets {
        table.row([
            part.event.to_string(),
            part.scope.clone(),
            part.update_domain.to_string(),
            part.status.clone(),
            part.state.clone(),
            names(part),
        ]);
    }
    table.print("")
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
    output::line("follow it with 'notbefore event show ID' or 'notbefore event watch'")
}
