//! Requests of the clients under load, to the guest and operator listeners.

use std::net::{Ipv4Addr, SocketAddr};

use notbefore_wire::operator as wire;
use serde::de::DeserializeOwned;

use crate::support::http::Connection;
pub use crate::support::http::{Answer as Reply, NoResponse};

/// Addresses and token of a running service.
#[derive(Clone)]
pub struct Endpoints {
    pub guest: SocketAddr,
    pub operator: SocketAddr,
    pub token: String,
}

/// The operator listener.
pub struct Operator {
    line: Connection,
    token: String,
}

impl Operator {
    pub fn new(endpoints: &Endpoints) -> Self {
        Self {
            line: Connection::new(Ipv4Addr::LOCALHOST, endpoints.operator),
            token: endpoints.token.clone(),
        }
    }

    pub fn request(
        &mut self,
        method: &str,
        target: &str,
        key: &str,
        body: &str,
    ) -> Result<Reply, NoResponse> {
        let key = if key.is_empty() { String::new() } else { format!("Idempotency-Key: {key}\r\n") };
        let (token, length) = (&self.token, body.len());
        self.line.request(&format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{key}Content-Length: {length}\r\n\r\n{body}"
        ))
    }

    /// Reads from a service that is not being stopped.
    pub fn read<T: DeserializeOwned>(&mut self, target: &str) -> T {
        let reply = self.request("GET", target, "", "").unwrap_or_else(|why| panic!("GET {target}: {why:?}"));
        assert_eq!(reply.status, 200, "GET {target}: {}", reply.body);
        reply.parsed()
    }

    /// Reads a list to its end; `target` has a query already.
    pub fn read_all<T: DeserializeOwned>(&mut self, target: &str) -> Vec<T> {
        let mut items = Vec::new();
        let mut page: wire::Page<T> = self.read(&format!("{target}&limit=1000"));
        loop {
            items.append(&mut page.items);
            let Some(next) = page.next else { return items };
            page = self.read(&format!("{target}&limit=1000&cursor={next}"));
        }
    }
}

const EVENTS: &str = "/metadata/scheduledevents?api-version=2020-07-01";

/// A guest's poll from its own address.
pub fn poll(endpoints: &Endpoints, from: Ipv4Addr) -> Result<Reply, NoResponse> {
    let head = "Host: x\r\nMetadata: true\r\nConnection: close";
    Connection::new(from, endpoints.guest).request(&format!("GET {EVENTS} HTTP/1.1\r\n{head}\r\n\r\n"))
}

/// A guest's approval from its own address.
pub fn approve(endpoints: &Endpoints, from: Ipv4Addr, event: uuid::Uuid) -> Result<Reply, NoResponse> {
    let body = format!("{{\"StartRequests\":[{{\"EventId\":\"{event}\"}}]}}");
    let head = format!("Host: x\r\nMetadata: true\r\nConnection: close\r\nContent-Length: {}", body.len());
    Connection::new(from, endpoints.guest).request(&format!("POST {EVENTS} HTTP/1.1\r\n{head}\r\n\r\n{body}"))
}
