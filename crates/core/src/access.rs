//! Role-based access control by path prefix: roles, grants, and the tokens that hold them.
//!
//! A [`Grant`] is a role below a [`Prefix`]: `subscription`, `subscription/group`, `subscription/group/scope`,
//! or the empty prefix, which covers everything. Prefixes match by whole segments and ignore case: `acme` covers
//! `Acme/shop/web` but not `acme-two/shop/web`. A token sees only resources under its prefixes. A token is
//! immutable: it is created, then it is revoked or expires.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::cause::{UnknownWord, one_of};
use crate::ids::{Name, NameError, ScopeId};

/// Limit on tokens: enough for the people, scripts and dashboards of a region.
pub const TOKENS_MAX: usize = 1_000;
/// Limit on the grants of a token. A token that needs more paths should get a shorter one.
pub const GRANTS_MAX: usize = 32;

/// What a token may do below a path. Each role includes the roles before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Read only.
    Viewer,
    /// Also acts as the owner of VMs: restart, redeploy, delete, approve, cancel user operations.
    Tenant,
    /// Everything.
    Operator,
}

words!(Role { Viewer => "viewer", Tenant => "tenant", Operator => "operator" });

impl FromStr for Role {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        one_of(text, &[Self::Operator, Self::Tenant, Self::Viewer])
    }
}

/// A path and everything below it; the empty prefix covers everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix {
    /// Case-folded. Ends with a slash, except for a whole scope or the root.
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    #[error(
        "path {0:?} has more than three parts; write subscription, subscription/group or subscription/group/scope"
    )]
    TooDeep(String),
    #[error("path {path:?}: {error}")]
    Name { path: String, error: NameError },
}

impl Prefix {
    pub fn root() -> Self {
        Self::default()
    }

    pub fn is_root(&self) -> bool {
        self.text.is_empty()
    }

    /// Also true if the prefix is the scope itself.
    pub fn covers(&self, scope: &ScopeId) -> bool {
        match self.text.is_empty() || self.text.ends_with('/') {
            true => scope.as_str().starts_with(&self.text),
            false => scope.as_str() == self.text,
        }
    }

    /// Whether this prefix covers everything that the other one covers.
    pub fn contains(&self, other: &Self) -> bool {
        self == other || ((self.is_root() || self.text.ends_with('/')) && other.text.starts_with(&self.text))
    }

    /// Where the covered range starts in the order of scope ids.
    pub fn start(&self) -> &str {
        &self.text
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let trimmed = text.trim_matches('/');
        if trimmed.is_empty() {
            return Ok(Self::default());
        }
        let parts: Vec<&str> = trimmed.split('/').collect();
        if parts.len() > 3 {
            return Err(PrefixError::TooDeep(text.to_owned()));
        }
        for part in &parts {
            part.parse::<Name>().map_err(|error| PrefixError::Name { path: text.to_owned(), error })?;
        }
        let slash = if parts.len() == 3 { "" } else { "/" };
        Ok(Self { text: format!("{}{slash}", trimmed.to_ascii_lowercase()) })
    }
}

impl TryFrom<String> for Prefix {
    type Error = PrefixError;

    fn try_from(text: String) -> Result<Self, PrefixError> {
        text.parse()
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> Self {
        prefix.text.trim_end_matches('/').to_owned()
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_root() {
            true => f.write_str("everywhere"),
            false => f.write_str(self.text.trim_end_matches('/')),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub role: Role,
    pub path: Prefix,
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.is_root() {
            true => write!(f, "{} everywhere", self.role),
            false => write!(f, "{} on {}", self.role, self.path),
        }
    }
}

/// A token as stored. It holds the hash of the secret; a caller that knows the secret gets the grants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Unique, ignoring case; facts name it as the actor.
    pub name: Name,
    /// SHA-256 of the secret, in hexadecimal.
    pub hash: String,
    pub grants: Vec<Grant>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Actor>,
    /// Without it the token does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl Token {
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| now >= expires_at)
    }

    /// The strongest role in a scope; none if the token does not see the scope.
    pub fn role_in(&self, scope: &ScopeId) -> Option<Role> {
        self.grants.iter().filter(|grant| grant.path.covers(scope)).map(|grant| grant.role).max()
    }

    /// The strongest role on everything.
    pub fn role_at_root(&self) -> Option<Role> {
        self.grants.iter().filter(|grant| grant.path.is_root()).map(|grant| grant.role).max()
    }

    /// Operator on `/`: may also manage hosts, tokens and everything else that belongs to no scope.
    pub fn is_full_operator(&self) -> bool {
        self.role_at_root() == Some(Role::Operator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ScopePath;

    fn scope(path: &str) -> ScopeId {
        path.parse::<ScopePath>().unwrap().id()
    }

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn prefix_covers_whole_segments_case_insensitively() {
        for (text, path, covered) in [
            ("", "a/b/c", true),
            ("/", "a/b/c", true),
            ("A", "a/b/c", true),
            ("a", "ab/b/c", false),
            ("a/b", "a/B/c", true),
            ("a/b/", "a/b/c", true),
            ("a/b", "a/bc/c", false),
            ("a/b/c", "a/b/C", true),
            ("a/b/c", "a/b/cd", false),
            ("a/b/c", "a/b/d", false),
        ] {
            assert_eq!(prefix(text).covers(&scope(path)), covered, "{text:?} on {path}");
        }
        assert!("a/b/c/d".parse::<Prefix>().is_err());
        assert!("a//c".parse::<Prefix>().is_err());
        assert!("a/b c".parse::<Prefix>().is_err());
    }

    #[test]
    fn prefix_contains_narrower_prefix() {
        assert!(prefix("").contains(&prefix("a")) && prefix("a").contains(&prefix("a/b/c")));
        assert!(prefix("a/b").contains(&prefix("a/b")));
        assert!(!prefix("a").contains(&prefix("")) && !prefix("a").contains(&prefix("ab")));
        assert!(!prefix("a/b/c").contains(&prefix("a/b")));
    }

    #[test]
    fn strongest_covering_grant_applies() {
        let grant = |role, path: &str| Grant { role, path: prefix(path) };
        let token = Token {
            name: "t".parse().unwrap(),
            hash: String::new(),
            grants: vec![grant(Role::Viewer, ""), grant(Role::Tenant, "a"), grant(Role::Operator, "a/b/c")],
            created_at: Timestamp::UNIX_EPOCH,
            created_by: None,
            expires_at: None,
        };
        assert_eq!(token.role_in(&scope("x/y/z")), Some(Role::Viewer));
        assert_eq!(token.role_in(&scope("a/y/z")), Some(Role::Tenant));
        assert_eq!(token.role_in(&scope("a/b/c")), Some(Role::Operator));
        assert!(!token.is_full_operator());
        let blind = Token { grants: vec![grant(Role::Operator, "a")], ..token };
        assert_eq!(blind.role_in(&scope("x/y/z")), None);
    }

    #[test]
    fn prefix_round_trips() {
        for text in ["", "a", "a/b", "a/b/c"] {
            assert_eq!(String::from(prefix(text)), text);
            assert_eq!(Prefix::try_from(text.to_owned()), Ok(prefix(text)));
        }
    }
}
