//! Poll times per scope and the heartbeat of the service, written in the background.
//!
//! A scope's first poll is stored within a second, so that the scope stays enabled after a restart right after
//! it. Later polls are stored hourly. So a time from the store may be an hour too old, and counts an hour longer.

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

/// How long a poll keeps its scope enabled: a day, plus a minute, since polls of one scope are reported to the engine
/// once a minute.
pub const ENABLED_FOR: SignedDuration = SignedDuration::from_secs(24 * 3_600 + 60);
/// Age at which the stored poll time of a scope is written again. One write per hour and scope is negligible.
const POLLS_STORED_EVERY: SignedDuration = SignedDuration::from_hours(1);
/// How long a scope's first poll waits for others to be stored with it. The rest of the second is for the store.
const FIRST_POLL_STORED_AFTER: Duration = Duration::from_millis(500);
/// Scopes per transaction.
const POLLS_PER_TXN: usize = 90;
/// Limit on such transactions in flight, so that the first polls of a large fleet leave room for commands.
const POLL_WRITES_IN_FLIGHT_MAX: usize = 4;

/// The last poll of a scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastPoll {
    pub(super) at: Timestamp,
    /// Read from the store, so the actual time may be up to [`POLLS_STORED_EVERY`] later.
    pub(super) was_stored: bool,
}

impl LastPoll {
    fn is_fresh(self, now: Timestamp) -> bool {
        let allowance = if self.was_stored { POLLS_STORED_EVERY } else { SignedDuration::ZERO };
        now.duration_since(self.at) < ENABLED_FOR + allowance
    }
}

impl Engine {
    /// Whether a guest of the scope polled within a day. The first-run scope is always enabled: it exists for trying
    /// things out. A new leader of a cluster takes every scope for enabled until it knows the polls of all nodes: a
    /// notice without need costs time, a missing one costs work.
    pub fn is_enabled(&self, scope: &ScopeId, now: Timestamp) -> bool {
        let first_run = self.state.scope(scope).is_some_and(|held| held.value.first_run);
        // During a hold, a clock jump must not disable a scope.
        let without_jump = now.checked_sub(self.clock_jumped_by).unwrap_or(now);
        let is_fresh = |poll: &LastPoll| poll.is_fresh(now) || poll.is_fresh(without_jump);
        first_run || self.waits_for_polls || self.last_polls.get(scope).is_some_and(is_fresh)
    }

    pub(super) fn record_poll(&mut self, scope: ScopeId, at: Timestamp, now: Timestamp) {
        let newest = LastPoll { at, was_stored: false };
        let newest = self.last_polls.get(&scope).filter(|known| known.at > at).copied().unwrap_or(newest);
        self.last_polls.insert(scope.clone(), newest);
        if self.role.leads() && self.is_poll_unstored(&scope) {
            if self.state.last_polled(&scope).is_none() {
                self.store_polls_at.get_or_insert(after(now, FIRST_POLL_STORED_AFTER));
            }
            self.polls_to_store.insert(scope);
        }
    }

    /// Whether the stored poll time is missing or too old.
    pub(super) fn is_poll_unstored(&self, scope: &ScopeId) -> bool {
        match (self.last_polls.get(scope), self.state.last_polled(scope)) {
            (Some(poll), Some(stored)) => poll.at.duration_since(stored) >= POLLS_STORED_EVERY,
            (Some(_), None) => self.state.scope(scope).is_some(),
            (None, _) => false,
        }
    }

    /// Stores missing and old poll times, up to the limit in flight.
    pub(super) fn store_polls(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        self.store_polls_at = None;
        // Times from an untrusted clock are not stored, and a follower stores nothing.
        if self.is_clock_held() || !self.role.leads() {
            return;
        }
        while self.poll_writes_in_flight < POLL_WRITES_IN_FLIGHT_MAX {
            let mut scopes = Vec::new();
            while scopes.len() < POLLS_PER_TXN
                && let Some(scope) = self.polls_to_store.pop_first()
            {
                // Removed scopes need no time.
                scopes.extend(Some(scope).filter(|scope| self.state.scope(scope).is_some()));
            }
            if scopes.is_empty() {
                return;
            }
            self.poll_writes_in_flight += 1;
            self.spawn(Work::StorePolls(scopes), Actor::Service, now, effects);
        }
    }

    /// A transaction is done; there may be more to store.
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

    /// Stores the heartbeat.
    pub(super) fn plan_alive(&self, now: Timestamp) -> Plan {
        let alive = Alive { at: now, boot: self.state.boot().cloned() };
        written(vec![(Key::from(records::ALIVE), records::encode(&alive))])
    }

    /// Stores the poll times of scopes that still exist.
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
