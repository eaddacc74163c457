//! Schema of the agent's configuration: every key with its default and meaning. It detects unknown keys and generates
//! the reference page and the manual page.

use notbefore_settings::schema::{Flag, Group, Key, Schema};

const fn key(name: &'static str, default: &'static str, what: &'static str) -> Key {
    Key { name, default, what, flag: Flag::None }
}

/// Global settings. Each can also be set in the environment, and most by a flag.
pub const GENERAL: Group = Group {
    path: "",
    title: "the top",
    keys: &[
        key("endpoint", "discovered", "the URL of the endpoint, as `http://169.254.169.254`"),
        key(
            "name",
            "from the instance metadata, else the host name",
            "this VM's name in the `Resources` of events; set it if the instance metadata has none",
        ),
        key(
            "api_version",
            "`2024-07-09`",
            "newest api-version to request; the agent falls back to older ones",
        ),
        key(
            "state",
            "`$STATE_DIRECTORY`, else `/var/lib/notbefore-agent` (Windows: `%ProgramData%\\notbefore\\agent`)",
            "directory of the journal, on a disk that survives a redeployment",
        ),
        key("listen", "`127.0.0.1:9256`", "address of the status server; `none` turns it off"),
        key(
            "dry_run",
            "`false`",
            "log steps and approvals instead of executing them; do not use the journal",
        ),
        key("log", "`info`", "log level, or levels by module, e.g. `info,notbefore_agent=debug`"),
        key("log_format", "`text`", "`text`, or `json` for one object per line; not for a Windows service"),
        key("notify", "none", "table of the administrator's webhook"),
        key("rule", "", "rules; the first that matches applies"),
    ],
};

/// The administrator's webhook.
pub const NOTIFY: Group = Group {
    path: "notify",
    title: "`[notify]`",
    keys: &[
        key("url", "", "URL that gets a POST for each fact listed in `on`"),
        key(
            "headers",
            "none",
            "extra headers, e.g. `{ Authorization = \"Bearer …\" }`; they are never logged",
        ),
        key(
            "on",
            "`[\"appeared\", \"unmatched\", \"withheld\", \"stranded\", \"failed\"]`",
            "any of `appeared`, `unmatched`, `failed`, `withheld`, `stranded`, `approved`, `started`, `cancelled`, `ended`, `restored`",
        ),
        key("timeout", "`10s`", "timeout of one request"),
    ],
};

pub const RULE: Group = Group {
    path: "rule",
    title: "`[[rule]]`",
    keys: &[
        key("name", "", "name in logs, metrics and the journal; unique"),
        key(
            "types",
            "any",
            "any of Freeze, Reboot, Redeploy, Preempt, Terminate, SpotRebalanceRecommendation; upper or lower case",
        ),
        key(
            "advisory",
            "`true` if `types` has SpotRebalanceRecommendation",
            "whether advisories match too: events that may never happen, have no deadline and are never approved",
        ),
        key("sources", "any", "any of Platform, User; the default also matches events without a source"),
        key("resources", "`mine`", "which VMs' events: `mine`, `others` (not for this VM) or `any`"),
        key("duration", "any", "expected duration of the interruption"),
        key("time_left", "any", "time left until NotBefore"),
        key(
            "approve",
            "`when-done` for `mine`, else `never`",
            "`when-done` (the steps before the event are done), `leader` (also requires that this VM is first in Resources) or `never`; an approval counts for all VMs of the event",
        ),
        key(
            "restore",
            "`gone`",
            "when the steps after the event start: `gone` (the event left the document) or `booted` (the VM booted, if that is earlier)",
        ),
        key(
            "drain",
            "`true` for `mine` with steps before",
            "whether the event takes the VM out of service: `/drainz` answers 503 until the VM is restored; several such events are restored in reverse order",
        ),
        key("before", "none", "steps before the event, run in order"),
        key("after", "none", "steps after the event is over or cancelled, run in order"),
    ],
};

/// Expected duration of the interruption.
pub const DURATION: Group = Group {
    path: "rule.duration",
    title: "`duration`",
    keys: &[
        key("at_least", "unbounded", "shortest duration that matches"),
        key("at_most", "unbounded", "longest duration that matches"),
        key(
            "unknown",
            "`false` with `at_most`, else `true`",
            "whether an event of unknown duration (-1) matches",
        ),
    ],
};

/// Time until NotBefore.
pub const TIME_LEFT: Group = Group {
    path: "rule.time_left",
    title: "`time_left`",
    keys: &[
        key("at_least", "unbounded", "shortest time that matches"),
        key("at_most", "unbounded", "longest time that matches"),
    ],
};

/// The keys of which a step has exactly one.
pub const ACTIONS: [&str; 9] = [
    "command",
    "shell",
    "webhook",
    "stop_unit",
    "start_unit",
    "write_file",
    "remove_file",
    "wait",
    "wait_for",
];

/// A step; `rule.after` has the same keys except `keep`.
pub const STEP: Group = Group {
    path: "rule.before",
    title: "`[[rule.before]]`, `[[rule.after]]`",
    keys: &[
        key("name", "its position, from 1", "name in logs and metrics; unique in its list"),
        key("command", "", "program and its arguments, run without a shell; exit code 0 is success"),
        key("shell", "", "command line for `sh -c` (Windows: `cmd /C`)"),
        key("webhook", "", "HTTP request; 2xx is success"),
        key("stop_unit", "", "systemd unit to stop"),
        key("start_unit", "", "systemd unit to start"),
        key("write_file", "", "file to write, atomically"),
        key("remove_file", "", "file to remove; a missing file is no failure"),
        key("wait", "", "time to wait"),
        key("wait_for", "", "program to run repeatedly until it succeeds"),
        key("every", "`1s`", "pause of `wait_for` between two runs"),
        key(
            "timeout",
            "`1h` before, `5m` after",
            "timeout of one attempt; before an event NotBefore limits it too",
        ),
        key("keep", "`0s`", "time reserved for this step: earlier steps cannot use it"),
        key("retries", "`0`", "further attempts after a failure, while there is time"),
        key("retry_delay", "`1s`", "pause between two attempts"),
        key(
            "on_failure",
            "`withhold`",
            "`withhold`: skip the remaining steps; before the event it is not approved, after it the VM is stranded until a retry; `go-on`: run the next step",
        ),
        key(
            "on_interrupt",
            "`rerun`",
            "for a step that was running when the agent stopped: `rerun` or `skip`",
        ),
    ],
};

/// An HTTP request.
pub const WEBHOOK: Group = Group {
    path: "rule.before.webhook",
    title: "`webhook`",
    keys: &[
        key("url", "", "URL"),
        key("method", "`POST`", "GET, HEAD, POST, PUT, PATCH or DELETE"),
        key("headers", "none", "extra headers; they are never logged"),
        key(
            "body",
            "the JSON that programs get on stdin",
            "request body; `{NAME}` is replaced by a variable",
        ),
    ],
};

pub const WRITE_FILE: Group = Group {
    path: "rule.before.write_file",
    title: "`write_file`",
    keys: &[
        key(
            "path",
            "",
            "absolute path; an existing file keeps its owner and mode, and the step fails if the agent may not set them",
        ),
        key("content", "empty", "content; `{NAME}` is replaced by a variable"),
    ],
};

/// All tables, and the other sources of the global settings.
pub static SCHEMA: Schema = Schema {
    settings: &[&GENERAL],
    tables: &[&NOTIFY, &RULE, &DURATION, &TIME_LEFT, &STEP, &WEBHOOK, &WRITE_FILE],
    prefix: "NOTBEFORE_AGENT_",
    // Test variables: simulated boot and VM ids.
    not_settings: &[crate::boot::VARIABLE, crate::vm_id::VARIABLE],
    is_prefix_own: true,
    file_variable: "NOTBEFORE_AGENT_CONFIG",
    directory: "state",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_is_a_key_of_a_step() {
        assert!(ACTIONS.iter().all(|action| STEP.has(action)));
    }
}
