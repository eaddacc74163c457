//! Crash test: `kill -9` at random moments under load. No acknowledged command is missing afterwards, and none is
//! applied twice.
//!
//! Eight [`client`]s work against one service with one data directory. Each keeps a [`ledger`] of its requests and
//! responses. A round has these steps:
//! - Start the service, sometimes killing it during startup, sometimes twice.
//! - The [`judge`] compares its state with the ledgers.
//! - Run load, and kill the service after 0 to a few hundred client steps. Steps instead of milliseconds make the test
//!   independent of the machine's speed.
//!
//! An interrupted command is *in doubt*: its client repeats it under the same Idempotency-Key in later rounds until it
//! is answered, and it must have taken effect once. At the end no command is in doubt, and all acknowledged ones are
//! checked again.
//!
//! A killed process loses only unwritten data; data written but not synced survives here. The store's own crash images
//! test that it syncs before it answers.
//!
//! The seed is printed and can be set with `NOTBEFORE_SEED`; `NOTBEFORE_CRASH_ROUNDS` sets the number of rounds. The
//! seed determines each client's choices, but not the exact moment of a kill.

mod client;
mod fleet;
mod http;
mod judge;
pub mod ledger;
pub mod random;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use crate::support;
use crate::support::Service;
use crate::support::pause;
use client::{Client, Load};
use fleet::Fleet;
use http::{Endpoints, Operator};
use judge::Judge;
use ledger::{Found, Violation};
use random::Random;
use tempfile::TempDir;

const CLIENTS: usize = 8;
/// Number of kills under load.
const KILLS: usize = 110;
/// Number of SIGTERMs under load.
const TERMINATIONS: usize = 8;
/// Time limit of a SIGTERM.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// Notice of seconds and events of one second, so that events also start and end by time.
const FLAGS: [&str; 4] = ["--notice", "0.01", "--simulated-duration", "1s"];

/// A service, its clients and their ledgers.
struct Trial {
    seed: u64,
    round: usize,
    random: Random,
    data: TempDir,
    clients: Vec<Client>,
    judge: Judge,
    killed_starting: usize,
}

impl Trial {
    /// Makes the fleet.
    fn new(what: &str) -> Self {
        let seed = Random::seed();
        println!("{what}: NOTBEFORE_SEED={seed}");
        let mut random = Random::new(seed);
        let data = tempfile::tempdir().unwrap();
        let service = Service::start_in(data.path(), &FLAGS);
        service.apply_fleet(&Fleet::yaml());
        let fleet = Arc::new(Fleet::listed(Operator::new(&endpoints(&service)).read_all("/v1/vms?")));
        let client = |number| Client::new(number, random.fork(), Arc::clone(&fleet), seed);
        let clients = (0..CLIENTS).map(client).collect();
        let judge = Judge::new(fleet, CLIENTS);
        Self { seed, round: 0, random, data, clients, judge, killed_starting: 0 }
    }

    /// Starts the service over the same data; sometimes kills it once or several times during startup.
    fn start(&mut self) -> Service {
        while self.random.chance(25) {
            self.kill_while_starting();
        }
        Service::start_in(self.data.path(), &FLAGS)
    }

    fn kill_while_starting(&mut self) {
        let mut command = Command::new(support::binary());
        command.arg("serve").arg("--data").arg(self.data.path());
        command.args(["--operator", "127.0.0.1:0", "--guest", "127.0.0.1:0"]).args(FLAGS);
        let mut child = command.stdout(Stdio::null()).env("NOTBEFORE_LOG", "warn").spawn().unwrap();
        let moment = Duration::from_millis(self.random.within(0..=60));
        pause(moment, "the kill comes at a random moment of the start");
        child.kill().unwrap();
        child.wait().unwrap();
        self.killed_starting += 1;
    }

    /// Runs the clients for this many steps and a random moment more; then `end` ends the service while they run.
    fn under_load(&mut self, service: &mut Service, steps: u64, end: impl FnOnce(&mut Service)) {
        let (endpoints, load, round) = (endpoints(service), Load::default(), self.round);
        let moment = Duration::from_millis(self.random.within(0..=20));
        std::thread::scope(|scope| {
            let work = |client| scope.spawn(|| Client::work(client, round, &endpoints, &load));
            let working: Vec<_> = self.clients.iter_mut().map(work).collect();
            // A client stops when it finds a violation.
            while load.steps.load(Ordering::SeqCst) < steps && !working.iter().all(|one| one.is_finished()) {
                pause(Duration::from_millis(1), "the load runs");
            }
            pause(moment, "the kill comes at a random moment; the checks hold for any");
            load.ending.store(true, Ordering::SeqCst);
            end(service);
        });
        self.fail_on_violation();
    }

    fn check(&mut self, service: &Service) {
        let verdict = self.judge.check(&endpoints(service), &mut self.clients);
        verdict.unwrap_or_else(|violation| self.fail(&violation));
    }

    fn fail_on_violation(&self) {
        if let Some(first) = self.clients.iter().find_map(|client| client.ledger.violations.first()) {
            self.fail(first);
        }
    }

    /// After SIGTERM the service answers every request that it has accepted, so an unanswered one had no effect.
    fn check_unanswered_had_no_effect(&self) {
        let mut unanswered = self.clients.iter().filter_map(|client| client.ledger.in_doubt.as_ref());
        if let Some(in_doubt) = unanswered.find(|in_doubt| matches!(in_doubt.found, Found::Landed(_))) {
            self.fail(&Violation::new(&in_doubt.key, "took effect and was not answered"));
        }
    }

    /// The last round: no kill, every unknown outcome is resolved, everything is checked.
    fn finish(&mut self) {
        self.round += 1;
        let service = Service::start_in(self.data.path(), &FLAGS);
        self.check(&service);
        let endpoints = endpoints(&service);
        for client in &mut self.clients {
            client.resolve_unknown(self.round, &endpoints);
        }
        self.fail_on_violation();
        assert!(
            self.clients.iter().all(|client| client.ledger.in_doubt.is_none()),
            "a command is still in doubt"
        );
        let verdict = self.judge.check_all(&endpoints, &mut self.clients);
        verdict.unwrap_or_else(|violation| self.fail(&violation));
    }

    /// Panics with the violation and the log of the commands that it mentions.
    fn fail(&self, violation: &Violation) -> ! {
        let Violation { text, about } = violation;
        let commands = self
            .clients
            .iter()
            .flat_map(|client| client.ledger.settled.iter().chain(&client.ledger.in_doubt));
        let logs: Vec<String> =
            commands.filter(|command| command.mentions(about)).map(|command| command.log_text()).collect();
        // The newest are the most useful.
        let last = logs[logs.len().saturating_sub(12)..].join("\n");
        panic!("NOTBEFORE_SEED={} round {}: {about}: {text}\n{last}", self.seed, self.round);
    }

    fn reads(&self) -> usize {
        self.clients.iter().map(|client| client.ledger.reads).sum()
    }

    fn repeats(&self) -> usize {
        self.clients.iter().map(|client| client.ledger.repeats).sum()
    }
}

fn rounds(usual: usize) -> usize {
    std::env::var("NOTBEFORE_CRASH_ROUNDS").map_or(usual, |text| text.parse().unwrap())
}

fn endpoints(service: &Service) -> Endpoints {
    let token = std::fs::read_to_string(service.data().join("operator.token")).unwrap();
    Endpoints { guest: service.guest, operator: service.operator, token: token.trim().to_owned() }
}

#[test]
fn kill_9_under_load_loses_and_duplicates_no_command() {
    let rounds = rounds(KILLS);
    let mut trial = Trial::new("kill -9");
    for round in 1..=rounds {
        trial.round = round;
        let mut service = trial.start();
        // Sometimes the load starts before the check, while the service still recovers.
        if trial.random.chance(80) {
            trial.check(&service);
        }
        let steps = trial.random.within(0..=250);
        trial.under_load(&mut service, steps, Service::kill);
    }
    trial.finish();

    let (tally, reads, repeats) = (&trial.judge.tally, trial.reads(), trial.repeats());
    let starting = trial.killed_starting;
    println!(
        "{rounds} kills under load, {starting} while starting, {reads} reads, {repeats} repeats, {tally:#?}"
    );
    assert!(starting > 0, "no kill during startup");
    assert!(tally.acknowledged >= rounds * 15, "too few commands were acknowledged");
    assert!(tally.in_doubt >= rounds / 5, "too few commands were in doubt");
    assert!(tally.landed > 0 && tally.lost > 0, "all unknown outcomes were of one kind");
    assert!(repeats >= rounds && reads >= rounds * 20, "too few repeats or reads");
}

#[test]
fn sigterm_under_load_exits_cleanly_without_unknown_outcomes() {
    let rounds = rounds(TERMINATIONS);
    let mut trial = Trial::new("SIGTERM");
    for round in 1..=rounds {
        trial.round = round;
        let mut service = trial.start();
        trial.check(&service);
        trial.check_unanswered_had_no_effect();
        let steps = trial.random.within(20..=200);
        trial.under_load(&mut service, steps, terminate);
    }
    trial.finish();

    let tally = &trial.judge.tally;
    println!("{tally:#?}");
    assert!(tally.acknowledged >= rounds * 5, "too few commands were acknowledged");
}

/// Sends SIGTERM; the service must exit with 0 within the time limit.
fn terminate(service: &mut Service) {
    let pid = service.pid();
    let (ended, end) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| ended.send(service.terminate()));
        let Ok(status) = end.recv_timeout(CLOSING_MAX) else {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            panic!("the service did not exit within {CLOSING_MAX:?} of SIGTERM");
        };
        assert_eq!(status.code(), Some(0), "exit code after SIGTERM");
    });
}
