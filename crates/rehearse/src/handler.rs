//! The handler under test, as a process, and what it shows of itself.
//!
//! ```text
//!   Handler::start ─► namespace's thread, or this one ─► handler
//!        │  processes.rs: its processes, to signal and to reap
//!        │  observer.rs:  stdout, stderr and marker files ─┐
//!        └  hook.rs:      calls of the handler ────────────┴► News
//! ```
//!
//! Two tasks belong to a handler. One follows its runs and stops it (`supervise`), the other its output, its files and
//! its calls. Both lock the `Observer`, which sends all news. No process of the handler stays when it is stopped or
//! dropped: `processes.rs` has the one exception. If the rehearsal itself is killed with SIGKILL, its keeper kills them
//! (`crate::keeper`).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use notbefore_service::clock::Stopwatch;
use rustix::fs::{Access, access};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::Signal;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{interval, sleep, timeout};
use uuid::Uuid;

use crate::keeper::{self, Keeper};
use crate::namespace::{self, Namespace};
use crate::recording::Marker;

mod hook;
mod marker;
mod observer;
mod processes;

pub use marker::{MarkerSource, MarkerSourceError};
use observer::{Observer, PipeState, STREAMS};
use processes::{Exit, Processes, readiness};

/// Time between SIGTERM and SIGKILL.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// Interval between two checks of marker files. It delays a marker less than a person notices in a report.
const FILES_EVERY: Duration = Duration::from_millis(50);
/// Pause after each read of a handler that exceeds the limit of its output: reads at most 6 MiB/s of a stream.
const FLOOD_PAUSE: Duration = Duration::from_millis(20);
/// The exit code of a run that could not be started, as in shells.
const NOT_STARTED: i32 = 127;

/// Variables that would send the handler's requests to a proxy.
const PROXY_VARIABLES: [&str; 6] =
    ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];

/// A handler and how to learn what it does.
#[derive(Clone, Debug)]
pub struct HandlerSpec {
    /// Program and arguments. A program without a slash is found by `PATH`.
    pub command: Vec<OsString>,
    /// Runs it again so long after its exit, as cron and Pacemaker do.
    pub repeat: Option<Duration>,
    pub markers: BTreeMap<Marker, MarkerSource>,
    /// Ends the handlers if this process is killed.
    pub keeper: Option<Keeper>,
}

impl HandlerSpec {
    /// Checks that the command can be found and executed, before anything is played. What is not seen here, such as a
    /// missing interpreter, is an error of [`Handler::start`].
    pub fn check(&self) -> Result<(), HandlerError> {
        let command = self.command.first().cloned().ok_or(HandlerError::NoCommand)?;
        let is_path = command.as_encoded_bytes().contains(&b'/');
        let directories = std::env::var_os("PATH").unwrap_or_default();
        let places: Vec<PathBuf> = match is_path {
            true => vec![PathBuf::from(&command)],
            false => std::env::split_paths(&directories).map(|directory| directory.join(&command)).collect(),
        };
        let mut files = places.iter().filter(|place| place.is_file()).peekable();
        if files.peek().is_none() {
            // A directory is no program either.
            let is_directory = is_path && Path::new(&command).is_dir();
            return Err(match is_directory {
                true => HandlerError::NotExecutable { command },
                false => HandlerError::NotFound { command },
            });
        }
        match files.any(|file| access(file, Access::EXEC_OK).is_ok()) {
            true => Ok(()),
            false => Err(HandlerError::NotExecutable { command }),
        }
    }
}

/// The VM of a handler, as the handler sees it.
#[derive(Clone, Copy, Debug)]
pub struct HandledVm<'a> {
    pub name: &'a str,
    /// Base URL of the service.
    pub endpoint: &'a str,
    /// Directory for what the handler keeps over restarts, as the disk of the VM does.
    pub state: &'a Path,
    /// Where the handler runs, if not in the network of this process.
    pub namespace: Option<&'a Namespace>,
    /// Its variable TZ, if it is not that of this process.
    pub time_zone: Option<&'a str>,
}

/// News of the handler of a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    pub vm: String,
    /// By the stopwatch of the rehearsal.
    pub at: Duration,
    pub what: HandlerEvent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerEvent {
    /// The first run of it started.
    Started,
    /// It printed a line. Unprintable characters are escaped.
    Line(String),
    Marker(Marker),
    /// It ended by itself: not if it was stopped. If it is repeated, exit code 0 is no news.
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
}

/// Why a handler does not run.
#[derive(Debug, thiserror::Error)]
pub enum HandlerError {
    #[error("there is no handler to run; give its command after --")]
    NoCommand,
    #[error(
        "handler {command:?} was not found; check its spelling, give its path, or install it. In a script, also check the program in its first line"
    )]
    NotFound { command: OsString },
    #[error(
        "handler {command:?} is not executable; chmod +x it, or run it with its interpreter, such as sh or python3"
    )]
    NotExecutable { command: OsString },
    #[error("handler {command:?} is not a program; a script begins with a line such as #!/bin/sh")]
    NoProgram { command: OsString },
    #[error("handler {command:?} cannot be run: {source}; correct this, and retry")]
    NotStarted { command: OsString, source: io::Error },
    #[error(
        "cannot prepare to run handler {command:?}: {source}; see if open files (ulimit -n) or memory are used up"
    )]
    NotPrepared { command: OsString, source: io::Error },
}

impl HandlerError {
    fn not_started(command: OsString, source: io::Error) -> Self {
        let is = |known: Errno| source.raw_os_error() == Some(known.raw_os_error());
        if is(Errno::NOENT) {
            Self::NotFound { command }
        } else if is(Errno::ACCESS) {
            Self::NotExecutable { command }
        } else if is(Errno::NOEXEC) {
            Self::NoProgram { command }
        } else {
            Self::NotStarted { command, source }
        }
    }
}

/// A running handler of one VM. Dropping it kills it.
#[derive(Debug)]
pub struct Handler {
    shared: Arc<Shared>,
    orders: UnboundedSender<Order>,
    /// None once no process is left.
    supervisor: Option<JoinHandle<()>>,
    watcher: JoinHandle<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Terminate,
    Kill,
}

#[derive(Debug)]
struct Shared {
    processes: Processes,
    observer: Mutex<Observer>,
    program: Program,
}

impl Handler {
    /// Starts the handler of a VM. Needs a runtime.
    pub fn start(
        spec: &HandlerSpec,
        vm: HandledVm<'_>,
        elapsed: Stopwatch,
        news: UnboundedSender<News>,
    ) -> Result<Self, HandlerError> {
        let HandledVm { name, endpoint, state, namespace, time_zone } = vm;
        let Some(command) = spec.command.first().cloned() else { return Err(HandlerError::NoCommand) };
        let not_prepared = |source| HandlerError::NotPrepared { command: command.clone(), source };
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = match namespace {
            Some(namespace) => namespace.bind(any_port),
            None => TcpListener::bind(any_port),
        };
        let listener = listener.map_err(not_prepared)?;
        listener.set_nonblocking(true).map_err(not_prepared)?;
        // Ports of several namespaces can be equal.
        let hook_path = format!("/{}", Uuid::new_v4().simple());
        let hook = format!("http://{}{hook_path}", listener.local_addr().map_err(not_prepared)?);

        let pipes = [pipe().map_err(not_prepared)?, pipe().map_err(not_prepared)?];
        let [(stdout, stdout_of_handler), (stderr, stderr_of_handler)] = pipes;
        let streams = [&stdout, &stderr].map(|stream| stream.try_clone().and_then(readiness));
        let [stdout_ready, stderr_ready] = streams.map(|stream| stream.map_err(not_prepared));
        let streams = [stdout_ready?, stderr_ready?];

        let program = Program {
            command: spec.command.clone(),
            variables: [
                ("NOTBEFORE_ENDPOINT", endpoint.into()),
                ("NOTBEFORE_VM", name.into()),
                ("NOTBEFORE_HOOK", hook.clone().into()),
                ("NOTBEFORE_STATE", state.into()),
            ]
            .into_iter()
            .chain(time_zone.map(|zone| ("TZ", zone.into())))
            .collect(),
            namespace: namespace.cloned(),
            keeper: spec.keeper.clone(),
            outputs: [stdout_of_handler, stderr_of_handler],
        };
        let shared = Arc::new(Shared {
            processes: Processes::new("NOTBEFORE_HOOK", &hook, spec.keeper.clone()),
            observer: Mutex::new(Observer::new(spec, name, elapsed, news, [stdout, stderr])),
            program,
        });
        shared.start().map_err(|error| HandlerError::not_started(command.clone(), error))?;
        shared.observer().report(HandlerEvent::Started);

        let called: Vec<Marker> = spec
            .markers
            .iter()
            .filter_map(|(marker, source)| matches!(source, MarkerSource::Call).then_some(*marker))
            .collect();
        let calls = hook::serve(listener, hook_path, {
            let shared = Arc::clone(&shared);
            move |marker| {
                let is_called = called.contains(&marker);
                if is_called {
                    shared.observer().report_marker(marker);
                }
                is_called
            }
        });
        let watcher = tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                let [stdout, stderr] = STREAMS.map(|stream| (stream, &streams[stream]));
                tokio::join!(follow(&shared, stdout), follow(&shared, stderr), check_files(&shared), calls);
            }
        });
        let (orders, received) = unbounded_channel();
        let supervisor = Some(tokio::spawn(supervise(Arc::clone(&shared), spec.repeat, received)));
        Ok(Self { shared, orders, supervisor, watcher })
    }

    /// What reports the handler's output and marker files up to now. Called when a request of the handler arrives, it
    /// puts everything in order that the handler did before the request.
    pub fn observation(&self) -> Observation {
        Observation(Arc::clone(&self.shared))
    }

    /// Stops the handler: SIGTERM to all its processes, and SIGKILL to those that are left after five seconds. When
    /// this returns, all its output is reported.
    pub async fn stop(&mut self) {
        self.end(Order::Terminate).await;
    }

    /// Kills all processes at once, as when the VM is gone.
    pub async fn kill(&mut self) {
        self.end(Order::Kill).await;
    }

    async fn end(&mut self, order: Order) {
        if let Some(supervisor) = &mut self.supervisor {
            // The supervisor receives until it has ended.
            let _ = self.orders.send(order);
            if supervisor.await.is_err() {
                // It panicked.
                self.shared.processes.kill_blocking();
            }
            self.supervisor = None;
            self.watcher.abort();
            // Its hook is closed then.
            let _ = (&mut self.watcher).await;
        }
    }
}

/// Reports what a handler has shown.
#[derive(Clone, Debug)]
pub struct Observation(Arc<Shared>);

impl Observation {
    pub fn observe(&self) {
        self.0.observer().observe();
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        self.watcher.abort();
        if let Some(supervisor) = &self.supervisor {
            supervisor.abort();
            self.shared.processes.kill_blocking();
        }
    }
}

impl Shared {
    fn observer(&self) -> MutexGuard<'_, Observer> {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a run.
    fn start(&self) -> io::Result<()> {
        self.processes.start(|| self.program.spawn())
    }

    /// Reports the end of a run, after the rest of its output.
    fn report_exit(&self, exit: Exit, is_repeated: bool) {
        let mut observer = self.observer();
        observer.observe();
        observer.end_lines();
        let Exit { code, signal } = exit;
        if !(is_repeated && code == Some(0)) {
            observer.report(HandlerEvent::Exited { code, signal });
        }
    }
}

/// How to start a run.
#[derive(Debug)]
struct Program {
    command: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    namespace: Option<Namespace>,
    keeper: Option<Keeper>,
    /// Stdout and stderr of all runs. A process that a run leaves behind can still write.
    outputs: [PipeWriter; 2],
}

impl Program {
    fn spawn(&self) -> io::Result<Child> {
        let (program, arguments) = self.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let [stdout, stderr] = &self.outputs;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(stdout.try_clone()?)
            .stderr(stderr.try_clone()?)
            .process_group(0);
        for variable in PROXY_VARIABLES.iter().chain([&namespace::REEXECUTED]) {
            command.env_remove(variable);
        }
        if let Some(keeper) = &self.keeper {
            command.env(keeper::VARIABLE, keeper.value());
        }
        match &self.namespace {
            Some(namespace) => namespace.run(move || command.spawn()),
            None => command.spawn(),
        }
    }
}

/// A pipe from the handler; reading from it does not block.
fn pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    ioctl_fionbio(&reader, true)?;
    Ok((reader, writer))
}

/// Follows the runs until the handler is to end, and ends it.
async fn supervise(shared: Arc<Shared>, repeat: Option<Duration>, mut orders: UnboundedReceiver<Order>) {
    let order = tokio::select! {
        order = orders.recv() => order,
        () = follow_runs(&shared, repeat) => orders.recv().await,
    };
    let processes = &shared.processes;
    processes.close();
    // It may have ended by itself at the same time.
    if let Some(exit) = processes.take_exit() {
        shared.report_exit(exit, repeat.is_some());
    }
    if order == Some(Order::Terminate) {
        processes.signal(Signal::TERM);
        tokio::select! {
            _ = timeout(STOP_GRACE, processes.all_ended()) => {}
            // The VM is gone meanwhile.
            _ = killed(&mut orders) => {}
        }
    }
    processes.kill().await;
    let mut observer = shared.observer();
    observer.observe();
    observer.end_lines();
}

/// Waits for the order to kill.
async fn killed(orders: &mut UnboundedReceiver<Order>) {
    while orders.recv().await == Some(Order::Terminate) {}
}

/// Reports the end of each run, and starts the next one.
async fn follow_runs(shared: &Shared, repeat: Option<Duration>) {
    loop {
        if shared.processes.exited().await.is_ok()
            && let Some(exit) = shared.processes.take_exit()
        {
            shared.report_exit(exit, repeat.is_some());
        }
        let Some(pause) = repeat else { return };
        sleep(pause).await;
        if let Err(error) = shared.start() {
            let command = shared.program.command.first().cloned().unwrap_or_default();
            let observer = shared.observer();
            observer.report(HandlerEvent::Line(HandlerError::not_started(command, error).to_string()));
            observer.report(HandlerEvent::Exited { code: Some(NOT_STARTED), signal: None });
        }
    }
}

/// Reads a stream whenever it has something.
async fn follow(shared: &Shared, (stream, ready): (usize, &AsyncFd<PipeReader>)) {
    while let Ok(mut guard) = ready.readable().await {
        let (left, is_flood) = {
            let mut observer = shared.observer();
            (observer.read(stream), observer.is_exhausted())
        };
        match left {
            PipeState::Empty => guard.clear_ready(),
            PipeState::More => guard.retain_ready(),
        }
        if is_flood {
            sleep(FLOOD_PAUSE).await;
        }
    }
}

async fn check_files(shared: &Shared) {
    if !shared.observer().has_files() {
        return;
    }
    let mut ticks = interval(FILES_EVERY);
    loop {
        ticks.tick().await;
        shared.observer().check_files();
    }
}
