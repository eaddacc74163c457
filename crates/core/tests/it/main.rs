//! The exec driver's state machine: attempts, back-off, takeovers, stale reports, retries.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use jiff::Timestamp;
use notbefore_core::exec::REASON_BYTES_MAX;
use notbefore_core::samples::{self, ContextFixture};
use notbefore_core::{
    Applied, ApplyContext, Cause, Command, CommandState, DriverKind, Ending, Event, EventFact, EventId,
    ExecRun, ExecSettings, Fact, Member, NewEvent, Outcome, Ran, Refusal, Scope, Settings, VmId,
};

const EVENT: EventId = samples::event_id(7);

/// A scope, a clock, a process, and the facts so far.
struct Bench {
    scope: Scope,
    now: Timestamp,
    node: String,
    settings: Settings,
    last: Vec<EventFact>,
    ended: Vec<Outcome>,
}

fn vm(n: u128) -> VmId {
    samples::vm(100 + n)
}

fn running(attempt: u32, left: u32) -> CommandState {
    CommandState::Running { attempt, left }
}

fn done(host: Option<&str>) -> CommandState {
    CommandState::Done { host: host.map(str::to_owned) }
}

fn fails(why: &str) -> Ending {
    Ending::Failed { why: why.to_owned() }
}

fn succeeds() -> Ending {
    Ending::Succeeded { host: None }
}

impl Bench {
    /// A scope of VMs whose hosts have just failed: one event for all of them has started.
    fn new(vms: u128) -> Self {
        Self::with(vms, Settings { driver: DriverKind::Exec, ..Settings::default() })
    }

    fn with(vms: u128, settings: Settings) -> Self {
        let (scope, now) = (samples::scope("web", &[]), samples::now());
        let (last, ended) = (Vec::new(), Vec::new());
        let mut bench = Self { scope, now, node: "n1".to_owned(), settings, last, ended };
        let member = |n| Member { host: Some("h1".to_owned()), ..samples::member(vm(n)) };
        bench.ok(Command::Enrol((0..vms).map(member).collect()));
        let all: Vec<VmId> = (0..vms).map(vm).collect();
        bench.ok(Command::Open(vec![NewEvent {
            driver: bench.settings.driver,
            ..samples::new_event(7, Cause::HostFailure, &all)
        }]));
        bench
    }

    fn apply(&mut self, command: Command) -> Result<(), Refusal> {
        let given =
            ContextFixture { now: self.now, settings: self.settings.clone(), ..ContextFixture::default() };
        let context = ApplyContext { runner: &self.node, ..given.context() };
        let Applied { scope, facts, past, .. } = self.scope.apply(command, context)?;
        assert!(scope.next_due(&[], None, self.now).is_none_or(|due| due > self.now), "invariant 10");
        self.scope = scope;
        let of_events = facts.into_iter().filter_map(|fact| {
            let Fact::Event { what, .. } = fact.fact else { return None };
            Some(what)
        });
        self.last = of_events.collect();
        self.ended.extend(past.into_iter().map(|past| past.outcome));
        Ok(())
    }

    fn ok(&mut self, command: Command) {
        self.apply(command).unwrap();
    }

    fn ran(&mut self, n: u128, fence: u64, attempt: u32, ending: Ending) {
        self.ok(Command::Ran(vec![Ran { event: EVENT, vm: vm(n), fence, attempt, ending }]));
    }

    fn wait(&mut self, seconds: i64) {
        self.now = Timestamp::from_second(self.now.as_second() + seconds).unwrap();
        self.ok(Command::Pulse);
    }

    fn event(&self) -> &Event {
        self.scope.event(EVENT).unwrap()
    }

    fn run(&self) -> &ExecRun {
        self.event().exec_run().unwrap()
    }

    fn command(&self, n: usize) -> &CommandState {
        &self.run().commands[n]
    }
}

#[test]
fn event_runs_one_command_per_vm_and_ends_with_last() {
    let mut bench = Bench::new(2);
    assert_eq!((bench.run().owner.as_str(), bench.run().fence), ("n1", 1));
    assert_eq!(bench.run().commands, [running(1, 4), running(1, 4)]);
    assert_eq!(bench.scope.next_due(&[], None, bench.now), None, "a running command has no due time");
    let incarnation = bench.scope.incarnation;

    bench.ran(0, 1, 1, Ending::Succeeded { host: Some("h2".to_owned()) });
    assert_eq!(bench.run().commands, [done(Some("h2")), running(1, 4)]);
    assert_eq!(bench.scope.member(vm(0)).unwrap().host.as_deref(), Some("h1"), "recorded at the end");
    assert_eq!(bench.scope.incarnation, incarnation, "guests see no change");

    bench.ran(1, 1, 1, succeeds());
    assert_eq!(bench.ended, [Outcome::Completed]);
    assert_eq!(bench.scope.member(vm(0)).unwrap().host.as_deref(), Some("h2"));
    assert_eq!(bench.scope.member(vm(1)).unwrap().host.as_deref(), Some("h1"));
    assert_eq!(bench.scope.incarnation, incarnation + 1);
}

#[test]
fn failed_commands_back_off_until_attempt_limit() {
    let mut bench = Bench::new(1);
    for (attempt, pause) in [(1, 5), (2, 10), (3, 20), (4, 40)] {
        bench.ran(0, 1, attempt, fails("exit status 1"));
        let why = "exit status 1".to_owned();
        assert_eq!(
            bench.last,
            [EventFact::DriverAttemptFailed { vm: "vm-100".parse().unwrap(), attempt, why: why.clone() }]
        );
        let due_at = bench.scope.next_due(&[], None, bench.now).unwrap();
        assert_eq!(due_at.as_second() - bench.now.as_second(), pause);
        assert_eq!(bench.command(0), &CommandState::Waiting { attempt, left: 5 - attempt, due_at, why });
        bench.wait(pause - 1);
        assert!(matches!(bench.command(0), CommandState::Waiting { .. }));
        bench.wait(1);
        assert_eq!(bench.command(0), &running(attempt + 1, 4 - attempt));
    }
    bench.ran(0, 1, 5, fails("exit status 1"));
    assert!(matches!(bench.command(0), CommandState::Failed { attempt: 5, .. }));
    assert!(matches!(bench.last.as_slice(), [EventFact::DriverFailed { attempts: 5, .. }]));
    assert_eq!(bench.scope.next_due(&[], None, bench.now), None, "nothing happens until an operator acts");
    let named = |fact: &EventFact| matches!(fact, EventFact::DriverFailed { .. });
    assert_eq!(bench.event().trail.iter().filter(|entry| named(&entry.fact)).count(), 1);
    assert!(bench.event().is_started());
}

#[test]
fn blocked_command_fails_at_once_and_can_be_retried() {
    let mut bench = Bench::new(1);
    bench.ran(0, 1, 1, Ending::Blocked { why: "an earlier attempt still runs".to_owned() });
    assert!(matches!(bench.command(0), CommandState::Failed { attempt: 1, .. }));
    assert!(matches!(bench.last.as_slice(), [EventFact::DriverFailed { attempts: 1, .. }]));
    assert_eq!(bench.scope.next_due(&[], None, bench.now), None);
    bench.ok(Command::Retry(EVENT));
    assert_eq!(bench.command(0), &running(2, 4));
}

#[test]
fn backoff_is_capped() {
    let exec = ExecSettings::default();
    assert_eq!(exec.backoff(1), Duration::from_secs(5));
    assert_eq!(exec.backoff(6), Duration::from_secs(160));
    assert_eq!(exec.backoff(7), Duration::from_secs(300));
    assert_eq!(exec.backoff(u32::MAX), Duration::from_secs(300));
}

#[test]
fn report_requires_current_fence_and_attempt() {
    let mut bench = Bench::new(1);
    bench.ran(0, 1, 1, fails("no"));
    bench.wait(5);
    assert_eq!(bench.command(0), &running(2, 3));
    let before = bench.scope.clone();
    bench.ran(0, 1, 1, succeeds());
    bench.ran(0, 0, 2, succeeds());
    bench.ran(0, 2, 2, succeeds());
    bench.ran(0, 1, 3, succeeds());
    bench.ran(9, 1, 2, succeeds());
    let ending = succeeds();
    bench.ok(Command::Ran(vec![Ran {
        event: samples::event_id(0),
        vm: vm(0),
        fence: 1,
        attempt: 2,
        ending,
    }]));
    assert_eq!(bench.scope, before);
    // Only the first report of an attempt counts.
    bench.ran(0, 1, 2, fails("no"));
    let before = bench.scope.clone();
    bench.ran(0, 1, 2, succeeds());
    assert_eq!(bench.scope, before);
}

#[test]
fn new_process_reruns_running_commands() {
    let mut bench = Bench::new(3);
    bench.ran(0, 1, 1, succeeds());
    bench.ran(1, 1, 1, fails("no"));
    let waiting = bench.command(1).clone();
    bench.node = "n2".to_owned();
    bench.ok(Command::Pulse);
    assert_eq!((bench.run().owner.as_str(), bench.run().fence), ("n2", 2));
    assert_eq!(bench.run().commands, [done(None), waiting, running(2, 3)]);
    assert_eq!(bench.last, [EventFact::DriverTookOver { owner: "n2".to_owned(), fence: 2 }]);
    // The previous owner may still run; its reports are stale.
    let before = bench.scope.clone();
    bench.ran(2, 1, 1, succeeds());
    bench.ran(2, 1, 2, succeeds());
    assert_eq!(bench.scope, before);
    bench.ran(2, 2, 2, succeeds());
    assert_eq!(bench.command(2), &done(None));
}

#[test]
fn takeover_counts_as_attempt() {
    let mut bench = Bench::new(1);
    for restart in 2..=5 {
        bench.node = format!("n{restart}");
        bench.ok(Command::Pulse);
        assert_eq!(bench.command(0), &running(restart, 5 - restart));
    }
    bench.node = "n6".to_owned();
    bench.ok(Command::Pulse);
    assert!(matches!(bench.command(0), CommandState::Failed { attempt: 5, .. }));
    assert!(bench.last.iter().any(|fact| matches!(fact, EventFact::DriverFailed { attempts: 5, .. })));
    // The trail holds the newest takeover only.
    let took_over = |fact: &EventFact| matches!(fact, EventFact::DriverTookOver { .. });
    assert_eq!(bench.event().trail.iter().filter(|entry| took_over(&entry.fact)).count(), 1);
}

#[test]
fn retry_resets_attempts_with_new_numbers() {
    let one = ExecSettings { attempts_max: 1, ..ExecSettings::default() };
    let mut bench = Bench::with(3, Settings { driver: DriverKind::Exec, exec: one, ..Settings::default() });
    assert_eq!(bench.apply(Command::Retry(EVENT)), Err(Refusal::NothingFailed(EVENT)));
    bench.ran(0, 1, 1, fails("no"));
    bench.ran(1, 1, 1, succeeds());
    assert!(matches!(bench.command(0), CommandState::Failed { attempt: 1, .. }));

    bench.settings.exec.attempts_max = 2;
    bench.ok(Command::Retry(EVENT));
    assert_eq!(bench.run().commands, [running(2, 1), done(None), running(1, 0)]);
    assert_eq!(bench.last, [EventFact::DriverRetried { commands: 1 }]);
    // A command that waits for its next attempt is due at once too.
    bench.ran(0, 1, 2, fails("no"));
    assert!(matches!(bench.command(0), CommandState::Waiting { attempt: 2, left: 1, .. }));
    bench.ok(Command::Retry(EVENT));
    assert_eq!(bench.command(0), &running(3, 1));
    assert_eq!(bench.apply(Command::Retry(samples::event_id(0))).unwrap_err().code(), "unknown_event");
}

#[test]
fn only_commands_can_be_retried() {
    let manual = Settings { driver: DriverKind::Manual, ..Settings::default() };
    let mut bench = Bench::with(1, manual);
    assert_eq!(bench.apply(Command::Retry(EVENT)).unwrap_err().code(), "not_exec");
}

#[test]
fn removed_vm_does_not_block_event() {
    let mut bench = Bench::new(3);
    bench.ran(0, 1, 1, succeeds());
    bench.ok(Command::Remove(vec![vm(1)]));
    assert_eq!(bench.run().commands, [done(None), CommandState::Gone, running(1, 4)]);
    bench.ok(Command::Remove(vec![vm(2)]));
    assert_eq!(bench.ended, [Outcome::Completed]);

    let mut bench = Bench::new(1);
    bench.ok(Command::Remove(vec![vm(0)]));
    assert_eq!(bench.ended, [Outcome::Completed], "like any started event without VMs");
}

#[test]
fn manual_completion_overrides_commands() {
    let mut bench = Bench::new(2);
    bench.ran(0, 1, 1, Ending::Succeeded { host: Some("h2".to_owned()) });
    bench.ok(Command::Complete {
        event: EVENT,
        hosts: vec![(vm(0), "h3".to_owned()), (vm(1), "h4".to_owned())],
    });
    assert_eq!(bench.ended, [Outcome::Completed]);
    let host = |n| bench.scope.member(vm(n)).unwrap().host.clone().unwrap();
    assert_eq!([host(0), host(1)], ["h3", "h4"]);
}

#[test]
fn command_reports_are_truncated() {
    let mut bench = Bench::new(2);
    bench.ran(0, 1, 1, fails(&format!("a \"quoted\" \\ line\n{}", "ü".repeat(200))));
    let CommandState::Waiting { why, .. } = bench.command(0) else { panic!("{:?}", bench.command(0)) };
    assert!(why.starts_with("a 'quoted' / line ü") && why.len() <= REASON_BYTES_MAX, "{why}");
    assert!(!why.contains(['"', '\\', '\n']), "nothing has to be escaped: {why}");
    for host in ["", "h\n2", &"h".repeat(129)] {
        let CommandState::Running { attempt, .. } = *bench.command(1) else {
            panic!("{:?}", bench.command(1))
        };
        bench.ran(1, 1, attempt, Ending::Succeeded { host: Some(host.to_owned()) });
        assert!(matches!(bench.command(1), CommandState::Waiting { .. }), "{host:?} was taken");
        bench.wait(300);
    }
}
