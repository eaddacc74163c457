//! What operators and monitoring see of a node of a cluster: the nodes' heartbeats, etcd's status, and counters.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::SignedDuration;
use notbefore_engine::cluster::{ClockOffset, ClusterReport, ResyncReason, StepDown};
use notbefore_store::Key;
use notbefore_wire::operator::cluster as api;
use tokio::time::timeout;

use super::etcd_status::{EtcdAnswer, EtcdStatusCache};
use super::overview;
use crate::clock::{Clock, Stopwatch};
use crate::lock;
use crate::metrics::{Counters, Latency, Tally, counters_from_zero};
use crate::runtime::EngineHandle;

/// Interval of questions to etcd for `/readyz`, which never waits for etcd: health checks have short timeouts.
const ASK_ETCD_EVERY: Duration = Duration::from_secs(10);
/// Longest wait of the metrics page for the engine's task. Without an answer the page has the values of before.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// A node sends a heartbeat each second. A few slow ones are no problem, and old ones say nothing.
const BEATS_COMPARED_MAX: usize = 30;
const BEATS_COMPARED_MIN: usize = 5;
const BEATS_COMPARED_FOR: Duration = Duration::from_secs(30);

/// Counters of a node, since its start.
#[derive(Debug)]
pub struct ClusterStats {
    /// Heartbeats of this node.
    pub beats: Beats,
    /// Transactions that found another revision of the leader's record.
    pub fence_conflicts: Tally,
    /// How often this node gave up the lead, by reason.
    pub step_downs: Counters,
    /// How often this node read the whole store again, by reason.
    pub resyncs: Counters,
    /// Records that were different then, by reason. After a repair, these are records that the watch has lost.
    pub differences: Counters,
}

/// How long the store takes for a heartbeat: it says how slow etcd is, also of a node that commits nothing else.
#[derive(Debug)]
pub struct Beats {
    pub seconds: Latency,
    since_start: Stopwatch,
    /// When each of the last ones was stored, since the start, and how long it took.
    last: Mutex<VecDeque<(Duration, Duration)>>,
}

impl Default for Beats {
    fn default() -> Self {
        Self { seconds: Latency::default(), since_start: Stopwatch::start(), last: Mutex::default() }
    }
}

impl Beats {
    pub fn stored(&self, took: Duration) {
        self.seconds.observe(took);
        let mut last = lock(&self.last);
        last.push_back((self.since_start.elapsed(), took));
        if last.len() > BEATS_COMPARED_MAX {
            last.pop_front();
        }
    }

    /// None if too few were stored lately: then etcd is not slow but away.
    pub fn median(&self) -> Option<Duration> {
        median_of(lock(&self.last).iter(), self.since_start.elapsed())
    }
}

fn median_of<'a>(beats: impl Iterator<Item = &'a (Duration, Duration)>, now: Duration) -> Option<Duration> {
    let recent = beats.filter(|(at, _)| now.saturating_sub(*at) < BEATS_COMPARED_FOR);
    let mut took: Vec<Duration> = recent.map(|(_, took)| *took).collect();
    took.sort();
    (took.len() >= BEATS_COMPARED_MIN).then(|| took.get(took.len() / 2).copied()).flatten()
}

impl Default for ClusterStats {
    fn default() -> Self {
        Self {
            beats: Beats::default(),
            fence_conflicts: Tally::default(),
            step_downs: counters_from_zero("reason", STEP_DOWNS.map(step_down_text)),
            resyncs: counters_from_zero("reason", RESYNCS.map(reason_text)),
            differences: counters_from_zero("reason", RESYNCS.map(reason_text)),
        }
    }
}

impl ClusterStats {
    pub fn count_step_down(&self, reason: StepDown) {
        self.step_downs.get_or_create(&[("reason", step_down_text(reason).to_owned())]).inc();
    }

    pub fn count_resync(&self, reason: ResyncReason) {
        self.resyncs.get_or_create(&[("reason", reason_text(reason).to_owned())]).inc();
    }

    /// Counts and reports records that were different. Only a repair has no cause that is known before.
    pub fn count_differences(&self, reason: ResyncReason, records: u64) {
        self.differences.get_or_create(&[("reason", reason_text(reason).to_owned())]).inc_by(records);
        match reason {
            ResyncReason::Repair if records > 0 => tracing::error!(
                records,
                "this node has shown records that were not in the store any more, or were older: its watch had lost changes; they are repaired, check etcd and its release"
            ),
            ResyncReason::Repair
            | ResyncReason::Compacted
            | ResyncReason::WentBack
            | ResyncReason::Distrusted => {}
        }
    }
}

/// One of each kind.
const STEP_DOWNS: [StepDown; 9] = [
    StepDown::NotAcknowledged,
    StepDown::WatchStalled,
    StepDown::Clock(ClockOffset { from_median: SignedDuration::ZERO, clocks: 1 }),
    StepDown::Superseded,
    StepDown::NotConfirmed,
    StepDown::Level(0),
    StepDown::HandedOver,
    StepDown::Closing,
    StepDown::NameTaken,
];

const RESYNCS: [ResyncReason; 4] =
    [ResyncReason::Compacted, ResyncReason::WentBack, ResyncReason::Distrusted, ResyncReason::Repair];

fn step_down_text(reason: StepDown) -> &'static str {
    match reason {
        StepDown::NotAcknowledged => "not_acknowledged",
        StepDown::WatchStalled => "watch_stalled",
        StepDown::Clock(_) => "clock",
        StepDown::Superseded => "superseded",
        StepDown::NotConfirmed => "not_confirmed",
        StepDown::Level(_) => "format_level",
        StepDown::HandedOver => "hand_over",
        StepDown::Closing => "closing",
        StepDown::NameTaken => "name_taken",
    }
}

fn reason_text(reason: ResyncReason) -> &'static str {
    match reason {
        ResyncReason::Compacted => "compacted",
        ResyncReason::WentBack => "went_back",
        ResyncReason::Distrusted => "distrusted",
        ResyncReason::Repair => "repair",
    }
}

/// See the module docs.
pub struct ClusterMonitor {
    engine: EngineHandle,
    clock: Arc<dyn Clock>,
    etcd: Option<EtcdStatusCache>,
    pub stats: Arc<ClusterStats>,
    /// What the metrics page and `/readyz` show.
    last: Mutex<Observed>,
}

#[derive(Clone, Default)]
pub struct Observed {
    pub report: Option<ClusterReport>,
    pub etcd: Option<Arc<EtcdAnswer>>,
}

impl ClusterMonitor {
    /// Asks etcd again and again until the monitor is dropped.
    pub fn start(
        engine: EngineHandle,
        clock: Arc<dyn Clock>,
        etcd: Option<EtcdStatusCache>,
        stats: Arc<ClusterStats>,
    ) -> Arc<Self> {
        let asks_etcd = etcd.is_some();
        let monitor = Arc::new(Self { engine, clock, etcd, stats, last: Mutex::default() });
        if asks_etcd {
            let asking = Arc::downgrade(&monitor);
            tokio::spawn(async move {
                while let Some(monitor) = asking.upgrade() {
                    let etcd = monitor.ask_etcd().await;
                    lock(&monitor.last).etcd = etcd;
                    drop(monitor);
                    tokio::time::sleep(ASK_ETCD_EVERY).await;
                }
            });
        }
        monitor
    }

    async fn ask_etcd(&self) -> Option<Arc<EtcdAnswer>> {
        match &self.etcd {
            Some(etcd) => Some(etcd.get().await),
            None => None,
        }
    }

    /// None while the service stops. `answers_guests` says whether this node does.
    pub async fn overview(&self, answers_guests: bool) -> Option<api::Cluster> {
        let (report, etcd) = tokio::join!(self.engine.cluster_report(), self.ask_etcd());
        let mut cluster = overview::cluster(&report?, etcd.as_deref(), answers_guests, self.clock.now());
        cluster.problems.extend(self.stats.beats.median().and_then(overview::slow_etcd));
        cluster.problems.extend(self.unreadable().iter().flat_map(|found| overview::unreadable(found)));
        Some(cluster)
    }

    /// Reads everything again for the metrics page.
    pub async fn refresh(&self) {
        let report = async { timeout(REPORT_TIMEOUT, self.engine.cluster_report()).await.ok().flatten() };
        let (report, etcd) = tokio::join!(report, self.ask_etcd());
        let mut last = lock(&self.last);
        last.report = report.or_else(|| last.report.take());
        last.etcd = etcd;
    }

    /// Size and quota of etcd's database, some seconds old. None if etcd is not the store, or does not answer.
    pub fn database_text(&self) -> Option<String> {
        let etcd = lock(&self.last).etcd.clone()?;
        etcd.status.as_ref().ok().and_then(overview::database_text)
    }

    /// Records of the store that this node cannot read, and why.
    pub fn unreadable(&self) -> Option<Arc<BTreeMap<Key, String>>> {
        self.engine.stats().unreadable()
    }

    /// As of the last [`Self::refresh`].
    pub fn observed(&self) -> Observed {
        lock(&self.last).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_of_recent_heartbeats() {
        let second = Duration::from_secs;
        let beats = |took: &[u64]| -> Vec<(Duration, Duration)> {
            (100..).map(second).zip(took.iter().copied().map(Duration::from_millis)).collect()
        };
        let median =
            |took: &[u64], now| median_of(beats(took).iter(), second(now)).map(|one| one.as_millis());
        assert_eq!(median(&[700; 4], 105), None, "too few");
        assert_eq!(median(&[3, 700, 800, 2, 600], 105), Some(600));
        assert_eq!(median(&[3, 4, 800, 2, 5], 105), Some(4), "one slow heartbeat is no problem");
        assert_eq!(median(&[700; 5], 130), None, "they are old");
    }
}
