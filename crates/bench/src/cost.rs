//! Regression limits of one poll in countable units: system calls and instructions.
//!
//! Unlike times, these do not vary with the machine, so `./dev test cost` enforces them. The service runs under
//! strace or callgrind and answers n polls, then 2n; the difference is the cost without startup.
//!
//! If a change exceeds a limit, look first: `valgrind --tool=callgrind target/release/notbefore serve …` and
//! `callgrind_annotate` name the functions, `strace -f` the calls. If the limit must rise, give the reason next to
//! it.

mod instructions;
mod system_calls;

use std::io::Read;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::Context;
use serde_json::json;

use crate::http::Client;
use crate::process::Cores;
use crate::scenario::fleet_of_one;
use crate::service::{Binary, POLL, Rate, Service};

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
    let mut good = true;
    for mode in Mode::ALL {
        good &= system_calls::check_limit(&binary, dir.path(), mode)?;
        good &= instructions::check_limit(&binary, dir.path(), mode)?;
    }
    Ok(good)
}

/// Starts the service under a tool, polls, and stops it so that the tool writes its result.
fn polled(binary: &Binary, under: &[&str], dir: &Path, mode: Mode, polls: u32) -> anyhow::Result<()> {
    let data = dir.join("data");
    if data.exists() {
        std::fs::remove_dir_all(&data)?;
    }
    let under = under.iter().map(|&word| word.to_owned()).collect();
    let binary = Binary { under, ..binary.clone() };
    let mut service = Service::start(&binary, &data, Rate::Unlimited, &[])?;
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
