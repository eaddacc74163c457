//! The guest door: the small HTTP/1.1 server that VMs poll.
//!
//! Every VM asks every second, so a poll is: find the caller, check the request, write bytes that are
//! already rendered. The door does that and nothing else; what it needs to know it asks of a
//! [`platform::Platform`].
//!
//! | file | what it does |
//! |---|---|
//! | this one | listens, admits, closes in good order |
//! | `connection` | one connection: reads, answers, waits |
//! | `exchange` | one request: caller, rate, rules, answer |
//! | `rules` | the order of checks |
//! | `head`, `body`, `target`, `conditional` | the parts of a request |
//! | `answer` | the bytes of an answer |
//! | `admission`, `rate` | how many connections, how many requests |
//!
//! It is built on sockets and `httparse` rather than on hyper for two reasons. Clients see the answer's
//! headers in the order and spelling of the service they were written for, and hyper sends names in lower
//! case or in title case, never as `x-ms-request-id` beside `ETag`. And an idle connection here holds no
//! buffer, where ten thousand VMs would otherwise hold one each for nothing.
//!
//! The bytes come from guests, who are not to be trusted: every size and wait has a limit
//! ([`settings`]), what can be read in two ways is refused, and no input leads to a panic. When the door is
//! told to close it stops listening, lets requests that have begun finish, tells their clients
//! `Connection: close`, and drops idle connections at once.

mod admission;
mod answer;
mod body;
pub mod caller;
mod conditional;
mod connection;
mod exchange;
mod head;
pub mod platform;
mod rate;
mod rules;
pub mod settings;
pub mod stats;
mod target;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::admission::Admission;
use self::caller::{Caller, ListenerIdentity};
use self::connection::Connection;
use self::platform::Platform;
use self::rate::RateLimit;
use self::settings::GuestSettings;
use self::stats::GuestStats;
use crate::clock::Clock;

/// How long to wait after a failed accept. Out of files is the usual cause, and lasts until some are closed:
/// trying again at once would only burn a processor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The door that guests call at. One door may have several listeners; they share its limits and counters.
pub struct GuestDoor<P: Platform> {
    platform: Arc<P>,
    settings: GuestSettings,
    clock: Arc<dyn Clock>,
    stats: Arc<GuestStats>,
    rate_limit: Option<RateLimit>,
    admission: Arc<Admission>,
}

impl<P: Platform> GuestDoor<P> {
    /// A door to this platform.
    pub fn new(platform: Arc<P>, settings: GuestSettings, clock: Arc<dyn Clock>) -> GuestDoor<P> {
        let stats = Arc::new(GuestStats::default());
        GuestDoor {
            platform,
            rate_limit: settings.rate_limit.map(RateLimit::new),
            admission: Admission::new(&settings.limits, Arc::clone(&stats)),
            settings,
            clock,
            stats,
        }
    }

    /// What the door has counted so far; may be kept and read at any time.
    pub fn stats(&self) -> Arc<GuestStats> {
        Arc::clone(&self.stats)
    }

    /// Serves everyone who connects to a listener, until `shutdown` turns true or its sender is gone. Returns
    /// when the last connection has ended, or the grace period has.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        identity: ListenerIdentity,
        mut shutdown: watch::Receiver<bool>,
    ) {
        let identity = Arc::new(identity);
        let for_connections = shutdown.clone();
        let mut connections = JoinSet::new();
        let mut is_failing = false;
        loop {
            tokio::select! {
                biased;
                () = told_to_close(&mut shutdown) => break,
                Some(ended) = connections.join_next(), if !connections.is_empty() => note_end(ended),
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        is_failing = false;
                        if let Some(connection) = self.connection(stream, &identity, &for_connections) {
                            connections.spawn(connection.run());
                        }
                    }
                    Err(error) if belongs_to_one_connection(&error) => {}
                    Err(error) => {
                        if !std::mem::replace(&mut is_failing, true) {
                            tracing::warn!(%error, "cannot accept connections; will keep trying");
                        }
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        drop(listener);
        let drained = timeout(self.settings.limits.shutdown_grace, async {
            while let Some(ended) = connections.join_next().await {
                note_end(ended);
            }
        });
        if drained.await.is_err() {
            tracing::warn!(open = connections.len(), "closing connections that did not finish in time");
            connections.shutdown().await;
        }
    }

    /// A connection, if there is a place for it; otherwise the socket is closed here.
    fn connection(
        self: &Arc<Self>,
        stream: TcpStream,
        identity: &Arc<ListenerIdentity>,
        shutdown: &watch::Receiver<bool>,
    ) -> Option<Connection<P>> {
        // A client that is gone already has no address, and needs no answer.
        let (source, local) = (stream.peer_addr().ok()?, stream.local_addr().ok()?);
        let mut caller = Caller::new(Arc::clone(identity), source, local);
        caller.is_proxy = self.platform.trusts(&caller);
        let permit = self.admission.admit(&caller)?;
        // Answers are written whole: waiting to fill a packet would only delay them. A socket that refuses
        // the option is slower, not wrong.
        let _ = stream.set_nodelay(true);
        Some(Connection {
            door: Arc::clone(self),
            stream,
            caller,
            shutdown: shutdown.clone(),
            buffer: Vec::new(),
            _permit: permit,
        })
    }
}

/// Resolves when the door is to close: it was told so, or nobody is left who could tell it.
async fn told_to_close(shutdown: &mut watch::Receiver<bool>) {
    let _ = shutdown.wait_for(|closing| *closing).await;
}

fn note_end(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection ended in a panic; the others go on");
    }
}

/// Whether an accept failed for its own connection's sake, so that the next one may well succeed.
fn belongs_to_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    [ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted].contains(&error.kind())
}
