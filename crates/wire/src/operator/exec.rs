//! State of the exec driver's commands, as the API shows it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::CommandState;

/// The commands of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecProgress {
    /// The service process that runs them. A restart gives it another name.
    pub owner: String,
    /// The fence that they receive. It rises with every owner.
    pub fence: u64,
    /// Each VM's command, in the order of the event's resources.
    pub commands: Vec<ExecCommand>,
    /// The command for the host of its operation, if there is one. The event ends after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_command: Option<HostCommand>,
}

/// The command for the host of an operation. It runs after those of the VMs; then the events end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostCommand {
    /// Its current state.
    pub state: CommandState,
    /// The service process that runs it. Absent while the command is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The fence that it receives. It rises with every owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// The current or the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Number of remaining attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts_left: Option<u32>,
    /// While waiting: time of the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// Why the last attempt failed: the command's path and its last line of error output. Only for operators on `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The command for one VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecCommand {
    /// The VM.
    pub vm: Uuid,
    /// Its name.
    pub name: String,
    /// Its current state.
    pub state: CommandState,
    /// The current or the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Number of remaining attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts_left: Option<u32>,
    /// While waiting: time of the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// Why the last attempt failed: the command's path and its last line of error output. Only for operators on `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The VM's new host, if the command reported one. The inventory shows it once the event is completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}
