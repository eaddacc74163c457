//! A worker: a thread that waits for many connections at once.
//!
//! Nearly all connections are idle at any moment, so an idle one costs a place in a table ([`super::slots`]) and
//! no more: no task, no timer, no buffer. The thread waits in epoll for any of them, lets [`super::lean`] answer,
//! and gives what is no plain poll to a task of the runtime ([`super::connection`]). When the task has nothing left
//! to do the connection comes back by mail ([`super::mailbox`]).
//!
//! Every worker watches every listener, one being woken for each connection; a connection stays with the worker
//! that accepted it. A connection that has just been accepted is read from before it is watched: its request is
//! mostly there, and a client that then closes is served in four calls.
//!
//! A caller that is no VM is a *stranger*: its connections are tasks, few and for seconds ([`super::crowd`]). Whether
//! a caller is one is asked when the first read of its connection finds no whole head, and at once where the door is
//! nearly full; so a plain poll is looked up once, as it is answered.
//!
//! There are no timers. A connection has a time at which it ends if nothing happens; from time to time the
//! table is looked through for those that are due. The same time says which connections have been idle longest
//! where the door is full or the process is out of files, and no stranger can go: such connections are closed a few
//! at a time, so that a flood of new ones does not look through the table for each. Where none is idle, the polls that have been held
//! longest are answered and go, since otherwise whoever waits could keep everybody else out. A connection that is
//! amid a request is with its task and never among them. Where nothing can go and there are no files, the worker
//! leaves the listeners alone for a moment, since trying again at once would only burn a processor.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jiff::Timestamp;
use notbefore_wire::guest::version::EventsVersion;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use tokio::runtime::Handle;

use super::admission::{Admitted, Excess, Permit};
use super::answer::{Answer, Persistence};
use super::caller::Caller;
use super::connection::{self, Start, Tasks};
use super::crowd::Standing;
use super::hold::{News, Pending};
use super::lean::{self, Buffers, Reply, Sent, Step, Turn};
use super::listener::Listener;
use super::mailbox::{Letters, Mailbox};
use super::platform::{GuestHandle, Platform, Rendered};
use super::slots::{self, Slots, Token};
use super::{GuestDoor, belongs_to_one_connection};
use crate::bell::Seat;
use crate::clock::Stopwatch;

/// How many connections are looked at before the mail is.
const EVENTS_PER_WAIT: usize = 256;
/// How many connections are accepted in a row before those that are open have their turn.
const ACCEPTS_PER_TURN: usize = 16;
/// How long listeners are left alone when the process is out of files and nothing is idle.
const ACCEPT_PAUSE_MS: u64 = 100;
/// How often the table is looked through at most; so much longer may a connection stay than it should.
const SWEEP_PAUSE_MS: u64 = 20;
/// Which part of its idle connections, or held polls, a worker lets go at a time to make room, and the most of them.
const EVICTED_PART: usize = 64;
const EVICTED_MAX: usize = 64;
/// How many bytes are kept for a client that sends ahead while its poll is held. With more, it is not held.
const KEPT_REST_MAX: usize = 1024;

/// What epoll says of a client that sends no more, or is gone.
const ENDED: epoll::EventFlags =
    epoll::EventFlags::RDHUP.union(epoll::EventFlags::HUP).union(epoll::EventFlags::ERR);

const MAILBOX: Token = Token::MAX;
/// A listener's token is this and its number.
const LISTENERS: Token = slots::RESERVED;

/// A connection between requests.
pub(super) struct Parked {
    pub socket: OwnedFd,
    pub caller: Caller,
    pub permit: Permit,
}

/// A connection in the table.
struct Open<K> {
    parked: Parked,
    /// When it ends, or its poll is held no longer, if nothing happens; by the worker's stopwatch.
    until_ms: u64,
    /// Whether epoll knows it.
    is_watched: bool,
    /// Whether it had its turn and may have more to read: then it is not idle.
    has_more: bool,
    held: Option<Box<Held<K>>>,
}

/// A poll that waits for news.
struct Held<K> {
    pending: Box<Pending>,
    /// Where it waits for the bell; it has none when it was rung for.
    seat: Option<Seat<K>>,
    /// Whether the client has sent more meanwhile. It stays unread until this is answered.
    has_unread: bool,
}

impl<K> Open<K> {
    /// Since when its poll is held, if one is.
    fn held_since_ms(&self) -> Option<u64> {
        let held = self.held.as_ref()?;
        Some(self.until_ms.saturating_sub(wait_ms(&held.pending)))
    }
}

fn wait_ms(pending: &Pending) -> u64 {
    u64::from(pending.wait.get()) * 1_000
}

/// Those that make room: the smallest, a part of all.
fn first_part(mut all: Vec<(u64, Token)>) -> Vec<(u64, Token)> {
    let count = (all.len() / EVICTED_PART).clamp(1, EVICTED_MAX).min(all.len());
    if count > 0 {
        all.select_nth_unstable(count - 1);
    }
    all.truncate(count);
    all
}

/// Why a held poll is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    /// It has just come, or there may be news.
    News,
    /// Its time is over.
    Due,
    /// The door closes.
    Closing,
    /// Its place is needed.
    MakingRoom,
}

/// A thread of the door.
pub(super) struct Worker<P: Platform> {
    door: Arc<GuestDoor<P>>,
    listeners: Vec<Arc<Listener>>,
    epoll: OwnedFd,
    mailbox: Arc<Mailbox>,
    /// The mailboxes of the other workers.
    others: Vec<Arc<Mailbox>>,
    runtime: Handle,
    tasks: Tasks,
    open: Slots<Open<P::Scope>>,
    buffers: Buffers,
    /// Connections that had their turn and may have more to read.
    again: Vec<Token>,
    /// Held polls that there may be news for, the next one last.
    rung: Vec<Token>,
    stopwatch: Stopwatch,
    now_ms: u64,
    now: Timestamp,
    /// When the table is looked through next.
    sweep_at_ms: u64,
    /// Until when the listeners are left alone.
    paused_until_ms: Option<u64>,
    is_failing: bool,
}

impl<P: Platform> Worker<P> {
    /// A worker for these listeners. `mailboxes` are all workers', and `number` says which is this one's.
    pub(super) fn new(
        door: Arc<GuestDoor<P>>,
        listeners: Vec<Arc<Listener>>,
        mailboxes: &[Arc<Mailbox>],
        number: usize,
        tasks: Tasks,
    ) -> io::Result<Worker<P>> {
        let (own, others): (Vec<_>, Vec<_>) =
            (mailboxes.iter().cloned().enumerate()).partition(|(at, _)| *at == number);
        let mailbox = own.into_iter().next().map(|(_, mailbox)| mailbox).ok_or(io::ErrorKind::NotFound)?;
        let stopwatch = Stopwatch::start();
        let worker = Worker {
            now: door.clock.now(),
            door,
            listeners,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            mailbox,
            others: others.into_iter().map(|(_, mailbox)| mailbox).collect(),
            runtime: Handle::current(),
            tasks,
            open: Slots::new(),
            buffers: Buffers::new(),
            again: Vec::new(),
            rung: Vec::new(),
            now_ms: stopwatch.elapsed_ms(),
            stopwatch,
            sweep_at_ms: u64::MAX,
            paused_until_ms: None,
            is_failing: false,
        };
        let token = epoll::EventData::new_u64(MAILBOX);
        epoll::add(&worker.epoll, &worker.mailbox, token, epoll::EventFlags::IN)?;
        worker.watch_listeners()?;
        Ok(worker)
    }

    /// Serves until the door closes.
    // A symbol of its own in every build: the test of a poll's cost tells the door's threads by it.
    #[inline(never)]
    pub(super) fn run(mut self) {
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        loop {
            let timeout = self.timeout();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "a thread of the guest door cannot wait, and ends");
                    break;
                }
            }
            self.now_ms = self.stopwatch.elapsed_ms();
            self.now = self.door.clock.now();
            let again = std::mem::take(&mut self.again);
            let mut is_closing = false;
            for event in events.drain(..) {
                let (flags, data) = (event.flags, event.data);
                match data.u64() {
                    MAILBOX => is_closing |= self.read_mail(),
                    token if token >= LISTENERS => self.accept(token - LISTENERS),
                    token => {
                        let has_hung_up = flags.intersects(ENDED);
                        self.guarded(token, |worker| worker.attend(token, has_hung_up));
                    }
                }
            }
            for token in again {
                self.guarded(token, |worker| worker.attend(token, false));
            }
            for token in self.rung.split_off(self.rung.len().saturating_sub(EVENTS_PER_WAIT)) {
                self.ring(token);
            }
            if is_closing {
                break;
            }
            if self.now_ms >= self.sweep_at_ms {
                self.sweep();
            }
            if self.paused_until_ms.is_some_and(|until| self.now_ms >= until) {
                self.paused_until_ms = None;
                // What cannot be watched now is tried again after another pause.
                if self.watch_listeners().is_err() {
                    self.pause();
                }
            }
        }
        self.close();
    }

    /// How long there is nothing to do unless something happens.
    fn timeout(&self) -> Option<Timespec> {
        let wait_ms =
            match (self.again.is_empty() && self.rung.is_empty(), self.paused_until_ms.unwrap_or(u64::MAX)) {
                (false, _) => 0,
                (true, until) if until.min(self.sweep_at_ms) == u64::MAX => return None,
                (true, until) => until.min(self.sweep_at_ms).saturating_sub(self.now_ms),
            };
        // A day is as good as any longer time.
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

    /// Leaves the listeners alone for a moment.
    fn pause(&mut self) {
        for listener in &self.listeners {
            // One that is not watched needs no leaving alone.
            let _ = epoll::delete(&self.epoll, listener);
        }
        self.paused_until_ms = Some(self.now_ms + ACCEPT_PAUSE_MS);
    }

    /// Takes the mail, and says whether the door closes.
    fn read_mail(&mut self) -> bool {
        let Letters { returned, rung, make_room, close } = self.mailbox.take();
        for (parked, pending) in returned {
            let Some(token) = self.park(parked) else { continue };
            self.watch(token);
            if let Some(pending) = pending {
                self.guarded(token, |worker| worker.hold(token, pending));
            }
        }
        self.rung.extend(rung);
        if make_room {
            self.evict();
        }
        close
    }

    fn accept(&mut self, number: u64) {
        let Some(listener) = usize::try_from(number).ok().and_then(|at| self.listeners.get(at)) else {
            return;
        };
        let listener = Arc::clone(listener);
        let mut made_room = false;
        for _ in 0..ACCEPTS_PER_TURN {
            if self.paused_until_ms.is_some() {
                return;
            }
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match rustix::net::acceptfrom_with(&*listener, flags) {
                Ok((socket, source)) => {
                    (self.is_failing, made_room) = (false, false);
                    self.door.stats.connections_accepted.add();
                    // A client that is gone already has no address, and needs no answer.
                    let Some(source) = source.and_then(|source| source.try_into().ok()) else { continue };
                    let Some(mut caller) = listener.caller(source, &socket) else { continue };
                    caller.is_proxy = self.door.platform.trusts(&caller);
                    // A source that has too many connections makes more as fast as it can. The open ones go first.
                    let Some(Admitted { permit, is_crowded }) = self.admit(&listener, &caller) else {
                        return;
                    };
                    let is_stranger = is_crowded && self.door.is_stranger(&caller);
                    if let Some(token) = self.park(Parked { socket, caller, permit }) {
                        match is_stranger {
                            false => self.guarded(token, |worker| worker.attend(token, false)),
                            true => self.hand_over(token, Start::Head(Vec::new())),
                        }
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(error) if belongs_to_one_connection(&error.into()) => {}
                // The system looks for a file before it looks for a connection.
                Err(Errno::MFILE | Errno::NFILE) if !listener.is_called() => return,
                Err(Errno::MFILE | Errno::NFILE) if !made_room && self.evict() > 0 => made_room = true,
                Err(error) => {
                    if !std::mem::replace(&mut self.is_failing, true) {
                        tracing::warn!(%error, "cannot accept connections; will keep trying");
                    }
                    self.others.iter().for_each(|other| other.ask_for_room());
                    self.pause();
                }
            }
        }
    }

    /// A place for a caller, also where the door is full, if another can go.
    fn admit(&mut self, listener: &Listener, caller: &Caller) -> Option<Admitted> {
        let mut admitted = self.door.admission.admit(listener.identity, caller);
        if matches!(admitted, Err(Excess::Door)) {
            admitted = self.admit_to_full_door(listener, caller);
        }
        if admitted.is_err() {
            self.door.stats.connections_turned_away.add();
        }
        admitted.ok()
    }

    /// A place that another connection leaves: one of a stranger, a half head, or an idle one of this worker. A
    /// stranger displaces strangers only. Where no connection can go, the other workers are asked for places, and the
    /// next caller will find one.
    fn admit_to_full_door(&mut self, listener: &Listener, caller: &Caller) -> Result<Admitted, Excess> {
        let admission = Arc::clone(&self.door.admission);
        let newcomer = match self.door.is_stranger(caller) {
            true => Standing::Stranger,
            false => Standing::Known,
        };
        if admission.make_room(newcomer) {
            return admission.admit_up_to(usize::MAX, listener.identity, caller);
        }
        match newcomer {
            Standing::Stranger => Err(Excess::Door),
            Standing::Known if self.evict() > 0 => admission.admit(listener.identity, caller),
            Standing::Known => {
                self.others.iter().for_each(|other| other.ask_for_room());
                Err(Excess::Door)
            }
        }
    }

    /// Gives a connection that is new, or idle again, a place in the table.
    fn park(&mut self, parked: Parked) -> Option<Token> {
        let until_ms = self.idle_until();
        self.sweep_at_ms = self.sweep_at_ms.min(until_ms);
        self.open.insert(Open { parked, until_ms, is_watched: false, has_more: false, held: None }).ok()
    }

    /// Has epoll tell of a connection's bytes from now on, those that are there already included.
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
        let idle = self.door.settings.limits.idle_timeout.as_millis();
        self.now_ms.saturating_add(u64::try_from(idle).unwrap_or(u64::MAX))
    }

    /// Does something for a connection. A panic in it ends this connection, not the thread that serves the others.
    fn guarded(&mut self, token: Token, work: impl FnOnce(&mut Self)) {
        // Buffers are emptied before each use, and what is left of the connection is let go.
        if catch_unwind(AssertUnwindSafe(|| work(self))).is_err() {
            tracing::error!("a connection ended in a panic; the others go on");
            self.remove(token);
        }
    }

    /// Takes a connection out of the table.
    fn remove(&mut self, token: Token) -> Option<Open<P::Scope>> {
        let mut open = self.open.remove(token)?;
        if let Some(held) = open.held.take() {
            self.release(&held);
        }
        Some(open)
    }

    /// Lets go of what a held poll has taken.
    fn release(&self, held: &Held<P::Scope>) {
        self.door.stats.waiting.sub();
        if let Some(seat) = &held.seat {
            self.door.platform.bell().get_up(seat);
        }
    }

    /// Serves what a connection has sent.
    fn attend(&mut self, token: Token, has_hung_up: bool) {
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
        let turn = Turn { now: self.now, has_hung_up, is_last: false };
        let Parked { socket, caller, .. } = &open.parked;
        match lean::serve(&self.door, socket.as_fd(), caller, &mut self.buffers, turn) {
            // A new connection whose request is not there yet: a stranger does not wait among those of VMs.
            Step::Silent if !open.is_watched && self.door.is_stranger(caller) => {
                self.hand_over(token, Start::Head(Vec::new()));
            }
            step @ (Step::Keep | Step::Silent | Step::Again) => {
                open.until_ms = until_ms;
                open.has_more = matches!(step, Step::Again);
                if open.has_more {
                    self.again.push(token);
                }
                if !open.is_watched {
                    self.watch(token);
                }
            }
            Step::Close => drop(self.remove(token)),
            Step::Hold(_) if has_hung_up => drop(self.remove(token)),
            Step::Hold(pending) => {
                self.watch(token);
                self.hold(token, pending);
            }
            Step::HandOver(start) => self.hand_over(token, start),
        }
    }

    /// Holds a poll back until there is news. One whose client has sent much ahead is answered at once.
    fn hold(&mut self, token: Token, mut pending: Box<Pending>) {
        let occasion = match pending.rest.len() > KEPT_REST_MAX {
            true => Occasion::Due,
            false => Occasion::News,
        };
        pending.rest.shrink_to_fit();
        let has_unread = pending.has_unread;
        let until_ms = self.now_ms + wait_ms(&pending);
        let Some(open) = self.open.get_mut(token) else { return };
        open.until_ms = until_ms;
        open.held = Some(Box::new(Held { pending, seat: None, has_unread }));
        self.door.stats.waiting.add();
        self.sweep_at_ms = self.sweep_at_ms.min(until_ms);
        self.look_again(token, occasion);
    }

    /// The bell has rung for a held poll.
    fn ring(&mut self, token: Token) {
        if let Some(held) = self.open.get_mut(token).and_then(|open| open.held.as_mut()) {
            // It may be the bell for a poll before this one, and the seat still taken.
            if let Some(seat) = held.seat.take() {
                self.door.platform.bell().get_up(&seat);
            }
            self.guarded(token, |worker| worker.look_again(token, Occasion::News));
        }
    }

    /// Answers a held poll, if there is news for it or it is held no longer; otherwise it sits down and waits on.
    fn look_again(&mut self, token: Token, occasion: Occasion) {
        let (answer, delivers) = loop {
            let Some(Open { parked, held: Some(held), .. }) = self.open.get_mut(token) else { return };
            match self.door.look_again(&held.pending.hold, &parked.caller) {
                News::None { incarnation, .. } if occasion != Occasion::News => {
                    break (Answer::NotModified { incarnation }, None);
                }
                News::None { .. } if held.seat.is_some() => return,
                // What has changed before it sat down does not ring: that is what the next look is for.
                News::None { guest, incarnation } => {
                    let platform = &self.door.platform;
                    let sleeper: Arc<Mailbox> = Arc::clone(&self.mailbox);
                    held.seat = platform.bell().sit_down(platform.scope(&guest), guest.vm(), sleeper, token);
                    if held.seat.is_none() {
                        break (Answer::NotModified { incarnation }, None);
                    }
                }
                News::Answer(answer) => break (answer, None),
                News::Document { guest, rendered: Rendered { incarnation, body, .. } } => {
                    break (Answer::Document { incarnation, body }, Some((guest, held.pending.hold.version)));
                }
            }
        };
        self.answer_held(token, answer, delivers, occasion);
    }

    fn answer_held(
        &mut self,
        token: Token,
        answer: Answer,
        delivers: Option<(P::Guest, EventsVersion)>,
        occasion: Occasion,
    ) {
        let until_ms = self.idle_until();
        let Some(open) = self.open.get_mut(token) else { return };
        open.until_ms = until_ms;
        let Some(held) = open.held.take() else { return };
        self.release(&held);
        let Held { pending, has_unread, .. } = *held;
        let Pending { mut manner, rest, .. } = *pending;
        manner.now = self.now;
        let is_last = matches!(occasion, Occasion::Closing | Occasion::MakingRoom);
        if is_last || matches!(answer, Answer::Refused(_)) {
            manner.persistence = Persistence::Closing;
        }
        if matches!(answer, Answer::Refused(_)) {
            manner.wait = None;
        }
        let Some(open) = self.open.get_mut(token) else { return };
        let reply = Reply { answer, manner, delivers };
        match (self.buffers.reply(&self.door, open.parked.socket.as_fd(), reply), manner.persistence) {
            (Sent::Gone, _) => drop(self.remove(token)),
            (Sent::Partly(unsent), _) => self.hand_over(token, Start::Unsent(unsent, rest)),
            (Sent::Whole, Persistence::Closing) if occasion == Occasion::MakingRoom => {
                // The place is needed now, so it does not linger; with what has come read, nothing is reset.
                self.buffers.pass_over(open.parked.socket.as_fd());
                self.remove(token);
            }
            (Sent::Whole, Persistence::Closing) if rest.is_empty() && !has_unread => drop(self.remove(token)),
            (Sent::Whole, Persistence::Closing) => self.hand_over(token, Start::Linger),
            (Sent::Whole, Persistence::Open | Persistence::KeptAlive) => match rest.is_empty() {
                false => self.hand_over(token, Start::Head(rest)),
                true if has_unread => self.attend(token, false),
                true => {}
            },
        }
    }

    /// Gives a connection to a task of its own.
    fn hand_over(&mut self, token: Token, start: Start<P::Guest>) {
        let Some(Open { parked, is_watched, .. }) = self.remove(token) else { return };
        if is_watched && epoll::delete(&self.epoll, &parked.socket).is_err() {
            return;
        }
        self.door.stats.connections_handed_over.add();
        let (door, home) = (Arc::clone(&self.door), Arc::clone(&self.mailbox));
        let task = connection::run(door, parked, home, self.tasks.shutdown.clone(), start);
        self.tasks.spawn(&self.runtime, task);
    }

    /// Closes the connections that have been idle longest, a part of them; where none is idle, answers the polls that
    /// have been held longest, and closes theirs. Says how many.
    fn evict(&mut self) -> usize {
        let idle = self.open.iter().filter(|(_, open)| open.held.is_none() && !open.has_more);
        let idle = first_part(idle.map(|(token, open)| (open.until_ms, token)).collect());
        for (_, token) in &idle {
            self.door.stats.connections_evicted.add();
            self.remove(*token);
        }
        if !idle.is_empty() {
            return idle.len();
        }
        let held = self.open.iter().filter_map(|(token, open)| Some((open.held_since_ms()?, token)));
        let held = first_part(held.collect());
        for (_, token) in &held {
            self.door.stats.connections_evicted.add();
            self.guarded(*token, |worker| worker.look_again(*token, Occasion::MakingRoom));
        }
        held.len()
    }

    /// Closes the idle connections that are due, and answers the held polls that are.
    fn sweep(&mut self) {
        let is_due = |open: &Open<P::Scope>| open.until_ms <= self.now_ms;
        let due: Vec<_> = (self.open.iter().filter(|(_, open)| is_due(open)))
            .map(|(token, open)| (token, open.held.is_some()))
            .collect();
        for (token, is_held) in due {
            match is_held {
                true => self.guarded(token, |worker| worker.look_again(token, Occasion::Due)),
                false => drop(self.remove(token)),
            }
        }
        let next = self.open.iter().map(|(_, open)| open.until_ms).min();
        self.sweep_at_ms = next.map_or(u64::MAX, |next| next.max(self.now_ms + SWEEP_PAUSE_MS));
    }

    /// Stops listening, answers what has arrived and what is held, and lets go of the rest.
    fn close(mut self) {
        self.listeners.clear();
        // Nothing comes back after this: a task that has finished a request ends.
        for (parked, pending) in self.mailbox.shut().returned {
            if let Some(token) = self.park(parked)
                && let Some(mut pending) = pending
            {
                // Nobody has watched it, so nobody knows.
                pending.has_unread = true;
                self.guarded(token, |worker| worker.hold(token, pending));
            }
        }
        let tokens: Vec<_> = self.open.iter().map(|(token, _)| token).collect();
        for token in tokens {
            self.guarded(token, |worker| worker.take_leave(token));
            self.remove(token);
        }
    }

    /// A connection's last turn.
    fn take_leave(&mut self, token: Token) {
        let Some(open) = self.open.get_mut(token) else { return };
        if open.held.is_none() {
            let turn = Turn { now: self.now, has_hung_up: false, is_last: true };
            let Parked { socket, caller, .. } = &open.parked;
            match lean::serve(&self.door, socket.as_fd(), caller, &mut self.buffers, turn) {
                Step::Keep | Step::Silent | Step::Again | Step::Close => return,
                Step::HandOver(start) => return self.hand_over(token, start),
                Step::Hold(pending) => self.hold(token, pending),
            }
        }
        self.look_again(token, Occasion::Closing);
    }
}
