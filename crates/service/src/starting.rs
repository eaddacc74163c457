//! Answers 503 while a node of a cluster starts.
//!
//! A node binds its listeners first, so that a port in use leaves no files. Then it may have to wait: for etcd, for its name,
//! for a node that leads. Callers that connect meanwhile would get no answer until their own time limits. So they are told at
//! once to use another node. A connection is closed after its answer: the caller's next one may reach a node that serves.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use notbefore_listener::admission::Limits;
use notbefore_listener::slots::AdmissionSlots;
use notbefore_listener::token_quotas::TokenQuotaLimits;
use notbefore_wire::guest::error::GuestError;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::operator::health::healthz;
use crate::operator::problem::Problem;
use crate::operator::server::{self, OperatorServer, TlsSource};

/// Most connections of each listener. Each is short-lived; of more, the oldest is closed.
const CONNECTIONS_MAX: usize = 1_024;
/// `Retry-After`, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// A listener cannot be shared.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct StartingError(#[from] io::Error);

/// Answers until it is dropped. Connections that wait then are left to the servers of the same listeners.
pub struct Starting(watch::Sender<bool>);

impl Default for Starting {
    fn default() -> Self {
        Self(watch::channel(false).0)
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

impl Starting {
    pub fn answer_guests(&self, listener: &TcpListener) -> Result<(), StartingError> {
        self.answer(listener, "guests", Router::new().fallback(guest), None)
    }

    /// Says to health checks that the process lives, and is not ready.
    pub fn answer_operators(
        &self,
        listener: &TcpListener,
        certificate: Option<Arc<dyn TlsSource>>,
    ) -> Result<(), StartingError> {
        let router = Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz));
        self.answer(listener, "operators", router.fallback(operator), certificate)
    }

    fn answer(
        &self,
        listener: &TcpListener,
        callers: &'static str,
        router: Router,
        certificate: Option<Arc<dyn TlsSource>>,
    ) -> Result<(), StartingError> {
        let shared = std::net::TcpListener::from(listener.as_fd().try_clone_to_owned()?);
        let shared = TcpListener::from_std(shared)?;
        let limits = Limits { connections: CONNECTIONS_MAX, per_token: CONNECTIONS_MAX };
        let server = OperatorServer {
            callers,
            router: router.layer(map_response(closing)),
            certificate,
            // There are no streams.
            slots: AdmissionSlots::new(limits, TokenQuotaLimits { per_token: 0, total: 0 }),
            proxies: Vec::new(),
        };
        tokio::spawn(server::serve(shared, server, self.0.subscribe()));
        Ok(())
    }
}

async fn guest() -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json; charset=utf-8")];
    let retry = [(header::RETRY_AFTER, RETRY_AFTER)];
    (StatusCode::SERVICE_UNAVAILABLE, kind, retry, GuestError::StoreAway.body()).into_response()
}

async fn readyz() -> Response {
    let text =
        "this node starts: it waits for etcd, or for a node that leads the cluster; its log says which\n";
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

async fn operator() -> Response {
    let detail =
        "this node starts and cannot answer yet, and nothing was changed: ask another node, or try again";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail).into_response()
}

async fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
