//! Errors of the API, as `application/problem+json` with stable codes. Maps each failure to its HTTP status.
//!
//! An internal failure has two messages. The caller reads what it means for the request and what to do. The log has
//! the reason, which may contain file names and record keys.

use std::error::Error as _;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use notbefore_core::Refusal;
use notbefore_engine::{DecodeError, Failure};
use notbefore_store::ReadError;
use notbefore_wire::operator as wire;

use crate::names::NameError;

/// The detail for a record that cannot be read.
const BAD_RECORD: &str =
    "a record of it cannot be read; the service's log names the record, 'notbefore check' lists all damage";

pub type ApiResult<T> = Result<Json<T>, Problem>;

/// An error response.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    code: String,
    detail: String,
    candidates: Vec<String>,
    hidden: bool,
    /// Retry-After, in seconds.
    retry_after: Option<NonZeroU32>,
}

/// Marks a response as a refusal for the audit trail (a response extension).
#[derive(Clone, Debug)]
pub struct Refused {
    /// The problem's code, or `hidden` for a resource outside the caller's paths.
    pub code: String,
}

impl Problem {
    pub fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Self {
        let passes = matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        Self {
            status,
            code: code.to_owned(),
            detail: detail.into(),
            candidates: Vec::new(),
            hidden: false,
            retry_after: passes.then_some(NonZeroU32::MIN),
        }
    }

    /// An internal failure: `why` is only logged.
    fn internal(status: StatusCode, code: &str, detail: &str, why: &dyn fmt::Display) -> Self {
        log_failure(code, why);
        Self::new(status, code, detail)
    }

    /// A failure that is already in the log, or that a caller could cause at any rate.
    pub fn unlogged(failure: Failure) -> Self {
        let (code, detail) = (failure.code(), failure.to_string());
        match failure {
            Failure::Refused(refusal) => refusal.into(),
            Failure::KeyReused => Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail),
            Failure::Unavailable(_) | Failure::OutcomeUnknown(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail)
            }
        }
    }

    /// 429 with `Retry-After`.
    pub fn too_many(code: &str, detail: impl Into<String>, retry_after: Duration) -> Self {
        // Whole seconds, rounded up.
        let seconds = u32::try_from(retry_after.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX);
        let retry_after = NonZeroU32::new(seconds).or(Some(NonZeroU32::MIN));
        Self { retry_after, ..Self::new(StatusCode::TOO_MANY_REQUESTS, code, detail) }
    }

    /// 400.
    pub fn bad_request(code: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// Whether the problem has this code.
    pub fn is(&self, code: &str) -> bool {
        self.code == code
    }

    /// Adds the things that a short name could mean.
    pub fn of_candidates(self, candidates: Vec<String>) -> Self {
        Self { candidates, ..self }
    }

    /// Adds suggestions if the problem has this code.
    pub fn with_candidates(mut self, code: &str, candidates: impl FnOnce() -> Vec<String>) -> Self {
        if self.code == code {
            self.candidates = candidates();
            if !self.candidates.is_empty() {
                self.detail = format!("{}; did you mean {}?", self.detail, self.candidates.join(", "));
            }
        }
        self
    }

    pub fn with_detail(self, detail: String) -> Self {
        Self { detail, ..self }
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// 403; the detail names the role needed.
    pub fn not_permitted(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "not_permitted", detail)
    }

    /// Marks the problem as one about an existing resource that the caller must not see. The response is the same as
    /// for a missing one; the audit trail records the difference.
    pub fn hide_existence(self, hidden: bool) -> Self {
        Self { hidden, ..self }
    }

    /// 404.
    pub fn not_found(code: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let denied = matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let refused = (denied || self.hidden)
            .then(|| Refused { code: if self.hidden { "hidden".to_owned() } else { self.code.clone() } });
        let body = wire::Problem {
            status: self.status.as_u16(),
            code: self.code,
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            detail: self.detail,
            candidates: self.candidates,
        };
        let mut response = (self.status, Json(body)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        if let Some(refused) = refused {
            response.extensions_mut().insert(refused);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.get()));
        }
        response
    }
}

fn log_failure(code: &str, why: &dyn fmt::Display) {
    tracing::warn!(target: "notbefore::operator", code, %why, "request failed");
}

fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        // Only guests get this refusal, from the guest listener.
        Refusal::UnknownCaller(_) => StatusCode::FORBIDDEN,
        Refusal::UnknownEvent(_)
        | Refusal::UnknownVm(_)
        | Refusal::UnknownScope(_)
        | Refusal::UnknownHost(_)
        | Refusal::UnknownOperation(_)
        | Refusal::UnknownToken(_) => StatusCode::NOT_FOUND,
        Refusal::NotBeforeTooNear { .. }
        | Refusal::NotBeforeWithoutNotice(_)
        | Refusal::NoResources
        | Refusal::TerminateNoticeOutOfRange(_)
        | Refusal::AddressTwice { .. }
        | Refusal::TooManyAddresses { .. }
        | Refusal::Name(_) => StatusCode::BAD_REQUEST,
        Refusal::RevisionDiffers { .. } | Refusal::PlanDiffers { .. } => StatusCode::PRECONDITION_FAILED,
        Refusal::EventEnded(_)
        | Refusal::EventStarted(_)
        | Refusal::EventNotStarted(_)
        | Refusal::Advisory(_)
        | Refusal::NotExec { .. }
        | Refusal::NothingFailed(_)
        | Refusal::NoHostCommandFailed(_)
        | Refusal::UpdateDomainBusy { .. }
        | Refusal::PartOfHostOperation { .. }
        | Refusal::NothingToStart(_)
        | Refusal::StartsApart(_)
        | Refusal::OperationNotStarted { .. }
        | Refusal::OperationStarted(_)
        | Refusal::Deallocated(_)
        | Refusal::NotSpot(_)
        | Refusal::NothingRuns { .. }
        | Refusal::HostInUse { .. }
        | Refusal::VmsGone
        | Refusal::TooManyEvents
        | Refusal::TooManyUserOperations { .. }
        | Refusal::TooManyStoredOperations { .. }
        | Refusal::TooManyMembers
        | Refusal::StandaloneHoldsOne(_)
        | Refusal::KindDiffers { .. }
        | Refusal::NameTaken(_)
        | Refusal::AddressTaken { .. }
        | Refusal::ScopeTooLarge { .. }
        | Refusal::VmTooLarge { .. }
        | Refusal::OperationTooLarge { .. }
        | Refusal::TokenTaken(_)
        | Refusal::TooManyTokens
        | Refusal::LastOperator(_) => StatusCode::CONFLICT,
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::new(status(&refusal), refusal.code(), refusal.to_string())
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        // The message goes to the caller, the cause to the log.
        match &failure {
            Failure::Unavailable(cause) | Failure::OutcomeUnknown(cause) => {
                let why = cause.source().map_or_else(|| failure.to_string(), ToString::to_string);
                log_failure(failure.code(), &why);
            }
            Failure::Refused(_) | Failure::KeyReused => {}
        }
        Self::unlogged(failure)
    }
}

impl From<NameError> for Problem {
    fn from(error: NameError) -> Self {
        let detail = error.to_string();
        match error {
            NameError::Unknown(_) => Self::not_found("unknown_vm", detail),
            NameError::Ambiguous { candidates, .. } => {
                Self { candidates, ..Self::new(StatusCode::CONFLICT, "ambiguous_name", detail) }
            }
        }
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        let (status, code, detail) = match &error {
            ReadError::Unavailable(_) | ReadError::Compacted => {
                let detail = "the service cannot read its store now, /readyz says why; repeat the request";
                (StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
            }
            ReadError::Damaged { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "bad_record", BAD_RECORD),
        };
        Self::internal(status, code, detail, &error)
    }
}

impl From<DecodeError> for Problem {
    fn from(error: DecodeError) -> Self {
        Self::internal(StatusCode::INTERNAL_SERVER_ERROR, "bad_record", BAD_RECORD, &error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use notbefore_engine::request::{FailureCause, StoreError};

    #[test]
    fn internal_reason_does_not_reach_the_caller() {
        let why = || "/var/lib/notbefore/store.redb: No space left on device".to_owned();
        let content = DecodeError::Content { key: "past/x".to_owned(), why: why() };
        let trouble = || FailureCause::Store(StoreError(why()));
        for (problem, code) in [
            (Problem::from(Failure::Unavailable(trouble())), "unavailable"),
            (Problem::from(Failure::OutcomeUnknown(trouble())), "outcome_unknown"),
            (Problem::from(ReadError::Unavailable(why())), "unavailable"),
            (Problem::from(ReadError::Damaged { key: "past/x".to_owned() }), "bad_record"),
            (Problem::from(content), "bad_record"),
        ] {
            assert!(problem.is(code), "{problem:?}");
            assert!(
                !problem.detail.contains("store.redb") && !problem.detail.contains("past/x"),
                "{problem:?}"
            );
        }
    }
}
