//! Presents which VMs have read an event.

use std::collections::BTreeMap;

use notbefore_core::{Event, EventId, Resource, VmId};
use notbefore_wire::operator::delivery::SeenBy;

use super::Operator;
use super::problem::Problem;
use crate::delivery::{Read, ledger, recorder};
use crate::view::ScopeView;

/// First reads of a live event. The ledger has all of them.
pub fn of_live(operator: &Operator, event: &Event) -> Vec<SeenBy> {
    present(&event.resources, &recorded_reads(operator, event.id))
}

/// First reads of an ended event: from the store, and from the ledger those not stored yet.
pub async fn of_past(operator: &Operator, event: &Event) -> Result<Vec<SeenBy>, Problem> {
    let mut reads = recorded_reads(operator, event.id);
    for record in recorder::stored_reads(&*operator.store, event.id).await? {
        for (vm, read) in ledger::reads_of(&record) {
            ledger::merge(&mut reads, vm, read);
        }
    }
    Ok(present(&event.resources, &reads))
}

/// Names of the VMs that have not read a live event.
pub fn unread_by(operator: &Operator, scope: &ScopeView, event: &Event) -> Vec<String> {
    operator.delivery.ledger().unread(scope, event).map(|one| one.name.to_string()).collect()
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
