//! From the domain's enums to the API's words. Every match is here, so that a new variant asks for its word once.

use notbefore_core as core;
use notbefore_wire::operator as wire;

/// An enum of the domain that has words in the API.
pub trait WireName {
    /// The API's enum.
    type Wire;

    /// The word for it.
    fn wire_name(&self) -> Self::Wire;
}

macro_rules! wire_names {
    ($( $own:ident => $wire:ident { $($variant:ident),+ } )+) => {
        $(
            impl WireName for core::$own {
                type Wire = wire::$wire;

                fn wire_name(&self) -> wire::$wire {
                    match self {
                        $( Self::$variant { .. } => wire::$wire::$variant, )+
                    }
                }
            }
        )+
    };
}

wire_names! {
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
