//! Scenarios: VMs, a timeline of steps, and expectations. [`parse`] reads them from YAML.
//!
//! ```yaml
//! summary: The VM's owner restarts it
//! vms: [web-0]
//! steps:
//!   - { at: 30s, schedule: { event: restart, cause: user-restart, vms: [web-0] } }
//! expect:
//!   - approves: restart
//! ```
//!
//! Times are those of a real platform; a [`crate::pace::Pace`] shortens them. The timeline begins when every VM with a
//! handler has been answered once. A step without `at`, or at `0s`, comes before the handlers start.
//!
//! An announced event lives by itself: an approval or NotBefore starts it, and it ends `runs` later.

mod parse;
mod reach;

use std::time::Duration;

use notbefore_wire::operator::faults::NewFault;
use notbefore_wire::operator::{Cause, ScopeKind};

use crate::pace::Pace;

pub use parse::{EXPECTATION_KEYS, FILE_BYTES_MAX, STEP_KEYS, parse};

/// Longest gap between two polls, unless the scenario or the caller gives another. The shortest notice of a platform is
/// 30 s.
pub const POLLS_EVERY: Duration = Duration::from_secs(15);

/// A scenario without mistakes.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Of the library, or the file's.
    pub name: String,
    /// One line.
    pub summary: String,
    /// The kind of the scope of all VMs.
    pub kind: ScopeKind,
    pub vms: Vec<Vm>,
    pub steps: Vec<Step>,
    pub expectations: Vec<Expectation>,
    /// Longest allowed gap between two polls of a VM.
    pub polls_every: Duration,
    /// Whether the handler has to run until the end.
    pub keeps_running: bool,
    /// How long the rehearsal goes on after the last event is gone, before compression.
    pub rests: Duration,
    /// Whether the platform serves api-version 2024-07-09.
    pub serves_advice: bool,
    /// The handler's environment variable TZ, if it is not the caller's.
    pub time_zone: Option<String>,
}

impl Scenario {
    pub fn handled_vms(&self) -> impl Iterator<Item = &Vm> {
        self.vms.iter().filter(|vm| vm.has_handler)
    }

    /// The announcement of an event.
    pub fn announcement(&self, event: &str) -> Option<&Announcement> {
        self.steps.iter().find_map(|step| {
            let Action::Schedule(announcement) = &step.action else { return None };
            (announcement.event == event).then_some(announcement)
        })
    }

    /// How long the rehearsal goes on after the last event. Where the handler has to restore its VM, it has time for a
    /// poll with the longest allowed gap, and then the floor.
    pub fn rest(&self, pace: Pace) -> Duration {
        let restores = self.expectations.iter().any(|one| matches!(one, Expectation::Restores { .. }));
        let least = if restores { self.polls_every + pace.floor } else { Duration::ZERO };
        pace.wait(self.rests).max(least)
    }

    /// Whether a step changes anything before the handlers start.
    pub fn setup(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.is_setup())
    }
}

/// A VM of a scenario.
#[derive(Clone, Debug)]
pub struct Vm {
    pub name: String,
    pub update_domain: u32,
    pub is_spot: bool,
    /// Whether the handler runs for this VM.
    pub has_handler: bool,
    /// Whether the rehearsal polls for this VM, once a second.
    pub is_polled: bool,
}

/// A step of the timeline.
#[derive(Clone, Debug)]
pub struct Step {
    pub when: When,
    pub action: Action,
}

impl Step {
    /// Whether it comes before the handlers start.
    pub fn is_setup(&self) -> bool {
        matches!(self.when, When::At(at) if at.is_zero())
    }
}

/// When a step takes place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// Since the timeline began.
    At(Duration),
    /// Some time after something happened to an event.
    After { moment: Moment, event: String, delay: Duration },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Scheduled,
    /// A handler was sent a document with the event.
    Read,
    Approved,
    Started,
    Gone,
}

impl Moment {
    pub const ALL: [Moment; 5] = [Self::Scheduled, Self::Read, Self::Approved, Self::Started, Self::Gone];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Read => "read",
            Self::Approved => "approved",
            Self::Started => "started",
            Self::Gone => "gone",
        }
    }
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    Schedule(Announcement),
    /// The operator approves, in the place of another VM.
    Approve(String),
    /// Starts the event before its NotBefore.
    Start(String),
    /// Ends a started event.
    Complete(String),
    Cancel(String),
    AddFault(NewFault),
    /// Ends all faults.
    ClearFaults,
    /// So much time passes at the platform, in a moment.
    AdvanceClock(Duration),
    StopHandlers,
    StartHandlers,
}

/// An event that a step announces.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// Its name in the scenario.
    pub event: String,
    pub cause: Cause,
    pub vms: Vec<String>,
    /// From the announcement to NotBefore; none if the event has started already, has no NotBefore, or gets the
    /// platform's, which is at once.
    pub notice: Option<Duration>,
    /// How long it stays Started; none if a step completes it.
    pub runs: Option<Duration>,
    pub duration_seconds: Option<i32>,
    pub description: Option<String>,
}

impl Announcement {
    /// Whether the VM is gone when the event ends, and its handler with it.
    pub fn ends_vm(&self) -> bool {
        matches!(self.cause, Cause::Eviction | Cause::Deletion)
    }

    /// Whether nothing ever happens: advice only.
    pub fn is_advice(&self) -> bool {
        self.cause == Cause::Rebalance
    }
}

/// What the handler must do, or must not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// Approves the event while it is Scheduled, within this time.
    Approves {
        event: String,
        within: Option<Duration>,
    },
    DoesNotApprove {
        event: String,
    },
    /// Reports `drained` before its approval, and before the event starts. A drain from before the announcement counts
    /// if nothing has undone it.
    Drains {
        event: String,
    },
    DoesNotDrain {
        event: String,
    },
    /// Reports `restored` after the event is gone, within this time, and not before. After advice, only if it has drained.
    Restores {
        event: String,
        within: Option<Duration>,
    },
    /// Ends with this exit code before the rehearsal ends.
    Exits {
        code: i32,
    },
}

impl Expectation {
    pub fn approves(event: &str) -> Self {
        Self::Approves { event: event.to_owned(), within: None }
    }

    pub fn does_not_approve(event: &str) -> Self {
        Self::DoesNotApprove { event: event.to_owned() }
    }

    pub fn drains(event: &str) -> Self {
        Self::Drains { event: event.to_owned() }
    }

    pub fn does_not_drain(event: &str) -> Self {
        Self::DoesNotDrain { event: event.to_owned() }
    }

    pub fn restores(event: &str) -> Self {
        Self::Restores { event: event.to_owned(), within: None }
    }

    /// The event that it is about.
    pub fn event(&self) -> Option<&str> {
        match self {
            Self::Approves { event, .. }
            | Self::DoesNotApprove { event }
            | Self::Drains { event }
            | Self::DoesNotDrain { event }
            | Self::Restores { event, .. } => Some(event),
            Self::Exits { .. } => None,
        }
    }
}
