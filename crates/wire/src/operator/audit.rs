//! `/v1/audit`: what was changed and what was refused, by whom and from where.

use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::AuditOutcome;

/// One entry of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// When.
    pub at: Timestamp,
    /// Whether it was changed or refused.
    pub outcome: AuditOutcome,
    /// Who: `token root`, `vm web-0 at 10.0.0.4`, `timer`, …; `unknown` where no token was known.
    pub actor: String,
    /// Where the request came from, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub from: Option<IpAddr>,
    /// What: the fact (`EventScheduled`, `TokenRevoked`, …), or why it was refused (`not_permitted`, `hidden`,
    /// `token_refused`, `token_missing`).
    pub what: String,
    /// More about it, in words; for a refusal the request. May be empty.
    pub detail: String,
    /// The scope's path, for what happened in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// How many: more than one for refusals that came too fast to be kept one by one.
    pub count: u64,
}
