//! Counts of the faults of a cluster.

use crate::counts::counts;

macro_rules! faults {
    ($($fault:ident)+) => {
        counts! {
            /// Counts of the faults of a cluster.
            pub struct ClusterFaults {
                $(pub $fault: u64,)+
            }
        }

        impl ClusterFaults {
            /// All counts, with their names.
            pub fn all(self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($fault), self.$fault),)+].into_iter()
            }
        }
    };
}

faults! {
    crashes
    pauses
    cuts
    stalls
    watches_back
    lost_deletes
    compactions
    stale_reads
    lost_answers
    lags
    offsets
    drifts
    hand_overs
    unknown_outcomes
    refused_commits
    lost_messages
    late_messages
    doubled_messages
}
