//! Commands of the exec driver: a command is requested once its attempt is durable and only once, a report is never
//! lost, and a command that is no longer wanted is stopped.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::samples::{self, operation_id};
use notbefore_core::{
    Cause, CommandState, DriverKind, Ending, Event, EventId, ExecRun, ExecSettings, HostCommand, Name,
    ScopeKind, Settings, VmId,
};
use notbefore_engine::{
    Answer, Command, CommandId, CommandTarget, DriverReport, DriverRun, Effect, Engine, EngineSettings,
    EventCommand, Failure, Input, JobId, NewOperation, OperationCommand, PutScope, RunTarget, ScopeChange,
    TargetSelector, VmCommand, VmSpec,
};
use notbefore_store::{Key, Outcome, Refusal, Revision, Txn, VALUE_BYTES_MAX, Versioned};

use crate::support::request;

/// An engine and a store whose commits wait until the test carries them out.
struct Bench {
    engine: Engine,
    records: BTreeMap<Key, Versioned>,
    revision: Revision,
    now: Timestamp,
    starts: u32,
    commits: Vec<(JobId, Txn)>,
    runs: Vec<DriverRun>,
    stops: Vec<CommandId>,
    answers: Vec<Result<Answer, Failure>>,
}

fn vm(n: usize) -> VmId {
    samples::vm(100 + n as u128)
}

fn started(
    starts: u32,
    records: &BTreeMap<Key, Versioned>,
    revision: Revision,
    now: Timestamp,
) -> (Engine, Vec<Effect>) {
    let exec = ExecSettings { has_host_command: true, ..ExecSettings::default() };
    let domain = Settings { driver: DriverKind::Exec, exec, ..Settings::default() };
    let settings = EngineSettings { domain, node: format!("n{starts}").as_str().into() };
    let all = records.iter().map(|(key, record)| (key.clone(), record.clone()));
    Engine::new(settings, all, revision, now).unwrap()
}

fn failed() -> Ending {
    Ending::Failed { why: "exit status 1".to_owned() }
}

fn succeeded() -> Ending {
    Ending::Succeeded { host: Some("h2".to_owned()) }
}

fn event_of(id: CommandId) -> EventId {
    match id.target {
        CommandTarget::Vm { event, .. } => event,
        CommandTarget::Host(_) => panic!("{id:?} is for a host"),
    }
}

impl Bench {
    fn new(names: &[String]) -> Self {
        let now = Timestamp::from_second(1_767_225_600).unwrap();
        let records = BTreeMap::new();
        let (engine, _) = started(1, &records, Revision(0), now);
        let (commits, runs, stops, answers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut bench =
            Self { engine, records, revision: Revision(0), now, starts: 1, commits, runs, stops, answers };
        let vms = names.iter().enumerate();
        let vms = vms.map(|(n, name)| VmSpec::with_defaults(vm(n), name.parse::<Name>().unwrap())).collect();
        let put = PutScope::with_defaults("web".parse().unwrap(), ScopeKind::AvailabilitySet, vms);
        bench.submit(ScopeChange::Put(put));
        bench.settle();
        bench
    }

    fn small() -> Self {
        let mut bench = Self::new(&["web-0".to_owned(), "web-1".to_owned()]);
        bench.fail_hosts(2);
        bench
    }

    /// Fails the hosts of the first VMs: an event without notice.
    fn fail_hosts(&mut self, vms: usize) {
        let selector = TargetSelector::Vms((0..vms).map(vm).collect());
        let new = NewOperation::with_defaults(operation_id(1), Cause::HostFailure, selector);
        self.submit(OperationCommand::Schedule(new));
    }

    fn submit(&mut self, command: impl Into<Command>) {
        self.feed(request(command));
    }

    fn feed(&mut self, input: Input) {
        let effects = self.engine.handle(input, self.now);
        self.take(effects);
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Commit(id, txn) => self.commits.push((id, txn)),
                Effect::Run(run) => self.runs.push(*run),
                Effect::Stop(id) => self.stops.push(id),
                Effect::Answer(_, answer) => self.answers.push(answer),
                Effect::Publish(_) | Effect::Resync => {}
            }
        }
    }

    fn commit(&mut self, txn: &Txn) {
        txn.check().unwrap();
        self.revision = Revision(self.revision.0 + 1);
        for (key, value) in &txn.put {
            let record = Versioned { revision: self.revision, value: value.clone() };
            self.records.insert(key.clone(), record);
        }
        for key in &txn.delete {
            self.records.remove(key);
        }
    }

    /// Carries out all commits and those that follow.
    fn settle(&mut self) {
        while !self.commits.is_empty() {
            let (id, txn) = self.commits.remove(0);
            self.commit(&txn);
            self.feed(Input::Committed(id, Outcome::Committed(self.revision)));
        }
    }

    fn refuse_all(&mut self) {
        for (id, _) in std::mem::take(&mut self.commits) {
            let full = Refusal::Unavailable("no space left".to_owned());
            self.feed(Input::Committed(id, Outcome::Refused(full)));
        }
    }

    fn report(&mut self, id: CommandId, ending: Ending) {
        self.feed(Input::Ran(DriverReport { id, ending }));
    }

    fn wait(&mut self, seconds: i64) {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
        self.feed(Input::Tick);
    }

    fn restart(&mut self) {
        self.starts += 1;
        self.commits.clear();
        let (engine, effects) = started(self.starts, &self.records, self.revision, self.now);
        self.engine = engine;
        self.take(effects);
    }

    fn ids(&mut self) -> Vec<CommandId> {
        std::mem::take(&mut self.runs).into_iter().map(|run| run.id).collect()
    }

    fn events(&self) -> Vec<Event> {
        let scope = samples::scope_id("web");
        self.engine.state().scope(&scope).unwrap().value.events.clone()
    }

    fn run(&self) -> ExecRun {
        self.events()[0].exec_run().unwrap().clone()
    }
}

#[test]
fn command_runs_once_after_its_attempt_is_durable() {
    let mut bench = Bench::small();
    assert!(bench.runs.is_empty(), "the start is not durable yet");
    bench.settle();
    let runs = bench.runs.clone();
    assert_eq!(runs.len(), 2);
    let event = bench.events()[0].id;
    let target = CommandTarget::Vm { event, vm: vm(0) };
    assert_eq!(runs[0].id, CommandId { target, fence: 1, attempt: 1 });
    assert_eq!(runs[0].owner, "n1");
    assert!(matches!(&runs[0].target, RunTarget::Vm { name, .. } if name.as_str() == "web-0"));

    // Other changes in the scope do not request it again.
    bench.runs.clear();
    bench.submit(VmCommand::Remove(vm(1)));
    bench.settle();
    bench.wait(60);
    bench.settle();
    assert_eq!((bench.ids(), bench.stops.clone()), (vec![], vec![runs[1].id]), "the VM has left");

    bench.report(runs[0].id, succeeded());
    bench.settle();
    assert_eq!((bench.events(), bench.ids(), bench.stops.len()), (vec![], vec![], 1));
}

#[test]
fn command_of_a_redeploy_gets_the_host_that_is_chosen_at_its_start() {
    for (cause, expected) in [(Cause::HostRedeploy, Some("h2")), (Cause::HostReboot, None)] {
        let mut bench = Bench::new(&[]);
        let on = |n: usize, host: &str| {
            let name: Name = format!("web-{n}").parse().unwrap();
            VmSpec { host: Some(host.to_owned()), ..VmSpec::with_defaults(vm(n), name) }
        };
        let vms = vec![on(0, "h1"), on(1, "h2")];
        let put = PutScope::with_defaults("web".parse().unwrap(), ScopeKind::AvailabilitySet, vms);
        bench.submit(ScopeChange::Put(put));
        bench.settle();
        let selector = TargetSelector::Vms([vm(0)].into());
        bench.submit(OperationCommand::Schedule(NewOperation::with_defaults(
            operation_id(1),
            cause,
            selector,
        )));
        bench.settle();
        bench.submit(OperationCommand::Start(operation_id(1)));
        bench.settle();
        let runs: Vec<_> = bench.runs.iter().map(|run| &run.target).collect();
        let [RunTarget::Vm { host, target_host, .. }] = runs[..] else { panic!("{cause}: {runs:?}") };
        assert_eq!((host.as_deref(), target_host.as_deref()), (Some("h1"), expected), "{cause}");
    }
}

#[test]
fn failed_attempt_is_retried_when_due() {
    let mut bench = Bench::small();
    bench.settle();
    let first = bench.ids()[0];
    bench.report(first, failed());
    bench.settle();
    assert_eq!(bench.ids(), vec![]);
    bench.wait(5);
    assert_eq!(bench.ids(), vec![], "not before the commit is durable");
    bench.settle();
    assert_eq!(bench.ids(), vec![CommandId { attempt: 2, ..first }]);
    assert!(bench.stops.is_empty(), "it ended by itself");
}

#[test]
fn report_survives_failed_commit() {
    let mut bench = Bench::small();
    bench.settle();
    let ids = bench.ids();
    bench.report(ids[0], succeeded());
    bench.refuse_all();
    bench.report(ids[0], failed());
    bench.report(ids[1], succeeded());
    bench.refuse_all();
    for _ in 0..3 {
        bench.wait(1);
        bench.refuse_all();
    }
    assert!(matches!(bench.run().commands[0], CommandState::Running { attempt: 1, .. }));
    bench.wait(1);
    bench.settle();
    assert_eq!(bench.events(), vec![], "both succeeded: the first report of each counts");
    assert_eq!((bench.ids(), bench.stops.len()), (vec![], 0));
}

#[test]
fn new_process_adopts_commands_and_ignores_old_reports() {
    let mut bench = Bench::small();
    bench.settle();
    let old = bench.ids();
    bench.report(old[1], succeeded());
    bench.settle();
    bench.restart();
    assert_eq!(bench.ids(), vec![], "not before the commit is durable");
    bench.report(old[0], succeeded());
    bench.refuse_all();
    bench.wait(1);
    bench.settle();
    assert_eq!(bench.ids(), vec![CommandId { fence: 2, attempt: 2, ..old[0] }]);
    assert_eq!((bench.run().owner.as_str(), bench.run().fence), ("n2", 2));
    bench.report(old[0], succeeded());
    bench.settle();
    assert_eq!(bench.events().len(), 1);
    bench.report(CommandId { fence: 2, attempt: 2, ..old[0] }, succeeded());
    bench.settle();
    assert_eq!(bench.events(), vec![]);
}

#[test]
fn crash_between_commit_and_spawn_reruns_command() {
    let mut bench = Bench::small();
    let (_, txn) = bench.commits.remove(0);
    bench.commit(&txn);
    bench.restart();
    bench.settle();
    let fences: Vec<_> = bench.ids().into_iter().map(|id| (id.fence, id.attempt)).collect();
    assert_eq!(fences, [(2, 2), (2, 2)]);
}

#[test]
fn manual_completion_stops_running_commands() {
    let mut bench = Bench::small();
    bench.settle();
    let ids = bench.ids();
    let event = event_of(ids[0]);
    bench.report(ids[0], succeeded());
    bench.settle();
    bench.submit(EventCommand::Complete { event, hosts: Vec::new() });
    bench.settle();
    assert_eq!(bench.stops, vec![ids[1]]);
    bench.report(ids[1], succeeded());
    assert!(bench.commits.is_empty());
}

#[test]
fn retry_reruns_failed_commands() {
    let mut bench = Bench::small();
    bench.settle();
    let first = bench.ids()[0];
    bench.submit(EventCommand::Retry(event_of(first)));
    assert_eq!(bench.answers.pop().unwrap().unwrap_err().code(), "nothing_failed");
    for attempt in 1..=5 {
        bench.report(CommandId { attempt, ..first }, failed());
        bench.settle();
        bench.wait(300);
        bench.settle();
    }
    assert!(matches!(bench.run().commands[0], CommandState::Failed { attempt: 5, .. }));
    bench.runs.clear();
    bench.submit(EventCommand::Retry(event_of(first)));
    bench.settle();
    assert_eq!(bench.ids(), vec![CommandId { attempt: 6, ..first }]);
    assert_eq!(bench.answers.pop(), Some(Ok(Answer::Done)));
}

#[test]
fn event_with_1000_long_named_vms_fits_record() {
    let names: Vec<String> = (0..1_000).map(|n| format!("{n:0>64}")).collect();
    let mut bench = Bench::new(&names);
    bench.fail_hosts(1_000);
    bench.settle();
    let ids = bench.ids();
    assert_eq!(ids.len(), 1_000);
    let why = "x".repeat(1_000);
    for attempt in 1..=5 {
        for id in &ids {
            bench.report(CommandId { attempt, ..*id }, Ending::Failed { why: why.clone() });
        }
        bench.settle();
        bench.wait(300);
        bench.settle();
    }
    let failed = bench.run().commands.iter().filter(|one| matches!(one, CommandState::Failed { .. })).count();
    assert_eq!(failed, 1_000);
    let largest = bench.records.values().map(|record| record.value.len()).max().unwrap();
    assert!(largest <= VALUE_BYTES_MAX, "{largest}");
}

#[test]
fn scope_with_1000_vms_holds_180_events() {
    let names: Vec<String> = (0..1_000).map(|n| format!("web-{n}")).collect();
    let mut bench = Bench::new(&names);
    let selector = TargetSelector::Vms((0..180).map(vm).collect());
    let new = NewOperation::with_defaults(operation_id(1), Cause::HostRedeploy, selector);
    bench.submit(OperationCommand::Schedule(new));
    bench.settle();
    assert!(bench.answers.pop().unwrap().is_ok());
    assert_eq!(bench.events().len(), 180);
}

#[test]
fn scope_refuses_event_whose_results_would_not_fit() {
    let names: Vec<String> = (0..1_000).map(|n| format!("{n:0>80}")).collect();
    let mut bench = Bench::new(&names);
    bench.fail_hosts(1_000);
    bench.settle();
    match bench.answers.pop().unwrap() {
        Ok(_) => {
            let ids = bench.ids();
            for id in &ids {
                bench.report(*id, Ending::Failed { why: "x".repeat(1_000) });
            }
            bench.settle();
            assert!(matches!(bench.run().commands[999], CommandState::Waiting { .. }));
        }
        Err(failure) => assert_eq!(failure.code(), "scope_too_large"),
    }
}

/// A host with a VM in each of two scopes, and its reboot, started.
fn rebooting_host() -> (Bench, Vec<CommandId>) {
    let mut bench = Bench::new(&[]);
    for (n, scope) in ["one", "two"].into_iter().enumerate() {
        let name: Name = format!("vm-{n}").parse().unwrap();
        let spec = VmSpec { host: Some("h1".to_owned()), ..VmSpec::with_defaults(vm(n), name) };
        let path = scope.parse().unwrap();
        bench.submit(ScopeChange::Put(PutScope::with_defaults(path, ScopeKind::AvailabilitySet, vec![spec])));
        bench.settle();
    }
    let selector = TargetSelector::Host("h1".to_owned());
    let new = NewOperation::with_defaults(operation_id(1), Cause::HostReboot, selector);
    bench.submit(OperationCommand::Schedule(new));
    bench.settle();
    bench.submit(OperationCommand::Start(operation_id(1)));
    bench.settle();
    let ids = bench.ids();
    assert_eq!(ids.len(), 2, "a command for each VM");
    (bench, ids)
}

impl Bench {
    fn live(&self) -> usize {
        let scopes = self.engine.state().scopes();
        scopes.map(|(_, held)| held.value.events.len()).sum()
    }

    fn host_command(&self) -> Option<HostCommand> {
        self.engine.state().operation(operation_id(1))?.value.host_command.clone()
    }

    fn host_state(&self) -> CommandState {
        match self.host_command() {
            Some(HostCommand::Run(run)) => run.commands[0].clone(),
            other => panic!("no run: {other:?}"),
        }
    }
}

fn host_id(fence: u64, attempt: u32) -> CommandId {
    CommandId { target: CommandTarget::Host(operation_id(1)), fence, attempt }
}

#[test]
fn command_of_the_host_runs_once_after_those_of_its_vms_and_before_the_events_end() {
    let (mut bench, vms) = rebooting_host();
    bench.report(vms[0], succeeded());
    bench.settle();
    assert_eq!((bench.host_command(), bench.ids()), (Some(HostCommand::Pending), vec![]), "one VM is left");
    bench.report(vms[1], succeeded());
    bench.settle();
    let run = bench.runs.pop().unwrap();
    assert_eq!((run.id, run.owner.as_str(), bench.runs.len()), (host_id(1, 1), "n1", 0));
    let RunTarget::Host { host, mut vms } = run.target else { panic!("{:?}", run.target) };
    vms.sort();
    assert_eq!(
        (host.as_str(), vms),
        ("h1", vec!["default/default/one/vm-0".into(), "default/default/two/vm-1".into()])
    );
    assert_eq!(bench.live(), 2, "the events wait for the host");
    bench.wait(3_600);
    bench.settle();
    assert_eq!((bench.live(), bench.ids()), (2, vec![]));
    bench.report(host_id(1, 1), Ending::Succeeded { host: None });
    bench.settle();
    assert_eq!((bench.live(), bench.host_command(), bench.stops.len()), (0, None, 0), "all has ended");
}

#[test]
fn command_of_the_host_is_retried_taken_over_and_retried_by_an_operator() {
    let (mut bench, vms) = rebooting_host();
    vms.into_iter().for_each(|id| bench.report(id, Ending::Succeeded { host: None }));
    bench.settle();
    assert_eq!(bench.ids(), vec![host_id(1, 1)]);
    bench.report(host_id(1, 1), failed());
    // The report survives a store that refuses it.
    bench.refuse_all();
    bench.wait(1);
    bench.settle();
    assert!(matches!(bench.host_state(), CommandState::Waiting { attempt: 1, .. }));
    bench.wait(5);
    bench.settle();
    assert_eq!(bench.ids(), vec![host_id(1, 2)]);
    bench.restart();
    assert_eq!(bench.ids(), vec![], "not before the takeover is durable");
    bench.settle();
    assert_eq!(bench.ids(), vec![host_id(2, 3)]);
    bench.report(host_id(1, 2), Ending::Succeeded { host: None });
    bench.settle();
    assert_eq!(bench.live(), 2, "a report of the earlier process does not count");
    bench.submit(OperationCommand::Retry(operation_id(1)));
    bench.settle();
    assert!(bench.answers.pop().unwrap().is_err(), "nothing has failed");
    bench.report(host_id(2, 3), Ending::Blocked { why: "still there".to_owned() });
    bench.settle();
    assert!(matches!(bench.host_state(), CommandState::Failed { attempt: 3, .. }));
    bench.submit(OperationCommand::Retry(operation_id(1)));
    bench.settle();
    assert!(bench.answers.pop().unwrap().is_ok());
    assert_eq!(bench.ids(), vec![host_id(2, 4)]);
    bench.report(host_id(2, 4), Ending::Succeeded { host: None });
    bench.settle();
    assert_eq!(bench.live(), 0);
}

#[test]
fn completed_operation_stops_the_command_of_its_host() {
    let (mut bench, vms) = rebooting_host();
    vms.into_iter().for_each(|id| bench.report(id, Ending::Succeeded { host: None }));
    bench.settle();
    assert_eq!(bench.ids(), vec![host_id(1, 1)]);
    bench.submit(OperationCommand::Complete(operation_id(1)));
    bench.settle();
    assert_eq!((bench.live(), bench.stops.clone()), (0, vec![host_id(1, 1)]));
}

#[test]
fn host_whose_vms_are_gone_gets_no_command() {
    let (mut bench, _) = rebooting_host();
    bench.submit(VmCommand::Remove(vm(0)));
    bench.submit(VmCommand::Remove(vm(1)));
    bench.settle();
    assert_eq!((bench.live(), bench.host_command(), bench.ids()), (0, None, vec![]));
}

#[test]
fn command_of_a_host_goes_on_when_its_vms_are_removed() {
    let (mut bench, vms) = rebooting_host();
    vms.into_iter().for_each(|id| bench.report(id, Ending::Succeeded { host: None }));
    bench.settle();
    assert_eq!(bench.ids(), vec![host_id(1, 1)]);
    bench.submit(VmCommand::Remove(vm(0)));
    bench.submit(VmCommand::Remove(vm(1)));
    bench.settle();
    assert_eq!((bench.live(), bench.stops.len()), (0, 0), "the events have ended, the command runs");
    bench.report(host_id(1, 1), failed());
    bench.settle();
    bench.wait(5);
    bench.settle();
    assert_eq!(bench.ids(), vec![host_id(1, 2)], "it is retried");
    bench.restart();
    bench.settle();
    assert_eq!(bench.ids(), vec![host_id(2, 3)], "it is taken over");
    bench.report(host_id(2, 3), Ending::Succeeded { host: None });
    bench.settle();
    assert_eq!(bench.host_command(), None, "the operation is closed");
}
