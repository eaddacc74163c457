//! One non-blocking connection: sends requests and returns complete responses.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use anyhow::Context;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, Socket, Type};

use crate::http::Answer;

/// A guest's connection, open or closed.
pub struct Connection {
    source: Ipv4Addr,
    stream: Option<TcpStream>,
    output: Vec<u8>,
    sent: usize,
    input: Vec<u8>,
    /// Intended send time of the request in flight.
    pub asked_at: Option<Instant>,
    /// Intended send times of queued requests.
    pub waiting: VecDeque<Instant>,
}

/// Result of a read.
pub enum Progress {
    /// No complete response yet.
    Nothing,
    /// A response.
    Answered,
    /// The connection closed.
    Ended,
}

impl Connection {
    /// A guest without a connection.
    pub fn new(source: Ipv4Addr) -> Self {
        Self {
            source,
            stream: None,
            output: Vec::new(),
            sent: 0,
            input: Vec::new(),
            asked_at: None,
            waiting: VecDeque::new(),
        }
    }

    /// Whether it is connected or connecting.
    pub fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// Connects; pending output is sent once connected.
    ///
    /// Every guest has its own address, so ephemeral ports do not run out.
    pub fn open(&mut self, to: SocketAddr, registry: &Registry, token: Token) -> anyhow::Result<()> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).context("a socket")?;
        socket.bind(&SocketAddr::from((self.source, 0)).into()).context("an address to call from")?;
        socket.set_tcp_nodelay(true)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&to.into()) {
            Err(error) if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {
                return Err(error).with_context(|| format!("connecting from {} to {to}", self.source));
            }
            Err(_) | Ok(()) => {}
        }
        let mut stream = TcpStream::from_std(socket.into());
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        self.stream = Some(stream);
        Ok(())
    }

    /// The empty output buffer for the next request.
    pub fn output(&mut self) -> &mut Vec<u8> {
        self.output.clear();
        self.sent = 0;
        &mut self.output
    }

    /// Sends as much as possible; false if the connection is broken.
    pub fn send(&mut self) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        while self.sent < self.output.len() {
            match stream.write(&self.output[self.sent..]) {
                Ok(0) => return false,
                Ok(length) => self.sent += length,
                // Not connected yet, or buffers are full: a readiness event follows.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Reads through a buffer that all connections share; returns a complete response.
    pub fn receive(
        &mut self,
        shared: &mut [u8],
        seen: impl FnOnce(&Answer<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Progress> {
        let Some(stream) = &mut self.stream else { return Ok(Progress::Nothing) };
        loop {
            match stream.read(shared) {
                Ok(0) => return Ok(Progress::Ended),
                Ok(length) => {
                    // Most responses arrive in one piece and need no buffer of their own.
                    if self.input.is_empty()
                        && let Some(answer) = Answer::parse(&shared[..length])?
                    {
                        anyhow::ensure!(
                            answer.length() == length,
                            "the response is longer than its Content-Length"
                        );
                        seen(&answer)?;
                        return Ok(Progress::Answered);
                    }
                    self.input.extend_from_slice(&shared[..length]);
                    if let Some(answer) = Answer::parse(&self.input)? {
                        seen(&answer)?;
                        self.input.clear();
                        return Ok(Progress::Answered);
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    return Ok(Progress::Nothing);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Ok(Progress::Ended),
            }
        }
    }

    /// Closes the connection.
    pub fn close(&mut self, registry: &Registry) {
        if let Some(mut stream) = self.stream.take() {
            let _ = registry.deregister(&mut stream);
        }
        self.input.clear();
    }
}
