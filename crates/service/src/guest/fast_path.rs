//! Plain polls, answered in place.
//!
//! A poll is a head that arrives whole, asks for what is in memory, and has a response that the socket takes at
//! once. Such requests are read into the thread's one buffer, judged by the rules that hold for all
//! ([`super::exchange`]), and answered from the thread's other buffer: three system calls with the one that waited.
//! Memory is allocated only for a head that enters the head cache. Whatever is not so is left to the caller as a [`Start`]: the bytes that were read and how far
//! they got, for the task that goes on with them ([`super::connection`]).

use std::io::IoSlice;
use std::os::fd::BorrowedFd;

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
use super::platform::{Platform, Rendered};
use super::response::{Persistence, Response, ResponseMeta};
use super::settings::{HEAD_BYTES_MAX, REQUESTS_PER_TURN};

/// What a thread reads into and writes from, and the heads that it knows.
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

/// The circumstances of a look at a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub now: Timestamp,
    /// The client has said that it will send no more; it may still read.
    pub has_hung_up: bool,
    /// The server closes: this is the last turn.
    pub is_last: bool,
}

/// What becomes of a connection after its turn.
pub(super) enum Step<G> {
    /// It is idle.
    Keep,
    /// It is idle, and nothing has come this time.
    NoData,
    /// It may have more to read, after the others had their turn.
    More,
    /// It is over.
    Close,
    /// Its poll waits for news.
    LongPoll(Box<Pending>),
    /// There is more to it.
    HandOver(Start<G>),
}

/// Answers what a connection has sent, as far as that can be done in place and in one turn.
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
        let mut at = 0;
        while at < read {
            let bytes = &input[at..read];
            if left == 0 {
                return Step::HandOver(Start::Head(bytes.to_vec()));
            }
            left -= 1;
            let mut exchange = match server.examine_cached(head_cache, bytes, caller, turn.now) {
                Ok(Some(exchange)) => exchange,
                Ok(None) => return Step::HandOver(Start::Head(bytes.to_vec())),
                Err(error) => return Step::HandOver(Start::Refusal(error)),
            };
            at += exchange.head_length;
            if turn.is_last {
                exchange.meta.persistence = Persistence::Closing;
            }
            let Exchange { meta, framing: Framing::Empty, verdict, .. } = exchange else {
                return Step::HandOver(Start::Exchange(Box::new(exchange), input[at..read].to_vec()));
            };
            let (response, delivers) = match verdict {
                // It has to rest after that, and a thread does not wait.
                verdict @ Verdict::Response(Response::Refused(GuestError::TooManyRequests)) => {
                    let exchange = Exchange { meta, framing: Framing::Empty, verdict, ..exchange };
                    return Step::HandOver(Start::Exchange(Box::new(exchange), input[at..read].to_vec()));
                }
                Verdict::Response(response) => (response, None),
                Verdict::Unchanged { incarnation, .. } => (Response::NotModified { incarnation }, None),
                Verdict::Document { guest, version, rendered: Rendered { incarnation, body, .. } } => {
                    (Response::Document { incarnation, body }, Some((guest, version)))
                }
                Verdict::LongPoll(hold, wait) => {
                    let rest = input[at..read].to_vec();
                    // What did not fit is there already, and will not be told of again.
                    let has_unread = read == input.len();
                    return Step::LongPoll(Box::new(Pending { hold: *hold, wait, meta, rest, has_unread }));
                }
                verdict @ (Verdict::Instance { .. } | Verdict::Approve(_)) => {
                    let exchange = Exchange { meta, framing: Framing::Empty, verdict, ..exchange };
                    return Step::HandOver(Start::Exchange(Box::new(exchange), input[at..read].to_vec()));
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
                // With all that has come read, closing the socket resets nothing.
                let all_read = at == read && read < input.len();
                return if all_read { Step::Close } else { Step::HandOver(Start::Linger) };
            }
        }
        // A read that did not fill the buffer has emptied the socket; only an end may still be behind it.
        if read < input.len() && !turn.has_hung_up {
            return Step::Keep;
        }
        if left == 0 {
            return Step::More;
        }
    }
}

/// A response, how it is written, and whom the document reaches with it at which version.
pub(super) struct OutgoingResponse<G> {
    pub response: Response,
    pub meta: ResponseMeta,
    pub delivers: Option<(G, EventsVersion)>,
}

/// What became of a response.
pub(super) enum Sent<G> {
    All,
    /// The socket did not take all of it; this is the rest.
    Partial(Box<Unsent<G>>),
    Closed,
}

impl Buffers {
    /// Sends a response.
    pub(super) fn send_response<P: Platform>(
        &mut self,
        server: &GuestServer<P>,
        socket: BorrowedFd<'_>,
        response: OutgoingResponse<P::Guest>,
    ) -> Sent<P::Guest> {
        send_response(server, socket, &mut self.output, response)
    }

    /// Reads what a connection has sent, once, for nobody.
    pub(super) fn discard_input(&mut self, socket: BorrowedFd<'_>) {
        let _ = rustix::net::recv(socket, self.input.as_mut_slice(), RecvFlags::empty());
    }
}

/// Sends a response, in one call, and tells the platform of a document that is out.
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
