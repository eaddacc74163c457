//! Enums of the operator API, for fields with a fixed set of words.
//!
//! A reader keeps an unknown word (`Unknown`) and writes it unchanged, so that an older client can read responses of a
//! newer service. The service refuses unknown words in requests.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! words {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident { $( $(#[doc = $word_doc:literal])* $variant:ident = $word:literal, )+ }
    )+) => {
        /// All words of all enums, for the test that no code compares them as text.
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
                /// All known values.
                pub const ALL: &[Self] = &[$(Self::$variant),+];

                /// The word, as in JSON.
                pub fn as_str(&self) -> &str {
                    match self {
                        $( Self::$variant => $word, )+
                        Self::Unknown(word) => word,
                    }
                }

                /// Parses a word ignoring case.
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

            #[cfg(feature = "describe")]
            impl utoipa::PartialSchema for $name {
                fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                    let words = Self::ALL.iter().map(|one| one.as_str());
                    let word = utoipa::openapi::ObjectBuilder::new()
                        .schema_type(utoipa::openapi::schema::Type::String)
                        .enum_values(Some(words));
                    word.description(Some(concat!($($doc),*).trim())).into()
                }
            }

            #[cfg(feature = "describe")]
            impl utoipa::ToSchema for $name {
                fn name() -> std::borrow::Cow<'static, str> {
                    stringify!($name).into()
                }
            }
        )+
    };
}

words! {
    /// The kind of a scope.
    ScopeKind {
        /// A single VM.
        Standalone = "standalone",
        /// VMs in several update domains.
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
        /// It was evicted and does not run.
        Deallocated = "deallocated",
    }
    /// Whether a VM listens: whether it polled within the last five minutes.
    Listening {
        /// It polled within the last five minutes.
        Yes = "yes",
        /// It did not poll within the last five minutes.
        No = "no",
        /// It has not polled since the service started, less than five minutes ago.
        Unclear = "unknown",
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
        /// Nothing: a hint that a Spot VM may be evicted.
        SpotRebalanceRecommendation = "SpotRebalanceRecommendation",
    }
    /// The order of a list of events.
    EventSort {
        /// By scope. Pages stay the same while events start and end.
        Scope = "scope",
        /// Started events by their start, then scheduled events by NotBefore, then advisories. An event that starts
        /// between two pages may be on neither.
        Time = "time",
    }
    /// The status of an event.
    EventStatus {
        /// It is announced and not started.
        Scheduled = "Scheduled",
        /// It is started and not ended.
        Started = "Started",
        /// It is a hint that never starts.
        Advisory = "Advisory",
        /// It was completed.
        Completed = "Completed",
        /// It was cancelled.
        Cancelled = "Cancelled",
    }
    /// The status of the event in an operation's part.
    TargetStatus {
        /// Its scope does not have it yet.
        Opening = "Opening",
        /// It is announced and not started.
        Scheduled = "Scheduled",
        /// It is started and not ended.
        Started = "Started",
        /// It is a hint that never starts.
        Advisory = "Advisory",
        /// It was completed.
        Completed = "Completed",
        /// It was cancelled.
        Cancelled = "Cancelled",
        /// Its scope refused it.
        Refused = "Refused",
        /// It ended; its record is gone, so how it ended is unknown.
        Ended = "Ended",
    }
    /// The state of an operation's part.
    TargetState {
        /// Its scope does not have it yet.
        Opening = "opening",
        /// It waits for an approval.
        Waiting = "waiting",
        /// It is approved and not started.
        Approved = "approved",
        /// It is started and not ended.
        Started = "started",
        /// It is a hint that never starts.
        Advisory = "advisory",
        /// It was completed.
        Completed = "completed",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// Its scope refused it.
        Refused = "refused",
        /// It ended; its record is gone, so how it ended is unknown.
        Ended = "ended",
    }
    /// Why an event happens.
    Cause {
        /// Maintenance of the host that pauses its VMs.
        HostFreeze = "host-freeze",
        /// Maintenance of the host that restarts it.
        HostReboot = "host-reboot",
        /// Maintenance of the host that moves its VMs to other hosts.
        HostRedeploy = "host-redeploy",
        /// The VM moves to another host while it runs.
        LiveMigration = "live-migration",
        /// The host's hardware is expected to fail.
        PredictedFailure = "predicted-failure",
        /// The host has failed.
        HostFailure = "host-failure",
        /// A Spot VM is evicted because its capacity is needed.
        Eviction = "eviction",
        /// A Spot VM may soon be evicted, or never.
        Rebalance = "rebalance",
        /// The VM's owner deletes it, or scales its scale set in.
        Deletion = "deletion",
        /// The VM's owner restarts it.
        UserRestart = "user-restart",
        /// The VM's owner redeploys it.
        UserRedeploy = "user-redeploy",
    }
    /// Who initiated an event.
    Source {
        /// The platform.
        Platform = "Platform",
        /// The VM's owner.
        User = "User",
    }
    /// What carries out an event.
    Driver {
        /// Nothing is done; the event ends after its duration.
        Simulated = "simulated",
        /// An operator's automation, through the API.
        Manual = "manual",
        /// A command for each VM.
        Exec = "exec",
    }
    /// The state of an operation.
    OperationState {
        /// Some of its scopes do not have its events yet.
        Opening = "opening",
        /// All its scopes have its events.
        Open = "open",
        /// All its parts have ended.
        Closed = "closed",
    }
    /// How approvals let the events of an operation start.
    Release {
        /// Each event by its own approval.
        Each = "each",
        /// All events together, once all are approved.
        Together = "together",
    }
    /// The state of a host operation before its events start together.
    HostStart {
        /// It waits for approvals or NotBefore.
        Waiting = "waiting",
        /// It waits for an operator to start it.
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
    /// What a token may do on a path and below.
    Role {
        /// Everything.
        Operator = "operator",
        /// The actions of a VM's owner.
        Tenant = "tenant",
        /// Read only.
        Viewer = "viewer",
    }
    /// How a browser was signed in to the console.
    SignInMethod {
        /// By a token's secret.
        Token = "token",
        /// By the code of a sign-in link.
        Link = "link",
    }
    /// The outcome of a request in the audit trail.
    AuditOutcome {
        /// It changed something.
        Changed = "changed",
        /// It was refused.
        Refused = "refused",
    }
    /// The state of the command for one VM or host.
    CommandState {
        /// For a host: commands of its VMs are not done.
        Pending = "pending",
        /// It waits for its next attempt.
        Waiting = "waiting",
        /// It runs.
        Running = "running",
        /// It succeeded.
        Done = "done",
        /// It failed its last attempt.
        Failed = "failed",
        /// Its VM was removed.
        Gone = "gone",
        /// Its event, or operation, ended while it ran or waited.
        Stopped = "stopped",
    }
    /// An action on an event.
    EventVerb {
        /// Approve it for its VMs.
        Approve = "approve",
        /// Cancel it.
        Cancel = "cancel",
        /// Start it now.
        Start = "start",
        /// Report that it is done.
        Complete = "complete",
        /// Retry its failed commands.
        Retry = "retry",
    }
    /// An action on a VM.
    VmVerb {
        /// Restart it, as its owner.
        Restart = "restart",
        /// Redeploy it, as its owner.
        Redeploy = "redeploy",
        /// Evict it.
        Evict = "evict",
        /// Delete it, as its owner.
        Delete = "delete",
        /// Mark a deallocated VM as running.
        Start = "start",
    }
    /// An action on an operation.
    OperationVerb {
        /// Cancel its events that have not started.
        Cancel = "cancel",
        /// Start all its events now.
        Start = "start",
        /// Report that all of it is done.
        Complete = "complete",
        /// Retry the failed command of its host.
        Retry = "retry",
    }
    /// An action on a host.
    HostVerb {
        /// Maintain it.
        Maintain = "maintain",
        /// Its hardware is expected to fail.
        Degraded = "degraded",
        /// It has failed.
        Failed = "failed",
    }
    /// The state of a host.
    HostState {
        /// VMs may move there.
        Ok = "ok",
        /// Its hardware is expected to fail.
        Degraded = "degraded",
        /// It has failed.
        Failed = "failed",
        /// An event of an open operation on it has started.
        Maintenance = "maintenance",
    }
    /// The kind of an actor.
    ActorKind {
        /// The holder of a token.
        Token = "token",
        /// A guest.
        Vm = "vm",
        /// The timer: NotBefore has passed.
        Timer = "timer",
        /// A driver.
        Driver = "driver",
        /// The service itself.
        Service = "service",
        /// A caller without a valid token.
        Unauthenticated = "unauthenticated",
    }
    /// What an entry of a VM's log is about.
    VmLogKind {
        /// A request was refused.
        Refused = "refused",
        /// The VM approved events.
        Approved = "approved",
        /// The VM was first sent a document that has an event for it.
        FirstRead = "first-read",
        /// Polls of a client begin: the first ones, after five minutes without, or with another `User-Agent` or
        /// api-version.
        Polled = "polled",
    }
    /// Whether a service is one of several nodes.
    ClusterMode {
        /// The service is the only one on its store.
        Single = "single",
        /// Several nodes share a store (`serve --etcd`).
        Cluster = "cluster",
    }
    /// Whether a node of a cluster runs.
    NodeState {
        /// It sends heartbeats.
        Running = "running",
        /// It has sent no heartbeat for four seconds, and did not say that it stops.
        Silent = "silent",
        /// It has stopped in an orderly way.
        Stopped = "stopped",
    }
    /// Whether a member of etcd answers.
    EtcdMemberState {
        /// It answers.
        Answered = "answered",
        /// It does not answer.
        Silent = "silent",
        /// None of the URLs in `etcd.endpoints` leads to it.
        NotAsked = "not-asked",
    }
    /// What a fault of the guest listener does to a request or its response.
    FaultKind {
        /// The first request of each VM is answered late (`seconds`, 120 by default).
        LateFirstAnswer = "late-first-answer",
        /// The connection is reset and there is no response. The request is not carried out.
        Reset = "reset",
        /// The response has this `status`. The request is not carried out.
        Status = "status",
        /// `Metadata` must be exactly `true`, also on approvals.
        StrictHeader = "strict-header",
        /// The scope counts as not enabled until its next poll, as after a day without one: operations of its owner start
        /// at once.
        NotEnabled = "not-enabled",
        /// The shown incarnation restarts at 1, once for each VM.
        ResetIncarnation = "reset-incarnation",
        /// The shown incarnation rises by `by` with each change.
        SkipIncarnations = "skip-incarnations",
        /// Events are missing from the document. The shown incarnation rises when they vanish and when they return.
        HideEvents = "hide-events",
        /// `Date` and NotBefore are those of a platform whose clock differs by `seconds`.
        ClockSkew = "clock-skew",
        /// The document has no key `Events`.
        MissingEvents = "missing-events",
        /// The document has raw newlines within strings, which JSON forbids.
        RawNewlines = "raw-newlines",
        /// The content type is `text/plain`.
        TextPlain = "text-plain",
        /// 200 with an empty body.
        EmptyBody = "empty-body",
        /// The body arrives in pieces, the last one after `seconds`.
        SlowBody = "slow-body",
    }
    /// The requests that a fault affects.
    FaultRequests {
        /// Polls: reads of the document.
        Polls = "polls",
        /// Approvals.
        Approvals = "approvals",
        /// All requests, also those of instance metadata.
        All = "all",
    }
    /// The order of a list.
    Order {
        /// Oldest first.
        Oldest = "oldest",
        /// Newest first.
        Newest = "newest",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_word_is_kept() {
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
