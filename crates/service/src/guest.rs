//! The guest listener: the small HTTP/1.1 server that VMs poll.
//!
//! Every VM asks every second, so a poll is: find the caller, check the request, write bytes that are
//! already rendered. The server does that and nothing else; what it needs to know it asks of a
//! [`platform::Platform`].
//!
//! | file | what it does |
//! |---|---|
//! | this one | starts the workers, closes in good order |
//! | `worker` | a thread that waits for many connections; with `slots`, `mailbox`, `listener` |
//! | `fast_path`, `head_cache` | plain polls, answered in place by a worker |
//! | `connection` | what is more than a plain poll, as a task |
//! | `exchange` | one request: caller, rate, rules, answer |
//! | `rules` | the order of checks |
//! | `head`, `body`, `target`, `conditional`, `prefer` | the parts of a request |
//! | `long_poll` | polls that wait for news |
//! | `response` | the bytes of a response |
//! | `admission`, `eviction_pool`, `rate` | how many connections, which go first, how many requests |
//!
//! It is built on sockets and `httparse` rather than on hyper for two reasons. Clients see the answer's
//! headers in the order and spelling of the service they were written for, and hyper sends names in lower
//! case or in title case, never as `x-ms-request-id` beside `ETag`. And an idle connection here holds no
//! buffer and no task, where ten thousand VMs would otherwise hold one each for nothing.
//!
//! There are two ways through the server and one set of rules. Workers are threads of its own with an epoll
//! loop each: a plain poll costs the system calls that it needs and little else. Whatever takes waiting is a task
//! of the runtime, which is good at that. Both judge a request by `exchange`, and a connection goes back and forth
//! between them.
//!
//! The bytes come from guests, who are not to be trusted: every size and wait has a limit
//! ([`settings`]), what can be read in two ways is refused, and no input leads to a panic. When the server is
//! told to close it stops listening, lets requests that have begun finish, tells their clients
//! `Connection: close`, and drops idle connections at once.

mod admission;
mod body;
pub mod caller;
mod conditional;
mod connection;
mod eviction_pool;
mod exchange;
mod fast_path;
mod head;
mod head_cache;
mod listener;
mod long_poll;
mod mailbox;
pub mod platform;
mod prefer;
pub mod rate;
mod response;
mod rules;
pub mod settings;
mod slots;
pub mod stats;
mod target;
mod worker;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::thread;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use self::admission::Admission;
use self::caller::ListenerIdentity;
use self::connection::Tasks;
use self::listener::Listener;
use self::mailbox::Mailbox;
use self::platform::Platform;
use self::rate::RateLimit;
use self::settings::GuestSettings;
use self::stats::GuestStats;
use self::worker::Worker;
use crate::clock::Clock;

/// The server that guests call at. One server may have several listeners; they share its limits and counters.
pub struct GuestServer<P: Platform> {
    platform: Arc<P>,
    settings: GuestSettings,
    clock: Arc<dyn Clock>,
    stats: Arc<GuestStats>,
    rate_limit: Option<RateLimit>,
    admission: Arc<Admission>,
}

impl<P: Platform> GuestServer<P> {
    /// A server to this platform.
    pub fn new(platform: Arc<P>, settings: GuestSettings, clock: Arc<dyn Clock>) -> GuestServer<P> {
        let stats = Arc::new(GuestStats::default());
        GuestServer {
            platform,
            rate_limit: settings.rate_limit.map(RateLimit::new),
            admission: Admission::new(&settings.limits, Arc::clone(&stats)),
            settings,
            clock,
            stats,
        }
    }

    /// What the server has counted so far; may be kept and read at any time.
    pub fn stats(&self) -> Arc<GuestStats> {
        Arc::clone(&self.stats)
    }

    /// Starts to serve everyone who connects to one of these listeners. What it returns goes on until `shutdown`
    /// turns true or its sender is gone, and resolves when the last connection has ended, or the grace period has.
    /// Dropping it closes the server at once.
    pub fn serve(
        self: &Arc<Self>,
        listeners: Vec<(TcpListener, ListenerIdentity)>,
        mut shutdown: watch::Receiver<bool>,
    ) -> io::Result<impl Future<Output = ()> + Send + use<P>> {
        let listeners = Listener::share(listeners)?;
        let mailboxes = (0..self.settings.threads())
            .map(|_| Mailbox::new().map(Arc::new))
            .collect::<io::Result<Vec<_>>>()?;
        let (cut, is_cut) = watch::channel(false);
        let (unfinished, mut finished) = mpsc::channel(1);
        let tasks = Tasks { shutdown: shutdown.clone(), cut: is_cut, unfinished };
        let open = CloseOnDrop(mailboxes);
        for number in 0..open.0.len() {
            let worker = Worker::new(Arc::clone(self), listeners.clone(), &open.0, number, tasks.clone())?;
            let unfinished = tasks.unfinished.clone();
            thread::Builder::new().name(format!("guest-{number}")).spawn(move || {
                worker.run();
                drop(unfinished);
            })?;
        }
        drop((listeners, tasks));
        let grace = self.settings.limits.shutdown_grace;
        Ok(async move {
            // A sender that is gone says the same.
            let _ = shutdown.wait_for(|closing| *closing).await;
            drop(open);
            // Nothing is ever sent: it ends when nobody is left who could.
            if timeout(grace, finished.recv()).await.is_err() {
                tracing::warn!("closing connections that did not finish in time");
                cut.send_replace(true);
                finished.recv().await;
            }
        })
    }
}

/// The workers of an open server; dropped, they close.
struct CloseOnDrop(Vec<Arc<Mailbox>>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.iter().for_each(|mailbox| mailbox.close());
    }
}

/// Whether an accept failed for its own connection's sake, so that the next one may well succeed.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    [ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted].contains(&error.kind())
}
