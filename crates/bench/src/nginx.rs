//! nginx as the baseline: one worker that checks the header and returns the same document.
//!
//! Its configuration is minimal. Unlike the service it writes no ETag and no request id; nothing slows it down.

use std::fmt::Write as _;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use crate::clock;
use crate::process::{CoreSet, End, Owned, pinned, tail};

/// A running nginx, with one listener per request type, so that none pays for another's checks.
pub struct Nginx {
    process: Owned,
    /// Returns the document.
    pub poll: SocketAddr,
    /// Returns 304 if `If-None-Match` has the document's tag.
    pub not_modified: SocketAddr,
    /// Returns 200 without a body.
    pub approval: SocketAddr,
}

impl Nginx {
    /// Starts nginx in a directory, serving a document.
    pub fn start(core: usize, dir: &Path, document: &str, etag: &str) -> anyhow::Result<Self> {
        anyhow::ensure!(!document.contains(['\'', '$', '\\']), "nginx would read more into {document}");
        let [poll, not_modified, approval] = free_ports()?;
        let log = dir.join("nginx.log");
        let config = dir.join("nginx.conf");
        std::fs::write(&config, config_text(dir, document, etag, [poll, not_modified, approval])?)?;
        let mut command = pinned(CoreSet::Core(core), End::Terminate, "nginx");
        command.arg("-p").arg(dir).arg("-c").arg(&config).args(["-e", "stderr"]);
        command.stdout(Stdio::null()).stderr(File::create(&log)?);
        let mut process = Owned::spawn(&mut command, End::Terminate)?;
        for _ in 0..500 {
            if TcpStream::connect(poll).is_ok() {
                return Ok(Self { process, poll, not_modified, approval });
            }
            if process.child().try_wait()?.is_some() {
                break;
            }
            clock::pause(Duration::from_millis(10));
        }
        anyhow::bail!("nginx did not start:\n{}", tail(&log))
    }

    /// Process id of the master; the worker is its child.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// Version of nginx.
pub fn version() -> anyhow::Result<String> {
    let output = Command::new("nginx").arg("-v").output().context("running nginx -v; is it installed?")?;
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Ok(stderr.split(": ").last().unwrap_or(&stderr).to_owned())
}

fn config_text(
    dir: &Path,
    document: &str,
    etag: &str,
    [poll, not_modified, approval]: [SocketAddr; 3],
) -> anyhow::Result<String> {
    let mut text = format!(
        "daemon off;\nworker_processes 1;\npid {0}/nginx.pid;\nerror_log stderr error;\n\
         worker_rlimit_nofile 20000;\nevents {{ worker_connections 16000; }}\n\
         http {{\n  access_log off;\n  keepalive_requests 100000000;\n  keepalive_timeout 180s;\n  default_type application/json;\n\
         \x20 client_body_temp_path {0}/bodies;\n",
        dir.display()
    );
    let header = "if ($http_metadata != \"true\") { return 400; }";
    let unchanged = format!("if ($http_if_none_match = \"{etag}\") {{ return 304; }}");
    for (listen, also, answer) in [
        (poll, String::new(), format!("return 200 '{document}';")),
        (not_modified, unchanged, format!("return 200 '{document}';")),
        (approval, String::new(), "return 200;".to_owned()),
    ] {
        writeln!(
            text,
            "  server {{ listen {listen}; location = /metadata/scheduledevents {{ {header} {also} {answer} }} }}"
        )?;
    }
    text.push_str("}\n");
    Ok(text)
}

/// Ports that were free a moment ago; nginx cannot choose its own.
fn free_ports() -> anyhow::Result<[SocketAddr; 3]> {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let held = [bind()?, bind()?, bind()?];
    Ok([held[0].local_addr()?, held[1].local_addr()?, held[2].local_addr()?])
}
