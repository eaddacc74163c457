//! The plan of a change to a scope: the response of `POST /v1/scopes/{subscription}/{group}/{scope}/plan`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{EventStatus, EventType};

/// What a change to a scope would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScopePlan {
    /// The scope's path.
    pub scope: String,
    /// The scope's current revision; 0 if it does not exist.
    pub revision: u64,
    /// Whether the scope itself is removed.
    pub removed: bool,
    /// Settings that change. Empty for a new scope.
    pub policy: Vec<FieldChange>,
    /// Names of VMs that are added.
    pub added_vms: Vec<String>,
    /// VMs that change.
    pub changed_vms: Vec<VmChange>,
    /// Names of VMs that are removed.
    pub removed_vms: Vec<String>,
    /// Number of VMs after the change.
    pub vms: usize,
    /// Live events that end because all their VMs are removed.
    pub ended: Vec<EndedEvent>,
    /// Addresses that VMs of other scopes have. The change is refused until they are free.
    pub taken: Vec<TakenAddress>,
}

impl ScopePlan {
    /// Whether the scope is created.
    pub fn creates(&self) -> bool {
        self.revision == 0
    }

    /// Whether VMs or the scope are removed.
    pub fn removes(&self) -> bool {
        self.removed || !self.removed_vms.is_empty()
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        let vms = self.added_vms.len() + self.changed_vms.len();
        !self.creates() && !self.removes() && self.policy.is_empty() && vms == 0
    }
}

/// A field whose value changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldChange {
    /// Its name in a fleet file.
    pub field: String,
    /// The current value; null for `instance`, whose values are not shown.
    pub from: Option<String>,
    /// The new value; null for `instance`.
    pub to: Option<String>,
}

/// A VM that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmChange {
    /// Its name.
    pub name: String,
    /// The fields that change; never empty.
    pub fields: Vec<FieldChange>,
}

/// A live event that would end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndedEvent {
    /// Its id.
    pub event: Uuid,
    /// Its scope's path. It differs from the plan's scope if the first real scope replaces the example VM.
    pub scope: String,
    /// What happens to its VMs.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// `Scheduled`: it is cancelled. `Started`: it ends now.
    pub status: EventStatus,
    /// The names of its VMs.
    pub vms: Vec<String>,
}

/// An address that a VM of another scope has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TakenAddress {
    /// The name of the VM that should get it.
    pub vm: String,
    /// The address.
    pub address: String,
    /// The path of the VM that has it; null if the caller may not see that VM.
    pub owner: Option<String>,
}
