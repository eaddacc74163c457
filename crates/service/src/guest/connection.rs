//! A connection while there is more to it than plain polls, as a task of the runtime.
//!
//! A worker answers plain polls in place ([`super::lean`]) and hands over the rest with the bytes that it has read:
//! a head that is not there yet, a body, an approval, instance metadata, an answer that the socket does not take, an
//! end that has to be waited for. The task goes on from there ([`Start`]), one request at a time and in order; a
//! client that sends ahead waits, since nothing is read beyond one head or body until the request before it is
//! answered. As soon as nothing is left of what was read, the connection goes back to its worker, which is where
//! connections are idle.
//!
//! A body that a refused request came with is read and dropped, so that the connection stays in step; where
//! that cannot be done (it is too large, was held back, or its end cannot be found) the answer says
//! `Connection: close`, and the connection lingers briefly, so that the answer is not lost to a reset.

use std::future::Future;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes};
use notbefore_wire::guest::error::GuestError;
use notbefore_wire::guest::start_requests;
use notbefore_wire::guest::version::EventsVersion;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::GuestDoor;
use super::admission::{Over, Permit, Waiting};
use super::answer::{Answer, CONTINUE, Manner, Persistence};
use super::body::{self, Chunked};
use super::caller::Caller;
use super::crowd::Standing;
use super::exchange::{Exchange, Verdict};
use super::head::Framing;
use super::hold::{News, Pending};
use super::mailbox::Mailbox;
use super::platform::{ApproveError, Platform, Rendered};
use super::settings::{BODY_BYTES_MAX, HEAD_BYTES_MAX, REQUESTS_PER_TURN};
use super::worker::Parked;

/// What a buffer begins with: more than any published client's whole request.
const BUFFER_BYTES: usize = 2 * 1024;
/// How long a connection rests after its guest has asked too often.
const REST: Duration = Duration::from_millis(100);
/// How long a closing connection reads on and drops what it reads.
const LINGER: Duration = Duration::from_secs(2);
/// How long a stranger has for a request, and to read its answer: it will be a 403.
const STRANGER_TIME: Duration = Duration::from_secs(2);
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

impl From<Over> for BodyFailure {
    fn from(over: Over) -> Self {
        match over {
            Over::Taken => BodyFailure::Gone,
            Over::Expired => BodyFailure::Refused(GuestError::Timeout),
        }
    }
}

impl<G> Verdict<G> {
    /// What is wrong with the head, if anything is.
    fn refusal(&self) -> Option<GuestError> {
        if let Verdict::Answer(Answer::Refused(error)) = self { Some(*error) } else { None }
    }
}

/// How a connection goes on after a request.
enum Next {
    /// It was answered, and the answer said this.
    Answered(Persistence),
    /// It is to be held, which is for the worker to do.
    Hold(Box<Pending>),
}

/// What connections need of those who close the door.
#[derive(Clone)]
pub(super) struct Tasks {
    /// Turns true when the door closes: requests that have begun finish.
    pub shutdown: watch::Receiver<bool>,
    /// Turns true, or loses its sender, when the time for that is over.
    pub cut: watch::Receiver<bool>,
    /// Held by all that is not finished.
    pub unfinished: mpsc::Sender<()>,
}

impl Tasks {
    /// Runs a connection to its end, or until the door waits no longer.
    pub(super) fn spawn(&self, runtime: &Handle, connection: impl Future<Output = ()> + Send + 'static) {
        let (mut cut, unfinished) = (self.cut.clone(), self.unfinished.clone());
        runtime.spawn(async move {
            tokio::select! {
                () = connection => {}
                _ = cut.wait_for(|cut| *cut) => {}
            }
            drop(unfinished);
        });
    }
}

/// Where a connection stands when it is handed over. Bytes are those that were read and not used.
pub(super) enum Start<G> {
    /// These are the beginning of a request, or several.
    Head(Vec<u8>),
    /// A request is judged; these come after its head.
    Exchange(Box<Exchange<G>>, Vec<u8>),
    /// What was read is no request, and gets this answer.
    Refusal(GuestError),
    /// An answer is not out yet.
    Unsent(Box<Unsent<G>>, Vec<u8>),
    /// The last answer is out, and there are bytes that nobody will read.
    Linger,
}

/// What the socket has not taken of an answer.
pub(super) struct Unsent<G> {
    pub head: Vec<u8>,
    pub body: Bytes,
    pub manner: Manner,
    /// Whom the document reaches with it, and at which version.
    pub delivers: Option<(G, EventsVersion)>,
}

/// A connection that the runtime waits for.
struct Task<P: Platform> {
    door: Arc<GuestDoor<P>>,
    stream: TcpStream,
    caller: Caller,
    permit: Permit,
    home: Arc<Mailbox>,
    shutdown: watch::Receiver<bool>,
    buffer: Vec<u8>,
    /// Its place among the strangers, once it was told that it is one.
    stranger: Option<Waiting>,
    /// Whether it has sent what is no request.
    has_sent_garbage: bool,
}

/// Serves a connection until it is over, or idle: then it goes home.
pub(super) async fn run<P: Platform>(
    door: Arc<GuestDoor<P>>,
    Parked { socket, caller, permit }: Parked,
    home: Arc<Mailbox>,
    shutdown: watch::Receiver<bool>,
    start: Start<P::Guest>,
) {
    // It fails where the system has no room to wait for it; there is nobody to tell.
    let Ok(stream) = TcpStream::from_std(socket.into()) else { return };
    let (buffer, stranger, has_sent_garbage) = (Vec::new(), None, false);
    let task = Task { door, stream, caller, permit, home, shutdown, buffer, stranger, has_sent_garbage };
    task.run(start).await;
}

impl<P: Platform> Task<P> {
    async fn run(mut self, start: Start<P::Guest>) {
        let Ok(mut next) = self.begin(start).await else { return };
        for served in 1_usize.. {
            match next {
                Next::Answered(Persistence::Closing) => return self.linger().await,
                Next::Answered(Persistence::Open | Persistence::KeptAlive) if self.buffer.is_empty() => {
                    return self.go_home(None);
                }
                Next::Answered(Persistence::Open | Persistence::KeptAlive) => {}
                Next::Hold(pending) => return self.go_home(Some(pending)),
            }
            // A client that always has the next request ready must not keep others from their turn.
            if served % REQUESTS_PER_TURN == 0 {
                yield_now().await;
            }
            match self.serve_one().await {
                Ok(then) => next = then,
                Err(Gone) => return,
            }
        }
    }

    /// Goes on from where the connection stood, to the end of a request.
    async fn begin(&mut self, start: Start<P::Guest>) -> Result<Next, Gone> {
        match start {
            Start::Head(bytes) => {
                self.buffer = bytes;
                self.serve_one().await
            }
            Start::Exchange(exchange, bytes) => {
                self.buffer = bytes;
                self.finish(*exchange).await
            }
            Start::Refusal(error) => self.refuse(error).await,
            Start::Unsent(unsent, bytes) => {
                self.buffer = bytes;
                let Unsent { head, body, manner, delivers } = *unsent;
                self.write(&head, &body).await?;
                if let Some((guest, version)) = delivers {
                    self.door.platform.delivered(&guest, version, manner.now);
                }
                Ok(Next::Answered(manner.persistence))
            }
            Start::Linger => Ok(Next::Answered(Persistence::Closing)),
        }
    }

    /// Gives the connection back. Where the worker has gone, because the door closes, it ends with that.
    fn go_home(self, pending: Option<Box<Pending>>) {
        let Task { stream, caller, permit, home, .. } = self;
        if let Ok(stream) = stream.into_std() {
            home.give_back(Parked { socket: stream.into(), caller, permit }, pending);
        }
    }

    /// Reads, judges and answers one request, and says whether another may follow.
    async fn serve_one(&mut self) -> Result<Next, Gone> {
        match self.read_head().await? {
            Ok(exchange) => {
                self.buffer.drain(..exchange.head_length);
                self.finish(exchange).await
            }
            Err(error) => self.refuse(error).await,
        }
    }

    /// Answers what is no request.
    async fn refuse(&mut self, error: GuestError) -> Result<Next, Gone> {
        if error == GuestError::UnknownCaller && self.stranger.is_none() {
            let waiting = self.door.admission.wait(&self.caller, Standing::Stranger, STRANGER_TIME);
            self.stranger = Some(waiting);
        }
        let now = self.door.clock.now();
        let manner = Manner { now, persistence: Persistence::Closing, head_only: false, wait: None };
        // Strangers have a limit of their own, and must not hold places that VMs need.
        self.has_sent_garbage = error != GuestError::UnknownCaller;
        self.send(Answer::Refused(error), manner).await?;
        Ok(Next::Answered(Persistence::Closing))
    }

    /// Reads a request's body and answers it.
    async fn finish(&mut self, exchange: Exchange<P::Guest>) -> Result<Next, Gone> {
        let mut manner = exchange.manner;
        let mut delivers = None;
        let answer = match (self.read_body(&exchange).await, exchange.verdict) {
            (Err(BodyFailure::Gone), _) => return Err(Gone),
            // The body could not be read; but a failure of the head came first, and answers.
            (Err(BodyFailure::Refused(error)), verdict) => {
                manner.persistence = Persistence::Closing;
                Answer::Refused(verdict.refusal().unwrap_or(error))
            }
            (Ok(_), Verdict::Answer(answer)) => answer,
            (Ok(_), Verdict::Unchanged { incarnation, .. }) => Answer::NotModified { incarnation },
            (Ok(_), Verdict::Document { guest, version, rendered: Rendered { incarnation, body, .. } }) => {
                delivers = Some((guest, version));
                Answer::Document { incarnation, body }
            }
            (Ok(_), Verdict::Instance { guest, version, path, format }) => {
                self.door.instance(&guest, version, &path, format).await
            }
            (Ok(body), Verdict::Approve(guest)) => self.approve(&guest, &body, manner).await,
            (Ok(_), Verdict::Hold(hold, _)) if *self.shutdown.borrow() => {
                match self.door.look_again(&hold, &self.caller) {
                    News::None { incarnation, .. } => Answer::NotModified { incarnation },
                    News::Answer(answer) => answer,
                    News::Document { guest, rendered: Rendered { incarnation, body, .. } } => {
                        delivers = Some((guest, hold.version));
                        Answer::Document { incarnation, body }
                    }
                }
            }
            (Ok(_), Verdict::Hold(hold, wait)) => {
                let rest = std::mem::take(&mut self.buffer);
                let pending = Pending { hold: *hold, wait, manner, rest, has_unread: false };
                return Ok(Next::Hold(Box::new(pending)));
            }
        };
        if *self.shutdown.borrow() {
            manner.persistence = Persistence::Closing;
        }
        let asks_too_often = matches!(answer, Answer::Refused(GuestError::TooManyRequests));
        self.send(answer, manner).await?;
        if let Some((guest, version)) = delivers {
            self.door.platform.delivered(&guest, version, manner.now);
        }
        if asks_too_often {
            self.rest().await;
        }
        Ok(Next::Answered(manner.persistence))
    }

    /// Reads nothing for a while from a guest that asks too often. It keeps its place, so one that comes again and
    /// again uses up its own places and nobody's time.
    async fn rest(&mut self) {
        tokio::select! {
            () = sleep(REST) => {}
            // Whether it was told or nobody is left to tell it: the door closes.
            _ = self.shutdown.wait_for(|closes| *closes) => {}
        }
    }

    async fn read_head(&mut self) -> Result<Result<Exchange<P::Guest>, GuestError>, Gone> {
        // A head almost always arrives whole: then no timer is set.
        match self.door.examine(&self.buffer, &self.caller, self.door.clock.now()) {
            Ok(Some(exchange)) => return Ok(Ok(exchange)),
            Ok(None) => {}
            Err(error) => return Ok(Err(error)),
        }
        let mut waiting = self.wait(self.door.settings.limits.head_timeout);
        let read = tokio::select! {
            read = self.read_rest_of_head() => read?,
            over = waiting.over() => match over {
                Over::Taken => return Err(Gone),
                Over::Expired => Err(self.door.if_known(&self.caller, GuestError::Timeout)),
            },
        };
        // One that is a VM by now is no stranger any more.
        if read.is_err() && waiting.standing == Standing::Stranger {
            self.stranger = Some(waiting);
        }
        Ok(read)
    }

    async fn read_rest_of_head(&mut self) -> Result<Result<Exchange<P::Guest>, GuestError>, Gone> {
        loop {
            self.read(HEAD_BYTES_MAX).await?;
            match self.door.examine(&self.buffer, &self.caller, self.door.clock.now()) {
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
            match exchange.verdict.refusal() {
                Some(error) => return Err(BodyFailure::Refused(error)),
                None => self.write(CONTINUE, &[]).await.map_err(Gone::from)?,
            }
        }
        match exchange.framing {
            Framing::Length(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if self.buffer.len() < length {
                    let mut waiting = self.wait(self.door.settings.limits.body_timeout);
                    tokio::select! {
                        read = self.read_up_to(length) => read?,
                        over = waiting.over() => return Err(over.into()),
                    }
                }
                let rest = self.buffer.split_off(length);
                Ok(std::mem::replace(&mut self.buffer, rest))
            }
            Framing::Chunked => {
                let mut waiting = self.wait(self.door.settings.limits.body_timeout);
                tokio::select! {
                    read = self.read_chunks() => read,
                    over = waiting.over() => Err(over.into()),
                }
            }
            Framing::Empty => Ok(Vec::new()),
        }
    }

    /// Counts the connection among those that keep the door waiting, for so long at most.
    fn wait(&self, limit: Duration) -> Waiting {
        let (standing, limit) = match self.door.is_stranger(&self.caller) {
            true => (Standing::Stranger, limit.min(STRANGER_TIME)),
            false => (Standing::Known, limit),
        };
        self.door.admission.wait(&self.caller, standing, limit)
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
            Err(ApproveError::UnknownCaller) => Answer::Refused(GuestError::UnknownCaller),
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

    async fn send(&self, answer: Answer, manner: Manner) -> Result<(), Gone> {
        self.door.stats.answered(&answer);
        let mut head = Vec::with_capacity(BUFFER_BYTES);
        let body = answer.write(manner, &mut head);
        Ok(self.write(&head, &body).await?)
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
                    let mut waiting = self.wait(self.door.settings.limits.write_timeout);
                    tokio::select! {
                        writable = self.stream.writable() => writable?,
                        _ = waiting.over() => return Err(io::ErrorKind::TimedOut.into()),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Says that no more will come, then reads on for a while: a socket closed with bytes unread would reset
    /// the connection, and the client might never see the answer. One that has sent garbage rests as well, whether the
    /// client is gone or not: as in [`Self::rest`], the next connections of its source then find no place.
    async fn linger(mut self) {
        if self.stream.shutdown().await.is_ok() {
            self.drain().await;
        }
        if self.has_sent_garbage {
            self.rest().await;
        }
    }

    async fn drain(&mut self) {
        let mut stranger = self.stranger.take();
        let no_longer = async {
            match &mut stranger {
                Some(waiting) => drop(waiting.over().await),
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
        // Out of time is as good as done.
        tokio::select! {
            _ = timeout(LINGER, drain) => {}
            () = no_longer => {}
        }
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
