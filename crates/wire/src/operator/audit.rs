//! `/v1/audit`: all changes and refused requests, each with actor and address.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AuditOutcome, Fact};

/// One entry of the audit trail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Whether it is a change or a refusal.
    pub outcome: AuditOutcome,
    /// The address of the caller, if it was a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub from: Option<IpAddr>,
    /// Number of refusals in this entry: more than one if they came too fast to be stored one by one. 1 for a change.
    pub count: u64,
    /// The fact.
    #[serde(flatten)]
    pub fact: Fact,
}
