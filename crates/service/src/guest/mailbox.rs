//! How a worker is told something: a worker sleeps in the kernel, where only a file wakes it.
//!
//! Letters are collected under a lock that is held for a moment, and the file is written to only for the first
//! of them, so that a thousand letters cost one waking.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use rustix::event::{EventfdFlags, eventfd};

use super::hold::Pending;
use super::slots::Token;
use super::worker::Parked;
use crate::bell::Sleeper;
use crate::lock;

/// What a worker is told, since it last looked.
#[derive(Default)]
pub(super) struct Letters {
    /// Connections that are idle again, or whose poll is to be held.
    pub returned: Vec<(Parked, Option<Box<Pending>>)>,
    /// There may be news for these held polls.
    pub rung: Vec<Token>,
    /// Another worker needs places or files: let some connections go.
    pub make_room: bool,
    /// The door closes.
    pub close: bool,
}

#[derive(Default)]
struct Inbox {
    letters: Letters,
    /// Nobody will look any more.
    is_shut: bool,
}

/// One worker's letters.
pub(super) struct Mailbox {
    bell: OwnedFd,
    inbox: Mutex<Inbox>,
}

impl Mailbox {
    pub(super) fn new() -> io::Result<Mailbox> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Mailbox { bell, inbox: Mutex::default() })
    }

    /// A connection is idle again, or its poll is to be held. It is closed where the worker has gone.
    pub(super) fn give_back(&self, parked: Parked, pending: Option<Box<Pending>>) {
        self.post(|letters| letters.returned.push((parked, pending)));
    }

    pub(super) fn ask_for_room(&self) {
        self.post(|letters| letters.make_room = true);
    }

    pub(super) fn close(&self) {
        self.post(|letters| letters.close = true);
    }

    fn post(&self, write: impl FnOnce(&mut Letters)) {
        let mut inbox = lock(&self.inbox);
        if inbox.is_shut {
            return;
        }
        let was_empty = inbox.letters.is_empty();
        write(&mut inbox.letters);
        drop(inbox);
        if was_empty {
            // It can only fail where it has rung four billion times and nobody has looked.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    /// What has come; the worker's.
    pub(super) fn take(&self) -> Letters {
        let _ = rustix::io::read(&self.bell, &mut [0_u8; 8]);
        std::mem::take(&mut lock(&self.inbox).letters)
    }

    /// What has come, and nothing more will; the worker's last look.
    pub(super) fn shut(&self) -> Letters {
        let mut inbox = lock(&self.inbox);
        inbox.is_shut = true;
        std::mem::take(&mut inbox.letters)
    }
}

impl Letters {
    fn is_empty(&self) -> bool {
        self.returned.is_empty() && self.rung.is_empty() && !self.make_room && !self.close
    }
}

impl Sleeper for Mailbox {
    fn wake(&self, mut whom: Vec<Token>) {
        self.post(|letters| letters.rung.append(&mut whom));
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
