//! Why the platform was asked in vain.

use std::time::Duration;

use crate::endpoint::Endpoint;

/// Why the platform was asked in vain, in a line for a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
#[non_exhaustive]
pub struct Failure {
    /// What sort of failure it is.
    pub kind: FailureKind,
    /// In a line for a person: the endpoint, and what was wrong with it.
    pub text: String,
    /// When it wants to be asked again, if it has said so.
    pub retry_after: Option<Duration>,
}

/// What sort of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// Nobody answers there.
    Unreachable,
    /// Somebody does, and not in time.
    TimedOut,
    /// The connection broke, or what came is no HTTP, or too large.
    Broken,
    /// An answer with this status.
    Status(u16),
    /// An answer that should be a document, and is none.
    Unreadable,
}

impl FailureKind {
    /// One word, for metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureKind::Unreachable => "unreachable",
            FailureKind::TimedOut => "timed_out",
            FailureKind::Broken => "broken",
            FailureKind::Status(_) => "status",
            FailureKind::Unreadable => "unreadable",
        }
    }

    /// Whether it may be gone by itself in a moment: all but what the platform refuses.
    pub fn may_pass(self) -> bool {
        match self {
            FailureKind::Unreachable
            | FailureKind::TimedOut
            | FailureKind::Broken
            | FailureKind::Unreadable => true,
            FailureKind::Status(status) => matches!(status, 408 | 410 | 429 | 500..),
        }
    }

    /// Whether nobody is heard of there at all.
    pub fn is_silence(self) -> bool {
        match self {
            FailureKind::Unreachable | FailureKind::TimedOut => true,
            FailureKind::Broken | FailureKind::Status(_) | FailureKind::Unreadable => false,
        }
    }
}

impl Failure {
    /// An answer of this endpoint that is not what was asked for.
    pub(crate) fn unreadable(endpoint: &Endpoint, what: impl std::fmt::Display) -> Self {
        Failure::new(FailureKind::Unreadable, format!("{endpoint}: {what}"))
    }

    pub(crate) fn new(kind: FailureKind, text: impl Into<String>) -> Self {
        Failure { kind, text: text.into(), retry_after: None }
    }
}
