//! From the domain's enums to the API's words. Every match is here, so that a new variant asks for its word once.

use notbefore_core as core;
use notbefore_wire::operator as wire;

/// An enum of the domain that has words in the API.
pub trait Word {
    /// The API's enum.
    type Wire;

    /// The word for it.
    fn word(&self) -> Self::Wire;
}

macro_rules! words {
    ($( $own:ident => $wire:ident { $($variant:ident),+ } )+) => {
        $(
            impl Word for core::$own {
                type Wire = wire::$wire;

                fn word(&self) -> wire::$wire {
                    match self {
                        $( Self::$variant { .. } => wire::$wire::$variant, )+
                    }
                }
            }
        )+
    };
}

words! {
    ScopeKind => ScopeKind { Standalone, AvailabilitySet, CloudService, ScaleSet }
    MemberState => VmState { Running, Deallocated }
    EventType => EventType { Freeze, Reboot, Redeploy, Preempt, Terminate }
    Phase => EventStatus { Scheduled, Started }
    Outcome => EventStatus { Completed, Cancelled }
    Cause => Cause {
        HostFreeze, HostReboot, HostRedeploy, LiveMigration, PredictedFailure, HostFailure, Eviction, Deletion,
        UserRestart, UserRedeploy
    }
    Source => Source { Platform, User }
    DriverKind => Driver { Simulated, Manual, Exec }
    OperationState => OperationState { Opening, Open, Closed }
    Release => Release { Each, Together }
    JointStart => HostStart { Waiting, Ready, Released }
    Role => Role { Operator, Tenant, Viewer }
    CommandState => CommandState { Waiting, Running, Done, Failed, Gone }
}
