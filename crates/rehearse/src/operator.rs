//! A small client of the operator API, for the service of a rehearsal.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use notbefore_wire::operator::{Event, EventVerb, Operation, Page, Problem, ScheduleEvents};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use uuid::Uuid;

/// More than the live events of a scope.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The service refused it.
    #[error("{0}")]
    Refused(String),
    /// The service did not answer.
    #[error("the service of the rehearsal does not answer: {0}")]
    NoAnswer(String),
}

/// Calls the operator API at one address.
#[derive(Clone, Debug)]
pub struct Operator {
    address: SocketAddr,
    token: String,
}

impl Operator {
    pub fn new(address: SocketAddr, token: String) -> Self {
        Self { address, token }
    }

    pub async fn schedule(&self, request: &ScheduleEvents) -> Result<Operation, OperatorError> {
        self.call(Method::POST, "/v1/events", Some(request)).await
    }

    /// Does something with an event.
    pub async fn act(&self, event: Uuid, verb: &EventVerb) -> Result<Event, OperatorError> {
        let path = format!("/v1/events/{event}/{}", verb.as_str());
        self.call(Method::POST, &path, None::<&()>).await
    }

    /// All live events. A scope has at most a thousand, one page.
    pub async fn events(&self) -> Result<Vec<Event>, OperatorError> {
        let page: Page<Event> = self.call(Method::GET, "/v1/events?limit=1000", None::<&()>).await?;
        Ok(page.items)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, OperatorError> {
        let no_answer = |error: &dyn std::fmt::Display| OperatorError::NoAnswer(error.to_string());
        let body = body.map(serde_json::to_vec).transpose().map_err(|error| no_answer(&error))?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Host", self.address.to_string())
            .header("Authorization", format!("Bearer {}", self.token))
            .header("Content-Type", "application/json")
            .body(Full::new(Bytes::from(body.unwrap_or_default())))
            .map_err(|error| no_answer(&error))?;
        let stream = TcpStream::connect(self.address).await.map_err(|error| no_answer(&error))?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| no_answer(&error))?;
        tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(|error| no_answer(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| no_answer(&error))?.to_bytes();
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| no_answer(&error));
        }
        Err(OperatorError::Refused(match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => problem.detail,
            Err(_) => format!("status {status}"),
        }))
    }
}
