//! What `/metrics` says: aggregates, in the text form that Prometheus reads.

use std::time::Duration;

use notbefore_client::document::EventKind;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::machine::io::{ApprovalAnswer, Fact, Stage, What};
use crate::tell;

type Labels = Vec<(&'static str, String)>;

/// From a quick script to a drain that takes all of a quarter of an hour's notice.
const STEP_SECONDS: [f64; 9] = [0.1, 0.5, 1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 900.0];

/// What is counted.
#[derive(Debug)]
pub struct Metrics {
    polls: Family<Labels, Counter>,
    facts: Family<Labels, Counter>,
    events: Family<Labels, Counter>,
    steps: Family<Labels, Counter>,
    step_seconds: Option<Histogram>,
    approvals: Family<Labels, Counter>,
    journal_failures: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let facts: Family<Labels, Counter> = Family::default();
        // What somebody wants to be woken by is counted from nought on: a first one that has no zero before it is no rise.
        for what in tell::ALARMS {
            drop(facts.get_or_create(&vec![("what", what.to_owned())]));
        }
        Metrics {
            polls: Family::default(),
            facts,
            events: Family::default(),
            steps: Family::default(),
            step_seconds: None,
            approvals: Family::default(),
            journal_failures: Counter::default(),
        }
    }
}

impl Metrics {
    /// A poll has ended so.
    pub fn polled(&self, result: &str) {
        self.polls.get_or_create(&vec![("result", result.to_owned())]).inc();
    }

    /// Something happened.
    pub fn count(&self, fact: &Fact) {
        self.facts.get_or_create(&vec![("what", tell::name(fact).to_owned())]).inc();
        if let What::Appeared { mine, .. } = fact.what {
            // A platform may spell a type it has made up in as many ways as it likes, and every one would be kept.
            let kind = Some(&fact.event.kind).filter(|kind| EventKind::KNOWN.contains(kind));
            let kind = kind.map_or("other", EventKind::as_str);
            let labels = vec![("type", kind.to_owned()), ("mine", mine.to_string())];
            self.events.get_or_create(&labels).inc();
        }
    }

    /// A step has ended so.
    pub fn ran(&mut self, rule: &str, stage: Stage, outcome: &str, took: Duration) {
        let stage = match stage {
            Stage::Before => "before",
            Stage::After => "after",
        };
        let labels =
            vec![("rule", rule.to_owned()), ("stage", stage.to_owned()), ("outcome", outcome.to_owned())];
        self.steps.get_or_create(&labels).inc();
        self.step_seconds.get_or_insert_with(|| Histogram::new(STEP_SECONDS)).observe(took.as_secs_f64());
    }

    /// An approval was answered so.
    pub fn approved(&self, answer: &ApprovalAnswer) {
        let outcome = match answer {
            ApprovalAnswer::Accepted => "accepted",
            ApprovalAnswer::Moot => "moot",
            ApprovalAnswer::Refused { .. } => "refused",
            ApprovalAnswer::Failed { .. } => "failed",
        };
        self.approvals.get_or_create(&vec![("outcome", outcome.to_owned())]).inc();
    }

    /// The journal could not be written.
    pub fn journal_failed(&self) {
        self.journal_failures.inc();
    }

    /// The whole page.
    pub fn page(&self, silent: Option<Duration>, draining: bool, handled: usize, waiting: usize) -> String {
        let mut registry = Registry::with_prefix("notbefore_agent");
        registry.register("polls", "Polls, by what came of them", self.polls.clone());
        registry.register(
            "events_seen",
            "Events that appeared, by type and whether this VM is one of their resources",
            self.events.clone(),
        );
        registry.register("facts", "What happened to events, by what that was", self.facts.clone());
        registry.register(
            "steps",
            "Attempts at steps, by rule, stage and how they ended",
            self.steps.clone(),
        );
        if let Some(step_seconds) = &self.step_seconds {
            registry.register_with_unit(
                "step",
                "How long attempts at steps took",
                Unit::Seconds,
                step_seconds.clone(),
            );
        }
        registry.register(
            "approvals",
            "Approvals that were sent, by what became of them",
            self.approvals.clone(),
        );
        registry.register(
            "journal_failures",
            "Times that the journal could not be written",
            self.journal_failures.clone(),
        );
        gauge(&mut registry, "draining", "Whether this VM should get no new work", i64::from(draining));
        gauge(
            &mut registry,
            "events_handled",
            "Events that the agent knows of now",
            i64::try_from(handled).unwrap_or(i64::MAX),
        );
        gauge(
            &mut registry,
            "changes_waiting",
            "Changes of events that the platform has announced faster than they are taken in",
            i64::try_from(waiting).unwrap_or(i64::MAX),
        );
        if let Some(silent) = silent {
            let age: Gauge<f64, std::sync::atomic::AtomicU64> = Gauge::default();
            age.set(silent.as_secs_f64());
            registry.register_with_unit(
                "last_answer_age",
                "Since the platform last answered",
                Unit::Seconds,
                age,
            );
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &registry);
        text
    }
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: i64) {
    let gauge: Gauge = Gauge::default();
    gauge.set(value);
    registry.register(name, help, gauge);
}
