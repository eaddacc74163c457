//! Description of the machine of a run.

use std::fmt;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::process::{Cores, output};
use crate::{clock, nginx};

/// The recorded properties.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor.
    pub cpu: String,
    /// Number of visible cores.
    pub cores: usize,
    /// The server's core.
    pub server_core: usize,
    /// The load generator's core.
    pub load_core: usize,
    /// The kernel.
    pub kernel: String,
    /// Version of nginx.
    pub nginx: String,
    /// The measured commit, marked if the tree had changes.
    pub commit: String,
    /// Start of the run.
    pub date: String,
}

impl Machine {
    /// Describes this machine. `root` is the source tree.
    pub fn look(root: &Path, cores: Cores) -> anyhow::Result<Self> {
        let info = std::fs::read_to_string("/proc/cpuinfo")?;
        let model = info.lines().find(|line| line.starts_with("model name"));
        let model = model.and_then(|line| line.split(": ").nth(1)).unwrap_or("unknown processor");
        let describe = ["describe", "--always", "--dirty", "--abbrev=10"];
        let commit = output(Command::new("git").arg("-C").arg(root).args(describe));
        Ok(Self {
            cpu: model.to_owned(),
            cores: info.lines().filter(|line| line.starts_with("processor")).count(),
            server_core: cores.server,
            load_core: cores.load,
            kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            nginx: nginx::version()?,
            commit: commit.unwrap_or_else(|_| "unknown".to_owned()).trim().to_owned(),
            date: clock::wall().strftime("%Y-%m-%d %H:%M UTC").to_string(),
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, cores, kernel, nginx, commit, date, .. } = self;
        write!(f, "{cpu}, {cores} cores, Linux {kernel}, {nginx}, commit {commit}, {date}")
    }
}
