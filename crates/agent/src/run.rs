//! The agent's loop: one thread that waits for the next thing to happen and hands it to the `Agent` (`driver.rs`).
//!
//! What takes time runs beside the loop and comes back to it: polls ([`Watch`]), steps, approvals. Finding the platform
//! (`platform.rs`) is beside it, too: an agent that comes up after a reboot puts the VM back although the endpoint is not
//! there yet.

use std::future::pending;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use notbefore_client::clock::Clock;
use notbefore_client::document::EventId;
use notbefore_client::identity::{Identity, Name};
use notbefore_client::watch::{Update, Watch};
use tokio::sync::mpsc;

use crate::config::{Config, Sources};
use crate::driver::{Agent, REDISCOVER_AFTER};
use crate::hooks::Ended;
use crate::journal::{Found, Journal, OpenError};
use crate::machine::io::ApprovalAnswer;
use crate::overview;
use crate::platform::{self, Platform};
use crate::signals::{self, ServeError, StatusBoard};
use crate::systemd::{self, ServiceState};
use crate::vm_id::VmId;

/// What the agent can be told while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// End, in order: what runs is stopped, and the next agent goes on with it.
    Stop,
    /// Read the rules anew, for events to come.
    Reload,
}

/// Why the agent does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There can be no journal.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// There can be no signals.
    #[error(transparent)]
    Signals(#[from] ServeError),
}

/// Runs the agent until it is told to stop. `ready` hears where the signals are served, once they are. The configuration is
/// `sources`' own; they are asked again when it is to be read anew.
pub async fn run(
    config: Config,
    sources: Sources,
    mut orders: mpsc::Receiver<Order>,
    ready: impl FnOnce(Option<SocketAddr>),
) -> Result<(), RunError> {
    let clock = Clock::start();
    let board = StatusBoard::new(clock, config.dry_run);
    let opened = match config.dry_run {
        // A dry run leaves no trace, and takes no part in what a real one remembers.
        true => None,
        false => Some(Journal::open(&config.state, &VmId::detect(), clock.now().wall)?),
    };
    // Whoever asks the moment after a restart is told what the journal says.
    if let Some((_, Found::State(before))) = &opened {
        board.handles(overview::of(before));
    }
    let served = match config.listen {
        Some(address) => Some(signals::serve(address, board.clone()).await?),
        None => None,
    };
    tracing::info!(
        rules = config.rules.len(),
        file = %config.file.display(),
        dry_run = config.dry_run,
        "notbefore agent {} runs",
        env!("CARGO_PKG_VERSION")
    );
    let (mut agent, mut ends, mut answers) = Agent::new(config, sources, clock, board.clone());
    agent.begin(opened).await;
    ready(served);
    systemd::notify(ServiceState::Ready);
    let discovery = platform::discovery(agent.config());
    let look = |agent: &Agent| {
        // What is followed is asked by its watch, at the pace that one VM may have.
        let mut discovery = discovery.clone();
        discovery.besides = agent.client().map(|client| client.endpoint().clone());
        Some(Box::pin(platform::find(discovery, agent.config(), board.clone())) as Pin<Box<_>>)
    };
    let mut search: Pending<Platform> = look(&agent);
    let mut watch: Option<Watch> = None;
    let mut naming: Pending<Identity> = None;
    loop {
        let due = agent.due();
        let wake = tokio::select! {
            biased;
            order = orders.recv() => Wake::Order(order.unwrap_or(Order::Stop)),
            // At most one a second, and before ends, of which a thousand events have many: an event of this VM may be in it.
            update = next(&mut watch) => Wake::Update(update),
            Some(ended) = ends.recv() => Wake::Ended(ended),
            Some((event, answer)) = answers.recv() => Wake::Answered(event, answer),
            () = until(clock, due) => Wake::Due,
            platform = outcome(&mut search) => Wake::Found(platform),
            me = outcome(&mut naming) => Wake::Named(me),
        };
        match wake {
            Wake::Order(Order::Stop) => break,
            Wake::Order(Order::Reload) => agent.reload().await,
            Wake::Ended(ended) => agent.ended(ended).await,
            Wake::Answered(event, answer) => agent.answered(event, answer).await,
            Wake::Due => agent.run_due().await,
            Wake::Update(update) => {
                agent.update(update).await;
                match agent.should_rediscover() {
                    true if search.is_none() => {
                        tracing::warn!(
                            "the platform has been silent for {REDISCOVER_AFTER:?}: it is looked for anew"
                        );
                        search = look(&agent);
                    }
                    true => {}
                    false => search = None,
                }
            }
            Wake::Found(Platform { client, reading, name }) => {
                search = None;
                naming = match name {
                    Name::Known(me) => {
                        agent.set_identity(me).await;
                        None
                    }
                    Name::Awaited(naming) => Some(naming),
                };
                agent.follow(&client);
                watch = Some(Watch::after(client, reading));
            }
            Wake::Named(me) => {
                naming = None;
                agent.set_identity(me).await;
            }
        }
        agent.update_status();
    }
    tracing::info!("stopping: steps that run are ended, the next agent goes on with them");
    systemd::notify(ServiceState::Stopping);
    agent.stop().await;
    Ok(())
}

enum Wake {
    Order(Order),
    Ended(Ended),
    Answered(EventId, ApprovalAnswer),
    Due,
    Update(Update),
    Found(Platform),
    Named(Identity),
}

/// Waits until a tick; without one, for ever.
pub(crate) async fn until(clock: Clock, due: Option<Duration>) {
    match due {
        Some(due) => clock.until(due).await,
        None => pending().await,
    }
}

async fn next(watch: &mut Option<Watch>) -> Update {
    match watch {
        Some(watch) => watch.next().await,
        None => pending().await,
    }
}

/// Something under way beside the loop, or nothing.
type Pending<T> = Option<Pin<Box<dyn Future<Output = T>>>>;

async fn outcome<T>(under_way: &mut Pending<T>) -> T {
    match under_way {
        Some(under_way) => under_way.await,
        None => pending().await,
    }
}
