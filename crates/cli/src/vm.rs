//! `notbefore vm …`

use anyhow::Result;
use jiff::Timestamp;
use notbefore_wire::operator::Listening;
use notbefore_wire::operator::vm_log::{VmLog, VmLogEntry};
use notbefore_wire::operator::{
    AddVm, Cause, Event, EventStatus, EventType, Resource, ScheduleEvents, Scope, Vm, VmLogKind, VmSpec,
    VmState, VmVerb,
};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::args::{self, Output, ScheduleVmArgs, WhenArgs};
use crate::client::{Client, encode};
use crate::confirm::{self, Decision, Question};
use crate::each::unique;
use crate::output::{self, or_dash, yes_no};
use crate::table::{Colour, Column};
use crate::{fleet_apply, fleet_plan, operation, time, watch};

pub fn run(client: &Client, verb: args::Vm, output: Output) -> Result<()> {
    match verb {
        args::Vm::List { scope, host, list } => {
            let query = [("scope", scope.clone()), ("host", host)];
            let none = "no VMs; add one with 'notbefore vm add' or a fleet with 'notbefore fleet apply'";
            watch::show(&list.watch, || {
                let vms = client.list_first("/v1/vms", &query, list.limit());
                let vms: Vec<Vm> = fleet_plan::or_unknown_scope(client, scope.as_deref(), vms)?;
                output.list(&vms, &columns(), none)
            })
        }
        args::Vm::Show { vm } => output.answer(&client.get(&at(&vm, ""))?, show),
        args::Vm::Document { vm, api_version } => {
            let query = api_version.map(|version| format!("?api-version={}", encode(&version)));
            let path = at(&vm, &format!("/document{}", query.unwrap_or_default()));
            // As the VM reads it: with the order of its fields.
            let document: Box<RawValue> = client.get(&path)?;
            match output {
                Output::Json => output::raw_json(document.get()),
                Output::Yaml => {
                    output.answer(&serde_json::from_slice::<Value>(document.get().as_bytes())?, |_| Ok(()))
                }
                Output::Table | Output::Wide => output::line(document.get()),
                // A document has no name.
                Output::Name => Ok(()),
            }
        }
        args::Vm::Log { vm } => output.answer(&client.get(&at(&vm, "/log"))?, |log| show_log(log, output)),
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
            output
                .answer_change(&added, |added| output::line(&format!("added {} ({})", added.path, added.id)))
        }
        args::Vm::Remove { vm, confirmation } => {
            let question = Question::needed("Remove it?", "nothing was removed");
            let plan = || RemovalPlan::of(client, &vm, false);
            let removed =
                match confirm::show_and_ask(&confirmation, output, question, plan, RemovalPlan::lines)? {
                    Decision::DryRun => return Ok(()),
                    Decision::Proceed(None) => client.delete_at::<()>(&at(&vm, ""), None),
                    // Remove exactly the VM of the confirmed plan, if its scope is unchanged.
                    Decision::Proceed(Some(plan)) => {
                        client.delete_at(&at(&plan.vm.to_string(), ""), Some(plan.revision))
                    }
                };
            removed.map_err(fleet_apply::explain_conflict)?;
            let done = format!("removed {vm}");
            output.answer_change(&serde_json::json!({ "done": done }), |_| output::line(&done))
        }
        args::Vm::Restart(act) => schedule(client, act, Cause::UserRestart, false, output),
        args::Vm::Redeploy(act) => schedule(client, act, Cause::UserRedeploy, false, output),
        args::Vm::Evict { act, force } => schedule(client, act, Cause::Eviction, force, output),
        args::Vm::Delete { vms, confirmation } => {
            let vms = unique(&vms);
            let question = Question::needed("Delete this?", "nothing was deleted");
            let plan = || vms.iter().map(|vm| RemovalPlan::of(client, vm, true)).collect::<Result<Vec<_>>>();
            let lines = |all: &Vec<RemovalPlan>| all.iter().flat_map(RemovalPlan::lines).collect();
            let (vms, revisions) = match confirm::show_and_ask(&confirmation, output, question, plan, lines)?
            {
                Decision::DryRun => return Ok(()),
                Decision::Proceed(None) => (vms, None),
                // Delete exactly the VMs of the confirmed plan, if their scopes are unchanged.
                Decision::Proceed(Some(plan)) => {
                    let (vms, revisions) = plan.iter().map(|one| (one.vm.to_string(), one.revision)).unzip();
                    (vms, Some(revisions))
                }
            };
            let cause = Some(Cause::Deletion);
            let request = ScheduleEvents { cause, vms, revisions, ..ScheduleEvents::default() };
            operation::schedule(client, &request, output).map_err(fleet_apply::explain_conflict)
        }
        args::Vm::Start { vm } => {
            let started: Vm =
                client.post(&at(&vm, &format!("/{}", VmVerb::Start)), &serde_json::json!({}))?;
            output.answer_change(&started, |vm| output::line(&format!("{} is {}", vm.path, vm.state)))
        }
    }
}

/// Plan of removing or deleting a VM.
#[derive(Serialize)]
struct RemovalPlan {
    vm: Uuid,
    path: String,
    scope: String,
    /// The scope's revision.
    revision: u64,
    /// Notice of the Terminate event; `None` if the VM is removed at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    terminate_notification_seconds: Option<u32>,
    events: Vec<Affected>,
    #[serde(skip)]
    by_event: bool,
}

/// A live event of the VM.
#[derive(Serialize)]
struct Affected {
    event: Uuid,
    #[serde(rename = "type")]
    event_type: EventType,
    status: EventStatus,
    /// VMs for which the event continues; empty if it ends with the VM.
    goes_on_for: Vec<String>,
}

impl RemovalPlan {
    /// Makes the plan: removal at once, or by a Terminate event (`by_event`).
    fn of(client: &Client, name: &str, by_event: bool) -> Result<Self> {
        let vm: Vm = client.get(&at(name, ""))?;
        let id = vm.id.to_string();
        let events: Vec<Event> = match vm.events.is_empty() {
            true => Vec::new(),
            false => client.list("/v1/events", &[("vm", Some(id))])?,
        };
        let others: Vec<Vm> = match events.iter().all(|event| event.resources.len() == 1) {
            true => Vec::new(),
            false => client.list("/v1/vms", &[("scope", Some(vm.scope.clone()))])?,
        };
        let is_left = |one: &Resource| one.vm != vm.id && others.iter().any(|other| other.id == one.vm);
        let affected = |event: Event| Affected {
            event: event.id,
            event_type: event.event_type,
            status: event.status,
            goes_on_for: event.resources.into_iter().filter(is_left).map(|one| one.name).collect(),
        };
        let events = events.into_iter().map(affected).collect();
        let notice = match by_event {
            true => {
                client.get::<Scope>(&fleet_plan::at(&vm.scope, ""))?.policy.terminate_notification_seconds
            }
            false => None,
        };
        Ok(Self {
            vm: vm.id,
            path: vm.path,
            scope: vm.scope,
            revision: vm.revision,
            terminate_notification_seconds: notice,
            events,
            by_event,
        })
    }

    fn lines(&self) -> Vec<String> {
        let how = match (self.by_event, self.terminate_notification_seconds) {
            (false, _) => "is removed at once, without an event".to_owned(),
            (true, None) => "is deleted at once: its scope has no terminate notification".to_owned(),
            (true, Some(seconds)) => {
                let notice = time::span(seconds.into());
                format!(
                    "is deleted by a Terminate event with {notice} notice (times the service's events.notice), or at once if no guest of its scope polled within a day"
                )
            }
        };
        let mut lines = vec![format!("VM {} in scope {} {how}", self.path, self.scope)];
        for Affected { event, event_type, status, goes_on_for } in &self.events {
            let what = match (goes_on_for.as_slice(), status) {
                ([], EventStatus::Scheduled | EventStatus::Advisory) => "is cancelled".to_owned(),
                (
                    [],
                    EventStatus::Started
                    | EventStatus::Completed
                    | EventStatus::Cancelled
                    | EventStatus::Unknown(_),
                ) => "ends with the VM".to_owned(),
                (others, _) => format!("continues for {}", others.join(",")),
            };
            lines.push(format!("  event {event} ({event_type}, {status}) {what}"));
        }
        lines
    }
}

fn at(vm: &str, rest: &str) -> String {
    format!("/v1/vms/{}{rest}", encode(vm))
}

fn schedule(client: &Client, act: ScheduleVmArgs, cause: Cause, force: bool, output: Output) -> Result<()> {
    let ScheduleVmArgs { vm, when: WhenArgs { not_before, r#in }, dry_run } = act;
    let request = ScheduleEvents {
        cause: Some(cause),
        vms: vec![vm],
        not_before,
        in_seconds: r#in.map(|span| span.as_secs()),
        force,
        dry_run,
        ..ScheduleEvents::default()
    };
    operation::schedule(client, &request, output)
}

pub fn columns() -> [Column<'static, Vm>; 12] {
    type Of = Column<'static, Vm>;
    [
        Of::path("VM", &|vm| vm.path.clone()),
        Of::optional("KIND", &|vm| vm.kind.to_string()),
        Of::new("STATE", &|vm| vm.state.to_string())
            .coloured(&|vm| (vm.state == VmState::Deallocated).then_some(Colour::Yellow)),
        Of::optional("UD", &|vm| vm.update_domain.to_string()),
        Of::new("HOST", &|vm| or_dash(vm.host.as_deref())),
        Of::text("ADDRESSES", &|vm| match vm.first_run {
            true => "this machine".to_owned(),
            false => or_dash(Some(&vm.addresses.join(","))),
        }),
        Of::new("EVENTS", &|vm| vm.events.len().to_string()),
        Of::new("LISTENING", &polling_status)
            .coloured(&|vm| (vm.listening == Listening::No).then_some(Colour::Yellow)),
        Of::wide("FD", &|vm| vm.fault_domain.to_string()),
        Of::wide("ZONE", &|vm| or_dash(vm.zone.as_deref())),
        Of::wide("SPOT", &|vm| yes_no(vm.spot)),
        Of::wide("ID", &|vm| vm.id.to_string()),
    ]
}

fn show(vm: &Vm) -> Result<()> {
    let first_run = if vm.first_run { " (first-run VM)" } else { "" };
    output::line(&format!("{}{first_run}", vm.path))?;
    output::fields::<14>(&[
        ("id", vm.id.to_string()),
        ("kind", vm.kind.to_string()),
        ("state", vm.state.to_string()),
        ("update domain", vm.update_domain.to_string()),
        ("fault domain", vm.fault_domain.to_string()),
        ("zone", or_dash(vm.zone.as_deref())),
        ("host", or_dash(vm.host.as_deref())),
        ("spot", yes_no(vm.spot)),
        ("addresses", or_dash(Some(&vm.addresses.join(", ")))),
        ("listening", polling_detail(vm)),
    ])?;
    vm.events.iter().try_for_each(|event| output::fields::<14>(&[("event", event.to_string())]))
}

fn show_log(log: &VmLog, output: Output) -> Result<()> {
    output::line(&format!("{}, since the service started at {}", log.path, time::seconds(log.since)))?;
    match log.dropped {
        0 => {}
        1 => output::line("1 older entry was dropped")?,
        many => output::line(&format!("{many} older entries were dropped"))?,
    }
    let columns = [
        Column::new("LAST", &|entry: &VmLogEntry| time::milliseconds(entry.last_at)),
        Column::optional("COUNT", &|entry| match entry.count {
            1 => "1".to_owned(),
            count => format!("{count} since {}", time::milliseconds(entry.first_at)),
        }),
        Column::new("WHAT", &|entry| entry.kind.to_string()),
        Column::text("DETAIL", &log_detail),
    ];
    let none = "nothing: no refused request, no approval, no read of an event, no poll";
    output::text(&output.table(&log.entries, &columns, none))
}

fn log_detail(entry: &VmLogEntry) -> String {
    let version = || entry.api_version.as_deref().unwrap_or_default();
    let events = || {
        let listed = entry.events.iter().map(Uuid::to_string).collect::<Vec<_>>().join(", ");
        if entry.more_events > 0 { format!("{listed} and {} more", entry.more_events) } else { listed }
    };
    match &entry.kind {
        VmLogKind::Refused => {
            let text = |text: &Option<String>| or_dash(text.as_deref());
            format!("{}: {} {}", text(&entry.request), entry.status.unwrap_or_default(), text(&entry.message))
        }
        VmLogKind::Approved => events(),
        VmLogKind::FirstRead => {
            let shown =
                if entry.events.is_empty() { "shows none of its events".to_owned() } else { events() };
            format!(
                "incarnation {} at api-version {}: {shown}",
                entry.incarnation.unwrap_or_default(),
                version()
            )
        }
        VmLogKind::Polled => {
            let client = entry.client.as_deref().filter(|client| !client.is_empty());
            format!("by {} at api-version {}", client.unwrap_or("a client without User-Agent"), version())
        }
        VmLogKind::Unknown(_) => String::new(),
    }
}

/// Whether a VM polls; if not, with the time of its last poll.
fn polling_status(vm: &Vm) -> String {
    match (&vm.listening, vm.last_poll_at) {
        (Listening::No, Some(at)) => format!("no, last {}", time::from_now(at)),
        (listening, _) => listening.to_string(),
    }
}

/// Whether a VM polls, with the time and version of its last poll.
fn polling_detail(vm: &Vm) -> String {
    let polled = vm.last_poll_at.map(|at| {
        let version = vm.last_poll_version.as_deref().unwrap_or_default();
        format!(
            "last poll {} ({}), api-version {version}",
            time::relative(at, time::now()),
            time::seconds(at)
        )
    });
    match (&vm.listening, polled) {
        (listening, Some(polled)) => format!("{listening}: {polled}"),
        (Listening::Unclear, None) => {
            "unknown: no poll since the service started, less than 5 min ago".to_owned()
        }
        (listening, None) => {
            format!("{listening}: no poll since the service started or the VM was added")
        }
    }
}

/// A NotBefore as text; without one, `at once`.
pub fn when(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "at once".to_owned(), time::and_from_now)
}
