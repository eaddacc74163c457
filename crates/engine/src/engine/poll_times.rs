//! Times that are kept by the way: when the guests of a scope were last heard of, and that the service runs.
//!
//! A scope's first request is stored within a second: a restart right after it must not take the scope for one
//! that nobody listens in. Later ones are stored hourly, so a time that was read from the store may be an hour
//! older than the truth, and counts an hour longer.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::time::after;
use notbefore_core::{Actor, ScopeId};
use notbefore_store::{Key, Txn};

use super::{Effect, Engine, RETRY_AFTER, Work};
use crate::draft::DraftedTxns;
use crate::plan::Plan;
use crate::records::{self, Alive, LastAt};
use crate::request::Answer;

/// For how long a request of a guest keeps its scope enabled: a day, and the minute by which the engine may hear of a
/// request late, since polls of one scope leave word once a minute.
pub const ENABLED_FOR: SignedDuration = SignedDuration::from_secs(24 * 3_600 + 60);
/// How old the stored time of a scope's last request may grow before it is stored again. A write an hour
/// and scope is nothing.
const POLLS_STORED_EVERY: SignedDuration = SignedDuration::from_hours(1);
/// How long a scope's first request waits for others to be stored with it. The rest of the second is the store's.
const FIRST_POLL_STORED_AFTER: Duration = Duration::from_millis(500);
/// How many scopes' last requests one transaction stores.
const POLLS_PER_TXN: usize = 90;
/// How many such transactions are under way at a time, so that a large fleet that polls for the first time leaves
/// room for commands.
const POLL_WRITES_IN_FLIGHT_MAX: usize = 4;

/// When a guest of a scope was last heard of.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastPoll {
    pub(super) at: Timestamp,
    /// Whether that was read from the store, and may be as old as the store lets it grow.
    pub(super) was_stored: bool,
}

impl LastPoll {
    fn is_fresh(self, now: Timestamp) -> bool {
        let allowance = if self.was_stored { POLLS_STORED_EVERY } else { SignedDuration::ZERO };
        now.duration_since(self.at) < ENABLED_FOR + allowance
    }
}

impl Engine {
    /// Whether a guest of the scope has asked within a day. The VM that stands in for a fleet is there to be
    /// tried out, so it counts as listening from the start.
    pub fn is_enabled(&self, scope: &ScopeId, now: Timestamp) -> bool {
        let first_run = self.state.scope(scope).is_some_and(|held| held.value.first_run);
        // While the clock is not trusted, a jump of it does not make a scope one that nobody listens in.
        let without_jump = now.checked_sub(self.clock_jumped_by).unwrap_or(now);
        let is_fresh = |poll: &LastPoll| poll.is_fresh(now) || poll.is_fresh(without_jump);
        first_run || self.last_polls.get(scope).is_some_and(is_fresh)
    }

    pub(super) fn record_poll(&mut self, scope: ScopeId, at: Timestamp, now: Timestamp) {
        let newest = LastPoll { at, was_stored: false };
        let newest = self.last_polls.get(&scope).filter(|known| known.at > at).copied().unwrap_or(newest);
        self.last_polls.insert(scope.clone(), newest);
        if self.is_poll_unstored(&scope) {
            if self.state.last_polled(&scope).is_none() {
                self.store_polls_at.get_or_insert(after(now, FIRST_POLL_STORED_AFTER));
            }
            self.polls_to_store.insert(scope);
        }
    }

    /// Whether the stored time of a scope's last request is too old, or there is none.
    fn is_poll_unstored(&self, scope: &ScopeId) -> bool {
        match (self.last_polls.get(scope), self.state.last_polled(scope)) {
            (Some(poll), Some(stored)) => poll.at.duration_since(stored) >= POLLS_STORED_EVERY,
            (Some(_), None) => self.state.scope(scope).is_some(),
            (None, _) => false,
        }
    }

    /// Stores when scopes were heard of whose time is not stored or too old, as many at a time as there may be.
    pub(super) fn store_polls(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        self.store_polls_at = None;
        // What a clock says that is not trusted is not stored.
        if self.is_clock_held() {
            return;
        }
        while self.poll_writes_in_flight < POLL_WRITES_IN_FLIGHT_MAX {
            let mut scopes = Vec::new();
            while scopes.len() < POLLS_PER_TXN
                && let Some(scope) = self.polls_to_store.pop_first()
            {
                // One that is gone by now needs no time.
                scopes.extend(Some(scope).filter(|scope| self.state.scope(scope).is_some()));
            }
            if scopes.is_empty() {
                return;
            }
            self.poll_writes_in_flight += 1;
            self.spawn(Work::StorePolls(scopes), Actor::Service, now, effects);
        }
    }

    /// A transaction is through; there may be more to store.
    pub(super) fn on_polls_stored(
        &mut self,
        scopes: Vec<ScopeId>,
        is_durable: bool,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        self.poll_writes_in_flight -= 1;
        if is_durable {
            self.store_polls(now, effects);
        } else {
            self.polls_to_store.extend(scopes);
            self.store_polls_at = Some(after(now, RETRY_AFTER));
        }
    }

    /// Stores that we run.
    pub(super) fn plan_alive(&self, now: Timestamp) -> Plan {
        let alive = Alive { at: now, boot: self.state.boot().cloned() };
        written(vec![(Key::from(records::ALIVE), records::encode(&alive))])
    }

    /// Stores when scopes were heard of, those that are still there.
    pub(super) fn plan_polls(&self, scopes: &[ScopeId]) -> Plan {
        let heard = scopes.iter().filter_map(|scope| {
            let at = self.last_polls.get(scope)?.at;
            self.state.scope(scope)?;
            Some((records::heard(scope), records::encode(&LastAt { at })))
        });
        match heard.collect::<Vec<_>>() {
            none if none.is_empty() => Plan::Settled(Answer::Done),
            put => written(put),
        }
    }
}

fn written(put: Vec<(Key, bytes::Bytes)>) -> Plan {
    let drafted = DraftedTxns { txns: vec![Txn { put, ..Txn::default() }], ..DraftedTxns::default() };
    Plan::Write { drafted, answer: Answer::Done, rest: None }
}
