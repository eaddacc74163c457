//! Presents the log of a VM.

use jiff::Timestamp;
use notbefore_core::VmId;
use notbefore_wire::operator::VmLogKind;
use notbefore_wire::operator::vm_log::{VmLog, VmLogEntry};

use crate::names;
use crate::view::ScopeView;
use crate::vm_log::entries::{Entry, Events, Happened, VmEntries};
use crate::vm_log::with_detail;

pub fn present(scope: &ScopeView, vm: VmId, since: Timestamp, log: VmEntries) -> VmLog {
    let VmEntries { entries, dropped } = log;
    let entries = entries.into_iter().map(entry).collect();
    VmLog { vm: vm.0, path: names::path(scope, vm), since, entries, dropped }
}

fn entry(entry: Entry) -> VmLogEntry {
    let Entry { first_at, last_at, count, what } = entry;
    let new = |kind| VmLogEntry::new(kind, first_at, last_at, count);
    match what {
        Happened::Refused { error, request, detail } => VmLogEntry {
            status: Some(error.status()),
            reason: Some(error.reason().to_owned()),
            message: Some(with_detail(error, &detail)),
            request: Some(request.into()),
            ..new(VmLogKind::Refused)
        },
        Happened::Approved(events) => with_events(new(VmLogKind::Approved), events),
        Happened::Read { incarnation, version, events } => VmLogEntry {
            incarnation: Some(incarnation),
            api_version: Some(version.to_string()),
            ..with_events(new(VmLogKind::FirstRead), events)
        },
        Happened::Polled { client, version } => VmLogEntry {
            client: Some(client.into()),
            api_version: Some(version.to_string()),
            ..new(VmLogKind::Polled)
        },
    }
}

fn with_events(entry: VmLogEntry, Events { listed, more }: Events) -> VmLogEntry {
    VmLogEntry { events: listed.into(), more_events: more as u64, ..entry }
}
