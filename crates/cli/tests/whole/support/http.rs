//! HTTP client of the tests. Requests are raw bytes, because many tests send invalid ones. A response, a refused
//! connection and an interrupted response are distinguished.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{PATIENCE, Service};

/// A response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status; 0 without a response.
    pub status: u16,
    /// The head, without the empty line.
    pub head: String,
    /// The body.
    pub body: String,
}

impl Answer {
    fn new(head: &str, body: &[u8]) -> Self {
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.trim_end().to_owned(), body: String::from_utf8_lossy(body).into_owned() }
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        self.parsed()
    }

    /// The body, deserialized.
    pub fn parsed<T: DeserializeOwned>(&self) -> T {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("cannot deserialize ({error}): {self:?}"))
    }

    /// The code of a problem document; empty if the body has none.
    pub fn code(&self) -> String {
        let problem = serde_json::from_str::<Value>(&self.body).unwrap_or_default();
        problem["code"].as_str().unwrap_or_default().to_owned()
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let headers = self.head.lines().filter_map(|line| line.split_once(':'));
        headers.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }

    /// The service's own time, in whole seconds, rounded down.
    pub fn date(&self) -> Timestamp {
        let date = self.header("date").unwrap_or_else(|| panic!("no date: {self:?}"));
        jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date).unwrap()
    }
}

/// Sends bytes from an address and reads the whole response.
pub fn exchange(source: IpAddr, to: SocketAddr, request: &[u8]) -> Answer {
    let mut stream = connect(source, to).unwrap();
    stream.write_all(request).unwrap();
    let mut bytes = Vec::new();
    // Ignore a reset after the response.
    let _ = stream.read_to_end(&mut bytes);
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let (head, body) = end.map_or((&bytes[..], &[][..]), |end| (&bytes[..end], &bytes[end + 4..]));
    Answer::new(&String::from_utf8_lossy(head), body)
}

/// Gets a page from loopback.
pub fn get(to: SocketAddr, path: &str) -> Answer {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    exchange(Ipv4Addr::LOCALHOST.into(), to, request.as_bytes())
}

/// A connection from an address.
pub fn connect(source: IpAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(to), socket2::Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(source, 0).into())?;
    socket.connect(&to.into())?;
    let stream: TcpStream = socket.into();
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Why there is no response. Only `Unanswered` leaves the outcome unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoResponse {
    /// The connection was refused, so the request was not read.
    NotSent,
    /// The connection was cut after the request was sent.
    Unanswered,
}

/// Sends one request on a connection of its own. `limit` bounds the time to connect, and each wait for a part of the
/// response.
pub fn exchange_within(
    source: Ipv4Addr,
    to: SocketAddr,
    request: &str,
    limit: Duration,
) -> Result<Answer, NoResponse> {
    let open = || -> std::io::Result<TcpStream> {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(source.into(), 0).into())?;
        socket.connect_timeout(&to.into(), limit)?;
        let stream: TcpStream = socket.into();
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        Ok(stream)
    };
    let mut stream = BufReader::new(open().map_err(|_| NoResponse::NotSent)?);
    stream.get_mut().write_all(request.as_bytes()).map_err(|_| NoResponse::Unanswered)?;
    read_answer(&mut stream).map_err(|_| NoResponse::Unanswered)
}

/// A connection that is opened on demand and reused while the service keeps it open.
pub struct Connection {
    from: Ipv4Addr,
    to: SocketAddr,
    open: Option<BufReader<TcpStream>>,
}

impl Connection {
    pub fn new(from: Ipv4Addr, to: SocketAddr) -> Self {
        Self { from, to, open: None }
    }

    pub fn request(&mut self, request: &str) -> Result<Answer, NoResponse> {
        let mut stream = match self.open.take() {
            Some(stream) => stream,
            None => BufReader::new(connect(self.from.into(), self.to).map_err(|_| NoResponse::NotSent)?),
        };
        stream.get_mut().write_all(request.as_bytes()).map_err(|_| NoResponse::Unanswered)?;
        let answer = read_answer(&mut stream).map_err(|_| NoResponse::Unanswered)?;
        let closes = answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        self.open = Some(stream).filter(|_| !closes);
        Ok(answer)
    }
}

fn read_head(stream: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Err(Error::from(ErrorKind::UnexpectedEof));
        }
    }
    Ok(head)
}

/// Reads one whole response.
fn read_answer(stream: &mut BufReader<TcpStream>) -> std::io::Result<Answer> {
    let mut answer = Answer::new(&read_head(stream)?, b"");
    let length = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    answer.body = String::from_utf8_lossy(&body).into_owned();
    Ok(answer)
}

/// The stream of facts that a token sees.
pub struct EventStream {
    /// The head of the answer.
    pub head: String,
    reader: BufReader<TcpStream>,
}

impl EventStream {
    /// Opens the stream and waits for its first line.
    pub fn open(service: &Service, token: &str, headers: &str) -> Self {
        Self::open_with(service, &format!("Authorization: Bearer {}\r\n{headers}", token.trim()))
    }

    /// The same, authenticated by the headers.
    pub fn open_with(service: &Service, headers: &str) -> Self {
        let mut stream = connect(Ipv4Addr::LOCALHOST.into(), service.operator).unwrap();
        let request =
            format!("GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut stream = Self { head: read_head(&mut reader).unwrap(), reader };
        stream.line_with(": connected");
        stream
    }

    /// The next line, with its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.reader.read_line(&mut line).unwrap(), 0, "the stream ended");
        line
    }

    /// The next line with this prefix.
    pub fn line_with(&mut self, prefix: &str) -> String {
        loop {
            let line = self.line();
            if line.starts_with(prefix) {
                return line;
            }
        }
    }

    /// Reads to the end of the stream. Fails at a keep-alive comment: the service did not end the stream.
    pub fn read_to_end(mut self) -> String {
        let mut text = String::new();
        while self.reader.read_line(&mut text).unwrap() > 0 {
            assert!(!text.contains(": alive"), "the stream is still open: {text}");
        }
        text
    }
}
