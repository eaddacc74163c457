//! Sessions of the console, and who is calling.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::tokens::Grant;

/// The body of `POST /v1/sign-in`: a token's secret, or the code of a sign-in link.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SignIn {
    /// The secret of a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Instead of `token`: the code of a sign-in link, which works once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Leaves the secret out.
impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIn").finish_non_exhaustive()
    }
}

/// Who is calling: the token of the request or of its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// The token's name.
    pub token: String,
    /// The token's grants.
    pub grants: Vec<Grant>,
    /// When the token expires, if it does.
    pub expires_at: Option<Timestamp>,
    /// When the session expires; null for a request with a token.
    pub session_expires_at: Option<Timestamp>,
    /// The version of the service.
    pub version: String,
    /// The time of the service's clock.
    pub now: Timestamp,
}

/// A link that signs a browser in once, as the token that created it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignInLink {
    /// The code. In a link it is the fragment, which browsers do not send: `https://…/#code=…`.
    pub code: String,
    /// When the code stops working.
    pub expires_at: Timestamp,
}

/// Leaves the code out.
impl fmt::Debug for SignInLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignInLink").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}
