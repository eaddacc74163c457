//! What the VM's owner wants done: rules, each with the events it is for, the steps before and after, and who approves.
//!
//! These are validated values: `config` makes them from what is written in a file, and the journal keeps a copy with
//! every event that a rule was chosen for, so that a VM is put back the way it was taken out, even if the file was edited
//! meanwhile. Only a step that has failed is tried again as the file has it by then. [`matching`] says which rule an event is for, [`reach`] which rules can never be
//! anybody's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use notbefore_client::document::{EventKind, EventSource};
use serde::{Deserialize, Serialize};

use crate::machine::io::Stage;

pub mod matching;
pub mod reach;

/// How many rules there may be. Far more than anybody writes by hand, and few enough that [`reach::unreachable`], which
/// looks at every combination of their bounds, takes no noticeable time.
pub const RULES_MAX: usize = 64;

/// One rule. An event is for the first rule that matches it, and stays with it. One that no rule matches is looked at
/// again as its time draws near, so a rule may be for the last hour of an event that was announced a week ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Unique among the rules.
    pub name: String,
    /// Which events it is for.
    pub matches: Match,
    /// What is done before the event, one after the other.
    pub before: Vec<Step>,
    /// When the event is approved.
    pub approve: Approve,
    /// What is done when the event is over, or cancelled.
    pub after: Vec<Step>,
    /// When `after` begins.
    pub restore: Restore,
    /// Whether it takes the VM out of service: from the moment such an event is seen until the VM is restored it gets no new
    /// work, and of several such events what was taken out last is put back first.
    pub drain: bool,
}

impl Rule {
    /// The steps of a stage.
    pub fn steps(&self, stage: Stage) -> &[Step] {
        match stage {
            Stage::Before => &self.before,
            Stage::After => &self.after,
        }
    }
}

/// Which events a rule is for: all of these must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Match {
    /// One of these kinds; empty is any, those included that nobody knows yet.
    pub kinds: Vec<EventKind>,
    /// One of these sources; empty is any, and also matches where the platform does not say.
    pub sources: Vec<EventSource>,
    /// VMs the event is for.
    pub resources: ResourceMatch,
    /// How long the interruption is expected to last.
    pub duration: DurationMatch,
    /// How long it is until NotBefore; an event that has started has no time left, and one of which nobody knows when it
    /// starts may start at once.
    pub time_left: DurationRange,
}

/// VMs that a rule's events are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceMatch {
    /// This VM is among the event's resources.
    #[default]
    Mine,
    /// It is not: the event is for other VMs of its scope.
    Others,
    /// Either.
    Any,
}

/// Bounds, both included; none is unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurationRange {
    /// At least so long.
    pub at_least: Option<Duration>,
    /// At most so long.
    pub at_most: Option<Duration>,
}

/// How long the interruption is expected to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurationMatch {
    /// The bounds of a duration that is known.
    pub within: DurationRange,
    /// Whether an event matches whose duration nobody knows (−1, or an old api-version).
    pub unknown: bool,
}

impl Default for DurationMatch {
    fn default() -> Self {
        DurationMatch { within: DurationRange::default(), unknown: true }
    }
}

/// When an event is approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approve {
    /// When the steps before it are done. An event that is for other VMs only is never approved: a rule for `others` cannot
    /// ask for it, and one for `any` approves those of this VM.
    WhenDone,
    /// The same, and only if this VM is the first of the event's resources.
    Leader,
    /// Never: it starts at NotBefore, or when somebody else approves.
    Never,
}

/// When the steps after an event begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restore {
    /// When the event is gone from the document, which is the platform's only all-clear.
    #[default]
    Gone,
    /// When the VM has booted since the event started, or when the event is gone: whichever is first.
    Booted,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Unique within its list.
    pub name: String,
    /// What it does.
    pub does: StepAction,
    /// No attempt takes longer, whatever time there is.
    pub timeout: Duration,
    /// Time that the steps before this one may not use up. Meaningless in `after`, which has no deadline.
    pub keep: Duration,
    /// How many more attempts there are after a failed one, as long as there is time.
    pub retries: u32,
    /// How long it rests between two attempts.
    pub retry_delay: Duration,
    /// What it means that the last attempt failed.
    pub on_failure: OnFailure,
    /// What to do where the agent ended in the middle of it.
    pub on_interrupt: OnInterrupt,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepAction {
    /// Runs a program; no shell in between. Exit code 0 is success.
    Command { argv: Vec<String> },
    /// Hands a line to the system's shell: `sh -c`, or `cmd /C` on Windows.
    Shell { line: String },
    /// Sends a request; a 2xx is success.
    Webhook(Webhook),
    /// Starts a systemd unit.
    StartUnit { unit: String },
    /// Stops a systemd unit.
    StopUnit { unit: String },
    /// Writes a file, all of it at once. In the content `{NAME}` stands for the hook's variable of that name,
    /// without `NOTBEFORE_`.
    WriteFile { path: PathBuf, content: String },
    /// Removes a file; one that is not there is no failure.
    RemoveFile { path: PathBuf },
    /// Lets time pass.
    Wait { time: Duration },
    /// Runs a program again and again until it succeeds, with this rest in between.
    WaitFor { argv: Vec<String>, every: Duration },
}

/// A request to somebody else's server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    /// Where.
    pub url: String,
    /// How; `POST` as it comes.
    pub method: String,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// What is sent; without one, the JSON that hooks have on stdin. `{NAME}` as in files.
    pub body: Option<String>,
}

/// What it means that a step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// The steps that follow are not run, and the event is not approved: it has until NotBefore. In `after` the VM is not put
    /// back until somebody has seen to it. Where it was only for want of time before NotBefore that the step is not done, those
    /// that follow are run.
    Withhold,
    /// It is noted, and the next step runs.
    GoOn,
}

/// What to do with a step that had begun and not ended when the agent did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnInterrupt {
    /// Run it again.
    Rerun,
    /// Take it for done.
    Skip,
}
