//! The words of the API: where a field has one of few values, its type is an enum of this file.
//!
//! A reader keeps a word that it does not know (`Unknown`), so that an older client reads the answers of a newer service, and
//! writes it as it came. The service refuses such a word in a request, by name.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

macro_rules! words {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident { $( $(#[doc = $word_doc:literal])* $variant:ident = $word:literal, )+ }
    )+) => {
        /// Every word that this release knows, for a check that none is compared as text.
        pub const KNOWN: &[&[&str]] = &[$(&[$($word),+]),+];

        $(
            $(#[doc = $doc])*
            #[derive(Clone, Debug, PartialEq, Eq, Hash)]
            pub enum $name {
                $( $(#[doc = $word_doc])* $variant, )+
                /// A word that this release does not know.
                Unknown(String),
            }

            impl $name {
                /// Every word that this release knows.
                pub const ALL: &[Self] = &[$(Self::$variant),+];

                /// The word.
                pub fn as_str(&self) -> &str {
                    match self {
                        $( Self::$variant => $word, )+
                        Self::Unknown(word) => word,
                    }
                }

                /// The value that a person means, who may write capitals or not.
                pub fn parse_ignoring_case(text: &str) -> Self {
                    let known = Self::ALL.iter().find(|one| one.as_str().eq_ignore_ascii_case(text));
                    known.cloned().unwrap_or_else(|| Self::Unknown(text.to_owned()))
                }
            }

            impl From<String> for $name {
                fn from(text: String) -> Self {
                    match text.as_str() {
                        $( $word => Self::$variant, )+
                        _ => Self::Unknown(text),
                    }
                }
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.pad(self.as_str())
                }
            }

            impl Serialize for $name {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.serialize_str(self.as_str())
                }
            }

            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    String::deserialize(deserializer).map(Self::from)
                }
            }

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    let words = Self::ALL.iter().map(|one| one.as_str());
                    let word = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words));
                    word.description(Some(concat!($($doc),*).trim())).into()
                }
            }

            impl ToSchema for $name {
                fn name() -> Cow<'static, str> {
                    Cow::Borrowed(stringify!($name))
                }
            }
        )+
    };
}

words! {
    /// What kind of grouping a scope is.
    ScopeKind {
        /// One VM on its own.
        Standalone = "standalone",
        /// VMs spread over update domains.
        AvailabilitySet = "availability-set",
        /// A classic cloud service.
        CloudService = "cloud-service",
        /// A placement group of a scale set.
        ScaleSet = "scale-set",
    }
    /// Whether a VM runs.
    VmState {
        /// It runs.
        Running = "running",
        /// It was evicted.
        Deallocated = "deallocated",
    }
    /// What happens to a VM.
    EventType {
        /// It is paused for some seconds.
        Freeze = "Freeze",
        /// It restarts.
        Reboot = "Reboot",
        /// It moves to another host; the ephemeral disk is lost.
        Redeploy = "Redeploy",
        /// It is evicted.
        Preempt = "Preempt",
        /// It is deleted.
        Terminate = "Terminate",
    }
    /// Where an event stands.
    EventStatus {
        /// It is announced.
        Scheduled = "Scheduled",
        /// It is under way.
        Started = "Started",
        /// It was carried out.
        Completed = "Completed",
        /// It was called off.
        Cancelled = "Cancelled",
    }
    /// Where the event of an operation's part stands.
    TargetStatus {
        /// Its scope is not told yet.
        Opening = "Opening",
        /// It is announced.
        Scheduled = "Scheduled",
        /// It is under way.
        Started = "Started",
        /// It was carried out.
        Completed = "Completed",
        /// It was called off.
        Cancelled = "Cancelled",
        /// Its scope would not have it.
        Refused = "Refused",
        /// It is over; it is no longer known how it ended.
        Ended = "Ended",
    }
    /// Where an operation's part stands.
    TargetState {
        /// Its scope is not told yet.
        Opening = "opening",
        /// It waits for approval.
        Waiting = "waiting",
        /// It is approved and has not begun.
        Approved = "approved",
        /// It is under way.
        Started = "started",
        /// It was carried out.
        Completed = "completed",
        /// It was called off.
        Cancelled = "cancelled",
        /// Its scope would not have it.
        Refused = "refused",
        /// It is over; it is no longer known how it ended.
        Ended = "ended",
    }
    /// Why an event happens.
    Cause {
        /// The host is maintained and its VMs are paused meanwhile.
        HostFreeze = "host-freeze",
        /// The host is maintained and restarts.
        HostReboot = "host-reboot",
        /// The host is emptied for maintenance.
        HostRedeploy = "host-redeploy",
        /// The VM moves to another host while it runs.
        LiveMigration = "live-migration",
        /// The host's hardware is expected to fail.
        PredictedFailure = "predicted-failure",
        /// The host has failed.
        HostFailure = "host-failure",
        /// The capacity of a spot VM is wanted back.
        Eviction = "eviction",
        /// The VM's owner deletes it, or its scale set shrinks.
        Deletion = "deletion",
        /// The VM's owner restarts it.
        UserRestart = "user-restart",
        /// The VM's owner redeploys it.
        UserRedeploy = "user-redeploy",
    }
    /// Who set an event going.
    Source {
        /// The platform.
        Platform = "Platform",
        /// The VM's owner.
        User = "User",
    }
    /// Who carries an event out.
    Driver {
        /// Nobody: it ends after its duration.
        Simulated = "simulated",
        /// An operator's automation, through the API.
        Manual = "manual",
        /// A command for each VM.
        Exec = "exec",
    }
    /// Where an operation stands.
    OperationState {
        /// Its scopes are being told.
        Opening = "opening",
        /// All its scopes are told.
        Open = "open",
        /// All its parts are over.
        Closed = "closed",
    }
    /// Whether approvals release events one by one or all of an operation's together.
    Release {
        /// One by one.
        Each = "each",
        /// All together.
        Together = "together",
    }
    /// Where the start of a host's operation stands, whose events start together.
    HostStart {
        /// It waits for approvals or NotBefore.
        Waiting = "waiting",
        /// It waits to be started by an operator.
        Ready = "ready",
        /// Its events start.
        Released = "released",
    }
    /// How a host is maintained.
    Maintenance {
        /// Its VMs are paused.
        Freeze = "freeze",
        /// It restarts.
        Reboot = "reboot",
        /// Its VMs are moved elsewhere.
        Redeploy = "redeploy",
        /// Its VMs are moved elsewhere while they run.
        LiveMigration = "live-migration",
    }
    /// What a token may do below a path.
    Role {
        /// Everything.
        Operator = "operator",
        /// What the owner of VMs does.
        Tenant = "tenant",
        /// Read.
        Viewer = "viewer",
    }
    /// What became of a request, for the audit trail.
    AuditOutcome {
        /// It changed something.
        Changed = "changed",
        /// It was refused.
        Refused = "refused",
    }
    /// How the command for one VM stands.
    CommandState {
        /// It is tried again later.
        Waiting = "waiting",
        /// It runs.
        Running = "running",
        /// It has succeeded.
        Done = "done",
        /// It has used up its attempts.
        Failed = "failed",
        /// Its VM has left.
        Gone = "gone",
        /// It had not ended when its event did.
        Stopped = "stopped",
    }
    /// What can be done to an event.
    EventVerb {
        /// Approve it for its VMs.
        Approve = "approve",
        /// Call it off.
        Cancel = "cancel",
        /// Start it now.
        Start = "start",
        /// Say that it was carried out.
        Complete = "complete",
        /// Try its failed commands again.
        Retry = "retry",
    }
    /// What can be done to a VM.
    VmVerb {
        /// Restart it, as its owner.
        Restart = "restart",
        /// Redeploy it, as its owner.
        Redeploy = "redeploy",
        /// Evict it.
        Evict = "evict",
        /// Delete it, as its owner.
        Delete = "delete",
        /// Let it run again.
        Start = "start",
    }
    /// What can be done to an operation.
    OperationVerb {
        /// Call off what has not begun.
        Cancel = "cancel",
        /// Start all its events now.
        Start = "start",
        /// Say that all of it was carried out.
        Complete = "complete",
    }
    /// What can be done to a host.
    HostVerb {
        /// Maintain it.
        Maintain = "maintain",
        /// Its hardware is expected to fail.
        Degraded = "degraded",
        /// It has failed.
        Failed = "failed",
    }
    /// What kind of actor did something.
    ActorKind {
        /// The holder of a token.
        Token = "token",
        /// A guest.
        Vm = "vm",
        /// Time: NotBefore passed.
        Timer = "timer",
        /// A driver.
        Driver = "driver",
        /// The service itself.
        Service = "service",
        /// A caller without a token that is known.
        Stranger = "unknown",
    }
    /// In which order a list comes.
    Order {
        /// The oldest first.
        Oldest = "oldest",
        /// The newest first.
        Newest = "newest",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_word_is_kept_as_it_came() {
        for text in ["\"paused\"", "\"STANDALONE\"", "\"\""] {
            let kind: ScopeKind = serde_json::from_str(text).unwrap();
            assert!(matches!(kind, ScopeKind::Unknown(_)), "{text}");
            assert_eq!(serde_json::to_string(&kind).unwrap(), text);
        }
        assert_eq!(serde_json::from_str::<ScopeKind>("\"scale-set\"").unwrap(), ScopeKind::ScaleSet);
        assert_eq!(format!("[{:<12}]", ScopeKind::ScaleSet), "[scale-set   ]", "tables pad it");
        assert_eq!(EventType::parse_ignoring_case("reBoot"), EventType::Reboot);
        assert_eq!(EventType::parse_ignoring_case("pause"), EventType::Unknown("pause".into()));
    }
}
