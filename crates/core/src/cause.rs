//! Causes: why an event happens. The cause determines type, source, notice, description, grouping, and whether the
//! event waits for other update domains.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::operation::Release;

/// The effect on the VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EventType {
    /// Paused for some seconds; memory and open files survive.
    Freeze,
    /// Restarted; memory is lost.
    Reboot,
    /// Moved to another host; the ephemeral disk is lost too.
    Redeploy,
    /// A Spot VM is evicted.
    Preempt,
    /// The VM is deleted.
    Terminate,
    /// Nothing happens: a hint that a Spot VM may be evicted.
    SpotRebalanceRecommendation,
}

/// In the order in which api-versions added them.
pub const EVENT_TYPES: [EventType; 6] = [
    EventType::Freeze,
    EventType::Reboot,
    EventType::Redeploy,
    EventType::Preempt,
    EventType::Terminate,
    EventType::SpotRebalanceRecommendation,
];

words!(EventType {
    Freeze => "Freeze",
    Reboot => "Reboot",
    Redeploy => "Redeploy",
    Preempt => "Preempt",
    Terminate => "Terminate",
    SpotRebalanceRecommendation => "SpotRebalanceRecommendation",
});

/// Who initiated the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    Platform,
    /// The VM's owner.
    User,
}

words!(Source { Platform => "Platform", User => "User" });

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Host maintenance that pauses its VMs.
    HostFreeze,
    /// Host maintenance with a reboot.
    HostReboot,
    /// The host is drained for maintenance.
    HostRedeploy,
    /// The VM moves to another host while it runs.
    LiveMigration,
    /// The host's hardware is expected to fail.
    PredictedFailure,
    /// The host has failed.
    HostFailure,
    /// The platform reclaims the capacity of a Spot VM.
    Eviction,
    /// The platform may soon reclaim the capacity of a Spot VM, or never.
    Rebalance,
    /// The VM's owner deletes it, or its scale set shrinks.
    Deletion,
    /// The VM's owner restarts it.
    UserRestart,
    /// The VM's owner redeploys it.
    UserRedeploy,
}

/// In the order in which they were added: stored histories of the simulator count on it.
pub const CAUSES: [Cause; 11] = [
    Cause::HostFreeze,
    Cause::HostReboot,
    Cause::HostRedeploy,
    Cause::LiveMigration,
    Cause::PredictedFailure,
    Cause::HostFailure,
    Cause::Eviction,
    Cause::Deletion,
    Cause::UserRestart,
    Cause::UserRedeploy,
    Cause::Rebalance,
];

/// Time between announcement and NotBefore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    AtLeast(Duration),
    /// No notice: it has happened already.
    None,
    /// The notice from the scope's policy; none if the policy has none.
    AsPolicySays,
    /// It never starts: an advisory.
    NeverStarts,
}

/// How an operation's VMs share events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// One event for all VMs of a scope in one update domain.
    PerUpdateDomain,
    /// One event per VM, approved separately.
    PerVm,
}

const MINUTE: u64 = 60;

impl Cause {
    pub fn event_type(self) -> EventType {
        match self {
            Self::HostFreeze | Self::LiveMigration => EventType::Freeze,
            Self::HostReboot | Self::HostFailure | Self::UserRestart => EventType::Reboot,
            Self::HostRedeploy | Self::PredictedFailure | Self::UserRedeploy => EventType::Redeploy,
            Self::Eviction => EventType::Preempt,
            Self::Rebalance => EventType::SpotRebalanceRecommendation,
            Self::Deletion => EventType::Terminate,
        }
    }

    /// The default cause of a type: the platform's planned one.
    pub fn of_type(event_type: EventType) -> Self {
        match event_type {
            EventType::Freeze => Self::HostFreeze,
            EventType::Reboot => Self::HostReboot,
            EventType::Redeploy => Self::HostRedeploy,
            EventType::Preempt => Self::Eviction,
            EventType::Terminate => Self::Deletion,
            EventType::SpotRebalanceRecommendation => Self::Rebalance,
        }
    }

    pub fn source(self) -> Source {
        match self {
            Self::HostFreeze
            | Self::HostReboot
            | Self::HostRedeploy
            | Self::LiveMigration
            | Self::PredictedFailure
            | Self::HostFailure
            | Self::Eviction
            | Self::Rebalance => Source::Platform,
            Self::Deletion | Self::UserRestart | Self::UserRedeploy => Source::User,
        }
    }

    /// Expected interruption in seconds; −1 if unknown.
    pub fn duration_s(self) -> i32 {
        match self {
            Self::HostFreeze => 9,
            Self::LiveMigration => 5,
            Self::HostReboot
            | Self::HostRedeploy
            | Self::PredictedFailure
            | Self::HostFailure
            | Self::Eviction
            | Self::Rebalance
            | Self::Deletion
            | Self::UserRestart
            | Self::UserRedeploy => -1,
        }
    }

    /// The text that guests read; Azure's wording, as observed.
    pub fn description(self) -> &'static str {
        match self {
            Self::HostFreeze | Self::HostReboot | Self::HostRedeploy => {
                "Host server is undergoing maintenance."
            }
            Self::LiveMigration => {
                "Virtual machine is being paused because of a memory-preserving Live Migration operation."
            }
            Self::PredictedFailure | Self::HostFailure => "Host server is undergoing an emergency repair.",
            Self::Eviction | Self::Rebalance | Self::Deletion => "",
            Self::UserRestart => "Virtual machine is going to be restarted as requested by authorized user.",
            Self::UserRedeploy => {
                "Virtual machine is going to be redeployed as requested by authorized user."
            }
        }
    }

    /// Whether its events never start.
    pub fn is_advisory(self) -> bool {
        self.notice() == Notice::NeverStarts
    }

    /// The least notice.
    pub fn notice(self) -> Notice {
        let minutes = |n| Notice::AtLeast(Duration::from_secs(n * MINUTE));
        match self {
            Self::HostFreeze | Self::HostReboot | Self::LiveMigration | Self::UserRestart => minutes(15),
            Self::HostRedeploy | Self::PredictedFailure | Self::UserRedeploy => minutes(10),
            Self::Eviction => Notice::AtLeast(Duration::from_secs(30)),
            Self::Deletion => Notice::AsPolicySays,
            Self::HostFailure => Notice::None,
            Self::Rebalance => Notice::NeverStarts,
        }
    }

    /// The default notice: the least notice, except for predicted failures, which leave days to act.
    pub fn usual_notice(self) -> Option<Duration> {
        match self {
            Self::PredictedFailure => Some(Duration::from_secs(7 * 24 * 60 * MINUTE)),
            Self::HostFreeze
            | Self::HostReboot
            | Self::HostRedeploy
            | Self::LiveMigration
            | Self::HostFailure
            | Self::Eviction
            | Self::Rebalance
            | Self::Deletion
            | Self::UserRestart
            | Self::UserRedeploy => None,
        }
    }

    /// Whether it waits while a platform event of another update domain is Started. Only planned causes wait;
    /// failures, evictions and user operations do not.
    pub fn waits_for_other_update_domains(self) -> bool {
        match self {
            Self::HostFreeze
            | Self::HostReboot
            | Self::HostRedeploy
            | Self::LiveMigration
            | Self::PredictedFailure => true,
            Self::HostFailure
            | Self::Eviction
            | Self::Rebalance
            | Self::Deletion
            | Self::UserRestart
            | Self::UserRedeploy => false,
        }
    }

    /// Whether its VMs must be Spot VMs.
    pub fn is_for_spot(self) -> bool {
        match self {
            Self::Eviction | Self::Rebalance => true,
            Self::HostFreeze
            | Self::HostReboot
            | Self::HostRedeploy
            | Self::LiveMigration
            | Self::PredictedFailure
            | Self::HostFailure
            | Self::Deletion
            | Self::UserRestart
            | Self::UserRedeploy => false,
        }
    }

    /// Whether it affects a whole host at one moment, not VM after VM.
    pub fn has_joint_start(self) -> bool {
        match self {
            Self::HostFreeze | Self::HostReboot => true,
            Self::HostRedeploy
            | Self::LiveMigration
            | Self::PredictedFailure
            | Self::HostFailure
            | Self::Eviction
            | Self::Rebalance
            | Self::Deletion
            | Self::UserRestart
            | Self::UserRedeploy => false,
        }
    }

    pub fn grouping(self) -> Grouping {
        match self {
            Self::HostFreeze | Self::HostReboot | Self::LiveMigration | Self::HostFailure => {
                Grouping::PerUpdateDomain
            }
            Self::HostRedeploy
            | Self::PredictedFailure
            | Self::Eviction
            | Self::Rebalance
            | Self::Deletion
            | Self::UserRestart
            | Self::UserRedeploy => Grouping::PerVm,
        }
    }

    /// Whether approvals release events one by one or all together. A host reboots once for all its VMs;
    /// deletions with a shared NotBefore start early only if all are approved.
    pub fn release(self) -> Release {
        match self {
            Self::HostFreeze | Self::HostReboot | Self::Deletion => Release::Together,
            Self::HostRedeploy
            | Self::LiveMigration
            | Self::PredictedFailure
            | Self::HostFailure
            | Self::Eviction
            | Self::Rebalance
            | Self::UserRestart
            | Self::UserRedeploy => Release::Each,
        }
    }
}

// Names in the API and on the command line.
words!(Cause {
    HostFreeze => "host-freeze",
    HostReboot => "host-reboot",
    HostRedeploy => "host-redeploy",
    LiveMigration => "live-migration",
    PredictedFailure => "predicted-failure",
    HostFailure => "host-failure",
    Eviction => "eviction",
    Rebalance => "rebalance",
    Deletion => "deletion",
    UserRestart => "user-restart",
    UserRedeploy => "user-redeploy",
});

/// A text that names no known cause or type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not one of {}", .known.join(", "))]
pub struct UnknownWord {
    pub given: String,
    /// All valid names.
    pub known: Vec<String>,
}

pub(crate) fn one_of<T: Copy + fmt::Display>(text: &str, all: &[T]) -> Result<T, UnknownWord> {
    all.iter()
        .copied()
        .find(|one| one.to_string().eq_ignore_ascii_case(text))
        .ok_or_else(|| UnknownWord { given: text.to_owned(), known: all.iter().map(T::to_string).collect() })
}

impl FromStr for Cause {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        one_of(text, &CAUSES)
    }
}

impl FromStr for EventType {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        one_of(text, &EVENT_TYPES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cause_names_match_serde_and_display() {
        for cause in CAUSES {
            assert_eq!(cause.as_str().parse::<Cause>(), Ok(cause));
        }
        for event_type in EVENT_TYPES {
            assert_eq!(event_type.to_string().to_lowercase().parse::<EventType>(), Ok(event_type));
            assert_eq!(Cause::of_type(event_type).event_type(), event_type);
        }
        assert!("pause".parse::<EventType>().unwrap_err().to_string().contains("Freeze, Reboot"));
    }
}
