//! Worker: a thread with an epoll loop that serves many connections.
//!
//! Nearly all connections are idle at any moment. An idle one is a slab entry ([`super::slots`]): no task, no timer, no
//! buffer. The thread waits in epoll, answers plain polls ([`super::fast_path`]) and gives all other requests to a task
//! of the runtime ([`super::connection`]). When the task has nothing left to do, the connection returns by mailbox
//! ([`super::mailbox`]).
//!
//! **Accept.** Every worker watches every listener; the kernel wakes one for each connection. A connection stays with
//! the worker that accepted it. A new connection is read before it is watched: its request has mostly arrived, and a
//! client that then closes is served with four system calls.
//!
//! **Unknown callers.** Their connections are tasks with short timeouts ([`super::eviction_pool`]). A caller is looked
//! up when the first read finds no whole head, and at once if the server is nearly full. A plain poll is therefore
//! looked up only once, when it is answered.
//!
//! **Timeouts.** There are no timers. Each connection has an expiry time, and a periodic sweep of the table finds those
//! that are due.
//!
//! **Eviction.** The server is full, or the process is out of file descriptors, and no unknown caller can be evicted.
//! Then the worker closes the longest idle connections, some at a time, so that a flood does not scan the table for
//! each connection. If none is idle, it answers the longest held polls and closes their connections; otherwise long
//! polls could block all other callers. A connection with a request in progress belongs to its task and is never
//! evicted here. If nothing can be evicted and there are no descriptors, the worker pauses the listeners, to avoid a
//! busy loop.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use notbefore_wire::guest::version::EventsVersion;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use tokio::runtime::Handle;

use super::admission::{Admitted, LimitExceeded, Permit};
use super::caller::Caller;
use super::connection::{self, Start, Tasks};
use super::eviction_pool::CallerStatus;
use super::fast_path::{self, Buffers, OutgoingResponse, Sent, Step, Turn};
use super::listener::Listener;
use super::long_poll::{Pending, PollUpdate};
use super::mailbox::{Mailbox, Messages};
use super::platform::{GuestHandle, Platform, RefusedRequest, Rendered};
use super::response::{Persistence, Response};
use super::slots::{self, Slots, Token};
use super::{GuestServer, is_connection_error};
use crate::clock::UPTIME;
use crate::wait_queues::Registration;

/// Epoll events handled before the mailbox is read.
const EVENTS_PER_WAIT: usize = 256;
/// Connections accepted in a row before open ones have their turn.
const ACCEPTS_PER_TURN: usize = 16;
/// How long listeners are paused when the process is out of file descriptors and nothing is idle.
const ACCEPT_PAUSE_MS: u64 = 100;
/// Minimum interval between timeout sweeps; a connection may outlive its timeout by this much.
const SWEEP_PAUSE_MS: u64 = 20;
/// Fraction of its idle connections or held polls that a worker evicts at a time, and their maximum number.
const EVICTED_DIVISOR: usize = 64;
const EVICTED_MAX: usize = 64;
/// Maximum pipelined input kept while a poll is held. A poll with more is answered at once.
const HELD_INPUT_BYTES_MAX: usize = 1024;

/// The request of a held poll in the log. Its head is not kept.
const HELD_POLL: &[u8] = b"GET /metadata/scheduledevents (long poll)";

/// Epoll flags of a client that has shut down its write side, or is gone.
const HANG_UP: epoll::EventFlags =
    epoll::EventFlags::RDHUP.union(epoll::EventFlags::HUP).union(epoll::EventFlags::ERR);

const MAILBOX: Token = Token::MAX;
/// The token of a listener is this plus its index.
const LISTENERS: Token = slots::RESERVED;

/// A connection between requests.
pub(super) struct Parked {
    pub socket: OwnedFd,
    pub caller: Caller,
    pub permit: Permit,
}

struct OpenConnection<K> {
    parked: Parked,
    /// When it expires, or its held poll does, by [`UPTIME`].
    until_ms: u64,
    /// It has not sent a request yet.
    is_new: bool,
    /// Registered in epoll.
    is_watched: bool,
    /// It had its turn and may have more to read, so it is not idle.
    has_more: bool,
    held: Option<Box<HeldPoll<K>>>,
}

/// A long poll that waits for a change.
struct HeldPoll<K> {
    pending: Box<Pending>,
    /// Its registration in the wait queues; none after a notification.
    registration: Option<Registration<K>>,
    /// The client has sent more input. It stays unread until this poll is answered.
    has_unread: bool,
}

impl<K> OpenConnection<K> {
    /// When the poll was held, if there is one.
    fn held_since_ms(&self) -> Option<u64> {
        let held = self.held.as_ref()?;
        Some(self.until_ms.saturating_sub(wait_ms(&held.pending)))
    }
}

fn wait_ms(pending: &Pending) -> u64 {
    u64::from(pending.wait.get()) * 1_000
}

/// The smallest entries, a fraction of all.
fn take_oldest(mut all: Vec<(u64, Token)>) -> Vec<(u64, Token)> {
    let count = (all.len() / EVICTED_DIVISOR).clamp(1, EVICTED_MAX).min(all.len());
    if count > 0 {
        all.select_nth_unstable(count - 1);
    }
    all.truncate(count);
    all
}

/// Why a held poll is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WakeReason {
    /// It is new, or its scope was notified.
    Changed,
    Timeout,
    Shutdown,
    /// Its slot is needed.
    Eviction,
}

pub(super) struct Worker<P: Platform> {
    server: Arc<GuestServer<P>>,
    listeners: Vec<Arc<Listener>>,
    epoll: OwnedFd,
    mailbox: Arc<Mailbox>,
    /// The mailboxes of the other workers.
    others: Vec<Arc<Mailbox>>,
    runtime: Handle,
    tasks: Tasks,
    open: Slots<OpenConnection<P::Scope>>,
    buffers: Buffers,
    /// Connections that had their turn and may have more to read.
    ready: Vec<Token>,
    /// Held polls to check again, the next one last.
    woken: Vec<Token>,
    /// When the worker woke up, by [`UPTIME`], and the same in milliseconds.
    uptime: Duration,
    now_ms: u64,
    now: Timestamp,
    /// When the next sweep is due.
    sweep_at_ms: u64,
    /// When the pause of the listeners ends.
    paused_until_ms: Option<u64>,
    is_failing: bool,
}

fn milliseconds(uptime: Duration) -> u64 {
    u64::try_from(uptime.as_millis()).unwrap_or(u64::MAX)
}

impl<P: Platform> Worker<P> {
    /// A worker for these listeners. `mailboxes` has one for each worker; `number` is the index of this one's.
    pub(super) fn new(
        server: Arc<GuestServer<P>>,
        listeners: Vec<Arc<Listener>>,
        mailboxes: &[Arc<Mailbox>],
        number: usize,
        tasks: Tasks,
    ) -> io::Result<Worker<P>> {
        let (own, others): (Vec<_>, Vec<_>) =
            (mailboxes.iter().cloned().enumerate()).partition(|(at, _)| *at == number);
        let mailbox = own.into_iter().next().map(|(_, mailbox)| mailbox).ok_or(io::ErrorKind::NotFound)?;
        let uptime = UPTIME.elapsed();
        let worker = Worker {
            now: server.clock.now(),
            server,
            listeners,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            mailbox,
            others: others.into_iter().map(|(_, mailbox)| mailbox).collect(),
            runtime: Handle::current(),
            tasks,
            open: Slots::new(),
            buffers: Buffers::new(),
            ready: Vec::new(),
            woken: Vec::new(),
            uptime,
            now_ms: milliseconds(uptime),
            sweep_at_ms: u64::MAX,
            paused_until_ms: None,
            is_failing: false,
        };
        let token = epoll::EventData::new_u64(MAILBOX);
        epoll::add(&worker.epoll, &worker.mailbox, token, epoll::EventFlags::IN)?;
        worker.watch_listeners()?;
        Ok(worker)
    }

    /// Serves until shutdown.
    // Never inlined, so that it is a symbol in every build: the cost benchmark finds the server's threads by it.
    #[inline(never)]
    pub(super) fn run(mut self) {
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        loop {
            let timeout = self.timeout();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "epoll failed: a thread of the guest listener ends");
                    break;
                }
            }
            self.uptime = UPTIME.elapsed();
            self.now_ms = milliseconds(self.uptime);
            self.now = self.server.clock.now();
            let ready = std::mem::take(&mut self.ready);
            let mut is_closing = false;
            for event in events.drain(..) {
                let (flags, data) = (event.flags, event.data);
                match data.u64() {
                    token if token < LISTENERS => {
                        let has_hung_up = flags.intersects(HANG_UP);
                        self.catch_panic(token, |worker| worker.serve_ready(token, has_hung_up));
                    }
                    MAILBOX => is_closing |= self.read_messages(),
                    token => self.accept(token - LISTENERS),
                }
            }
            for token in ready {
                self.catch_panic(token, |worker| worker.serve_ready(token, false));
            }
            if !self.woken.is_empty() {
                let rest = self.woken.len().saturating_sub(EVENTS_PER_WAIT);
                self.woken.split_off(rest).into_iter().for_each(|token| self.recheck_woken(token));
            }
            if is_closing {
                break;
            }
            if self.now_ms >= self.sweep_at_ms {
                self.sweep();
            }
            if self.paused_until_ms.is_some_and(|until| self.now_ms >= until) {
                self.paused_until_ms = None;
                // On failure, pause and try again.
                if self.watch_listeners().is_err() {
                    self.pause();
                }
            }
        }
        self.close();
    }

    /// How long epoll may wait.
    fn timeout(&self) -> Option<Timespec> {
        let wait_ms = match (
            self.ready.is_empty() && self.woken.is_empty(),
            self.paused_until_ms.unwrap_or(u64::MAX),
        ) {
            (false, _) => 0,
            (true, until) if until.min(self.sweep_at_ms) == u64::MAX => return None,
            (true, until) => until.min(self.sweep_at_ms).saturating_sub(self.now_ms),
        };
        // The exact value of a wait beyond a day does not matter.
        let wait_ms = i64::try_from(wait_ms).unwrap_or(i64::MAX).min(86_400_000);
        Some(Timespec { tv_sec: wait_ms / 1_000, tv_nsec: wait_ms % 1_000 * 1_000_000 })
    }

    fn watch_listeners(&self) -> rustix::io::Result<()> {
        for (number, listener) in self.listeners.iter().enumerate() {
            let token = epoll::EventData::new_u64(LISTENERS + number as u64);
            let flags = epoll::EventFlags::IN | epoll::EventFlags::EXCLUSIVE;
            match epoll::add(&self.epoll, listener, token, flags) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Pauses the listeners for a moment.
    fn pause(&mut self) {
        for listener in &self.listeners {
            // Fails for a listener that is not watched, which is fine.
            let _ = epoll::delete(&self.epoll, listener);
        }
        self.paused_until_ms = Some(self.now_ms + ACCEPT_PAUSE_MS);
    }

    /// Handles the messages; returns whether the server shuts down.
    fn read_messages(&mut self) -> bool {
        let Messages { returned, woken, evict, close } = self.mailbox.take();
        for (parked, pending) in returned {
            let Some(token) = self.park(parked, false) else { continue };
            self.watch(token);
            if let Some(pending) = pending {
                self.catch_panic(token, |worker| worker.hold(token, pending));
            }
        }
        self.woken.extend(woken);
        if evict {
            self.evict();
        }
        close
    }

    fn accept(&mut self, number: u64) {
        let Some(listener) = usize::try_from(number).ok().and_then(|at| self.listeners.get(at)) else {
            return;
        };
        let listener = Arc::clone(listener);
        let mut has_evicted = false;
        for _ in 0..ACCEPTS_PER_TURN {
            if self.paused_until_ms.is_some() {
                return;
            }
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match rustix::net::acceptfrom_with(&*listener, flags) {
                Ok((socket, source)) => {
                    (self.is_failing, has_evicted) = (false, false);
                    self.server.stats.connections_accepted.add();
                    // A client that is gone already has no address, and needs no response.
                    let source = source.and_then(|source| SocketAddr::try_from(source).ok());
                    let caller = source.and_then(|source| listener.caller(source.ip(), &socket));
                    let Some(mut caller) = caller else { continue };
                    caller.is_proxy = self.server.platform.is_trusted_proxy(&caller);
                    // A source at its limit may reconnect as fast as it can. Serve open connections first.
                    let Some(Admitted { permit, is_nearly_full }) = self.admit(&listener, &caller) else {
                        return;
                    };
                    let is_unknown_caller = is_nearly_full && self.server.is_unknown_caller(&caller);
                    if let Some(token) = self.park(Parked { socket, caller, permit }, true) {
                        match is_unknown_caller {
                            false => self.catch_panic(token, |worker| worker.serve_ready(token, false)),
                            true => self.hand_over_unknown_caller(token),
                        }
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(error) if is_connection_error(&error.into()) => {}
                // The kernel allocates a descriptor before it looks for a connection.
                Err(Errno::MFILE | Errno::NFILE) if !listener.has_pending() => return,
                Err(Errno::MFILE | Errno::NFILE) if !has_evicted && self.evict() > 0 => has_evicted = true,
                Err(error) => {
                    if !std::mem::replace(&mut self.is_failing, true) {
                        tracing::warn!(%error, "cannot accept connections: retrying");
                    }
                    self.others.iter().for_each(|other| other.request_eviction());
                    self.pause();
                }
            }
        }
    }

    /// Admits a caller; evicts another connection if the server is full.
    fn admit(&mut self, listener: &Listener, caller: &Caller) -> Option<Admitted> {
        let mut admitted = self.server.admission.admit(listener.identity, caller);
        if matches!(admitted, Err(LimitExceeded::Total)) {
            admitted = self.admit_by_evicting(listener, caller);
        }
        if admitted.is_err() {
            self.server.stats.connections_turned_away.add();
        }
        admitted.ok()
    }

    /// Admits a caller to a full server by evicting a connection of an unknown caller, an incomplete head, or an idle
    /// one of this worker. An unknown caller evicts only unknown callers. If nothing can be evicted, the other workers
    /// are asked to evict, for the next caller.
    fn admit_by_evicting(&mut self, listener: &Listener, caller: &Caller) -> Result<Admitted, LimitExceeded> {
        let admission = Arc::clone(&self.server.admission);
        let newcomer = match self.server.is_unknown_caller(caller) {
            true => CallerStatus::Unknown,
            false => CallerStatus::Known,
        };
        if admission.evict_one(newcomer) {
            return admission.admit_up_to(usize::MAX, listener.identity, caller);
        }
        match newcomer {
            CallerStatus::Unknown => Err(LimitExceeded::Total),
            CallerStatus::Known if self.evict() > 0 => admission.admit(listener.identity, caller),
            CallerStatus::Known => {
                self.others.iter().for_each(|other| other.request_eviction());
                Err(LimitExceeded::Total)
            }
        }
    }

    /// Puts a connection that is new, or idle again, into the slab.
    fn park(&mut self, parked: Parked, is_new: bool) -> Option<Token> {
        let until_ms = self.idle_until();
        self.sweep_at_ms = self.sweep_at_ms.min(until_ms);
        let (is_watched, has_more, held) = (false, false, None);
        self.open.insert(OpenConnection { parked, until_ms, is_new, is_watched, has_more, held }).ok()
    }

    /// Registers a connection in epoll; input that has already arrived is reported too.
    fn watch(&mut self, token: Token) {
        let Some(open) = self.open.get_mut(token).filter(|open| !open.is_watched) else { return };
        let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        open.is_watched =
            epoll::add(&self.epoll, &open.parked.socket, epoll::EventData::new_u64(token), flags).is_ok();
        if !open.is_watched {
            self.open.remove(token);
        }
    }

    fn idle_until(&self) -> u64 {
        let idle = self.server.settings.limits.idle_timeout.as_millis();
        self.now_ms.saturating_add(u64::try_from(idle).unwrap_or(u64::MAX))
    }

    /// Runs work for one connection. A panic ends this connection, not the thread.
    fn catch_panic(&mut self, token: Token, work: impl FnOnce(&mut Self)) {
        // Unwind-safe: buffers are cleared before each use, and the connection is removed.
        if catch_unwind(AssertUnwindSafe(|| work(self))).is_err() {
            tracing::error!("panic while serving a connection: it was closed, the others go on");
            self.remove(token);
        }
    }

    /// Removes a connection from the slab.
    fn remove(&mut self, token: Token) -> Option<OpenConnection<P::Scope>> {
        let mut open = self.open.remove(token)?;
        if let Some(held) = open.held.take() {
            self.release(&held);
        }
        Some(open)
    }

    /// Releases the registration and the count of a held poll.
    fn release(&self, held: &HeldPoll<P::Scope>) {
        self.server.stats.waiting.sub();
        if let Some(registration) = &held.registration {
            self.server.platform.wait_queues().cancel(registration);
        }
    }

    /// Serves the input of a connection.
    fn serve_ready(&mut self, token: Token, has_hung_up: bool) {
        let until_ms = self.idle_until();
        let Some(open) = self.open.get_mut(token) else { return };
        open.has_more = false;
        if let Some(held) = &mut open.held {
            held.has_unread = true;
            if has_hung_up {
                self.remove(token);
            }
            return;
        }
        let is_first = std::mem::take(&mut open.is_new);
        let turn = Turn { now: self.now, uptime: self.uptime, has_hung_up, is_first, is_last: false };
        let Parked { socket, caller, .. } = &open.parked;
        match fast_path::serve(&self.server, socket.as_fd(), caller, &mut self.buffers, turn) {
            // A new connection whose request has not arrived yet: unknown callers do not wait among VMs.
            Step::NoData if !open.is_watched && self.server.is_unknown_caller(caller) => {
                self.hand_over_unknown_caller(token);
            }
            step @ (Step::Keep | Step::NoData | Step::More) => {
                open.until_ms = until_ms;
                open.is_new = is_first && matches!(step, Step::NoData);
                open.has_more = matches!(step, Step::More);
                if open.has_more {
                    self.ready.push(token);
                }
                if !open.is_watched {
                    self.watch(token);
                }
            }
            Step::Close => drop(self.remove(token)),
            Step::LongPoll(_) if has_hung_up => drop(self.remove(token)),
            Step::LongPoll(pending) => {
                self.watch(token);
                self.hold(token, pending);
            }
            Step::HandOver(start) => self.hand_over(token, start),
        }
    }

    /// Holds a poll until a change. A client that has pipelined much input is answered at once.
    fn hold(&mut self, token: Token, mut pending: Box<Pending>) {
        let reason = match pending.rest.len() > HELD_INPUT_BYTES_MAX {
            true => WakeReason::Timeout,
            false => WakeReason::Changed,
        };
        pending.rest.shrink_to_fit();
        let has_unread = pending.has_unread;
        let until_ms = self.now_ms + wait_ms(&pending);
        let Some(open) = self.open.get_mut(token) else { return };
        open.until_ms = until_ms;
        open.held = Some(Box::new(HeldPoll { pending, registration: None, has_unread }));
        self.server.stats.waiting.add();
        self.sweep_at_ms = self.sweep_at_ms.min(until_ms);
        self.recheck(token, reason);
    }

    /// Checks a held poll that was notified.
    fn recheck_woken(&mut self, token: Token) {
        if let Some(held) = self.open.get_mut(token).and_then(|open| open.held.as_mut()) {
            // The wake may be for an earlier poll, with this registration still active.
            if let Some(registration) = held.registration.take() {
                self.server.platform.wait_queues().cancel(&registration);
            }
            self.catch_panic(token, |worker| worker.recheck(token, WakeReason::Changed));
        }
    }

    /// Answers a held poll if the document has changed or the wait is over; otherwise registers it again.
    fn recheck(&mut self, token: Token, reason: WakeReason) {
        let (response, delivers) = loop {
            let Some(OpenConnection { parked, held: Some(held), .. }) = self.open.get_mut(token) else {
                return;
            };
            match self.server.recheck(&held.pending.hold, &parked.caller) {
                // With interception on, answer early: the next poll then takes that path.
                PollUpdate::Unchanged { incarnation, .. }
                    if reason != WakeReason::Changed || self.server.interception.is_on() =>
                {
                    break (Response::NotModified { incarnation }, None);
                }
                PollUpdate::Unchanged { .. } if held.registration.is_some() => return,
                // A change before the registration does not notify: the next re-check finds it.
                PollUpdate::Unchanged { guest, incarnation } => {
                    let platform = &self.server.platform;
                    let waker: Arc<Mailbox> = Arc::clone(&self.mailbox);
                    held.registration =
                        platform.wait_queues().register(platform.scope(&guest), guest.vm(), waker, token);
                    if held.registration.is_none() {
                        break (Response::NotModified { incarnation }, None);
                    }
                }
                PollUpdate::Response(response) => break (response, None),
                PollUpdate::Document { guest, rendered: Rendered { incarnation, body, .. } } => {
                    break (
                        Response::Document { incarnation, body },
                        Some((guest, held.pending.hold.version)),
                    );
                }
            }
        };
        self.respond_to_held(token, response, delivers, reason);
    }

    fn respond_to_held(
        &mut self,
        token: Token,
        response: Response,
        delivers: Option<(P::Guest, EventsVersion)>,
        reason: WakeReason,
    ) {
        let until_ms = self.idle_until();
        let Some(open) = self.open.get_mut(token) else { return };
        open.until_ms = until_ms;
        let Some(held) = open.held.take() else { return };
        self.release(&held);
        let HeldPoll { pending, has_unread, .. } = *held;
        let Pending { mut meta, rest, .. } = *pending;
        meta.now = self.now;
        let is_last = matches!(reason, WakeReason::Shutdown | WakeReason::Eviction);
        if is_last || matches!(response, Response::Refused(_)) {
            meta.persistence = Persistence::Closing;
        }
        let Some(open) = self.open.get_mut(token) else { return };
        if let Response::Refused(error) = response {
            meta.wait = None;
            let refused = RefusedRequest { head: HELD_POLL, error, detail: "", at: self.now };
            self.server.record_refusal(&open.parked.caller, &refused);
        }
        let outgoing = OutgoingResponse { response, meta, delivers };
        match (
            self.buffers.send_response(&self.server, open.parked.socket.as_fd(), outgoing),
            meta.persistence,
        ) {
            (Sent::Closed, _) => drop(self.remove(token)),
            (Sent::Partial(unsent), _) => self.hand_over(token, Start::Unsent(unsent, rest)),
            (Sent::All, Persistence::Closing) if reason == WakeReason::Eviction => {
                // The slot is needed now, so it does not linger. With its input read, closing does not reset.
                self.buffers.discard_input(open.parked.socket.as_fd());
                self.remove(token);
            }
            (Sent::All, Persistence::Closing) if rest.is_empty() && !has_unread => drop(self.remove(token)),
            (Sent::All, Persistence::Closing) => self.hand_over(token, Start::Linger),
            (Sent::All, Persistence::Open | Persistence::KeptAlive) => match rest.is_empty() {
                false => self.hand_over(token, Start::Head(rest)),
                true if has_unread => self.serve_ready(token, false),
                true => {}
            },
        }
    }

    /// Gives the connection of an unknown caller to a task. It enters the eviction pool here: on a busy machine its task
    /// starts late, and until then newcomers without a VM would empty the pool.
    fn hand_over_unknown_caller(&mut self, token: Token) {
        let Some(open) = self.open.get_mut(token) else { return };
        let waiting = {
            // Its timeout is a timer of the runtime.
            let _runtime = self.runtime.enter();
            connection::wait_for_unknown_caller(&self.server, &open.parked.caller)
        };
        self.hand_over(token, Start::UnknownCaller(Box::new(waiting)));
    }

    /// Gives a connection to a task.
    fn hand_over(&mut self, token: Token, start: Start<P::Guest>) {
        let Some(OpenConnection { parked, is_watched, .. }) = self.remove(token) else { return };
        if is_watched && epoll::delete(&self.epoll, &parked.socket).is_err() {
            return;
        }
        self.server.stats.connections_handed_over.add();
        let (server, mailbox) = (Arc::clone(&self.server), Arc::clone(&self.mailbox));
        let task = connection::run(server, parked, mailbox, self.tasks.shutdown.clone(), start);
        self.tasks.spawn(&self.runtime, task);
    }

    /// Evicts a fraction of the longest idle connections; if none is idle, answers and closes the longest held polls.
    /// Returns how many.
    fn evict(&mut self) -> usize {
        let idle = self.open.iter().filter(|(_, open)| open.held.is_none() && !open.has_more);
        let idle = take_oldest(idle.map(|(token, open)| (open.until_ms, token)).collect());
        for (_, token) in &idle {
            self.server.stats.connections_evicted.add();
            self.remove(*token);
        }
        if !idle.is_empty() {
            return idle.len();
        }
        let held = self.open.iter().filter_map(|(token, open)| Some((open.held_since_ms()?, token)));
        let held = take_oldest(held.collect());
        for (_, token) in &held {
            self.server.stats.connections_evicted.add();
            self.catch_panic(*token, |worker| worker.recheck(*token, WakeReason::Eviction));
        }
        held.len()
    }

    /// Closes idle connections and answers held polls whose time is over.
    fn sweep(&mut self) {
        let is_due = |open: &OpenConnection<P::Scope>| open.until_ms <= self.now_ms;
        let due: Vec<_> = (self.open.iter().filter(|(_, open)| is_due(open)))
            .map(|(token, open)| (token, open.held.is_some()))
            .collect();
        for (token, is_held) in due {
            match is_held {
                true => self.catch_panic(token, |worker| worker.recheck(token, WakeReason::Timeout)),
                false => drop(self.remove(token)),
            }
        }
        let next = self.open.iter().map(|(_, open)| open.until_ms).min();
        self.sweep_at_ms = next.map_or(u64::MAX, |next| next.max(self.now_ms + SWEEP_PAUSE_MS));
    }

    /// Stops listening, answers requests that have arrived and held polls, and drops the rest.
    fn close(mut self) {
        self.listeners.clear();
        // Messages after this are refused: a task that finishes a request closes its connection.
        for (parked, pending) in self.mailbox.close_and_drain().returned {
            if let Some(token) = self.park(parked, false)
                && let Some(mut pending) = pending
            {
                // It was not watched, so its socket may have input.
                pending.has_unread = true;
                self.catch_panic(token, |worker| worker.hold(token, pending));
            }
        }
        let tokens: Vec<_> = self.open.iter().map(|(token, _)| token).collect();
        for token in tokens {
            self.catch_panic(token, |worker| worker.serve_last(token));
            self.remove(token);
        }
    }

    /// Serves a connection for the last time.
    fn serve_last(&mut self, token: Token) {
        let Some(open) = self.open.get_mut(token) else { return };
        if open.held.is_none() {
            let turn = Turn {
                now: self.now,
                uptime: self.uptime,
                has_hung_up: false,
                is_first: open.is_new,
                is_last: true,
            };
            let Parked { socket, caller, .. } = &open.parked;
            match fast_path::serve(&self.server, socket.as_fd(), caller, &mut self.buffers, turn) {
                Step::Keep | Step::NoData | Step::More | Step::Close => return,
                Step::HandOver(start) => return self.hand_over(token, start),
                Step::LongPoll(pending) => self.hold(token, pending),
            }
        }
        self.recheck(token, WakeReason::Shutdown);
    }
}
