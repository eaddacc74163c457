//! The current connection for one kind of call, and which endpoint comes next.
//!
//! Endpoints are used round-robin: a connection stays in use until it fails, then the next endpoint is tried. A call that
//! is under way keeps its connection; only new calls move on.

use std::sync::{Arc, Mutex, PoisonError};

use crate::connection::Connection;

#[derive(Default)]
pub(crate) struct Lane {
    state: Mutex<State>,
    /// Held while connecting, so that one caller connects and the others wait.
    pub(crate) dialing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// The endpoint that is tried next.
    next: usize,
    /// How many rounds failed, and why the last one did.
    failures: u64,
    error: String,
}

/// What a lane has for a call.
pub(crate) enum Current {
    Connection(Arc<Connection>),
    /// None, after this many failed rounds.
    None {
        failures: u64,
    },
}

impl Lane {
    /// A lane that begins with the endpoint of this number.
    pub(crate) fn starting_at(endpoint: usize) -> Self {
        let state = State { next: endpoint, ..State::default() };
        Self { state: Mutex::new(state), ..Self::default() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn current(&self) -> Current {
        let mut state = self.state();
        state.connection = state.connection.take().filter(|connection| !connection.is_closed());
        match &state.connection {
            Some(connection) => Current::Connection(Arc::clone(connection)),
            None => Current::None { failures: state.failures },
        }
    }

    /// The number of the endpoint to try. The one after it comes next, even if the caller gives up.
    pub(crate) fn advance(&self, endpoints: usize) -> usize {
        let mut state = self.state();
        let endpoint = state.next % endpoints.max(1);
        state.next = endpoint + 1;
        endpoint
    }

    pub(crate) fn install(&self, connection: Arc<Connection>) {
        self.state().connection = Some(connection);
    }

    pub(crate) fn fail(&self, error: String) {
        let mut state = self.state();
        state.failures += 1;
        state.error = error;
    }

    pub(crate) fn last_error(&self) -> String {
        self.state().error.clone()
    }

    /// Uses this connection for no further call.
    pub(crate) fn retire(&self, id: u64) {
        let mut state = self.state();
        state.connection = state.connection.take().filter(|connection| connection.id != id);
    }
}
