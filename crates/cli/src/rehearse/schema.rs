//! The JSON schema of scenario files, for editors.

use notbefore_rehearse::scenario::Moment;
use notbefore_wire::operator::{Cause, FaultKind, FaultRequests, ScopeKind};
use serde_json::{Value, json};

/// A time span.
fn span(description: &str) -> Value {
    json!({ "type": ["string", "integer"], "pattern": "^ *[0-9]+[smhdw]?([0-9]+[smhdw])* *$", "description": description })
}

fn name(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

pub fn schema() -> Value {
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
    let event = json!({
        "type": "object", "required": ["event", "cause", "vms"], "additionalProperties": false,
        "properties": {
            "event": name("Its name in the scenario"),
            "cause": { "enum": causes },
            "vms": { "type": "array", "minItems": 1, "items": { "type": "string" } },
            "notice": { "anyOf": [span("From the announcement to NotBefore"), { "const": "none" }] },
            "runs": span("How long it stays Started; 'until-completed' for a step that ends it"),
            "duration_seconds": { "type": "integer", "minimum": -1 },
            "description": { "type": "string", "maxLength": 512 },
        },
    });
    let mut event = event;
    event["properties"]["runs"] =
        json!({ "anyOf": [span("How long it stays Started"), { "const": "until-completed" }] });
    let fault = json!({
        "oneOf": [{ "enum": faults }, {
            "type": "object", "required": ["kind"], "additionalProperties": false,
            "properties": {
                "kind": { "enum": faults },
                "vm": name("Only this VM"),
                "requests": { "enum": requests },
                "every": { "type": "integer", "minimum": 1 },
                "count": { "type": "integer", "minimum": 1 },
                "active_seconds": { "type": "integer", "minimum": 1 },
                "seconds": { "type": "integer" },
                "status": { "type": "integer", "minimum": 400, "maximum": 599 },
                "by": { "type": "integer", "minimum": 2 },
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
            "polls_every": span("Longest allowed gap between two polls"),
            "keeps_running": { "type": "boolean", "default": true },
            "rests": span("How long the rehearsal goes on after the last event"),
            "vms": { "type": "array", "minItems": 1, "items": vm },
            "steps": { "type": "array", "items": {
                "type": "object", "additionalProperties": false,
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
                "type": "object", "additionalProperties": false,
                "properties": {
                    "approves": name("An event"), "does_not_approve": name("An event"),
                    "drains": name("An event"), "does_not_drain": name("An event"),
                    "restores": name("An event"), "exits": { "type": "integer" },
                    "within": span("Before compression"),
                },
            } },
        },
    })
}
