//! Presents the log of a VM.

use jiff::Timestamp;
use notbefore_core::VmId;
use notbefore_wire::operator::VmLogKind;
use notbefore_wire::operator::vm_log::{VmLog, VmLogEntry};

use crate::names;
use crate::view::ScopeView;
use crate::vm_log::entries::{Entry, Events, Happened, Kind, VmEntries};
use crate::vm_log::with_detail;

pub fn present(scope: &ScopeView, vm: VmId, since: Timestamp, log: VmEntries) -> VmLog {
    let VmEntries { entries, dropped } = log;
    let entries = joined(entries.into_iter().map(entry));
    VmLog { vm: vm.0, path: names::path(scope, vm), since, entries, dropped }
}

/// Joins entries that are equal except for times and count: of two nodes.
fn joined(entries: impl Iterator<Item = VmLogEntry>) -> Vec<VmLogEntry> {
    let mut all: Vec<VmLogEntry> = Vec::new();
    for mut entry in entries {
        let is_same = |other: &VmLogEntry| {
            let VmLogEntry { first_at, last_at, count, .. } = other.clone();
            VmLogEntry { first_at, last_at, count, ..entry.clone() } == *other
        };
        if let Some(at) = all.iter().position(is_same) {
            let other = all.remove(at);
            entry.first_at = entry.first_at.min(other.first_at);
            entry.count = entry.count.saturating_add(other.count);
        }
        all.push(entry);
    }
    all
}

/// What happened, for another node to show.
pub fn encode(what: Happened) -> Vec<u8> {
    let (first_at, last_at) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);
    let shown = entry(Entry { first_at, last_at, count: 0, what });
    // The type has no map and no number that JSON cannot hold.
    serde_json::to_vec(&shown).unwrap_or_default()
}

/// What happened at another node. None if this release does not know it.
pub fn decode(bytes: &[u8]) -> Option<Happened> {
    let shown: VmLogEntry = serde_json::from_slice(bytes).ok()?;
    let kind = match shown.kind {
        VmLogKind::Approved => Kind::Approved,
        VmLogKind::FirstRead => Kind::Read,
        VmLogKind::Polled => Kind::Polled,
        VmLogKind::Refused => Kind::Refused,
        VmLogKind::Unknown(_) => return None,
    };
    Some(Happened::AtOtherNode { kind, shown: str::from_utf8(bytes).ok()?.into() })
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
        Happened::AtOtherNode { kind, shown } => {
            // It was read before it was kept.
            let shown = serde_json::from_str(&shown).unwrap_or_else(|_| new(kind.into()));
            VmLogEntry { first_at, last_at, count, ..shown }
        }
    }
}

impl From<Kind> for VmLogKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Approved => Self::Approved,
            Kind::Read => Self::FirstRead,
            Kind::Polled => Self::Polled,
            Kind::Refused => Self::Refused,
        }
    }
}

fn with_events(entry: VmLogEntry, Events { listed, more }: Events) -> VmLogEntry {
    VmLogEntry { events: listed.into(), more_events: more as u64, ..entry }
}

#[cfg(test)]
mod tests {
    use notbefore_wire::guest::error::GuestError;
    use notbefore_wire::guest::version::EventsVersion;
    use uuid::Uuid;

    use super::*;
    use crate::delivery::tests::{ViewFixture, at, scope, vm};

    fn happened() -> [Happened; 4] {
        let events = || [Uuid::from_u128(7)].into_iter().collect();
        let version = EventsVersion::NEWEST;
        [
            Happened::Refused { error: GuestError::NotFound, request: "GET /".into(), detail: "x".into() },
            Happened::Approved(events()),
            Happened::Read { incarnation: 7, version, events: events() },
            Happened::Polled { client: "curl \u{e9}".into(), version },
        ]
    }

    fn entry_at(what: Happened, first: i64, last: i64, count: u64) -> Entry {
        Entry { first_at: at(first), last_at: at(last), count, what }
    }

    #[test]
    fn entry_of_another_node_is_shown_like_an_own_one() {
        for what in happened() {
            let other = decode(&encode(what.clone())).unwrap();
            assert_eq!(entry(entry_at(other, 1, 2, 3)), entry(entry_at(what, 1, 2, 3)));
        }
        assert_eq!(decode(b"{}"), None);
        assert_eq!(decode(b""), None);
        let newer = String::from_utf8(encode(happened()[1].clone())).unwrap().replace("approved", "dreamt");
        assert_eq!(decode(newer.as_bytes()), None, "of a newer release");
    }

    #[test]
    fn equal_entries_of_two_nodes_are_one() {
        let mut fixture = ViewFixture::default();
        fixture.publish(&scope("web", &[vm(1)]), at(0));
        let view = fixture.views.newest();
        let [refused, approved, ..] = happened();
        let told = decode(&encode(refused.clone())).unwrap();
        let entries = vec![entry_at(refused, 1, 2, 3), entry_at(approved, 4, 4, 1), entry_at(told, 0, 9, 2)];
        let log = VmEntries { entries, dropped: 0 };
        let shown = present(view.scope_of(vm(1)).unwrap(), vm(1), at(0), log).entries;
        let times: Vec<_> = shown.iter().map(|one| (one.first_at, one.last_at, one.count)).collect();
        assert_eq!(times, [(at(4), at(4), 1), (at(0), at(9), 5)]);
    }
}
