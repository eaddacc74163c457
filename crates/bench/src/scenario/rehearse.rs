//! `notbefore rehearse`: time to the first answer, time of the whole library, and a scope of 1,000 polling VMs.
//!
//! A person or a CI job waits for each of these, so the times are those of whole processes, on both cores.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

use anyhow::Context;
use serde_json::Value;

use super::Bench;
use crate::clock;
use crate::http::Client;
use crate::process::{CoreSet, End, Owned, output, pinned};
use crate::report::Goal;
use crate::service::POLL;

/// VMs that the rehearsal polls, beside the one with a handler: a scope has at most 1,000.
const CROWD: usize = 999;

/// The handler, which calls the hook of the rehearsal.
const AGENT: [&str; 6] = ["--drained", "call", "--restored", "call", "--", "examples/rehearse/agent.sh"];

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    bench.cores.use_both()?;
    let done = first_answer(bench).and_then(|()| crowd(bench)).and_then(|()| library(bench));
    bench.cores.pin_to_load_core()?;
    done
}

/// From the start of the process to the answer of the first poll. The URL is read from the rehearsal's output.
fn first_answer(bench: &mut Bench) -> anyhow::Result<()> {
    let mut times = Vec::new();
    for _ in 0..2 * bench.rounds() {
        let mut command = pinned(CoreSet::Anywhere, End::Terminate, &bench.binary.path);
        command.args(["rehearse", "user-reboot"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let begun = clock::now();
        let mut rehearsal = Owned::spawn(&mut command, End::Terminate)?;
        let printed = rehearsal.child().stderr.take().context("the rehearsal's messages")?;
        let listener = BufReader::new(printed).lines().find_map(|line| address(&line.ok()?));
        let listener = listener.context("the rehearsal printed no URL")?;
        let answer = Client::guest(Ipv4Addr::LOCALHOST, listener)?.request("GET", POLL, "")?;
        anyhow::ensure!(answer.status == 200, "the first poll was answered {}", answer.status);
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    bench.measured("first poll answered after the command", "ms", &times, Goal::at_most(200.0, 100.0));
    Ok(())
}

/// The address in a line with a URL.
fn address(line: &str) -> Option<SocketAddr> {
    line.split("://").nth(1)?.split('/').next()?.parse().ok()
}

/// One event for a scope of many VMs, each polled once a second by the rehearsal. Its waits are those of a scope of one,
/// so its time is, too.
fn crowd(bench: &mut Bench) -> anyhow::Result<()> {
    let dir = bench.directory("rehearse")?;
    let mut times = Vec::new();
    for vms in [1, CROWD] {
        let scenario = dir.join(format!("crowd-{vms}.yaml"));
        std::fs::write(
            &scenario,
            format!(
                "summary: A restart in a scope of {vms} VMs\n\
                 vms: [web-0, {{ name: crowd, count: {vms}, polled: true }}]\n\
                 steps:\n  - {{ at: 30s, schedule: {{ event: restart, cause: user-restart, vms: [web-0] }} }}\n\
                 expect:\n  - approves: restart\n"
            ),
        )?;
        let begun = clock::now();
        let shown = output(rehearse(bench, &["--output", "json", "rehearse"]).arg(&scenario).args(AGENT))?;
        times.push(begun.elapsed().as_secs_f64());
        let report: Value = serde_json::from_str(&shown)?;
        let crowd = &report["recording"]["crowd"];
        anyhow::ensure!(crowd["failures"] == 0, "polls of {vms} VMs failed: {crowd}");
        bench.progress(&format!("{vms} VMs: {} answers", crowd["answers"]));
    }
    let [one, many] = times[..] else { anyhow::bail!("two runs") };
    bench.measured("one event, a scope of one polling VM", "s", &[one], None);
    bench.measured(&format!("one event, a scope of {CROWD} polling VMs"), "s", &[many], None);
    let what = format!("time of a rehearsal, {CROWD} polling VMs ÷ one");
    bench.measured(&what, "", &[many / one], Goal::at_most(1.5, 1.1));
    Ok(())
}

/// Every scenario, played to the agent, which must pass them all.
fn library(bench: &mut Bench) -> anyhow::Result<()> {
    let begun = clock::now();
    output(rehearse(bench, &["rehearse", "doctor", "--compress", "120"]).args(AGENT))?;
    let took = begun.elapsed().as_secs_f64();
    bench.measured(
        "rehearse doctor --compress 120, all scenarios, agent",
        "s",
        &[took],
        Goal::at_most(300.0, 240.0),
    );
    Ok(())
}

/// The command, which finds itself in the path: the agent is the same binary.
fn rehearse(bench: &Bench, words: &[&str]) -> Command {
    let mut command = Command::new(&bench.binary.path);
    let place = bench.binary.path.parent().map(|place| place.display().to_string()).unwrap_or_default();
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{place}:{path}")).args(words);
    command
}
