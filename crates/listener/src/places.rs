//! A listener's connections and streams at work: each has a place, and is told when another takes it.
//!
//! Who gets one is decided by [`crate::admission`] and [`crate::shares`]. A connection waits for [`Place::taken`] beside
//! all else that it does, and ends when that resolves; its place is given back when it is dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::admission::{Admission, Limits, Source};
use crate::by_source::Id;
use crate::shares::{Excess, ShareLimits, Shares};

/// The places of a listener.
#[derive(Debug)]
pub struct Places(Mutex<State>);

#[derive(Debug)]
struct State {
    connections: Admission,
    streams: Shares,
    /// Tells the holder of each place that it was taken.
    holders: HashMap<Id, Arc<Notify>>,
    next: Id,
}

/// A place of a connection or a stream.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    id: Id,
    is_taken: Arc<Notify>,
}

impl Places {
    /// Places for so many connections and streams.
    pub fn new(connections: Limits, streams: ShareLimits) -> Arc<Self> {
        let (connections, streams) = (Admission::new(connections), Shares::new(streams));
        Arc::new(Self(Mutex::new(State { connections, streams, holders: HashMap::new(), next: 0 })))
    }

    /// A place for a connection, and whether another was told to close for it.
    pub fn admit(self: &Arc<Self>, source: Source) -> (Place, bool) {
        let mut state = self.lock();
        let (id, is_taken) = state.new_holder();
        let closed = state.connections.admit(id, source);
        state.tell(closed);
        (Place { places: Arc::clone(self), id, is_taken }, closed.is_some())
    }

    /// A place for a stream of a token.
    pub fn stream(self: &Arc<Self>, token: &str) -> Result<Place, Excess> {
        let mut state = self.lock();
        let id = state.next;
        let closed = state.streams.take(id, token)?;
        let (id, is_taken) = state.new_holder();
        state.tell(closed);
        Ok(Place { places: Arc::clone(self), id, is_taken })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every step leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new_holder(&mut self) -> (Id, Arc<Notify>) {
        let (id, is_taken) = (self.next, Arc::new(Notify::new()));
        self.next += 1;
        self.holders.insert(id, Arc::clone(&is_taken));
        (id, is_taken)
    }

    fn tell(&mut self, closed: Option<Id>) {
        if let Some(holder) = closed.and_then(|closed| self.holders.remove(&closed)) {
            // It is kept for a holder that does not wait yet.
            holder.notify_one();
        }
    }
}

impl Place {
    /// Resolves when another has taken the place.
    pub async fn taken(&self) {
        self.is_taken.notified().await;
    }

    /// A request of this connection bore a valid token, which it is counted with from now on.
    pub fn prove(&self, token: &str) -> Result<(), Excess> {
        let mut state = self.places.lock();
        let closed = state.connections.prove(self.id, token)?;
        state.tell(closed);
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.places.lock();
        state.connections.remove(self.id);
        state.streams.remove(self.id);
        state.holders.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Arc<Places> {
        let limits = Limits { connections: 34, per_token: 1 };
        Places::new(limits, ShareLimits { per_token: 1, in_all: 1 })
    }

    fn source() -> Source {
        Source::of([127, 0, 0, 1].into(), false)
    }

    #[tokio::test]
    async fn the_connection_whose_place_is_taken_is_told() {
        let places = places();
        let held: Vec<_> = (0..34).map(|_| places.admit(source())).collect();
        assert!(held.iter().all(|(_, closed)| !closed));
        let (_newcomer, closed) = places.admit(source());
        assert!(closed);
        held[0].0.taken().await;
        assert_eq!(places.lock().holders.len(), 34);
        drop(held);
        assert_eq!(places.lock().holders.len(), 1);
    }

    #[tokio::test]
    async fn places_are_given_back() {
        let places = places();
        let stream = places.stream("a").unwrap();
        assert_eq!(places.stream("a").unwrap_err(), Excess::Token(1));
        assert_eq!(places.stream("b").unwrap_err(), Excess::All(1));
        let (first, _) = places.admit(source());
        let (second, _) = places.admit(source());
        assert_eq!((first.prove("a"), second.prove("a")), (Ok(()), Err(Excess::Token(1))));
        drop((first, stream));
        assert_eq!(second.prove("a"), Ok(()));
        assert!(places.stream("b").is_ok());
    }
}
