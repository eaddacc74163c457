//! What `/metrics` says: aggregates, in the text form that Prometheus reads.
//!
//! The registry is made once. Off the poll path a count is a counter of prometheus-client, registered here. Polls and the
//! engine write plain atomics, which cost an instruction each; a collector reads those, and the view, at each scrape.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelValue, EncodeMetric};
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::operator::Operator;

/// Counters that differ in one label.
pub type Counters = Family<[(&'static str, String); 1], Counter>;

/// The page and where its numbers come from.
pub struct Metrics(Registry);

impl Metrics {
    /// The metrics of a service, by its operator door.
    pub fn new(operator: Operator) -> Self {
        let mut registry = Registry::with_prefix("notbefore");
        let (refusals, delivery) = (&operator.refusals, &operator.delivery);
        registry.register(
            "operator_refusals",
            "Requests of operators that were refused, by why",
            refusals.counts().clone(),
        );
        registry.register(
            "unread_warnings",
            "Events that neared their NotBefore unread, once for each VM",
            delivery.warnings().clone(),
        );
        registry.register(
            "first_read_seconds",
            "From the publication of an event to its first read, for each VM it happens to",
            delivery.first_reads().clone(),
        );
        registry.register_collector(Box::new(AtScrape(operator)));
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

/// What is looked up when somebody asks.
struct AtScrape(Operator);

impl fmt::Debug for AtScrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AtScrape")
    }
}

impl Collector for AtScrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Self(operator) = self;
        let mut page = Page(encoder);
        let (view, guests, engine) =
            (operator.views.newest(), &operator.guest_stats, operator.engine.stats());
        let counts = view.counts();

        let answers = [
            ("document", guests.documents()),
            ("not_modified", guests.not_modified()),
            ("approved", guests.approvals()),
            ("metadata", guests.metadata()),
        ];
        let answers = answers.into_iter().map(|(answer, count)| (answer.to_owned(), count));
        let refused = guests.refused().map(|(status, count)| (status.to_string(), count));
        page.counters(
            "guest_requests",
            "Requests of guests, by what they were answered with",
            "answer",
            answers.chain(refused),
        )?;
        let connections = [
            ("accepted", guests.connections_accepted()),
            ("turned_away", guests.connections_turned_away()),
            ("evicted", guests.connections_evicted()),
        ];
        page.counters(
            "guest_connections",
            "Connections of guests, by what became of them",
            "state",
            connections,
        )?;
        page.one(
            "guest_handovers",
            "Times that a guest's connection had more to it than a plain poll and got a task of its own",
            ConstCounter::new(guests.connections_handed_over()),
        )?;
        page.gauge("guest_connections_open", "Open connections of guests", guests.connections_open())?;
        page.gauge("guest_polls_waiting", "Polls of guests held back until there is news", guests.waiting())?;

        let outcomes = [
            ("committed", engine.commits()),
            ("conflict", engine.conflicts()),
            ("failed", engine.failures()),
        ];
        page.counters("commits", "Transactions, by their outcome", "outcome", outcomes)?;
        page.gauge("store_revision", "The newest revision of the store", engine.revision())?;
        page.gauge(
            "store_well",
            "Whether the store took the last transaction",
            engine.store_is_well().into(),
        )?;
        page.gauge(
            "store_damaged_records",
            "Damaged records that were met and passed over since the start",
            operator.store.damaged(),
        )?;
        page.gauge(
            "host_operations_waiting",
            "Reboots and freezes of hosts that are due and wait for another update domain of one of their scopes",
            engine.host_operations_waiting(),
        )?;
        page.gauge(
            "clock_held",
            "Whether the clock has jumped and is not trusted: events do not start by time then",
            engine.clock_hold().is_some().into(),
        )?;
        if let Some(ends_at) = operator.certificate.as_ref().and_then(|certificate| certificate.ends_at()) {
            page.gauge(
                "operator_certificate_not_after_seconds",
                "When the operator door's certificate ends, in seconds since 1970",
                u64::try_from(ends_at.as_second()).unwrap_or(0),
            )?;
        }

        let unread = operator.delivery.ledger().events_unread(&view);
        page.gauge("events_unread", "Live events that a VM they happen to has not read", unread as u64)?;
        page.gauge("scopes", "Scopes", counts.scopes as u64)?;
        page.gauge("vms", "VMs", counts.vms as u64)?;
        page.gauge("operations_open", "Operations that are not closed", counts.operations as u64)?;
        let phases = [("scheduled", counts.scheduled), ("started", counts.started)];
        page.gauges("events", "Live events, by phase", "phase", phases)?;
        let commands = [
            ("waiting", counts.commands_waiting),
            ("running", counts.commands_running),
            ("failed", counts.commands_failed),
        ];
        let help = "Commands of the exec driver for live events, by how they stand; what has failed waits for somebody";
        page.gauges("commands", help, "state", commands)?;
        let listening = view.listening_counts(operator.clock.now());
        let listening = listening.map(|(answer, count)| (answer.to_string(), count));
        let help = "VMs, by whether they polled in the last five minutes";
        page.gauges("vms_listening", help, "listening", listening)
    }
}

/// Writes metrics with their descriptions.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn one<M: EncodeMetric + TypedMetric>(&mut self, name: &str, help: &str, metric: M) -> fmt::Result {
        // A help text that is registered gets its full stop from the registry.
        metric.encode(self.0.encode_descriptor(name, &format!("{help}."), None, M::TYPE)?)
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.one(name, help, ConstGauge::new(value))
    }

    /// A metric for each value of a label.
    fn family<V: EncodeLabelValue, M: EncodeMetric + TypedMetric>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        metrics: impl Iterator<Item = (V, M)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, &format!("{help}."), None, M::TYPE)?;
        for (value, metric) in metrics {
            metric.encode(family.encode_family(&[(label, value)])?)?;
        }
        Ok(())
    }

    fn counters<V: EncodeLabelValue>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: impl IntoIterator<Item = (V, u64)>,
    ) -> fmt::Result {
        let counters = values.into_iter().map(|(value, count)| (value, ConstCounter::new(count)));
        self.family(name, help, label, counters)
    }

    fn gauges<V: EncodeLabelValue>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: impl IntoIterator<Item = (V, usize)>,
    ) -> fmt::Result {
        let gauges = values.into_iter().map(|(value, count)| (value, ConstGauge::new(count)));
        self.family(name, help, label, gauges)
    }
}
