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
mod ledger;
mod random;

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

    /// Starts the service over the same data; sometimes it is killed on its way up, sometimes twice.
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
        pause(moment, "a kill comes at any moment of a start");
        child.kill().unwrap();
        child.wait().unwrap();
        self.killed_starting += 1;
    }

    /// Lets the clients work until they have made so many steps, and for a moment more, while `end` ends the service.
    fn under_load(&mut self, service: &mut Service, steps: u64, end: impl FnOnce(&mut Service)) {
        let (endpoints, load, round) = (endpoints(service), Load::default(), self.round);
        let moment = Duration::from_millis(self.random.within(0..=20));
        std::thread::scope(|scope| {
            let work = |client| scope.spawn(|| Client::work(client, round, &endpoints, &load));
            let working: Vec<_> = self.clients.iter_mut().map(work).collect();
            // A client that has found something wrong stops.
            while load.steps.load(Ordering::SeqCst) < steps && !working.iter().all(|one| one.is_finished()) {
                pause(Duration::from_millis(1), "the load runs meanwhile");
            }
            pause(moment, "a kill comes at any moment of the load; no verdict depends on which");
            load.ending.store(true, Ordering::SeqCst);
            end(service);
        });
        self.hear_complaints();
    }

    fn look(&mut self, service: &Service) {
        let verdict = self.judge.check(&endpoints(service), &mut self.clients);
        verdict.unwrap_or_else(|violation| self.give_up(&violation));
    }

    fn hear_complaints(&self) {
        if let Some(first) = self.clients.iter().find_map(|client| client.ledger.violations.first()) {
            self.give_up(first);
        }
    }

    /// A service that was asked to end answers all that it has taken up: what was cut off had no effect.
    fn check_everyone_heard_was_answered(&self) {
        let mut doubts = self.clients.iter().filter_map(|client| client.ledger.doubt.as_ref());
        if let Some(doubt) = doubts.find(|doubt| matches!(doubt.found, Found::Landed(_))) {
            self.give_up(&Violation::new(&doubt.key, "took effect and was not answered"));
        }
    }

    /// The last round: no kill, every doubt is settled, everything is checked.
    fn conclude(&mut self) {
        self.round += 1;
        let service = Service::start_in(self.data.path(), &FLAGS);
        self.look(&service);
        let endpoints = endpoints(&service);
        for client in &mut self.clients {
            client.resolve_unknown(self.round, &endpoints);
        }
        self.hear_complaints();
        assert!(
            self.clients.iter().all(|client| client.ledger.doubt.is_none()),
            "something is still in doubt"
        );
        let verdict = self.judge.check_all(&endpoints, &mut self.clients);
        verdict.unwrap_or_else(|violation| self.give_up(&violation));
    }

    /// Tells the story of what went wrong.
    fn give_up(&self, violation: &Violation) -> ! {
        let Violation { text, about } = violation;
        let commands =
            self.clients.iter().flat_map(|client| client.ledger.settled.iter().chain(&client.ledger.doubt));
        let stories: Vec<String> =
            commands.filter(|command| command.concerns(about)).map(|command| command.story()).collect();
        // The newest ones tell most.
        let last = stories[stories.len().saturating_sub(12)..].join("\n");
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
        // Sometimes the load is there before anybody has looked, while the service still takes up what it
        // was killed in.
        if trial.random.chance(80) {
            trial.look(&service);
        }
        let steps = trial.random.within(0..=250);
        trial.under_load(&mut service, steps, Service::kill);
    }
    trial.conclude();

    let (tally, reads, repeats) = (&trial.judge.tally, trial.reads(), trial.repeats());
    let starting = trial.killed_starting;
    println!(
        "{rounds} kills under load, {starting} while starting, {reads} reads, {repeats} repeats, {tally:#?}"
    );
    assert!(starting > 0, "no kill on the way up");
    assert!(tally.acknowledged >= rounds * 15, "too few commands were acknowledged");
    assert!(tally.in_doubt >= rounds / 5, "too few commands were in doubt");
    assert!(tally.landed > 0 && tally.lost > 0, "all doubts were of one kind");
    assert!(repeats >= rounds && reads >= rounds * 20, "too little was asked twice, or read");
}

#[test]
fn sigterm_under_load_exits_cleanly_without_unknown_outcomes() {
    let rounds = rounds(TERMINATIONS);
    let mut trial = Trial::new("SIGTERM");
    for round in 1..=rounds {
        trial.round = round;
        let mut service = trial.start();
        trial.look(&service);
        trial.check_everyone_heard_was_answered();
        let steps = trial.random.within(20..=200);
        trial.under_load(&mut service, steps, terminate);
    }
    trial.conclude();

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
            panic!("told to end, the service did not within {CLOSING_MAX:?}");
        };
        assert_eq!(status.code(), Some(0), "told to end, the service did not end well");
    });
}
