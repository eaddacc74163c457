//! Regression limits of one poll in countable units: system calls and instructions.
//!
//! Unlike times, these do not vary with the machine, so `./dev test cost` enforces them. The service runs under
//! strace or callgrind and answers n polls, then 2n; the difference is the cost without startup. A node of a cluster has
//! the same limits. [`copies`] checks that one crate compiles the poll.
//!
//! If a change exceeds a limit, look first: `valgrind --tool=callgrind target/release/notbefore serve …` and
//! `callgrind_annotate` name the functions, `strace -f` the calls. If the limit must rise, give the reason next to
//! it.

mod copies;
mod instructions;
mod system_calls;

use std::io::Read;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::Context;
use serde_json::json;
use uuid::Uuid;

use crate::etcd::Etcd;
use crate::http::Client;
use crate::process::Cores;
use crate::scenario::fleet_of_one;
use crate::service::{Binary, POLL, Rate, Service, Starting};

/// Use of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Sequential polls on one connection.
    KeepAlive,
    /// A new connection per poll.
    ConnectionEach,
}

impl Mode {
    const ALL: [Self; 2] = [Self::KeepAlive, Self::ConnectionEach];

    fn name(self) -> &'static str {
        match self {
            Self::KeepAlive => "keep-alive poll",
            Self::ConnectionEach => "poll with its own connection",
        }
    }
}

/// What the service is under test.
#[derive(Clone, Copy)]
pub enum Store<'a> {
    /// One service with its own file.
    Redb,
    /// A node on etcd.
    Etcd(&'a Etcd),
}

impl Store<'_> {
    fn name(self) -> &'static str {
        match self {
            Self::Redb => "",
            Self::Etcd(_) => " at a node of a cluster",
        }
    }
}

/// Counts and compares; false if a limit is exceeded.
pub fn run(root: &Path) -> anyhow::Result<bool> {
    let path = root.join("target/release/notbefore");
    let missing = "there is no release build; 'cargo build --release -p notbefore' makes one";
    let binary = Binary {
        path: path.canonicalize().context(missing)?,
        core: Cores::choose()?.server,
        under: Vec::new(),
    };
    let dir = tempfile::tempdir()?;
    let mut good = copies::check(root)?;
    let etcd = Etcd::start(dir.path(), 1)?;
    for mode in Mode::ALL {
        good &= system_calls::check_limit(&binary, dir.path(), mode)?;
        good &= instructions::check_limits(&binary, dir.path(), mode, &etcd)?;
    }
    Ok(good)
}

/// Starts the service under a tool, polls, and stops it so that the tool writes its result.
fn polled(
    binary: &Binary,
    under: &[&str],
    dir: &Path,
    (store, mode): (Store<'_>, Mode),
    polls: u32,
) -> anyhow::Result<()> {
    let data = dir.join("data");
    if data.exists() {
        std::fs::remove_dir_all(&data)?;
    }
    let under = under.iter().map(|&word| word.to_owned()).collect();
    let binary = Binary { under, ..binary.clone() };
    let mut service = match store {
        Store::Redb => Service::start(&binary, &data, Rate::Unlimited, &[])?,
        Store::Etcd(etcd) => {
            // Each run has its own, so that all runs do the same.
            let prefix = format!("/{}/", Uuid::new_v4());
            let flags = ["--etcd", &etcd.urls(), "--etcd-prefix", &prefix, "--node", "a"];
            let token = dir.join("first.token");
            std::fs::write(&token, "the-first-token-of-the-benchmark")?;
            let service = Starting::node(&binary, &data, Rate::Unlimited, &token, &flags)?.wait()?;
            service.wait_until_changes_are_taken()?;
            service
        }
    };
    service.operate("PUT", "/v1/scopes/default/default/web", &fleet_of_one())?;
    let reboot = json!({ "type": "Reboot", "vms": ["web-0"], "not_before": "2099-01-01T00:00:00Z" });
    service.operate("POST", "/v1/events", &reboot)?;
    match mode {
        Mode::KeepAlive => {
            let mut guest = service.guest(Ipv4Addr::LOCALHOST)?;
            for _ in 0..polls {
                let answer = guest.request("GET", POLL, "")?;
                anyhow::ensure!(answer.status == 200, "a poll was answered {}", answer.status);
            }
        }
        Mode::ConnectionEach => {
            for _ in 0..polls {
                let headers = "Metadata: true\r\nConnection: close\r\n".to_owned();
                let mut guest = Client::connect(Ipv4Addr::LOCALHOST, service.guest, headers)?;
                let answer = guest.request("GET", POLL, "")?;
                anyhow::ensure!(answer.status == 200, "a poll was answered {}", answer.status);
                // The service closes the connection, as requested.
                let more = guest.stream().read(&mut [0])?;
                anyhow::ensure!(more == 0, "a connection that was to be closed goes on");
            }
        }
    }
    service.terminate()
}
