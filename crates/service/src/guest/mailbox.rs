//! How a worker is told something: a worker sleeps in the kernel, where only a file wakes it.
//!
//! Messages are collected under a lock that is held for a moment, and the file is written to only for the first
//! of them, so that a thousand messages cost one waking.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use rustix::event::{EventfdFlags, eventfd};

use super::long_poll::Pending;
use super::slots::Token;
use super::worker::Parked;
use crate::lock;
use crate::wait_queues::Wake;

/// What a worker is told, since it last looked.
#[derive(Default)]
pub(super) struct Messages {
    /// Connections that are idle again, or whose poll is to be held.
    pub returned: Vec<(Parked, Option<Box<Pending>>)>,
    /// There may be news for these held polls.
    pub woken: Vec<Token>,
    /// Another worker needs places or files: let some connections go.
    pub evict: bool,
    /// The server closes.
    pub close: bool,
}

#[derive(Default)]
struct Inbox {
    messages: Messages,
    /// Nobody will look any more.
    is_closed: bool,
}

/// One worker's messages.
pub(super) struct Mailbox {
    wake_fd: OwnedFd,
    inbox: Mutex<Inbox>,
}

impl Mailbox {
    pub(super) fn new() -> io::Result<Mailbox> {
        let wake_fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Mailbox { wake_fd, inbox: Mutex::default() })
    }

    /// A connection is idle again, or its poll is to be held. It is closed where the worker has gone.
    pub(super) fn return_connection(&self, parked: Parked, pending: Option<Box<Pending>>) {
        self.post(|messages| messages.returned.push((parked, pending)));
    }

    pub(super) fn request_eviction(&self) {
        self.post(|messages| messages.evict = true);
    }

    pub(super) fn close(&self) {
        self.post(|messages| messages.close = true);
    }

    fn post(&self, write: impl FnOnce(&mut Messages)) {
        let mut inbox = lock(&self.inbox);
        if inbox.is_closed {
            return;
        }
        let was_empty = inbox.messages.is_empty();
        write(&mut inbox.messages);
        drop(inbox);
        if was_empty {
            // It fails only if the counter overflows: four billion wakes without a read.
            let _ = rustix::io::write(&self.wake_fd, &1_u64.to_ne_bytes());
        }
    }

    /// What has come; the worker's.
    pub(super) fn take(&self) -> Messages {
        let _ = rustix::io::read(&self.wake_fd, &mut [0_u8; 8]);
        std::mem::take(&mut lock(&self.inbox).messages)
    }

    /// What has come, and nothing more will; the worker's last look.
    pub(super) fn close_and_drain(&self) -> Messages {
        let mut inbox = lock(&self.inbox);
        inbox.is_closed = true;
        std::mem::take(&mut inbox.messages)
    }
}

impl Messages {
    fn is_empty(&self) -> bool {
        self.returned.is_empty() && self.woken.is_empty() && !self.evict && !self.close
    }
}

impl Wake for Mailbox {
    fn wake(&self, mut tokens: Vec<Token>) {
        self.post(|messages| messages.woken.append(&mut tokens));
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake_fd.as_fd()
    }
}
