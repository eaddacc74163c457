//! A scope: the VMs that see one document, and the unit of consistency. Its members, policy, incarnation and
//! live events are one value, compared and stored as a whole.

use std::str::FromStr;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::cause::{Cause, UnknownWord};
use crate::clock_hold::ClockHold;
use crate::event::{Event, Outcome};
use crate::ids::{EventId, Name, ScopeId, ScopePath, VmId};
use crate::joint_start::HostPart;

/// How many VMs a scope holds. Azure's largest grouping, the scale set, ends there too.
pub const MEMBERS_MAX: usize = 1_000;
/// How many live events a scope holds: one for each of its VMs.
pub const EVENTS_MAX: usize = 1_000;
/// For how long the id of an ended event is still approved with a friendly 200; clients POST late and often.
pub const ENDED_KEPT: SignedDuration = SignedDuration::from_hours(24);
/// How many such ids are kept, so that the record stays small however busy the scope is.
pub const ENDED_MAX: usize = 64;
/// The shortest notice a scale set may give before it deletes an instance.
pub const TERMINATE_NOTICE_MIN: Duration = Duration::from_secs(5 * 60);
/// The longest.
pub const TERMINATE_NOTICE_MAX: Duration = Duration::from_secs(15 * 60);

/// The VMs that see one document, and what is about to happen to them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Where it stands.
    pub path: ScopePath,
    /// What kind of grouping it is.
    pub kind: ScopeKind,
    /// What its owner has set.
    #[serde(default)]
    pub policy: Policy,
    /// The document's number: 1 at first, one more at each change a guest of the newest version can see.
    pub incarnation: u64,
    /// Its VMs.
    pub members: Vec<Member>,
    /// What is announced or under way, in the order in which it was announced.
    pub events: Vec<Event>,
    /// What has ended lately, oldest first.
    pub ended: Vec<Ended>,
    /// Whether this is the VM that the service made for itself since it had no fleet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first_run: bool,
    /// Who made it: only what an apply made is removed by one.
    pub origin: Origin,
}

/// What kind of grouping a scope is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeKind {
    /// One VM on its own; zonal VMs are such.
    Standalone,
    /// VMs spread over update domains.
    AvailabilitySet,
    /// A classic cloud service; its role instances never carry the `_` of the first api-version.
    CloudService,
    /// A placement group of a scale set.
    ScaleSet,
}

/// Every kind of scope.
pub const SCOPE_KINDS: [ScopeKind; 4] =
    [ScopeKind::Standalone, ScopeKind::AvailabilitySet, ScopeKind::CloudService, ScopeKind::ScaleSet];

words!(ScopeKind {
    Standalone => "standalone",
    AvailabilitySet => "availability-set",
    CloudService => "cloud-service",
    ScaleSet => "scale-set",
});

impl FromStr for ScopeKind {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        SCOPE_KINDS.into_iter().find(|kind| kind.to_string() == text).ok_or_else(|| UnknownWord {
            given: text.to_owned(),
            known: SCOPE_KINDS.iter().map(ScopeKind::to_string).collect(),
        })
    }
}

/// What a scope's owner has set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// A user's restart starts without waiting for an approval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub automatically_approve_reboot: bool,
    /// A user's redeploy starts without waiting for an approval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub automatically_approve_redeploy: bool,
    /// How much notice a deletion gives, in seconds; none if it gives none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminate_notice_s: Option<u32>,
}

impl Policy {
    /// Whether user operations of this cause start by themselves.
    pub(crate) fn approves(&self, cause: Cause) -> bool {
        match cause {
            Cause::UserRestart => self.automatically_approve_reboot,
            Cause::UserRedeploy => self.automatically_approve_redeploy,
            Cause::HostFreeze
            | Cause::HostReboot
            | Cause::HostRedeploy
            | Cause::LiveMigration
            | Cause::PredictedFailure
            | Cause::HostFailure
            | Cause::Eviction
            | Cause::Deletion => false,
        }
    }

    /// The policy of scopes that the service makes by itself: the shortest terminate notification, so that every type
    /// of event can be tried there.
    pub fn for_first_run() -> Self {
        let seconds = u32::try_from(TERMINATE_NOTICE_MIN.as_secs()).ok();
        Self { terminate_notice_s: seconds, ..Self::default() }
    }

    /// How much notice a deletion gives.
    pub fn terminate_notice(&self) -> Option<Duration> {
        self.terminate_notice_s.map(|seconds| Duration::from_secs(seconds.into()))
    }
}

/// A VM, as its scope knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its id.
    pub vm: VmId,
    /// Its name, unique here without regard to case.
    pub name: Name,
    /// Its update domain: what is maintained together.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub update_domain: u32,
    /// Its fault domain: what fails together.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fault_domain: u32,
    /// Its zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The host it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whether its capacity may be wanted back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spot: bool,
    /// Whether it runs.
    #[serde(default, skip_serializing_if = "MemberState::is_running")]
    pub state: MemberState,
    /// Who added it.
    #[serde(default, skip_serializing_if = "Origin::is_call")]
    pub origin: Origin,
}

impl Member {
    /// A running VM of which nothing else is known.
    pub fn with_defaults(vm: VmId, name: Name) -> Self {
        Self {
            vm,
            name,
            update_domain: 0,
            fault_domain: 0,
            zone: None,
            host: None,
            spot: false,
            state: MemberState::Running,
            origin: Origin::Call,
        }
    }
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Whether a VM runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// As far as anybody knows.
    #[default]
    Running,
    /// It was evicted.
    Deallocated,
}

impl MemberState {
    fn is_running(&self) -> bool {
        *self == Self::Running
    }
}

words!(MemberState { Running => "running", Deallocated => "deallocated" });

/// Who made a scope or a VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A single call; a fleet file never removes it.
    #[default]
    Call,
    /// A fleet file; a later one may remove it.
    Fleet,
}

impl Origin {
    fn is_call(&self) -> bool {
        *self == Self::Call
    }
}

/// An event that has ended lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Its id.
    pub event: EventId,
    /// When it ended.
    pub at: Timestamp,
    /// How.
    pub outcome: Outcome,
}

impl Scope {
    /// A scope without VMs.
    pub fn new(path: ScopePath, kind: ScopeKind, policy: Policy, origin: Origin) -> Self {
        Self {
            path,
            kind,
            policy,
            incarnation: 1,
            members: Vec::new(),
            events: Vec::new(),
            ended: Vec::new(),
            first_run: false,
            origin,
        }
    }

    /// Its id.
    pub fn id(&self) -> ScopeId {
        self.path.id()
    }

    /// A member by its id.
    pub fn member(&self, vm: VmId) -> Option<&Member> {
        self.members.iter().find(|member| member.vm == vm)
    }

    /// Whether a member may be evicted. The first-run VM is there to try events on; stores of older releases do not mark
    /// it as Spot.
    pub fn is_spot(&self, member: &Member) -> bool {
        member.spot || self.first_run
    }

    /// A live event by its id.
    pub fn event(&self, id: EventId) -> Option<&Event> {
        self.events.iter().find(|event| event.id == id)
    }

    /// Every event it knows of: those that are live, and those that have ended lately.
    pub fn event_ids(&self) -> impl Iterator<Item = EventId> {
        let ended = self.ended.iter().map(|ended| ended.event);
        self.events.iter().map(|event| event.id).chain(ended)
    }

    /// When something will be due by itself, if nothing else happens before. After an apply at `now` this is
    /// later than `now`: what was due has been done, and what is due but made to wait is set free by the
    /// command that ends what it waits for, not by time.
    ///
    /// `parts` and `hold` are as in [`crate::ApplyContext`]; what is held is due at no time.
    pub fn next_due(
        &self,
        parts: &[HostPart],
        hold: Option<&ClockHold>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.events.iter().filter_map(|event| self.due_at(event, parts, hold, now)).min()
    }

    /// Whether two values of a scope show their guests the same events. This is what the incarnation counts.
    pub(crate) fn has_same_document(&self, other: &Self) -> bool {
        let shown = |event: &Event| (event.id, event.is_started(), event.not_before());
        // Everything else a document shows of an event is fixed when the event is made.
        self.events.len() == other.events.len()
            && self.events.iter().map(shown).eq(other.events.iter().map(shown))
    }
}
