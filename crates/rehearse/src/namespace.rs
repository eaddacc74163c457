//! A private network namespace that owns 169.254.169.254, for handlers that hard-code the address.
//!
//! A thread unshares its network namespace and stays in it for the namespace's life. What that thread creates is in the
//! namespace, and stays in it: processes, and sockets, which any other thread may use. The namespace has its loopback
//! device and no other network.
//!
//! A namespace needs CAP_SYS_ADMIN. Ordinary users get it in a user namespace of their own: the command line starts
//! itself again in one with [`reexec_unprivileged`].

use std::env;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::io::Errno;
use rustix::thread::UnshareFlags;

/// Commands for `ip`.
const SETUP: &str = "link set dev lo up\naddress add 169.254.169.254/32 dev lo\n";
/// Set in the environment of a program that was started again by [`reexec_unprivileged`].
pub const REEXECUTED: &str = "NOTBEFORE_REHEARSE_REEXECUTED";

/// Why there is no namespace.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    #[error(
        "cannot create a network namespace: {0}; run as root, or with 'unshare --map-root-user' if the system lets users do that"
    )]
    NotPermitted(io::Error),
    #[error("cannot create a network namespace: {0}; the kernel needs CONFIG_NET_NS")]
    NotCreated(io::Error),
    #[error("cannot configure the network namespace: there is no program 'ip'; install iproute2")]
    NoIproute,
    #[error("cannot configure the network namespace: ip: {0}; run as root")]
    Ip(String),
    #[error("cannot start this program again in a user namespace: {0}; run as root")]
    NotReexecuted(String),
    #[error(
        "cannot start this program again in a user namespace: there is no program 'unshare'; install util-linux, or run as root"
    )]
    NoUnshare,
}

type Work = Box<dyn FnOnce() + Send>;

/// A network namespace. It exists until the last clone is dropped and no process or socket is left in it.
#[derive(Clone, Debug)]
pub struct Namespace {
    thread: Sender<Work>,
}

impl Namespace {
    /// Creates a namespace whose loopback device is up and has 169.254.169.254. Takes some milliseconds.
    pub fn create() -> Result<Self, NamespaceError> {
        let (thread, work) = channel::<Work>();
        let (created, creation) = channel();
        let threads = thread::Builder::new().name("namespace".to_owned());
        let body = move || {
            let entered = enter();
            let is_ready = entered.is_ok();
            if created.send(entered).is_ok() && is_ready {
                run_all(&work);
            }
        };
        threads.spawn(body).map_err(NamespaceError::NotCreated)?;
        creation.recv().map_err(|_| NamespaceError::NotCreated(thread_is_gone()))??;
        Ok(Self { thread })
    }

    /// Binds a listener in the namespace. It stays there, and any thread can accept from it.
    pub fn bind(&self, address: SocketAddr) -> io::Result<TcpListener> {
        self.run(move || TcpListener::bind(address))
    }

    /// Runs short work in the namespace and waits for it. Processes and sockets that it creates are in the namespace.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (done, result) = channel();
        let work = Box::new(move || {
            // The caller waits for it.
            let _ = done.send(work());
        });
        self.thread.send(work).map_err(|_| thread_is_gone())?;
        result.recv().map_err(|_| thread_is_gone())?
    }
}

fn run_all(work: &Receiver<Work>) {
    while let Ok(one) = work.recv() {
        one();
    }
}

fn thread_is_gone() -> io::Error {
    io::Error::other("the namespace's thread has panicked")
}

/// Moves this thread into a new namespace and configures it.
fn enter() -> Result<(), NamespaceError> {
    #[expect(
        deprecated,
        reason = "the successor is unsafe because of UnshareFlags::FILES, which is not used"
    )]
    rustix::thread::unshare(UnshareFlags::NEWNET).map_err(|error| match error {
        Errno::PERM => NamespaceError::NotPermitted(error.into()),
        _ => NamespaceError::NotCreated(error.into()),
    })?;
    let mut ip = Command::new("ip");
    ip.args(["-batch", "-"]);
    run_ip(&mut ip)
}

/// Runs `ip -batch -` with the setup.
fn run_ip(ip: &mut Command) -> Result<(), NamespaceError> {
    let failed = |error: io::Error| NamespaceError::Ip(error.to_string());
    let mut ip = match ip.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(NamespaceError::NoIproute),
        spawned => spawned.map_err(failed)?,
    };
    if let Some(mut input) = ip.stdin.take() {
        // If it did not read, it says why.
        let _ = input.write_all(SETUP.as_bytes());
    }
    let done = ip.wait_with_output().map_err(failed)?;
    if done.status.success() {
        return Ok(());
    }
    Err(NamespaceError::Ip(reason(&done)))
}

/// Starts this program again with the same arguments, in a user namespace in which the user may create network
/// namespaces. Returns only if that fails. In that namespace the user appears as root, with the rights of the user
/// outside.
///
/// Call it before the program has started threads or written output, after [`NamespaceError::NotPermitted`].
pub fn reexec_unprivileged() -> NamespaceError {
    if env::var_os(REEXECUTED).is_some() {
        return NamespaceError::NotPermitted(Errno::PERM.into());
    }
    let failed = |error: io::Error| match error.kind() == io::ErrorKind::NotFound {
        true => NamespaceError::NoUnshare,
        false => NamespaceError::NotReexecuted(error.to_string()),
    };
    // A failure after exec would end in an exit code that means something else.
    match Command::new("unshare").args(["--map-root-user", "--net", "true"]).output() {
        Ok(tried) if tried.status.success() => {}
        Ok(tried) => return NamespaceError::NotReexecuted(reason(&tried)),
        Err(error) => return failed(error),
    }
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(error) => return NamespaceError::NotReexecuted(error.to_string()),
    };
    let error = Command::new("unshare")
        .args(["--map-root-user", "--"])
        .arg(program)
        .args(env::args_os().skip(1))
        .env(REEXECUTED, "1")
        .exec();
    failed(error)
}

/// The first line that a failed program printed, or its exit status.
fn reason(done: &Output) -> String {
    let said = String::from_utf8_lossy(&done.stderr);
    said.lines().next().map_or_else(|| done.status.to_string(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_of_ip_is_told_with_cure() {
        let said = |ip: &mut Command| run_ip(ip).unwrap_err().to_string();
        assert_eq!(
            said(&mut Command::new("/nonexistent/ip")),
            "cannot configure the network namespace: there is no program 'ip'; install iproute2"
        );
        let mut refused = Command::new("sh");
        refused.args(["-c", "echo 'RTNETLINK answers: Operation not permitted' >&2; exit 2"]);
        assert_eq!(
            said(&mut refused),
            "cannot configure the network namespace: ip: RTNETLINK answers: Operation not permitted; run as root"
        );
        assert!(said(&mut Command::new("false")).contains("exit status: 1; run as root"));
    }
}
