//! Converts domain enums to API enums. All matches are here, so that a new variant needs one change.

use notbefore_core as core;
use notbefore_wire::operator as wire;

/// A domain enum that has an API enum.
pub trait WireName {
    type Wire;

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
    EventType => EventType { Freeze, Reboot, Redeploy, Preempt, Terminate, SpotRebalanceRecommendation }
    Phase => EventStatus { Scheduled, Started, Advisory }
    Outcome => EventStatus { Completed, Cancelled }
    Cause => Cause {
        HostFreeze, HostReboot, HostRedeploy, LiveMigration, PredictedFailure, HostFailure, Eviction,
        Rebalance, Deletion, UserRestart, UserRedeploy
    }
    Source => Source { Platform, User }
    DriverKind => Driver { Simulated, Manual, Exec }
    OperationState => OperationState { Opening, Open, Closed }
    Release => Release { Each, Together }
    JointStart => HostStart { Waiting, Ready, Released }
    HostState => HostState { Ok, Degraded, Failed }
    Role => Role { Operator, Tenant, Viewer }
    CommandState => CommandState { Waiting, Running, Done, Failed, Gone }
}
