//! Times that are kept by the way: when the guests of a scope were last heard of, and that the service runs.

use jiff::{SignedDuration, Timestamp};
use notbefore_core::ScopeId;
use notbefore_store::{Key, Txn};

use super::Engine;
use crate::draft::Drafted;
use crate::plan::Plan;
use crate::records::{self, LastAt};
use crate::request::Answer;

/// For how long a request of a guest keeps its scope enabled.
pub const ENABLED_FOR: SignedDuration = SignedDuration::from_hours(24);
/// How old the stored time of a scope's last request may grow before it is stored again. A write an hour
/// and scope is nothing, and an hour in twenty-four nobody notices.
const HEARD_STORED_EVERY: SignedDuration = SignedDuration::from_hours(1);
/// How many scopes' last requests one transaction stores.
const HEARD_PER_TXN: usize = 90;

impl Engine {
    /// Whether a guest of the scope has asked within a day. The VM that stands in for a fleet is there to be
    /// tried out, so it counts as listening from the start.
    pub fn is_enabled(&self, scope: &ScopeId, now: Timestamp) -> bool {
        let first_run = self.state.scope(scope).is_some_and(|held| held.value.first_run);
        first_run || self.heard.get(scope).is_some_and(|at| now.duration_since(*at) < ENABLED_FOR)
    }

    pub(super) fn note_heard(&mut self, scope: ScopeId, at: Timestamp) {
        let newest = self.heard.get(&scope).map_or(at, |known| at.max(*known));
        self.heard.insert(scope.clone(), newest);
        if self.wants_storing(&scope) {
            self.heard_to_store.insert(scope);
        }
    }

    /// Whether the stored time of a scope's last request is too old, or there is none.
    pub(super) fn wants_storing(&self, scope: &ScopeId) -> bool {
        match (self.heard.get(scope), self.state.heard(scope)) {
            (Some(heard), Some(stored)) => heard.duration_since(stored) >= HEARD_STORED_EVERY,
            (Some(_), None) => self.state.scope(scope).is_some(),
            (None, _) => false,
        }
    }

    /// The times that are due to be stored: that we run, and which scopes have been heard of.
    pub(super) fn plan_times(&self, now: Timestamp) -> Plan {
        let alive = (Key::from(records::ALIVE), records::encode(&LastAt { at: now }));
        let heard = self.heard_to_store.iter().filter_map(|scope| {
            let at = *self.heard.get(scope)?;
            self.state.scope(scope)?;
            Some((records::heard(scope), records::encode(&LastAt { at })))
        });
        let mut txns = Vec::new();
        let mut puts = heard.peekable();
        while puts.peek().is_some() {
            let put = puts.by_ref().take(HEARD_PER_TXN).collect();
            txns.push(Txn { put, ..Txn::default() });
        }
        txns.push(Txn { put: vec![alive], ..Txn::default() });
        let drafted = Drafted { txns, ..Drafted::default() };
        Plan::Write { drafted, answer: Answer::Done, rest: None }
    }
}
