//! Who has read an event, as an operator is shown it.

use std::collections::BTreeMap;

use notbefore_core::{Event, EventId, Resource, VmId};
use notbefore_wire::operator::delivery::SeenBy;

use super::Operator;
use super::problem::Problem;
use crate::delivery::{Read, ledger, recorder};
use crate::view::ScopeView;

/// When each of a live event's VMs has read it: the ledger has all of it.
pub fn of_live(operator: &Operator, event: &Event) -> Vec<SeenBy> {
    present(&event.resources, &recorded_reads(operator, event.id))
}

/// When each of an ended event's VMs has read it, as it was written down; what ended just now may wait for that.
pub async fn of_past(operator: &Operator, event: &Event) -> Result<Vec<SeenBy>, Problem> {
    let mut reads = recorded_reads(operator, event.id);
    for record in recorder::stored_reads(&*operator.store, event.id).await? {
        for (vm, read) in ledger::reads_of(&record) {
            ledger::merge(&mut reads, vm, read);
        }
    }
    Ok(present(&event.resources, &reads))
}

/// The VMs that have not read a live event, by name.
pub fn unread_by(operator: &Operator, scope: &ScopeView, event: &Event) -> Vec<String> {
    operator.delivery.ledger().unread(scope, event).iter().map(|one| one.name.to_string()).collect()
}

fn recorded_reads(operator: &Operator, event: EventId) -> BTreeMap<VmId, Read> {
    operator.delivery.ledger().reads(event).collect()
}

fn present(resources: &[Resource], reads: &BTreeMap<VmId, Read>) -> Vec<SeenBy> {
    let one = |resource: &Resource| {
        let read = reads.get(&resource.vm);
        SeenBy {
            vm: resource.vm.0,
            name: resource.name.to_string(),
            first_read_at: read.map(|read| read.at),
            api_version: read.map(|read| read.version.to_string()),
        }
    };
    resources.iter().map(one).collect()
}
