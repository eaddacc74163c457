//! Scopes: the VMs that see one document, and the unit of consistency. Members, policy, incarnation and live events
//! are one value, compared and stored as a whole.

use std::str::FromStr;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::cause::{Cause, UnknownWord};
use crate::clock_hold::ClockHold;
use crate::event::{Event, Outcome};
use crate::ids::{EventId, Name, ScopeId, ScopePath, VmId, is_dots, is_flag};
use crate::joint_start::HostPart;

/// Limit on VMs in a scope; also the limit of Azure's largest grouping, the scale set.
pub const MEMBERS_MAX: usize = 1_000;
/// Limit on the characters of a host's or zone's name.
pub const LOCATION_CHARS_MAX: usize = 128;
/// Limit on live events in a scope: one for each VM.
pub const EVENTS_MAX: usize = 1_000;
/// How long the approval of an ended event still answers 200; clients POST late and repeatedly.
pub const ENDED_KEPT: SignedDuration = SignedDuration::from_hours(24);
/// Limit on kept ids of ended events, so that the record stays small in a busy scope.
pub const ENDED_MAX: usize = 64;
/// The shortest notice of a scale set before it deletes an instance.
pub const TERMINATE_NOTICE_MIN: Duration = Duration::from_secs(5 * 60);
/// The longest notice of a scale set before it deletes an instance.
pub const TERMINATE_NOTICE_MAX: Duration = Duration::from_secs(15 * 60);

/// The VMs that see one document, and their live events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    pub path: ScopePath,
    pub kind: ScopeKind,
    #[serde(default)]
    pub policy: Policy,
    /// The document's version: 1 at first, one more for each change that a guest of the newest api-version can see.
    pub incarnation: u64,
    pub members: Vec<Member>,
    /// Live events, in the order of announcement.
    pub events: Vec<Event>,
    /// Recently ended events, oldest first.
    pub ended: Vec<Ended>,
    /// Whether the service created this scope, with one VM, because there was no fleet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first_run: bool,
    /// A fleet file removes only what a fleet file created.
    pub origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeKind {
    /// One VM; also a zonal VM.
    Standalone,
    /// VMs spread over update domains.
    AvailabilitySet,
    /// A classic cloud service; its role instances never have the `_` of the first api-version.
    CloudService,
    /// A placement group of a scale set.
    ScaleSet,
}

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

/// Settings by the scope's owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// A user's restart starts without waiting for an approval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub automatically_approve_reboot: bool,
    /// A user's redeploy starts without waiting for an approval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub automatically_approve_redeploy: bool,
    /// Notice of a deletion in seconds; none means no notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminate_notice_s: Option<u32>,
}

impl Policy {
    /// Whether user operations of this cause start without an approval.
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
            | Cause::Rebalance
            | Cause::Deletion => false,
        }
    }

    /// The policy of the first-run scope: the shortest terminate notification, so that every event type can be tried.
    pub fn for_first_run() -> Self {
        let seconds = u32::try_from(TERMINATE_NOTICE_MIN.as_secs()).ok();
        Self { terminate_notice_s: seconds, ..Self::default() }
    }

    /// Notice of a deletion.
    pub fn terminate_notice(&self) -> Option<Duration> {
        self.terminate_notice_s.map(|seconds| Duration::from_secs(seconds.into()))
    }
}

/// A VM in its scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub vm: VmId,
    /// Unique in the scope, ignoring case.
    pub name: Name,
    /// VMs of one update domain are maintained together.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub update_domain: u32,
    /// VMs of one fault domain fail together.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fault_domain: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The host that was named last, if the VM was moved away from it: a description that still names it describes the
    /// past, and does not move the VM back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
    /// Whether the VM can be evicted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spot: bool,
    #[serde(default, skip_serializing_if = "MemberState::is_running")]
    pub state: MemberState,
    /// A fleet file removes only VMs that a fleet file added.
    #[serde(default, skip_serializing_if = "Origin::is_call")]
    pub origin: Origin,
}

impl Member {
    /// Records that the VM was moved to a host.
    pub fn move_to(&mut self, host: &str) {
        let named = self.moved_from.take().or(self.host.take());
        self.moved_from = named.filter(|named| named != host);
        self.host = Some(host.to_owned());
    }

    /// Records the host of a description; none keeps the known one.
    pub fn place_on(&mut self, host: Option<&str>) {
        if host.is_some() && host != self.moved_from.as_deref() {
            self.host = host.map(str::to_owned);
            self.moved_from = None;
        }
    }

    /// A running VM with default properties.
    pub fn with_defaults(vm: VmId, name: Name) -> Self {
        Self {
            vm,
            name,
            update_domain: 0,
            fault_domain: 0,
            zone: None,
            host: None,
            moved_from: None,
            spot: false,
            state: MemberState::Running,
            origin: Origin::Call,
        }
    }
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// The default; the service does not observe the VM itself.
    #[default]
    Running,
    /// Evicted, until `vm start`.
    Deallocated,
}

impl MemberState {
    fn is_running(&self) -> bool {
        *self == Self::Running
    }
}

words!(MemberState { Running => "running", Deallocated => "deallocated" });

/// What created a scope or a VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A single request; a fleet file never removes it.
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

/// A recently ended event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub event: EventId,
    pub at: Timestamp,
    pub outcome: Outcome,
}

/// Whether a text may be the name of a host or zone.
pub fn is_location(text: &str) -> bool {
    let is_plain = !text.chars().any(char::is_control);
    let fits = (1..=LOCATION_CHARS_MAX).contains(&text.chars().count());
    fits && is_plain && !is_dots(text) && !is_flag(text)
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

    pub fn id(&self) -> ScopeId {
        self.path.id()
    }

    pub fn member(&self, vm: VmId) -> Option<&Member> {
        self.members.iter().find(|member| member.vm == vm)
    }

    /// Whether a VM of the scope is on this host or on its way there.
    pub fn is_on_host(&self, host: &str) -> bool {
        self.members.iter().any(|member| member.host.as_deref() == Some(host))
            || self.events.iter().any(|event| event.target_host.as_deref() == Some(host))
    }

    pub fn event(&self, id: EventId) -> Option<&Event> {
        self.events.iter().find(|event| event.id == id)
    }

    /// All known event ids: live and recently ended.
    pub fn event_ids(&self) -> impl Iterator<Item = EventId> {
        let ended = self.ended.iter().map(|ended| ended.event);
        self.events.iter().map(|event| event.id).chain(ended)
    }

    /// When the next automatic change is due. After an apply at `now` this is later than `now`: everything due is
    /// done. A blocked event has no due time; the command that ends its blocker settles it.
    ///
    /// `parts` and `hold` are as in [`crate::ApplyContext`]; held events have no due time.
    pub fn next_due(
        &self,
        parts: &[HostPart],
        hold: Option<&ClockHold>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.events.iter().filter_map(|event| self.due_at(event, parts, hold, now)).min()
    }

    /// Whether guests see the same events in both values. If not, the incarnation rises.
    pub(crate) fn has_same_document(&self, other: &Self) -> bool {
        let shown = |event: &Event| (event.id, event.is_started(), event.not_before());
        // The other fields that a document shows never change after the announcement.
        self.events.len() == other.events.len()
            && self.events.iter().map(shown).eq(other.events.iter().map(shown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_zones_with_unsafe_names_are_refused() {
        let longest = "x".repeat(LOCATION_CHARS_MAX);
        for fine in ["h1", "rack 7/h1", "a-", "1", "ä", longest.as_str()] {
            assert!(is_location(fine), "{fine}");
        }
        let long = "x".repeat(LOCATION_CHARS_MAX + 1);
        for bad in ["-h1", "--help", "-", ".", "..", "", "a\nb", long.as_str()] {
            assert!(!is_location(bad), "{bad}");
        }
    }
}
