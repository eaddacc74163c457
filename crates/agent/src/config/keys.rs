//! The one list of keys: what may be written where, with its default and its meaning. Unknown keys are told by it, and
//! the table of the documentation and the manual page are made from it.

use notbefore_settings::schema::{Flag, Group, Key, Schema};

const fn key(name: &'static str, default: &'static str, what: &'static str) -> Key {
    Key { name, default, what, flag: Flag::None }
}

/// The agent as a whole. Each of these may also come from the environment, and most from a flag.
pub const GENERAL: Group = Group {
    path: "",
    title: "the top",
    keys: &[
        key("endpoint", "found by itself", "the URL of the endpoint, as `http://169.254.169.254`"),
        key(
            "name",
            "what instance metadata says, else the host name",
            "this VM's name in events' `Resources`, for where the metadata says none",
        ),
        key(
            "api_version",
            "`2020-07-01`",
            "the newest api-version to ask for; older ones are fallen back to",
        ),
        key(
            "state",
            "`$STATE_DIRECTORY`, else `/var/lib/notbefore-agent` (Windows: `%ProgramData%\\notbefore\\agent`)",
            "the directory of the journal, on a disk that survives a redeployment",
        ),
        key("listen", "`127.0.0.1:9256`", "where the signals are served; `none` turns them off"),
        key(
            "dry_run",
            "`false`",
            "steps and approvals are told and not done, and nothing is written to the journal",
        ),
        key("log", "`info`", "what is logged: a level, or levels by module as `info,notbefore_agent=debug`"),
        key("notify", "nobody is told", "the table of the administrator's webhook"),
        key("rule", "", "the rules, in the order in which they are tried"),
    ],
};

/// The table that tells an administrator.
pub const NOTIFY: Group = Group {
    path: "notify",
    title: "`[notify]`",
    keys: &[
        key("url", "", "where a POST goes when something happened that is in `on`"),
        key(
            "headers",
            "none",
            "further headers, as `{ Authorization = \"Bearer …\" }`; they are never logged",
        ),
        key(
            "on",
            "`[\"appeared\", \"withheld\", \"failed\"]`",
            "which of `appeared`, `failed`, `withheld`, `approved`, `started`, `cancelled`, `ended`, `restored`",
        ),
        key("timeout", "`10s`", "how long one request may take"),
    ],
};

/// One rule.
pub const RULE: Group = Group {
    path: "rule",
    title: "`[[rule]]`",
    keys: &[
        key("name", "", "what it is called in logs, metrics and the journal; unique"),
        key("types", "any", "which of Freeze, Reboot, Redeploy, Preempt, Terminate; in any case"),
        key("sources", "any", "which of Platform, User; any also takes events that do not say"),
        key("resources", "`mine`", "whose events: `mine`, `others` (not this VM's) or `any`"),
        key("duration", "any", "how long the interruption is expected to last"),
        key("time_left", "any", "how long it is until NotBefore when the event is first seen"),
        key(
            "approve",
            "`when-done` for mine, else `never`",
            "`when-done` (the steps before it are done), `leader` (the same, and this VM is first in Resources) or `never`; an approval is for all VMs of the event",
        ),
        key(
            "restore",
            "`gone`",
            "when the steps after it begin: `gone` from the document, or `booted` if that is sooner",
        ),
        key(
            "drain",
            "`true` for mine with steps before",
            "whether it takes the VM out of service: `/drainz` is red from the event's appearance until the VM is restored, and of several such events what was taken out last is put back first",
        ),
        key("before", "none", "steps before the event, one after the other"),
        key("after", "none", "steps when it is over, or cancelled"),
    ],
};

/// How long an interruption lasts.
pub const DURATION: Group = Group {
    path: "rule.duration",
    title: "`duration`",
    keys: &[
        key("at_least", "unbounded", "the shortest that matches"),
        key("at_most", "unbounded", "the longest that matches"),
        key(
            "unknown",
            "`false` with `at_most`, else `true`",
            "whether an event matches whose duration nobody knows (-1)",
        ),
    ],
};

/// How long it is until NotBefore.
pub const TIME_LEFT: Group = Group {
    path: "rule.time_left",
    title: "`time_left`",
    keys: &[
        key("at_least", "unbounded", "the least that matches"),
        key("at_most", "unbounded", "the most that matches"),
    ],
};

/// The keys that say what a step does; it has exactly one of them.
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

/// One step; `rule.after` takes the same but `keep`.
pub const STEP: Group = Group {
    path: "rule.before",
    title: "`[[rule.before]]`, `[[rule.after]]`",
    keys: &[
        key("name", "its place, from 1", "what it is called in logs and metrics; unique in its list"),
        key("command", "", "a program and its arguments, no shell in between; exit code 0 is success"),
        key("shell", "", "a line for `sh -c` (Windows: `cmd /C`)"),
        key("webhook", "", "a request; 2xx is success"),
        key("stop_unit", "", "a systemd unit that is stopped"),
        key("start_unit", "", "a systemd unit that is started"),
        key("write_file", "", "a file that is written, all of it at once"),
        key("remove_file", "", "a file that is removed; one that is not there is no failure"),
        key("wait", "", "a span that passes"),
        key("wait_for", "", "a program that is run again and again until it succeeds"),
        key("every", "`1s`", "how long `wait_for` rests in between"),
        key(
            "timeout",
            "`1h` before, `5m` after",
            "how long an attempt may take; before an event NotBefore bounds it, too",
        ),
        key(
            "keep",
            "`0s`",
            "time that the steps before this one may not use up: it is run although they ran out of theirs",
        ),
        key("retries", "`0`", "further attempts after a failed one, as long as there is time"),
        key("retry_delay", "`1s`", "the rest between two attempts"),
        key(
            "on_failure",
            "`withhold` before, `go-on` after",
            "`withhold`: the steps that follow are not run, and the event is not approved, or the VM not put back; `go-on`: they are",
        ),
        key(
            "on_interrupt",
            "`rerun`",
            "what happens to a step that the agent's own end interrupted: `rerun` or `skip`",
        ),
    ],
};

/// A request.
pub const WEBHOOK: Group = Group {
    path: "rule.before.webhook",
    title: "`webhook`",
    keys: &[
        key("url", "", "where it goes"),
        key("method", "`POST`", "GET, HEAD, POST, PUT, PATCH or DELETE"),
        key("headers", "none", "further headers; they are never logged"),
        key("body", "the JSON that programs have on stdin", "what is sent; `{NAME}` stands for a variable"),
    ],
};

/// A file to be written.
pub const WRITE_FILE: Group = Group {
    path: "rule.before.write_file",
    title: "`write_file`",
    keys: &[
        key(
            "path",
            "",
            "where, from the root on; a file that is there keeps its owner and its rights, and where the agent may not see to that, the step fails",
        ),
        key("content", "empty", "what; `{NAME}` stands for a variable"),
    ],
};

/// Every table, and who else says what the settings of the agent as a whole are.
pub static SCHEMA: Schema = Schema {
    settings: &[&GENERAL],
    tables: &[&NOTIFY, &RULE, &DURATION, &TIME_LEFT, &STEP, &WEBHOOK, &WRITE_FILE],
    prefix: "NOTBEFORE_AGENT_",
    // Those that tests pretend another boot and another VM with.
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
