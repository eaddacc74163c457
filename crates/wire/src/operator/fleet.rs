//! What a change of a scope would come to: the answer of `POST /v1/scopes/{subscription}/{group}/{scope}/plan`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{EventStatus, EventType};

/// What a change of a scope would come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScopePlan {
    /// The scope's path.
    pub scope: String,
    /// The scope's revision now; 0 if it does not exist.
    pub revision: u64,
    /// Whether the scope itself is removed.
    pub removed: bool,
    /// Settings that change; those of a new scope are not listed.
    pub policy: Vec<FieldChange>,
    /// VMs that are added, by name.
    pub added_vms: Vec<String>,
    /// VMs that change.
    pub changed_vms: Vec<VmChange>,
    /// VMs that are removed, by name.
    pub removed_vms: Vec<String>,
    /// How many VMs the scope has afterwards.
    pub vms: usize,
    /// Live events that end because all their VMs are removed.
    pub ended: Vec<EndedEvent>,
    /// Addresses that VMs of other scopes have now: the change is refused while they do.
    pub taken: Vec<TakenAddress>,
}

impl ScopePlan {
    /// Whether the scope is made.
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

/// A field with another value than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldChange {
    /// Its name in a fleet file.
    pub field: String,
    /// Its value now; none for `instance`, which is told without its value.
    pub from: Option<String>,
    /// Its value afterwards; none for `instance`.
    pub to: Option<String>,
}

/// A VM that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmChange {
    /// Its name.
    pub name: String,
    /// What changes; never empty.
    pub fields: Vec<FieldChange>,
}

/// A live event that would end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndedEvent {
    /// Its id.
    pub event: Uuid,
    /// Its scope's path: the VM that stands in for a fleet goes with the first scope of a real one.
    pub scope: String,
    /// What happens.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// `Scheduled`: it is called off. `Started`: it ends now.
    pub status: EventStatus,
    /// Its VMs, by name.
    pub vms: Vec<String>,
}

/// An address that a VM of another scope has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TakenAddress {
    /// The VM that is to have it, by name.
    pub vm: String,
    /// The address.
    pub address: String,
    /// The path of the VM that has it; none if the caller may not see that VM.
    pub owner: Option<String>,
}
