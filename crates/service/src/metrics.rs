//! `/metrics`: aggregates in the Prometheus text format.
//!
//! The registry is created once. Outside of the poll path, counters are those of prometheus-client, registered here.
//! Polls and the engine write plain atomics, which cost one instruction each; a collector reads these and the view at
//! each scrape.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use notbefore_core::Prefix;
use notbefore_engine::cluster::{ClusterReport, NodeState};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelValue, EncodeMetric};
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::{ConstCounter as Count, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge as Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::cluster::etcd_status::EtcdAnswer;
use crate::cluster::monitor::{ClusterMonitor, Observed};
use crate::operator::Operator;

/// Buckets of [`Latency`], in seconds: from a fast disk to the deadline of a call to etcd.
const LATENCIES_S: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];

/// Counters that differ in one label.
pub type Counters = Family<[(&'static str, String); 1], Counter>;

/// Counters that are on the page from the start, so that the first count is an increase.
pub fn counters_from_zero(label: &'static str, values: impl IntoIterator<Item = &'static str>) -> Counters {
    let counters = Counters::default();
    for value in values {
        drop(counters.get_or_create(&[(label, value.to_owned())]));
    }
    counters
}

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

/// How long calls take.
#[derive(Clone, Debug)]
pub struct Latency(Histogram);

impl Default for Latency {
    fn default() -> Self {
        Self(Histogram::new(LATENCIES_S))
    }
}

impl Latency {
    pub(crate) fn observe(&self, took: Duration) {
        self.0.observe(took.as_secs_f64());
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
        let help = "Seconds until the store had committed the transactions of one call";
        registry.register("commit_seconds", help, operator.engine.stats().commit_seconds.0.clone());
        if let Some(nodes) = &operator.nodes {
            let help = "Requests forwarded to the leader of the cluster, by outcome";
            registry.register("forwarded_requests", help, nodes.forwarded.clone());
            let help = "Messages of other nodes that this node refused, by reason";
            registry.register("node_messages_refused", help, nodes.refused.clone());
        }
        if let Some(cluster) = &operator.cluster {
            let stats = &cluster.stats;
            let help = "Seconds until the store had committed a heartbeat of this node";
            registry.register("cluster_heartbeat_seconds", help, stats.beats.seconds.0.clone());
            let help = "Times that this node gave up the lead of the cluster, by reason";
            registry.register("cluster_step_downs", help, stats.step_downs.clone());
            let help = "Times that this node read the whole store again, by reason";
            registry.register("cluster_resyncs", help, stats.resyncs.clone());
            let help =
                "Records that were different then although the watch should have shown them, by reason";
            registry.register("cluster_resync_differences", help, stats.differences.clone());
            registry.register_collector(Box::new(ClusterCollector(Arc::clone(cluster))));
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
        if let Some(faults) = &operator.faults {
            let effects = faults.interception().effects();
            let effects = effects.map(|(kind, count)| (kind.as_str(), Count::new(count)));
            page.family("guest_faults", "Requests of guests affected by faults, by kind", "kind", effects)?;
        }
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
        let phases = [
            ("scheduled", Gauge::new(counts.scheduled)),
            ("started", Gauge::new(counts.started)),
            ("advisory", Gauge::new(counts.advisory)),
        ];
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

/// Collects what the node knows of its cluster, as of the last refresh.
struct ClusterCollector(Arc<ClusterMonitor>);

impl fmt::Debug for ClusterCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterCollector")
    }
}

impl Collector for ClusterCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        let help = "Transactions of this node that found another revision of the leader's record";
        page.one("cluster_fence_conflicts", help, Count::new(self.0.stats.fence_conflicts.get()))?;
        let help = "Records of the store that this node cannot read, 16 at most";
        let unreadable = self.0.unreadable().map_or(0, |found| found.len() as u64);
        page.one("cluster_unreadable_records", help, Gauge::new(unreadable))?;
        let Observed { report, etcd } = self.0.observed();
        if let Some(report) = &report {
            encode_report(&mut page, report)?;
        }
        match etcd.as_deref() {
            Some(answer) => encode_etcd(&mut page, answer),
            None => Ok(()),
        }
    }
}

fn encode_report(page: &mut Page<'_>, report: &ClusterReport) -> fmt::Result {
    let help = "Whether this node leads the cluster (1) or follows (0)";
    page.one("cluster_leads", help, Gauge::new(u32::from(report.role.leads())))?;
    let count = |state| report.nodes.iter().filter(|node| node.state == state).count() as u64;
    let states = [
        ("running", Gauge::new(count(NodeState::Running))),
        ("silent", Gauge::new(count(NodeState::Silent))),
        ("stopped", Gauge::new(count(NodeState::Stopped))),
    ];
    page.family("cluster_nodes", "Nodes that have ever joined the cluster, by state", "state", states)?;
    if let Some(level) = report.level {
        page.one("cluster_format_level", "Format level at which the nodes write", Gauge::new(level))?;
    }
    if let Some(ago) = report.returned_ago {
        let help = "Seconds since this node sent the newest heartbeat that its own watch has shown";
        page.one("cluster_watch_age_seconds", help, Gauge::new(ago.as_secs_f64()))?;
    }
    let Some(me) = report.nodes.iter().find(|node| node.name == report.me.name) else { return Ok(()) };
    let help = "Commits that this node had not shown when its last heartbeat was stored";
    page.one("cluster_watch_lag_revisions", help, Gauge::new(me.lag_revisions))?;
    match me.clock_offset {
        Some(offset) => {
            let help = "This node's clock minus the median of all running nodes, in seconds";
            page.one("cluster_clock_offset_seconds", help, Gauge::new(offset.as_secs_f64()))
        }
        None => Ok(()),
    }
}

fn encode_etcd(page: &mut Page<'_>, answer: &EtcdAnswer) -> fmt::Result {
    let status = answer.status.as_ref().ok();
    let answering =
        status.map_or(0, |status| status.endpoints.iter().filter(|one| one.member.is_ok()).count());
    let help = "URLs in etcd.endpoints at which a member of etcd answers";
    page.one("etcd_endpoints_answering", help, Gauge::new(answering as u64))?;
    let Some(status) = status else { return Ok(()) };
    let sizes = [
        ("etcd_database_bytes", "Size of etcd's largest database file", status.database_bytes()),
        ("etcd_database_in_use_bytes", "The same without free pages", status.database_bytes_in_use()),
        (
            "etcd_quota_bytes",
            "Size above which etcd refuses writes, as reported or set in etcd.quota",
            status.quota_bytes(),
        ),
    ];
    for (name, help, bytes) in sizes {
        if let Some(bytes) = bytes {
            page.one(name, help, Gauge::new(bytes))?;
        }
    }
    match &status.alarms {
        Some(alarms) => page.one("etcd_alarms", "Alarms of etcd's members", Gauge::new(alarms.len() as u64)),
        None => Ok(()),
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::{SignedDuration, Timestamp};
    use notbefore_engine::cluster::{NodeIdentity, NodeRecord, NodeReport, Role};
    use notbefore_etcd::{Alarm, AlarmKind, EndpointStatus, EtcdStatus};
    use notbefore_store::Revision;

    use super::*;

    #[derive(Debug)]
    struct Fixed(ClusterReport, EtcdAnswer);

    impl Collector for Fixed {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
            let mut page = Page(encoder);
            encode_report(&mut page, &self.0)?;
            encode_etcd(&mut page, &self.1)
        }
    }

    fn samples(report: ClusterReport, answer: EtcdAnswer) -> Vec<String> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Fixed(report, answer)));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn page_shows_the_report_and_etcd() {
        let node = |name: &str, state| NodeReport {
            name: name.to_owned(),
            state,
            leads: false,
            is_able: true,
            record: NodeRecord {
                epoch: "e".to_owned(),
                beat: 1,
                clock: Timestamp::UNIX_EPOCH,
                url: String::new(),
                level: 2,
                is_watching: true,
                has_stopped: false,
                watched_revision: Revision(1),
                claimed_at: None,
            },
            heard_ago: Duration::ZERO,
            clock_offset: Some(SignedDuration::from_millis(-250)),
            lag_revisions: 7,
        };
        let report = ClusterReport {
            me: NodeIdentity { name: "a".into(), epoch: "e".into(), url: String::new(), level: 2 },
            role: Role::Lead(Revision(5)),
            leader: None,
            level: Some(2),
            watched: Revision(9),
            returned_ago: Some(Duration::from_millis(500)),
            clocks: 1,
            nodes: vec![node("a", NodeState::Running), node("b", NodeState::Silent)],
        };
        let alarms = Some(vec![Alarm { member_id: 1, kind: AlarmKind::NoSpace }]);
        let endpoint = |member| EndpointStatus { url: String::new(), member };
        let endpoints = vec![endpoint(Ok(1)), endpoint(Err("timeout".to_owned()))];
        let status =
            EtcdStatus { cluster_id: 1, members: Vec::new(), endpoints, alarms, assumed_quota_bytes: None };
        let answer = EtcdAnswer { asked_at: Timestamp::UNIX_EPOCH, status: Ok(status), warnings: Vec::new() };
        assert_eq!(
            samples(report.clone(), answer.clone()),
            [
                "cluster_leads 1",
                "cluster_nodes{state=\"running\"} 1",
                "cluster_nodes{state=\"silent\"} 1",
                "cluster_nodes{state=\"stopped\"} 0",
                "cluster_format_level 2",
                "cluster_watch_age_seconds 0.5",
                "cluster_watch_lag_revisions 7",
                "cluster_clock_offset_seconds -0.25",
                "etcd_endpoints_answering 1",
                "etcd_alarms 1",
            ]
        );
        let silent = EtcdAnswer { status: Err("late".to_owned()), ..answer };
        let of_etcd = samples(report, silent).into_iter().filter(|line| line.starts_with("etcd"));
        assert_eq!(of_etcd.collect::<Vec<_>>(), ["etcd_endpoints_answering 0"]);
    }
}
