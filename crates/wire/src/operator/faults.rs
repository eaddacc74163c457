//! `/v1/faults`: faults of the guest listener, which rehearse what clients have reported of the real service.
//!
//! [`NewFault`] is the request, flat, so that JSON, flags and scenario files have the same fields. [`NewFault::check`]
//! turns it into a [`FaultEffect`] with its defaults, or says which field is wrong and what to write.
//!
//! Several faults on one request combine in the order of [`FaultKind::ALL`]: a late answer delays whatever follows, a
//! reset or a status ends the request, then the document changes from the inside out, then its headers and its pace.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{FaultKind, FaultRequests};

/// Default delay of a late first answer: the two minutes that Azure documents for the first call.
pub const LATE_S: i64 = 120;
/// Default time of a slow body: longer than the read timeout of most published clients.
pub const SLOW_S: i64 = 30;
/// Longest delay of an answer or a body, in seconds. A delayed answer holds its connection.
pub const DELAY_MAX_S: i64 = 3_600;
/// Default rise of the incarnation: one number is skipped.
pub const SKIP_BY: u64 = 2;
/// Largest rise of the incarnation with one change, so that it does not overflow within the service's life.
pub const SKIP_BY_MAX: u64 = 1_000_000;
/// Largest difference of the clocks, in seconds: a year.
pub const SKEW_MAX_S: i64 = 366 * 86_400;
/// Longest time that a fault is active, in seconds: 30 days.
pub const ACTIVE_MAX_S: u32 = 30 * 86_400;

/// The body of `POST /v1/faults`: a fault to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewFault {
    /// What it does.
    pub kind: FaultKind,
    /// The VM that it affects, by id or the end of its path. Default: all VMs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<String>,
    /// The requests that it affects. Default: `polls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<FaultRequests>,
    /// It affects every Nth request of each VM. Default: every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub every: Option<u32>,
    /// It ends after this many effects. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub count: Option<u32>,
    /// It ends after this many seconds. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 2592000)]
    pub active_seconds: Option<u32>,
    /// `late-first-answer`: the delay; default 120. `slow-body`: the time of the body; default 30. `clock-skew`: how far
    /// the platform's clock is ahead, negative for behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
    /// `status`: the status of the response, 400 to 599.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 400, maximum = 599)]
    pub status: Option<u16>,
    /// `skip-incarnations`: how far the incarnation rises with each change, at least 2; default 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 2, maximum = 1000000)]
    pub by: Option<u64>,
}

/// An active fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fault {
    /// Its number, unique in this run of the service.
    pub id: u64,
    /// The fault with its defaults; `vm` is the whole path.
    #[serde(flatten)]
    pub fault: NewFault,
    /// When it was added.
    pub added_at: Timestamp,
    /// When it ends by time, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
    /// Number of requests that it has affected.
    pub effects: u64,
}

/// All active faults, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FaultList {
    /// The faults.
    pub items: Vec<Fault>,
}

/// The answer to `DELETE /v1/faults`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClearedFaults {
    /// Number of faults that ended.
    pub cleared: u64,
}

/// What a fault does, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultEffect {
    LateFirstAnswer { seconds: u32 },
    Reset,
    Status(u16),
    StrictHeader,
    NotEnabled,
    ResetIncarnation,
    SkipIncarnations { by: u64 },
    HideEvents,
    ClockSkew { seconds: i64 },
    MissingEvents,
    RawNewlines,
    TextPlain,
    EmptyBody,
    SlowBody { seconds: u32 },
}

/// Why a fault cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    #[error("there is no fault {kind:?}; the kinds are {}", kinds())]
    UnknownKind { kind: String },
    #[error("requests is {0:?}; it must be polls, approvals or all")]
    UnknownRequests(String),
    #[error("a fault of kind {kind} needs {field}: {wanted}")]
    Missing { kind: FaultKind, field: &'static str, wanted: &'static str },
    #[error("{field} is {value}; for a fault of kind {kind} it must be {wanted}")]
    OutOfRange { kind: FaultKind, field: &'static str, value: i64, wanted: String },
    #[error("a fault of kind {kind} takes no {field}: leave it out")]
    NotTaken { kind: FaultKind, field: &'static str },
}

fn kinds() -> String {
    FaultKind::ALL.iter().map(FaultKind::as_str).collect::<Vec<_>>().join(", ")
}

impl NewFault {
    /// A fault for all polls of all VMs, with the defaults of its kind.
    pub fn new(kind: FaultKind) -> Self {
        NewFault {
            kind,
            vm: None,
            requests: None,
            every: None,
            count: None,
            active_seconds: None,
            seconds: None,
            status: None,
            by: None,
        }
    }

    /// Checks all fields and fills in the defaults.
    pub fn check(self) -> Result<(Self, FaultEffect), FaultError> {
        let kind = self.kind.clone();
        let out_of_range = |field, value: i64, wanted: String| {
            Err(FaultError::OutOfRange { kind: kind.clone(), field, value, wanted })
        };
        if let Some(FaultRequests::Unknown(word)) = &self.requests {
            return Err(FaultError::UnknownRequests(word.clone()));
        }
        for (field, value) in
            [("every", self.every), ("count", self.count), ("active_seconds", self.active_seconds)]
        {
            if value == Some(0) {
                return out_of_range(field, 0, "1 or more".to_owned());
            }
        }
        if let Some(seconds) = self.active_seconds.filter(|seconds| *seconds > ACTIVE_MAX_S) {
            return out_of_range("active_seconds", seconds.into(), format!("at most {ACTIVE_MAX_S}"));
        }
        let takes_seconds =
            matches!(kind, FaultKind::LateFirstAnswer | FaultKind::SlowBody | FaultKind::ClockSkew);
        for (field, is_given, is_taken) in [
            ("seconds", self.seconds.is_some(), takes_seconds),
            ("status", self.status.is_some(), kind == FaultKind::Status),
            ("by", self.by.is_some(), kind == FaultKind::SkipIncarnations),
        ] {
            if is_given && !is_taken && !matches!(kind, FaultKind::Unknown(_)) {
                return Err(FaultError::NotTaken { kind: kind.clone(), field });
            }
        }
        let delay = |default| match self.seconds.unwrap_or(default) {
            seconds @ 1..=DELAY_MAX_S => {
                u32::try_from(seconds).or_else(|_| out_of_range_delay(&kind, seconds))
            }
            seconds => out_of_range_delay(&kind, seconds),
        };
        let effect = match &kind {
            FaultKind::LateFirstAnswer => FaultEffect::LateFirstAnswer { seconds: delay(LATE_S)? },
            FaultKind::Reset => FaultEffect::Reset,
            FaultKind::Status => match self.status {
                Some(status @ 400..=599) => FaultEffect::Status(status),
                Some(status) => return out_of_range("status", status.into(), "400 to 599".to_owned()),
                None => {
                    let wanted = "the status of the response, 400 to 599";
                    return Err(FaultError::Missing { kind, field: "status", wanted });
                }
            },
            FaultKind::StrictHeader => FaultEffect::StrictHeader,
            FaultKind::NotEnabled => FaultEffect::NotEnabled,
            FaultKind::ResetIncarnation => FaultEffect::ResetIncarnation,
            FaultKind::SkipIncarnations => match self.by.unwrap_or(SKIP_BY) {
                by @ 2..=SKIP_BY_MAX => FaultEffect::SkipIncarnations { by },
                by => {
                    let by = i64::try_from(by).unwrap_or(i64::MAX);
                    return out_of_range("by", by, format!("2 to {SKIP_BY_MAX}"));
                }
            },
            FaultKind::HideEvents => FaultEffect::HideEvents,
            FaultKind::ClockSkew => match self.seconds {
                Some(seconds) if seconds.unsigned_abs() <= SKEW_MAX_S.unsigned_abs() => {
                    FaultEffect::ClockSkew { seconds }
                }
                Some(seconds) => {
                    return out_of_range("seconds", seconds, format!("-{SKEW_MAX_S} to {SKEW_MAX_S}"));
                }
                None => {
                    let wanted = "how far the platform's clock is ahead, negative for behind";
                    return Err(FaultError::Missing { kind, field: "seconds", wanted });
                }
            },
            FaultKind::MissingEvents => FaultEffect::MissingEvents,
            FaultKind::RawNewlines => FaultEffect::RawNewlines,
            FaultKind::TextPlain => FaultEffect::TextPlain,
            FaultKind::EmptyBody => FaultEffect::EmptyBody,
            FaultKind::SlowBody => FaultEffect::SlowBody { seconds: delay(SLOW_S)? },
            FaultKind::Unknown(word) => return Err(FaultError::UnknownKind { kind: word.clone() }),
        };
        let requests = Some(self.requests.clone().unwrap_or(FaultRequests::Polls));
        let (seconds, by) = effect.shown_numbers();
        Ok((NewFault { requests, seconds, by, ..self }, effect))
    }
}

fn out_of_range_delay<T>(kind: &FaultKind, value: i64) -> Result<T, FaultError> {
    let wanted = format!("1 to {DELAY_MAX_S}");
    Err(FaultError::OutOfRange { kind: kind.clone(), field: "seconds", value, wanted })
}

impl FaultEffect {
    /// The word for it.
    pub fn kind(&self) -> FaultKind {
        match self {
            FaultEffect::LateFirstAnswer { .. } => FaultKind::LateFirstAnswer,
            FaultEffect::Reset => FaultKind::Reset,
            FaultEffect::Status(_) => FaultKind::Status,
            FaultEffect::StrictHeader => FaultKind::StrictHeader,
            FaultEffect::NotEnabled => FaultKind::NotEnabled,
            FaultEffect::ResetIncarnation => FaultKind::ResetIncarnation,
            FaultEffect::SkipIncarnations { .. } => FaultKind::SkipIncarnations,
            FaultEffect::HideEvents => FaultKind::HideEvents,
            FaultEffect::ClockSkew { .. } => FaultKind::ClockSkew,
            FaultEffect::MissingEvents => FaultKind::MissingEvents,
            FaultEffect::RawNewlines => FaultKind::RawNewlines,
            FaultEffect::TextPlain => FaultKind::TextPlain,
            FaultEffect::EmptyBody => FaultKind::EmptyBody,
            FaultEffect::SlowBody { .. } => FaultKind::SlowBody,
        }
    }

    /// `seconds` and `by`, with the defaults filled in.
    fn shown_numbers(self) -> (Option<i64>, Option<u64>) {
        match self {
            FaultEffect::LateFirstAnswer { seconds } | FaultEffect::SlowBody { seconds } => {
                (Some(seconds.into()), None)
            }
            FaultEffect::ClockSkew { seconds } => (Some(seconds), None),
            FaultEffect::SkipIncarnations { by } => (None, Some(by)),
            FaultEffect::Reset
            | FaultEffect::Status(_)
            | FaultEffect::StrictHeader
            | FaultEffect::NotEnabled
            | FaultEffect::ResetIncarnation
            | FaultEffect::HideEvents
            | FaultEffect::MissingEvents
            | FaultEffect::RawNewlines
            | FaultEffect::TextPlain
            | FaultEffect::EmptyBody => (None, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_an_effect_and_defaults() {
        for kind in FaultKind::ALL {
            let seconds = (*kind == FaultKind::ClockSkew).then_some(-90);
            let status = (*kind == FaultKind::Status).then_some(500);
            let fault = NewFault { seconds, status, ..NewFault::new(kind.clone()) };
            let (checked, effect) = fault.check().unwrap();
            assert_eq!(effect.kind(), *kind);
            assert_eq!(checked.requests, Some(FaultRequests::Polls));
            assert_eq!(checked.clone().check().unwrap(), (checked, effect), "checking twice changes nothing");
        }
        let late = NewFault::new(FaultKind::LateFirstAnswer).check().unwrap();
        assert_eq!((late.0.seconds, late.1), (Some(120), FaultEffect::LateFirstAnswer { seconds: 120 }));
    }

    #[test]
    fn wrong_fields_are_refused_with_a_cure() {
        for (json, expected) in [
            (r#"{"kind":"late"}"#, "there is no fault \"late\"; the kinds are late-first-answer, reset,"),
            (
                r#"{"kind":"status"}"#,
                "a fault of kind status needs status: the status of the response, 400 to 599",
            ),
            (
                r#"{"kind":"status","status":200}"#,
                "status is 200; for a fault of kind status it must be 400 to 599",
            ),
            (r#"{"kind":"clock-skew"}"#, "a fault of kind clock-skew needs seconds: how far"),
            (r#"{"kind":"clock-skew","seconds":99999999999}"#, "it must be -31622400 to 31622400"),
            (r#"{"kind":"reset","seconds":1}"#, "a fault of kind reset takes no seconds: leave it out"),
            (r#"{"kind":"reset","by":2}"#, "a fault of kind reset takes no by"),
            (
                r#"{"kind":"reset","requests":"some"}"#,
                "requests is \"some\"; it must be polls, approvals or all",
            ),
            (r#"{"kind":"reset","every":0}"#, "every is 0; for a fault of kind reset it must be 1 or more"),
            (
                r#"{"kind":"skip-incarnations","by":1}"#,
                "by is 1; for a fault of kind skip-incarnations it must be 2 to",
            ),
            (
                r#"{"kind":"slow-body","seconds":0}"#,
                "seconds is 0; for a fault of kind slow-body it must be 1 to 3600",
            ),
            (r#"{"kind":"slow-body","seconds":-1}"#, "seconds is -1;"),
            (r#"{"kind":"slow-body","active_seconds":9999999}"#, "active_seconds is 9999999;"),
        ] {
            let fault: NewFault = serde_json::from_str(json).unwrap();
            let error = fault.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{json}: {error}");
        }
    }
}
