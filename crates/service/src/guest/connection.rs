//! One connection, from its first byte to its last.
//!
//! Between requests a connection waits for its socket to become readable and holds no buffer: most
//! connections of a large fleet are idle at any moment. When bytes arrive they are read, judged
//! ([`super::exchange`]) and answered, one request at a time and in order; a client that sends ahead waits,
//! since nothing is read beyond one head or body until the request before it is answered.
//!
//! A body that a refused request came with is read and dropped, so that the connection stays in step; where
//! that cannot be done (it is too large, was held back, or its end cannot be found) the answer says
//! `Connection: close`, and the connection lingers briefly, so that the answer is not lost to a reset.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::BufMut;
use notbefore_wire::guest::error::GuestError;
use notbefore_wire::guest::start_requests;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::coop::consume_budget;
use tokio::time::timeout;

use super::admission::Permit;
use super::answer::{Answer, CONTINUE, Manner, Persistence};
use super::body::{self, Chunked};
use super::caller::Caller;
use super::exchange::{Exchange, Verdict};
use super::head::Framing;
use super::platform::{ApproveError, Platform, Rendered};
use super::settings::{BODY_BYTES_MAX, HEAD_BYTES_MAX};
use super::{GuestDoor, told_to_close};

/// What a buffer begins with: more than any published client's whole request.
const BUFFER_BYTES: usize = 2 * 1024;
/// How long a closing connection reads on and drops what it reads.
const LINGER: Duration = Duration::from_secs(2);
/// How many buffers a closing connection drops before it gives up on the client.
const LINGER_READS_MAX: usize = 256;

/// The connection is over and there is nobody left to tell.
struct Gone;

impl From<io::Error> for Gone {
    fn from(_: io::Error) -> Self {
        Gone
    }
}

/// Why a body was not read: the client is to be told, or gone.
enum BodyFailure {
    Refused(GuestError),
    Gone,
}

impl From<Gone> for BodyFailure {
    fn from(_: Gone) -> Self {
        BodyFailure::Gone
    }
}

fn timed_out(_: tokio::time::error::Elapsed) -> BodyFailure {
    BodyFailure::Refused(GuestError::Timeout)
}

/// A connection and what it has read and not yet answered.
pub(super) struct Connection<P: Platform> {
    pub door: Arc<GuestDoor<P>>,
    pub stream: TcpStream,
    pub caller: Caller,
    pub shutdown: watch::Receiver<bool>,
    pub buffer: Vec<u8>,
    /// Its place among the open connections.
    pub _permit: Permit,
}

impl<P: Platform> Connection<P> {
    /// Serves the connection until either side closes it.
    pub(super) async fn run(mut self) {
        loop {
            if self.buffer.is_empty() && self.idle().await.is_err() {
                return;
            }
            match self.serve_one().await {
                Ok(Persistence::Open | Persistence::KeptAlive) => {}
                Ok(Persistence::Closing) => return self.linger().await,
                Err(Gone) => return,
            }
            // A client that always has the next request ready must not keep others from their turn.
            consume_budget().await;
        }
    }

    /// Waits for the next request and reads the beginning of it. Until there is something to read the
    /// buffer is given back, also where the socket only seemed to be ready.
    async fn idle(&mut self) -> Result<(), Gone> {
        let limit = self.door.settings.limits.idle_timeout;
        let wait = async {
            loop {
                self.buffer = Vec::new();
                tokio::select! {
                    biased;
                    ready = self.stream.readable() => ready?,
                    () = told_to_close(&mut self.shutdown) => return Err(Gone),
                }
                if self.read_at_once(HEAD_BYTES_MAX).await? {
                    return Ok(());
                }
            }
        };
        timeout(limit, wait).await.unwrap_or(Err(Gone))
    }

    /// Reads, judges and answers one request, and says whether another may follow.
    async fn serve_one(&mut self) -> Result<Persistence, Gone> {
        let exchange = match self.read_head().await? {
            Ok(exchange) => exchange,
            Err(error) => {
                let manner = Manner {
                    now: self.door.clock.now(),
                    persistence: Persistence::Closing,
                    head_only: false,
                };
                self.send(Answer::Refused(error), manner).await?;
                return Ok(Persistence::Closing);
            }
        };
        self.buffer.drain(..exchange.head_length);
        let mut manner =
            Manner { now: exchange.now, persistence: exchange.persistence, head_only: exchange.head_only };
        let mut delivers = None;
        let answer = match (self.read_body(&exchange).await, exchange.verdict) {
            (Err(BodyFailure::Gone), _) => return Err(Gone),
            // The body could not be read; but a failure of the head came first, and answers.
            (Err(BodyFailure::Refused(error)), verdict) => {
                manner.persistence = Persistence::Closing;
                match verdict {
                    Verdict::Answer(refused @ Answer::Refused(_)) => refused,
                    Verdict::Answer(
                        Answer::Document { .. }
                        | Answer::NotModified { .. }
                        | Answer::Approved
                        | Answer::Metadata { .. },
                    )
                    | Verdict::Document { .. }
                    | Verdict::Approve(_) => Answer::Refused(error),
                }
            }
            (Ok(_), Verdict::Answer(answer)) => answer,
            (Ok(_), Verdict::Document { guest, version, rendered: Rendered { incarnation, body } }) => {
                delivers = Some((guest, version));
                Answer::Document { incarnation, body }
            }
            (Ok(body), Verdict::Approve(guest)) => self.approve(&guest, &body, manner).await,
        };
        if *self.shutdown.borrow() {
            manner.persistence = Persistence::Closing;
        }
        self.send(answer, manner).await?;
        if let Some((guest, version)) = delivers {
            self.door.platform.delivered(&guest, version, manner.now);
        }
        Ok(manner.persistence)
    }

    async fn read_head(&mut self) -> Result<Result<Exchange<P::Guest>, GuestError>, Gone> {
        // A head almost always arrives whole: then no timer is set.
        match self.door.examine(&self.buffer, &self.caller) {
            Ok(Some(exchange)) => return Ok(Ok(exchange)),
            Ok(None) => {}
            Err(error) => return Ok(Err(error)),
        }
        let limit = self.door.settings.limits.head_timeout;
        match timeout(limit, self.read_rest_of_head()).await {
            Ok(read) => read,
            Err(_) => Ok(Err(self.door.if_known(&self.caller, GuestError::Timeout))),
        }
    }

    async fn read_rest_of_head(&mut self) -> Result<Result<Exchange<P::Guest>, GuestError>, Gone> {
        loop {
            self.read(HEAD_BYTES_MAX).await?;
            match self.door.examine(&self.buffer, &self.caller) {
                Ok(Some(exchange)) => return Ok(Ok(exchange)),
                Ok(None) => {}
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// The whole body. What a refused request came with is read too, unless the client holds it back.
    async fn read_body(&mut self, exchange: &Exchange<P::Guest>) -> Result<Vec<u8>, BodyFailure> {
        match exchange.framing {
            Framing::Empty => return Ok(Vec::new()),
            Framing::Length(length) if length > BODY_BYTES_MAX as u64 => {
                return Err(BodyFailure::Refused(body::TOO_LARGE));
            }
            Framing::Length(_) | Framing::Chunked => {}
        }
        if exchange.expects_continue && self.buffer.is_empty() {
            match &exchange.verdict {
                Verdict::Answer(Answer::Refused(error)) => return Err(BodyFailure::Refused(*error)),
                Verdict::Answer(
                    Answer::Document { .. }
                    | Answer::NotModified { .. }
                    | Answer::Approved
                    | Answer::Metadata { .. },
                )
                | Verdict::Document { .. }
                | Verdict::Approve(_) => self.write(CONTINUE, &[]).await.map_err(Gone::from)?,
            }
        }
        let limit = self.door.settings.limits.body_timeout;
        match exchange.framing {
            Framing::Length(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if self.buffer.len() < length {
                    timeout(limit, self.read_up_to(length)).await.map_err(timed_out)??;
                }
                let rest = self.buffer.split_off(length);
                Ok(std::mem::replace(&mut self.buffer, rest))
            }
            Framing::Chunked => timeout(limit, self.read_chunks()).await.map_err(timed_out)?,
            Framing::Empty => Ok(Vec::new()),
        }
    }

    async fn read_up_to(&mut self, length: usize) -> Result<(), BodyFailure> {
        while self.buffer.len() < length {
            self.read(length).await?;
        }
        Ok(())
    }

    async fn read_chunks(&mut self) -> Result<Vec<u8>, BodyFailure> {
        let mut chunked = Chunked::new();
        loop {
            let used = chunked.feed(&self.buffer).map_err(BodyFailure::Refused)?;
            self.buffer.drain(..used);
            if chunked.is_done() {
                return Ok(chunked.into_data());
            }
            self.read(HEAD_BYTES_MAX).await?;
        }
    }

    async fn approve(&self, guest: &P::Guest, body: &[u8], manner: Manner) -> Answer {
        let events = match start_requests::parse(body) {
            Ok(events) => events,
            Err(error) => return Answer::Refused(error.into()),
        };
        match self.door.platform.approve(guest, &self.caller, events, manner.now).await {
            Ok(()) => Answer::Approved,
            Err(ApproveError::UnknownEvent) => Answer::Refused(GuestError::UnknownEvent),
            Err(ApproveError::OutcomeUnknown) => Answer::Refused(GuestError::OutcomeUnknown),
            Err(ApproveError::Unavailable(reason)) => {
                tracing::warn!(caller = %self.caller.source, reason, "an approval could not be kept");
                Answer::Refused(GuestError::Unavailable)
            }
        }
    }

    /// Waits for more bytes and appends them, up to a buffer of `limit` bytes.
    async fn read(&mut self, limit: usize) -> Result<(), Gone> {
        match self.stream.read_buf(&mut room(&mut self.buffer, limit)).await {
            Ok(0) | Err(_) => Err(Gone),
            Ok(_) => Ok(()),
        }
    }

    /// Appends what is there, if anything is. This goes through the same call as a read that waits, since
    /// that one notices when it has emptied the socket: the next wait is then for new bytes, and costs no
    /// read that finds nothing.
    async fn read_at_once(&mut self, limit: usize) -> Result<bool, Gone> {
        let mut read = pin!(self.read(limit));
        poll_fn(|context| match read.as_mut().poll(context) {
            Poll::Ready(read) => Poll::Ready(read.map(|()| true)),
            Poll::Pending => Poll::Ready(Ok(false)),
        })
        .await
    }

    async fn send(&self, answer: Answer, manner: Manner) -> Result<(), Gone> {
        self.door.stats.answered(&answer);
        let outgoing = answer.write(manner);
        Ok(self.write(&outgoing.head, &outgoing.body).await?)
    }

    /// Writes both parts, in one call where the socket takes them.
    async fn write(&self, mut first: &[u8], mut second: &[u8]) -> io::Result<()> {
        while !(first.is_empty() && second.is_empty()) {
            match self.stream.try_write_vectored(&[IoSlice::new(first), IoSlice::new(second)]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    let of_first = written.min(first.len());
                    first = &first[of_first..];
                    second = &second[written - of_first..];
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let limit = self.door.settings.limits.write_timeout;
                    timeout(limit, self.stream.writable()).await.map_err(io::Error::from)??;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Says that no more will come, then reads on for a while: a socket closed with bytes unread would reset
    /// the connection, and the client might never see the answer.
    async fn linger(mut self) {
        if self.stream.shutdown().await.is_err() {
            return;
        }
        let drain = async {
            for _ in 0..LINGER_READS_MAX {
                self.buffer.clear();
                if self.read(HEAD_BYTES_MAX).await.is_err() {
                    return;
                }
            }
        };
        // Out of time is as good as done.
        let _ = timeout(LINGER, drain).await;
    }
}

/// Room at the end of a buffer, so that it grows to `limit` bytes at most.
fn room(buffer: &mut Vec<u8>, limit: usize) -> impl BufMut {
    let room = limit.saturating_sub(buffer.len());
    if buffer.capacity() == buffer.len() {
        buffer.reserve(room.min(buffer.len().max(BUFFER_BYTES)));
    }
    buffer.limit(room)
}
