//! `/v1/tokens`: who may use the operator API.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Role;

/// A role on everything below a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// What it may do.
    pub role: Role,
    /// `subscription`, `subscription/group` or `subscription/group/scope`; `/` is everywhere.
    pub path: String,
}

/// The body of `POST /v1/tokens`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// Its name, unique without regard to case; the audit trail names it.
    pub name: String,
    /// What it may do.
    pub grants: Vec<Grant>,
    /// When it ends; never if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub grants: Vec<Grant>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it, if that is known.
    pub created_by: Option<String>,
    /// When it ends, if it does.
    pub expires_at: Option<Timestamp>,
    /// Whether it has ended.
    pub expired: bool,
    /// When it was last used, as far as the running service knows.
    pub last_used_at: Option<Timestamp>,
}

/// A token that was just made.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// What to send as `Authorization: Bearer …`. It is shown this once.
    pub secret: String,
    /// The token.
    #[serde(flatten)]
    pub token: Token,
}

/// The secret stays out of whatever is printed for debugging.
impl std::fmt::Debug for NewToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewToken").field("token", &self.token).finish_non_exhaustive()
    }
}
