//! `notbefore status`: what happens next, and what needs an operator.

use anyhow::Result;
use jiff::Timestamp;
use notbefore_wire::operator::status::{
    DiskStatus, EventGroup, FailedEvent, FailedHost, ServiceStatus, Status,
};
use notbefore_wire::text::{counted, size};

use crate::args::{Output, WatchArgs};
use crate::client::Client;
use crate::fact::because;
use crate::table::Column;
use crate::{time, watch};

/// Width of the names in the first column.
const NAME: usize = 12;

pub fn run(client: &Client, watch: &WatchArgs, output: Output) -> Result<()> {
    watch::show(watch, || output.text(&client.get("/v1/status")?, |status| lines(status, output)))
}

/// The status as text. Times are relative to the service's clock, because events start by it.
fn lines(status: &Status, output: Output) -> Vec<String> {
    let Status { now, vms, listening, events, next, failed, failed_hosts, service, .. } = status;
    let mut lines = Vec::new();
    let mut field = |name: &str, value: String| lines.push(format!("{name:<NAME$}{value}"));
    let total = |count: fn(&EventGroup) -> usize| next.groups.iter().map(count).sum::<usize>();
    let in_groups = total(|group| group.events);
    field(
        "next hour",
        match in_groups {
            0 => "no events".to_owned(),
            some => {
                let more = if next.partial { "more than " } else { "" };
                let (vms, approved, unread) =
                    (total(|group| group.vms), total(|group| group.approved), total(|group| group.unread));
                format!(
                    "{more}{} for {}; {approved} approved, {unread} unread",
                    counted(some, "event"),
                    counted(vms, "VM")
                )
            }
        },
    );
    lines.extend(group_lines(&next.groups, *now, output));
    let mut field = |name: &str, value: String| lines.push(format!("{name:<NAME$}{value}"));
    if let Some(from) = next.later_from {
        let later = counted(events.scheduled.saturating_sub(in_groups), "event");
        field("later", format!("{later}, the first {}", time::from(from, *now)));
    }
    field("started", counted(events.started, "event"));
    if events.advisory > 0 {
        field("advisory", format!("{}, which never start", counted(events.advisory, "event")));
    }
    if events.waiting_for_operator > 0 {
        let waiting = counted(events.waiting_for_operator, "event");
        field("waiting", format!("{waiting} for an operator to start or complete: 'notbefore event list'"));
    }
    field(
        "failed",
        match (events.failed, failed_hosts.len()) {
            (0, 0) => "none".to_owned(),
            (0, hosts) => {
                let hosts = counted(hosts, "host");
                format!("{hosts}: 'notbefore operation retry OPERATION' or 'operation complete OPERATION'")
            }
            (some, hosts) => {
                let hosts = if hosts > 0 { format!(", {}", counted(hosts, "host")) } else { String::new() };
                let some = counted(some, "event");
                format!("{some}{hosts}: 'notbefore event retry EVENT' or 'event complete EVENT'")
            }
        },
    );
    lines.extend(failed.iter().map(failed_line));
    lines.extend(failed_hosts.iter().map(failed_host_line));
    let mut field = |name: &str, value: String| lines.push(format!("{name:<NAME$}{value}"));
    let unknown = match listening.unknown {
        0 => String::new(),
        some => format!(", {some} unknown: the service has just started"),
    };
    field(
        "listening",
        format!("{} of {}; {} silent{unknown}", listening.yes, counted(*vms, "VM"), listening.no),
    );
    service.iter().for_each(|service| service_fields(service, *now, &mut field));
    lines
}

fn group_lines(groups: &[EventGroup], now: Timestamp, output: Output) -> Vec<String> {
    if groups.is_empty() {
        return Vec::new();
    }
    output.indented_table_lines(
        groups,
        &[
            Column::new("WHEN", &|group: &EventGroup| when(group, now)),
            Column::new("TYPE", &|group| group.event_type.to_string()),
            Column::optional("EVENTS", &|group| group.events.to_string()),
            Column::optional("APPROVED", &|group| group.approved.to_string()),
            Column::optional("UNREAD", &|group| group.unread.to_string()),
            Column::optional("VMS", &|group| group.vms.to_string()),
            Column::text("WHERE", &place),
        ],
    )
}

fn when(group: &EventGroup, now: Timestamp) -> String {
    match group.due {
        true => format!("due since {}", time::from(group.not_before, now).trim_end_matches(" ago")),
        false => time::range_from(group.not_before, group.not_before_max, now),
    }
}

/// The hosts of a group; if its VMs have none, the scopes.
fn place(group: &EventGroup) -> String {
    let (count, names, what) = match group.hosts {
        0 => (group.scopes, &group.scope_names, "scope"),
        hosts => (hosts, &group.host_names, "host"),
    };
    let more = if count > names.len() { " …" } else { "" };
    format!("{}: {}{more}", counted(count, what), names.join(", "))
}

fn failed_line(failed: &FailedEvent) -> String {
    let FailedEvent { event, event_type, scope, vm, why } = failed;
    let why = because(why.as_deref());
    format!("  {event}  {event_type} of {vm} in {scope}{why}")
}

fn failed_host_line(failed: &FailedHost) -> String {
    let FailedHost { operation, cause, host, why } = failed;
    let why = because(why.as_deref());
    // The service leaves the name out for tenants.
    let host = if host.is_empty() { "a host".to_owned() } else { format!("host {host}") };
    format!("  {operation}  {cause} of {host}{why}")
}

fn service_fields(service: &ServiceStatus, now: Timestamp, field: &mut impl FnMut(&str, String)) {
    let waiting = match service.host_operations_waiting {
        0 => String::new(),
        some => format!(", {some} due and waiting for another update domain"),
    };
    field("operations", format!("{} open{waiting}", service.operations));
    let started = service.started_at.map(|at| format!(", started {}", time::from(at, now)));
    field("service", format!("version {}{}", service.version, started.unwrap_or_default()));
    let damaged = match service.store.damaged_records {
        0 => String::new(),
        some => format!(", {}: 'notbefore check'", counted(some, "damaged record")),
    };
    field(
        "store",
        match &service.store.error {
            None => format!("writable, revision {}{damaged}", service.store.revision),
            Some(why) => format!("read-only: {why}; changes are refused{damaged}"),
        },
    );
    if let Some(DiskStatus { bytes, bytes_free }) = service.disk {
        field("disk", format!("{} free of {}", size(bytes_free), size(bytes)));
    }
    if service.faults > 0 {
        let active = counted(usize::try_from(service.faults).unwrap_or(usize::MAX), "fault");
        field(
            "faults",
            format!("{active} active, answers to guests are wrong on purpose: 'notbefore fault list'"),
        );
    }
    field(
        "clock",
        match &service.clock.hold {
            None => "trusted".to_owned(),
            Some(hold) => {
                let since = time::seconds(hold.since);
                format!("not trusted since {since}: {}; 'notbefore clock show'", hold.reason)
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use notbefore_wire::operator::EventType;
    use notbefore_wire::operator::clock::{Clock, ClockHold};
    use notbefore_wire::operator::status::{EventCounts, ListeningCounts, NextHour, StoreStatus};
    use uuid::Uuid;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + seconds).unwrap()
    }

    fn group(event_type: EventType, times: (i64, i64)) -> EventGroup {
        EventGroup {
            event_type,
            not_before: at(times.0),
            not_before_max: at(times.1),
            due: times.0 <= 0,
            events: 400,
            approved: 12,
            unread: 3,
            vms: 400,
            hosts: 40,
            host_names: ["h1", "h2", "h3"].map(Into::into).to_vec(),
            scopes: 2,
            scope_names: ["a/b/c", "a/b/d"].map(Into::into).to_vec(),
        }
    }

    fn quiet() -> Status {
        Status {
            now: at(0),
            scopes: 2,
            vms: 100,
            listening: ListeningCounts { yes: 95, no: 5, unknown: 0, counted_at: at(0) },
            events: EventCounts::default(),
            next: NextHour { until: at(3_600), groups: Vec::new(), partial: false, later_from: None },
            failed: Vec::new(),
            failed_hosts: Vec::new(),
            service: None,
        }
    }

    #[test]
    fn status_of_a_quiet_tenant_has_four_lines() {
        assert_eq!(
            lines(&quiet(), Output::Table),
            [
                "next hour   no events",
                "started     0 events",
                "failed      none",
                "listening   95 of 100 VMs; 5 silent"
            ]
        );
    }

    #[test]
    fn status_shows_groups_failures_and_the_service() {
        let hosts = group(EventType::Reboot, (900, 1_190));
        let scopes = EventGroup { hosts: 0, host_names: Vec::new(), ..group(EventType::Freeze, (-180, -60)) };
        let failed = FailedEvent {
            event: Uuid::from_u128(7),
            event_type: EventType::Reboot,
            scope: "a/b/c".into(),
            vm: "web-0".into(),
            why: Some("exit status 1".into()),
        };
        let service = ServiceStatus {
            version: "1.2.3".into(),
            started_at: Some(at(-7_200)),
            operations: 41,
            host_operations_waiting: 1,
            faults: 0,
            clock: Clock {
                now: at(0),
                hold: Some(ClockHold { since: at(-60), reason: "it has jumped".into(), events: 7 }),
            },
            store: StoreStatus { revision: 9, error: Some("disk full".into()), damaged_records: 2 },
            disk: Some(DiskStatus { bytes: 100 << 30, bytes_free: 1_500 << 20 }),
        };
        let status = Status {
            listening: ListeningCounts { yes: 90, no: 5, unknown: 5, counted_at: at(0) },
            events: EventCounts {
                scheduled: 1_800,
                started: 1,
                advisory: 3,
                failed: 1,
                waiting_for_operator: 2,
            },
            next: NextHour {
                groups: vec![scopes, hosts],
                partial: true,
                later_from: Some(at(7_200)),
                ..quiet().next
            },
            failed: vec![failed],
            failed_hosts: Vec::new(),
            service: Some(service),
            ..quiet()
        };
        let expected = "\
next hour   more than 800 events for 800 VMs; 24 approved, 6 unread
  WHEN                 TYPE    EVENTS  APPROVED  UNREAD  VMS  WHERE
  due since 3 min      Freeze  400     12        3       400  2 scopes: a/b/c, a/b/d
  in 15 min to 19 min  Reboot  400     12        3       400  40 hosts: h1, h2, h3 …
later       1000 events, the first in 2 h
started     1 event
advisory    3 events, which never start
waiting     2 events for an operator to start or complete: 'notbefore event list'
failed      1 event: 'notbefore event retry EVENT' or 'event complete EVENT'
  00000000-0000-0000-0000-000000000007  Reboot of web-0 in a/b/c: exit status 1
listening   90 of 100 VMs; 5 silent, 5 unknown: the service has just started
operations  41 open, 1 due and waiting for another update domain
service     version 1.2.3, started 2 h ago
store       read-only: disk full; changes are refused, 2 damaged records: 'notbefore check'
disk        1.5 GiB free of 100.0 GiB
clock       not trusted since 1970-01-12T13:45:40Z: it has jumped; 'notbefore clock show'";
        assert_eq!(lines(&status, Output::Table).join("\n"), expected);
    }
}
