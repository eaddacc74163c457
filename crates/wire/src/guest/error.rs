//! Errors of guest requests, each with its status and the exact bytes of its body.
//!
//! Three bodies are byte-identical to Azure's, because clients match on them: the missing `Metadata` header, the
//! invalid api-version with the newest ones, and the version that is not served. Azure publishes no others. The
//! remaining bodies say what is wrong and what to send instead, without revealing what a guest must not know:
//!
//! - An unknown event, an event of another scope and an EventId that is not a GUID get the same bytes.
//! - A caller that is not a known VM gets the same sentence for every request.

use std::borrow::Cow;

use super::instance::InstanceVersion;
use super::start_requests::StartRequestsError;
use super::version::EventsVersion;

/// The two groups of paths with api-versions of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// `/metadata/scheduledevents`
    Events,
    /// `/metadata/instance`
    Instance,
}

impl Category {
    /// The three newest documented versions, newest first.
    fn newest(self) -> [&'static str; 3] {
        match self {
            Category::Events => {
                // 2024-07-09 is not listed: not every platform serves it, and clients may take the first one.
                let [.., third, second, first, _] = EventsVersion::ALL;
                [first.as_str(), second.as_str(), third.as_str()]
            }
            Category::Instance => {
                let [.., third, second, first] = InstanceVersion::ALL;
                [first.as_str(), second.as_str(), third.as_str()]
            }
        }
    }
}

/// The methods that a path accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Methods {
    /// GET only.
    Get,
    /// GET for the document, POST for approvals.
    GetAndPost,
}

impl Methods {
    /// The value of the `Allow` header.
    pub const fn allow(self) -> &'static str {
        match self {
            Methods::Get => "GET",
            Methods::GetAndPost => "GET, POST",
        }
    }
}

/// Why a guest's request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestError {
    /// The caller is not a known VM.
    UnknownCaller,
    /// The VM exceeds its rate limit.
    TooManyRequests,
    /// Not an HTTP/1.1 request, or an ambiguous one (request smuggling).
    Malformed(&'static str),
    /// The request came through a proxy.
    Forwarded,
    /// No `Metadata` header.
    MetadataMissing,
    /// A `Metadata` header with a value other than `true`.
    MetadataNotTrue,
    /// Unknown path, or no such element in the instance document.
    NotFound,
    /// The path does not accept the method.
    MethodNotAllowed(Methods),
    /// A query parameter is given twice.
    DuplicateParameter,
    /// The api-version is missing or malformed; for instance metadata, also one that is not served.
    ApiVersion(Category),
    /// The api-version is a date at which scheduled events are not served. Clients probe newer versions and expect 404.
    VersionNotServed,
    /// A `format` that the path does not support.
    Format(Category),
    /// A single value was requested as JSON.
    LeafNeedsText,
    /// The body is not an approval.
    Body(StartRequestsError),
    /// The body is larger than the limit.
    BodyTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The request target is longer than the limit.
    TargetTooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// The request head exceeds a limit.
    HeadTooLarge {
        /// The limit in bytes.
        bytes: usize,
        /// The limit of headers.
        headers: usize,
    },
    /// The request did not arrive in time.
    Timeout,
    /// An EventId names no event of the VM's scope.
    UnknownEvent,
    /// It is unknown whether the approval was stored.
    OutcomeUnknown,
    /// The service cannot store approvals now.
    Unavailable,
    /// The service cannot answer now: it does not reach its store.
    StoreAway,
}

impl From<StartRequestsError> for GuestError {
    fn from(error: StartRequestsError) -> Self {
        if error == StartRequestsError::NotAGuid { GuestError::UnknownEvent } else { GuestError::Body(error) }
    }
}

impl GuestError {
    /// All statuses that [`GuestError::status`] returns, sorted.
    pub const STATUSES: [u16; 10] = [400, 403, 404, 405, 408, 413, 414, 429, 431, 503];

    /// All words that [`GuestError::reason`] returns, each with its status.
    pub const REASONS: [(&str, u16); 22] = [
        ("unknown_caller", 403),
        ("too_many_requests", 429),
        ("malformed", 400),
        ("forwarded", 400),
        ("metadata_missing", 400),
        ("metadata_not_true", 400),
        ("not_found", 404),
        ("method_not_allowed", 405),
        ("duplicate_parameter", 400),
        ("bad_api_version", 400),
        ("version_not_served", 404),
        ("bad_format", 400),
        ("leaf_needs_text", 400),
        ("bad_body", 400),
        ("body_too_large", 413),
        ("target_too_long", 414),
        ("head_too_large", 431),
        ("timeout", 408),
        ("unknown_event", 400),
        ("outcome_unknown", 503),
        ("unavailable", 503),
        ("store_away", 503),
    ];

    /// `Retry-After` of a 429, in seconds; the rate limit of a VM has recovered fully by then.
    pub const RETRY_AFTER_S: u32 = 1;

    /// The HTTP status code.
    pub const fn status(&self) -> u16 {
        match self {
            GuestError::Malformed(_)
            | GuestError::Forwarded
            | GuestError::MetadataMissing
            | GuestError::MetadataNotTrue
            | GuestError::DuplicateParameter
            | GuestError::ApiVersion(_)
            | GuestError::Format(_)
            | GuestError::LeafNeedsText
            | GuestError::Body(_)
            | GuestError::UnknownEvent => 400,
            GuestError::UnknownCaller => 403,
            GuestError::NotFound | GuestError::VersionNotServed => 404,
            GuestError::MethodNotAllowed(_) => 405,
            GuestError::Timeout => 408,
            GuestError::BodyTooLarge { .. } => 413,
            GuestError::TargetTooLong { .. } => 414,
            GuestError::TooManyRequests => 429,
            GuestError::HeadTooLarge { .. } => 431,
            GuestError::OutcomeUnknown | GuestError::Unavailable | GuestError::StoreAway => 503,
        }
    }

    /// A stable word for the error, in logs, metrics and the operator API.
    pub const fn reason(&self) -> &'static str {
        match self {
            GuestError::UnknownCaller => "unknown_caller",
            GuestError::TooManyRequests => "too_many_requests",
            GuestError::Malformed(_) => "malformed",
            GuestError::Forwarded => "forwarded",
            GuestError::MetadataMissing => "metadata_missing",
            GuestError::MetadataNotTrue => "metadata_not_true",
            GuestError::NotFound => "not_found",
            GuestError::MethodNotAllowed(_) => "method_not_allowed",
            GuestError::DuplicateParameter => "duplicate_parameter",
            GuestError::ApiVersion(_) => "bad_api_version",
            GuestError::VersionNotServed => "version_not_served",
            GuestError::Format(_) => "bad_format",
            GuestError::LeafNeedsText => "leaf_needs_text",
            GuestError::Body(_) => "bad_body",
            GuestError::BodyTooLarge { .. } => "body_too_large",
            GuestError::TargetTooLong { .. } => "target_too_long",
            GuestError::HeadTooLarge { .. } => "head_too_large",
            GuestError::Timeout => "timeout",
            GuestError::UnknownEvent => "unknown_event",
            GuestError::OutcomeUnknown => "outcome_unknown",
            GuestError::Unavailable => "unavailable",
            GuestError::StoreAway => "store_away",
        }
    }

    /// The sentence in the body.
    pub fn message(&self) -> String {
        let body = serde_json::from_str::<serde_json::Value>(&self.body());
        let error = body.ok().and_then(|body| body.get("error")?.as_str().map(str::to_owned));
        error.unwrap_or_default()
    }

    /// The JSON body; always the same bytes for the same error.
    pub fn body(&self) -> Cow<'static, str> {
        let text = match self {
            GuestError::MetadataMissing => {
                return r#"{ "error": "Bad request: . Required metadata header not specified" }"#.into();
            }
            GuestError::ApiVersion(category) => {
                let [first, second, third] = category.newest();
                return format!(
                    r#"{{"error":"Bad request. api-version is invalid or was not specified in the request. For more information refer to aka.ms/azureimds","newest-versions":["{first}","{second}","{third}"]}}"#
                )
                .into();
            }
            GuestError::VersionNotServed => r#"{ "error": "Not found. Invalid version requested" }"#,
            GuestError::UnknownCaller => r#"{"error":"Forbidden"}"#,
            GuestError::TooManyRequests => {
                r#"{"error":"Too many requests. Once a second is often enough: wait and ask again"}"#
            }
            GuestError::Malformed(what) => {
                return format!(r#"{{"error":"Bad request. Not a valid HTTP/1.1 request: {what}"}}"#).into();
            }
            GuestError::Forwarded => {
                r#"{"error":"Bad request. X-Forwarded-For is not accepted: bypass proxies and ask this address directly"}"#
            }
            GuestError::MetadataNotTrue => {
                r#"{"error":"Bad request. The Metadata header must read: Metadata: true"}"#
            }
            GuestError::NotFound => r#"{"error":"Not found"}"#,
            GuestError::MethodNotAllowed(methods) => match methods {
                Methods::Get => r#"{"error":"Method not allowed. This path takes GET"}"#,
                Methods::GetAndPost => r#"{"error":"Method not allowed. This path takes GET and POST"}"#,
            },
            GuestError::DuplicateParameter => {
                r#"{"error":"Bad request. A query parameter is given more than once: give each one once"}"#
            }
            GuestError::Format(category) => match category {
                Category::Events => r#"{"error":"Bad request. The format of this path is json"}"#,
                Category::Instance => r#"{"error":"Bad request. The format is json or text"}"#,
            },
            GuestError::LeafNeedsText => {
                r#"{"error":"Bad request. A single value is served as text: add format=text to the query"}"#
            }
            GuestError::Body(error) => {
                return format!(
                    r#"{{"error":"Bad request. {error}; send {{\"StartRequests\":[{{\"EventId\":\"...\"}}]}}"}}"#
                )
                .into();
            }
            GuestError::BodyTooLarge { limit } => {
                return format!(r#"{{"error":"Payload too large. A body has at most {limit} bytes"}}"#)
                    .into();
            }
            GuestError::TargetTooLong { limit } => {
                return format!(r#"{{"error":"URI too long. A request target has at most {limit} bytes"}}"#)
                    .into();
            }
            GuestError::HeadTooLarge { bytes, headers } => {
                return format!(
                    r#"{{"error":"Request header fields too large. A head has at most {bytes} bytes and {headers} headers"}}"#
                )
                .into();
            }
            GuestError::Timeout => {
                r#"{"error":"Request timeout. The request did not arrive in time: send it again"}"#
            }
            GuestError::UnknownEvent => {
                r#"{"error":"Bad request. An EventId names no event of this scope: approve events of the current document"}"#
            }
            GuestError::OutcomeUnknown => {
                r#"{"error":"Service unavailable. The approval may or may not have been kept: send it again"}"#
            }
            GuestError::Unavailable => {
                r#"{"error":"Service unavailable. The approval was not kept: send it again"}"#
            }
            GuestError::StoreAway => {
                r#"{"error":"Service unavailable. The request cannot be answered now: send it again"}"#
            }
        };
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<GuestError> {
        vec![
            GuestError::UnknownCaller,
            GuestError::TooManyRequests,
            GuestError::Malformed("no Host header"),
            GuestError::Forwarded,
            GuestError::MetadataMissing,
            GuestError::MetadataNotTrue,
            GuestError::NotFound,
            GuestError::MethodNotAllowed(Methods::Get),
            GuestError::MethodNotAllowed(Methods::GetAndPost),
            GuestError::DuplicateParameter,
            GuestError::ApiVersion(Category::Events),
            GuestError::ApiVersion(Category::Instance),
            GuestError::VersionNotServed,
            GuestError::Format(Category::Events),
            GuestError::Format(Category::Instance),
            GuestError::LeafNeedsText,
            GuestError::Body(StartRequestsError::EventIdMissing { index: 3 }),
            GuestError::BodyTooLarge { limit: 1 },
            GuestError::TargetTooLong { limit: 2 },
            GuestError::HeadTooLarge { bytes: 3, headers: 4 },
            GuestError::Timeout,
            GuestError::UnknownEvent,
            GuestError::OutcomeUnknown,
            GuestError::Unavailable,
            GuestError::StoreAway,
        ]
    }

    #[test]
    fn error_bodies_are_json_and_statuses_listed() {
        for error in all() {
            let body: serde_json::Value = serde_json::from_str(&error.body()).unwrap();
            assert_eq!(body["error"], error.message(), "{error:?}");
            assert!(GuestError::STATUSES.contains(&error.status()), "{error:?}");
            assert!(GuestError::REASONS.contains(&(error.reason(), error.status())), "{error:?}");
        }
        let reasons: std::collections::HashSet<&str> = all().iter().map(GuestError::reason).collect();
        assert_eq!(reasons.len(), GuestError::REASONS.len(), "every reason is in use");
        assert!(GuestError::STATUSES.is_sorted());
    }

    #[test]
    fn matched_error_bodies_are_exact() {
        let body = GuestError::MetadataMissing.body();
        assert_eq!(body, r#"{ "error": "Bad request: . Required metadata header not specified" }"#);
        assert_eq!(body.len(), 68);
        assert_eq!(
            GuestError::VersionNotServed.body(),
            r#"{ "error": "Not found. Invalid version requested" }"#
        );
        assert_eq!(
            GuestError::ApiVersion(Category::Events).body(),
            r#"{"error":"Bad request. api-version is invalid or was not specified in the request. For more information refer to aka.ms/azureimds","newest-versions":["2020-07-01","2019-08-01","2019-04-01"]}"#
        );
        assert_eq!(
            GuestError::ApiVersion(Category::Instance).body(),
            r#"{"error":"Bad request. api-version is invalid or was not specified in the request. For more information refer to aka.ms/azureimds","newest-versions":["2025-04-07","2024-07-17","2024-03-15"]}"#
        );
    }

    #[test]
    fn malformed_event_id_is_unknown_event() {
        assert_eq!(GuestError::from(StartRequestsError::NotAGuid), GuestError::UnknownEvent);
        assert_eq!(
            GuestError::from(StartRequestsError::Empty).body(),
            r#"{"error":"Bad request. StartRequests is empty; send {\"StartRequests\":[{\"EventId\":\"...\"}]}"}"#
        );
    }
}
