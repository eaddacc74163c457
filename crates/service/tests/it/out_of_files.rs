//! The guest listener in a process without free file descriptors. The limit is per process, so the test runs itself in
//! another process.

use std::fs::File;
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd;
use std::process::Command;

use crate::guest_server::harness::*;
use notbefore_service::guest::settings::GuestSettings;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpSocket;

/// Prevents the process from opening files until it is dropped.
struct NoFiles(Rlimit);

impl NoFiles {
    fn exhaust() -> NoFiles {
        let before = getrlimit(Resource::Nofile);
        // The next descriptor would have this number; the limit is exclusive.
        let next = File::open("/dev/null").unwrap().as_raw_fd();
        let none = Rlimit { current: Some(u64::try_from(next).unwrap()), maximum: before.maximum };
        setrlimit(Resource::Nofile, none).unwrap();
        NoFiles(before)
    }
}

impl Drop for NoFiles {
    fn drop(&mut self) {
        setrlimit(Resource::Nofile, self.0).unwrap();
    }
}

/// The environment variable of the child process.
const CHILD: &str = "NOTBEFORE_TEST_ALONE";

#[test]
fn out_of_files_evicts_longest_idle_connection() {
    if std::env::var_os(CHILD).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(longest_idle_connection_is_closed());
    }
    let test = "out_of_files::out_of_files_evicts_longest_idle_connection";
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", test, "--nocapture"]).env(CHILD, "1").output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

async fn longest_idle_connection_is_closed() {
    let server = TestServer::open(GuestSettings { threads: NonZeroUsize::new(1), ..unlimited() }).await;
    let mut idle = Vec::new();
    for count in 1..=5 {
        // Of two connections that became idle at the same time, the older one is evicted.
        idle.push(server.connect(From::A).await);
        until(|| server.stats.connections_open.get() == count).await;
    }
    let sockets = [(); 4].map(|()| TcpSocket::new_v4().unwrap());
    let limit = NoFiles::exhaust();
    let mut late = Vec::new();
    for (socket, mut oldest) in sockets.into_iter().zip(idle.drain(..4)) {
        let mut client = server.connect_with(socket, From::A).await;
        client.send(get(EVENTS)).await;
        assert_eq!(client.response().await.status, 200);
        assert!(oldest.is_closed().await);
        late.push((client, oldest));
    }
    assert_eq!(server.stats.connections_evicted.get(), 4);
    drop((limit, late));
    idle[0].send(get(EVENTS)).await;
    assert_eq!(idle[0].response().await.status, 200, "there was a longer idle one each time");

    // Without idle connections, a new connection waits for one.
    drop(idle);
    until(|| server.stats.connections_open.get() == 0).await;
    let mut half = server.connect(From::A).await;
    half.send(&get(EVENTS)[..9]).await;
    until(|| server.stats.connections_handed_over.get() == 1).await;
    let socket = TcpSocket::new_v4().unwrap();
    let limit = NoFiles::exhaust();
    let accepted = server.stats.connections_accepted.get();
    let mut waits = server.connect_with(socket, From::A).await;
    waits.send(get(EVENTS)).await;
    assert_eq!(server.stats.connections_accepted.get(), accepted);
    half.send(&get(EVENTS)[9..]).await;
    assert_eq!(half.response().await.status, 200, "a running request is not aborted");
    assert_eq!(waits.response().await.status, 200);
    assert!(half.is_closed().await);
    drop(limit);
    server.close().await;
}
