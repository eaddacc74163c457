//! The JSON schema of scenario files, for editors.

use notbefore_rehearse::scenario::{EXPECTATION_KEYS, Moment, STEP_KEYS};
use notbefore_wire::operator::faults::{ACTIVE_MAX_S, SKIP_BY_MAX};
use notbefore_wire::operator::{Cause, FaultKind, FaultRequests, ScopeKind};
use serde_json::{Value, json};

/// A time span.
fn span(description: &str) -> Value {
    json!({ "type": ["string", "integer"], "minimum": 0, "pattern": "^ *[0-9]+[smhdw]?([0-9]+[smhdw])* *$", "description": description })
}

fn name(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// For each key, a schema that requires it.
fn required_each(keys: &[&str]) -> Value {
    keys.iter().map(|key| json!({ "required": [key] })).collect()
}

pub fn schema() -> Value {
    // `at` comes first, `within` last.
    let actions = required_each(&STEP_KEYS[1..]);
    let expectations = required_each(&EXPECTATION_KEYS[..EXPECTATION_KEYS.len() - 1]);
    let causes: Vec<&str> = Cause::ALL.iter().map(Cause::as_str).collect();
    let kinds: Vec<&str> = ScopeKind::ALL.iter().map(ScopeKind::as_str).collect();
    let faults: Vec<&str> = FaultKind::ALL.iter().map(FaultKind::as_str).collect();
    let requests: Vec<&str> = FaultRequests::ALL.iter().map(FaultRequests::as_str).collect();
    let moments: Vec<&str> = Moment::ALL.iter().map(|moment| moment.as_str()).collect();
    let vm = json!({
        "oneOf": [{ "type": "string" }, {
            "type": "object", "required": ["name"], "additionalProperties": false,
            "properties": {
                "name": name("Its name"),
                "update_domain": { "type": "integer", "minimum": 0, "default": 0 },
                "spot": { "type": "boolean", "default": false },
                "handler": { "type": "boolean", "default": true, "description": "Whether the handler runs for it" },
                "polled": { "type": "boolean", "default": false, "description": "Whether the rehearsal polls for it" },
                "count": { "type": "integer", "minimum": 1, "maximum": 1000, "description": "So many VMs, numbered from 0" },
            },
        }],
    });
    let runs = json!({ "anyOf": [span("How long it stays Started"), { "const": "until-completed", "description": "A step ends it" }] });
    let event = json!({
        "type": "object", "required": ["event", "cause", "vms"], "additionalProperties": false,
        "properties": {
            "event": name("Its name in the scenario"),
            "cause": { "enum": causes },
            "vms": { "type": "array", "minItems": 1, "items": { "type": "string" } },
            "notice": { "anyOf": [span("From the announcement to NotBefore"), { "const": "none" }] },
            "runs": runs,
            "duration_seconds": { "type": "integer", "minimum": -1 },
            "description": { "type": "string", "maxLength": 512 },
        },
    });
    let fault = json!({
        "oneOf": [{ "enum": faults }, {
            "type": "object", "required": ["kind"], "additionalProperties": false,
            "properties": {
                "kind": { "enum": faults },
                "vm": name("Only this VM"),
                "requests": { "enum": requests },
                "every": { "type": "integer", "minimum": 1 },
                "count": { "type": "integer", "minimum": 1 },
                "active_seconds": { "type": "integer", "minimum": 1, "maximum": ACTIVE_MAX_S },
                "seconds": { "type": "integer" },
                "status": { "type": "integer", "minimum": 400, "maximum": 599 },
                "by": { "type": "integer", "minimum": 2, "maximum": SKIP_BY_MAX },
            },
        }],
    });
    let on = json!({ "const": true });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scenario of notbefore rehearse",
        "type": "object", "required": ["summary", "vms", "steps"], "additionalProperties": false,
        "properties": {
            "summary": name("One line that says what happens"),
            "kind": { "enum": kinds, "default": "availability-set" },
            "newest_version": { "enum": ["2024-07-09", "2020-07-01"] },
            "time_zone": { "type": "string", "description": "The handler's variable TZ" },
            "polls_every": span("Longest allowed gap between two polls"),
            "keeps_running": { "type": "boolean", "default": true },
            "rests": span("How long the rehearsal goes on after the last event"),
            "vms": { "type": "array", "minItems": 1, "items": vm },
            "steps": { "type": "array", "minItems": 1, "maxItems": 1000, "items": {
                "type": "object", "additionalProperties": false, "oneOf": actions,
                "properties": {
                    "at": { "anyOf": [
                        span("Since the beginning"),
                        { "type": "string", "pattern": format!("^({}) \\S+( *\\+ *\\S+)?$", moments.join("|")) },
                    ] },
                    "schedule": event,
                    "approve": name("An event"), "start": name("An event"),
                    "complete": name("An event"), "cancel": name("An event"),
                    "fault": fault, "clear_faults": on, "advance_clock": span("So much time passes at the platform"),
                    "stop_handlers": on, "start_handlers": on,
                },
            } },
            "expect": { "type": "array", "items": {
                "type": "object", "additionalProperties": false, "oneOf": expectations,
                "dependentSchemas": { "within": { "anyOf": required_each(&["approves", "restores"]) } },
                "properties": {
                    "approves": name("An event"), "does_not_approve": name("An event"),
                    "drains": name("An event"), "does_not_drain": name("An event"),
                    "restores": name("An event"), "exits": { "type": "integer", "minimum": 0, "maximum": 255 },
                    "within": span("Before compression"),
                },
            } },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_has_all_keys_of_steps_and_expectations() {
        let schema = schema();
        for (list, keys) in [("steps", STEP_KEYS), ("expect", EXPECTATION_KEYS)] {
            let known = schema["properties"][list]["items"]["properties"].as_object().unwrap();
            let mut keys = keys.to_vec();
            keys.sort_unstable();
            assert!(known.keys().eq(keys), "{list}: {known:?}");
        }
    }
}
