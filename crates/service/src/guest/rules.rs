//! The checks of a request's head, in order: what the request asks for, or why it is refused.
//!
//! [`decide`] runs the checks from top to bottom; the first failure is the answer. It is pure: caller and rate limit
//! are checked before, the body after. The check of `Metadata` looks ahead: whether a POST needs it depends on its path
//! and api-version.

use std::borrow::Cow;

use notbefore_wire::guest::error::{Category, GuestError, Methods};
use notbefore_wire::guest::instance::InstanceVersion;
use notbefore_wire::guest::instance::path::Format;
use notbefore_wire::guest::version::EventsVersion;

use super::head::{Head, Name};
use super::settings::Mode;
use super::target::Target;

/// What a request asks for, after all checks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestKind<'b> {
    Document(EventsVersion),
    /// Approval of the events in the body.
    Approve,
    /// Instance metadata, or the part of it at `path`.
    Instance {
        version: InstanceVersion,
        path: Vec<Cow<'b, str>>,
        format: Format,
    },
    Versions,
}

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resource {
    /// Scheduled events. The version is in the query, or in the path of the 2017 form.
    Events {
        in_path: Option<EventsVersion>,
    },
    /// Scheduled events with a version in the path that is not served.
    EventsNotServed,
    Instance,
    Versions,
}

/// The paths under `/metadata`.
const RESOURCES: [(&str, Resource); 3] = [
    (EVENTS, Resource::Events { in_path: None }),
    ("instance", Resource::Instance),
    ("versions", Resource::Versions),
];
const ROOT: &str = "metadata";
const EVENTS: &str = "scheduledevents";
/// The path of nearly all requests.
const EVENTS_PATH: &str = "metadata/scheduledevents";
/// The version that `latest` in a path meant when it was in use.
const LATEST: EventsVersion = EventsVersion::V2017_03_01;

/// What a request is, by its path and method only: it may still be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestClass {
    Poll,
    Approval,
    /// Instance metadata, the list of versions, and unknown paths.
    Other,
}

/// What a request is by path and method, also if it will be refused.
pub(super) fn classify(head: &Head<'_, '_>, mode: Mode) -> RequestClass {
    match find(&Target::parse(head.target), mode, EventsVersion::NEWEST) {
        Some(Resource::Events { .. } | Resource::EventsNotServed) if head.method == "POST" => {
            RequestClass::Approval
        }
        Some(Resource::Events { .. } | Resource::EventsNotServed) => RequestClass::Poll,
        Some(Resource::Instance | Resource::Versions) | None => RequestClass::Other,
    }
}

/// Whether each `Metadata` header is exactly `true`, and there is one.
pub(super) fn has_strict_metadata(head: &Head<'_, '_>) -> bool {
    metadata(head, Mode::Strict, false).is_ok()
}

/// Runs the checks. `newest`: the newest version that is served. `is_proxied`: a trusted proxy sent the request.
pub(super) fn decide<'b>(
    head: &Head<'_, 'b>,
    mode: Mode,
    newest: EventsVersion,
    is_proxied: bool,
) -> Result<RequestKind<'b>, GuestError> {
    let target = Target::parse(head.target);
    let resource = find(&target, mode, newest);
    not_forwarded(head, is_proxied)?;
    metadata(head, mode, is_metadata_optional(head, mode, resource, &target))?;
    let resource = resource.ok_or(GuestError::NotFound)?;
    method(head, resource)?;
    if target.has_duplicates() {
        return Err(GuestError::DuplicateParameter);
    }
    match resource {
        Resource::Events { in_path } => {
            let version = in_path.or_else(|| events_version(&target, newest));
            let version = version.ok_or_else(|| no_events_version(&target))?;
            match target.parameter("format") {
                Some(format) if !format.eq_ignore_ascii_case("json") => {
                    Err(GuestError::Format(Category::Events))
                }
                Some(_) | None if head.method == "POST" => Ok(RequestKind::Approve),
                Some(_) | None => Ok(RequestKind::Document(version)),
            }
        }
        Resource::EventsNotServed => Err(GuestError::VersionNotServed),
        Resource::Instance => {
            let version = target.parameter("api-version").and_then(|text| InstanceVersion::parse(&text));
            let version = version.ok_or(GuestError::ApiVersion(Category::Instance))?;
            let format = Format::parse(target.parameter("format").as_deref())?;
            Ok(RequestKind::Instance { version, path: target.path().skip(2).collect(), format })
        }
        Resource::Versions => Ok(RequestKind::Versions),
    }
}

fn find(target: &Target<'_>, mode: Mode, newest: EventsVersion) -> Option<Resource> {
    if target.is(EVENTS_PATH) {
        return Some(Resource::Events { in_path: None });
    }
    let mut path = target.path();
    if !path.next()?.eq_ignore_ascii_case(ROOT) {
        return None;
    }
    let (name, third, fourth) = (path.next()?, path.next(), path.next());
    let named = RESOURCES.into_iter().find(|(path, _)| name.eq_ignore_ascii_case(path));
    match (named, third, fourth) {
        (Some((_, Resource::Instance)), _, _) => Some(Resource::Instance),
        (Some((_, resource)), None, _) => Some(resource),
        (Some(_), Some(_), _) => None,
        (None, Some(last), None) if mode == Mode::Lenient && last.eq_ignore_ascii_case(EVENTS) => {
            let latest = name.eq_ignore_ascii_case("latest").then_some(LATEST);
            match latest.or_else(|| served(&name, newest)) {
                Some(version) => Some(Resource::Events { in_path: Some(version) }),
                None => EventsVersion::is_well_formed(&name).then_some(Resource::EventsNotServed),
            }
        }
        (None, _, _) => None,
    }
}

fn events_version(target: &Target<'_>, newest: EventsVersion) -> Option<EventsVersion> {
    target.parameter("api-version").and_then(|text| served(&text, newest))
}

fn served(text: &str, newest: EventsVersion) -> Option<EventsVersion> {
    EventsVersion::parse(text).filter(|version| *version <= newest)
}

/// The error for an unknown api-version. OpenShift's termination handler probes newer dates and reads 404 as "not
/// supported"; any other status stops it.
#[cold]
fn no_events_version(target: &Target<'_>) -> GuestError {
    match target.parameter("api-version") {
        Some(version) if EventsVersion::is_well_formed(&version) => GuestError::VersionNotServed,
        Some(_) | None => GuestError::ApiVersion(Category::Events),
    }
}

fn not_forwarded(head: &Head<'_, '_>, is_proxied: bool) -> Result<(), GuestError> {
    if head.has(Name::XForwardedFor) && !is_proxied { Err(GuestError::Forwarded) } else { Ok(()) }
}

/// Each `Metadata` header must be true, and there must be one unless `is_optional`.
fn metadata(head: &Head<'_, '_>, mode: Mode, is_optional: bool) -> Result<(), GuestError> {
    let is_true = |value: &[u8]| match mode {
        Mode::Strict => value == b"true",
        Mode::Normal | Mode::Lenient => value.eq_ignore_ascii_case(b"true"),
    };
    if !head.has(Name::Metadata) {
        return if is_optional { Ok(()) } else { Err(GuestError::MetadataMissing) };
    }
    if head.all(Name::Metadata).all(is_true) { Ok(()) } else { Err(GuestError::MetadataNotTrue) }
}

fn is_metadata_optional(
    head: &Head<'_, '_>,
    mode: Mode,
    resource: Option<Resource>,
    target: &Target<'_>,
) -> bool {
    let in_path = match resource {
        Some(Resource::Events { in_path }) => in_path,
        Some(Resource::EventsNotServed) => None,
        Some(Resource::Instance | Resource::Versions) | None => return false,
    };
    head.method == "POST"
        && match mode {
            Mode::Strict => false,
            Mode::Lenient => true,
            Mode::Normal => in_path
                .or_else(|| events_version(target, EventsVersion::NEWEST))
                .is_some_and(EventsVersion::allows_post_without_metadata),
        }
}

fn method(head: &Head<'_, '_>, resource: Resource) -> Result<(), GuestError> {
    let methods = match resource {
        Resource::Events { .. } | Resource::EventsNotServed => Methods::GetAndPost,
        Resource::Instance | Resource::Versions => Methods::Get,
    };
    match (head.method, methods) {
        ("GET", Methods::Get | Methods::GetAndPost) | ("POST", Methods::GetAndPost) => Ok(()),
        (_, methods) => Err(GuestError::MethodNotAllowed(methods)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::head::{header_slots, parse};
    use super::*;

    /// Each request fails its check and every later one: the first failure must be the answer.
    #[test]
    fn first_failed_check_decides() {
        let bad_query = "?api-version=latest&a&a";
        for (request, expected) in [
            (format!("PUT /x{bad_query} HTTP/1.1\r\nX-Forwarded-For: a\r\n"), GuestError::Forwarded),
            (format!("PUT /x{bad_query} HTTP/1.1\r\n"), GuestError::MetadataMissing),
            (format!("PUT /x{bad_query} HTTP/1.1\r\nMetadata: no\r\n"), GuestError::MetadataNotTrue),
            (format!("PUT /x{bad_query} HTTP/1.1\r\nMetadata: true\r\n"), GuestError::NotFound),
            (
                format!("PUT /metadata/scheduledevents{bad_query} HTTP/1.1\r\nMetadata: true\r\n"),
                GuestError::MethodNotAllowed(Methods::GetAndPost),
            ),
            (
                format!("GET /metadata/scheduledevents{bad_query} HTTP/1.1\r\nMetadata: true\r\n"),
                GuestError::DuplicateParameter,
            ),
            (
                "GET /metadata/scheduledevents?api-version=latest&format=x HTTP/1.1\r\nMetadata: true\r\n"
                    .into(),
                GuestError::ApiVersion(Category::Events),
            ),
            (
                "GET /metadata/scheduledevents?api-version=2024-07-10&format=x HTTP/1.1\r\nMetadata: true\r\n"
                    .into(),
                GuestError::VersionNotServed,
            ),
        ] {
            let bytes = format!("{request}\r\n");
            let mut headers = header_slots();
            let (head, _) = parse(bytes.as_bytes(), &mut headers).unwrap().unwrap();
            for mode in [Mode::Normal, Mode::Strict, Mode::Lenient] {
                assert_eq!(decide(&head, mode, EventsVersion::NEWEST, false), Err(expected), "{request} {mode:?}");
            }
        }
    }

    #[test]
    fn version_that_is_turned_off_is_not_served() {
        let off = EventsVersion::DOCUMENTED;
        for (version, newest, expected) in [
            ("2024-07-09", EventsVersion::NEWEST, Ok(RequestKind::Document(EventsVersion::V2024_07_09))),
            ("2024-07-09", off, Err(GuestError::VersionNotServed)),
            ("2024-07-10", EventsVersion::NEWEST, Err(GuestError::VersionNotServed)),
            ("2020-07-01", off, Ok(RequestKind::Document(EventsVersion::V2020_07_01))),
            ("2024-07-9", off, Err(GuestError::ApiVersion(Category::Events))),
        ] {
            for target in
                [format!("scheduledevents?api-version={version}"), format!("{version}/scheduledevents")]
            {
                let bytes = format!("GET /metadata/{target} HTTP/1.1\r\nMetadata: true\r\n\r\n");
                let mut headers = header_slots();
                let (head, _) = parse(bytes.as_bytes(), &mut headers).unwrap().unwrap();
                let found = decide(&head, Mode::Lenient, newest, false);
                match version.len() == 10 || target.contains('=') {
                    true => assert_eq!(found, expected, "{target} {newest}"),
                    false => assert_eq!(found, Err(GuestError::NotFound), "{target}"),
                }
            }
        }
    }

    #[test]
    fn trusted_proxy_may_forward() {
        let bytes = b"GET /metadata/versions HTTP/1.1\r\nX-Forwarded-For: a\r\nMetadata: true\r\n\r\n";
        let mut headers = header_slots();
        let (head, _) = parse(bytes, &mut headers).unwrap().unwrap();
        assert_eq!(decide(&head, Mode::Normal, EventsVersion::NEWEST, true), Ok(RequestKind::Versions));
        assert_eq!(decide(&head, Mode::Normal, EventsVersion::NEWEST, false), Err(GuestError::Forwarded));
    }
}
