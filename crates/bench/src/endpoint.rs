//! A mock of Azure's endpoint: immediate full responses, no long polls, accepts approvals. The benchmark controls its
//! document, so the time of each change is known to the microsecond.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock;

/// Longest request read; an agent's are a tenth of it.
const REQUEST_MAX: usize = 16 << 10;

/// The document, and the recorded requests.
#[derive(Debug, Default)]
struct Shown {
    incarnation: u64,
    events: Vec<Value>,
    polls: usize,
    approvals: Vec<(String, Timestamp)>,
}

/// A running endpoint. It ends with the process.
pub struct Endpoint {
    /// Its address.
    pub address: SocketAddr,
    shown: Arc<Mutex<Shown>>,
}

impl Endpoint {
    /// Starts an endpoint with an empty document.
    pub fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("listening for the agent")?;
        let address = listener.local_addr()?;
        let shown = Arc::new(Mutex::new(Shown { incarnation: 1, ..Shown::default() }));
        let theirs = shown.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shown = theirs.clone();
                // A disconnected client is ignored.
                std::thread::spawn(move || drop(serve(connection, &shown)));
            }
        });
        Ok(Self { address, shown })
    }

    /// Publishes these events and returns the time.
    pub fn show(&self, events: Vec<Value>) -> Timestamp {
        let mut shown = lock(&self.shown);
        shown.incarnation += 1;
        shown.events = events;
        clock::wall()
    }

    /// Number of polls so far.
    pub fn polls(&self) -> usize {
        lock(&self.shown).polls
    }

    /// When an event was first approved.
    pub fn approved(&self, event: &str) -> Option<Timestamp> {
        let shown = lock(&self.shown);
        shown.approvals.iter().find(|(id, _)| id.eq_ignore_ascii_case(event)).map(|(_, at)| *at)
    }
}

fn lock(shown: &Mutex<Shown>) -> std::sync::MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves one connection's requests in order.
fn serve(mut connection: TcpStream, shown: &Mutex<Shown>) -> anyhow::Result<()> {
    let mut received = Vec::new();
    loop {
        let (method, target, head, body) = loop {
            if let Some(whole) = whole_request(&received)? {
                break whole;
            }
            let mut more = [0; 4096];
            let count = connection.read(&mut more)?;
            anyhow::ensure!(
                count > 0 && received.len() < REQUEST_MAX,
                "the client disconnected, or its request is too long"
            );
            received.extend_from_slice(&more[..count]);
        };
        let answer = answer(&method, &target, &received[head..head + body], shown)?;
        received.drain(..head + body);
        connection.write_all(&answer)?;
    }
}

/// The first request in a buffer: method, target, length of head and body.
fn whole_request(received: &[u8]) -> anyhow::Result<Option<(String, String, usize, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head) = request.parse(received)? else { return Ok(None) };
    let length = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.parse().ok()).unwrap_or(0);
    let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
    Ok((received.len() >= head + length).then(|| (method.to_owned(), target.to_owned(), head, length)))
}

fn answer(method: &str, target: &str, body: &[u8], shown: &Mutex<Shown>) -> anyhow::Result<Vec<u8>> {
    let mut shown = lock(shown);
    let (status, body) = if !target.starts_with("/metadata/scheduledevents") {
        ("404 Not Found", String::new())
    } else if method == "POST" {
        let approval: Value = serde_json::from_slice(body).context("an approval that is no JSON")?;
        let id = approval["StartRequests"][0]["EventId"].as_str().unwrap_or_default().to_owned();
        shown.approvals.push((id, clock::wall()));
        ("200 OK", String::new())
    } else {
        shown.polls += 1;
        ("200 OK", json!({ "DocumentIncarnation": shown.incarnation, "Events": shown.events }).to_string())
    };
    let date = jiff::fmt::rfc2822::to_string(&clock::wall().to_zoned(jiff::tz::TimeZone::UTC))?;
    let date = date.replace("+0000", "GMT");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json; charset=utf-8\r\nDate: {date}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    Ok((head + &body).into_bytes())
}
