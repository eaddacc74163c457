//! Counts of the faults of a cluster.

/// Counts of the faults of a cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClusterFaults {
    pub crashes: u64,
    pub pauses: u64,
    pub cuts: u64,
    pub stalls: u64,
    pub watches_back: u64,
    pub lost_deletes: u64,
    pub compactions: u64,
    pub stale_reads: u64,
    pub lost_answers: u64,
    pub lags: u64,
    pub offsets: u64,
    pub drifts: u64,
    pub hand_overs: u64,
    pub unknown_outcomes: u64,
    pub refused_commits: u64,
    pub lost_messages: u64,
    pub late_messages: u64,
    pub doubled_messages: u64,
}

impl ClusterFaults {
    /// All counts, with their names.
    pub fn all(self) -> [(&'static str, u64); 18] {
        [
            ("crashes", self.crashes),
            ("pauses", self.pauses),
            ("cuts", self.cuts),
            ("stalls", self.stalls),
            ("watches that go back", self.watches_back),
            ("lost deletes", self.lost_deletes),
            ("compactions", self.compactions),
            ("stale reads", self.stale_reads),
            ("lost answers", self.lost_answers),
            ("lags", self.lags),
            ("offset clocks", self.offsets),
            ("drifting clocks", self.drifts),
            ("hand-overs", self.hand_overs),
            ("unknown outcomes", self.unknown_outcomes),
            ("refused commits", self.refused_commits),
            ("lost messages", self.lost_messages),
            ("late messages", self.late_messages),
            ("doubled messages", self.doubled_messages),
        ]
    }
}

impl std::ops::Add for ClusterFaults {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            crashes: self.crashes + other.crashes,
            pauses: self.pauses + other.pauses,
            cuts: self.cuts + other.cuts,
            stalls: self.stalls + other.stalls,
            watches_back: self.watches_back + other.watches_back,
            lost_deletes: self.lost_deletes + other.lost_deletes,
            compactions: self.compactions + other.compactions,
            stale_reads: self.stale_reads + other.stale_reads,
            lost_answers: self.lost_answers + other.lost_answers,
            lags: self.lags + other.lags,
            offsets: self.offsets + other.offsets,
            drifts: self.drifts + other.drifts,
            hand_overs: self.hand_overs + other.hand_overs,
            unknown_outcomes: self.unknown_outcomes + other.unknown_outcomes,
            refused_commits: self.refused_commits + other.refused_commits,
            lost_messages: self.lost_messages + other.lost_messages,
            late_messages: self.late_messages + other.late_messages,
            doubled_messages: self.doubled_messages + other.doubled_messages,
        }
    }
}
