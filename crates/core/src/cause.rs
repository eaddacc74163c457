//! Why an event happens, and all that follows from the why: its type and source, how much notice it gives,
//! what a guest reads about it, and whether it may be made to wait for another update domain.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::operation::Release;

/// What will happen to the VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EventType {
    /// Paused for some seconds; memory and open files survive.
    Freeze,
    /// Restarted; memory is lost.
    Reboot,
    /// Moved to another host; the ephemeral disk is lost too.
    Redeploy,
    /// A spot VM is evicted.
    Preempt,
    /// The VM is deleted.
    Terminate,
}

/// Every event type, in the order in which the api-versions came to know them.
pub const EVENT_TYPES: [EventType; 5] =
    [EventType::Freeze, EventType::Reboot, EventType::Redeploy, EventType::Preempt, EventType::Terminate];

words!(EventType {
    Freeze => "Freeze",
    Reboot => "Reboot",
    Redeploy => "Redeploy",
    Preempt => "Preempt",
    Terminate => "Terminate",
});

/// Who set the event going.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// The platform.
    Platform,
    /// The VM's owner.
    User,
}

words!(Source { Platform => "Platform", User => "User" });

/// Why an event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The host is maintained and its VMs are paused meanwhile.
    HostFreeze,
    /// The host is maintained and restarts.
    HostReboot,
    /// The host is emptied for maintenance.
    HostRedeploy,
    /// The VM moves to another host while it runs.
    LiveMigration,
    /// The host's hardware is expected to fail.
    PredictedFailure,
    /// The host has failed.
    HostFailure,
    /// The capacity of a spot VM is wanted back.
    Eviction,
    /// The VM's owner deletes it, or its scale set shrinks.
    Deletion,
    /// The VM's owner restarts it.
    UserRestart,
    /// The VM's owner redeploys it.
    UserRedeploy,
}

/// Every cause.
pub const CAUSES: [Cause; 10] = [
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
];

/// How much warning a cause gives before NotBefore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// At least this much.
    AtLeast(Duration),
    /// None: it has happened already.
    None,
    /// What the scope's policy says; none where it says none.
    AsPolicySays,
}

/// How an operation's VMs share events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// All VMs of a scope in one update domain share one event: what is done to them is done at once.
    PerUpdateDomain,
    /// Each VM has an event of its own, approved on its own.
    PerVm,
}

const MINUTE: u64 = 60;

impl Cause {
    /// What happens to the VM.
    pub fn event_type(self) -> EventType {
        match self {
            Self::HostFreeze | Self::LiveMigration => EventType::Freeze,
            Self::HostReboot | Self::HostFailure | Self::UserRestart => EventType::Reboot,
            Self::HostRedeploy | Self::PredictedFailure | Self::UserRedeploy => EventType::Redeploy,
            Self::Eviction => EventType::Preempt,
            Self::Deletion => EventType::Terminate,
        }
    }

    /// The cause meant when only a type was named: the platform's planned one.
    pub fn of_type(event_type: EventType) -> Self {
        match event_type {
            EventType::Freeze => Self::HostFreeze,
            EventType::Reboot => Self::HostReboot,
            EventType::Redeploy => Self::HostRedeploy,
            EventType::Preempt => Self::Eviction,
            EventType::Terminate => Self::Deletion,
        }
    }

    /// Who set it going.
    pub fn source(self) -> Source {
        match self {
            Self::HostFreeze
            | Self::HostReboot
            | Self::HostRedeploy
            | Self::LiveMigration
            | Self::PredictedFailure
            | Self::HostFailure
            | Self::Eviction => Source::Platform,
            Self::Deletion | Self::UserRestart | Self::UserRedeploy => Source::User,
        }
    }

    /// How long the VM is expected to be interrupted, in seconds; −1 where nobody can tell.
    pub fn duration_s(self) -> i32 {
        match self {
            Self::HostFreeze => 9,
            Self::LiveMigration => 5,
            Self::HostReboot
            | Self::HostRedeploy
            | Self::PredictedFailure
            | Self::HostFailure
            | Self::Eviction
            | Self::Deletion
            | Self::UserRestart
            | Self::UserRedeploy => -1,
        }
    }

    /// What a guest reads about it: the wording that Azure's guests have been seen to get.
    pub fn description(self) -> &'static str {
        match self {
            Self::HostFreeze | Self::HostReboot | Self::HostRedeploy => {
                "Host server is undergoing maintenance."
            }
            Self::LiveMigration => {
                "Virtual machine is being paused because of a memory-preserving Live Migration operation."
            }
            Self::PredictedFailure | Self::HostFailure => "Host server is undergoing an emergency repair.",
            Self::Eviction | Self::Deletion => "",
            Self::UserRestart => "Virtual machine is going to be restarted as requested by authorized user.",
            Self::UserRedeploy => {
                "Virtual machine is going to be redeployed as requested by authorized user."
            }
        }
    }

    /// The least notice it gives.
    pub fn notice(self) -> Notice {
        let minutes = |n| Notice::AtLeast(Duration::from_secs(n * MINUTE));
        match self {
            Self::HostFreeze | Self::HostReboot | Self::LiveMigration | Self::UserRestart => minutes(15),
            Self::HostRedeploy | Self::PredictedFailure | Self::UserRedeploy => minutes(10),
            Self::Eviction => Notice::AtLeast(Duration::from_secs(30)),
            Self::Deletion => Notice::AsPolicySays,
            Self::HostFailure => Notice::None,
        }
    }

    /// How far ahead NotBefore is put when nobody says: the least notice, but for hardware that is expected
    /// to fail, which leaves days to act.
    pub fn usual_notice(self) -> Option<Duration> {
        match self {
            Self::PredictedFailure => Some(Duration::from_secs(7 * 24 * 60 * MINUTE)),
            Self::HostFreeze
            | Self::HostReboot
            | Self::HostRedeploy
            | Self::LiveMigration
            | Self::HostFailure
            | Self::Eviction
            | Self::Deletion
            | Self::UserRestart
            | Self::UserRedeploy => None,
        }
    }

    /// Whether it waits while a platform event of another update domain is Started. What is planned can
    /// wait; what has failed, was evicted or was asked for by the owner does not.
    pub fn waits_for_other_update_domains(self) -> bool {
        match self {
            Self::HostFreeze
            | Self::HostReboot
            | Self::HostRedeploy
            | Self::LiveMigration
            | Self::PredictedFailure => true,
            Self::HostFailure | Self::Eviction | Self::Deletion | Self::UserRestart | Self::UserRedeploy => {
                false
            }
        }
    }

    /// Whether it happens to a whole host at one moment. The others happen to VM after VM.
    pub fn has_joint_start(self) -> bool {
        match self {
            Self::HostFreeze | Self::HostReboot => true,
            Self::HostRedeploy
            | Self::LiveMigration
            | Self::PredictedFailure
            | Self::HostFailure
            | Self::Eviction
            | Self::Deletion
            | Self::UserRestart
            | Self::UserRedeploy => false,
        }
    }

    /// How its VMs share events.
    pub fn grouping(self) -> Grouping {
        match self {
            Self::HostFreeze | Self::HostReboot | Self::LiveMigration | Self::HostFailure => {
                Grouping::PerUpdateDomain
            }
            Self::HostRedeploy
            | Self::PredictedFailure
            | Self::Eviction
            | Self::Deletion
            | Self::UserRestart
            | Self::UserRedeploy => Grouping::PerVm,
        }
    }

    /// Whether approvals release its events one by one or only all of them. A host reboots once for all its
    /// VMs; deletions that share a NotBefore go early only when every one of them was approved.
    pub fn release(self) -> Release {
        match self {
            Self::HostFreeze | Self::HostReboot | Self::Deletion => Release::Together,
            Self::HostRedeploy
            | Self::LiveMigration
            | Self::PredictedFailure
            | Self::HostFailure
            | Self::Eviction
            | Self::UserRestart
            | Self::UserRedeploy => Release::Each,
        }
    }
}

// As the API and the command line spell them.
words!(Cause {
    HostFreeze => "host-freeze",
    HostReboot => "host-reboot",
    HostRedeploy => "host-redeploy",
    LiveMigration => "live-migration",
    PredictedFailure => "predicted-failure",
    HostFailure => "host-failure",
    Eviction => "eviction",
    Deletion => "deletion",
    UserRestart => "user-restart",
    UserRedeploy => "user-redeploy",
});

/// A text that names no cause or type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not one of {}", .known.join(", "))]
pub struct UnknownWord {
    /// What was given.
    pub given: String,
    /// What there is.
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
