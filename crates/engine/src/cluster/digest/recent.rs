//! Which notes a follower made last, for the requests that it forwards.
//!
//! While the leader does not answer, a note waits for each VM of the fleet, and a request must not walk all of them: it
//! holds the lock that guests need. So the keys of the last notes are kept apart, in the order in which they came.
//! [`RecentNotes::find`] looks only these up.

use std::collections::VecDeque;

use notbefore_core::{EventId, ScopeId, VmId};

use super::Notes;
use super::wire::{HEARD_BYTES, READ_BYTES, Room, scope_bytes};

/// Keys of each kind: about as many as fit into the [notes of a request](super::sender::REQUEST_NOTES_BYTES_MAX).
pub(super) const RECENT_MAX: usize = 512;

/// Keys of the last notes, the last one at the end. A key may occur twice, or be acknowledged.
#[derive(Debug, Default)]
pub(super) struct RecentNotes {
    scopes: VecDeque<ScopeId>,
    reads: VecDeque<(EventId, VmId)>,
    heard: VecDeque<VmId>,
}

impl RecentNotes {
    pub fn add_scope(&mut self, scope: ScopeId) {
        push(&mut self.scopes, scope);
    }

    pub fn add_read(&mut self, event: EventId, vm: VmId) {
        push(&mut self.reads, (event, vm));
    }

    pub fn add_heard(&mut self, vm: VmId) {
        push(&mut self.heard, vm);
    }

    /// The last notes that are among `all` and fit into a message: scopes first, no log. At most [`RECENT_MAX`] lookups
    /// of each kind, in each of `all`.
    pub fn find<'n>(&self, all: impl Iterator<Item = &'n Notes> + Clone, bytes_max: usize) -> Notes {
        let (mut found, mut room) = (Notes::default(), Room::of_message(bytes_max));
        for scope in self.scopes.iter().rev() {
            let last = all.clone().filter_map(|notes| notes.scopes.get(scope)).max();
            if let Some(at) = last
                && !found.scopes.contains_key(scope)
                && room.take(scope_bytes(scope))
            {
                found.scopes.insert(scope.clone(), *at);
            }
        }
        for key in self.reads.iter().rev() {
            let first = all.clone().filter_map(|notes| notes.reads.get(key)).min_by_key(|read| read.at);
            if let Some(read) = first
                && !found.reads.contains_key(key)
                && room.take(READ_BYTES)
            {
                found.reads.insert(*key, *read);
            }
        }
        for vm in self.heard.iter().rev() {
            let last = all.clone().filter_map(|notes| notes.heard.get(vm)).max_by_key(|heard| heard.at);
            if let Some(heard) = last
                && !found.heard.contains_key(vm)
                && room.take(HEARD_BYTES)
            {
                found.heard.insert(*vm, *heard);
            }
        }
        found
    }
}

fn push<K>(keys: &mut VecDeque<K>, key: K) {
    if keys.len() == RECENT_MAX {
        keys.pop_front();
    }
    keys.push_back(key);
}
