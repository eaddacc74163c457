//! wrk, an independent load generator: one thread, 64 connections, closed loop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;

use crate::process::output;
use crate::service::POLL;

/// A request for wrk.
#[derive(Clone, Debug, Default)]
pub struct WrkRequest {
    /// Headers besides `Metadata`.
    pub headers: Vec<String>,
    /// A Lua script that modifies the request.
    pub script: Option<PathBuf>,
}

/// Runs wrk for a time; returns the number of responses. All must be successful.
pub fn run(to: SocketAddr, request: &WrkRequest, span: Duration) -> anyhow::Result<u64> {
    let mut command = Command::new("wrk");
    command.args(["--threads", "1", "--connections", "64", "--timeout", "10s"]);
    command.args(["--duration", &format!("{}s", span.as_secs().max(1))]);
    command.args(["--header", "Metadata: true"]);
    for header in &request.headers {
        command.args(["--header", header]);
    }
    if let Some(script) = &request.script {
        command.arg("--script").arg(script);
    }
    let stdout = output(command.arg(format!("http://{to}{POLL}")))?;
    for bad in ["Non-2xx", "Socket errors"] {
        anyhow::ensure!(!stdout.contains(bad), "wrk reports errors at {to}:\n{stdout}");
    }
    let line = stdout.lines().find(|line| line.contains(" requests in ")).context("wrk counted nothing")?;
    line.split_whitespace().next().and_then(|count| count.parse().ok()).context("wrk counted nothing")
}
