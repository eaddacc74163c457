//! The exec driver: runs one command per VM of a started event, and one per host of an operation, with the event's
//! data in its environment.
//!
//! The engine decides when a command runs, how often, and what its exit means. This module runs it and reports how it
//! ended:
//!
//! ```text
//!   Exec::run ─► lock of the VM or host ─► slot ─► run::run_attempt ─► keeper ─► command
//!                                                    │  output.rs: stdout and stderr, to the log
//!                                                    │  result.rs: the file NOTBEFORE_RESULT
//!                                                    └► Ending: succeeded, or failed and why
//! ```
//!
//! A command waits for the lock of its VM or host, then for one of `concurrency` slots; hosts have their own slots. A VM may have several started
//! events. Their commands must not run at the same time, because each may read the VM's state and then change it.
//!
//! A command gets a minimal environment (`environment`), because the service's own may contain an operator token. No
//! process of a command outlives its run, even if the service is killed: see [`keeper`]. If the keeper was killed too,
//! the next attempt starts when no process of the earlier one is left: see `orphans.rs`. With several nodes, a command
//! ends before another node can run it, even if its node is stopped: see [`lease`].

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use notbefore_core::{Ending, EventId, Name, OperationId, VmId};
use notbefore_engine::{CommandId, DriverRun, RunTarget};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tracing::field::{DisplayValue, display};

pub mod keeper;
pub mod lease;
mod orphans;
mod output;
pub mod processes;
mod result;
mod run;

use self::lease::LeaseEnd;
use crate::driver::{Driver, Report};
use crate::lock;

/// Time limit for keepers of an earlier service to exit. They kill their commands when the service dies, which takes
/// milliseconds, and then scan `/proc`.
const KEEPERS_GRACE: Duration = Duration::from_secs(10);

/// An environment variable: name and value.
pub type Variable = (OsString, OsString);

#[derive(Clone, Debug)]
pub struct ExecConfig {
    /// Absolute path of an executable file.
    pub command: PathBuf,
    /// The same for hosts, if hosts have a command.
    pub host_command: Option<PathBuf>,
    /// Time limit of an attempt.
    pub timeout: Duration,
    /// Time limit of an attempt for a host.
    pub host_timeout: Duration,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Most commands that run at the same time.
    pub concurrency: usize,
    /// Additional variables for commands, from the service's environment.
    pub extra_environment: Vec<Variable>,
    /// The keeper's binary: this one, by `/proc/self/exe`, which stays valid when an update replaces the file.
    pub keeper: PathBuf,
}

impl ExecConfig {
    /// Default time limit: live migration of a large VM takes minutes.
    pub const TIMEOUT: Duration = Duration::from_secs(600);
    /// Default time limit for a host: a large machine takes a quarter of an hour to start.
    pub const HOST_TIMEOUT: Duration = Duration::from_secs(30 * 60);
    /// Default concurrency: fast enough for the VMs of a host, without overloading the control plane that commands
    /// call.
    pub const CONCURRENCY: usize = 16;
    /// Time that a command gets for cleanup after SIGTERM.
    pub const GRACE: Duration = Duration::from_secs(5);

    /// The default settings for a command.
    pub fn new(command: PathBuf) -> Self {
        Self {
            command,
            host_command: None,
            timeout: Self::TIMEOUT,
            host_timeout: Self::HOST_TIMEOUT,
            grace: Self::GRACE,
            concurrency: Self::CONCURRENCY,
            extra_environment: Vec::new(),
            keeper: "/proc/self/exe".into(),
        }
    }
}

/// Why a command cannot be used. Checked when the service starts.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("{flag} {path}: {error}; name an executable file")]
    Missing { flag: &'static str, path: PathBuf, error: io::Error },
    #[error("{flag} {path} is not a file; name an executable file, such as a script")]
    NoFile { flag: &'static str, path: PathBuf },
    #[error("{flag} {path} is not executable; chmod +x it")]
    NotExecutable { flag: &'static str, path: PathBuf },
}

/// The absolute path of a command, if it is an executable file. Symbolic links are not resolved: the target may change.
pub fn check_command(flag: &'static str, path: &Path) -> Result<PathBuf, CommandError> {
    let missing = |error| CommandError::Missing { flag, path: path.to_owned(), error };
    let path = std::path::absolute(path).map_err(missing)?;
    let found = std::fs::metadata(&path).map_err(missing)?;
    if !found.is_file() {
        return Err(CommandError::NoFile { flag, path });
    }
    if found.permissions().mode() & 0o111 == 0 {
        return Err(CommandError::NotExecutable { flag, path });
    }
    Ok(path)
}

/// The program for a run.
#[derive(Clone, Copy, Debug)]
struct Program<'a> {
    command: &'a Path,
    timeout: Duration,
    /// The flag that sets the time limit.
    timeout_flag: &'static str,
}

impl ExecConfig {
    /// None for a host if hosts have no command.
    fn program(&self, run: &DriverRun) -> Option<Program<'_>> {
        match &run.target {
            RunTarget::Vm { .. } => Some(Program {
                command: &self.command,
                timeout: self.timeout,
                timeout_flag: "--exec-timeout",
            }),
            RunTarget::Host { .. } => Some(Program {
                command: self.host_command.as_deref()?,
                timeout: self.host_timeout,
                timeout_flag: "--exec-host-timeout",
            }),
        }
    }
}

/// The complete environment of a command.
fn environment(run: &DriverRun, result: &Path, extra_environment: &[Variable]) -> Vec<Variable> {
    /// Variables that most programs need; none contains a secret.
    const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];
    let ours = INHERITED.into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    let mut facts = vec![
        ("OPERATION_ID", run.operation.to_string()),
        ("EVENT_TYPE", run.event_type.to_string()),
        ("CAUSE", run.cause.to_string()),
        ("DURATION", run.duration_s.to_string()),
        ("ATTEMPT", run.id.attempt.to_string()),
        ("FENCE", run.id.fence.to_string()),
        ("OWNER", run.owner.clone()),
    ];
    match &run.target {
        RunTarget::Vm { event, vm, scope, name, host, target_host, update_domain } => facts.extend([
            ("EVENT_ID", event.to_string()),
            ("SUBSCRIPTION", scope.subscription.to_string()),
            ("GROUP", scope.group.to_string()),
            ("SCOPE", scope.name.to_string()),
            ("VM", name.to_string()),
            ("VM_ID", vm.to_string()),
            ("HOST", host.clone().unwrap_or_default()),
            ("TARGET_HOST", target_host.clone().unwrap_or_default()),
            ("UPDATE_DOMAIN", update_domain.to_string()),
        ]),
        RunTarget::Host { host, .. } => {
            facts.extend([("HOST", host.clone()), ("VMS", run::vms_path(result).display().to_string())]);
        }
    }
    let facts = facts.into_iter().map(|(name, value)| (format!("NOTBEFORE_{name}").into(), value.into()));
    let result = [("NOTBEFORE_RESULT".into(), result.as_os_str().to_owned())];
    ours.chain(extra_environment.iter().cloned()).chain(facts).chain(result).collect()
}

#[derive(Debug)]
pub struct Exec {
    config: Arc<ExecConfig>,
    /// The directory of result files.
    results: Arc<Path>,
    lease: Option<LeaseEnd>,
    slots: Arc<Semaphore>,
    /// Hosts have as many of their own: a host takes long to start, and VMs must not wait for that.
    host_slots: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
}

/// What only one command at a time may change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Locked {
    Vm(VmId),
    Host(String),
}

impl Locked {
    fn by(run: &DriverRun) -> Self {
        match &run.target {
            RunTarget::Vm { vm, .. } => Self::Vm(*vm),
            RunTarget::Host { host, .. } => Self::Host(host.clone()),
        }
    }
}

/// Held by the running command of a VM or host.
type RunLock = Arc<tokio::sync::Mutex<()>>;

#[derive(Debug, Default)]
struct State {
    /// Set when the service stops.
    closed: bool,
    tasks: JoinSet<()>,
    /// Running and waiting commands. Dropping the sender stops the command.
    runs: HashMap<CommandId, watch::Sender<()>>,
    /// For each VM and host with a running or waiting command.
    locks: HashMap<Locked, RunLock>,
}

impl Exec {
    /// Prepares the directory `results`, and waits until no command of an earlier service is left that used it. Old and
    /// new commands must not overlap. The only node of a store has no lease.
    pub async fn prepare(config: ExecConfig, results: &Path, lease: Option<LeaseEnd>) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(results)?;
        // Commands run in another working directory than the service.
        let results: Arc<Path> = std::path::absolute(results)?.into();
        // Live keepers end their own commands; the records name the orphans.
        keeper::wait_for_keepers(&results, KEEPERS_GRACE).await?;
        if let Err(why) = orphans::kill(&results, |_| true, run::KILLED_GRACE).await {
            tracing::warn!(target: "notbefore::exec", "{why}; until then no command runs for that VM or host");
        }
        // Result files that the earlier service did not remove.
        for entry in std::fs::read_dir(&results)? {
            let path = entry?.path();
            if !orphans::is_record(&path) {
                run::remove(&path);
            }
        }
        let [slots, host_slots] = [(); 2].map(|()| Arc::new(Semaphore::new(config.concurrency)));
        Ok(Self { config: Arc::new(config), results, lease, slots, host_slots, state: Arc::default() })
    }

    /// Stops all commands and waits until none runs. Stopped commands have not failed: they run again after the next
    /// start of the service.
    pub async fn close(&self) {
        let mut tasks = {
            let mut state = lock(&self.state);
            state.closed = true;
            state.runs.clear();
            std::mem::take(&mut state.tasks)
        };
        while tasks.join_next().await.is_some() {}
    }
}

impl Driver for Exec {
    fn run(&self, run: DriverRun, report: Report) {
        let mut state = lock(&self.state);
        if state.closed {
            return;
        }
        while state.tasks.try_join_next().is_some() {}
        let (stop, mut stopped) = watch::channel(());
        let id = run.id;
        state.runs.insert(id, stop);
        let locked = Locked::by(&run);
        let turn = Arc::clone(state.locks.entry(locked.clone()).or_default());
        let (config, results) = (Arc::clone(&self.config), Arc::clone(&self.results));
        let lease = self.lease.clone();
        let slots = match locked {
            Locked::Vm(_) => Arc::clone(&self.slots),
            Locked::Host(_) => Arc::clone(&self.host_slots),
        };
        let runs = Arc::clone(&self.state);
        state.tasks.spawn(async move {
            let run = Arc::new(run);
            // Lock the VM or host before taking a slot, so that a command that waits for it occupies no slot.
            let turn = async { (turn.lock_owned().await, slots.acquire_owned().await) };
            let turn = tokio::select! {
                biased;
                _ = stopped.changed() => None,
                turn = turn => Some(turn),
            };
            let ending = match &turn {
                Some((_turn, Ok(_slot))) => {
                    run::run_attempt(&config, &results, &run, lease, &mut stopped).await
                }
                Some((_, Err(_))) | None => None,
            };
            drop(turn);
            lock(&runs).forget(id, &locked);
            log_ending(&config, &run, ending.as_ref());
            if let Some(ending) = ending {
                report.ended(ending);
            }
        });
    }

    fn stop(&self, command: CommandId) {
        lock(&self.state).runs.remove(&command);
    }
}

impl State {
    /// Removes a run, and its lock if no other command needs it.
    fn forget(&mut self, id: CommandId, locked: &Locked) {
        self.runs.remove(&id);
        if self.locks.get(locked).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            self.locks.remove(locked);
        }
    }
}

/// The fields that name a run in the log; those without a value are left out.
struct LogFields<'a> {
    event: Option<DisplayValue<EventId>>,
    vm: Option<DisplayValue<&'a Name>>,
    operation: Option<DisplayValue<OperationId>>,
    host: Option<&'a str>,
    attempt: u32,
}

impl<'a> LogFields<'a> {
    fn of(run: &'a DriverRun) -> Self {
        let none = Self { event: None, vm: None, operation: None, host: None, attempt: run.id.attempt };
        match &run.target {
            RunTarget::Vm { event, name, .. } => {
                Self { event: Some(display(*event)), vm: Some(display(name)), ..none }
            }
            RunTarget::Host { host, .. } => {
                Self { operation: Some(display(run.operation)), host: Some(host), ..none }
            }
        }
    }
}

fn log_ending(config: &ExecConfig, run: &DriverRun, ending: Option<&Ending>) {
    let LogFields { event, vm, operation, host, attempt } = LogFields::of(run);
    let command = config.program(run).map_or_else(String::new, |one| one.command.display().to_string());
    match ending {
        Some(Ending::Succeeded { .. }) => {
            tracing::info!(
                target: "notbefore::exec", event, vm, operation, host, attempt, "{command} is done"
            );
        }
        Some(Ending::Failed { why } | Ending::Blocked { why }) => {
            tracing::warn!(target: "notbefore::exec", event, vm, operation, host, attempt, "{why}");
        }
        None => tracing::info!(
            target: "notbefore::exec", event, vm, operation, host, attempt, "{command} was stopped"
        ),
    }
}

#[cfg(test)]
mod tests {
    use notbefore_core::{Cause, EventType};
    use notbefore_engine::CommandTarget;
    use uuid::Uuid;

    use super::*;

    /// A run with arbitrary values.
    pub(super) fn some_run() -> DriverRun {
        let (event, vm) = (EventId(Uuid::nil()), VmId(Uuid::nil()));
        DriverRun {
            id: CommandId { target: CommandTarget::Vm { event, vm }, fence: 7, attempt: 3 },
            operation: OperationId(Uuid::nil()),
            event_type: EventType::Reboot,
            cause: Cause::HostReboot,
            duration_s: -1,
            owner: "n1".to_owned(),
            target: RunTarget::Vm {
                event,
                vm,
                scope: "shop/web".parse().unwrap(),
                name: "web-0".parse().unwrap(),
                host: Some("h1".to_owned()),
                target_host: None,
                update_domain: 2,
            },
        }
    }

    /// The same for a host.
    fn some_host_run() -> DriverRun {
        let run = some_run();
        DriverRun {
            id: CommandId { target: CommandTarget::Host(run.operation), ..run.id },
            target: RunTarget::Host { host: "h1".to_owned(), vms: vec!["default/shop/web/web-0".to_owned()] },
            ..run
        }
    }

    #[test]
    fn command_environment_has_only_declared_variables() {
        let extra_environment = [("LIBVIRT_DEFAULT_URI".into(), "test:///default".into())];
        let names = |run: &DriverRun| {
            let environment = environment(run, Path::new("/r"), &extra_environment);
            let names = environment.into_iter().filter_map(|(name, _)| name.into_string().ok());
            let mut names: Vec<String> =
                names.filter(|name| !["PATH", "HOME", "LANG"].contains(&name.as_str())).collect();
            names.sort_unstable();
            names
        };
        let expected = [
            "LIBVIRT_DEFAULT_URI",
            "NOTBEFORE_ATTEMPT",
            "NOTBEFORE_CAUSE",
            "NOTBEFORE_DURATION",
            "NOTBEFORE_EVENT_ID",
            "NOTBEFORE_EVENT_TYPE",
            "NOTBEFORE_FENCE",
            "NOTBEFORE_GROUP",
            "NOTBEFORE_HOST",
            "NOTBEFORE_OPERATION_ID",
            "NOTBEFORE_OWNER",
            "NOTBEFORE_RESULT",
            "NOTBEFORE_SCOPE",
            "NOTBEFORE_SUBSCRIPTION",
            "NOTBEFORE_TARGET_HOST",
            "NOTBEFORE_UPDATE_DOMAIN",
            "NOTBEFORE_VM",
            "NOTBEFORE_VM_ID",
        ];
        assert_eq!(names(&some_run()), expected);
        let expected = [
            "LIBVIRT_DEFAULT_URI",
            "NOTBEFORE_ATTEMPT",
            "NOTBEFORE_CAUSE",
            "NOTBEFORE_DURATION",
            "NOTBEFORE_EVENT_TYPE",
            "NOTBEFORE_FENCE",
            "NOTBEFORE_HOST",
            "NOTBEFORE_OPERATION_ID",
            "NOTBEFORE_OWNER",
            "NOTBEFORE_RESULT",
            "NOTBEFORE_VMS",
        ];
        assert_eq!(names(&some_host_run()), expected);
    }

    #[test]
    fn check_command_requires_executable_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("carry-out");
        let said = |path: &Path| check_command("--exec", path).unwrap_err().to_string();
        assert!(said(&file).contains("No such file or directory"), "{}", said(&file));
        assert!(said(dir.path()).contains("is not a file"));
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        assert!(said(&file).contains("chmod +x"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(check_command("--exec", &file).unwrap(), file);
    }
}
