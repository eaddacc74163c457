//! `notbefore fleet …`

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use notbefore_wire::operator::{Scope, ScopeOutcome, ScopeSpec, Vm};

use crate::args::{self, Output, Reach};
use crate::client::{Client, encode};
use crate::fleet_file::{self, FileScope};
use crate::output::{self, Table};

pub fn run(reach: &Reach, verb: args::Fleet, output: Output) -> Result<()> {
    match verb {
        args::Fleet::Apply { file, prune, check } => {
            let scopes = fleet_file::parse(&file, &read(&file)?)?;
            if check {
                let vms: usize = scopes.iter().map(|scope| scope.spec.vms.len()).sum();
                return output::line(&format!(
                    "{}: {} scopes and {vms} VMs, no mistakes",
                    file.display(),
                    scopes.len()
                ));
            }
            apply(&Client::find(reach)?, &scopes, prune, output)
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

/// Makes scope after scope as described. One that is refused does not keep the others from being made; the
/// command fails at the end and says which.
fn apply(client: &Client, scopes: &[FileScope], prune: bool, output: Output) -> Result<()> {
    let mut outcomes = Vec::new();
    let mut refused = 0;
    for scope in scopes {
        let [subscription, group, name] = scope.path.each_ref().map(|part| encode(part));
        let path = format!("/v1/scopes/{subscription}/{group}/{name}?fleet=true&prune={prune}");
        match client.put::<ScopeOutcome>(&path, &scope.spec) {
            Ok(outcome) => {
                report(&outcome, output)?;
                outcomes.push(outcome);
            }
            Err(error) => {
                refused += 1;
                eprintln!("{}: {error:#}", scope.display());
            }
        }
    }
    if prune && refused == 0 {
        outcomes.extend(prune_scopes(client, scopes, output)?);
    }
    if output == Output::Json {
        output::json(&outcomes)?;
    }
    if refused > 0 {
        bail!("{refused} of {} scopes were refused; mend the file and apply it again", scopes.len());
    }
    Ok(())
}

/// Removes the scopes that an earlier file made and this one does not name.
fn prune_scopes(client: &Client, scopes: &[FileScope], output: Output) -> Result<Vec<ScopeOutcome>> {
    let named: HashSet<String> = scopes.iter().map(|scope| scope.display().to_ascii_lowercase()).collect();
    let there: Vec<Scope> = client.list("/v1/scopes", &[])?;
    let mut outcomes = Vec::new();
    for scope in
        there.iter().filter(|scope| scope.from_fleet && !named.contains(&scope.path.to_ascii_lowercase()))
    {
        let path: Vec<String> = scope.path.split('/').map(encode).collect();
        let path = format!("/v1/scopes/{}", path.join("/"));
        // First the VMs that a file has made; the scope itself only if that leaves nothing in it.
        let nothing = ScopeSpec { kind: scope.kind.clone(), policy: scope.policy.clone(), vms: Vec::new() };
        let outcome: ScopeOutcome = client.put(&format!("{path}?fleet=true&prune=true"), &nothing)?;
        let left = client.list::<Vm>("/v1/vms", &[("scope", Some(scope.path.clone()))])?.len();
        let still_there = client.get::<Scope>(&path).is_ok();
        if left == 0 && still_there {
            client.delete::<ScopeOutcome>(&path)?;
        }
        if output == Output::Table {
            let what = match left {
                0 => "removed".to_owned(),
                _ => format!("{} removed, {left} that no file has made are left", outcome.removed),
            };
            output::line(&format!("{}: {what}", scope.path))?;
        }
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

fn report(outcome: &ScopeOutcome, output: Output) -> Result<()> {
    if output == Output::Json {
        return Ok(());
    }
    let ScopeOutcome { scope, created, added, changed, removed } = outcome;
    let mut parts = Vec::new();
    for (count, what) in [(added, "added"), (changed, "changed"), (removed, "removed")] {
        if *count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    let what = match (created, parts.is_empty()) {
        (true, _) => format!("created, {added} VMs"),
        (false, true) => "unchanged".to_owned(),
        (false, false) => parts.join(", "),
    };
    output::line(&format!("{scope}: {what}"))
}
