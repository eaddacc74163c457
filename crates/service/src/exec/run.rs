//! One attempt of a command, from start to report.

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use jiff::SignedDuration;
use notbefore_core::Ending;
use notbefore_engine::{CommandId, DriverRun, RunTarget};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::keeper::{self, End, TERMINATE};
use super::lease::{LEASE, LeaseEnd};
use super::output::{self, Budget};
use super::{ExecConfig, LogFields, Program, environment, orphans, result};
use crate::remove_tree::remove_tree;

/// Time limit for killed processes to end. They need milliseconds, except in a system call that hangs.
pub(super) const KILLED_GRACE: Duration = Duration::from_secs(5);
/// Time limit for the rest of the output once no process of the command is left. It is exceeded if another process
/// inherited the pipe.
const OUTPUT_GRACE: Duration = Duration::from_secs(1);
/// Longest message of a keeper, in bytes.
const ENDING_BYTES_MAX: u64 = 64;

/// A running command, with its keeper.
struct Running {
    keeper: Child,
    control: OwnedWriteHalf,
    status: OwnedReadHalf,
}

/// Why a command was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    TimedOut,
    Stopped,
}

/// Runs the command until it ends, times out, or the sender of `stopped` is dropped. Returns none for a stopped
/// command.
pub(super) async fn run_attempt(
    config: &ExecConfig,
    results: &Path,
    run: &Arc<DriverRun>,
    mut lease: Option<LeaseEnd>,
    stopped: &mut watch::Receiver<()>,
) -> Option<Ending> {
    let Some(program) = config.program(run) else {
        let why = "no command for hosts is configured; set one with --exec-host".to_owned();
        return Some(Ending::Failed { why });
    };
    let (name, is_of_target) = names(run);
    let result = results.join(name);
    // Only one command of a VM or host runs at a time, so any record of it is of an earlier attempt.
    let is_earlier =
        |record: &Path| record.file_name().is_some_and(|name| name.to_string_lossy().contains(&is_of_target));
    if let Err(why) = orphans::kill(results, is_earlier, KILLED_GRACE).await {
        return Some(Ending::Blocked { why: why.to_string() });
    }
    let started = write_vms(run, &result).and_then(|()| start(config, program, run, &result, lease.as_mut()));
    let mut running = match started {
        Ok(running) => running,
        Err(error) => {
            remove(&vms_path(&result));
            let why = format!(
                "cannot start a process: {error}; check the limits of processes and open files ({})",
                program.command.display()
            );
            return Some(Ending::Failed { why });
        }
    };
    let budget = Arc::new(Budget::new());
    let out = running.keeper.stdout.take().map(|stream| {
        let (budget, run) = (Arc::clone(&budget), Arc::clone(run));
        tokio::spawn(async move { output::read_lines(stream, "stdout", &budget, &run).await })
    });
    let err = running.keeper.stderr.take().map(|stream| {
        let (budget, run) = (Arc::clone(&budget), Arc::clone(run));
        tokio::spawn(async move { output::read_lines(stream, "stderr", &budget, &run).await })
    });

    let (end, interruption) = running.wait_for_end(program.timeout, config.grace, lease, stopped).await;

    let mut last_line = String::new();
    for (stream, is_error) in [(out, false), (err, true)] {
        let Some(mut stream) = stream else { continue };
        match timeout(OUTPUT_GRACE, &mut stream).await {
            Ok(Ok(last)) if is_error => last_line = last,
            Ok(_) => {}
            Err(_) => stream.abort(),
        }
    }
    let ending = match interruption {
        Some(Interruption::Stopped) => None,
        Some(Interruption::TimedOut) | None => {
            let read = tokio::task::spawn_blocking({
                let result = result.clone();
                move || result::read(&result)
            });
            let read = read.await.unwrap_or_else(|error| Err(result::ResultError(error.to_string())));
            Some(ending_of(program, end, interruption, read, &last_line))
        }
    };
    if let (Some(End::Exited { left, .. } | End::Killed { left, .. }), None) = (end, interruption)
        && left > 0
    {
        let LogFields { event, vm, operation, host, attempt } = LogFields::of(run);
        tracing::warn!(
            target: "notbefore::exec", event, vm, operation, host, attempt, left,
            "killed processes that the command left behind; use systemd-run to start processes that should stay"
        );
    }
    remove(&result);
    remove(&vms_path(&result));
    let record = orphans::record_path(&result);
    match end {
        Some(_) => remove(&record),
        // The keeper was killed, or cannot kill a process. If this fails too, the next attempt reports it.
        None => drop(orphans::kill(results, |found| *found == *record, KILLED_GRACE).await),
    }
    ending
}

/// The name of an attempt's result file, and the part of it that attempts for the same VM or host share.
fn names(run: &DriverRun) -> (String, String) {
    let CommandId { fence, attempt, .. } = run.id;
    let (of, shared) = match &run.target {
        RunTarget::Vm { event, vm, .. } => (event.to_string(), format!(".{vm}.")),
        // A host's name may have any characters.
        RunTarget::Host { host, .. } => {
            let hash = HEXLOWER.encode(&Sha256::digest(host.as_bytes()));
            (run.operation.to_string(), format!(".host-{}.", &hash[..32]))
        }
    };
    (format!("{of}{shared}{fence}.{attempt}"), shared)
}

/// The file with the host's VMs, beside the result file.
pub(super) fn vms_path(result: &Path) -> PathBuf {
    result.with_added_extension("vms")
}

/// Writes the VMs of a host for its command, one a line. They may be more than fit into a variable.
fn write_vms(run: &DriverRun, result: &Path) -> io::Result<()> {
    match &run.target {
        RunTarget::Vm { .. } => Ok(()),
        RunTarget::Host { vms, .. } => {
            let lines: String = vms.iter().map(|vm| format!("{vm}\n")).collect();
            std::fs::write(vms_path(result), lines)
        }
    }
}

/// Starts the keeper, which starts the command.
fn start(
    config: &ExecConfig,
    program: Program<'_>,
    run: &DriverRun,
    result: &Path,
    lease: Option<&mut LeaseEnd>,
) -> io::Result<Running> {
    let lease = lease.map(|end| millis(*end.borrow_and_update()));
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let (status, control) = UnixStream::from_std(ours)?.into_split();
    let keeper = Command::new(&config.keeper)
        .arg0("notbefore")
        .arg(keeper::SUBCOMMAND)
        .args(lease.map(|until| format!("--lease-until={until}")))
        .arg("--")
        .arg(result)
        .arg(program.command)
        .env_clear()
        .envs(environment(run, result, &config.extra_environment))
        .current_dir("/")
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C at the service's terminal must not reach the keeper.
        .process_group(0)
        .spawn()?;
    Ok(Running { keeper, control, status })
}

impl Running {
    /// Waits for the end of the command, renews its lease, and interrupts it at its time limit. Returns how it ended, if
    /// the keeper reported it.
    async fn wait_for_end(
        mut self,
        time_limit: Duration,
        grace: Duration,
        lease: Option<LeaseEnd>,
        stopped: &mut watch::Receiver<()>,
    ) -> (Option<End>, Option<Interruption>) {
        let status = async {
            let mut text = String::new();
            let _ = (&mut self.status).take(ENDING_BYTES_MAX).read_to_string(&mut text).await;
            serde_json::from_str::<End>(&text).ok()
        };
        tokio::pin!(status);
        let interruption = {
            let renewals = renew(lease, &self.control);
            tokio::pin!(renewals);
            let interruption = tokio::select! {
                biased;
                ending = &mut status => return (ending, None),
                _ = stopped.changed() => Interruption::Stopped,
                () = sleep(time_limit) => Interruption::TimedOut,
                never = &mut renewals => match never {},
            };
            let terminated = async {
                send(&self.control, TERMINATE).await;
                (&mut status).await
            };
            tokio::select! {
                ended = timeout(grace, terminated) => if let Ok(ending) = ended {
                    return (ending, Some(interruption));
                },
                never = &mut renewals => match never {},
            }
            interruption
        };
        drop(self.control);
        (timeout(KILLED_GRACE, &mut status).await.unwrap_or_default(), Some(interruption))
    }
}

/// Passes every new end of the lease to the keeper.
async fn renew(lease: Option<LeaseEnd>, control: &OwnedWriteHalf) -> Infallible {
    if let Some(mut end) = lease {
        while end.changed().await.is_ok() {
            let until = *end.borrow_and_update();
            send(control, millis(until)).await;
        }
    }
    std::future::pending().await
}

/// Sends an order to the keeper, or waits while a keeper that was stopped reads none. The socket takes an order as a
/// whole. An error means that the keeper has ended.
async fn send(control: &OwnedWriteHalf, order: u64) {
    while control.writable().await.is_ok() {
        match control.try_write(&order.to_be_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(_) | Err(_) => return,
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The ending of a run. A reason starts with the most important part, because it may be truncated.
fn ending_of(
    program: Program<'_>,
    end: Option<End>,
    interruption: Option<Interruption>,
    result: Result<Option<String>, result::ResultError>,
    last_line: &str,
) -> Ending {
    let said = if last_line.is_empty() { String::new() } else { format!(": {last_line}") };
    let what = match (end, interruption) {
        (None, _) => format!(
            "unknown exit status: its keeper did not report one; an operator or the out-of-memory killer may have killed it{said}"
        ),
        (Some(End::NotStarted { errno }), _) => not_started(errno),
        (Some(End::LeaseOver), _) => format!(
            "interrupted by its keeper, not failed: this node had not renewed its lead for {:#}{said}",
            SignedDuration::try_from(LEASE).unwrap_or(SignedDuration::MAX),
        ),
        (Some(_), Some(_)) => format!(
            "not done within {:#} and stopped; find out what it waits for, or raise {}{said}",
            SignedDuration::try_from(program.timeout).unwrap_or(SignedDuration::MAX),
            program.timeout_flag
        ),
        (Some(End::Exited { code: 0, .. }), None) => match result {
            Ok(host) => return Ending::Succeeded { host },
            Err(wrong) => format!("exit code 0, but {wrong}"),
        },
        (Some(End::Exited { code, .. }), None) => format!("exit code {code}{said}"),
        (Some(End::Killed { signal, .. }), None) => {
            format!("killed by signal {signal}{}{said}", cause_of(signal))
        }
    };
    Ending::Failed { why: format!("{what} ({})", program.command.display()) }
}

/// Why a command could not be started, and the remedy.
fn not_started(errno: i32) -> String {
    let is = |known: Errno| known.raw_os_error() == errno;
    let cure = if is(Errno::NOENT) {
        "the file, or the interpreter in its first line, does not exist: restore it"
    } else if is(Errno::ACCESS) {
        "make it executable for the user that the service runs as"
    } else if is(Errno::NOEXEC) {
        "it is not a program; a script begins with a line such as #!/bin/sh"
    } else {
        "correct this, and retry"
    };
    format!("cannot be run: {}; {cure}", io::Error::from_raw_os_error(errno))
}

fn cause_of(signal: i32) -> &'static str {
    match signal {
        6 => " (SIGABRT: the program aborted)",
        9 => " (SIGKILL: by an operator or the out-of-memory killer)",
        11 => " (SIGSEGV: the program crashed)",
        15 => " (SIGTERM: by an operator)",
        _ => "",
    }
}

/// Removes a result file, or whatever the command put in its place.
pub(super) fn remove(result: &Path) {
    if let Err(left) = remove_tree(result) {
        tracing::warn!(target: "notbefore::exec", "result file {left}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(end: Option<End>, interruption: Option<Interruption>, last_line: &str) -> String {
        let config = ExecConfig::new("/opt/carry-out".into());
        let program = config.program(&super::super::tests::some_run()).unwrap();
        match ending_of(program, end, interruption, Ok(None), last_line) {
            Ending::Failed { why } => why,
            other @ (Ending::Succeeded { .. } | Ending::Blocked { .. }) => {
                panic!("expected a failure: {other:?}")
            }
        }
    }

    #[test]
    fn what_a_command_has_mounted_at_its_result_file_is_left() {
        use crate::remove_tree::tests::{bind, enter_namespace};

        enter_namespace();
        let place = tempfile::tempdir().unwrap();
        let (precious, result) = (place.path().join("precious"), place.path().join("result"));
        for directory in [&precious, &result, &result.join("data")] {
            std::fs::create_dir(directory).unwrap();
        }
        std::fs::write(precious.join("file"), "content").unwrap();
        bind(&precious, &result.join("data"));
        remove(&result);
        assert!(precious.join("file").exists());
    }

    #[test]
    fn longest_end_fits_the_socket_limit() {
        for end in [
            End::NotStarted { errno: i32::MIN },
            End::Exited { code: i32::MIN, left: usize::MAX },
            End::Killed { signal: 64, left: usize::MAX },
            End::LeaseOver,
        ] {
            let text = serde_json::to_string(&end).unwrap();
            assert!(text.len() as u64 <= ENDING_BYTES_MAX, "{text}");
            assert_eq!(serde_json::from_str::<End>(&text).unwrap(), end);
        }
    }

    #[test]
    fn failure_reason_names_command_and_remedy() {
        let exited = Some(End::Exited { code: 3, left: 0 });
        assert_eq!(reason(exited, None, ""), "exit code 3 (/opt/carry-out)");
        assert_eq!(reason(exited, None, "no such domain"), "exit code 3: no such domain (/opt/carry-out)");
        let well = Some(End::Exited { code: 0, left: 0 });
        assert_eq!(
            reason(well, Some(Interruption::TimedOut), ""),
            "not done within 10m and stopped; find out what it waits for, or raise --exec-timeout (/opt/carry-out)"
        );
        assert!(reason(Some(End::Killed { signal: 9, left: 0 }), None, "").contains("out-of-memory killer"));
        for (errno, said) in [(2, "restore it"), (13, "make it executable"), (8, "#!/bin/sh"), (7, "retry")] {
            let reason = reason(Some(End::NotStarted { errno }), None, "");
            assert!(reason.starts_with("cannot be run") && reason.contains(said), "{reason}");
            assert!(reason.ends_with("(/opt/carry-out)"), "{reason}");
        }
        assert!(reason(None, None, "").contains("its keeper did not report"));
        for interruption in [None, Some(Interruption::TimedOut)] {
            assert_eq!(
                reason(Some(End::LeaseOver), interruption, ""),
                "interrupted by its keeper, not failed: this node had not renewed its lead for 3s (/opt/carry-out)"
            );
        }
    }
}
