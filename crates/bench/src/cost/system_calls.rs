//! System calls of one poll, counted by strace.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use super::{Mode, Store, polled};
use crate::clock;
use crate::service::Binary;

/// Number of polls in the shorter run.
const POLLS: u32 = 500;

/// Allowed calls of a poll with their limits. Variants of a call count as one.
fn allowed(mode: Mode) -> &'static [(&'static str, u32)] {
    match mode {
        Mode::KeepAlive => &[("wait", 1), ("read", 1), ("write", 1)],
        // `accept` runs until it would block, and wakes once more than needed. A request that arrives after its
        // connection is accepted costs another read and a registration.
        Mode::ConnectionEach => {
            &[("wait", 2), ("accept", 3), ("read", 2), ("write", 1), ("close", 1), ("epoll_ctl", 1)]
        }
    }
}

/// The group that a call belongs to.
fn kind(call: &str) -> &str {
    match call {
        "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => "wait",
        "read" | "recvfrom" | "recvmsg" => "read",
        "write" | "writev" | "sendto" | "sendmsg" => "write",
        "accept" | "accept4" => "accept",
        other => other,
    }
}

/// Counts and compares with the limits.
pub fn check_limit(binary: &Binary, dir: &Path, mode: Mode) -> anyhow::Result<bool> {
    let some = counted(binary, dir, mode, POLLS)?;
    let more = counted(binary, dir, mode, 2 * POLLS)?;
    let allowed: BTreeMap<&str, f64> =
        allowed(mode).iter().map(|&(kind, count)| (kind, f64::from(count))).collect();
    let mut each: BTreeMap<&str, f64> = BTreeMap::new();
    for (call, count) in &more {
        let before = some.get(call).copied().unwrap_or_default();
        *each.entry(kind(call)).or_default() += (count - before) / f64::from(POLLS);
    }
    // Timers add a few calls in hundreds of polls.
    each.retain(|_, count| *count > 0.1);
    // A poll without a read or a write was not traced.
    let seen = ["read", "write"].iter().all(|kind| each.get(kind).is_some_and(|count| *count > 0.9));
    anyhow::ensure!(seen, "strace has not seen the polls of a {}: {each:?}", mode.name());
    let good = each.iter().all(|(kind, count)| allowed.get(kind).is_some_and(|most| *count < most + 0.1));
    let list = |calls: &BTreeMap<&str, f64>| {
        let calls: Vec<String> = calls.iter().map(|(kind, count)| format!("{kind} {count:.1}")).collect();
        calls.join(", ")
    };
    println!("system calls of a {}: {}", mode.name(), list(&each));
    if !good {
        println!("  that is more than crates/bench/src/cost/system_calls.rs allows: {}", list(&allowed));
    }
    Ok(good)
}

/// Calls of a run, by name.
fn counted(binary: &Binary, dir: &Path, mode: Mode, polls: u32) -> anyhow::Result<BTreeMap<String, f64>> {
    let file = dir.join("strace");
    let _ = std::fs::remove_file(&file);
    let out = file.to_str().context("a path that is no text")?;
    polled(binary, &["strace", "-D", "-f", "-c", "-o", out], dir, (Store::Redb, mode), polls)?;
    // strace exits a moment after the traced process.
    for _ in 0..500 {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if text.trim_end().ends_with("total") {
            return Ok(text.lines().filter_map(line).collect());
        }
        clock::pause(Duration::from_millis(10));
    }
    anyhow::bail!("strace has written nothing; is it installed, and may it trace?")
}

/// A line of strace's summary: `% time, seconds, usecs/call, calls, errors, syscall`; the errors column may be empty.
fn line(line: &str) -> Option<(String, f64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let name = *words.last()?;
    let calls: f64 = words.get(3)?.parse().ok()?;
    (name != "total").then(|| (name.to_owned(), calls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_read() {
        let text = "% time     seconds  usecs/call     calls    errors syscall\n\
                    ------ ----------- ----------- --------- --------- ----------------\n \
                    50.00    0.000100           1       502           recvfrom\n \
                    25.00    0.000050           1        41        20 openat\n\
                    100.00    0.000150                   543        20 total\n";
        let read: Vec<(String, f64)> = text.lines().filter_map(line).collect();
        assert_eq!(read, [("recvfrom".to_owned(), 502.0), ("openat".to_owned(), 41.0)]);
    }
}
