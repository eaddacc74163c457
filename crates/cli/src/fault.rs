//! `notbefore fault …`: faults of the guest listener.

use anyhow::Result;
use notbefore_wire::operator::faults::{ClearedFaults, Fault, FaultList, NewFault};
use notbefore_wire::text::counted;

use crate::args::{self, Output};
use crate::client::Client;
use crate::exit::UsageError;
use crate::table::Column;
use crate::{output, time};

pub fn run(client: &Client, verb: args::Fault, output: Output) -> Result<()> {
    match verb {
        args::Fault::Add(add) => {
            // The service checks again. Here a mistake is one of usage.
            let (fault, _) = add.fault().check().map_err(|error| UsageError(error.to_string()))?;
            let added: Fault = client.post("/v1/faults", &fault)?;
            output.answer_change(&added, |added| {
                output::line(&format!("fault {}: {} for {}", added.id, added.fault.kind, vm(added)))
            })
        }
        args::Fault::List => {
            let list: FaultList = client.get("/v1/faults")?;
            output::text(&output.list(&list.items, &columns(), "no faults")?)
        }
        args::Fault::Clear { id } => {
            let path = id.map_or_else(|| "/v1/faults".to_owned(), |id| format!("/v1/faults/{id}"));
            let cleared: ClearedFaults = client.delete_at(&path, None)?;
            let count = usize::try_from(cleared.cleared).unwrap_or(usize::MAX);
            output.answer_change(&cleared, |_| output::line(&format!("ended {}", counted(count, "fault"))))
        }
    }
}

fn vm(fault: &Fault) -> &str {
    fault.fault.vm.as_deref().unwrap_or("all VMs")
}

/// What the fault's own numbers and limits are.
fn details(fault: &Fault) -> String {
    let NewFault { every, count, seconds, status, by, .. } = &fault.fault;
    let parts = [
        status.map(|status| status.to_string()),
        seconds.map(|seconds| format!("{seconds} s")),
        by.map(|by| format!("by {by}")),
        every.filter(|every| *every > 1).map(|every| format!("every {every}")),
        count.map(|count| format!("at most {count} times")),
    ];
    match parts.into_iter().flatten().collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "-".to_owned(),
        some => some,
    }
}

fn columns() -> [Column<'static, Fault>; 7] {
    type Of = Column<'static, Fault>;
    [
        Of::new("ID", &|fault| fault.id.to_string()),
        Of::new("KIND", &|fault| fault.fault.kind.to_string()),
        Of::new("VM", &|fault| vm(fault).to_owned()),
        Of::new("ON", &|fault| fault.fault.requests.as_ref().map_or("polls", |on| on.as_str()).to_owned()),
        Of::text("DETAILS", &details),
        Of::new("EFFECTS", &|fault| fault.effects.to_string()),
        Of::new("ENDS", &|fault| fault.ends_at.map_or_else(|| "when cleared".to_owned(), time::from_now)),
    ]
}
