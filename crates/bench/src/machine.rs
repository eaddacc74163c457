//! The machine that a run was made on, without which its numbers mean little.

use std::fmt;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::process::{Cores, output};
use crate::{clock, nginx};

/// What is worth knowing of it.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor.
    pub cpu: String,
    /// How many cores it shows.
    pub cores: usize,
    /// The core that serves.
    pub server_core: usize,
    /// The core that makes the load.
    pub load_core: usize,
    /// The kernel.
    pub kernel: String,
    /// The nginx that the service is compared with.
    pub nginx: String,
    /// The commit that was measured, with a mark if the tree had changes.
    pub commit: String,
    /// When.
    pub date: String,
}

impl Machine {
    /// Looks at this one. `root` is the source tree.
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
