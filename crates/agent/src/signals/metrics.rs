//! `/metrics`: counters, gauges and a histogram in Prometheus text format.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use notbefore_client::document::EventKind;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

use crate::fact_text;
use crate::machine::io::{ApprovalAnswer, Fact, FactKind, Stage};

type Labels = Vec<(&'static str, String)>;

/// Buckets from a quick script to a drain that takes all of a 15-minute notice.
const STEP_SECONDS: [f64; 9] = [0.1, 0.5, 1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 900.0];

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    polls: Family<Labels, Counter>,
    facts: Family<Labels, Counter>,
    events: Family<Labels, Counter>,
    steps: Family<Labels, Counter>,
    /// Registered with the first step, so that no empty histogram is shown.
    step_seconds: Option<Histogram>,
    approvals: Family<Labels, Counter>,
    journal_failures: Counter,
    draining: Gauge,
    stranded: Gauge,
    handled: Gauge,
    waiting: Gauge,
    /// Registered with the platform's first answer.
    last_answer_age: Option<Gauge<f64, AtomicU64>>,
    /// Empty while no event of this VM waits for its NotBefore.
    next_not_before: Family<Labels, Gauge<f64, AtomicU64>>,
}

/// Values at the time of a page.
#[derive(Clone, Copy, Debug)]
pub struct Gauges {
    /// Since the platform's last answer.
    pub silent: Option<Duration>,
    pub draining: bool,
    pub stranded: bool,
    pub handled: usize,
    pub waiting: usize,
    pub until_not_before: Option<Duration>,
}

/// Registers a metric.
fn registered<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("notbefore_agent");
        let mut counters = |name, help| registered::<Family<Labels, Counter>>(&mut registry, name, help);
        let polls = counters("polls", "Polls, by result");
        let events = counters(
            "events_seen",
            "Events that appeared, by type and whether this VM is one of their resources",
        );
        let facts = counters("facts", "Facts about events, by kind");
        // Start at zero: alerts on `increase()` miss a first value without a zero before it.
        for what in fact_text::ALARMS {
            drop(facts.get_or_create(&vec![("what", what.to_owned())]));
        }
        let steps = counters("steps", "Attempts at steps, by rule, stage and outcome");
        let approvals = counters("approvals", "Approvals sent, by outcome");
        let journal_failures = registered(&mut registry, "journal_failures", "Failed writes of the journal");
        let build: Family<Labels, Gauge> = registered(&mut registry, "build_info", "Version of the agent");
        build.get_or_create(&vec![("version", env!("CARGO_PKG_VERSION").to_owned())]).set(1);
        let next_not_before = Family::default();
        let help = "Time until the next NotBefore of this VM's events";
        registry.register_with_unit("next_not_before", help, Unit::Seconds, Family::clone(&next_not_before));
        let mut gauge = |name, help| registered(&mut registry, name, help);
        Metrics {
            polls,
            facts,
            events,
            steps,
            step_seconds: None,
            approvals,
            journal_failures,
            draining: gauge("draining", "Whether this VM should get no new work"),
            stranded: gauge("stranded", "Whether a failed step keeps this VM from being restored"),
            handled: gauge("events_handled", "Events that the agent tracks now"),
            waiting: gauge("changes_waiting", "Changes of events deferred by the rate limit"),
            last_answer_age: None,
            next_not_before,
            registry,
        }
    }
}

impl Metrics {
    pub fn polled(&self, result: &str) {
        self.polls.get_or_create(&vec![("result", result.to_owned())]).inc();
    }

    pub fn count(&self, fact: &Fact) {
        self.facts.get_or_create(&vec![("what", fact_text::name(fact).to_owned())]).inc();
        if let FactKind::Appeared { mine, .. } = fact.kind {
            // Only known types become labels: a platform could invent unlimited ones.
            let kind = Some(&fact.event.kind).filter(|kind| EventKind::KNOWN.contains(kind));
            let kind = kind.map_or("other", EventKind::as_str);
            let labels = vec![("type", kind.to_owned()), ("mine", mine.to_string())];
            self.events.get_or_create(&labels).inc();
        }
    }

    pub fn ran(&mut self, rule: &str, stage: Stage, outcome: &str, took: Duration) {
        let labels = [("rule", rule), ("stage", stage.as_str()), ("outcome", outcome)];
        let labels = labels.map(|(name, value)| (name, value.to_owned())).to_vec();
        self.steps.get_or_create(&labels).inc();
        let step_seconds = self.step_seconds.get_or_insert_with(|| {
            let histogram = Histogram::new(STEP_SECONDS);
            let help = "Duration of attempts at steps";
            self.registry.register_with_unit("step", help, Unit::Seconds, histogram.clone());
            histogram
        });
        step_seconds.observe(took.as_secs_f64());
    }

    pub fn approved(&self, answer: &ApprovalAnswer) {
        let outcome = match answer {
            ApprovalAnswer::Accepted => "accepted",
            ApprovalAnswer::Moot => "moot",
            ApprovalAnswer::Refused { .. } => "refused",
            ApprovalAnswer::Failed { .. } => "failed",
        };
        self.approvals.get_or_create(&vec![("outcome", outcome.to_owned())]).inc();
    }

    pub fn journal_failed(&self) {
        self.journal_failures.inc();
    }

    pub fn page(&mut self, now: &Gauges) -> String {
        let Gauges { silent, draining, stranded, handled, waiting, until_not_before } = *now;
        self.draining.set(draining.into());
        self.stranded.set(stranded.into());
        self.handled.set(i64::try_from(handled).unwrap_or(i64::MAX));
        self.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        if let Some(silent) = silent {
            let age = self.last_answer_age.get_or_insert_with(|| {
                let (age, help) = (Gauge::default(), "Time since the platform last answered");
                self.registry.register_with_unit("last_answer_age", help, Unit::Seconds, Gauge::clone(&age));
                age
            });
            age.set(silent.as_secs_f64());
        }
        self.next_not_before.clear();
        if let Some(left) = until_not_before {
            self.next_not_before.get_or_create(&Labels::new()).set(left.as_secs_f64());
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
