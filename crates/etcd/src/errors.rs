//! What a failed call says about its effect.
//!
//! Only an answer that etcd gives before it proposes a request to raft, or when it applies the request without any effect, is a
//! refusal. All other failures leave the outcome open. Unknown codes and texts belong to them, so that a new release
//! of etcd cannot turn a write into a refusal.

use std::error::Error;

use tonic::{Code, Status};

use crate::identity::IdentityChange;

/// Why a call has no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// No byte of the request was sent.
    #[error("{0}")]
    NotSent(String),
    /// etcd did nothing.
    #[error("{0}")]
    Refused(String),
    #[error("etcd does not permit it")]
    Denied,
    /// The token is missing, has expired or is older than the rights. etcd did nothing.
    #[error("etcd does not accept the token of this node: {0}")]
    Token(String),
    #[error("the revision has been compacted")]
    Compacted,
    #[error("the revision is in the future")]
    FutureRevision,
    /// The response is larger than this client accepts. Only reads have large responses.
    #[error("the response of etcd is too large: {0}")]
    ResponseTooLarge(String),
    /// etcd may have done it, or may do it later.
    #[error("{0}")]
    Unknown(String),
    #[error(transparent)]
    Identity(#[from] IdentityChange),
}

impl CallError {
    /// Whether another endpoint may give a better answer.
    pub(crate) fn blames_endpoint(&self) -> bool {
        match self {
            Self::Unknown(_) => true,
            Self::NotSent(_)
            | Self::Refused(_)
            | Self::Denied
            | Self::Token(_)
            | Self::Compacted
            | Self::FutureRevision
            | Self::ResponseTooLarge(_)
            | Self::Identity(_) => false,
        }
    }
}

/// Whether a call failed on this side of the connection, without an answer of etcd. Only such a failure has a source.
pub(crate) fn is_local(status: &Status) -> bool {
    status.source().is_some()
}

/// Reads the status of a call whose request was sent.
pub(crate) fn classify(status: &Status) -> CallError {
    if is_local(status) {
        return CallError::Unknown(format!("the connection to etcd was lost: {}", describe(status)));
    }
    by_code(status.code(), status.message())
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the codes are gRPC's")]
fn by_code(code: Code, text: &str) -> CallError {
    // A proxy may put the text of an error into another one.
    let says = |part: &str| text.contains(part);
    let owned = || text.to_owned();
    match code {
        Code::OutOfRange if says("required revision has been compacted") => CallError::Compacted,
        Code::OutOfRange if says("required revision is a future revision") => CallError::FutureRevision,
        // Of this client's decoder.
        Code::OutOfRange if says("decoded message length too large") => CallError::ResponseTooLarge(owned()),
        Code::InvalidArgument if says("request is too large") => CallError::Refused(format!(
            "etcd refuses a request of this size ({text}); set its --max-request-bytes to 1572864 (the default) or more"
        )),
        // The server's limit for a message is higher than --max-request-bytes, and is checked first.
        Code::ResourceExhausted if says("received message larger than max") => CallError::Refused(format!(
            "etcd refuses a request of this size ({text}); set its --max-request-bytes to 1572864 (the default) or more"
        )),
        Code::InvalidArgument if says("too many operations in txn request") => CallError::Refused(format!(
            "etcd refuses this number of operations ({text}); set its --max-txn-ops to 128 (the default) or more"
        )),
        Code::InvalidArgument if says("duplicate key given in txn request") => CallError::Refused(owned()),
        Code::InvalidArgument if says("user name is empty") => CallError::Token(owned()),
        Code::InvalidArgument if says("revision of auth store is old") => CallError::Token(owned()),
        Code::Unauthenticated if says("invalid auth token") => CallError::Token(owned()),
        Code::PermissionDenied if says("etcdserver: permission denied") => CallError::Denied,
        // Members that lag refuse requests instead of queueing them.
        Code::ResourceExhausted if says("etcdserver: too many requests") => CallError::Refused(owned()),
        // "database space exceeded" is not a refusal: a member can apply a transaction and then answer it so.
        _ => CallError::Unknown(match text {
            "" => format!("etcd answers {code:?}"),
            text => text.to_owned(),
        }),
    }
}

/// An error with its sources, without those that repeat the one before.
pub(crate) fn describe(error: &(dyn Error + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = match error.downcast_ref::<Status>() {
        Some(status) => status.source(),
        None => Some(error),
    };
    while let Some(error) = next {
        let text = error.to_string();
        if !texts.last().is_some_and(|last| last.contains(&text)) {
            texts.push(text);
        }
        next = error.source();
    }
    texts.join(": ")
}

/// The first error of a type among an error and its sources.
pub(crate) fn find_source<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        // An I/O error does not show what it holds as its source.
        if let Some(inner) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref)
            && let Some(found) = find_source(inner)
        {
            return Some(found);
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn refusals_are_those_without_effect() {
        let refused = [
            (Code::InvalidArgument, "etcdserver: request is too large"),
            (Code::InvalidArgument, "etcdserver: too many operations in txn request"),
            (Code::InvalidArgument, "etcdserver: duplicate key given in txn request"),
            (Code::ResourceExhausted, "grpc: received message larger than max (3000000 vs. 2097152)"),
            (Code::ResourceExhausted, "etcdserver: too many requests"),
        ];
        for (code, text) in refused {
            assert!(matches!(classify(&Status::new(code, text)), CallError::Refused(_)), "{text}");
        }
        let tokens = [
            (Code::Unauthenticated, "etcdserver: invalid auth token"),
            (Code::InvalidArgument, "etcdserver: revision of auth store is old"),
            (Code::InvalidArgument, "etcdserver: user name is empty"),
        ];
        for (code, text) in tokens {
            assert!(matches!(classify(&Status::new(code, text)), CallError::Token(_)), "{text}");
        }
        let denied = Status::new(Code::PermissionDenied, "etcdserver: permission denied");
        assert_eq!(classify(&denied), CallError::Denied);
        let compacted =
            Status::new(Code::OutOfRange, "etcdserver: mvcc: required revision has been compacted");
        assert_eq!(classify(&compacted), CallError::Compacted);
    }

    #[test]
    fn all_other_failures_leave_the_outcome_open() {
        let open = [
            (Code::Unavailable, "etcdserver: no leader"),
            (Code::Unavailable, "etcdserver: leader changed"),
            (Code::Unavailable, "etcdserver: request timed out"),
            (Code::Unavailable, "etcdserver: server stopped"),
            (Code::DeadlineExceeded, "context deadline exceeded"),
            (Code::Cancelled, "etcdserver: request canceled"),
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded"),
            (Code::DataLoss, "etcdserver: corrupt cluster"),
            (Code::Internal, "stream terminated by RST_STREAM"),
            (Code::InvalidArgument, "a text of a later release"),
            (Code::PermissionDenied, "a proxy's words"),
            (Code::Unauthenticated, "a proxy's words"),
            (Code::Unknown, ""),
        ];
        for (code, text) in open {
            assert!(matches!(classify(&Status::new(code, text)), CallError::Unknown(_)), "{text}");
        }
        // A failure of this side never counts as an answer, whatever it is called.
        let mut local = Status::new(Code::PermissionDenied, "etcdserver: permission denied");
        local.set_source(Arc::new(std::io::Error::other("reset")));
        assert!(matches!(classify(&local), CallError::Unknown(text) if text.contains("reset")));
    }
}
