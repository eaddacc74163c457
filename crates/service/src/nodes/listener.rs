//! The node listener: at the leader, takes messages of followers and carries them out.
//!
//! All messages are `POST /node/LEVEL`. A connection begins with two hellos; until the second its bodies are small, and
//! it may be evicted. A message is carried out once, before its deadline, and only while this process leads. An answer has status 200. 500 means that the answer was lost;
//! every other status, that nothing was carried out.
//!
//! An operator's request runs through the same router as one of this node's own operator listener, with the client's
//! address from the message. A guest's approval goes to the engine, which looks the guest's address up again.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use notbefore_core::Actor;
use notbefore_engine::GuestApproval;
use notbefore_listener::admission::Limits;
use notbefore_listener::slots::AdmissionSlots;
use notbefore_listener::token_quotas::{QuotaExceeded, TokenQuotaLimits};
use notbefore_store::Revision;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

use super::audit::AuditReport;
use super::messages::{Answer, Approval, ApprovalOutcome, OperatorAnswer, OperatorRequest};
use super::signature::{self, Challenge, Kind, LEVEL, Message, Refused, Sequence, Signed};
use super::tls::NodeTls;
use super::{ForwardError, Nodes};
use crate::guest::platform::ApproveError;
use crate::operator::access::ConnectionInfo;
use crate::operator::server::{self, OperatorServer};
use crate::operator::{BODY_BYTES_MAX, Operator};
use crate::stored_key::StoredKey;
use crate::{lock, platform, random};

/// The signature of a message, in hexadecimal.
pub const SIGNATURE: HeaderName = HeaderName::from_static("x-notbefore-signature");
/// Largest message: the largest body of an operator's request, its headers, and a digest.
pub const MESSAGE_BYTES_MAX: usize = BODY_BYTES_MAX + 8 * 1024 * 1024;
/// Largest body before the second hello.
const HELLO_BYTES_MAX: usize = 4_096;
/// Largest answer.
pub const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Time limit of a message's body.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// A message waits for this node's view for one of so many parts of its time at most. The rest is for carrying it out, and
/// for the answer: a sender that gives up first has to take the outcome for unknown.
const VIEW_WAIT_SHARE: u32 = 2;
/// Most connections of one node: its requests in flight, and idle connections.
const CONNECTIONS_PER_NODE_MAX: usize = 320;
/// Most connections: eight followers, and places for new ones.
const CONNECTIONS_MAX: usize = 8 * CONNECTIONS_PER_NODE_MAX + 64;

/// What the node listener needs.
pub struct NodeServer {
    pub operator: Operator,
    /// The router of the operator listener.
    pub router: Router,
    pub nodes: Arc<Nodes>,
    pub tls: Option<Arc<NodeTls>>,
}

struct Receiver {
    operator: Operator,
    router: TowerToHyperService<Router>,
    nodes: Arc<Nodes>,
}

/// An accepted message.
enum Accepted {
    /// A first hello, with its answer.
    Hello(Bytes),
    Message(Message),
}

/// The body of a refusal.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct RefusedBody {
    pub code: String,
    pub detail: String,
}

impl RefusedBody {
    /// A body that is none has an empty code.
    pub fn decode(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_else(|_| Self {
            code: String::new(),
            detail: "another service answers at the leader's address".to_owned(),
        })
    }
}

impl From<RefusedBody> for ForwardError {
    fn from(RefusedBody { code, detail }: RefusedBody) -> Self {
        Self::Refused { why: signature::why_refused(&code), detail }
    }
}

/// Serves other nodes until `shutdown` becomes true.
pub async fn serve(listener: TcpListener, server: NodeServer, shutdown: watch::Receiver<bool>) {
    let NodeServer { operator, router, nodes, tls } = server;
    let router = TowerToHyperService::new(router);
    let receiver = Arc::new(Receiver { operator, router, nodes });
    let connections = Limits { connections: CONNECTIONS_MAX, per_token: CONNECTIONS_PER_NODE_MAX };
    let server = OperatorServer {
        callers: "nodes",
        router: Router::new().route("/node/{level}", post(receive)).with_state(receiver),
        certificate: tls.map(|tls| tls as _),
        // Nodes have no streams.
        slots: AdmissionSlots::new(connections, TokenQuotaLimits { per_token: 0, total: 0 }),
        proxies: Vec::new(),
    };
    server::serve(listener, server, shutdown).await;
}

async fn receive(
    State(receiver): State<Arc<Receiver>>,
    Path(level): Path<String>,
    request: Request,
) -> Response {
    let refused = match receiver.accept(&level, request).await {
        Ok(Accepted::Hello(challenge)) => return challenge.into_response(),
        Ok(Accepted::Message(message)) => match receiver.carry_out(message).await {
            Ok(response) => return response,
            Err(refused) => refused,
        },
        Err(refused) => refused,
    };
    receiver.nodes.refused.get_or_create(&[("reason", refused.code().to_owned())]).inc();
    tracing::debug!(%refused, "refused a message of a node");
    let body = RefusedBody { code: refused.code().to_owned(), detail: refused.to_string() };
    (status(&refused), serde_json::to_vec(&body).unwrap_or_default()).into_response()
}

/// Never 200 or 500: nothing was carried out.
fn status(refused: &Refused) -> StatusCode {
    match refused {
        Refused::Level(_) => StatusCode::NOT_FOUND,
        Refused::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
        Refused::Incomplete | Refused::Malformed | Refused::NoHello => StatusCode::BAD_REQUEST,
        Refused::Signature | Refused::Late(_) | Refused::Replayed => StatusCode::UNAUTHORIZED,
        Refused::OtherNode { .. } | Refused::NotLeader => StatusCode::MISDIRECTED_REQUEST,
        Refused::TooManyConnections(_) | Refused::NoKey | Refused::NoRandomBytes | Refused::Behind(_) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}

impl Receiver {
    /// The message of a request, if it is the next one of its connection, in time, for this process while it leads.
    async fn accept(&self, level: &str, request: Request) -> Result<Accepted, Refused> {
        if level != LEVEL {
            return Err(Refused::Level(level.chars().take(20).collect()));
        }
        let connection = request.extensions().get::<ConnectionInfo>().cloned();
        let ConnectionInfo { slot: Some(slot), sequence, .. } = connection.ok_or(Refused::NoHello)? else {
            return Err(Refused::NoHello);
        };
        let bytes_max = if slot.is_authenticated() { MESSAGE_BYTES_MAX } else { HELLO_BYTES_MAX };
        let signed = read(request, bytes_max).await?;
        let (key, message) = self.open(signed).await?;
        let mut sequence = lock(&sequence);
        // First: a refused message must not be carried out later.
        if let Some(sequence) = &mut *sequence {
            sequence.accept(&message.stamp, self.nodes.clock.since_boot())?;
        }
        if !self.nodes.leads() {
            return Err(Refused::NotLeader);
        }
        match (message.kind, sequence.is_some()) {
            (Kind::Hello, false) => {
                let connection = random().map_err(|_| Refused::NoRandomBytes)?;
                let challenge = Challenge { connection, clock: self.nodes.clock.since_boot() };
                *sequence = Some(Sequence::new(&challenge));
                Ok(Accepted::Hello(challenge.sign(&key, &message)))
            }
            (Kind::Hello, true) => {
                let too_many = |exceeded: QuotaExceeded| Refused::TooManyConnections(exceeded.to_string());
                slot.authenticate(&message.sender).map_err(too_many)?;
                Ok(Accepted::Message(message))
            }
            (Kind::Operator | Kind::Approval | Kind::Digest | Kind::Audit, _) => {
                match slot.is_authenticated() {
                    true => Ok(Accepted::Message(message)),
                    false => Err(Refused::NoHello),
                }
            }
        }
    }

    /// Opens a message. If its signature does not match, the key may be another by now.
    async fn open(&self, signed: Signed) -> Result<(Arc<StoredKey>, Message), Refused> {
        let me = self.nodes.standing().me.id();
        let key = self.nodes.key.get().await.ok_or(Refused::NoKey)?;
        match signature::open(&key, &me, signed.clone()) {
            Err(Refused::Signature) => {
                let key = self.nodes.key.read_again().await.ok_or(Refused::Signature)?;
                signature::open(&key, &me, signed).map(|message| (key, message))
            }
            opened => opened.map(|message| (key, message)),
        }
    }

    async fn carry_out(&self, message: Message) -> Result<Response, Refused> {
        let Message { kind, sender, stamp, notes, content, .. } = message;
        // First: what the sender's guests polled before the request may decide about its notice.
        if !notes.is_empty() {
            self.nodes.guest_notes.take_notes_of_request(&notes);
        }
        let content = match kind {
            Kind::Hello => Some(Bytes::new()),
            Kind::Digest => self.nodes.guest_notes.take_digest(&sender, &content),
            Kind::Operator => self.operator_request(content, stamp.deadline).await?,
            Kind::Approval => self.approval(content, stamp.deadline).await?,
            Kind::Audit => self.audit(&content).await,
        };
        let answer = content.map(|content| Answer { revision: self.revision(), content });
        Ok(match answer.and_then(|answer| answer.encode()) {
            Some(bytes) => bytes.into_response(),
            None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        })
    }

    /// Waits until this node's view has what the sender has shown. The sender's watch may be ahead of this one's, which is
    /// behind by milliseconds, or until an unknown outcome is cleared. Before that, an operator or a guest would be told
    /// that what it has just read does not exist, or has changed.
    async fn wait_for_view(&self, shown: Revision, deadline: Duration) -> Result<(), Refused> {
        let left = deadline.saturating_sub(self.nodes.clock.since_boot());
        let waited = timeout(left / VIEW_WAIT_SHARE, self.operator.views.wait_for(shown)).await;
        waited.map_err(|_| Refused::Behind(shown))
    }

    /// Everything that an answer of now relies on is at most this revision: own commits are counted before they are
    /// answered, others when the view shows them.
    fn revision(&self) -> Revision {
        let (complete_to, _) = self.operator.views.complete_to();
        Revision(complete_to.max(self.operator.engine.stats().revision.get()))
    }

    /// Runs a request through the router. None if it is malformed or its response is too large.
    async fn operator_request(&self, content: Bytes, deadline: Duration) -> Result<Option<Bytes>, Refused> {
        let Some(request) = OperatorRequest::decode(content) else { return Ok(None) };
        self.wait_for_view(request.client.shown, deadline).await?;
        Ok(self.answer_operator(request).await)
    }

    async fn answer_operator(&self, request: OperatorRequest) -> Option<Bytes> {
        let OperatorRequest { method, target, client, headers, body } = request;
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = method;
        *request.uri_mut() = target;
        *request.headers_mut() = headers;
        if let Some(from) = client.from {
            // The sender has checked `Host`.
            request.extensions_mut().insert(ConnectionInfo {
                from,
                is_loopback: false,
                slot: None,
                sequence: Arc::default(),
            });
        }
        request.extensions_mut().insert(client.browser);
        let (head, body) = self.router.call(request).await.ok()?.into_parts();
        let body = to_bytes(body, ANSWER_BYTES_MAX / 2).await.ok()?;
        OperatorAnswer { status: head.status, headers: head.headers, body }.encode()
    }

    /// Takes a follower's report. None if it is malformed, or the store does not take the batch.
    async fn audit(&self, content: &[u8]) -> Option<Bytes> {
        let AuditReport { refused, used } = serde_json::from_slice(content).ok()?;
        let view = self.operator.views.newest();
        used.iter().for_each(|(token, at)| view.tokens.record_use(token, *at));
        if let Some(batch) = refused {
            batch.store(&*self.operator.store).await.ok()?;
        }
        Some(Bytes::new())
    }

    /// Approves events for a guest. None if the message is malformed.
    async fn approval(&self, content: Bytes, deadline: Duration) -> Result<Option<Bytes>, Refused> {
        let Ok(approval) = serde_json::from_slice::<Approval>(&content) else { return Ok(None) };
        self.wait_for_view(approval.shown, deadline).await?;
        let outcome = ApprovalOutcome::from(self.approve(approval).await);
        Ok(serde_json::to_vec(&outcome).ok().map(Bytes::from))
    }

    async fn approve(&self, approval: Approval) -> Result<(), ApproveError> {
        let Approval { identity, address, vm, scope, events, shown: _ } = approval;
        let (view, now) = (self.operator.views.newest(), self.nodes.clock.now());
        let found = view.scope_of(vm).ok_or(ApproveError::UnknownCaller)?;
        let name = found.member(vm).ok_or(ApproveError::UnknownCaller)?.name.clone();
        if found.polls.claim_report(now.as_second()) {
            self.operator.engine.record_poll(found.scope.id(), now);
        }
        let network = identity.into_network();
        let by = Actor::Vm { vm, name, address };
        platform::approve(&self.operator.engine, by, GuestApproval { scope, events, network }).await
    }
}

/// Reads a request. The limit counts also if the length is not given.
async fn read(request: Request, bytes_max: usize) -> Result<Signed, Refused> {
    let signature = request.headers().get(SIGNATURE).and_then(|value| value.to_str().ok());
    let signature = signature.ok_or(Refused::Signature)?.to_owned();
    let (_, body) = request.into_parts();
    let is_too_large = |body: &Body| {
        let size = hyper::body::Body::size_hint(body);
        size.lower() > bytes_max as u64
    };
    if is_too_large(&body) {
        return Err(Refused::TooLarge(bytes_max));
    }
    match timeout(BODY_TIMEOUT, to_bytes(body, bytes_max)).await {
        Ok(Ok(bytes)) => Ok(Signed { bytes, signature }),
        Ok(Err(_)) | Err(_) => Err(Refused::Incomplete),
    }
}
