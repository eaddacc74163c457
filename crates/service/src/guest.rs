//! Guest listener: the HTTP/1.1 server that VMs poll.
//!
//! Every VM polls once a second. A poll identifies the caller, checks the request and writes bytes that are already
//! rendered. All other knowledge comes from a [`platform::Platform`].
//!
//! | file | content |
//! |---|---|
//! | this one | starts the workers, shuts down gracefully |
//! | `worker` | a thread with an epoll loop; with `slots`, `mailbox`, `listener` |
//! | `fast_path`, `head_cache` | plain polls, answered in place by a worker |
//! | `connection` | everything except plain polls, as a task |
//! | `exchange` | one request: caller, rate, rules, answer |
//! | `rules` | the order of checks |
//! | `head`, `body`, `target`, `conditional`, `prefer` | the parts of a request |
//! | `client` | who polls: `User-Agent` and api-version |
//! | `long_poll` | polls that wait for a change |
//! | `response` | the bytes of a response |
//! | `interception`, `faults` | requests that are recorded, or affected by faults |
//! | `admission`, `eviction_pool`, `rate` | connection limits, eviction order, rate limit |
//!
//! The server uses sockets and `httparse` instead of hyper for two reasons:
//!
//! - Clients expect the header order and spelling of Azure's service. Hyper sends names in lower case or in title case,
//!   never as `x-ms-request-id` beside `ETag`.
//! - An idle connection holds no buffer and no task. With hyper, ten thousand VMs would hold one each.
//!
//! Two paths serve requests with one set of rules. Workers are threads with an epoll loop each; a plain poll costs
//! three system calls. A request that has to wait is a task of the runtime. Both paths use `exchange`, and a connection
//! moves between them.
//!
//! Guests are not trusted: every size and wait has a limit ([`settings`]), ambiguous requests are refused, and no input
//! causes a panic. On shutdown the server stops listening, finishes requests that have begun with `Connection: close`,
//! and drops idle connections at once.

mod admission;
mod body;
pub mod caller;
pub mod client;
mod conditional;
mod connection;
mod eviction_pool;
mod exchange;
mod fast_path;
pub mod faults;
mod head;
mod head_cache;
pub mod interception;
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
use self::interception::Interception;
use self::listener::Listener;
use self::mailbox::Mailbox;
use self::platform::Platform;
use self::rate::RateLimit;
use self::settings::GuestSettings;
use self::stats::GuestStats;
use self::worker::Worker;
use crate::clock::Clock;

/// The HTTP server for guests. One server may have several listeners; they share its limits and counters.
pub struct GuestServer<P: Platform> {
    platform: Arc<P>,
    settings: GuestSettings,
    clock: Arc<dyn Clock>,
    stats: Arc<GuestStats>,
    rate_limit: Option<RateLimit>,
    admission: Arc<Admission>,
    interception: Arc<Interception>,
}

impl<P: Platform> GuestServer<P> {
    /// Creates a server that gets its answers from `platform`.
    pub fn new(platform: Arc<P>, settings: GuestSettings, clock: Arc<dyn Clock>) -> GuestServer<P> {
        let stats = Arc::new(GuestStats::default());
        GuestServer {
            platform,
            rate_limit: settings.rate_limit.map(RateLimit::new),
            admission: Admission::new(&settings.limits, Arc::clone(&stats)),
            settings,
            clock,
            stats,
            interception: Arc::default(),
        }
    }

    /// Records requests, and applies faults to them.
    pub fn with_interception(self, interception: Arc<Interception>) -> GuestServer<P> {
        GuestServer { interception, ..self }
    }

    /// The server's counters; they can be read at any time.
    pub fn stats(&self) -> Arc<GuestStats> {
        Arc::clone(&self.stats)
    }

    /// Starts to serve these listeners. The returned future runs until `shutdown` turns true or its sender is dropped.
    /// It resolves when the last connection has ended or the grace period is over. Dropping it closes the server at
    /// once.
    pub fn serve(
        self: &Arc<Self>,
        listeners: Vec<(TcpListener, ListenerIdentity)>,
        mut shutdown: watch::Receiver<bool>,
    ) -> io::Result<impl Future<Output = ()> + Send + use<P>> {
        let listeners = Listener::share(listeners)?;
        let mailboxes = (0..self.settings.threads())
            .map(|_| Mailbox::new().map(Arc::new))
            .collect::<io::Result<Vec<_>>>()?;
        let (abort, abort_receiver) = watch::channel(false);
        let (unfinished, mut finished) = mpsc::channel(1);
        let tasks = Tasks { shutdown: shutdown.clone(), abort: abort_receiver, unfinished };
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
            // A dropped sender means shutdown too.
            let _ = shutdown.wait_for(|closing| *closing).await;
            drop(open);
            // Nothing is ever sent: the channel closes when the last task drops its sender.
            if timeout(grace, finished.recv()).await.is_err() {
                tracing::warn!("closing connections that did not finish within the grace period");
                abort.send_replace(true);
                finished.recv().await;
            }
        })
    }
}

/// Tells the workers to close when dropped.
struct CloseOnDrop(Vec<Arc<Mailbox>>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.iter().for_each(|mailbox| mailbox.close());
    }
}

/// Whether an accept failed because of one connection only, so that the next accept may succeed.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    [ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted].contains(&error.kind())
}
