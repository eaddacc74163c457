//! Slots for connections and streams, with notification on eviction.
//!
//! [`crate::admission`] and [`crate::token_quotas`] decide who gets a slot. A connection awaits
//! [`AdmissionSlot::evicted`] beside its other work and ends when that resolves. Dropping a slot frees it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::admission::{Admission, Limits, Source};
use crate::by_source::Id;
use crate::token_quotas::{QuotaExceeded, TokenQuotaLimits, TokenQuotas};

/// The slots of a listener.
#[derive(Debug)]
pub struct AdmissionSlots(Mutex<State>);

#[derive(Debug)]
struct State {
    connections: Admission,
    streams: TokenQuotas,
    /// Notifies the holder of each slot when it is evicted.
    holders: HashMap<Id, Arc<Notify>>,
    next: Id,
}

/// The slot of a connection or a stream.
#[derive(Debug)]
pub struct AdmissionSlot {
    slots: Arc<AdmissionSlots>,
    id: Id,
    evicted: Arc<Notify>,
    is_authenticated: AtomicBool,
}

impl AdmissionSlots {
    /// Slots with these limits.
    pub fn new(connections: Limits, streams: TokenQuotaLimits) -> Arc<Self> {
        let (connections, streams) = (Admission::new(connections), TokenQuotas::new(streams));
        Arc::new(Self(Mutex::new(State { connections, streams, holders: HashMap::new(), next: 0 })))
    }

    /// Most connections.
    pub fn connections_max(&self) -> usize {
        self.lock().connections.limits().connections
    }

    /// A slot for a connection, and whether another connection was evicted for it.
    pub fn admit(self: &Arc<Self>, source: Source) -> (AdmissionSlot, bool) {
        let mut state = self.lock();
        let (id, evicted) = state.new_slot();
        let closed = state.connections.admit(id, source);
        state.notify(closed);
        (self.slot(id, evicted), closed.is_some())
    }

    /// A slot for a stream of a token.
    pub fn stream(self: &Arc<Self>, token: &str) -> Result<AdmissionSlot, QuotaExceeded> {
        let mut state = self.lock();
        let id = state.next;
        let closed = state.streams.acquire(id, token)?;
        let (id, evicted) = state.new_slot();
        state.notify(closed);
        Ok(self.slot(id, evicted))
    }

    fn slot(self: &Arc<Self>, id: Id, evicted: Arc<Notify>) -> AdmissionSlot {
        AdmissionSlot { slots: Arc::clone(self), id, evicted, is_authenticated: AtomicBool::new(false) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A poisoned lock is safe: every step leaves the state consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new_slot(&mut self) -> (Id, Arc<Notify>) {
        let (id, evicted) = (self.next, Arc::new(Notify::new()));
        self.next += 1;
        self.holders.insert(id, Arc::clone(&evicted));
        (id, evicted)
    }

    fn notify(&mut self, closed: Option<Id>) {
        if let Some(holder) = closed.and_then(|closed| self.holders.remove(&closed)) {
            // `notify_one` stores a permit for a holder that does not wait yet.
            holder.notify_one();
        }
    }
}

impl AdmissionSlot {
    /// Resolves when the slot is evicted.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Counts this connection toward a valid token from now on.
    pub fn authenticate(&self, token: &str) -> Result<(), QuotaExceeded> {
        let mut state = self.slots.lock();
        let closed = state.connections.authenticate(self.id, token)?;
        state.notify(closed);
        self.is_authenticated.store(true, Relaxed);
        Ok(())
    }

    /// Whether this connection counts toward a valid token.
    pub fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Relaxed)
    }
}

impl Drop for AdmissionSlot {
    fn drop(&mut self) {
        let mut state = self.slots.lock();
        state.connections.remove(self.id);
        state.streams.remove(self.id);
        state.holders.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots() -> Arc<AdmissionSlots> {
        let limits = Limits { connections: 34, per_token: 1 };
        AdmissionSlots::new(limits, TokenQuotaLimits { per_token: 1, total: 1 })
    }

    fn source() -> Source {
        Source::of([127, 0, 0, 1].into(), false)
    }

    #[tokio::test]
    async fn evicted_connection_is_notified() {
        let slots = slots();
        let held: Vec<_> = (0..34).map(|_| slots.admit(source())).collect();
        assert!(held.iter().all(|(_, closed)| !closed));
        let (_newcomer, closed) = slots.admit(source());
        assert!(closed);
        held[0].0.evicted().await;
        assert_eq!(slots.lock().holders.len(), 34);
        drop(held);
        assert_eq!(slots.lock().holders.len(), 1);
    }

    #[tokio::test]
    async fn dropped_slots_are_released() {
        let slots = slots();
        let stream = slots.stream("a").unwrap();
        assert_eq!(slots.stream("a").unwrap_err(), QuotaExceeded::Token(1));
        assert_eq!(slots.stream("b").unwrap_err(), QuotaExceeded::All(1));
        let (first, _) = slots.admit(source());
        let (second, _) = slots.admit(source());
        assert_eq!(
            (first.authenticate("a"), second.authenticate("a")),
            (Ok(()), Err(QuotaExceeded::Token(1)))
        );
        drop((first, stream));
        assert_eq!(second.authenticate("a"), Ok(()));
        assert!(slots.stream("b").is_ok());
    }
}
