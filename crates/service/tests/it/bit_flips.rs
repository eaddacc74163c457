//! Flips bits of records in the store's file: the service must not start from such a record, export it or sweep it. To
//! save time, one bit in each fifth byte is flipped; `crates/store/src/redb/tests/damage.rs` flips every bit and shows
//! that the store never returns a damaged record.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::samples::{self, operation_id};
use notbefore_core::{Cause, VmId};
use notbefore_engine::records::{ALIVE, LOADED};
use notbefore_engine::{AddVm, Address, NewOperation, OperationCommand, TargetSelector, VmSpec};
use notbefore_service::clock::{Clock, SystemClock};
use notbefore_service::data_dir::DataDir;
use notbefore_service::janitor::{HistoryLimits, Janitor};
use notbefore_service::transfer::export::ExportError;
use notbefore_service::transfer::{damaged, import};
use notbefore_service::{ServeError, serve};
use notbefore_store::redb::RedbStore;
use notbefore_store::{Key, Store, Versioned};

use crate::used_data_dir;

const VM: VmId = samples::vm(7);

/// A store with a VM, a live event, a cancelled event and a token.
async fn used_data_dir(path: &Path) {
    let address = Address { network: "default".parse().unwrap(), ip: [10, 0, 0, 1].into() };
    let vm = VmSpec { addresses: vec![address], ..VmSpec::with_defaults(VM, "web".parse().unwrap()) };
    let schedule = |id| {
        let operation =
            NewOperation::with_defaults(operation_id(id), Cause::HostReboot, TargetSelector::Vms(vec![VM]));
        OperationCommand::Schedule(operation).into()
    };
    let add = AddVm { path: "web".parse().unwrap(), kind: None, vm }.into();
    let cancel = OperationCommand::Cancel(operation_id(2)).into();
    used_data_dir::make(path, vec![add, schedule(1), schedule(2), cancel]).await;
}

async fn exported(store: &RedbStore) -> Result<Vec<String>, ExportError> {
    let text = used_data_dir::exported(store, Timestamp::UNIX_EPOCH).await?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// A store in which every record was written once: its file, the file's bytes, and the records.
fn written_once(dir: &Path) -> (PathBuf, Vec<u8>, Vec<(Key, Versioned)>) {
    let (old, new) = (dir.join("old"), dir.join("new"));
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    runtime().block_on(used_data_dir(&old));
    let lines = runtime().block_on(async {
        let store = DataDir::prepare(&old).unwrap().open_store().unwrap();
        exported(&store).await.unwrap().join("\n") + "\n"
    });
    import::import(&new, lines.as_bytes(), |_| {}).unwrap();
    let file = new.join("store.redb");
    let records = runtime().block_on(async {
        let store = RedbStore::open_unchanged(&file).unwrap();
        store.snapshot().await.unwrap().scan("", None, 1_000).await.unwrap().records
    });
    let image = fs::read(&file).unwrap();
    (file, image, records)
}

/// The offsets of some bytes in a file.
fn offsets(image: &[u8], bytes: &[u8]) -> Vec<usize> {
    let finds = |at: &usize| image[*at..].starts_with(bytes);
    (0..=image.len() - bytes.len()).filter(|at| image[*at] == bytes[0]).filter(finds).collect()
}

/// The range of a record in a file without its key: checksum, revision and value.
fn byte_range(image: &[u8], record: &Versioned) -> std::ops::Range<usize> {
    let bytes = [&record.revision.0.to_le_bytes()[..], &record.value].concat();
    let found = offsets(image, &bytes);
    // Records without a value may have the same bytes, so they are found by key.
    let at = *found.last().unwrap();
    at - 4..at + bytes.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flipped_bit_prevents_start_and_export() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_owned();
    let (path, image, records) = tokio::task::spawn_blocking(move || written_once(&at)).await.unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    let lines = exported(&RedbStore::open_unchanged(&path).unwrap()).await.unwrap();
    serve::load(&RedbStore::open_unchanged(&path).unwrap()).await.unwrap();
    let mut tried = 0;
    for (key, record) in &records {
        let is_loaded = **key == *ALIVE || LOADED.iter().any(|kind| key.starts_with(kind));
        let value = if record.value.is_empty() { 0..0 } else { byte_range(&image, record) };
        let keys = offsets(&image, key.as_bytes()).into_iter().map(|at| (at..at + key.len(), false));
        for (range, is_value) in keys.chain([(value, true)]) {
            for at in range.step_by(5) {
                tried += 1;
                file.write_all_at(&[image[at] ^ (1 << (at % 8))], at as u64).unwrap();
                // A file that cannot be opened is neither started from nor exported.
                let outcome = match RedbStore::open_unchanged(&path) {
                    Ok(store) => Some((exported(&store).await, serve::load(&store).await)),
                    Err(_) => None,
                };
                file.write_all_at(&image[at..=at], at as u64).unwrap();
                let Some((export, loaded)) = outcome else { continue };
                if let Ok(export) = &export {
                    assert!(!is_value && *export == lines, "{key}, byte {at}: {export:#?}");
                } else if is_loaded {
                    let Err(ServeError::Damaged(why)) = loaded else {
                        panic!("the service started with {key} damaged at byte {at}")
                    };
                    assert!(why.to_string().contains("notbefore check --data DIR"), "{why}");
                }
            }
        }
    }
    assert!(tried > 500, "only {tried} bytes");
}

/// The sweep keeps a damaged event and its index entry, and removes everything else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_history_is_never_swept() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_owned();
    let (path, mut image, records) = tokio::task::spawn_blocking(move || written_once(&at)).await.unwrap();
    let of = |kind: &str| records.iter().filter(|(key, _)| key.starts_with(kind)).collect::<Vec<_>>();
    let damaged = [of("past/")[0], of("fact/")[0], of("command/")[0]];
    for (_, record) in damaged {
        let at = byte_range(&image, record).start;
        image[at] ^= 1;
    }
    fs::write(&path, image).unwrap();
    let store = Arc::new(RedbStore::open_unchanged(&path).unwrap());
    let later = SystemClock.now().checked_add(SignedDuration::from_hours(100_000)).unwrap();
    let limits = HistoryLimits { retention: SignedDuration::from_hours(1), bytes_max: None };
    Janitor::new(store.clone(), limits).sweep(later).await.unwrap();
    let left = async |kind: &str| {
        let page = store.snapshot().await.unwrap().scan(kind, None, 1_000).await.unwrap();
        (page.records.len(), page.damaged)
    };
    for (kind, (key, _)) in ["past/", "fact/", "command/"].into_iter().zip(damaged) {
        assert_eq!(left(kind).await, (0, vec![key.clone()]));
    }
    assert_eq!(left("ended/").await, (1, vec![]));
    assert_eq!(store.damaged(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn salvaged_export_of_damaged_store_imports() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_owned();
    let (file, image, records) = tokio::task::spawn_blocking(move || written_once(&at)).await.unwrap();
    for kind in ["scope/", "vm/", "claim/", "operation/", "token/", "fact/", "past/"] {
        let (key, record) = records.iter().find(|(key, _)| key.starts_with(kind)).unwrap();
        let mut flipped = image.clone();
        flipped[byte_range(&image, record).end - 1] ^= 1;
        fs::write(&file, &flipped).unwrap();
        let checked = damaged::check(&file).unwrap();
        let named = |finding: &damaged::Finding| finding.key.as_deref() == Some(&**key);
        assert!(checked.findings.iter().any(named), "{kind}: {checked:?}");
        let mut lines = Vec::new();
        let saved = damaged::save(&file, true, Timestamp::UNIX_EPOCH, &mut lines).unwrap();
        assert!(saved.left_out.iter().any(named), "{kind}: {saved:?}");
        // A damaged scope takes its VMs and their addresses with it; other records take nothing.
        let expected = records.len() - if kind == "scope/" { 3 } else { 1 };
        assert_eq!(saved.records, expected as u64, "{kind}: {saved:?}");
        assert!(fs::read(&file).unwrap() == flipped, "the file is unchanged");
        let new = dir.path().join(kind.trim_end_matches('/'));
        let imported = tokio::task::spawn_blocking(move || import::import(&new, &lines[..], |_| {}));
        assert_eq!(imported.await.unwrap().unwrap().records, expected as u64, "{kind}");
    }
    // The store's own metadata is not a record: all records are exported.
    let state = offsets(&image, b"store ").into_iter().find(|at| image[at + 22] == b'\n').unwrap();
    let mut flipped = image.clone();
    flipped[state] ^= 1;
    fs::write(&file, &flipped).unwrap();
    assert!(RedbStore::open(&file).is_err());
    assert!(!damaged::check(&file).unwrap().findings.is_empty());
    let mut lines = Vec::new();
    let saved = damaged::save(&file, true, Timestamp::UNIX_EPOCH, &mut lines).unwrap();
    assert_eq!(saved.records, records.len() as u64, "{saved:?}");
    assert_eq!(import::check(&lines[..], |_| {}).unwrap().records, records.len() as u64);

    fs::write(&file, &image).unwrap();
    assert_eq!(damaged::check(&file).unwrap().findings, []);
}
