//! Fast path: plain polls, answered in place by the worker's thread.
//!
//! A plain poll has a head that arrives whole, asks for a document in memory, and gets a response that the socket takes
//! at once. The thread reads it into its input buffer, examines it with the common rules ([`super::exchange`]), and
//! answers from its output buffer: three system calls, the wait included. It allocates memory only for a head that
//! enters the head cache. Any other request becomes a [`Start`]: the bytes read and the progress so far, for a task
//! ([`super::connection`]).

use std::io::IoSlice;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use bytes::Buf;
use jiff::Timestamp;
use notbefore_wire::guest::error::GuestError;
use notbefore_wire::guest::version::EventsVersion;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::GuestServer;
use super::caller::Caller;
use super::connection::{Start, Unsent};
use super::exchange::{Exchange, Verdict};
use super::head::Framing;
use super::head_cache::HeadCache;
use super::long_poll::Pending;
use super::platform::{Platform, RefusedRequest, Rendered};
use super::response::{Persistence, Response, ResponseMeta};
use super::settings::{HEAD_BYTES_MAX, REQUESTS_PER_TURN};

/// A thread's input and output buffers, and its head cache.
pub(super) struct Buffers {
    input: Vec<u8>,
    output: Vec<u8>,
    head_cache: HeadCache,
}

impl Buffers {
    pub(super) fn new() -> Buffers {
        Buffers { input: vec![0; HEAD_BYTES_MAX], output: Vec::new(), head_cache: HeadCache::default() }
    }
}

/// Conditions of one turn of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub now: Timestamp,
    /// When the worker woke up, by [`UPTIME`](crate::clock::UPTIME).
    pub uptime: Duration,
    /// The client has shut down its write side; it may still read.
    pub has_hung_up: bool,
    /// The connection has not sent a request before, so its client is recorded.
    pub is_first: bool,
    /// The server shuts down after this turn.
    pub is_last: bool,
}

/// What to do with a connection after its turn.
pub(super) enum Step<G> {
    /// It is idle.
    Keep,
    /// It is idle, and nothing was read in this turn.
    NoData,
    /// It may have more to read, after other connections had their turn.
    More,
    Close,
    /// Its poll waits for a change.
    LongPoll(Box<Pending>),
    /// A task continues with it.
    HandOver(Start<G>),
}

/// Answers the requests that a connection has sent, as far as possible in place and in one turn.
pub(super) fn serve<P: Platform>(
    server: &GuestServer<P>,
    socket: BorrowedFd<'_>,
    caller: &Caller,
    buffers: &mut Buffers,
    turn: Turn,
) -> Step<P::Guest> {
    let Buffers { input, output, head_cache } = buffers;
    let mut left = REQUESTS_PER_TURN;
    loop {
        let read = match rustix::net::recv(socket, input.as_mut_slice(), RecvFlags::empty()) {
            Ok((0, _)) => return Step::Close,
            Ok((read, _)) => read,
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => return Step::NoData,
            Err(_) => return Step::Close,
        };
        if server.interception.is_on() {
            return Step::HandOver(Start::Head(input[..read].to_vec()));
        }
        let mut at = 0;
        while at < read {
            let bytes = &input[at..read];
            if left == 0 {
                return Step::HandOver(Start::Head(bytes.to_vec()));
            }
            left -= 1;
            let mut exchange = match server.examine_cached(head_cache, bytes, caller, turn) {
                Ok(Some(exchange)) => exchange,
                Ok(None) => return Step::HandOver(Start::Head(bytes.to_vec())),
                Err(error) => return Step::HandOver(Start::Refusal(error, bytes.to_vec())),
            };
            at += exchange.head_length;
            if turn.is_last {
                exchange.meta.persistence = Persistence::Closing;
            }
            let Exchange { meta, framing: Framing::Empty, verdict, .. } = exchange else {
                return hand_over(exchange, &input[..read], at);
            };
            let (response, delivers) = match verdict {
                // A refused guest is delayed, and this thread must not wait.
                verdict @ Verdict::Response(Response::Refused(GuestError::TooManyRequests)) => {
                    let exchange = Exchange { meta, framing: Framing::Empty, verdict, ..exchange };
                    return hand_over(exchange, &input[..read], at);
                }
                Verdict::Response(response) => {
                    if let Response::Refused(error) = response {
                        let head = &input[at - exchange.head_length..at];
                        server.record_refusal(
                            caller,
                            &RefusedRequest { head, error, detail: "", at: turn.now },
                        );
                    }
                    (response, None)
                }
                Verdict::Unchanged { incarnation, .. } => (Response::NotModified { incarnation }, None),
                Verdict::Document { guest, version, rendered: Rendered { incarnation, body, .. } } => {
                    (Response::Document { incarnation, body }, Some((guest, version)))
                }
                Verdict::LongPoll(hold, wait) => {
                    let rest = input[at..read].to_vec();
                    // Input that did not fit is already in the socket; epoll will not report it again.
                    let has_unread = read == input.len();
                    return Step::LongPoll(Box::new(Pending { hold: *hold, wait, meta, rest, has_unread }));
                }
                verdict @ (Verdict::Instance { .. } | Verdict::Approve(_) | Verdict::ReadThrough(_)) => {
                    let exchange = Exchange { meta, framing: Framing::Empty, verdict, ..exchange };
                    return hand_over(exchange, &input[..read], at);
                }
            };
            match send_response(server, socket, output, OutgoingResponse { response, meta, delivers }) {
                Sent::All => {}
                Sent::Partial(unsent) => {
                    return Step::HandOver(Start::Unsent(unsent, input[at..read].to_vec()));
                }
                Sent::Closed => return Step::Close,
            }
            if meta.persistence == Persistence::Closing {
                // Closing a socket whose input was all read does not reset the connection.
                let all_read = at == read && read < input.len();
                return if all_read { Step::Close } else { Step::HandOver(Start::Linger) };
            }
        }
        // A read that did not fill the buffer emptied the socket; only an end of file may follow.
        if read < input.len() && !turn.has_hung_up {
            return Step::Keep;
        }
        if left == 0 {
            return Step::More;
        }
    }
}

/// Passes a request to a task, with the bytes from its head on; the head ends at `end`.
#[cold]
fn hand_over<G>(exchange: Exchange<G>, input: &[u8], end: usize) -> Step<G> {
    let bytes = input[end - exchange.head_length..].to_vec();
    Step::HandOver(Start::Exchange(Box::new(exchange), bytes))
}

/// A response, how to write it, and the guest and version of the document that it delivers.
pub(super) struct OutgoingResponse<G> {
    pub response: Response,
    pub meta: ResponseMeta,
    pub delivers: Option<(G, EventsVersion)>,
}

/// Result of sending a response.
pub(super) enum Sent<G> {
    All,
    /// The socket did not take all of it; this is the rest.
    Partial(Box<Unsent<G>>),
    Closed,
}

impl Buffers {
    pub(super) fn send_response<P: Platform>(
        &mut self,
        server: &GuestServer<P>,
        socket: BorrowedFd<'_>,
        response: OutgoingResponse<P::Guest>,
    ) -> Sent<P::Guest> {
        send_response(server, socket, &mut self.output, response)
    }

    /// Reads once and drops the input.
    pub(super) fn discard_input(&mut self, socket: BorrowedFd<'_>) {
        let _ = rustix::net::recv(socket, self.input.as_mut_slice(), RecvFlags::empty());
    }
}

/// Sends a response in one call; records the delivery of a document that was sent whole.
fn send_response<P: Platform>(
    server: &GuestServer<P>,
    socket: BorrowedFd<'_>,
    output: &mut Vec<u8>,
    OutgoingResponse { response, meta, delivers }: OutgoingResponse<P::Guest>,
) -> Sent<P::Guest> {
    server.stats.count_response(&response);
    output.clear();
    let mut body = response.write(meta, output);
    let sent = loop {
        let sent = match body.is_empty() {
            true => rustix::net::send(socket, output, SendFlags::NOSIGNAL),
            false => rustix::io::writev(socket, &[IoSlice::new(output), IoSlice::new(&body)]),
        };
        match sent {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break 0,
            Err(_) => return Sent::Closed,
            Ok(sent) => break sent,
        }
    };
    if sent == output.len() + body.len() {
        if let Some((guest, version)) = delivers {
            server.platform.record_delivery(&guest, version, meta.now);
        }
        return Sent::All;
    }
    let of_head = sent.min(output.len());
    body.advance(sent - of_head);
    let head = output[of_head..].to_vec();
    Sent::Partial(Box::new(Unsent { head, body, meta, delivers }))
}
