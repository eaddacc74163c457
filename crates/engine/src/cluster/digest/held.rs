//! Notes that wait at the leader until its own view shows what they are about.
//!
//! A follower's watch may show a commit before the leader itself does. Then a guest reads an event, or a new VM polls,
//! that the leader's view does not have, and the leader could do nothing with the note. Since it is acknowledged, it
//! must not be lost: the leader keeps it until its view has the revision of the sender's. Polls of scopes and entries of
//! logs need no view and never wait.

use std::collections::VecDeque;
use std::time::Duration;

use notbefore_store::Revision;

use super::Notes;

/// Notes wait for this long at most, then they are taken as they are. The leader's view is behind by milliseconds, or
/// until an unknown outcome is cleared.
pub const HELD_TIME_MAX: Duration = Duration::from_secs(3);
/// Notes that wait at most; about 20 MB. Above it, the oldest are taken as they are.
pub const HELD_NOTES_MAX: usize = 200_000;

/// The notes that wait; see the module docs.
#[derive(Debug, Default)]
pub struct HeldNotes {
    waiting: VecDeque<Held>,
}

#[derive(Debug)]
struct Held {
    revision: Revision,
    since: Duration,
    notes: Notes,
}

impl HeldNotes {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds notes of a node whose guests were shown nothing newer than `revision`. Returns those to take now. The
    /// leader's view shows everything up to `shown`; `now` is monotonic.
    pub fn add(&mut self, mut notes: Notes, revision: Revision, shown: Revision, now: Duration) -> Notes {
        if revision > shown {
            let (reads, heard) = (std::mem::take(&mut notes.reads), std::mem::take(&mut notes.heard));
            let held = Notes { reads, heard, ..Notes::default() };
            if !held.is_empty() {
                self.waiting.push_back(Held { revision, since: now, notes: held });
            }
            while self.waiting.iter().map(|held| held.notes.len()).sum::<usize>() > HELD_NOTES_MAX
                && let Some(oldest) = self.waiting.pop_front()
            {
                notes.merge(oldest.notes);
            }
        }
        notes
    }

    /// Removes the notes whose time has come.
    pub fn take_due(&mut self, shown: Revision, now: Duration) -> Notes {
        let is_due = |held: &Held| held.revision <= shown || now.saturating_sub(held.since) >= HELD_TIME_MAX;
        let (due, waiting) =
            std::mem::take(&mut self.waiting).into_iter().partition::<VecDeque<_>, _>(is_due);
        self.waiting = waiting;
        let mut notes = Notes::default();
        due.into_iter().for_each(|held| notes.merge(held.notes));
        notes
    }
}
