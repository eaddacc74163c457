//! Mailbox of a worker: messages under a lock, and an eventfd that wakes its epoll loop.
//!
//! Only the first message after a read writes to the eventfd, so a thousand messages cost one wake-up.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use rustix::event::{EventfdFlags, eventfd};

use super::long_poll::Pending;
use super::slots::Token;
use super::worker::Parked;
use crate::lock;
use crate::wait_queues::Wake;

/// Messages since the worker last read them.
#[derive(Default)]
pub(super) struct Messages {
    /// Connections that are idle again, or whose poll waits for a change.
    pub returned: Vec<(Parked, Option<Box<Pending>>)>,
    /// Held polls to check again.
    pub woken: Vec<Token>,
    /// Another worker needs slots or file descriptors: evict some connections.
    pub evict: bool,
    /// The server shuts down.
    pub close: bool,
}

#[derive(Default)]
struct Inbox {
    messages: Messages,
    /// The worker has ended and reads no more messages.
    is_closed: bool,
}

pub(super) struct Mailbox {
    wake_fd: OwnedFd,
    inbox: Mutex<Inbox>,
}

impl Mailbox {
    pub(super) fn new() -> io::Result<Mailbox> {
        let wake_fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Mailbox { wake_fd, inbox: Mutex::default() })
    }

    /// Returns an idle connection, or one with a poll to hold, to its worker. It is closed if the worker has ended.
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
            // Fails only if the counter overflows: four billion wakes without a read.
            let _ = rustix::io::write(&self.wake_fd, &1_u64.to_ne_bytes());
        }
    }

    /// Takes all messages.
    pub(super) fn take(&self) -> Messages {
        let _ = rustix::io::read(&self.wake_fd, &mut [0_u8; 8]);
        std::mem::take(&mut lock(&self.inbox).messages)
    }

    /// Takes all messages and refuses later ones.
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
