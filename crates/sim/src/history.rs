//! Histories: scripts of steps for the simulated world, serialized as JSON lines for replay.
//!
//! A step refers to things by small numbers, taken modulo the number of existing things, live ones first. So a
//! history stays valid when steps are removed, which is what lets a failing one shrink to a few lines.

use notbefore_core::DriverKind;
use serde::{Deserialize, Serialize};

/// The configuration of a world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Notice scale in thousandths.
    pub scale_permille: u32,
    /// Whether events use the manual driver.
    pub manual: bool,
    /// Otherwise, whether they use the exec driver.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exec: bool,
    /// With the exec driver, whether hosts have a command too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exec_host: bool,
    /// Attempts per command.
    #[serde(default = "usual_attempts", skip_serializing_if = "is_usual")]
    pub attempts: u32,
    /// Limit on user operations per scope.
    pub user_operations_max: usize,
    /// Whether user operations start at once in scopes that are not enabled.
    pub run_at_once: bool,
    /// Nodes on the store.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub nodes: u8,
    /// Whether every node acts as if it were alone, as before there were leaders. Recorded histories show what goes
    /// wrong then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaderless: bool,
    /// Number of operations at which the transactions of timers and operations are split; none for the store's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split_at: Option<u8>,
}

fn one() -> u8 {
    1
}

fn is_one(nodes: &u8) -> bool {
    *nodes == 1
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
            exec_host: false,
            attempts: usual_attempts(),
            user_operations_max: 100,
            run_at_once: true,
            nodes: 1,
            leaderless: false,
            split_at: None,
        }
    }
}

impl Setup {
    pub fn driver(&self) -> DriverKind {
        match (self.manual, self.exec) {
            (true, _) => DriverKind::Manual,
            (false, true) => DriverKind::Exec,
            (false, false) => DriverKind::Simulated,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    pub setup: Setup,
    pub steps: Vec<Step>,
}

/// One step of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Step {
    /// The first line of a serialized history.
    Setup(Setup),
    /// A request.
    Request {
        what: RequestKind,
        /// Whether it has an idempotency key.
        #[serde(default)]
        key: bool,
        /// Whether it has the scope's revision, and if so, whether the right one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<bool>,
        /// The node that gets it; none for the leader.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u8>,
    },
    /// A client repeats a request with a key, with new ids.
    Retry {
        which: u8,
        /// Whether it is actually another request under the same key.
        #[serde(default)]
        other: bool,
        /// The node that gets it; none for the leader.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u8>,
    },
    /// A guest of a scope polls.
    Polled {
        scope: u8,
        /// The node that gets it, which tells the leader; none for all nodes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u8>,
    },
    /// Time passes. A negative time sets the wall clock back, as in older histories.
    Advance { ms: i64 },
    /// The wall clock is set, forward or back.
    SetClock { ms: i64 },
    /// Time passes until the next thing is due.
    ToDue {
        /// And this much further.
        plus_ms: i64,
    },
    /// The store applies a commit; the engine does not get the outcome yet.
    Apply {
        /// Which of those in flight.
        which: u8,
    },
    /// The engine gets the outcome of a commit.
    Deliver {
        /// Which of those in flight.
        which: u8,
        /// The reported outcome.
        how: ReportedOutcome,
    },
    /// The watch delivers commits.
    Watch { count: u8 },
    /// Another node rewrites a record unchanged, so that it has a new revision.
    Foreign { which: u8 },
    /// A command ends.
    Ran {
        /// Which of the running ones.
        which: u8,
        how: CommandEnd,
    },
    /// A report of any command that was ever spawned, by any process: a duplicate or a stale one.
    Late {
        which: u8,
        /// The reported end.
        how: CommandEnd,
    },
    /// The process crashes and restarts.
    Crash {
        /// Which of the commits in flight become durable, a bit each.
        lands: u16,
        /// Downtime.
        down_ms: i64,
    },
    /// All commits in flight succeed, and those that follow; the watch catches up.
    Settle,
    /// The faults stop for a while, and the liveness conditions are checked.
    Drain,
    /// The steps that follow act on this node of a cluster.
    Node { which: u8 },
    /// The node is cut off from the store, or connected again.
    Cut,
    /// The process stands still, or goes on.
    Pause,
    /// The watch shows nothing more, until the node notices and opens another.
    Stall,
    /// The watch shows earlier commits again.
    WatchBack { count: u8 },
    /// The watch loses the deletions of the next commits.
    DropDeletes { count: u8 },
    /// The store forgets its log.
    Compact,
    /// The node's snapshots take this long to load.
    LoadTime { ms: u16 },
    /// The next snapshots come from a member of the store that lags.
    StaleReads { count: u8 },
    /// The answers to the next heartbeats and claims are lost.
    LoseAnswers { count: u8 },
    /// The next messages that the node sends to other nodes are lost.
    LoseMessages { count: u8 },
    /// They arrive this much later.
    DelayMessages { count: u8, ms: u16 },
    /// They arrive, and once more this much later.
    DoubleMessages { count: u8, ms: u16 },
    /// A transaction whose outcome was reported as unknown reaches the store.
    LateLanding { which: u8 },
    /// The node's watch is this late.
    Lag { ms: u16 },
    /// The node's wall clock is set to this offset from the true time.
    Offset { ms: i16 },
    /// The node's wall clock drifts, in thousandths.
    Drift { permille: i8 },
    /// The node stops in an orderly way and starts again.
    HandOver,
    /// All faults of nodes end.
    Heal,
}

/// The reported outcome of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportedOutcome {
    /// The actual one.
    Actual,
    /// The store could not write; nothing was written, unless applied before.
    Unavailable,
    /// Unknown, and written if possible.
    UnknownLanded,
    /// Unknown, and not written, unless applied before.
    UnknownLost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandEnd {
    Well,
    /// Successfully, with a new host of its VM.
    Elsewhere,
    /// With a failure or a timeout.
    Badly,
    /// Successfully, but with an invalid host.
    Absurdly,
    /// Before it starts: an earlier attempt cannot be stopped.
    Blocked,
}

/// A VM in a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// By number.
    pub name: u8,
    #[serde(default)]
    pub update_domain: u8,
    #[serde(default)]
    pub spot: bool,
    /// A bit each.
    #[serde(default)]
    pub addresses: u8,
    /// By number; none leaves it open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<u8>,
}

/// The NotBefore of a requested operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// The usual notice.
    Usual,
    /// The cause's notice from now, plus an offset; a negative one is too near.
    NoticePlus { ms: i64 },
}

/// The kind of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// A scope as described.
    PutScope {
        scope: u8,
        kind: u8,
        /// One of a few policies.
        #[serde(default)]
        policy: u8,
        /// Whether it comes from a fleet file.
        #[serde(default)]
        fleet: bool,
        /// Whether unlisted VMs are removed.
        #[serde(default)]
        prune: bool,
        #[serde(default)]
        vms: Vec<Spec>,
    },
    /// Add a VM.
    AddVm {
        scope: u8,
        /// The kind of a new scope.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<u8>,
        vm: Spec,
    },
    /// Remove a VM.
    RemoveVm { vm: u8 },
    /// Remove a scope.
    RemoveScope {
        scope: u8,
        /// Whether only VMs that a fleet file added are removed.
        #[serde(default)]
        fleet: bool,
    },
    /// A dry run of a scope change.
    PlanScope(Box<RequestKind>),
    /// A deallocated VM runs again.
    StartVm { vm: u8 },
    /// Create the first-run VM.
    FirstRun,
    /// Schedule an operation on VMs.
    Schedule {
        /// By number.
        cause: u8,
        vms: Vec<u8>,
        when: When,
        /// Overrides the cause's duration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_s: Option<i32>,
        /// Whether an eviction may affect VMs that are not Spot.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        force: bool,
    },
    /// Schedule an operation on a host.
    Host {
        /// By number.
        host: u8,
        /// By number.
        cause: u8,
        when: When,
        /// Whether it is a dry run.
        #[serde(default)]
        preview: bool,
    },
    /// A guest approves any ids.
    GuestApprove { vm: u8, events: Vec<u8> },
    /// An operator approves an event.
    Approve { event: u8 },
    /// An operator cancels an event.
    Cancel { event: u8 },
    /// An operator starts an event.
    Start { event: u8 },
    /// An operator completes an event.
    Complete {
        event: u8,
        /// Whether its VMs have a new host.
        #[serde(default)]
        moved: bool,
    },
    /// An operator retries the commands of an event.
    RetryEvent { event: u8 },
    /// An operator cancels a whole operation.
    CancelOperation { operation: u8 },
    /// An operator starts a whole operation.
    StartOperation { operation: u8 },
    /// An operator completes a whole operation.
    CompleteOperation { operation: u8 },
    /// The operator retries the command of an operation's host.
    RetryOperation { operation: u8 },
}

impl History {
    /// Serializes as one JSON object per line.
    pub fn to_lines(&self) -> String {
        let line = |step: &Step| serde_json::to_string(step).unwrap_or_default() + "\n";
        line(&Step::Setup(self.setup.clone())) + &self.steps.iter().map(line).collect::<String>()
    }

    /// Parses the output of [`History::to_lines`]; skips empty lines and lines that start with `#`.
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
