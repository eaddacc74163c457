//! `notbefore healthy`: one request to a page that needs no token, for health checks of containers.

use std::time::Duration;

use anyhow::{Result, bail};
use notbefore_wire::text::printable;

use crate::args::{self, ConnectionArgs, Output};
use crate::client::{self, PageAnswer};
use crate::output;

/// Timeout of the request. Below the 30 seconds that Docker allows a check by default.
const TIMEOUT: Duration = Duration::from_secs(5);

pub fn run(reach: &ConnectionArgs, healthy: &args::Healthy, output: Output) -> Result<()> {
    let (page, expected) = if healthy.alive { ("/healthz", "ok") } else { ("/readyz", "ready") };
    let PageAnswer { url, status, text } = client::get_page(reach, page, TIMEOUT)?;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if !status.is_success() {
        bail!("the service at {url} is not {expected}: {}", printable(&lines.join("; ")));
    }
    if lines.first().is_none_or(|line| line != expected) {
        bail!(
            "{url}{page} answered {status}, but not as notbefore does; name the service with --operator-url or --data"
        );
    }
    let shown = serde_json::json!({ "healthy": true, "url": url, "answer": lines });
    output.answer(&shown, |_| output::lines(&lines))
}
