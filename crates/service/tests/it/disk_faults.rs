//! Disk failures under the running service. Callers get an error that says what is known, polls are served from memory,
//! and the service recovers without a restart once the disk works again. `crates/cli/tests/whole/service/disk.rs` tests
//! the same with the binary on real file systems.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use notbefore_core::samples::{self, operation_id};
use notbefore_core::{Actor, Cause, OperationId, Settings, VmId, WhenNotEnabled};
use notbefore_engine::{
    AddVm, Address, Answer, Command, Engine, EngineSettings, Failure, Idempotency, NewOperation,
    OperationCommand, Request, TargetSelector, VmSpec,
};
use notbefore_service::clock::{Clock, SystemClock};
use notbefore_service::delivery::{Delivery, Ledger};
use notbefore_service::driver::NoCommand;
use notbefore_service::guest::caller::{Caller, ListenerIdentity, ProxyClaim};
use notbefore_service::guest::platform::{ApproveError, Platform};
use notbefore_service::platform::ScheduledEvents;
use notbefore_service::runtime::{self, EngineHandle};
use notbefore_service::view::Views;
use notbefore_store::redb::RedbStore;
use notbefore_store::{Revision, Store};
use notbefore_wire::guest::version::EventsVersion;
use uuid::Uuid;

use crate::PATIENCE;
use crate::disk::{Disk, FailureMode};

struct Fixture {
    disk: Disk,
    engine: EngineHandle,
    platform: ScheduledEvents,
    caller: Caller,
    vm: VmId,
}

impl Fixture {
    /// A service on a disk, with one VM.
    async fn new() -> Self {
        let disk = Disk::new();
        let under = disk.clone();
        let store: Arc<dyn Store> = Arc::new(RedbStore::open_with("disk", move || under.open()).unwrap());
        let domain = Settings { when_not_enabled: WhenNotEnabled::GiveNotice, ..Settings::default() };
        let settings = EngineSettings { domain, node: "test".into() };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (engine, effects) = Engine::new(settings, Vec::new(), Revision(0), clock.now()).unwrap();
        let views = Arc::new(Views::new(false));
        let views_too = Arc::clone(&views);
        let engine = runtime::start(
            engine,
            effects,
            Arc::clone(&store),
            Revision(0),
            views_too,
            clock,
            Arc::new(NoCommand),
        );
        let (delivery, _) = Delivery::new(Ledger::default());
        let vm = samples::vm(1);
        let here: IpAddr = [127, 0, 0, 1].into();
        let address = Address { network: "default".parse().unwrap(), ip: here };
        let spec = VmSpec { addresses: vec![address], ..VmSpec::with_defaults(vm, "lab".parse().unwrap()) };
        let add = AddVm { path: "lab".parse().unwrap(), kind: None, vm: spec };
        engine.ask(request("first", add)).await.unwrap();
        let listener = Arc::new(ListenerIdentity::Network("default".to_owned()));
        let caller = Caller::new(listener, here, here);
        Self {
            disk,
            platform: ScheduledEvents::new(
                views,
                engine.clone(),
                Arc::default(),
                delivery,
                Arc::default(),
                store,
            ),
            engine,
            caller,
            vm,
        }
    }

    fn document(&self) -> String {
        let guest = self.platform.guest(&self.caller, &ProxyClaim::default()).unwrap();
        let rendered = self.platform.document(&guest, EventsVersion::NEWEST);
        String::from_utf8(rendered.body.to_vec()).unwrap()
    }

    fn restart(&self, id: u128) -> Command {
        let selector = TargetSelector::Vms(vec![self.vm]);
        OperationCommand::Schedule(NewOperation::with_defaults(
            operation_id(id),
            Cause::UserRestart,
            selector,
        ))
        .into()
    }

    /// A VM with so much metadata that a full disk fails soon.
    fn large_vm(n: usize) -> Command {
        let name = format!("large-{n}");
        let instance = serde_json::json!({ "user_data": "x".repeat(60_000) });
        let vm = VmSpec { instance, ..VmSpec::with_defaults(VmId(Uuid::new_v4()), name.parse().unwrap()) };
        AddVm { path: name.parse().unwrap(), kind: None, vm }.into()
    }

    /// Waits until the service finds out by itself, without a request, that its store can write.
    async fn recovered(&self) {
        let well = async {
            while !self.engine.stats().is_store_writable() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, well).await.unwrap();
    }
}

fn request(key: &str, command: impl Into<Command>) -> Request {
    let idempotency = Idempotency { principal: "root".into(), key: key.into(), hash: key.into() };
    Request { idempotency: Some(idempotency), ..Request::new(Actor::Token("root".into()), command.into()) }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_sync_reports_unknown_outcome_until_retry() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.document(), r#"{"DocumentIncarnation":1,"Events":[]}"#);

    fixture.disk.set_broken(true);
    let outcome = fixture.engine.ask(request("restart", fixture.restart(7))).await;
    assert!(matches!(outcome, Err(Failure::OutcomeUnknown(_))), "{outcome:?}");
    assert!(!fixture.engine.stats().is_store_writable());
    assert_eq!(
        fixture.document(),
        r#"{"DocumentIncarnation":1,"Events":[]}"#,
        "polls are served from memory"
    );
    let refused = fixture.engine.ask(request("another", fixture.restart(8))).await;
    assert!(matches!(refused, Err(Failure::Unavailable(_))), "{refused:?}");
    let guest = fixture.platform.guest(&fixture.caller, &ProxyClaim::default()).unwrap();
    let approval =
        fixture.platform.approve(&guest, &fixture.caller, vec![Uuid::from_u128(9)], SystemClock.now());
    // The answer needs no write: there is no such event.
    assert_eq!(approval.await, Err(ApproveError::UnknownEvent(Uuid::from_u128(9))));

    fixture.disk.set_broken(false);
    fixture.recovered().await;
    let found = fixture.engine.ask(request("restart", fixture.restart(99))).await.unwrap();
    let Answer::Operation(operation) = found else { panic!("{found:?}") };
    assert!(
        [7, 99].contains(&operation.0.as_u128()),
        "the operation of the first attempt or, if that was lost, of the retry"
    );
    let document = fixture.document();
    assert!(document.starts_with(r#"{"DocumentIncarnation":2,"#), "{document}");
    assert_eq!(
        document.matches("EventId").count(),
        1,
        "exactly one event, whatever happened to the first attempt: {document}"
    );
    assert_eq!(fixture.engine.ask(request("restart", fixture.restart(100))).await.unwrap(), found);
}

/// A full disk, a read-only disk, and failing syncs. No acknowledged change is lost, and no repeated request happens
/// twice.
#[tokio::test(flavor = "multi_thread")]
async fn polls_continue_and_service_recovers_from_disk_faults() {
    for (trouble, says) in [
        (FailureMode::Full, "storage space"),
        (FailureMode::ReadOnly, "read-only"),
        (FailureMode::SyncFails, "the sync failed"),
    ] {
        let fixture = Fixture::new().await;
        fixture.engine.ask(request("restart", fixture.restart(7))).await.unwrap();
        let before = fixture.document();
        fixture.disk.set_failure(Some(trouble));
        let mut acknowledged = 0;
        let refused = loop {
            match fixture
                .engine
                .ask(request(&format!("large-{acknowledged}"), Fixture::large_vm(acknowledged)))
                .await
            {
                Ok(_) => acknowledged += 1,
                Err(refused) => break refused,
            }
            assert!(acknowledged < 200, "{trouble:?}: no write failed");
        };
        assert!(!refused.to_string().contains(says), "{trouble:?}: only for the log: {refused}");
        let (Failure::Unavailable(cause) | Failure::OutcomeUnknown(cause)) = &refused else {
            panic!("{refused}")
        };
        let cause = std::error::Error::source(cause).map(ToString::to_string).unwrap_or_default();
        assert!(cause.contains(says), "{trouble:?}: {cause}");
        let why = fixture.engine.stats().store_error().unwrap();
        assert!(why.contains(says), "{trouble:?}: {why}");
        assert_eq!(fixture.document(), before, "{trouble:?}: polls are still served");
        // A request that writes nothing does not reset the error.
        let same = fixture.engine.ask(request("restart", fixture.restart(8))).await;
        assert!(!matches!(same, Ok(Answer::Operation(OperationId(id))) if id.as_u128() == 8), "{trouble:?}");
        assert!(!fixture.engine.stats().is_store_writable(), "{trouble:?}");

        fixture.disk.set_failure(None);
        fixture.recovered().await;
        for n in 0..=acknowledged {
            let again = fixture.engine.ask(request(&format!("large-{n}"), Fixture::large_vm(n))).await;
            assert!(matches!(again, Ok(Answer::Vm(_))), "{trouble:?}: {again:?}");
        }
        let same = fixture.engine.ask(request("restart", fixture.restart(9))).await.unwrap();
        assert_eq!(same, Answer::Operation(operation_id(7)), "{trouble:?}");
        assert_eq!(fixture.document(), before, "{trouble:?}");
    }
}
