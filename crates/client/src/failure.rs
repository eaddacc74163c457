//! Failed requests to the platform.

use std::time::Duration;

use crate::endpoint::Endpoint;

/// A failed request, with a message of one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
#[non_exhaustive]
pub struct Failure {
    /// Class of the failure.
    pub kind: FailureKind,
    /// One line: the endpoint and what went wrong.
    pub text: String,
    /// Delay requested by the server.
    pub retry_after: Option<Duration>,
}

/// Class of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// No connection.
    Unreachable,
    /// No response in time.
    TimedOut,
    /// The connection broke, or the response is no HTTP or too large.
    Broken,
    /// A response with this status.
    Status(u16),
    /// A response that should be a document and is not.
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

    /// Whether the failure may be temporary: all except refusals by the platform.
    pub fn may_pass(self) -> bool {
        match self {
            FailureKind::Unreachable
            | FailureKind::TimedOut
            | FailureKind::Broken
            | FailureKind::Unreadable => true,
            FailureKind::Status(status) => matches!(status, 408 | 410 | 429 | 500..),
        }
    }

    /// Whether there was no response at all.
    pub fn is_silence(self) -> bool {
        match self {
            FailureKind::Unreachable | FailureKind::TimedOut => true,
            FailureKind::Broken | FailureKind::Status(_) | FailureKind::Unreadable => false,
        }
    }
}

impl Failure {
    /// A response of this endpoint with unexpected content.
    pub(crate) fn unreadable(endpoint: &Endpoint, what: impl std::fmt::Display) -> Self {
        Failure::new(FailureKind::Unreadable, format!("{endpoint}: {what}"))
    }

    pub(crate) fn new(kind: FailureKind, text: impl Into<String>) -> Self {
        Failure { kind, text: text.into(), retry_after: None }
    }
}
