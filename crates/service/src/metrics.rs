//! What `/metrics` says: aggregates, in the text form that Prometheus reads. Counters are kept where things
//! happen; this page is put together when somebody asks.

use std::collections::BTreeMap;

use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::delivery::Delivery;
use crate::guest::stats::GuestStats;
use crate::runtime::EngineStats;
use crate::view::View;

type Labels = [(&'static str, String); 1];

/// What the operator door counts.
pub struct OperatorStats {
    /// Requests that were refused, by why: no token, a wrong one, not permitted, hidden.
    pub refused: BTreeMap<String, u64>,
    /// When its certificate ends, if it has one.
    pub certificate_ends_at: Option<Timestamp>,
}

/// The whole page.
pub fn text(
    view: &View,
    guests: &GuestStats,
    engine: &EngineStats,
    delivery: &Delivery,
    door: &OperatorStats,
    damaged_records: u64,
    now: Timestamp,
) -> String {
    let mut registry = Registry::with_prefix("notbefore");
    let counts = view.counts();

    counter(
        &mut registry,
        "guest_requests",
        "Requests of guests, by what they were answered with",
        |family| {
            let add = |answer: &str, count| add(family, "answer", answer, count);
            add("document", guests.documents());
            add("not_modified", guests.not_modified());
            add("approved", guests.approvals());
            add("metadata", guests.metadata());
            for (status, count) in guests.refused() {
                add(&status.to_string(), count);
            }
        },
    );
    counter(&mut registry, "guest_connections", "Connections of guests, by what became of them", |family| {
        add(family, "state", "accepted", guests.connections_accepted());
        add(family, "state", "turned_away", guests.connections_turned_away());
        add(family, "state", "evicted", guests.connections_evicted());
    });
    let handed_over: Counter = Counter::default();
    handed_over.inc_by(guests.connections_handed_over());
    registry.register(
        "guest_handovers",
        "Times that a guest's connection had more to it than a plain poll and got a task of its own",
        handed_over,
    );
    counter(&mut registry, "commits", "Transactions, by their outcome", |family| {
        add(family, "outcome", "committed", engine.commits());
        add(family, "outcome", "conflict", engine.conflicts());
        add(family, "outcome", "failed", engine.failures());
    });
    counter(
        &mut registry,
        "operator_refusals",
        "Requests of operators that were refused, by why",
        |family| {
            for (code, count) in &door.refused {
                add(family, "code", code, *count);
            }
        },
    );
    if let Some(ends_at) = door.certificate_ends_at {
        gauge(
            &mut registry,
            "operator_certificate_not_after_seconds",
            "When the operator door's certificate ends, in seconds since 1970",
            u64::try_from(ends_at.as_second()).unwrap_or(0),
        );
    }
    gauge(&mut registry, "guest_connections_open", "Open connections of guests", guests.connections_open());
    gauge(
        &mut registry,
        "guest_polls_waiting",
        "Polls of guests held back until there is news",
        guests.waiting(),
    );
    gauge(&mut registry, "store_revision", "The newest revision of the store", engine.revision());
    gauge(
        &mut registry,
        "store_well",
        "Whether the store took the last transaction",
        engine.store_is_well().into(),
    );
    gauge(
        &mut registry,
        "store_damaged_records",
        "Damaged records that were met and passed over since the start",
        damaged_records,
    );
    let warnings: Counter = Counter::default();
    warnings.inc_by(delivery.warnings());
    registry.register(
        "unread_warnings",
        "Events that neared their NotBefore unread, once for each VM",
        warnings,
    );
    let unread = delivery.ledger().events_unread(view) as u64;
    gauge(&mut registry, "events_unread", "Live events that a VM they happen to has not read", unread);
    registry.register(
        "first_read_seconds",
        "From the publication of an event to its first read, for each VM it happens to",
        delivery.first_reads().clone(),
    );
    gauge(&mut registry, "scopes", "Scopes", counts.scopes as u64);
    gauge(&mut registry, "vms", "VMs", counts.vms as u64);
    gauge(
        &mut registry,
        "host_operations_waiting",
        "Reboots and freezes of hosts that are due and wait for another update domain of one of their scopes",
        engine.host_operations_waiting(),
    );
    gauge(
        &mut registry,
        "clock_held",
        "Whether the clock has jumped and is not trusted: events do not start by time then",
        u64::from(engine.clock_hold().is_some()),
    );
    gauge(&mut registry, "operations_open", "Operations that are not closed", counts.operations as u64);
    let phases = [("scheduled", counts.scheduled), ("started", counts.started)];
    gauges(&mut registry, "events", "Live events, by phase", "phase", phases);
    let commands = [
        ("waiting", counts.commands_waiting),
        ("running", counts.commands_running),
        ("failed", counts.commands_failed),
    ];
    let help =
        "Commands of the exec driver for live events, by how they stand; what has failed waits for somebody";
    gauges(&mut registry, "commands", help, "state", commands);
    let listening = view.listening_counts(now).map(|(answer, count)| (answer.to_string(), count));
    let help = "VMs, by whether they polled in the last five minutes";
    gauges(&mut registry, "vms_listening", help, "listening", listening);

    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

fn counter(registry: &mut Registry, name: &str, help: &str, fill: impl FnOnce(&Family<Labels, Counter>)) {
    let family = Family::default();
    fill(&family);
    registry.register(name, help, family);
}

fn add(family: &Family<Labels, Counter>, label: &'static str, value: &str, count: u64) {
    family.get_or_create(&[(label, value.to_owned())]).inc_by(count);
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let gauge: Gauge = Gauge::default();
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    registry.register(name, help, gauge);
}

/// A gauge for each value of a label.
fn gauges<V: Into<String>>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    label: &'static str,
    values: impl IntoIterator<Item = (V, usize)>,
) {
    let family: Family<Labels, Gauge> = Family::default();
    for (value, count) in values {
        family.get_or_create(&[(label, value.into())]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    registry.register(name, help, family);
}
