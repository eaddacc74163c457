//! `/v1/tokens`: the tokens of the operator API.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Role;

/// A role on a path and everything below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Grant {
    /// What it permits.
    pub role: Role,
    /// `subscription`, `subscription/group` or `subscription/group/scope`; `/` for everything.
    pub path: String,
}

/// The body of `POST /v1/tokens`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// Its name, unique ignoring case. The audit trail shows it.
    pub name: String,
    /// Its grants.
    pub grants: Vec<Grant>,
    /// When it expires. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its name.
    pub name: String,
    /// Its grants.
    pub grants: Vec<Grant>,
    /// When it was created.
    pub created_at: Timestamp,
    /// The token that created it, if known.
    pub created_by: Option<String>,
    /// When it expires, if it does.
    pub expires_at: Option<Timestamp>,
    /// Whether it has expired.
    pub expired: bool,
    /// When it was last used since the service started.
    pub last_used_at: Option<Timestamp>,
    /// The revision at which it was created, for `If-Match`.
    pub revision: u64,
}

/// A new token, with its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// Send it as `Authorization: Bearer …`. It is shown only once.
    pub secret: String,
    /// The token.
    #[serde(flatten)]
    pub token: Token,
    /// Paths of its grants below which there is no scope yet: the name may be misspelt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub empty_paths: Vec<String>,
}

/// Leaves the secret out.
impl std::fmt::Debug for NewToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewToken").field("token", &self.token).finish_non_exhaustive()
    }
}
