//! A misbehaving guest, to measure its effect on others.
//!
//! It runs in short slices between the requests of quiet guests, on the same thread: a second thread on the core
//! would itself delay the quiet guests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use crate::load::guests;
use crate::service::POLL;
use crate::{clock, http};

/// As many connections as the service allows one source.
const CONNECTIONS: usize = 64;

/// Delay between bytes of the slow guest over all connections: a tenth of a second on each.
const BETWEEN_BYTES: Duration = Duration::from_micros(1_500);

/// Kind of misbehaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloodKind {
    /// None.
    None,
    /// Sixteen pipelined polls on every connection, repeatedly.
    Pipelining,
    /// Bytes that are not HTTP.
    Garbage,
    /// A request that never ends, byte by byte (slowloris).
    SlowSender,
    /// A new connection for every poll, as fast as possible.
    Reconnecting,
}

/// The misbehaving guest.
pub struct Flood {
    kind: FloodKind,
    to: SocketAddr,
    guest: usize,
    sockets: Vec<Option<TcpStream>>,
    turn: usize,
    worked_at: Instant,
    requests: Vec<u8>,
    input: Vec<u8>,
}

impl Flood {
    /// The guest with this index, ready to start.
    pub fn new(kind: FloodKind, to: SocketAddr, guest: usize) -> Self {
        let poll = http::request("GET", POLL, "Metadata: true\r\n", "");
        let requests = match kind {
            FloodKind::None => String::new(),
            FloodKind::Pipelining => poll.repeat(16),
            FloodKind::Garbage => "\u{1}\u{2}garbage that is no request at all\r\n\r\n".repeat(16),
            FloodKind::SlowSender => "X".to_owned(),
            FloodKind::Reconnecting => poll,
        };
        Self {
            kind,
            to,
            guest,
            sockets: (0..CONNECTIONS).map(|_| None).collect(),
            turn: 0,
            worked_at: clock::now(),
            requests: requests.into_bytes(),
            input: vec![0; 64 * 1024],
        }
    }

    /// Runs one slice, on one connection at a time. Errors are ignored: the server may reject such a guest.
    pub fn work(&mut self) {
        let pause = match self.kind {
            FloodKind::None => return,
            FloodKind::SlowSender => BETWEEN_BYTES,
            FloodKind::Pipelining | FloodKind::Garbage | FloodKind::Reconnecting => Duration::ZERO,
        };
        let now = clock::now();
        if now.duration_since(self.worked_at) < pause {
            return;
        }
        self.worked_at = now;
        self.turn = (self.turn + 1) % self.sockets.len();
        if self.sockets[self.turn].is_none() {
            self.sockets[self.turn] = self.connect().ok();
        }
        let Some(socket) = &mut self.sockets[self.turn] else { return };
        let ended = |result: std::io::Result<usize>| match result {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => {
                !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::NotConnected)
            }
        };
        let answered = socket.read(&mut self.input);
        let done = self.kind == FloodKind::Reconnecting && matches!(answered, Ok(1..));
        if done || ended(answered) || ended(socket.write(&self.requests)) {
            self.sockets[self.turn] = None;
        }
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.bind(&SocketAddr::from((guests::address(self.guest), 0)).into())?;
        socket.set_nonblocking(true)?;
        match socket.connect(&self.to.into()) {
            Err(error) if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {
                Err(error)
            }
            Err(_) | Ok(()) => Ok(socket.into()),
        }
    }
}
