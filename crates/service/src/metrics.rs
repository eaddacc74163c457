//! `/metrics`: aggregates in the Prometheus text format.
//!
//! The registry is created once. Outside of the poll path, counters are those of prometheus-client, registered here.
//! Polls and the engine write plain atomics, which cost one instruction each; a collector reads these and the view at
//! each scrape.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use notbefore_core::Prefix;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelValue, EncodeMetric};
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::{ConstCounter as Count, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge as Gauge;
use prometheus_client::registry::Registry;

use crate::operator::Operator;

/// Counters that differ in one label.
pub type Counters = Family<[(&'static str, String); 1], Counter>;

/// A counter or gauge that any thread changes and a scrape reads: a relaxed atomic.
#[derive(Debug, Default)]
pub struct Tally(AtomicU64);

impl Tally {
    /// The current value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    pub(crate) fn sub(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    pub(crate) fn raise(&self, value: u64) {
        self.0.fetch_max(value, Relaxed);
    }
}

/// The metrics page.
pub struct Metrics(Registry);

impl Metrics {
    /// The metrics of a service, read through its operator listener.
    pub fn new(operator: Operator) -> Self {
        let mut registry = Registry::with_prefix("notbefore");
        let (refusals, delivery) = (&operator.refusals, &operator.delivery);
        let help = "Refused requests of operators, by error code";
        registry.register("operator_refusals", help, refusals.counts.clone());
        let help = "Records removed before their retention because of a limit of bytes, by kind";
        registry.register("history_trimmed_records", help, operator.history.trimmed.clone());
        let help = "Warnings about events unread close to their NotBefore, one for each VM";
        registry.register("unread_warnings", help, delivery.warnings.clone());
        let help = "Seconds from the publication of an event to its first read by each affected VM";
        registry.register("first_read_seconds", help, delivery.first_reads.clone());
        if let Some(nodes) = &operator.nodes {
            let help = "Requests forwarded to the leader of the cluster, by outcome";
            registry.register("forwarded_requests", help, nodes.forwarded.clone());
            let help = "Messages of other nodes that this node refused, by reason";
            registry.register("node_messages_refused", help, nodes.refused.clone());
        }
        registry.register_collector(Box::new(ScrapeCollector(operator)));
        Self(registry)
    }

    /// The whole page.
    pub fn page(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.0);
        text
    }
}

/// Collects the metrics that are read at each scrape.
struct ScrapeCollector(Operator);

impl fmt::Debug for ScrapeCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScrapeCollector")
    }
}

impl Collector for ScrapeCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Self(operator) = self;
        let mut page = Page(encoder);
        let (view, guests, engine) =
            (operator.views.newest(), &operator.guest_stats, operator.engine.stats());
        let mut counts = view.counts_below(&Prefix::root());

        let answers = [
            ("document", guests.documents.get()),
            ("not_modified", guests.not_modified.get()),
            ("approved", guests.approvals.get()),
            ("metadata", guests.metadata.get()),
        ];
        let answers = answers.into_iter().map(|(answer, count)| (answer.to_owned(), count));
        let refused = guests.refused_by_status().map(|(status, count)| (status.to_string(), count));
        let help = "Requests of guests, by answer";
        let answers = answers.chain(refused).map(|(answer, count)| (answer, Count::new(count)));
        page.family("guest_requests", help, "answer", answers)?;
        let reasons = guests.refused().map(|(reason, count)| (reason, Count::new(count)));
        page.family("guest_refusals", "Refused requests of guests, by reason", "reason", reasons)?;
        let connections = [
            ("accepted", Count::new(guests.connections_accepted.get())),
            ("turned_away", Count::new(guests.connections_turned_away.get())),
            ("evicted", Count::new(guests.connections_evicted.get())),
        ];
        let help = "Connections of guests, by state; turned away: over a limit";
        page.family("guest_connections", help, "state", connections)?;
        let help = "Connections of guests handed over from a worker to a task, because the request was no plain poll";
        page.one("guest_handovers", help, Count::new(guests.connections_handed_over.get()))?;
        let help = "Open connections of guests";
        page.one("guest_connections_open", help, Gauge::new(guests.connections_open.get()))?;
        let help = "Long polls of guests that wait for a change";
        page.one("guest_polls_waiting", help, Gauge::new(guests.waiting.get()))?;

        let outcomes = [
            ("committed", Count::new(engine.commits.get())),
            ("conflict", Count::new(engine.conflicts.get())),
            ("failed", Count::new(engine.failures.get())),
        ];
        page.family("commits", "Transactions, by outcome", "outcome", outcomes)?;
        page.one("store_revision", "Newest revision of the store", Gauge::new(engine.revision.get()))?;
        let help = "Whether the store accepted the last transaction (1) or not (0)";
        page.one("store_well", help, Gauge::new(u32::from(engine.is_store_writable())))?;
        let help = "Damaged records that were skipped since the start";
        page.one("store_damaged_records", help, Gauge::new(operator.store.damaged()))?;
        let help = "Size of history in bytes: facts, ended events with their reads, operations";
        page.one("history_bytes", help, Gauge::new(operator.history.bytes.get()))?;
        let help = "Host operations that are due and wait for another update domain of one of their scopes";
        page.one("host_operations_waiting", help, Gauge::new(engine.host_operations_waiting.get()))?;
        let help = "Whether the clock is held (1): it has jumped, and events do not start by time";
        page.one("clock_held", help, Gauge::new(u32::from(engine.clock_hold().is_some())))?;
        if let Some(ends_at) = operator.certificate.as_ref().and_then(|certificate| certificate.ends_at()) {
            let help = "Expiry of the operator listener's certificate, in seconds since 1970";
            let seconds = Gauge::new(ends_at.as_second().max(0));
            page.one("operator_certificate_not_after_seconds", help, seconds)?;
        }

        let unread = Gauge::new(operator.delivery.ledger().events_unread(&view));
        page.one("events_unread", "Live events that an affected VM has not read", unread)?;
        page.one("scopes", "Scopes", Gauge::new(counts.scopes))?;
        page.one("vms", "VMs", Gauge::new(counts.vms))?;
        page.one("operations_open", "Open operations", Gauge::new(view.operations_open()))?;
        let phases = [("scheduled", Gauge::new(counts.scheduled)), ("started", Gauge::new(counts.started))];
        page.family("events", "Live events, by phase", "phase", phases)?;
        for command in view.operations_with_host_run().filter_map(|one| one.host_run()?.commands.first()) {
            counts.add_command(command);
        }
        let commands = [
            ("waiting", Gauge::new(counts.commands_waiting)),
            ("running", Gauge::new(counts.commands_running)),
            ("failed", Gauge::new(counts.commands_failed)),
        ];
        let help =
            "Commands of the exec driver for VMs and hosts, by state; failed commands wait for an operator";
        page.family("commands", help, "state", commands)?;
        let listening = view.listening_counts(operator.clock.now()).into_iter();
        let listening = listening.map(|(answer, count)| (answer.to_string(), Gauge::new(count)));
        let help = "VMs, by whether they polled in the last five minutes";
        page.family("vms_listening", help, "listening", listening)
    }
}

/// Writes metrics with their descriptions. For registered metrics, the registry adds the full stop to the help text.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn one<M: EncodeMetric + TypedMetric>(&mut self, name: &str, help: &str, metric: M) -> fmt::Result {
        metric.encode(self.0.encode_descriptor(name, &format!("{help}."), None, M::TYPE)?)
    }

    /// A metric for each value of a label.
    fn family<V: EncodeLabelValue, M: EncodeMetric + TypedMetric>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        metrics: impl IntoIterator<Item = (V, M)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, &format!("{help}."), None, M::TYPE)?;
        for (value, metric) in metrics {
            metric.encode(family.encode_family(&[(label, value)])?)?;
        }
        Ok(())
    }
}
