//! `notbefore fleet …`

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use notbefore_wire::operator::{Scope, ScopeOutcome, ScopeSpec, Vm};

use crate::args::{self, Output, Reach};
use crate::client::{Client, encode};
use crate::fleet_apply::{self, Manner, REPORTED_MAX, several_at_a_time};
use crate::fleet_file::{self, FileScope};
use crate::output::{self, Table};

pub fn run(reach: &Reach, verb: args::Fleet, output: Output) -> Result<()> {
    match verb {
        args::Fleet::Apply { file, prune, check, progress } => {
            let scopes = fleet_file::parse(&file, &read(&file)?)?;
            if check {
                let vms: usize = scopes.iter().map(|scope| scope.spec.vms.len()).sum();
                return output::line(&format!(
                    "{}: {} scopes and {vms} VMs, no mistakes",
                    file.display(),
                    scopes.len()
                ));
            }
            apply(&Client::find(reach)?, &scopes, Manner { prune, tell: progress, output })
        }
        args::Fleet::Show => {
            let scopes: Vec<Scope> = Client::find(reach)?.list("/v1/scopes", &[])?;
            if output == Output::Json {
                return output::json(&scopes);
            }
            let mut table = Table::new(&["SCOPE", "KIND", "VMS", "EVENTS", "INCARNATION", "FROM"]);
            for scope in &scopes {
                table.row([
                    scope.path.clone(),
                    scope.kind.clone(),
                    scope.vms.to_string(),
                    scope.events.to_string(),
                    scope.incarnation.to_string(),
                    if scope.from_fleet { "file" } else { "call" }.to_owned(),
                ]);
            }
            table.print("there are no scopes; describe some in a file and run 'notbefore fleet apply FILE'")
        }
    }
}

fn read(file: &Path) -> Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Makes the scopes as described, and removes, if asked to, those that an earlier file has made.
fn apply(client: &Client, scopes: &[FileScope], manner: Manner) -> Result<()> {
    let mut outcomes = fleet_apply::apply(client, scopes, manner)?;
    if manner.prune {
        outcomes.extend(prune_scopes(client, scopes, manner.output)?);
    }
    match manner.output {
        Output::Json => output::json(&outcomes),
        Output::Table => Ok(()),
    }
}

/// Removes the scopes that an earlier file made and this one does not name.
fn prune_scopes(client: &Client, scopes: &[FileScope], output: Output) -> Result<Vec<ScopeOutcome>> {
    let named: HashSet<String> = scopes.iter().map(|scope| scope.display().to_ascii_lowercase()).collect();
    let mut there: Vec<Scope> = client.list("/v1/scopes", &[])?;
    there.retain(|scope| scope.from_fleet && !named.contains(&scope.path.to_ascii_lowercase()));
    let report = output == Output::Table && there.len() <= REPORTED_MAX;
    let mut pruned = BTreeMap::new();
    several_at_a_time(
        &there,
        |scope| prune_scope(client, scope),
        |index, one| {
            pruned.insert(index, one?);
            Ok(())
        },
    )?;
    let mut outcomes = Vec::new();
    for (outcome, what) in pruned.into_values() {
        if report {
            output::line(&format!("{}: {what}", outcome.scope))?;
        }
        outcomes.push(outcome);
    }
    if output == Output::Table && !report {
        let vms: usize = outcomes.iter().map(|outcome| outcome.removed).sum();
        output::line(&format!("{} scopes that the file does not name: {vms} VMs removed", outcomes.len()))?;
    }
    Ok(outcomes)
}

/// Removes the VMs that a file has made; the scope itself only if that leaves nothing in it.
fn prune_scope(client: &Client, scope: &Scope) -> Result<(ScopeOutcome, String)> {
    let path: Vec<String> = scope.path.split('/').map(encode).collect();
    let path = format!("/v1/scopes/{}", path.join("/"));
    let nothing = ScopeSpec { kind: scope.kind.clone(), policy: scope.policy.clone(), vms: Vec::new() };
    let outcome: ScopeOutcome = client.put(&format!("{path}?fleet=true&prune=true"), &nothing)?;
    let left = client.list::<Vm>("/v1/vms", &[("scope", Some(scope.path.clone()))])?.len();
    let still_there = client.get::<Scope>(&path).is_ok();
    if left == 0 && still_there {
        client.delete::<ScopeOutcome>(&path)?;
    }
    let what = match left {
        0 => "removed".to_owned(),
        _ => format!("{} removed, {left} that no file has made are left", outcome.removed),
    };
    Ok((outcome, what))
}
