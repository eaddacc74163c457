//! CPU time and memory of a process, as counted by the kernel.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::Context;

use crate::clock;

/// Number of equal samples in a row, a quarter of a second apart.
const STEADY: usize = 8;

/// Most samples.
const SETTLING_MAX: usize = 80;

/// CPU time of a process and its children so far.
///
/// `schedstat` of each thread counts nanoseconds, `stat` only hundredths of a second. The count of an ended thread is
/// lost, which matters little: servers under load keep their threads.
pub fn cpu(pid: u32) -> anyhow::Result<Duration> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).context("reading the threads of a server")? {
        let thread = thread.context("reading the threads of a server")?.path();
        // The thread may have ended since it was listed.
        let Ok(line) = std::fs::read_to_string(thread.join("schedstat")) else { continue };
        let first = line.split(' ').next().and_then(|number| number.parse::<u64>().ok());
        nanoseconds += first.context("a schedstat without a number")?;
        let children = std::fs::read_to_string(thread.join("children")).context("asking for children")?;
        for child in children.split_whitespace() {
            nanoseconds += u64::try_from(cpu(child.parse()?)?.as_nanos())?;
        }
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Proportional set size (PSS) of a process and its children, in bytes.
pub fn memory(pid: u32) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))
        .with_context(|| format!("reading the memory of process {pid}"))?;
    let pss = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib =
        pss.and_then(|rest| rest.split_whitespace().next()).and_then(|number| number.parse::<u64>().ok());
    let mut bytes = kib.context("no Pss in smaps_rollup")? * 1024;
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    for child in children.split_whitespace() {
        bytes += memory(child.parse()?)?;
    }
    Ok(bytes)
}

/// Memory of a process once it is stable. Allocators release memory gradually and only while they work, so the
/// process gets requests meanwhile.
pub fn settled_memory(pid: u32, mut nudge: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<u64> {
    let mut seen = VecDeque::new();
    for _ in 0..SETTLING_MAX {
        for _ in 0..20 {
            nudge()?;
        }
        clock::pause(Duration::from_millis(250));
        seen.push_back(memory(pid)?);
        if seen.len() > STEADY {
            seen.pop_front();
            let (least, most) = (seen.iter().min(), seen.iter().max());
            if let (Some(least), Some(most)) = (least, most)
                && most - least <= least / 500
            {
                return Ok(*least);
            }
        }
    }
    seen.back().copied().context("a process whose memory was never seen")
}

/// Raises the limit of open files to its maximum and returns it.
pub fn raise_open_files() -> anyhow::Result<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(1 << 20);
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum })
        .context("raising the limit of open files")?;
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_something() {
        let before = cpu(std::process::id()).unwrap();
        let sum: u64 = std::hint::black_box((0..20_000_000_u64).map(|n| n ^ (n >> 3)).sum());
        assert_ne!(sum, 0);
        assert!(cpu(std::process::id()).unwrap() > before);
        assert!(memory(std::process::id()).unwrap() > 100_000);
    }
}
