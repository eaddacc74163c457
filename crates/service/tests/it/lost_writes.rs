//! Lost writes: a page of the store's file holds what an older commit wrote. All of it is valid, but it leads nowhere, in a
//! circle, or to records of the past. Each page of a small store is replaced by each older one. Then `check` and an
//! export without damaged records name the damage, and a service refuses to start, or serves exactly what was
//! acknowledged. `crates/cli/tests/whole/service/damage.rs` tries some of them with the binary.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use notbefore_core::samples::{self, operation_id};
use notbefore_core::{Actor, Cause, Settings};
use notbefore_engine::records;
use notbefore_engine::{
    AddVm, Address, Command, Engine, EngineSettings, Idempotency, NewOperation, OperationCommand, Request,
    TargetSelector, VmSpec,
};
use notbefore_service::clock::{Clock, SystemClock};
use notbefore_service::driver::NoCommand;
use notbefore_service::integrity::{IntegrityError, check_tally};
use notbefore_service::transfer::{damaged, import};
use notbefore_service::view::Views;
use notbefore_service::{runtime, serve};
use notbefore_store::redb::RedbStore;
use notbefore_store::{
    Key, Outcome, Page, ReadError, Revision, Snapshot, Store, Tallies, Txn, Versioned, Watch, WatchError,
};

use crate::PATIENCE;
use crate::disk::Disk;

const PAGE_BYTES: usize = 4096;

/// VMs, each in a scope of its own, with enough metadata for several pages; events that are cancelled, and one that is
/// not.
fn commands() -> Vec<Command> {
    let vm = |id: u8| {
        let address = Address { network: "default".parse().unwrap(), ip: [10, 0, 0, id].into() };
        let spec = VmSpec {
            addresses: vec![address],
            instance: serde_json::json!({ "tags": "x".repeat(900) }),
            ..VmSpec::with_defaults(samples::vm(id.into()), format!("vm-{id}").parse().unwrap())
        };
        AddVm { path: format!("vm-{id}").parse().unwrap(), kind: None, vm: spec }.into()
    };
    let schedule = |id: u8| {
        let targets = TargetSelector::Vms(vec![samples::vm((id % 8 + 1).into())]);
        let operation = NewOperation::with_defaults(operation_id(id.into()), Cause::HostReboot, targets);
        OperationCommand::Schedule(operation).into()
    };
    let cancel = |id: u8| OperationCommand::Cancel(operation_id(id.into())).into();
    let mut commands: Vec<Command> = (1..=8).map(vm).collect();
    for id in 1..=4 {
        commands.extend([schedule(id), cancel(id)]);
    }
    commands.push(schedule(5));
    commands
}

/// The file of a store that was closed, all older content of its pages, by their numbers, and the states before.
struct Written {
    last: Vec<u8>,
    older: BTreeMap<usize, BTreeSet<Vec<u8>>>,
    states: Vec<Contents>,
}

/// All records at a revision.
type Contents = (Revision, Vec<(Key, Versioned)>);

async fn written() -> Written {
    let disk = Disk::new();
    let under = disk.clone();
    let store: Arc<dyn Store> = Arc::new(RedbStore::open_with("disk", move || under.open()).unwrap());
    let settings = EngineSettings { domain: Settings::default(), node: "test".into() };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let (engine, effects) = Engine::new(settings, Vec::new(), Revision(0), clock.now()).unwrap();
    let views = Arc::new(Views::new(false));
    let engine = runtime::start(engine, effects, store, Revision(0), views, clock, Arc::new(NoCommand));
    let mut images = vec![disk.image()];
    for (number, command) in commands().into_iter().enumerate() {
        let key = format!("command-{number}");
        let idempotency = Idempotency { principal: "root".into(), key: key.clone(), hash: key };
        let by = Actor::Token("root".into());
        engine.ask(Request { idempotency: Some(idempotency), ..Request::new(by, command) }).await.unwrap();
        images.push(disk.image());
    }
    engine.close().await;
    let mut older: BTreeMap<usize, BTreeSet<Vec<u8>>> = BTreeMap::new();
    let mut states = Vec::new();
    let last = disk.image();
    for image in images {
        for (number, page) in image.chunks(PAGE_BYTES).enumerate() {
            if last.chunks(PAGE_BYTES).nth(number).is_some_and(|last| last != page) {
                older.entry(number).or_default().insert(page.to_vec());
            }
        }
        let disk = Disk::holding(image);
        states.push(contents(&RedbStore::open_with("image", move || disk.open()).unwrap()).await);
    }
    Written { last, older, states }
}

async fn contents(store: &RedbStore) -> Contents {
    let snapshot = store.snapshot().await.unwrap();
    (snapshot.revision(), snapshot.scan("", None, usize::MAX).await.unwrap().records)
}

/// What a service would serve from the file; none if it refuses to start.
async fn served(path: &Path) -> Option<Contents> {
    let store = RedbStore::open_unchanged(path).ok()?;
    let loaded = tokio::time::timeout(PATIENCE, serve::load(&store)).await.expect("the start does not end");
    let revision = loaded.ok()?.revision;
    let snapshot = store.snapshot().await.unwrap();
    let mut records = Vec::new();
    for kind in records::LOADED {
        records.extend(snapshot.scan(kind, None, usize::MAX).await.unwrap().records);
    }
    Some((revision, records))
}

/// How the three commands took the pages.
#[derive(Debug, Default)]
struct Outcomes {
    named: usize,
    exported: usize,
    refused: usize,
    served: usize,
    /// Pages that the newest commit does not use, or uses as they were.
    unused: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_write_is_found_and_never_served() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.redb");
    let Written { last, older, states } = written().await;
    fs::write(&file, &last).unwrap();
    assert_eq!(damaged::check(&file).unwrap().findings, []);
    let save = || {
        let mut lines = Vec::new();
        damaged::save(&file, true, Timestamp::UNIX_EPOCH, &mut lines).map(|saved| (saved, lines))
    };
    let whole = save().unwrap().1;
    let loaded = served(&file).await.unwrap();
    let (mut outcomes, mut wrong) = (Outcomes::default(), Vec::new());
    let cases = older.iter().filter(|(number, _)| **number > 0);
    for (number, page) in cases.flat_map(|(number, pages)| pages.iter().map(move |page| (*number, page))) {
        let mut image = last.clone();
        image[number * PAGE_BYTES..][..page.len()].copy_from_slice(page);
        fs::write(&file, &image).unwrap();
        let case = format!("page {number}, which begins with {:?}", &page[..24]);

        let checked = damaged::check(&file).unwrap();
        let is_named = !checked.findings.is_empty();
        outcomes.named += usize::from(is_named);
        match save() {
            Ok((saved, lines)) => {
                outcomes.exported += 1;
                if is_named == saved.left_out.is_empty() || !is_named && lines != whole {
                    wrong.push(format!("{case}: check {checked:?}, export {saved:?}"));
                }
                if let Err(error) = import::check(&lines[..], |_| {}) {
                    wrong.push(format!("{case}: the export cannot be imported: {error}"));
                }
            }
            Err(damaged::DamagedError::Open(_)) if is_named => {}
            Err(error) => wrong.push(format!("{case}: check {checked:?}, export {error}")),
        }
        match served(&file).await {
            Some(found) => {
                outcomes.served += 1;
                outcomes.unused += usize::from(!is_named);
                if found != loaded {
                    wrong.push(format!("{case}: the past of revision {} is served", found.0));
                }
            }
            None => outcomes.refused += 1,
        }
    }
    assert!(wrong.is_empty(), "{outcomes:?}\n{}", wrong.join("\n"));
    let Outcomes { named, exported, refused, served: taken, unused } = outcomes;
    // All of it happens, or the test is about nothing.
    let is_telling = named > 50 && exported > 50 && refused > 50 && taken > unused;
    assert!(is_telling, "{outcomes:?}");

    // An older header is an older copy of the whole file.
    for header in &older[&0] {
        let mut image = last.clone();
        image[..header.len()].copy_from_slice(header);
        fs::write(&file, &image).unwrap();
        let (checked, served) = (damaged::check(&file).unwrap(), served(&file).await);
        if checked.findings.is_empty() {
            let found = contents(&RedbStore::open_unchanged(&file).unwrap()).await;
            assert!(states.contains(&found), "revision {}", found.0);
        } else if let Some(served) = served {
            assert_eq!(served, loaded);
        }
    }
}

/// A file whose pages lead redb in a circle: a scan of it never ends.
struct Stuck {
    tallies: Tallies,
    /// The prefix whose scan never ends.
    at: &'static str,
}

#[async_trait]
impl Snapshot for Stuck {
    fn revision(&self) -> Revision {
        Revision(1)
    }

    fn tallies(&self) -> Option<&Tallies> {
        Some(&self.tallies)
    }

    async fn get(&self, _key: &str) -> Result<Option<Versioned>, ReadError> {
        Ok(None)
    }

    async fn scan(&self, prefix: &str, _after: Option<&str>, _limit: usize) -> Result<Page, ReadError> {
        match prefix == self.at {
            true => std::future::pending().await,
            false => Ok(Page::default()),
        }
    }

    async fn scan_back(&self, _: &str, _: Option<&str>, _: usize) -> Result<Page, ReadError> {
        Ok(Page::default())
    }
}

#[async_trait]
impl Store for Stuck {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        Ok(Box::new(Stuck { tallies: Tallies::default(), at: self.at }))
    }

    async fn commit(&self, _txn: Txn) -> Outcome {
        Outcome::Unknown("it is stuck".into())
    }

    async fn watch(&self, _after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        Err(WatchError::Closed)
    }
}

#[tokio::test(start_paused = true)]
async fn start_gives_up_reading_without_end() {
    for at in ["cluster/", "vm/"] {
        let stuck = Stuck { tallies: Tallies::default(), at };
        let loaded = tokio::time::timeout(Duration::from_secs(60), serve::load(&stuck)).await;
        let Ok(Err(error)) = loaded else { panic!("{at}: it loads or waits") };
        let why = error.to_string();
        assert!(why.contains("for 10 s") && why.contains("notbefore check --data DIR"), "{at}: {why}");
    }
}

#[test]
fn records_of_the_past_prevent_the_start() {
    let tallies = |revisions: &[(&str, u64)]| {
        let mut tallies = Tallies::default();
        revisions.iter().for_each(|(key, revision)| tallies.add(key, Revision(*revision)));
        tallies
    };
    let tallies_written = tallies(&[("scope/a", 3), ("scope/b", 4), ("vm/a", 1)]);
    let written = Stuck { tallies: tallies_written, at: "" };
    let check = |revisions: &[(&str, u64)]| check_tally(&written, "scope/", tallies(revisions).of("scope/"));
    assert_eq!(check(&[("scope/a", 3), ("scope/b", 4)]), Ok(()));
    let missing = check(&[("scope/a", 3)]);
    assert_eq!(missing, Err(IntegrityError::Miscounted { kind: "scope/".into(), found: 1, counted: 2 }));
    // Also if two records have exchanged their revisions.
    for older in [[("scope/a", 3), ("scope/b", 2)], [("scope/a", 4), ("scope/b", 3)]] {
        assert_eq!(check(&older), Err(IntegrityError::Outdated { kind: "scope/".into() }));
    }
}
