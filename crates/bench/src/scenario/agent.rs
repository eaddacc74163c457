//! The agent: memory and CPU when idle, latency from event to hook, time for hooks, and latency of the approval.
//!
//! Measured against a mock of Azure's endpoint ([`Endpoint`]), which it has to poll, and against the service, which
//! supports long polls. Hooks record the time with `date`; shell and `date` count against the agent.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use jiff::{Timestamp, ToSpan};
use notbefore_wire::operator::EventStatus;
use serde_json::{Value, json};

use super::Bench;
use crate::clock;
use crate::endpoint::Endpoint;
use crate::process::{CoreSet, End, Owned, output, pinned, tail};
use crate::random::Random;
use crate::report::Goal;
use crate::service::{Rate, Service};
use crate::usage;

/// Name of the VM.
const VM: &str = "bench-0";

/// Timeout of any single wait.
const PATIENCE: Duration = Duration::from_secs(45);

/// Writes the time in nanoseconds to a file.
const NOTE: &str = "date +%s%N >>";

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    idle(bench)?;
    idle_after_events(bench)?;
    polling(bench)?;
    waiting(bench)?;
    preempt(bench)
}

/// An agent and its working directory.
struct Agent {
    process: Owned,
    dir: PathBuf,
}

impl Agent {
    /// Starts an agent that runs a shell line before every event.
    fn start(bench: &Bench, name: &str, vm: &str, endpoint: SocketAddr, hook: &str) -> anyhow::Result<Self> {
        Self::start_with(bench, name, vm, endpoint, hook, "")
    }

    /// Starts an agent with additional configuration.
    fn start_with(
        bench: &Bench,
        name: &str,
        vm: &str,
        endpoint: SocketAddr,
        hook: &str,
        more: &str,
    ) -> anyhow::Result<Self> {
        let dir = bench.directory(name)?;
        let hook = hook.replace("{dir}", &dir.display().to_string());
        let config = format!(
            "endpoint = \"http://{endpoint}\"\nname = \"{vm}\"\nstate = \"{}\"\nlisten = \"127.0.0.1:0\"\n\
             {more}[[rule]]\nname = \"bench\"\n[[rule.before]]\nshell = '''{hook}'''\n",
            dir.join("state").display()
        );
        std::fs::write(dir.join("agent.toml"), config)?;
        let mut command = pinned(CoreSet::Anywhere, End::Kill, &bench.binary.path);
        command.args(["agent", "run", "--config"]).arg(dir.join("agent.toml"));
        command.stdout(Stdio::null()).stderr(File::create(dir.join("log"))?);
        Ok(Self { process: Owned::spawn(&mut command, End::Kill)?, dir })
    }

    /// The times that a hook recorded in a file, once there are this many.
    fn recorded_times(&self, file: &str, count: usize) -> anyhow::Result<Vec<Timestamp>> {
        let path = self.dir.join(file);
        wait(|| {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let times = text.lines().filter_map(|line| Timestamp::from_nanosecond(line.parse().ok()?).ok());
            Some(times.collect::<Vec<_>>()).filter(|times| times.len() >= count)
        })
        .with_context(|| format!("waiting for {count} lines in {file}; the agent logged:\n{}", self.log()))
    }

    fn log(&self) -> String {
        tail(&self.dir.join("log"))
    }

    /// Number of log lines with this text.
    fn count_log_lines(&self, words: &str) -> usize {
        let log = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        log.lines().filter(|line| line.contains(words)).count()
    }
}

/// Polls until a value appears.
fn wait<T>(mut look: impl FnMut() -> Option<T>) -> anyhow::Result<T> {
    let until = clock::now() + PATIENCE;
    while clock::now() < until {
        if let Some(found) = look() {
            return Ok(found);
        }
        clock::pause(Duration::from_millis(5));
    }
    anyhow::bail!("no result within {PATIENCE:?}")
}

fn event(id: &str, kind: &str, not_before: Timestamp) -> Value {
    let not_before = not_before.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    json!({
        "EventId": id, "EventStatus": "Scheduled", "EventType": kind, "ResourceType": "VirtualMachine",
        "Resources": [VM], "NotBefore": not_before, "Description": "", "EventSource": "Platform",
        "DurationInSeconds": -1,
    })
}

fn milliseconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64() * 1e3
}

fn p99(mut spans: Vec<f64>) -> f64 {
    spans.sort_by(f64::total_cmp);
    spans[(spans.len() * 99).div_ceil(100) - 1]
}

fn resident(pid: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("a process without memory")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024.0 / 1e6)
}

fn idle(bench: &mut Bench) -> anyhow::Result<()> {
    let endpoint = Endpoint::start()?;
    let agent = Agent::start(bench, "at-rest", VM, endpoint.address, "true")?;
    wait(|| (endpoint.polls() >= 3).then_some(())).with_context(|| agent.log())?;
    let pid = agent.process.pid();
    let (mut cpu, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds().min(5) {
        let (polls, used, began) = (endpoint.polls(), usage::cpu(pid)?, clock::now());
        clock::pause(Duration::from_secs(10));
        let (used, took) = (usage::cpu(pid)? - used, began.elapsed());
        let polls = endpoint.polls() - polls;
        anyhow::ensure!((8..=11).contains(&polls), "{polls} polls in ten seconds are not one a second");
        cpu.push(used.as_secs_f64() / took.as_secs_f64() * 100.0);
        memory.push(resident(pid)?);
    }
    bench.measured("idle agent: CPU of one core, one poll a second", "%", &cpu, Goal::at_most(0.1, 0.05));
    bench.measured("idle agent: resident memory", "MB", &memory, Goal::at_most(10.0, 8.0));
    Ok(())
}

/// Memory of an agent that has worked: three events with a hook each, and a notification over HTTPS with an untrusted
/// certificate for each. Memory that this needed stays allocated.
fn idle_after_events(bench: &mut Bench) -> anyhow::Result<()> {
    let administrator = Administrator::start(bench)?;
    let endpoint = Endpoint::start()?;
    let notify = format!("[notify]\nurl = \"https://{}/\"\n", administrator.address);
    let hook = format!("{NOTE} {{dir}}/begun");
    let agent = Agent::start_with(bench, "at-rest-again", VM, endpoint.address, &hook, &notify)?;
    for round in 1..=3 {
        let id = format!("00000000-0000-4000-a000-{round:012}");
        endpoint.show(vec![event(&id, "Freeze", clock::wall() + 15.minutes())]);
        wait(|| endpoint.approved(&id)).with_context(|| agent.log())?;
        wait(|| (agent.count_log_lines("notification failed") >= round).then_some(()))
            .with_context(|| agent.log())?;
        endpoint.show(vec![]);
    }
    let polls = endpoint.polls();
    wait(|| (endpoint.polls() >= polls + 3).then_some(())).with_context(|| agent.log())?;
    let memory = resident(agent.process.pid())?;
    let what = "idle agent after three events with https notifications: resident memory";
    bench.measured(what, "MB", &[memory], None);
    Ok(())
}

/// A TLS server: openssl with a self-signed certificate.
struct Administrator {
    address: SocketAddr,
    _process: Owned,
}

impl Administrator {
    fn start(bench: &Bench) -> anyhow::Result<Self> {
        let dir = bench.directory("administrator")?;
        let (key, certificate, log) = (dir.join("key.pem"), dir.join("certificate.pem"), dir.join("log"));
        let mut request = Command::new("openssl");
        request.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
        request.args(["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]);
        request.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"]);
        output(request.arg(&key).arg("-out").arg(&certificate))?;
        let mut server = pinned(CoreSet::Anywhere, End::Kill, "openssl");
        server.args(["s_server", "-accept", "127.0.0.1:0", "-www", "-key"]).arg(&key);
        server.arg("-cert").arg(&certificate).stdin(Stdio::null());
        let process = Owned::spawn(server.stdout(File::create(&log)?).stderr(Stdio::null()), End::Kill)?;
        let address = wait(|| {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            text.lines().find_map(|line| line.strip_prefix("ACCEPT ")?.parse().ok())
        })
        .context("openssl printed no address")?;
        Ok(Self { address, _process: process })
    }
}

fn polling(bench: &mut Bench) -> anyhow::Result<()> {
    let endpoint = Endpoint::start()?;
    let hook = format!("{NOTE} {{dir}}/begun");
    let agent = Agent::start(bench, "polling", VM, endpoint.address, &hook)?;
    wait(|| (endpoint.polls() >= 2).then_some(())).with_context(|| agent.log())?;
    let mut random = Random::new(7);
    let (mut to_hook, mut to_approval) = (Vec::new(), Vec::new());
    for round in 1..=if bench.quick { 15 } else { 100 } {
        // Not in phase with the polls.
        clock::pause(Duration::from_millis(random.below(1_000) as u64));
        let id = format!("00000000-0000-4000-8000-{round:012}");
        let shown = endpoint.show(vec![event(&id, "Freeze", clock::wall() + 15.minutes())]);
        let begun = agent.recorded_times("begun", round)?[round - 1];
        let approved = wait(|| endpoint.approved(&id)).with_context(|| agent.log())?;
        to_hook.push(milliseconds(shown, begun));
        to_approval.push(milliseconds(begun, approved));
        endpoint.show(vec![]);
    }
    bench.measured(
        "event published to first hook, polling, p99",
        "ms",
        &[p99(to_hook)],
        Goal::at_most(1_200.0, 1_100.0),
    );
    let goal = Goal::at_most(500.0, 100.0);
    bench.measured("last hook to approval at the platform, p99", "ms", &[p99(to_approval)], goal);
    Ok(())
}

fn waiting(bench: &mut Bench) -> anyhow::Result<()> {
    let data = bench.directory("waiting")?.join("data");
    let service = Service::start_anywhere(&bench.binary, &data, Rate::Usual, &[])?;
    let vms = service.operate("GET", "/v1/vms", &Value::Null)?;
    let vm = vms["items"][0]["name"].as_str().context("a service without its first VM")?;
    let hook = format!("{NOTE} {{dir}}/begun");
    let agent = Agent::start(bench, "waiting-agent", vm, service.guest, &hook)?;
    // Warm-up events are not counted.
    let (mut to_hook, warm) = (Vec::new(), 3);
    let mut random = Random::new(8);
    for round in 1..=warm + if bench.quick { 10 } else { 50 } {
        // An event is three changes, and an agent applies a burst of changes and then one a second.
        clock::pause(Duration::from_millis(3_000 + random.below(1_000) as u64));
        let requested = clock::wall();
        let made = service.operate("POST", "/v1/events", &json!({ "type": "Freeze", "vms": [vm] }))?;
        let begun = agent.recorded_times("begun", round)?[round - 1];
        if round > warm {
            to_hook.push(milliseconds(requested, begun));
        }
        let id = made["targets"][0]["event"].as_str().context("an operation without an event")?.to_owned();
        // It is approved and started at once.
        let started = || service.operate("GET", &format!("/v1/events/{id}"), &Value::Null).ok();
        wait(|| started().filter(|event| event["status"] == EventStatus::Started.as_str()))?;
        service.operate("POST", &format!("/v1/events/{id}/complete"), &json!({}))?;
    }
    let goal = Goal::at_most(100.0, 50.0);
    bench.measured(
        "event requested to first hook, long poll, after a pause, p99",
        "ms",
        &[p99(to_hook)],
        goal,
    );
    Ok(())
}

fn preempt(bench: &mut Bench) -> anyhow::Result<()> {
    let endpoint = Endpoint::start()?;
    // Works until it is stopped.
    let hook = format!(
        "trap '{NOTE} {{dir}}/ended; exit 0' TERM; {NOTE} {{dir}}/begun; while :; do sleep 0.02; done"
    );
    let agent = Agent::start(bench, "preempt", VM, endpoint.address, &hook)?;
    wait(|| (endpoint.polls() >= 2).then_some(())).with_context(|| agent.log())?;
    let mut random = Random::new(9);
    let mut had = Vec::new();
    for round in 1..=if bench.quick { 2 } else { 8 } {
        clock::pause(Duration::from_millis(random.below(1_000) as u64));
        let id = format!("00000000-0000-4000-9000-{round:012}");
        // As the service does: whole seconds, rounded up.
        let not_before =
            Timestamp::from_second((clock::wall() + 30.seconds() + 999.milliseconds()).as_second())?;
        let shown = endpoint.show(vec![event(&id, "Preempt", not_before)]);
        let begun = agent.recorded_times("begun", round)?[round - 1];
        let ended = agent.recorded_times("ended", round)?[round - 1];
        // Subtract what rounding added.
        let lost = milliseconds(shown, not_before) - milliseconds(begun, ended);
        had.push(30.0 - lost / 1e3);
        endpoint.show(vec![]);
        clock::pause(Duration::from_secs(2));
    }
    let least = had.into_iter().min_by(f64::total_cmp).context("no round")?;
    let what = "time for hooks of Preempt's 30 seconds, minimum";
    bench.measured(what, "s", &[least], Goal::at_least(28.0, 28.5));
    Ok(())
}
