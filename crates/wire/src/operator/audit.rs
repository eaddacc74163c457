//! `/v1/audit`: what was changed and what was refused, by whom and from where.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AuditOutcome, Fact};

/// One entry of the audit trail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Whether something was changed or refused.
    pub outcome: AuditOutcome,
    /// Where the request came from, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub from: Option<IpAddr>,
    /// How many: more than one for refusals that came too fast to be kept one by one.
    pub count: u64,
    /// What has happened.
    #[serde(flatten)]
    pub fact: Fact,
}
