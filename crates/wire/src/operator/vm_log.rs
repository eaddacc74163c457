//! `/v1/vms/{vm}/log`: what a VM asked for lately, and which of its requests were refused.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::VmLogKind;

/// The log of a VM. It is in memory and begins with the start of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmLog {
    /// The VM.
    pub vm: Uuid,
    /// Its path: `subscription/group/scope/name`.
    pub path: String,
    /// When the log began: the start of the service.
    pub since: Timestamp,
    /// The entries by last time, oldest first; at most 32.
    pub entries: Vec<VmLogEntry>,
    /// Number of older entries of the VM that were dropped to make room.
    pub dropped: u64,
}

/// An entry of a VM's log. Repeated identical entries are one, with a count. The kind decides which of the optional
/// fields are present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmLogEntry {
    /// When it first happened.
    pub first_at: Timestamp,
    /// When it last happened.
    pub last_at: Timestamp,
    /// How often it happened.
    pub count: u64,
    /// What happened.
    pub kind: VmLogKind,
    /// Refused: the status of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Refused: a stable word for the reason, the same as in the metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Refused: the reason as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Refused: method and target. Control characters are escaped, and a long target is cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Approved: the events of the request. Read: the VM's events that the document shows. At most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Uuid>,
    /// Number of events that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_events: u64,
    /// Read: the document's incarnation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<u64>,
    /// Read and polled: the api-version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Polled: the client's `User-Agent`; empty if it sends none. Control characters are escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

impl VmLogEntry {
    /// An entry without the optional fields.
    pub fn new(kind: VmLogKind, first_at: Timestamp, last_at: Timestamp, count: u64) -> Self {
        Self {
            first_at,
            last_at,
            count,
            kind,
            status: None,
            reason: None,
            message: None,
            request: None,
            events: Vec::new(),
            more_events: 0,
            incarnation: None,
            api_version: None,
            client: None,
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
