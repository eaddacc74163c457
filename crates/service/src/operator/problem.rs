//! Every error of the API, as `application/problem+json` with a stable code. This is the one place that
//! decides which failure is which HTTP status.
//!
//! What went wrong inside the service has two messages: the caller reads what it means for the request and what to do, the
//! log has the reason, which may name files and records.

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

/// What a caller reads of a record that cannot be read.
const BAD_RECORD: &str =
    "a record of it cannot be read; the service's log names the record, 'notbefore check' lists all damage";

/// What most handlers answer.
pub type ApiResult<T> = Result<Json<T>, Problem>;

/// An error on its way out.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    code: String,
    detail: String,
    candidates: Vec<String>,
    hidden: bool,
    /// In seconds.
    retry_after: Option<NonZeroU32>,
}

/// What the audit trail keeps of an answer that refused somebody something; it travels beside the response.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The problem's code, or `hidden` for what is there and not below the caller's paths.
    pub code: String,
}

impl Problem {
    /// A problem of one's own.
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

    /// A failure of the service's own: `why` is for the log alone.
    fn internal(status: StatusCode, code: &str, detail: &str, why: &dyn fmt::Display) -> Self {
        tracing::warn!(target: "notbefore::operator", code, %why, "a request failed");
        Self::new(status, code, detail)
    }

    /// Too many requests; one may come again after a while.
    pub fn too_many(code: &str, detail: impl Into<String>, retry_after: Duration) -> Self {
        // Whole seconds, and never too soon.
        let seconds = u32::try_from(retry_after.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX);
        let retry_after = NonZeroU32::new(seconds).or(Some(NonZeroU32::MIN));
        Self { retry_after, ..Self::new(StatusCode::TOO_MANY_REQUESTS, code, detail) }
    }

    /// A request that cannot be understood.
    pub fn bad_request(code: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// Whether it is of this kind.
    pub fn is(&self, code: &str) -> bool {
        self.code == code
    }

    /// Names what was perhaps meant, where the problem is of this kind.
    pub fn with_candidates(mut self, code: &str, candidates: impl FnOnce() -> Vec<String>) -> Self {
        if self.code == code {
            self.candidates = candidates();
            if !self.candidates.is_empty() {
                self.detail = format!("{}; did you mean {}?", self.detail, self.candidates.join(", "));
            }
        }
        self
    }

    /// Something that the caller may see and not do; the detail names the role that is needed.
    pub fn not_permitted(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "not_permitted", detail)
    }

    /// The same problem, about something that is there and does not exist for this caller. The caller cannot
    /// tell the difference; the audit trail can.
    pub fn hide_existence(self, hidden: bool) -> Self {
        Self { hidden, ..self }
    }

    /// Something that is not there.
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

fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        // Guests alone are told so, at their own server.
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
        Refusal::RevisionDiffers { .. } => StatusCode::PRECONDITION_FAILED,
        Refusal::EventEnded(_)
        | Refusal::EventStarted(_)
        | Refusal::EventNotStarted(_)
        | Refusal::NotExec { .. }
        | Refusal::NothingFailed(_)
        | Refusal::UpdateDomainBusy { .. }
        | Refusal::PartOfHostOperation { .. }
        | Refusal::NothingToStart(_)
        | Refusal::StartsApart(_)
        | Refusal::OperationNotStarted { .. }
        | Refusal::OperationStarted(_)
        | Refusal::Deallocated(_)
        | Refusal::NotSpot(_)
        | Refusal::NothingRuns { .. }
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
        let code = failure.code();
        match failure {
            Failure::Refused(refusal) => refusal.into(),
            Failure::KeyReused => Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, failure.to_string()),
            Failure::Unavailable(_) | Failure::OutcomeUnknown(_) => {
                // What it says is for the caller; its cause is for the log, where there is one.
                let why = failure.source().map(ToString::to_string);
                let why = why.unwrap_or_else(|| failure.to_string());
                Self::internal(StatusCode::SERVICE_UNAVAILABLE, code, &failure.to_string(), &why)
            }
        }
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
            ReadError::Unavailable(_) => {
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
