//! Rules: which events they match, the steps before and after, and when the agent approves.
//!
//! These are validated values from `config`. The journal keeps a copy of the rule with every matched event, so that
//! the VM is restored by the rule that prepared it, even if the file changes meanwhile. Only a failed step is retried
//! with the current rule. [`matching`] selects the rule of an event; [`reach`] finds rules that can never match.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use notbefore_client::document::{EventKind, EventSource};
use serde::{Deserialize, Serialize};

use crate::machine::io::Stage;

pub mod matching;
pub mod reach;

/// Most rules. Far more than a person writes, and few enough for [`reach::unreachable`], which tries every
/// combination of their bounds.
pub const RULES_MAX: usize = 64;

/// One rule. The first rule that matches an event applies, and stays with it. Unmatched events are matched again as
/// NotBefore comes closer, so a rule can select the last hour of an event announced a week ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Unique.
    pub name: String,
    pub matches: Match,
    /// Steps before the event, run in order.
    pub before: Vec<Step>,
    pub approve: Approve,
    /// Steps after the event is over or cancelled.
    pub after: Vec<Step>,
    /// When `after` starts.
    pub restore: Restore,
    /// Whether the event takes the VM out of service, from its first sight until the VM is restored. Several such
    /// events are restored in reverse order.
    pub drain: bool,
}

impl Rule {
    pub fn steps(&self, stage: Stage) -> &[Step] {
        match stage {
            Stage::Before => &self.before,
            Stage::After => &self.after,
        }
    }
}

/// Conditions of a rule; all must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Match {
    /// Any of these types; empty matches all, including unknown ones.
    pub kinds: Vec<EventKind>,
    /// Whether advisories match, which never happen by themselves.
    pub advisory: bool,
    /// Any of these sources; empty matches all, including events without a source.
    pub sources: Vec<EventSource>,
    /// Which VMs' events match.
    pub resources: ResourceMatch,
    /// Expected duration of the interruption.
    pub duration: DurationMatch,
    /// Time until NotBefore. Zero for a started event, and for one without NotBefore, which may start at once. Unlimited
    /// for an advisory.
    pub time_left: DurationRange,
}

/// Which VMs' events match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceMatch {
    /// This VM is among the event's resources.
    #[default]
    Mine,
    /// The event is for other VMs of its scope only.
    Others,
    Any,
}

/// An inclusive range; None is unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurationRange {
    pub at_least: Option<Duration>,
    pub at_most: Option<Duration>,
}

/// Match on the expected duration of the interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurationMatch {
    /// Range of known durations.
    pub within: DurationRange,
    /// Whether events of unknown duration match (−1, or an old api-version).
    pub unknown: bool,
}

impl Default for DurationMatch {
    fn default() -> Self {
        DurationMatch { within: DurationRange::default(), unknown: true }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approve {
    /// When the steps before it are done. Events for other VMs only are never approved: a rule for `others` cannot
    /// request it, and one for `any` approves only those of this VM.
    WhenDone,
    /// Like [`Approve::WhenDone`], and only if this VM is first in the event's resources.
    Leader,
    /// It starts at NotBefore, or when another client approves it.
    Never,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restore {
    /// When the event is gone from the document, the platform's only sign of its end.
    #[default]
    Gone,
    /// When the VM has booted since the event started, or the event is gone: the earlier of the two.
    Booted,
}

/// One step of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Unique within its list.
    pub name: String,
    pub does: StepAction,
    /// Limit of one attempt, however much time is left.
    pub timeout: Duration,
    /// Time reserved for this step that earlier steps cannot use. Not in `after`, which has no deadline.
    pub keep: Duration,
    /// Further attempts after a failure, while there is time.
    pub retries: u32,
    /// Pause between two attempts.
    pub retry_delay: Duration,
    /// What happens when the last attempt has failed.
    pub on_failure: OnFailure,
    /// For a step that was running when the agent stopped.
    pub on_interrupt: OnInterrupt,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepAction {
    /// Runs a program without a shell. Exit code 0 is success.
    Command { argv: Vec<String> },
    /// Passes a line to the system's shell: `sh -c`, or `cmd /C` on Windows.
    Shell { line: String },
    /// Sends an HTTP request; 2xx is success.
    Webhook(Webhook),
    /// Starts a systemd unit.
    StartUnit { unit: String },
    /// Stops a systemd unit.
    StopUnit { unit: String },
    /// Writes a file atomically. `{NAME}` in the content is replaced by the hook's variable `NOTBEFORE_NAME`, with
    /// control characters escaped.
    WriteFile { path: PathBuf, content: String },
    /// Removes a file; a missing file is no failure.
    RemoveFile { path: PathBuf },
    /// Waits.
    Wait { time: Duration },
    /// Runs a program until it succeeds, with a pause of `every`.
    WaitFor { argv: Vec<String>, every: Duration },
}

/// An HTTP request of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    pub url: String,
    /// Default `POST`.
    pub method: String,
    /// Extra headers.
    pub headers: BTreeMap<String, String>,
    /// Default: the JSON that hooks get on stdin. `{NAME}` as in files.
    pub body: Option<String>,
}

/// What a failed step causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// The remaining steps are skipped and the event is not approved; it starts at NotBefore. In `after`, the VM is
    /// stranded, out of service, until the step is retried. If only NotBefore left no time for the step, the remaining
    /// steps still run.
    Withhold,
    /// The failure is recorded and the next step runs.
    GoOn,
}

/// What happens to a step that was running when the agent stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnInterrupt {
    /// It runs again.
    Rerun,
    /// It counts as done.
    Skip,
}
