//! A disk that fails under the running service: whoever asks is told what is known and no more, guests go on
//! polling from memory, and once the disk is well the truth comes to light, whichever it is.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use notbefore_core::{Actor, Cause, OperationId, Settings, VmId};
use notbefore_engine::{
    Answer, Command, Engine, EngineSettings, Failure, Idempotency, NewOperation, Request, Whom,
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
use redb::StorageBackend;
use uuid::Uuid;

/// A disk in memory, whose syncs can be made to fail: before they take effect, or after.
#[derive(Clone, Debug, Default)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    fails: Arc<AtomicBool>,
}

impl Disk {
    fn fails(&self, fails: bool) {
        self.fails.store(fails, SeqCst);
    }

    fn check(&self) -> io::Result<()> {
        match self.fails.load(SeqCst) {
            true => Err(io::Error::other("the disk is broken")),
            false => Ok(()),
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        out.copy_from_slice(&self.bytes.lock().unwrap()[start..start + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        let len = usize::try_from(len).map_err(io::Error::other)?;
        self.bytes.lock().unwrap().resize(len, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        self.bytes.lock().unwrap()[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }
}

struct Bench {
    disk: Disk,
    engine: EngineHandle,
    platform: ScheduledEvents,
    caller: Caller,
    vm: VmId,
}

impl Bench {
    /// A service over a disk, with the one VM of a first run.
    async fn new() -> Self {
        let disk = Disk::default();
        let under = disk.clone();
        let store: Arc<dyn Store> =
            Arc::new(RedbStore::open_with("disk", move || under.check().map(|()| under.clone())).unwrap());
        let settings = EngineSettings { domain: Settings::default(), node: "test".to_owned() };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (engine, effects) = Engine::new(settings, Vec::new(), Revision(0), clock.now()).unwrap();
        let views = Arc::new(Views::new(false));
        let views_too = Arc::clone(&views);
        let engine =
            runtime::start(engine, effects, store, Revision(0), views_too, clock, Arc::new(NoCommand));
        let (delivery, _) = Delivery::new(Ledger::default());
        let vm = VmId(Uuid::from_u128(1));
        let name = "lab".parse().unwrap();
        let make = Command::MakeFirstRun { vm, name };
        engine.ask(request("first", make)).await.unwrap();
        let here: IpAddr = [127, 0, 0, 1].into();
        let listener = Arc::new(ListenerIdentity::Network("default".to_owned()));
        let caller = Caller::new(listener, (here, 1).into(), (here, 2).into());
        Self {
            disk,
            platform: ScheduledEvents::new(views, engine.clone(), Arc::default(), delivery),
            engine,
            caller,
            vm,
        }
    }

    fn document(&self) -> String {
        let guest = self.platform.guest(&self.caller, &ProxyClaim::default()).unwrap();
        let rendered = self.platform.document(&guest, EventsVersion::NEWEST, SystemClock.now());
        String::from_utf8(rendered.body.to_vec()).unwrap()
    }

    fn restart(&self, id: u128) -> Command {
        Command::Schedule(NewOperation {
            id: OperationId(Uuid::from_u128(id)),
            cause: Cause::UserRestart,
            whom: Whom::Vms(vec![self.vm]),
            not_before: None,
            duration_s: None,
            description: None,
        })
    }
}

fn request(key: &str, command: Command) -> Request {
    let idempotency = Idempotency { principal: "root".into(), key: key.into(), hash: key.into() };
    Request {
        by: Actor::Token("root".into()),
        from: None,
        idempotency: Some(idempotency),
        if_revision: None,
        command,
    }
}

/// Asks again until the store takes it: it heals by itself, within a second or so.
async fn insist(bench: &Bench, key: &str, command: Command) -> Result<Answer, Failure> {
    for _ in 0..500 {
        match bench.engine.ask(request(key, command.clone())).await {
            Err(Failure::Unavailable(_) | Failure::OutcomeUnknown(_)) => {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            answer => return answer,
        }
    }
    panic!("the store did not recover");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_sync_leaves_the_outcome_unknown_until_the_retry_finds_it() {
    let bench = Bench::new().await;
    assert_eq!(bench.document(), r#"{"DocumentIncarnation":1,"Events":[]}"#);

    bench.disk.fails(true);
    let told = bench.engine.ask(request("restart", bench.restart(7))).await;
    assert!(matches!(told, Err(Failure::OutcomeUnknown(_))), "{told:?}");
    assert!(!bench.engine.stats().store_is_well());
    assert_eq!(bench.document(), r#"{"DocumentIncarnation":1,"Events":[]}"#, "polls go on from memory");
    let refused = bench.engine.ask(request("another", bench.restart(8))).await;
    assert!(matches!(refused, Err(Failure::Unavailable(_))), "{refused:?}");
    let guest = bench.platform.guest(&bench.caller, &ProxyClaim::default()).unwrap();
    let approval = bench.platform.approve(&guest, &bench.caller, vec![Uuid::from_u128(9)], SystemClock.now());
    // Nobody has to write anything to know that there is no such event.
    assert_eq!(approval.await, Err(ApproveError::UnknownEvent));

    bench.disk.fails(false);
    let found = insist(&bench, "restart", bench.restart(99)).await.unwrap();
    let Answer::Operation(operation) = found else { panic!("{found:?}") };
    assert!(
        [7, 99].contains(&operation.0.as_u128()),
        "the first try's operation or, if that was lost, the retry's"
    );
    let document = bench.document();
    assert!(document.starts_with(r#"{"DocumentIncarnation":2,"#), "{document}");
    assert_eq!(
        document.matches("EventId").count(),
        1,
        "once, whatever happened to the first try: {document}"
    );
    assert_eq!(insist(&bench, "restart", bench.restart(100)).await.unwrap(), found);
    assert!(bench.engine.stats().store_is_well());
}
