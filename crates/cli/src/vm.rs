//! `notbefore vm …`

use anyhow::Result;
use jiff::Timestamp;
use notbefore_wire::operator::delivery::Listening;
use notbefore_wire::operator::{AddVm, Operation, ScheduleEvents, Vm, VmSpec};

use crate::args::{self, Act, Output, When};
use crate::client::{Client, encode};
use crate::output::{self, Table, or_dash};
use crate::{operation, time};

pub fn run(client: &Client, verb: args::Vm, output: Output) -> Result<()> {
    match verb {
        args::Vm::List { scope, host } => {
            let vms: Vec<Vm> = client.list("/v1/vms", &[("scope", scope), ("host", host)])?;
            match output {
                Output::Json => output::json(&vms),
                Output::Table => table(&vms).print("there are no VMs; add one with 'notbefore vm add', or a fleet with 'notbefore fleet apply'"),
            }
        }
        args::Vm::Show { vm } => show(&client.get(&at(&vm, ""))?, output),
        args::Vm::Add { name, scope, kind, address, update_domain, fault_domain, zone, host, spot } => {
            let vm = VmSpec {
                name,
                update_domain,
                fault_domain,
                zone,
                host,
                spot,
                addresses: address,
                instance: None,
            };
            let added: Vm = client.post("/v1/vms", &AddVm { scope, kind, vm })?;
            match output {
                Output::Json => output::json(&added),
                Output::Table => output::line(&format!("added {} ({})", added.path, added.id)),
            }
        }
        args::Vm::Remove { vm } => {
            client.delete::<()>(&at(&vm, ""))?;
            said(output, &format!("removed {vm}"))
        }
        args::Vm::Restart(act) => schedule(client, act, "user-restart", false, output),
        args::Vm::Redeploy(act) => schedule(client, act, "user-redeploy", false, output),
        args::Vm::Evict { act, force } => schedule(client, act, "eviction", force, output),
        args::Vm::Delete { vms } => {
            let request =
                ScheduleEvents { cause: Some("deletion".to_owned()), vms, ..ScheduleEvents::default() };
            let made: Operation = client.post("/v1/events", &request)?;
            operation::announced(&made, output)
        }
        args::Vm::Start { vm } => {
            let started: Vm = client.post(&at(&vm, "/start"), &serde_json::json!({}))?;
            match output {
                Output::Json => output::json(&started),
                Output::Table => output::line(&format!("{} is {}", started.path, started.state)),
            }
        }
    }
}

fn at(vm: &str, rest: &str) -> String {
    format!("/v1/vms/{}{rest}", encode(vm))
}

fn said(output: Output, text: &str) -> Result<()> {
    match output {
        Output::Json => output::json(&serde_json::json!({ "done": text })),
        Output::Table => output::line(text),
    }
}

fn schedule(client: &Client, act: Act, cause: &str, force: bool, output: Output) -> Result<()> {
    let Act { vm, when: When { not_before, r#in } } = act;
    let request = ScheduleEvents {
        cause: Some(cause.to_owned()),
        vms: vec![vm],
        not_before,
        in_seconds: r#in.map(|span| span.as_secs()),
        force,
        ..ScheduleEvents::default()
    };
    let made: Operation = client.post("/v1/events", &request)?;
    operation::announced(&made, output)
}

/// VMs as a table.
pub fn table(vms: &[Vm]) -> Table {
    let mut table = Table::new(&["VM", "KIND", "STATE", "UD", "HOST", "ADDRESSES", "EVENTS", "LISTENS"]);
    let now = time::now();
    for vm in vms {
        table.row([
            vm.path.clone(),
            vm.kind.clone(),
            vm.state.clone(),
            vm.update_domain.to_string(),
            or_dash(vm.host.as_deref()),
            if vm.first_run { "this machine".to_owned() } else { or_dash(Some(&vm.addresses.join(","))) },
            vm.events.len().to_string(),
            listens(vm, now),
        ]);
    }
    table
}

fn show(vm: &Vm, output: Output) -> Result<()> {
    if output == Output::Json {
        return output::json(vm);
    }
    let first_run = if vm.first_run { " (stands in for a fleet)" } else { "" };
    output::line(&format!("{}{first_run}", vm.path))?;
    for (name, value) in [
        ("id", vm.id.to_string()),
        ("kind", vm.kind.clone()),
        ("state", vm.state.clone()),
        ("update domain", vm.update_domain.to_string()),
        ("fault domain", vm.fault_domain.to_string()),
        ("zone", or_dash(vm.zone.as_deref())),
        ("host", or_dash(vm.host.as_deref())),
        ("spot", if vm.spot { "yes" } else { "no" }.to_owned()),
        ("addresses", or_dash(Some(&vm.addresses.join(", ")))),
        ("listens", listens_at_length(vm, time::now())),
    ] {
        output::line(&format!("  {name:<14}{value}"))?;
    }
    for event in &vm.events {
        output::line(&format!("  {:<14}{event}", "event"))?;
    }
    Ok(())
}

/// Whether a VM listens, with when it was last heard where that is of interest.
fn listens(vm: &Vm, now: Timestamp) -> String {
    match (vm.listening, vm.last_poll_at) {
        (Listening::No, Some(at)) => format!("no, last {}", time::relative(at, now)),
        (listening, _) => listening.to_string(),
    }
}

/// The same in a sentence.
fn listens_at_length(vm: &Vm, now: Timestamp) -> String {
    let polled = vm.last_poll_at.map(|at| {
        let version = vm.last_poll_version.as_deref().unwrap_or_default();
        format!("it last polled {} ({at:.0}), at api-version {version}", time::relative(at, now))
    });
    match (vm.listening, polled) {
        (listening, Some(polled)) => format!("{listening}: {polled}"),
        (Listening::Unknown, None) => {
            "unknown: it has not polled since the service started, less than 5 min ago".to_owned()
        }
        (listening, None) => {
            format!("{listening}: it has not polled since the service started or learnt of it")
        }
    }
}

/// How far away a time is, with the time itself.
pub fn when(at: Option<Timestamp>) -> String {
    match at {
        Some(at) => format!("{} ({})", at, time::relative(at, time::now())),
        None => "at once".to_owned(),
    }
}
