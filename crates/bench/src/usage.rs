//! What a process has used: CPU time and memory, as the kernel counts them.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::Context;

use crate::clock;

/// How many looks in a row must find the same, a quarter of a second apart.
const STEADY: usize = 8;

/// How often it is looked at, at most.
const SETTLING_MAX: usize = 80;

/// The CPU time of a process and its children so far.
///
/// Each thread's `schedstat` counts nanoseconds, where `stat` counts hundredths of a second. A thread that ends
/// takes its count along, which matters little: servers under load keep theirs.
pub fn cpu(pid: u32) -> anyhow::Result<Duration> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).context("reading the threads of a server")? {
        let thread = thread.context("reading the threads of a server")?.path();
        // A thread may have ended since it was listed.
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

/// The memory of a process and its children in bytes: what is theirs alone, and their share of what is not.
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

/// The memory of a process once it stays as it is: an allocator gives back by and by what loading or a crowd took,
/// and only while there is something to do, so the process is nudged meanwhile.
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

/// Raises this process's limit of open files as far as it may go, and says how far that is.
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
