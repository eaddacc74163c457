//! How the commands of the exec driver stand, as operators are shown it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::CommandState;

/// How the commands of an event stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecProgress {
    /// The process of the service that runs them; it has another name after every start.
    pub owner: String,
    /// The fencing number that they are given; it rises with every owner.
    pub fence: u64,
    /// Each VM's command, in the order of the event's resources.
    pub commands: Vec<ExecCommand>,
}

/// How the command for one VM stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecCommand {
    /// The VM.
    pub vm: Uuid,
    /// Its name.
    pub name: String,
    /// How it stands.
    pub state: CommandState,
    /// The attempt that runs, or ran last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// How many more attempts it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts_left: Option<u32>,
    /// While waiting: when it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// Why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Where the VM is now, if the command said so; the inventory says so once the event is completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}
