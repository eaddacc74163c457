//! Connections of a follower to the leader: HTTP/1.1, kept alive, one request at a time on each.
//!
//! A new connection begins with a hello. The answer proves that the leader knows the key of the cluster: another process
//! at the leader's address sees no operator's token. A second hello proves the same of this node. Every message after the
//! first is stamped ([`super::signature`]). A request is never sent twice. A connection that closes
//! after the first byte of a request leaves the outcome unknown.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use bytes::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use notbefore_engine::cluster::Leader;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::listener::{ANSWER_BYTES_MAX, RefusedBody, SIGNATURE};
use super::signature::{BEHIND_CODE, Challenge, LEVEL, Message, SIGNATURE_CODE, Signed};
use super::tls::NodeTls;
use super::{Deadline, ForwardError};
use crate::clock::Stopwatch;
use crate::lock;
use crate::stored_key::StoredKey;

/// Most idle connections; more are closed after their answer.
const IDLE_MAX: usize = 32;
/// Idle connections are used for this long. The listener closes them after 10 s; closed just then, an outcome would be
/// unknown.
const IDLE_TIME_MAX: Duration = Duration::from_secs(5);
/// Connections are used for this long after their challenge: the leader's clock is estimated from it, and clocks drift.
const AGE_MAX: Duration = Duration::from_secs(60);
/// Largest answer to a hello, and largest refusal.
const SHORT_ANSWER_BYTES_MAX: usize = 4_096;

/// The idle connections to one leader.
pub struct LeaderClient {
    /// None without mutual TLS.
    tls: Option<Arc<NodeTls>>,
    idle: Mutex<IdleConnections>,
}

#[derive(Default)]
struct IdleConnections {
    /// The leader as `name~epoch`.
    leader: String,
    connections: Vec<(Connection, Stopwatch)>,
}

/// A connection before its challenge.
pub struct NewConnection {
    sender: SendRequest<Body>,
    authority: HeaderValue,
}

/// A connection whose peer has proved to be the leader.
pub struct Connection {
    http: NewConnection,
    /// As `name~epoch`.
    leader: String,
    challenge: Challenge,
    since_challenge: Stopwatch,
    last_number: u64,
}

/// What became of a request.
pub enum Sent {
    Answered(Bytes),
    /// The connection was closed before the first byte.
    Unsent,
}

impl LeaderClient {
    pub fn new(tls: Option<Arc<NodeTls>>) -> Self {
        Self { tls, idle: Mutex::default() }
    }

    /// An idle connection to this leader.
    pub async fn idle(&self, leader: &Leader) -> Option<Connection> {
        loop {
            let (mut connection, since) = {
                let mut idle = lock(&self.idle);
                if idle.leader != leader.id() {
                    idle.connections.clear();
                }
                idle.connections.pop()?
            };
            let is_usable = since.elapsed() < IDLE_TIME_MAX && connection.since_challenge.elapsed() < AGE_MAX;
            if is_usable && connection.http.sender.ready().await.is_ok() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection for the next request.
    pub fn keep(&self, connection: Connection) {
        let mut idle = lock(&self.idle);
        if idle.leader != connection.leader {
            idle.leader.clone_from(&connection.leader);
            idle.connections.clear();
        }
        if idle.connections.len() < IDLE_MAX {
            idle.connections.push((connection, Stopwatch::start()));
        }
    }

    pub async fn connect(&self, leader: &Leader) -> Result<NewConnection, ForwardError> {
        let unreachable = |why: String| ForwardError::Unreachable(format!("{}: {why}", leader.url));
        let uri = leader.url.parse::<Uri>().map_err(|error| unreachable(error.to_string()))?;
        let authority = uri.authority().ok_or_else(|| unreachable("it has no host".to_owned()))?;
        let port = uri.port_u16().ok_or_else(|| unreachable("it has no port".to_owned()))?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let is_encrypted = uri.scheme_str() == Some("https");
        let is_loopback = host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        let tls = match (&self.tls, is_encrypted) {
            (Some(tls), true) => Some(tls),
            (None, false) if is_loopback => None,
            (None, false) => {
                return Err(unreachable("tokens are not sent without TLS beyond this machine".to_owned()));
            }
            (Some(_), false) | (None, true) => {
                let why = "either all nodes use mutual TLS (--node-cert, --node-key, --node-ca) or none";
                return Err(unreachable(why.to_owned()));
            }
        };
        let stream =
            TcpStream::connect((host, port)).await.map_err(|error| unreachable(error.to_string()))?;
        // An error only means more latency.
        let _ = stream.set_nodelay(true);
        let sender = match tls {
            Some(tls) => {
                let name =
                    ServerName::try_from(host.to_owned()).map_err(|error| unreachable(error.to_string()))?;
                let stream = tls.connector().connect(name, stream).await;
                handshake(stream.map_err(|error| unreachable(error.to_string()))?).await
            }
            None => handshake(stream).await,
        };
        let sender = sender.map_err(|error| unreachable(error.to_string()))?;
        let authority =
            HeaderValue::from_str(authority.as_str()).map_err(|error| unreachable(error.to_string()))?;
        Ok(NewConnection { sender, authority })
    }
}

async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> hyper::Result<SendRequest<Body>> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(async move {
        // The request in flight gets the error.
        let _ = connection.await;
    });
    Ok(sender)
}

impl NewConnection {
    /// Sends the first hello and opens the challenge. None if the leader has another key.
    pub async fn hello(
        &mut self,
        key: &StoredKey,
        hello: &Message,
    ) -> Result<Option<Challenge>, ForwardError> {
        let unreachable = |why: String| ForwardError::Unreachable(why);
        let signed = hello.sign(key).ok_or_else(|| unreachable("the hello is too long".to_owned()))?;
        let response = self.sender.send_request(self.request(signed)).await;
        let (head, body) = response.map_err(|error| unreachable(error.to_string()))?.into_parts();
        let body = to_bytes(Body::new(body), SHORT_ANSWER_BYTES_MAX).await;
        let body = body.map_err(|error| unreachable(error.to_string()))?;
        if head.status != StatusCode::OK {
            let refused = RefusedBody::decode(&body);
            return match refused.code == SIGNATURE_CODE {
                true => Ok(None),
                false => Err(refused.into()),
            };
        }
        let impostor = || unreachable("a process that is not the leader answers at its address".to_owned());
        Challenge::open(key, hello, &body).map(Some).ok_or_else(impostor)
    }

    fn request(&self, signed: Signed) -> Request<Body> {
        let mut request = Request::new(Body::from(signed.bytes));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = path();
        request.headers_mut().insert(header::HOST, self.authority.clone());
        if let Ok(signature) = HeaderValue::from_str(&signed.signature) {
            request.headers_mut().insert(SIGNATURE, signature);
        }
        request
    }
}

impl Connection {
    /// The leader (`name~epoch`) has just answered with this challenge.
    pub fn new(http: NewConnection, leader: String, challenge: Challenge) -> Self {
        Self { http, leader, challenge, since_challenge: Stopwatch::start(), last_number: 0 }
    }

    /// Stamps and signs a message, sends it and reads the answer. Calls `sending` before the first byte.
    pub async fn send(
        &mut self,
        key: &StoredKey,
        message: &mut Message,
        deadline: Deadline,
        sending: impl FnOnce(),
    ) -> Result<Sent, ForwardError> {
        let broken = |why: String| ForwardError::Broken(why);
        self.last_number += 1;
        // In this order; see `Challenge::stamp`.
        let since_challenge = self.since_challenge.elapsed();
        message.stamp = self.challenge.stamp(self.last_number, since_challenge, deadline.rest());
        let request = self.http.request(message.sign(key).ok_or(ForwardError::TooLarge)?);
        sending();
        let response = match self.http.sender.try_send_request(request).await {
            Ok(response) => response,
            Err(mut error) => {
                return match error.take_message() {
                    Some(_) => Ok(Sent::Unsent),
                    None => Err(broken(error.into_error().to_string())),
                };
            }
        };
        let (head, body) = response.into_parts();
        match head.status {
            StatusCode::OK => {
                let body = to_bytes(Body::new(body), ANSWER_BYTES_MAX).await;
                Ok(Sent::Answered(body.map_err(|error| broken(error.to_string()))?))
            }
            // The message was carried out, and the answer could not be sent.
            StatusCode::INTERNAL_SERVER_ERROR => Err(broken("the leader's answer was lost".to_owned())),
            _ => {
                let body = to_bytes(Body::new(body), SHORT_ANSWER_BYTES_MAX).await.unwrap_or_default();
                let refused = RefusedBody::decode(&body);
                Err(if refused.code == BEHIND_CODE { ForwardError::Behind } else { refused.into() })
            }
        }
    }
}

/// The path of all messages.
fn path() -> Uri {
    Uri::try_from(format!("/node/{LEVEL}")).unwrap_or_default()
}
