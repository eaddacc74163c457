//! Event data for hooks: environment variables, a JSON object on stdin, and `{NAME}` placeholders in files and
//! requests.

use notbefore_wire::text::printable;
use serde::Serialize;
use serde_json::Value;

use crate::machine::io::{Run, Stage};

/// Prefix of every variable.
const PREFIX: &str = "NOTBEFORE_";
/// Longest value of a variable: Linux refuses to start a program with one of 128 KiB. The JSON on stdin is complete.
const VALUE_BYTES_MAX: usize = 32 * 1024;

/// The variables, without prefix, with their meaning.
pub const VARIABLES: [(&str, &str); 16] = [
    ("EVENT_ID", "the event's id, as the platform spells it"),
    (
        "EVENT_TYPE",
        "Freeze, Reboot, Redeploy, Preempt, Terminate, SpotRebalanceRecommendation, or a newer type",
    ),
    ("EVENT_STATUS", "Scheduled or Started, as last seen"),
    ("EVENT_SOURCE", "Platform or User; empty if the platform does not report it"),
    ("NOT_BEFORE", "the earliest start without approval (RFC 3339), or empty"),
    ("DESCRIPTION", "the platform's description, often empty"),
    ("DURATION", "the expected interruption in seconds, -1 if unknown"),
    ("RESOURCES", "the names of the affected VMs, separated by spaces"),
    ("VM", "this VM's name"),
    ("RULE", "the rule's name"),
    ("STAGE", "before or after"),
    ("STEP", "the step's name"),
    ("ATTEMPT", "which attempt at this step, from 1"),
    ("BUDGET", "whole seconds that this attempt may take"),
    ("CANCELLED", "true in steps after an event that never started, else false"),
    ("DRY_RUN", "true if the agent only logs its actions, else false"),
];

#[derive(Clone, Debug)]
pub struct HookVariables {
    /// In the order of [`VARIABLES`].
    values: Vec<String>,
    pub json: String,
}

#[derive(Serialize)]
struct StdinDocument<'a> {
    vm: &'a str,
    rule: &'a str,
    stage: Stage,
    step: &'a str,
    attempt: u32,
    budget_seconds: u64,
    cancelled: bool,
    event: &'a Value,
}

impl HookVariables {
    /// The data for one attempt.
    pub fn new(run: &Run, vm: &str, dry_run: bool) -> HookVariables {
        let event = &run.event;
        let budget_seconds = run.budget.as_secs();
        let values = [
            event.id.as_str().to_owned(),
            event.kind.as_str().to_owned(),
            event.status.as_str().to_owned(),
            event.source.as_ref().map_or("", |source| source.as_str()).to_owned(),
            event.not_before.map(|at| at.to_string()).unwrap_or_default(),
            event.description.clone(),
            event.duration_seconds.map_or("-1".to_owned(), |seconds| seconds.to_string()),
            event.resources.join(" "),
            vm.to_owned(),
            run.rule.clone(),
            run.stage.as_str().to_owned(),
            run.step.name.clone(),
            run.attempt.to_string(),
            budget_seconds.to_string(),
            run.cancelled.to_string(),
            dry_run.to_string(),
        ];
        let on_stdin = StdinDocument {
            vm,
            rule: &run.rule,
            stage: run.stage,
            step: &run.step.name,
            attempt: run.attempt,
            budget_seconds,
            cancelled: run.cancelled,
            event: &event.raw,
        };
        // Serializing text and numbers does not fail.
        let json = serde_json::to_string(&on_stdin).unwrap_or_default();
        HookVariables { values: values.into_iter().map(fit).collect(), json }
    }

    /// With prefix.
    pub fn variables(&self) -> impl Iterator<Item = (String, &str)> {
        let names = VARIABLES.iter().map(|(name, _)| format!("{PREFIX}{name}"));
        names.zip(self.values.iter().map(String::as_str))
    }

    /// Replaces every `{NAME}` of a variable; other braces stay, because the text may be JSON. Control characters of a
    /// value are escaped: a field of the platform's document adds no line to a file.
    pub fn fill(&self, template: &str) -> String {
        self.fill_with(template, printable)
    }

    /// Like [`HookVariables::fill`], for a JSON text: values are escaped for use within quotes.
    pub fn fill_json(&self, template: &str) -> String {
        self.fill_with(template, |value| {
            let quoted = Value::from(value).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        })
    }

    fn fill_with(&self, template: &str, spelled: impl Fn(&str) -> String) -> String {
        let mut filled = String::with_capacity(template.len());
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            let (before, from) = rest.split_at(open);
            filled.push_str(before);
            let known = VARIABLES.iter().zip(&self.values).find_map(|((name, _), value)| {
                let after = from[1..].strip_prefix(name)?.strip_prefix('}')?;
                Some((value, after))
            });
            match known {
                Some((value, after)) => {
                    filled.push_str(&spelled(value));
                    rest = after;
                }
                None => {
                    filled.push('{');
                    rest = &from[1..];
                }
            }
        }
        filled.push_str(rest);
        filled
    }
}

/// Names in the form of a variable, `{LIKE_THIS}`, that are unknown.
pub fn unknown_names(template: &str) -> Vec<&str> {
    let inside = |part: &'_ str| part.split_once('}').map(|(name, _)| name.len());
    let names = template.split('{').skip(1).filter_map(|part| Some(&part[..inside(part)?]));
    let looks_so = |name: &&str| {
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    };
    names.filter(looks_so).filter(|name| VARIABLES.iter().all(|(known, _)| known != name)).collect()
}

/// Sanitises a value for the environment: no NUL byte, limited length.
fn fit(value: String) -> String {
    let mut value = if value.contains('\0') { value.replace('\0', "\u{fffd}") } else { value };
    if value.len() > VALUE_BYTES_MAX {
        let end = (0..=VALUE_BYTES_MAX).rev().find(|end| value.is_char_boundary(*end)).unwrap_or(0);
        value.truncate(end);
    }
    value
}

/// Helpers shared with the tests of other modules.
#[cfg(test)]
pub mod tests {
    use std::time::Duration;

    use notbefore_client::document::{Event, EventId, EventKind, EventSource, EventStatus};

    use super::*;
    use crate::machine::io::RunId;
    use crate::rules::{OnFailure, OnInterrupt, Step, StepAction};

    pub fn run_of(does: StepAction, budget: Duration) -> Run {
        Run {
            id: RunId(1),
            event: Event {
                id: EventId::new("A123"),
                kind: EventKind::Reboot,
                status: EventStatus::Scheduled,
                resources: vec!["web-0".to_owned(), "web-1".to_owned()],
                not_before: Some("2026-11-16T08:00:00Z".parse().unwrap()),
                description: "Host \"maintenance\"".to_owned(),
                source: Some(EventSource::Platform),
                duration_seconds: None,
                raw: serde_json::json!({"EventId": "A123", "Novel": [1]}),
            },
            rule: "drain".to_owned(),
            stage: Stage::Before,
            step: Step {
                name: "pool".to_owned(),
                does,
                timeout: budget,
                keep: Duration::ZERO,
                retries: 0,
                retry_delay: Duration::ZERO,
                on_failure: OnFailure::Withhold,
                on_interrupt: OnInterrupt::Rerun,
            },
            attempt: 2,
            budget,
            until: None,
            cancelled: false,
        }
    }

    fn sample() -> HookVariables {
        HookVariables::new(
            &run_of(StepAction::Wait { time: Duration::ZERO }, Duration::from_millis(5_900)),
            "web-0",
            false,
        )
    }

    #[test]
    fn variables_and_json_describe_the_event() {
        let sample = sample();
        let said: Vec<String> = sample.variables().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            said,
            [
                "NOTBEFORE_EVENT_ID=A123",
                "NOTBEFORE_EVENT_TYPE=Reboot",
                "NOTBEFORE_EVENT_STATUS=Scheduled",
                "NOTBEFORE_EVENT_SOURCE=Platform",
                "NOTBEFORE_NOT_BEFORE=2026-11-16T08:00:00Z",
                "NOTBEFORE_DESCRIPTION=Host \"maintenance\"",
                "NOTBEFORE_DURATION=-1",
                "NOTBEFORE_RESOURCES=web-0 web-1",
                "NOTBEFORE_VM=web-0",
                "NOTBEFORE_RULE=drain",
                "NOTBEFORE_STAGE=before",
                "NOTBEFORE_STEP=pool",
                "NOTBEFORE_ATTEMPT=2",
                "NOTBEFORE_BUDGET=5",
                "NOTBEFORE_CANCELLED=false",
                "NOTBEFORE_DRY_RUN=false",
            ]
        );
        assert_eq!(
            sample.json,
            r#"{"vm":"web-0","rule":"drain","stage":"before","step":"pool","attempt":2,"budget_seconds":5,"cancelled":false,"event":{"EventId":"A123","Novel":[1]}}"#
        );
    }

    #[test]
    fn fill_replaces_known_names_only() {
        assert_eq!(
            sample().fill("{\"id\":\"{EVENT_ID}\",\"x\":{}} {NOPE} {VM}{"),
            "{\"id\":\"A123\",\"x\":{}} {NOPE} web-0{"
        );
        assert_eq!(unknown_names("{EVENT_ID} {\"a\":{}} {EVENT_IDD} {lower} {X"), ["EVENT_IDD"]);
    }

    #[test]
    fn fill_json_escapes_values() {
        let filled = sample().fill_json("{\"text\":\"{DESCRIPTION}\",\"n\":{DURATION}}");
        let read: Value = serde_json::from_str(&filled).unwrap();
        assert_eq!((&read["text"], &read["n"]), (&"Host \"maintenance\"".into(), &(-1).into()));
        assert_eq!(
            sample().fill("{DESCRIPTION}"),
            "Host \"maintenance\"",
            "text that is not JSON is not escaped"
        );
    }

    #[test]
    fn nul_and_oversized_values_are_sanitised() {
        assert_eq!(fit("a\0b".to_owned()), "a\u{fffd}b");
        assert!(fit("ä".repeat(VALUE_BYTES_MAX)).len() <= VALUE_BYTES_MAX);
    }
}
