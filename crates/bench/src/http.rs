//! Minimal HTTP client: finds the end of a response, and a blocking connection.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::Context;
use socket2::{Domain, Protocol, Socket, Type};

/// Timeout of a single response.
const PATIENCE: Duration = Duration::from_secs(60);

/// A complete response within a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// HTTP status.
    pub status: u16,
    /// The head with the empty line.
    pub head: &'a [u8],
    /// The body.
    pub body: &'a [u8],
}

impl<'a> Answer<'a> {
    /// The response at the start of a buffer, if complete.
    pub fn parse(bytes: &'a [u8]) -> anyhow::Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut response = httparse::Response::new(&mut headers);
        let head = match response.parse(bytes).context("an answer that is no HTTP")? {
            httparse::Status::Complete(length) => length,
            httparse::Status::Partial => return Ok(None),
        };
        let status = response.code.unwrap_or_default();
        let length =
            response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
        let length = match length {
            Some(header) => std::str::from_utf8(header.value)?.trim().parse::<usize>()?,
            None => 0,
        };
        let length = if status == 304 || status == 204 { 0 } else { length };
        let whole = bytes.len() >= head + length;
        Ok(whole.then(|| Self { status, head: &bytes[..head], body: &bytes[head..head + length] }))
    }

    /// Its length in bytes.
    pub fn length(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let head = std::str::from_utf8(self.head).ok()?;
        let lines = head.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }
}

/// An owned response.
#[derive(Clone, Debug)]
pub struct Kept {
    /// HTTP status.
    pub status: u16,
    /// The `ETag`, if any.
    pub etag: Option<String>,
    /// The body.
    pub body: String,
}

impl Kept {
    /// The body as JSON; fails unless the status is a success.
    pub fn json(&self) -> anyhow::Result<serde_json::Value> {
        anyhow::ensure!(self.status < 300, "answered {}: {}", self.status, self.body);
        serde_json::from_str(&self.body).with_context(|| format!("no JSON: {}", self.body))
    }
}

/// A kept connection with one request at a time.
pub struct Client {
    stream: TcpStream,
    input: Vec<u8>,
    /// Headers of every request, each with its line end.
    headers: String,
}

impl Client {
    /// Connects from an address of 127.0.0.0/8.
    pub fn connect(source: Ipv4Addr, to: SocketAddr, headers: String) -> anyhow::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.bind(&SocketAddr::from((source, 0)).into())?;
        socket.connect(&to.into()).with_context(|| format!("connecting to {to}"))?;
        let stream: TcpStream = socket.into();
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, input: Vec::new(), headers })
    }

    /// A guest's connection.
    pub fn guest(source: Ipv4Addr, to: SocketAddr) -> anyhow::Result<Self> {
        Self::connect(source, to, "Metadata: true\r\n".to_owned())
    }

    /// What is below.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Sends a request and waits for the response.
    pub fn request(&mut self, method: &str, target: &str, body: &str) -> anyhow::Result<Kept> {
        let request = request(method, target, &self.headers, body);
        self.stream.write_all(request.as_bytes())?;
        self.input.clear();
        let mut piece = [0; 16 * 1024];
        loop {
            let length =
                self.stream.read(&mut piece).with_context(|| format!("waiting for {method} {target}"))?;
            anyhow::ensure!(length > 0, "the connection ended before {method} {target} was answered");
            self.input.extend_from_slice(&piece[..length]);
            if let Some(answer) = Answer::parse(&self.input)? {
                return Ok(Kept {
                    status: answer.status,
                    etag: answer.header("etag").map(str::to_owned),
                    body: String::from_utf8_lossy(answer.body).into_owned(),
                });
            }
        }
    }
}

/// A request as bytes; `headers` each with its line end.
pub fn request(method: &str, target: &str, headers: &str, body: &str) -> String {
    let length = match method {
        "GET" => String::new(),
        _ => format!("Content-Length: {}\r\n", body.len()),
    };
    format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{headers}{length}\r\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_where_it_says() {
        let bytes =
            b"HTTP/1.1 200 OK\r\nETag: 7\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 304 Not Modified\r\n\r\n";
        let first = Answer::parse(bytes).unwrap().unwrap();
        assert_eq!((first.status, first.body, first.header("etag")), (200, &b"ok"[..], Some("7")));
        for length in 0..bytes.len() {
            let answer = Answer::parse(&bytes[..length]).unwrap();
            assert_eq!(answer.is_some(), length >= first.length(), "{length}");
        }
        let second = Answer::parse(&bytes[first.length()..]).unwrap().unwrap();
        assert_eq!((second.status, second.body), (304, &b""[..]));
        assert!(Answer::parse(b"garbage\r\n\r\n").is_err());
    }
}
