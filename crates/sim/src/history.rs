//! Histories: what is done to the world, step by step, in a form that can be written to a file, one JSON
//! object a line, and played again.
//!
//! A step names things by small numbers that are taken modulo what exists at that moment, live things first.
//! So a history stays meaningful when steps are taken out of it, which is what lets a failing one be shrunk
//! to a handful of lines.

use notbefore_core::DriverKind;
use serde::{Deserialize, Serialize};

/// What a world is like from the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// All notices are multiplied by this many thousandths.
    pub scale_permille: u32,
    /// Whether events wait for somebody's automation to start and complete them.
    pub manual: bool,
    /// Whether, if not that, commands carry them out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exec: bool,
    /// How many attempts a command has.
    #[serde(default = "usual_attempts", skip_serializing_if = "is_usual")]
    pub attempts: u32,
    /// How many user operations a scope may have.
    pub user_operations_max: usize,
    /// Whether user operations run at once where nobody listens.
    pub run_at_once: bool,
}

fn usual_attempts() -> u32 {
    5
}

fn is_usual(attempts: &u32) -> bool {
    *attempts == usual_attempts()
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            scale_permille: 1_000,
            manual: false,
            exec: false,
            attempts: usual_attempts(),
            user_operations_max: 100,
            run_at_once: true,
        }
    }
}

impl Setup {
    /// Who carries events out.
    pub fn driver(&self) -> DriverKind {
        match (self.manual, self.exec) {
            (true, _) => DriverKind::Manual,
            (false, true) => DriverKind::Exec,
            (false, false) => DriverKind::Simulated,
        }
    }
}

/// A setup and what follows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// The setup.
    pub setup: Setup,
    /// The steps.
    pub steps: Vec<Step>,
}

/// One thing that is done to the world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Step {
    /// The first line of a written history.
    Setup(Setup),
    /// Somebody asks for something.
    Ask {
        /// What.
        what: What,
        /// Whether with an idempotency key.
        #[serde(default)]
        key: bool,
        /// Whether with the scope's revision, and then whether with the right one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<bool>,
    },
    /// Somebody repeats what was asked with a key, with fresh ids, as a client does.
    Retry {
        /// Which.
        which: u8,
        /// Whether it is in truth another request under the same key.
        #[serde(default)]
        other: bool,
    },
    /// A guest of a scope asks for its document.
    Heard {
        /// The scope.
        scope: u8,
    },
    /// Time passes. A negative time sets the wall clock back, as histories of old do.
    Advance {
        /// By so much.
        ms: i64,
    },
    /// The wall clock is set, forward or back.
    SetClock {
        /// By so much.
        ms: i64,
    },
    /// Time passes to where the next thing is due.
    ToDue {
        /// And so much further.
        plus_ms: i64,
    },
    /// The store carries a commit out, and the engine does not hear of it yet.
    Apply {
        /// Which of those under way.
        which: u8,
    },
    /// The engine hears what became of a commit.
    Deliver {
        /// Which of those under way.
        which: u8,
        /// What it hears.
        how: How,
    },
    /// The engine hears of commits by its watch.
    Watch {
        /// How many.
        count: u8,
    },
    /// Another node writes a record once more as it is, so that it has a new revision.
    Foreign {
        /// Which record.
        which: u8,
    },
    /// A command ends.
    Ran {
        /// Which of those that run.
        which: u8,
        /// How.
        how: Ends,
    },
    /// A report of a command comes that was spawned at any time, by whichever process: a second one, or one that
    /// nobody waits for any more.
    Late {
        /// Which.
        which: u8,
        /// How it says that it ended.
        how: Ends,
    },
    /// The process dies and starts again.
    Crash {
        /// Which of the commits under way land, a bit each.
        lands: u16,
        /// For how long it is down.
        down_ms: i64,
    },
    /// All commits under way succeed, and those that follow from them; the watch catches up.
    Calm,
    /// The faults stop for a while, and what must be so then is checked.
    Drain,
}

/// What the engine hears of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The truth.
    Truth,
    /// The store could not write; nothing was written, unless it was before.
    Unavailable,
    /// Nobody knows, and it was written if that could be.
    UnknownLanded,
    /// Nobody knows, and it was not written, unless it was before.
    UnknownLost,
}

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// Well.
    Well,
    /// Well, and its VM is on another host.
    Elsewhere,
    /// In failure, by itself or since it took too long.
    Badly,
    /// Well, by its own account, with a host that cannot be.
    Absurdly,
    /// Before it begins: an earlier attempt cannot be ended.
    Blocked,
}

/// A VM as a request describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Its name, by number.
    pub name: u8,
    /// Its update domain.
    #[serde(default)]
    pub update_domain: u8,
    /// Whether it is a spot VM.
    #[serde(default)]
    pub spot: bool,
    /// Its addresses, a bit each.
    #[serde(default)]
    pub addresses: u8,
    /// Its host, by number; none leaves it open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<u8>,
}

/// When an operation is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// As usual.
    Usual,
    /// The cause's notice from now, and so much later or, too near, earlier.
    NoticePlus {
        /// How much later.
        ms: i64,
    },
}

/// What somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A scope as described.
    PutScope {
        /// Which.
        scope: u8,
        /// Its kind.
        kind: u8,
        /// Its policy, out of a few.
        #[serde(default)]
        policy: u8,
        /// Whether a fleet file asks.
        #[serde(default)]
        fleet: bool,
        /// Whether what is not named goes.
        #[serde(default)]
        prune: bool,
        /// Its VMs.
        #[serde(default)]
        vms: Vec<Spec>,
    },
    /// One more VM.
    AddVm {
        /// Its scope.
        scope: u8,
        /// The kind of a new scope.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<u8>,
        /// The VM.
        vm: Spec,
    },
    /// A VM less.
    RemoveVm {
        /// Which.
        vm: u8,
    },
    /// A scope less.
    RemoveScope {
        /// Which.
        scope: u8,
        /// Whether only the VMs go that a fleet file added.
        #[serde(default)]
        fleet: bool,
    },
    /// What one of the two above would come to.
    PlanScope(Box<What>),
    /// An evicted VM runs again.
    StartVm {
        /// Which.
        vm: u8,
    },
    /// The VM that stands in for a fleet.
    FirstRun,
    /// An operation.
    Schedule {
        /// Its cause, by number.
        cause: u8,
        /// Its VMs.
        vms: Vec<u8>,
        /// When.
        when: When,
        /// Another duration than the cause's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_s: Option<i32>,
        /// Whether an eviction may reach VMs that are not Spot.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        force: bool,
    },
    /// An operation on a host.
    Host {
        /// The host, by number.
        host: u8,
        /// Its cause, by number.
        cause: u8,
        /// When.
        when: When,
        /// Whether somebody only wants to know what it would come to.
        #[serde(default)]
        preview: bool,
    },
    /// A guest approves, whatever ids it names.
    GuestApprove {
        /// The guest.
        vm: u8,
        /// The events.
        events: Vec<u8>,
    },
    /// An operator approves.
    Approve {
        /// The event.
        event: u8,
    },
    /// An operator cancels an event.
    Cancel {
        /// The event.
        event: u8,
    },
    /// An operator starts an event.
    Start {
        /// The event.
        event: u8,
    },
    /// An operator completes an event.
    Complete {
        /// The event.
        event: u8,
        /// Whether its VMs are on another host now.
        #[serde(default)]
        moved: bool,
    },
    /// An operator lets the commands of an event be tried anew.
    RetryEvent {
        /// The event.
        event: u8,
    },
    /// An operator cancels a whole operation.
    CancelOperation {
        /// The operation.
        operation: u8,
    },
    /// An operator starts a whole operation.
    StartOperation {
        /// The operation.
        operation: u8,
    },
    /// An operator completes a whole operation.
    CompleteOperation {
        /// The operation.
        operation: u8,
    },
}

impl History {
    /// The history as text, a JSON object a line.
    pub fn to_lines(&self) -> String {
        let line = |step: &Step| serde_json::to_string(step).unwrap_or_default() + "\n";
        line(&Step::Setup(self.setup.clone())) + &self.steps.iter().map(line).collect::<String>()
    }

    /// Reads what [`History::to_lines`] wrote; empty lines and lines that begin with `#` are passed over.
    pub fn from_lines(text: &str) -> Result<Self, String> {
        let mut history = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let step = serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))?;
            if let Step::Setup(setup) = step {
                history.setup = setup;
            } else {
                history.steps.push(step);
            }
        }
        Ok(history)
    }
}
