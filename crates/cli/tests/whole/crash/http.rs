//! Requests whose fate is told apart: answered, never sent, or sent and not answered. Only the last leaves a
//! doubt.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use jiff::Timestamp;
use notbefore_wire::operator as wire;
use serde::de::DeserializeOwned;

use crate::support;

/// Where a running service is reached, and with what token.
#[derive(Clone)]
pub struct Doors {
    pub guest: SocketAddr,
    pub operator: SocketAddr,
    pub token: String,
}

/// An answer that came whole.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    /// The service's own time, in whole seconds, rounded down.
    pub date: Timestamp,
    pub body: String,
}

impl Reply {
    /// The code of a problem; empty where the body has none.
    pub fn code(&self) -> String {
        serde_json::from_str(&self.body).map(|problem: wire::Problem| problem.code).unwrap_or_default()
    }

    pub fn parsed<T: DeserializeOwned>(&self) -> T {
        let bad = |error| panic!("not what was expected ({error}): {} {}", self.status, self.body);
        serde_json::from_str(&self.body).unwrap_or_else(bad)
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Nobody took the connection, so nobody has read the request.
    NotSent,
    /// The request was on its way when the connection was cut.
    Unanswered,
}

/// A connection to a door, opened when it is needed and kept while the service keeps it.
pub struct Line {
    from: Ipv4Addr,
    to: SocketAddr,
    open: Option<BufReader<TcpStream>>,
}

impl Line {
    pub fn new(from: Ipv4Addr, to: SocketAddr) -> Self {
        Self { from, to, open: None }
    }

    pub fn ask(&mut self, request: &str) -> Result<Reply, Silence> {
        let mut stream = match self.open.take() {
            Some(stream) => stream,
            None => {
                BufReader::new(support::connect(self.from.into(), self.to).map_err(|_| Silence::NotSent)?)
            }
        };
        stream.get_mut().write_all(request.as_bytes()).map_err(|_| Silence::Unanswered)?;
        let (reply, stays_open) = read_reply(&mut stream).map_err(|_| Silence::Unanswered)?;
        self.open = Some(stream).filter(|_| stays_open);
        Ok(reply)
    }
}

/// Reads one answer whole, and whether the connection stays open after it.
fn read_reply(stream: &mut BufReader<TcpStream>) -> std::io::Result<(Reply, bool)> {
    let cut = || Error::from(ErrorKind::UnexpectedEof);
    let (mut status, mut length, mut date, mut stays_open) = (None, 0, None, true);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 || !line.ends_with('\n') {
            return Err(cut());
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        match line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value)) {
            None => status = line.split(' ').nth(1).and_then(|text| text.parse().ok()),
            Some((name, value)) if name == "content-length" => length = value.parse().unwrap_or(0),
            Some((name, value)) if name == "date" => {
                date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok();
            }
            Some((name, value)) if name == "connection" => stays_open = !value.eq_ignore_ascii_case("close"),
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok((Reply { status: status.ok_or_else(cut)?, date: date.ok_or_else(cut)?, body }, stays_open))
}

/// The operator door.
pub struct Operator {
    line: Line,
    token: String,
}

impl Operator {
    pub fn new(doors: &Doors) -> Self {
        Self { line: Line::new(Ipv4Addr::LOCALHOST, doors.operator), token: doors.token.clone() }
    }

    pub fn ask(&mut self, method: &str, target: &str, key: &str, body: &str) -> Result<Reply, Silence> {
        let key = if key.is_empty() { String::new() } else { format!("Idempotency-Key: {key}\r\n") };
        let (token, length) = (&self.token, body.len());
        self.line.ask(&format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{key}Content-Length: {length}\r\n\r\n{body}"
        ))
    }

    /// Reads something from a service that nobody is about to end.
    pub fn read<T: DeserializeOwned>(&mut self, target: &str) -> T {
        let reply = self.ask("GET", target, "", "").unwrap_or_else(|why| panic!("GET {target}: {why:?}"));
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
pub fn poll(doors: &Doors, from: Ipv4Addr) -> Result<Reply, Silence> {
    let head = "Host: x\r\nMetadata: true\r\nConnection: close";
    Line::new(from, doors.guest).ask(&format!("GET {EVENTS} HTTP/1.1\r\n{head}\r\n\r\n"))
}

/// A guest's approval from its own address.
pub fn approve(doors: &Doors, from: Ipv4Addr, event: uuid::Uuid) -> Result<Reply, Silence> {
    let body = format!("{{\"StartRequests\":[{{\"EventId\":\"{event}\"}}]}}");
    let head = format!("Host: x\r\nMetadata: true\r\nConnection: close\r\nContent-Length: {}", body.len());
    Line::new(from, doors.guest).ask(&format!("POST {EVENTS} HTTP/1.1\r\n{head}\r\n\r\n{body}"))
}
