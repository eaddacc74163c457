//! What nodes tell each other: forwarded requests and approvals, and their answers. Pure.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use bytes::Bytes;
use notbefore_core::{EventId, ScopeId, VmId};
use notbefore_store::Revision;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::parts;
use crate::guest::platform::ApproveError;
use crate::operator::session::Browser;

/// Headers that belong to a connection, not to a request or a response. The length follows from the body.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// A request of an operator, as it reached the sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorRequest {
    pub method: Method,
    /// Path and query.
    pub target: Uri,
    pub client: ClientConnection,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// What the sender knows of the operator's connection, and of what the operator was shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientConnection {
    /// The peer's address, for the audit trail; none if it is not known.
    pub from: Option<SocketAddr>,
    pub browser: Browser,
    /// The sender has shown nothing newer; the leader does not judge the request by an older state.
    pub shown: Revision,
}

impl OperatorRequest {
    /// None if it is too long to encode.
    pub fn encode(&self) -> Option<Bytes> {
        let client = serde_json::to_vec(&self.client).ok()?;
        let target = self.target.path_and_query()?.as_str().as_bytes();
        let first = [self.method.as_str().as_bytes(), target, &client, &self.body];
        parts::encode(first.into_iter().chain(header_parts(&self.headers)))
    }

    pub fn decode(bytes: Bytes) -> Option<Self> {
        let mut parts = parts::decode(bytes)?.into_iter();
        let method = Method::from_bytes(&parts.next()?).ok()?;
        let target = Uri::try_from(&*parts.next()?).ok()?;
        let client = serde_json::from_slice(&parts.next()?).ok()?;
        let body = parts.next()?;
        Some(Self { method, target, client, headers: headers(parts)?, body })
    }
}

/// The response to an operator's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl OperatorAnswer {
    /// None if it is too long to encode.
    pub fn encode(&self) -> Option<Bytes> {
        let first = [self.status.as_str().as_bytes(), &self.body];
        parts::encode(first.into_iter().chain(header_parts(&self.headers)))
    }

    pub fn decode(bytes: Bytes) -> Option<Self> {
        let mut parts = parts::decode(bytes)?.into_iter();
        let status = StatusCode::from_bytes(&parts.next()?).ok()?;
        let body = parts.next()?;
        Some(Self { status, headers: headers(parts)?, body })
    }
}

fn header_parts(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let kept = headers.iter().filter(|(name, _)| !HOP_BY_HOP.contains(name));
    kept.flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()])
}

fn headers(mut parts: impl Iterator<Item = Bytes>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    while let Some(name) = parts.next() {
        let value = HeaderValue::from_maybe_shared(parts.next()?).ok()?;
        headers.append(HeaderName::from_bytes(&name).ok()?, value);
    }
    Some(headers)
}

/// An approval of a guest. The sender has checked who calls and what the request says, but not the events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub identity: GuestIdentity,
    /// The guest's address.
    pub address: IpAddr,
    pub vm: VmId,
    pub scope: ScopeId,
    pub events: Vec<EventId>,
    /// As [`ClientConnection::shown`].
    pub shown: Revision,
}

/// How the sender identified a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestIdentity {
    /// By its address in this network. The leader looks the address up again.
    Address { network: String },
    /// The sender vouches for it: a listener of this VM, or a signed proxy.
    Vouched,
}

impl GuestIdentity {
    /// `network` as in [`notbefore_engine::GuestApproval`].
    pub fn new(network: Option<String>) -> Self {
        network.map_or(Self::Vouched, |network| Self::Address { network })
    }

    pub fn into_network(self) -> Option<String> {
        match self {
            Self::Address { network } => Some(network),
            Self::Vouched => None,
        }
    }
}

/// The outcome of an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalOutcome {
    Approved,
    UnknownEvent(Uuid),
    UnknownCaller,
    OutcomeUnknown,
    Unavailable(String),
}

impl From<Result<(), ApproveError>> for ApprovalOutcome {
    fn from(result: Result<(), ApproveError>) -> Self {
        match result {
            Ok(()) => Self::Approved,
            Err(ApproveError::UnknownEvent(event)) => Self::UnknownEvent(event),
            Err(ApproveError::UnknownCaller) => Self::UnknownCaller,
            Err(ApproveError::OutcomeUnknown) => Self::OutcomeUnknown,
            Err(ApproveError::Unavailable(why)) => Self::Unavailable(why),
        }
    }
}

impl From<ApprovalOutcome> for Result<(), ApproveError> {
    fn from(outcome: ApprovalOutcome) -> Self {
        match outcome {
            ApprovalOutcome::Approved => Ok(()),
            ApprovalOutcome::UnknownEvent(event) => Err(ApproveError::UnknownEvent(event)),
            ApprovalOutcome::UnknownCaller => Err(ApproveError::UnknownCaller),
            ApprovalOutcome::OutcomeUnknown => Err(ApproveError::OutcomeUnknown),
            ApprovalOutcome::Unavailable(why) => Err(ApproveError::Unavailable(why)),
        }
    }
}

/// The answer to a message that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The leader's view showed this revision when it answered.
    pub revision: Revision,
    /// By the kind of the message.
    pub content: Bytes,
}

impl Answer {
    /// None if it is too long to encode.
    pub fn encode(&self) -> Option<Bytes> {
        parts::encode([&self.revision.0.to_be_bytes()[..], &self.content])
    }

    pub fn decode(bytes: Bytes) -> Option<Self> {
        let [revision, content]: [Bytes; 2] = parts::decode(bytes)?.try_into().ok()?;
        let revision = Revision(u64::from_be_bytes(revision.as_ref().try_into().ok()?));
        Some(Self { revision, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header_map(pairs: &[(&'static str, &[u8])]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &[u8])| {
            (HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    fn request() -> OperatorRequest {
        let browser = Browser { client: Some([192, 0, 2, 7].into()), port: 9255, is_encrypted: true };
        OperatorRequest {
            method: Method::POST,
            target: "/v1/events?dry_run=true".parse().unwrap(),
            client: ClientConnection {
                from: Some("192.0.2.1:99".parse().unwrap()),
                browser,
                shown: Revision(12),
            },
            headers: header_map(&[
                ("authorization", b"Bearer x"),
                ("cookie", b"a=\xff"),
                ("cookie", b"b=2"),
                ("host", b"ops.example"),
            ]),
            body: Bytes::from_static(b"{}"),
        }
    }

    #[test]
    fn request_and_answer_round_trip() {
        assert_eq!(OperatorRequest::decode(request().encode().unwrap()), Some(request()));
        let headers = header_map(&[("set-cookie", b"a=1"), ("set-cookie", b"b=2")]);
        let answer = OperatorAnswer { status: StatusCode::CREATED, headers, body: Bytes::from_static(b"x") };
        assert_eq!(OperatorAnswer::decode(answer.encode().unwrap()), Some(answer.clone()));
        let content = answer.encode().unwrap();
        let answer = Answer { revision: Revision(7), content };
        assert_eq!(Answer::decode(answer.encode().unwrap()), Some(answer));
    }

    /// Nodes of two releases run side by side during an upgrade.
    #[test]
    fn fields_of_a_later_release_are_ignored() {
        let later = |text: String| text.replacen('{', "{\"of_a_later_release\":1,", 1);
        let client = request().client;
        let text = later(serde_json::to_string(&client).unwrap());
        assert_eq!(serde_json::from_str::<ClientConnection>(&text).unwrap(), client);
        let approval = Approval {
            identity: GuestIdentity::Vouched,
            address: [10, 0, 0, 1].into(),
            vm: VmId(Uuid::nil()),
            scope: "web".parse::<notbefore_core::ScopePath>().unwrap().id(),
            events: Vec::new(),
            shown: Revision(12),
        };
        let text = later(serde_json::to_string(&approval).unwrap());
        assert_eq!(serde_json::from_str::<Approval>(&text).unwrap(), approval);
    }

    #[test]
    fn headers_of_the_connection_are_left_out() {
        let mut request = request();
        for name in HOP_BY_HOP {
            request.headers.insert(name, HeaderValue::from_static("1"));
        }
        assert_eq!(OperatorRequest::decode(request.encode().unwrap()).unwrap().headers.len(), 4);
    }

    #[test]
    fn cut_or_malformed_contents_are_refused() {
        let bytes = request().encode().unwrap();
        let whole = OperatorRequest::decode(bytes.clone());
        for length in 0..bytes.len() {
            // Between two headers, the rest is a request with fewer headers; a signature covers the whole.
            let cut = OperatorRequest::decode(bytes.slice(..length));
            assert!(cut.is_none() || cut != whole, "{length}");
        }
        for parts in [
            &[&b"PO ST"[..], b"/", b"{}", b""][..],
            &[b"POST", b"no path", b"{}", b""],
            &[b"POST", b"/", b"{}", b""],
            &[b"POST", b"/"],
        ] {
            let bytes = parts::encode(parts.iter().copied()).unwrap();
            assert_eq!(OperatorRequest::decode(bytes), None, "{parts:?}");
        }
        assert_eq!(OperatorAnswer::decode(Bytes::from_static(b"x")), None);
        assert_eq!(Answer::decode(Bytes::from_static(b"\0\0\0\x01a")), None);
    }
}
