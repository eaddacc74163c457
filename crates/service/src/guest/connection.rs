//! A connection that needs more than plain polls, as a task of the runtime.
//!
//! A worker answers plain polls in place ([`super::fast_path`]) and hands over all other requests with the bytes
//! already read: an incomplete head, a body, an approval, instance metadata, a response that the socket does not take,
//! a close that has to wait. The task continues from there ([`Start`]), one request at a time and in order. A client
//! that pipelines waits: nothing is read beyond one head or body until the previous request is answered. When the
//! buffer is empty, the connection returns to its worker.
//!
//! The body of a refused request is read and dropped, so that the next request is found. If that is not possible (the
//! body is too large, held back, or has no clear end), the response says `Connection: close`. The connection then
//! lingers briefly, so that a reset does not destroy the response.

mod intercepted;

use std::future::Future;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes};
use notbefore_wire::guest::error::GuestError;
use notbefore_wire::guest::start_requests::{self, StartRequestsError};
use notbefore_wire::guest::version::EventsVersion;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::GuestServer;
use super::admission::{Permit, WaitEnd, WaitGuard};
use super::body::{self, Chunked};
use super::caller::Caller;
use super::eviction_pool::CallerStatus;
use super::exchange::{Exchange, NewerTag, Verdict};
use super::head::Framing;
use super::interception::Intercepted;
use super::long_poll::{LongPoll, Pending, PollUpdate};
use super::mailbox::Mailbox;
use super::platform::{ApproveError, Platform, ReadThrough, RefusedRequest, Rendered};
use super::prefer::Wait;
use super::response::{CONTINUE, Persistence, Response, ResponseMeta};
use super::settings::{BODY_BYTES_MAX, HEAD_BYTES_MAX, REQUESTS_PER_TURN};
use super::worker::Parked;

/// Initial size of a buffer: larger than the whole request of any published client.
const BUFFER_BYTES: usize = 2 * 1024;
/// How long a connection is not read after a 429.
const REFUSAL_DELAY: Duration = Duration::from_millis(100);
/// How long a closing connection reads and drops input.
const LINGER: Duration = Duration::from_secs(2);
/// Time for an unknown caller to send its request, and to read its response (403).
const UNKNOWN_CALLER_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum reads of a closing connection.
const LINGER_READS_MAX: usize = 256;

/// The client is gone: no response is possible.
struct Disconnected;

impl From<io::Error> for Disconnected {
    fn from(_: io::Error) -> Self {
        Disconnected
    }
}

/// Why a body was not read: it is refused, or the client is gone.
enum BodyError {
    Refused(GuestError),
    Disconnected,
}

impl From<Disconnected> for BodyError {
    fn from(_: Disconnected) -> Self {
        BodyError::Disconnected
    }
}

impl From<WaitEnd> for BodyError {
    fn from(end: WaitEnd) -> Self {
        match end {
            WaitEnd::Evicted => BodyError::Disconnected,
            WaitEnd::Expired => BodyError::Refused(GuestError::Timeout),
        }
    }
}

impl<G> Verdict<G> {
    /// The refusal of the head, if there is one.
    fn refusal(&self) -> Option<GuestError> {
        if let Verdict::Response(Response::Refused(error)) = self { Some(*error) } else { None }
    }
}

/// What happens to the connection after a request.
enum Next {
    /// The request was answered with this persistence.
    Responded(Persistence),
    /// The poll waits for a change; the worker holds it.
    LongPoll(Box<Pending>),
}

/// Shutdown signals for connection tasks.
#[derive(Clone)]
pub(super) struct Tasks {
    /// Turns true at shutdown: requests that have begun finish.
    pub shutdown: watch::Receiver<bool>,
    /// Turns true, or loses its sender, when the grace period is over.
    pub abort: watch::Receiver<bool>,
    /// Held by all tasks that have not finished.
    pub unfinished: mpsc::Sender<()>,
}

impl Tasks {
    /// Runs a connection until it ends or the grace period is over.
    pub(super) fn spawn(&self, runtime: &Handle, connection: impl Future<Output = ()> + Send + 'static) {
        let (mut abort, unfinished) = (self.abort.clone(), self.unfinished.clone());
        runtime.spawn(async move {
            tokio::select! {
                () = connection => {}
                _ = abort.wait_for(|abort| *abort) => {}
            }
            drop(unfinished);
        });
    }
}

/// State of a connection that is handed over, with the bytes that were read and not used.
pub(super) enum Start<G> {
    /// The beginning of one or more requests.
    Head(Vec<u8>),
    /// Nothing was read from an unknown caller. It is in the eviction pool already.
    UnknownCaller(Box<WaitGuard>),
    /// A request whose head was examined, and the bytes from its head on.
    Exchange(Box<Exchange<G>>, Vec<u8>),
    /// The input is no request: send this error.
    Refusal(GuestError, Vec<u8>),
    /// The unsent rest of a response, and the input after its request.
    Unsent(Box<Unsent<G>>, Vec<u8>),
    /// The last response is sent, and input is left that will not be served.
    Linger,
}

/// The part of a response that the socket has not taken.
pub(super) struct Unsent<G> {
    pub head: Vec<u8>,
    pub body: Bytes,
    pub meta: ResponseMeta,
    /// The guest that gets a document with this response, and the document's version.
    pub delivers: Option<(G, EventsVersion)>,
}

/// A connection that is served by a task.
struct Task<P: Platform> {
    server: Arc<GuestServer<P>>,
    stream: TcpStream,
    caller: Caller,
    permit: Permit,
    mailbox: Arc<Mailbox>,
    shutdown: watch::Receiver<bool>,
    buffer: Vec<u8>,
    /// The head of the last request, for the log.
    head: Vec<u8>,
    /// Its membership among unknown callers, once it has been identified as one.
    unknown_wait: Option<WaitGuard>,
    /// Whether it has sent bytes that are no request.
    has_sent_bad_request: bool,
    /// The current request, if it is recorded or may be affected by faults.
    intercepted: Option<Box<Intercepted>>,
}

/// Adds the connection of an unknown caller, which has sent nothing yet, to the eviction pool.
pub(super) fn wait_for_unknown_caller<P: Platform>(server: &GuestServer<P>, caller: &Caller) -> WaitGuard {
    let limit = server.settings.limits.head_timeout.min(UNKNOWN_CALLER_TIMEOUT);
    server.admission.wait(caller, CallerStatus::Unknown, limit)
}

/// Serves a connection until it ends or is idle; an idle connection returns to its worker's mailbox.
pub(super) async fn run<P: Platform>(
    server: Arc<GuestServer<P>>,
    Parked { socket, caller, permit }: Parked,
    mailbox: Arc<Mailbox>,
    shutdown: watch::Receiver<bool>,
    start: Start<P::Guest>,
) {
    // Fails if epoll is out of memory; the connection closes without a response.
    let Ok(stream) = TcpStream::from_std(socket.into()) else { return };
    let (buffer, head, unknown_wait, has_sent_bad_request) = (Vec::new(), Vec::new(), None, false);
    let intercepted = None;
    let task = Task {
        server,
        stream,
        caller,
        permit,
        mailbox,
        shutdown,
        buffer,
        head,
        unknown_wait,
        has_sent_bad_request,
        intercepted,
    };
    task.run(start).await;
}

impl<P: Platform> Task<P> {
    async fn run(mut self, start: Start<P::Guest>) {
        let Ok(mut next) = self.begin(start).await else { return };
        for served in 1_usize.. {
            match next {
                Next::Responded(Persistence::Closing) => return self.linger().await,
                Next::Responded(Persistence::Open | Persistence::KeptAlive) if self.buffer.is_empty() => {
                    return self.return_to_worker(None);
                }
                Next::Responded(Persistence::Open | Persistence::KeptAlive) => {}
                Next::LongPoll(pending) => return self.return_to_worker(Some(pending)),
            }
            // Yield: a client that always has another request ready must not starve other tasks.
            if served % REQUESTS_PER_TURN == 0 {
                yield_now().await;
            }
            match self.serve_one().await {
                Ok(then) => next = then,
                Err(Disconnected) => return,
            }
        }
    }

    /// Continues from the state that was handed over, to the end of a request.
    async fn begin(&mut self, start: Start<P::Guest>) -> Result<Next, Disconnected> {
        match start {
            Start::Head(bytes) => {
                self.buffer = bytes;
                self.serve_one().await
            }
            Start::UnknownCaller(waiting) => {
                self.unknown_wait = Some(*waiting);
                self.serve_one().await
            }
            Start::Exchange(exchange, bytes) => {
                self.buffer = bytes;
                self.finish(*exchange).await
            }
            Start::Refusal(error, bytes) => {
                self.buffer = bytes;
                self.refuse(error).await
            }
            Start::Unsent(unsent, bytes) => {
                self.buffer = bytes;
                let Unsent { head, body, meta, delivers } = *unsent;
                self.write(&head, &body).await?;
                if let Some((guest, version)) = delivers {
                    self.server.platform.record_delivery(&guest, version, meta.now);
                }
                Ok(Next::Responded(meta.persistence))
            }
            Start::Linger => Ok(Next::Responded(Persistence::Closing)),
        }
    }

    /// Returns the connection to its worker. If the worker has ended at shutdown, the connection closes.
    fn return_to_worker(self, pending: Option<Box<Pending>>) {
        let Task { stream, caller, permit, mailbox, .. } = self;
        if let Ok(stream) = stream.into_std() {
            mailbox.return_connection(Parked { socket: stream.into(), caller, permit }, pending);
        }
    }

    /// Reads, examines and answers one request.
    async fn serve_one(&mut self) -> Result<Next, Disconnected> {
        match self.read_head().await? {
            Ok(exchange) => self.finish(exchange).await,
            Err(error) => self.refuse(error).await,
        }
    }

    /// Answers input that is no request.
    async fn refuse(&mut self, error: GuestError) -> Result<Next, Disconnected> {
        if error == GuestError::UnknownCaller && self.unknown_wait.is_none() {
            let waiting =
                self.server.admission.wait(&self.caller, CallerStatus::Unknown, UNKNOWN_CALLER_TIMEOUT);
            self.unknown_wait = Some(waiting);
        }
        let now = self.server.clock.now();
        let meta = ResponseMeta { now, persistence: Persistence::Closing, head_only: false, wait: None };
        // Unknown callers have a limit of their own, and must not hold slots that VMs need.
        self.has_sent_bad_request = error != GuestError::UnknownCaller;
        let refused = RefusedRequest { head: &self.buffer, error, detail: "", at: now };
        self.server.record_refusal(&self.caller, &refused);
        self.send(Response::Refused(error), meta).await?;
        if self.server.interception.is_on() {
            let (_, body) = Response::Refused(error).parts(meta);
            self.record_refused(&self.buffer, error.status(), body, now);
        }
        Ok(Next::Responded(Persistence::Closing))
    }

    /// Reads a request's body and answers it. The buffer starts with its head.
    async fn finish(&mut self, exchange: Exchange<P::Guest>) -> Result<Next, Disconnected> {
        let after_head = self.buffer.split_off(exchange.head_length.min(self.buffer.len()));
        self.head = std::mem::replace(&mut self.buffer, after_head);
        let mut meta = exchange.meta;
        let (mut delivers, mut detail) = (None, String::new());
        let body = self.read_body(&exchange).await;
        let mut intercepted = self.intercepted.take();
        if let (Some(intercepted), Ok(body)) = (&mut intercepted, &body) {
            intercepted.record.body.clone_from(body);
        }
        let response = match (body, exchange.verdict) {
            (Err(BodyError::Disconnected), _) => {
                intercepted.into_iter().for_each(|intercepted| self.record(intercepted));
                return Err(Disconnected);
            }
            // The body could not be read. A refusal of the head comes first and takes precedence.
            (Err(BodyError::Refused(error)), verdict) => {
                meta.persistence = Persistence::Closing;
                Response::Refused(verdict.refusal().unwrap_or(error))
            }
            (Ok(_), Verdict::Response(response)) => response,
            (Ok(_), Verdict::Unchanged { incarnation, .. }) => Response::NotModified { incarnation },
            (Ok(_), Verdict::Document { guest, version, rendered: Rendered { incarnation, body, .. } }) => {
                delivers = Some((guest, version));
                Response::Document { incarnation, body }
            }
            (Ok(_), Verdict::Instance { guest, version, path, format }) => {
                self.server.instance(&guest, version, &path, format).await
            }
            // In boxes: a task moves whole when it is spawned, and these are large.
            (Ok(body), Verdict::Approve(guest)) => match Box::pin(self.approve(&guest, &body)).await {
                Ok(()) => Response::Approved,
                Err((error, why)) => {
                    detail = why;
                    Response::Refused(error)
                }
            },
            (Ok(_), Verdict::ReadThrough(newer)) => {
                let NewerTag { guest, version, tag, hold, .. } = *newer;
                let read = Box::pin(self.server.platform.read_through(&guest, tag, version));
                match (read.await, hold) {
                    (ReadThrough::Document { guest, rendered: Rendered { incarnation, body, .. } }, _) => {
                        delivers = Some((guest, version));
                        Response::Document { incarnation, body }
                    }
                    (ReadThrough::NotModified, Some((hold, wait))) if !*self.shutdown.borrow() => {
                        return Ok(self.hold(*hold, wait, meta));
                    }
                    (ReadThrough::NotModified, _) => Response::NotModified { incarnation: tag },
                }
            }
            (Ok(_), Verdict::LongPoll(hold, _)) if *self.shutdown.borrow() => {
                match self.server.recheck(&hold, &self.caller) {
                    PollUpdate::Unchanged { incarnation, .. } => Response::NotModified { incarnation },
                    PollUpdate::Response(response) => response,
                    PollUpdate::Document { guest, rendered: Rendered { incarnation, body, .. } } => {
                        delivers = Some((guest, hold.version));
                        Response::Document { incarnation, body }
                    }
                }
            }
            (Ok(_), Verdict::LongPoll(hold, wait)) => return Ok(self.hold(*hold, wait, meta)),
        };
        if *self.shutdown.borrow() {
            meta.persistence = Persistence::Closing;
        }
        if let Response::Refused(error) = response {
            let at = self.server.clock.now();
            let refused = RefusedRequest { head: &self.head, error, detail: &detail, at };
            self.server.record_refusal(&self.caller, &refused);
        }
        let is_rate_limited = matches!(response, Response::Refused(GuestError::TooManyRequests));
        let shows_events = match intercepted {
            Some(intercepted) => Box::pin(self.respond_intercepted(intercepted, response, meta)).await?,
            None => {
                self.send(response, meta).await?;
                true
            }
        };
        if let Some((guest, version)) = delivers.filter(|_| shows_events) {
            self.server.platform.record_delivery(&guest, version, meta.now);
        }
        if is_rate_limited {
            self.delay().await;
        }
        Ok(Next::Responded(meta.persistence))
    }

    /// Gives a poll to the worker, which holds it.
    fn hold(&mut self, hold: LongPoll, wait: Wait, meta: ResponseMeta) -> Next {
        let rest = std::mem::take(&mut self.buffer);
        Next::LongPoll(Box::new(Pending { hold, wait, meta, rest, has_unread: false }))
    }

    /// Delays reads from a guest over its rate limit. The connection keeps its slot, so a guest that reconnects uses up
    /// its own source limit.
    async fn delay(&mut self) {
        tokio::select! {
            () = sleep(REFUSAL_DELAY) => {}
            // A dropped sender means shutdown too.
            _ = self.shutdown.wait_for(|closing| *closing) => {}
        }
    }

    /// Examines the request at the start of the buffer, if its head is complete.
    fn examine(&mut self) -> Result<Option<Exchange<P::Guest>>, GuestError> {
        let now = self.server.clock.now();
        if !self.server.interception.is_on() {
            return self.server.examine(&self.buffer, &self.caller, now);
        }
        let examined = self.server.examine_intercepted(&self.buffer, &self.caller, now)?;
        let (exchange, intercepted) = examined.unzip();
        self.intercepted = intercepted;
        Ok(exchange)
    }

    async fn read_head(&mut self) -> Result<Result<Exchange<P::Guest>, GuestError>, Disconnected> {
        // A head almost always arrives whole: then no timer is set.
        match self.examine() {
            Ok(Some(exchange)) => return Ok(Ok(exchange)),
            Ok(None) => {}
            Err(error) => return Ok(Err(error)),
        }
        let unknown_wait = self.unknown_wait.take();
        let mut waiting = unknown_wait.unwrap_or_else(|| self.wait(self.server.settings.limits.head_timeout));
        let read = tokio::select! {
            read = self.read_rest_of_head() => read?,
            end = waiting.ended() => match end {
                WaitEnd::Evicted => return Err(Disconnected),
                WaitEnd::Expired => Err(self.server.hide_if_unknown(&self.caller, GuestError::Timeout)),
            },
        };
        // The caller may have become a known VM meanwhile.
        if read.is_err() && waiting.caller_status == CallerStatus::Unknown {
            self.unknown_wait = Some(waiting);
        }
        Ok(read)
    }

    async fn read_rest_of_head(&mut self) -> Result<Result<Exchange<P::Guest>, GuestError>, Disconnected> {
        loop {
            self.read(HEAD_BYTES_MAX).await?;
            match self.examine() {
                Ok(Some(exchange)) => return Ok(Ok(exchange)),
                Ok(None) => {}
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// Reads the whole body, also that of a refused request, unless the client holds it back (`Expect: 100-continue`).
    async fn read_body(&mut self, exchange: &Exchange<P::Guest>) -> Result<Vec<u8>, BodyError> {
        match exchange.framing {
            Framing::Empty => return Ok(Vec::new()),
            Framing::Length(length) if length > BODY_BYTES_MAX as u64 => {
                return Err(BodyError::Refused(body::TOO_LARGE));
            }
            Framing::Length(_) | Framing::Chunked => {}
        }
        if exchange.expects_continue && self.buffer.is_empty() {
            match exchange.verdict.refusal() {
                Some(error) => return Err(BodyError::Refused(error)),
                None => self.write(CONTINUE, &[]).await.map_err(Disconnected::from)?,
            }
        }
        match exchange.framing {
            Framing::Length(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if self.buffer.len() < length {
                    let mut waiting = self.wait(self.server.settings.limits.body_timeout);
                    tokio::select! {
                        read = self.read_up_to(length) => read?,
                        end = waiting.ended() => return Err(end.into()),
                    }
                }
                let rest = self.buffer.split_off(length);
                Ok(std::mem::replace(&mut self.buffer, rest))
            }
            Framing::Chunked => {
                let mut waiting = self.wait(self.server.settings.limits.body_timeout);
                tokio::select! {
                    read = self.read_chunks() => read,
                    end = waiting.ended() => Err(end.into()),
                }
            }
            Framing::Empty => Ok(Vec::new()),
        }
    }

    /// Adds the connection to the eviction pool, for at most `limit`.
    fn wait(&self, limit: Duration) -> WaitGuard {
        let (caller_status, limit) = match self.server.is_unknown_caller(&self.caller) {
            true => (CallerStatus::Unknown, limit.min(UNKNOWN_CALLER_TIMEOUT)),
            false => (CallerStatus::Known, limit),
        };
        self.server.admission.wait(&self.caller, caller_status, limit)
    }

    async fn read_up_to(&mut self, length: usize) -> Result<(), BodyError> {
        while self.buffer.len() < length {
            self.read(length).await?;
        }
        Ok(())
    }

    async fn read_chunks(&mut self) -> Result<Vec<u8>, BodyError> {
        let mut chunked = Chunked::new();
        loop {
            let used = chunked.feed(&self.buffer).map_err(BodyError::Refused)?;
            self.buffer.drain(..used);
            if chunked.is_done() {
                return Ok(chunked.into_data());
            }
            self.read(HEAD_BYTES_MAX).await?;
        }
    }

    /// Approves the events of a body. An error comes with details for the log.
    async fn approve(&self, guest: &P::Guest, body: &[u8]) -> Result<(), (GuestError, String)> {
        let events = start_requests::parse(body).map_err(|error| {
            let is_not_guid = error == StartRequestsError::NotAGuid;
            (error.into(), if is_not_guid { error.to_string() } else { String::new() })
        })?;
        // The body may have taken long, so the time of the head is too early.
        let now = self.server.clock.now();
        let approved = self.server.platform.approve(guest, &self.caller, events, now).await;
        approved.map_err(|error| match error {
            ApproveError::UnknownEvent(event) => (GuestError::UnknownEvent, format!("EventId {event}")),
            ApproveError::UnknownCaller => (GuestError::UnknownCaller, String::new()),
            ApproveError::OutcomeUnknown => (GuestError::OutcomeUnknown, String::new()),
            ApproveError::Unavailable(why) => (GuestError::Unavailable, why),
        })
    }

    /// Waits for more input and appends it, up to a buffer of `limit` bytes.
    async fn read(&mut self, limit: usize) -> Result<(), Disconnected> {
        match self.stream.read_buf(&mut read_space(&mut self.buffer, limit)).await {
            Ok(0) | Err(_) => Err(Disconnected),
            Ok(_) => Ok(()),
        }
    }

    async fn send(&self, response: Response, meta: ResponseMeta) -> Result<(), Disconnected> {
        self.server.stats.count_response(&response);
        let mut head = Vec::with_capacity(BUFFER_BYTES);
        let body = response.write(meta, &mut head);
        Ok(self.write(&head, &body).await?)
    }

    /// Writes both parts, in one call if the socket takes them.
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
                    let mut waiting = self.wait(self.server.settings.limits.write_timeout);
                    tokio::select! {
                        writable = self.stream.writable() => writable?,
                        _ = waiting.ended() => return Err(io::ErrorKind::TimedOut.into()),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Shuts down the write side, then reads for a while: closing a socket with unread input resets the connection, and
    /// the client may lose the response. A client that sent a bad request is also delayed, even if it is gone. As in
    /// [`Self::delay`], new connections of its source then exceed the source limit.
    async fn linger(mut self) {
        if self.stream.shutdown().await.is_ok() {
            self.drain().await;
        }
        if self.has_sent_bad_request {
            self.delay().await;
        }
    }

    async fn drain(&mut self) {
        let mut unknown_wait = self.unknown_wait.take();
        let wait_end = async {
            match &mut unknown_wait {
                Some(waiting) => drop(waiting.ended().await),
                None => std::future::pending().await,
            }
        };
        let drain = async {
            for _ in 0..LINGER_READS_MAX {
                self.buffer.clear();
                if self.read(HEAD_BYTES_MAX).await.is_err() {
                    return;
                }
            }
        };
        // A timeout ends the drain too.
        tokio::select! {
            _ = timeout(LINGER, drain) => {}
            () = wait_end => {}
        }
    }
}

/// Spare capacity of a buffer that may grow to `limit` bytes.
fn read_space(buffer: &mut Vec<u8>, limit: usize) -> impl BufMut {
    let space = limit.saturating_sub(buffer.len());
    if buffer.capacity() == buffer.len() {
        buffer.reserve(space.min(buffer.len().max(BUFFER_BYTES)));
    }
    buffer.limit(space)
}
