//! The cost of one poll in things that can be counted, held to what it is: system calls and instructions.
//!
//! Times vary with the machine and its mood; these do not, so the test command can hold them (`./dev test cost`). The
//! service runs under strace or callgrind, answers so many polls and then twice as many, and the difference is
//! what they cost without what starting took.
//!
//! If a change makes it more, look first: `valgrind --tool=callgrind target/release/notbefore serve …` and
//! `callgrind_annotate` name the functions, `strace -f` the calls. If it has to be more, say why where the limit is.

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

/// How polls are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One after the other on one connection.
    KeepAlive,
    /// Each on a connection of its own.
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

/// Counts everything and compares; false if something is more than it may be.
pub fn run(root: &Path) -> anyhow::Result<bool> {
    let path = root.join("target/release/notbefore");
    let missing = "there is no release build; 'cargo build --release -p notbefore' makes one";
    let binary = Binary {
        path: path.canonicalize().context(missing)?,
        core: Cores::choose()?.server,
        under: Vec::new(),
    };
    let place = tempfile::tempdir()?;
    let mut good = true;
    for mode in Mode::ALL {
        good &= system_calls::hold(&binary, place.path(), mode)?;
        good &= instructions::hold(&binary, place.path(), mode)?;
    }
    Ok(good)
}

/// Starts the service under a tool, makes polls, and ends it so that the tool can write down what it has seen.
fn polled(binary: &Binary, under: &[&str], place: &Path, mode: Mode, polls: u32) -> anyhow::Result<()> {
    let data = place.join("data");
    if data.exists() {
        std::fs::remove_dir_all(&data)?;
    }
    let under = under.iter().map(|&word| word.to_owned()).collect();
    let binary = Binary { under, ..binary.clone() };
    let mut service = Service::start(&binary, &data, Rate::NeverMet, &[])?;
    service.operate("PUT", "/v1/scopes/default/default/web", &fleet_of_one())?;
    let reboot = json!({ "type": "Reboot", "vms": ["web-0"], "not_before": "2099-01-01T00:00:00Z" });
    service.operate("POST", "/v1/events", &reboot)?;
    match mode {
        Mode::KeepAlive => {
            let mut guest = service.guest(Ipv4Addr::LOCALHOST)?;
            for _ in 0..polls {
                let answer = guest.ask("GET", POLL, "")?;
                anyhow::ensure!(answer.status == 200, "a poll was answered {}", answer.status);
            }
        }
        Mode::ConnectionEach => {
            for _ in 0..polls {
                let headers = "Metadata: true\r\nConnection: close\r\n".to_owned();
                let mut guest = Client::connect(Ipv4Addr::LOCALHOST, service.guest, headers)?;
                let answer = guest.ask("GET", POLL, "")?;
                anyhow::ensure!(answer.status == 200, "a poll was answered {}", answer.status);
                // The service closes it, as it was asked to.
                let more = guest.stream().read(&mut [0])?;
                anyhow::ensure!(more == 0, "a connection that was to be closed goes on");
            }
        }
    }
    service.terminate()
}
