//! The follower's side of digests: what to send, and when.
//!
//! One digest is under way at a time. It is repeated every [`REPEAT_AFTER`] until the leader acknowledges it; meanwhile
//! new notes merge. The first message of a node is a greeting without notes. Its acknowledgement names the term; then
//! the caller adds everything it knows ([`Sender::start_everything`]), which goes out in parts below 1 MiB. The last
//! part is marked *whole*. A new leader answers the digest of an earlier term with its own term, and everything is sent
//! again.
//!
//! **Bounds.** There is at most one note for each scope, each VM, and each pair of event and VM. If more than
//! [`NOTES_MAX`] wait and everything was sent before, they are dropped and the term is forgotten, so that everything is
//! sent again when the leader answers. Without a term, at most [`NOTES_WITHOUT_TERM_MAX`] are kept, for requests that are
//! forwarded; the leader gets everything later.

use std::time::Duration;

use jiff::Timestamp;
use notbefore_core::{EventId, ScopeId, VmId};
use notbefore_store::Revision;

use super::recent::RecentNotes;
use super::wire::{self, Ack, DIGEST_BYTES_MAX, Digest};
use super::{FirstRead, Heard, LogNote, Notes};

/// Interval of digests.
pub const SEND_EVERY: Duration = Duration::from_secs(1);
/// Interval of digests if a first read or the first poll of a scope waits: several of them share a digest.
pub const SEND_URGENT_EVERY: Duration = Duration::from_millis(50);
/// When a digest without an acknowledgement is sent again.
pub const REPEAT_AFTER: Duration = Duration::from_secs(1);
/// A digest without notes is sent if there was none for this long: the leader may have lost the lead and taken it again,
/// and waits to hear from this node; see
/// [`DIGESTS_LOST_AFTER`](super::receiver::DIGESTS_LOST_AFTER).
pub const GREET_EVERY: Duration = Duration::from_secs(3);
/// Notes that wait while the leader does not answer; about 20 MB.
pub const NOTES_MAX: usize = 200_000;
/// Notes that are kept before the term is known.
pub const NOTES_WITHOUT_TERM_MAX: usize = 1_000;
/// Maximum bytes of the notes that go along with a forwarded request.
pub const REQUEST_NOTES_BYTES_MAX: usize = 16 << 10;

/// The machine; see the module docs.
#[derive(Debug, Default)]
pub struct Sender {
    /// `name~epoch` of the node that leads, unless it is this one.
    leader: Option<String>,
    term: Option<u64>,
    everything: Everything,
    pending: Notes,
    is_urgent: bool,
    recent: RecentNotes,
    /// The digest without an acknowledgement.
    in_flight: Option<Digest>,
    last_number: u64,
    /// When the last digest was sent, to this leader.
    last_sent_at: Option<Duration>,
    /// When it was last decided what to send.
    last_turn_at: Option<Duration>,
}

/// How far the notes from before the term have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Everything {
    /// The caller does not know that they are wanted.
    #[default]
    Missing,
    /// The caller collects them. New notes are kept, since the caller may have passed their place.
    Collecting,
    /// They are among the pending notes.
    Pending,
    /// The last part is under way or acknowledged.
    Sent,
}

impl Sender {
    /// Another node leads; none if this node leads, or no node does. A digest goes to the new
    /// leader at once, and the answer names its term.
    pub fn set_leader(&mut self, leader: Option<&str>) {
        if self.leader.as_deref() != leader {
            self.leader = leader.map(str::to_owned);
            (self.last_sent_at, self.last_turn_at) = (None, None);
        }
    }

    /// `name~epoch` of the node to send to.
    pub fn leader(&self) -> Option<&str> {
        self.leader.as_deref()
    }

    fn forget_term(&mut self) {
        self.term = None;
        self.everything = Everything::Missing;
        if let Some(one) = self.in_flight.take() {
            self.pending.merge(one.notes);
        }
        // Everything has these entries, and each counts once.
        self.pending.log.clear();
        self.bound_notes();
        self.is_urgent = false;
        self.last_turn_at = None;
    }

    fn bound_notes(&mut self) {
        match self.everything {
            Everything::Missing if self.pending.len() >= NOTES_WITHOUT_TERM_MAX => {
                self.pending = Notes::default();
            }
            Everything::Sent if self.pending.len() >= NOTES_MAX => self.forget_term(),
            // One for each VM of the fleet, until they are sent.
            Everything::Missing | Everything::Collecting | Everything::Pending | Everything::Sent => {}
        }
    }

    /// A VM polled.
    pub fn add_heard(&mut self, vm: VmId, heard: Heard) {
        self.bound_notes();
        self.recent.add_heard(vm);
        self.pending.add_heard(vm, heard);
    }

    /// A VM of the scope polled, or approved.
    pub fn add_scope(&mut self, scope: ScopeId, at: Timestamp) {
        self.bound_notes();
        self.recent.add_scope(scope.clone());
        self.is_urgent |= self.pending.add_scope(scope, at);
    }

    /// A VM read an event for the first time.
    pub fn add_read(&mut self, event: EventId, vm: VmId, read: FirstRead) {
        self.bound_notes();
        self.recent.add_read(event, vm);
        self.pending.add_read(event, vm, read);
        self.is_urgent = true;
    }

    /// Something for a VM's log. The caller bounds what it adds between two digests.
    pub fn add_log(&mut self, note: LogNote) {
        if self.everything != Everything::Missing && note.what.len() <= wire::LOG_BYTES_MAX {
            self.pending.log.push(note);
        }
    }

    /// Whether the leader has a new term. If so, the caller collects everything it knows, and then calls
    /// [`Sender::add_everything`]. A note is made first where the caller collects it, and then here: so it is collected, or kept
    /// here from now on.
    pub fn start_everything(&mut self) -> bool {
        let is_wanted = self.term.is_some() && self.everything == Everything::Missing;
        if is_wanted {
            self.everything = Everything::Collecting;
        }
        is_wanted
    }

    /// All that the node knew when it was asked.
    pub fn add_everything(&mut self, notes: Notes) {
        if self.everything == Everything::Collecting {
            // The few into the many: guests wait meanwhile.
            let newer = std::mem::replace(&mut self.pending, notes);
            self.pending.merge(newer);
            self.everything = Everything::Pending;
        }
    }

    /// Whether the next digest can be composed now: the caller adds what it has collected.
    pub fn is_ready(&self, now: Duration) -> bool {
        self.in_flight.is_none() && self.due_at().is_some_and(|at| at <= now)
    }

    /// When [`Sender::next`] may return a digest; none while there is no leader.
    pub fn due_at(&self) -> Option<Duration> {
        self.leader.as_ref()?;
        let Some(last) = self.last_turn_at else { return Some(Duration::ZERO) };
        let interval = match &self.in_flight {
            Some(_) => REPEAT_AFTER,
            None if self.everything != Everything::Sent => Duration::ZERO,
            None if self.is_urgent => SEND_URGENT_EVERY,
            None => SEND_EVERY,
        };
        Some(last.saturating_add(interval))
    }

    /// The digest to send now, if one is due. `now` is monotonic; the wall clock `at` turns times into ages. Guests were
    /// shown nothing newer than `shown`.
    pub fn next(&mut self, now: Duration, at: Timestamp, shown: Revision) -> Option<Vec<u8>> {
        if self.due_at().is_none_or(|due| due > now) {
            return None;
        }
        if self.in_flight.is_none() {
            let (term, is_whole, notes) = match (self.term, self.everything) {
                (None, _) => (0, false, Notes::default()),
                (Some(_), Everything::Missing | Everything::Collecting) => return None,
                (Some(term), Everything::Pending | Everything::Sent) => {
                    let notes = wire::cut(&mut self.pending, DIGEST_BYTES_MAX);
                    let is_whole = self.everything == Everything::Pending && self.pending.is_empty();
                    (term, is_whole, notes)
                }
            };
            if is_whole {
                self.everything = Everything::Sent;
            }
            self.is_urgent = !self.pending.is_empty();
            self.last_turn_at = Some(now);
            let is_quiet = self.last_sent_at.is_none_or(|last| now.saturating_sub(last) >= GREET_EVERY);
            if self.term.is_some() && !is_whole && notes.is_empty() && !is_quiet {
                return None;
            }
            self.last_number += 1;
            let number = self.last_number;
            self.in_flight = Some(Digest { number, term, revision: shown, is_whole, notes });
        }
        (self.last_sent_at, self.last_turn_at) = (Some(now), Some(now));
        Some(self.in_flight.as_ref()?.encode(at))
    }

    /// The leader has answered a digest. Answers to older digests are ignored.
    pub fn acknowledge(&mut self, ack: Ack) {
        let Some(one) = self.in_flight.take_if(|one| one.number == ack.number) else { return };
        if one.term != ack.term {
            self.forget_term();
            self.term = Some(ack.term);
        }
    }

    /// The notes that go along with a forwarded request, so that the leader knows what came before it: the newest that
    /// are not acknowledged, at most [`REQUEST_NOTES_BYTES_MAX`]. None if there are none. The cost does not depend on how
    /// many wait.
    pub fn notes_for_request(&self, at: Timestamp, shown: Revision) -> Option<Vec<u8>> {
        let in_flight = self.in_flight.iter().map(|one| &one.notes);
        let notes = self.recent.find(in_flight.chain([&self.pending]), REQUEST_NOTES_BYTES_MAX);
        (!notes.is_empty()).then(|| Digest { revision: shown, notes, ..Digest::default() }.encode(at))
    }
}
