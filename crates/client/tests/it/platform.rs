//! Scripted platform: answers each request with the next entry of a script, and records requests with their time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use notbefore_client::client::{Client, Options};
use notbefore_client::clock::Clock;
use notbefore_client::endpoint::Endpoint;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Reaction to a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Sends these bytes and keeps the connection.
    Send(Vec<u8>),
    /// Sends these bytes, possibly none, and closes the connection.
    SendAndClose(Vec<u8>),
    /// Waits, then does the next.
    After(Duration, Box<Reply>),
}

/// A response with this status and extra headers.
pub fn answer(status: u16, headers: &str, body: &str) -> Reply {
    Reply::Send(bytes(status, headers, body))
}

fn bytes(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = if status == 304 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    format!("HTTP/1.1 {status} x\r\n{headers}{length}\r\n{body}").into_bytes()
}

/// A document with these events; its tag is the incarnation.
pub fn document(incarnation: u64, events: &[&str]) -> Reply {
    answer(200, &format!("ETag: {incarnation}\r\n"), &body(incarnation, events))
}

pub fn body(incarnation: u64, events: &[&str]) -> String {
    format!("{{\"DocumentIncarnation\":{incarnation},\"Events\":[{}]}}", events.join(","))
}

/// An event with this id and status.
pub fn event(id: &str, status: &str) -> String {
    format!(
        "{{\"EventId\":\"{id}\",\"EventStatus\":\"{status}\",\"EventType\":\"Reboot\",\"ResourceType\":\"VirtualMachine\",\"Resources\":[\"web-0\"],\"NotBefore\":\"\"}}"
    )
}

/// A recorded request.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// Time of arrival.
    pub at: Duration,
    /// Request line and headers; headers in lower case.
    pub head: String,
    /// The body.
    pub body: String,
    /// Index of the connection.
    pub connection: usize,
}

impl RecordedRequest {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let line =
            self.head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        line.split_once(':').map(|(_, value)| value.trim())
    }
}

/// The platform.
pub struct Platform {
    pub endpoint: Endpoint,
    state: Arc<Mutex<State>>,
}

struct State {
    clock: Clock,
    script: VecDeque<Reply>,
    requests: Vec<RecordedRequest>,
}

impl Platform {
    /// Starts a platform. The last entry of the script repeats.
    pub async fn start(script: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = listener.local_addr().unwrap().to_string().parse().unwrap();
        let script = script.into_iter().collect();
        let state = Arc::new(Mutex::new(State { clock: Clock::start(), script, requests: Vec::new() }));
        let shared = state.clone();
        tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let state = shared.clone();
                tokio::spawn(async move {
                    // A disconnected client is ignored.
                    let _ = serve(stream, connection, &state).await;
                });
            }
        });
        Platform { endpoint, state }
    }

    pub fn client(&self) -> Client {
        Client::new(self.endpoint.clone(), Options::default())
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.state.lock().unwrap().requests.clone()
    }
}

async fn serve(mut stream: TcpStream, connection: usize, state: &Mutex<State>) -> std::io::Result<()> {
    loop {
        let (head, body) = request(&mut stream).await?;
        let mut reply = {
            let mut state = state.lock().unwrap();
            let at = state.clock.now().tick;
            state.requests.push(RecordedRequest { at, head, body, connection });
            let next =
                if state.script.len() > 1 { state.script.pop_front() } else { state.script.front().cloned() };
            next.unwrap()
        };
        loop {
            match reply {
                Reply::Send(bytes) => break stream.write_all(&bytes).await?,
                Reply::SendAndClose(bytes) => return stream.write_all(&bytes).await,
                Reply::After(wait, then) => {
                    tokio::time::sleep(wait).await;
                    reply = *then;
                }
            }
        }
    }
}

/// Reads a request.
async fn request(stream: &mut TcpStream) -> std::io::Result<(String, String)> {
    let mut text = Vec::new();
    loop {
        let parsed = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = parsed.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
            });
            if body.len() >= length.unwrap_or(0) {
                return Ok((head.to_owned(), body.to_owned()));
            }
        }
        if stream.read_buf(&mut text).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}
