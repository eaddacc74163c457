//! The interface between the engine and the exec driver: requested commands, reports, and what operators see.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use notbefore_core::samples::{operation_id, operator, vm};
use notbefore_core::{Cause, CommandState, DriverKind, Ending, EventId, ExecSettings, Settings};
use notbefore_engine::{
    CommandId, CommandTarget, DriverRun, Engine, EngineSettings, EventCommand, Failure, FirstRun,
    NewOperation, OperationCommand, Request, RunTarget, TargetSelector, TypedCommand,
};
use notbefore_service::clock::{Clock, SystemClock};
use notbefore_service::driver::{Driver, NoCommand, Report};
use notbefore_service::runtime::{self, EngineHandle};
use notbefore_service::view::Views;
use notbefore_store::Revision;
use notbefore_store::memory::MemoryStore;

/// A driver whose commands end when the test decides.
#[derive(Default)]
struct ManualDriver {
    running: Mutex<Vec<(DriverRun, Report)>>,
    stopped: Mutex<Vec<CommandId>>,
}

impl Driver for ManualDriver {
    fn run(&self, run: DriverRun, report: Report) {
        self.running.lock().unwrap().push((run, report));
    }

    fn stop(&self, command: CommandId) {
        self.stopped.lock().unwrap().push(command);
    }
}

struct Fixture {
    engine: EngineHandle,
    views: Arc<Views>,
}

impl Fixture {
    /// A service with one VM whose host has failed.
    async fn new(driver: Arc<dyn Driver>) -> Self {
        let exec =
            ExecSettings { backoff_first: Duration::from_millis(1), attempts_max: 2, ..Default::default() };
        let domain = Settings { driver: DriverKind::Exec, exec, ..Settings::default() };
        let settings = EngineSettings { domain, node: "test".into() };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (engine, effects) = Engine::new(settings, Vec::new(), Revision(0), clock.now()).unwrap();
        let (views, store) = (Arc::new(Views::new(false)), Arc::new(MemoryStore::new()));
        let too = Arc::clone(&views);
        let engine = runtime::start(engine, effects, store, Revision(0), too, clock, driver);
        let fixture = Self { engine, views };
        fixture.submit(FirstRun { vm: vm(1), name: "lab".parse().unwrap() }).await.unwrap();
        let failed = NewOperation::with_defaults(
            operation_id(2),
            Cause::HostFailure,
            TargetSelector::Vms(vec![vm(1)]),
        );
        fixture.submit(OperationCommand::Schedule(failed)).await.unwrap();
        fixture
    }

    async fn submit<A: TypedCommand>(&self, command: A) -> Result<A::Answer, Failure> {
        self.engine.ask(Request::new(operator(), command)).await
    }

    fn command(&self) -> Option<(EventId, CommandState)> {
        let view = self.views.newest();
        let scope = view.busy_scopes().next()?;
        let event = scope.scope.events.first()?;
        Some((event.id, event.exec_run()?.commands[0].clone()))
    }

    async fn until(&self, what: &str, holds: impl Fn(&Option<(EventId, CommandState)>) -> bool) {
        for _ in 0..1_000 {
            if holds(&self.command()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("waited for {what}: {:?}", self.command());
    }
}

async fn next(driver: &ManualDriver) -> (DriverRun, Report) {
    for _ in 0..1_000 {
        if let Some(one) = driver.running.lock().unwrap().pop() {
            return one;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no command was requested");
}

#[tokio::test]
async fn failed_command_is_retried() {
    let driver = Arc::new(ManualDriver::default());
    let fixture = Fixture::new(Arc::<ManualDriver>::clone(&driver)).await;
    let (run, report) = next(&driver).await;
    assert_eq!((run.id.attempt, run.id.fence, run.owner.as_str()), (1, 1, "test"));
    assert!(matches!(&run.target, RunTarget::Vm { name, .. } if name.as_str() == "lab"), "{run:?}");
    report.ended(Ending::Failed { why: "exit status 1".to_owned() });
    let (run, report) = next(&driver).await;
    assert_eq!(run.id.attempt, 2);
    report.ended(Ending::Succeeded { host: Some("h2".to_owned()) });
    fixture.until("the event to end", Option::is_none).await;
    let view = fixture.views.newest();
    let vm = view.first_run.unwrap();
    assert_eq!(view.scope_of(vm).unwrap().member(vm).unwrap().host.as_deref(), Some("h2"));
    assert!(driver.stopped.lock().unwrap().is_empty());
}

#[tokio::test]
async fn manual_completion_stops_command_and_ignores_report() {
    let driver = Arc::new(ManualDriver::default());
    let fixture = Fixture::new(Arc::<ManualDriver>::clone(&driver)).await;
    let (run, report) = next(&driver).await;
    let CommandTarget::Vm { event, .. } = run.id.target else { panic!("{run:?}") };
    fixture.submit(EventCommand::Complete { event, hosts: Vec::new() }).await.unwrap();
    assert_eq!(*driver.stopped.lock().unwrap(), [run.id]);
    report.ended(Ending::Succeeded { host: Some("h2".to_owned()) });
    fixture.engine.close().await;
    assert!(fixture.command().is_none());
}

#[tokio::test]
async fn missing_command_fails_every_attempt() {
    let fixture = Fixture::new(Arc::new(NoCommand)).await;
    let failed = |attempts: u32| {
        move |command: &Option<(EventId, CommandState)>| {
            matches!(command, Some((_, CommandState::Failed { attempt, why }))
                if *attempt == attempts && why == "no command is configured")
        }
    };
    fixture.until("the attempts to be used up", failed(2)).await;
    let (event, _) = fixture.command().unwrap();
    fixture.submit(EventCommand::Retry(event)).await.unwrap();
    fixture.until("the new attempts to be used up", failed(4)).await;
    fixture.submit(EventCommand::Complete { event, hosts: Vec::new() }).await.unwrap();
    assert!(fixture.command().is_none());
}
