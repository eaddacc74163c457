//! Names and ids as newtypes with validating constructors: a VM id cannot be confused with an event id, and every
//! [`Name`] is valid.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use uuid::Uuid;

macro_rules! guid {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

guid! {
    /// A VM; never reused for another one.
    VmId
}
guid! {
    /// An event. Guests see it in upper case; [`fmt::Display`] gives lower case, for keys and logs.
    EventId
}
guid! {
    /// An operation, in any number of scopes.
    OperationId
}

impl EventId {
    /// The id of an operation's part, a hash of its place. Opening a part twice, as after a crash, therefore
    /// creates one event.
    pub fn derive(operation: OperationId, scope: &ScopeId, update_domain: u32, alone: Option<VmId>) -> Self {
        let name = match alone {
            Some(vm) => format!("{scope}|{update_domain}|{vm}"),
            None => format!("{scope}|{update_domain}"),
        };
        Self(Uuid::new_v5(&operation.0, name.as_bytes()))
    }
}

/// Limit on a name's length. Azure allows 64 characters for a VM and 80 for most groupings.
pub const NAME_CHARS_MAX: usize = 80;

/// The name of a subscription, group, scope, VM or network: letters, digits, `-`, `_` and `.`, not `-` first,
/// at most [`NAME_CHARS_MAX`]. It keeps its case; comparison ignores case. A short name is stored inline, since a large
/// fleet has a million of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(SmolStr);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a name may not be empty")]
    Empty,
    /// `name` is the start of it.
    #[error("name {name:?} has {chars} characters, the limit is {NAME_CHARS_MAX}")]
    TooLong { name: String, chars: usize },
    /// `found` is the first character that is not allowed.
    #[error("name {name:?} contains {found:?}; letters, digits, '-', '_' and '.' are allowed")]
    Character { name: String, found: char },
    #[error("name {0:?} begins with '-', which programs take for a flag; begin it with a letter or a digit")]
    Dash(String),
    #[error("name {0:?} has only dots, which clients remove from URLs; choose another")]
    Dots(String),
}

/// Whether a text is `.` or `..`. Clients remove such a part from URLs, so a thing of this name cannot be reached.
pub fn is_dots(text: &str) -> bool {
    matches!(text, "." | "..")
}

/// Whether a command to which the text is given takes it for a flag: `virsh reboot "$NOTBEFORE_VM"`, `ssh "$host"`.
pub fn is_flag(text: &str) -> bool {
    text.starts_with('-')
}

impl Name {
    /// Parses the name of a new VM or token. Old records may have the names `.` and `..`; new ones may not.
    pub fn parse_new(text: &str) -> Result<Self, NameError> {
        if is_dots(text) { Err(NameError::Dots(text.to_owned())) } else { text.parse() }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The case-folded form, for comparison and keys.
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        let chars = text.chars().count();
        if chars > NAME_CHARS_MAX {
            return Err(NameError::TooLong { name: text.chars().take(NAME_CHARS_MAX).collect(), chars });
        }
        if is_flag(text) {
            return Err(NameError::Dash(text.to_owned()));
        }
        match text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))) {
            Some(found) => Err(NameError::Character { name: text.to_owned(), found }),
            None => Ok(Self(text.into())),
        }
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0.as_str().to_owned()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for Name {}

/// A scope's path `subscription/group/scope`, in the case its owner wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopePath {
    /// Default: `default`.
    pub subscription: Name,
    /// The resource group. Default: `default`.
    pub group: Name,
    pub name: Name,
}

impl ScopePath {
    /// The key under which the scope is stored.
    pub fn id(&self) -> ScopeId {
        ScopeId(self.to_string().to_ascii_lowercase().into())
    }
}

impl fmt::Display for ScopePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.subscription, self.group, self.name)
    }
}

impl FromStr for ScopePath {
    type Err = NameError;

    /// Parses `subscription/group/scope`, `group/scope` or `scope`.
    fn from_str(text: &str) -> Result<Self, NameError> {
        let mut parts = text.rsplit('/');
        let mut next = |fallback: &str| parts.next().unwrap_or(fallback).parse::<Name>();
        let (name, group, subscription) = (next("")?, next("default")?, next("default")?);
        match parts.next() {
            Some(_) => Err(NameError::Character { name: text.to_owned(), found: '/' }),
            None => Ok(Self { subscription, group, name }),
        }
    }
}

/// A scope's case-folded path: the key of everything that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ScopeId(Arc<str>);

impl ScopeId {
    /// `subscription/group/scope`, lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An id sorts like its text, so a range over a map of scopes can start at a prefix.
impl std::borrow::Borrow<str> for ScopeId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ScopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_case_and_compare_without_it() {
        let (a, b): (Name, Name) = ("Web-0".parse().unwrap(), "web-0".parse().unwrap());
        assert_eq!(a, b);
        assert_eq!(a.as_str(), "Web-0");
        assert_eq!(a.folded(), "web-0");
    }

    #[test]
    fn names_reject_unsafe_characters() {
        for (text, found) in [("a/b", '/'), ("a b", ' '), ("a\"b", '"'), ("ä", 'ä')] {
            assert_eq!(text.parse::<Name>(), Err(NameError::Character { name: text.into(), found }));
        }
        assert_eq!("".parse::<Name>(), Err(NameError::Empty));
        for flag in ["-rf", "--help", "-"] {
            let said = flag.parse::<Name>().unwrap_err().to_string();
            assert!(said.contains(flag) && said.contains("begins with '-'"), "{said}");
            assert!(format!("s/{flag}/web").parse::<ScopePath>().is_err());
        }
        assert!("web-0-".parse::<Name>().is_ok());
        assert!(matches!("x".repeat(81).parse::<Name>(), Err(NameError::TooLong { chars: 81, .. })));
    }

    #[test]
    fn paths_fill_in_defaults() {
        let path: ScopePath = "Web".parse().unwrap();
        assert_eq!(path.to_string(), "default/default/Web");
        assert_eq!(path.id().as_str(), "default/default/web");
        assert_eq!("s/g/w".parse::<ScopePath>().unwrap().to_string(), "s/g/w");
        assert!("x/s/g/w".parse::<ScopePath>().is_err());
        assert!("s//w".parse::<ScopePath>().is_err());
    }

    #[test]
    fn event_id_depends_on_each_part_only() {
        let scope = "web".parse::<ScopePath>().unwrap().id();
        let [one, two] = [1, 2].map(|n| OperationId(Uuid::from_u128(n)));
        let vm = VmId(Uuid::from_u128(7));
        let id = EventId::derive(one, &scope, 0, None);
        assert_eq!(id, EventId::derive(one, &scope, 0, None));
        assert_ne!(id, EventId::derive(two, &scope, 0, None));
        assert_ne!(id, EventId::derive(one, &scope, 1, None));
        assert_ne!(id, EventId::derive(one, &scope, 0, Some(vm)));
    }
}
