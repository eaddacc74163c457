//! The agent's event loop: one task waits for the next input and passes it to the `Agent` (`driver.rs`).
//!
//! Slow work runs in other tasks and reports back to the loop: polls ([`Watch`]), steps, approvals and endpoint
//! discovery (`platform.rs`). Discovery does not block the loop, so after a reboot the agent restores the VM before
//! the endpoint is reachable.

use std::future::pending;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use notbefore_client::clock::Clock;
use notbefore_client::document::EventId;
use notbefore_client::identity::{Identity, Name};
use notbefore_client::watch::{Update, Watch};
use tokio::sync::mpsc;

use crate::check;
use crate::config::{Config, Sources};
use crate::control::{self, Command, Listener};
use crate::driver::{Agent, REDISCOVER_AFTER};
use crate::hooks::Ended;
use crate::journal::{Found, Journal, OpenError};
use crate::machine::io::ApprovalAnswer;
use crate::overview;
use crate::platform::{self, Platform};
use crate::signals::{self, ServeError, StatusBoard};
use crate::systemd::{self, ServiceState};
use crate::vm_id::VmId;

/// A command from the service manager or a signal handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Shut down. Running steps are stopped; the next agent process resumes them from the journal.
    Stop,
    /// Reload the rules. They apply to future events.
    Reload,
}

/// Why the agent cannot start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Journal(#[from] OpenError),
    #[error(transparent)]
    Signals(#[from] ServeError),
}

/// Runs the agent until [`Order::Stop`]. Calls `ready` with the status server's address once it listens. `config` was
/// loaded from `sources`; a reload reads them again.
pub async fn run(
    config: Config,
    sources: Sources,
    mut orders: mpsc::Receiver<Order>,
    ready: impl FnOnce(Option<SocketAddr>),
) -> Result<(), RunError> {
    let clock = Clock::start();
    let board = StatusBoard::new(clock, config.dry_run);
    let opened = match config.dry_run {
        // A dry run neither reads nor writes the journal.
        true => None,
        false => Some(Journal::open(&config.state, &VmId::detect(), clock.now().wall)?),
    };
    // Publish the journal's events before the status server starts, so that the first request already sees them.
    if let Some((_, Found::State(before))) = &opened {
        board.handles(overview::of(before), None);
    }
    let served = match config.listen {
        Some(address) => Some(signals::serve(address, board.clone()).await?),
        None => None,
    };
    tracing::info!(
        rules = config.rules.len(),
        file = %config.file.display(),
        dry_run = config.dry_run,
        "notbefore agent {} is running",
        env!("CARGO_PKG_VERSION")
    );
    if config.rules.is_empty() {
        tracing::warn!("{}", check::NO_RULES);
    }
    let mut commands = opened.as_ref().and_then(|(journal, _)| take_commands(journal));
    let (mut agent, mut ends, mut answers) = Agent::new(config, sources, clock, board.clone());
    agent.check_programs();
    agent.begin(opened).await;
    ready(served);
    systemd::notify(ServiceState::Ready);
    let discovery = platform::discovery(agent.config());
    let look = |agent: &Agent| {
        // The watch already polls the current endpoint, at the rate allowed per VM; discovery skips it.
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
            command = receive(&mut commands) => Wake::Command(command),
            // Before `ends`: updates come at most once a second, ends may come by the hundred, and an update may hold
            // an event of this VM.
            update = next(&mut watch) => Wake::Update(update),
            Some(ended) = ends.recv() => Wake::Ended(ended),
            Some((event, answer)) = answers.recv() => Wake::Answered(event, answer),
            () = until(clock, due) => Wake::Due,
            platform = outcome(&mut search) => Wake::Found(platform),
            me = outcome(&mut naming) => Wake::Named(me),
        };
        match wake {
            Wake::Order(Order::Stop) => break,
            Wake::Order(Order::Reload) => drop(agent.reload().await),
            Wake::Command((request, answers)) => agent.obey(request, &answers).await,
            Wake::Ended(ended) => agent.ended(ended).await,
            Wake::Answered(event, answer) => agent.answered(event, answer).await,
            Wake::Due => agent.run_due().await,
            Wake::Update(update) => {
                agent.update(update).await;
                match agent.should_rediscover() {
                    true if search.is_none() => {
                        tracing::warn!(
                            "no answer from the platform for {REDISCOVER_AFTER:?}: discovering the endpoint again"
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
    tracing::info!("stopping: running steps are stopped, the next agent resumes them");
    systemd::notify(ServiceState::Stopping);
    agent.stop().await;
    Ok(())
}

/// Starts to take commands. Without them the agent works as well; signals still stop and reload it.
fn take_commands(journal: &Journal) -> Option<mpsc::Receiver<Command>> {
    match Listener::open(journal) {
        Ok(listener) => {
            let (commands, received) = mpsc::channel(1);
            tokio::spawn(control::serve(listener, commands));
            Some(received)
        }
        Err(error) => {
            tracing::warn!("cannot take commands ('notbefore agent reload' and 'retry'): {error}");
            None
        }
    }
}

enum Wake {
    Order(Order),
    Command(Command),
    Ended(Ended),
    Answered(EventId, ApprovalAnswer),
    Due,
    Update(Update),
    Found(Platform),
    Named(Identity),
}

/// Sleeps until the tick `due`; without one, never returns.
pub(crate) async fn until(clock: Clock, due: Option<Duration>) {
    match due {
        Some(due) => clock.until(due).await,
        None => pending().await,
    }
}

async fn receive(commands: &mut Option<mpsc::Receiver<Command>>) -> Command {
    match commands {
        // The serving task ends with the runtime.
        Some(commands) => match commands.recv().await {
            Some(command) => command,
            None => pending().await,
        },
        None => pending().await,
    }
}

async fn next(watch: &mut Option<Watch>) -> Update {
    match watch {
        Some(watch) => watch.next().await,
        None => pending().await,
    }
}

/// A background operation of the loop, if one is under way.
type Pending<T> = Option<Pin<Box<dyn Future<Output = T>>>>;

async fn outcome<T>(under_way: &mut Pending<T>) -> T {
    match under_way {
        Some(under_way) => under_way.await,
        None => pending().await,
    }
}
