//! wrk, other people's load generator: one thread, 64 connections, each asking again as soon as it is answered.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;

use crate::process::output;
use crate::service::POLL;

/// What wrk asks for.
#[derive(Clone, Debug, Default)]
pub struct Asking {
    /// Headers besides `Metadata`.
    pub headers: Vec<String>,
    /// A script in Lua that makes another request of it.
    pub script: Option<PathBuf>,
}

/// Asks for so long, and gives how many answers came. All of them must be good ones.
pub fn run(to: SocketAddr, asking: &Asking, span: Duration) -> anyhow::Result<u64> {
    let mut command = Command::new("wrk");
    command.args(["--threads", "1", "--connections", "64", "--timeout", "10s"]);
    command.args(["--duration", &format!("{}s", span.as_secs().max(1))]);
    command.args(["--header", "Metadata: true"]);
    for header in &asking.headers {
        command.args(["--header", header]);
    }
    if let Some(script) = &asking.script {
        command.arg("--script").arg(script);
    }
    let said = output(command.arg(format!("http://{to}{POLL}")))?;
    for bad in ["Non-2xx", "Socket errors"] {
        anyhow::ensure!(!said.contains(bad), "wrk met trouble at {to}:\n{said}");
    }
    let line = said.lines().find(|line| line.contains(" requests in ")).context("wrk counted nothing")?;
    line.split_whitespace().next().and_then(|count| count.parse().ok()).context("wrk counted nothing")
}
