//! The store's file: created, reopened, in use, not a store, unreachable.

use std::fs;
use std::sync::atomic::AtomicUsize;

use ::redb::TableDefinition;

use super::*;

/// A directory that is removed with its test.
pub(super) struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("notbefore-store-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn refused(path: &Path) -> OpenError {
    match RedbStore::open(path) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error,
    }
}

#[tokio::test]
async fn records_and_revisions_outlive_the_store() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    let store = RedbStore::open(&path).unwrap();
    assert_eq!(read_all(&store).await, (Revision(0), vec![]));
    committed(&store, put("a", "1")).await;
    committed(&store, put("b", "2")).await;
    committed(&store, Txn { delete: vec!["a".into()], ..put("c", "3") }).await;
    let before = read_all(&store).await;
    drop(store);

    let store = RedbStore::open(&path).unwrap();
    assert_eq!(read_all(&store).await, before);
    // The log is new: it starts where the file ends.
    let too_old = store.watch(Revision(2)).await.err();
    assert_eq!(too_old, Some(WatchError::Compacted { oldest: Revision(3) }));
    let mut watch = store.watch(Revision(3)).await.unwrap();
    assert_eq!(committed(&store, put("d", "4")).await, Revision(4));
    assert_eq!(next(&mut watch).await.unwrap().revision, Revision(4));
    assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 1, "there are other files");
}

#[tokio::test]
async fn a_clone_keeps_the_store_open() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    let store = RedbStore::open(&path).unwrap();
    let clone = store.clone();
    drop(store);
    committed(&clone, put("a", "1")).await;
    assert!(matches!(refused(&path), OpenError::InUse { .. }));
}

#[test]
fn locked_file_error_names_fix() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    let _store = RedbStore::open(&path).unwrap();
    let error = refused(&path);
    assert!(matches!(&error, OpenError::InUse { path: named } if *named == path));
    assert_eq!(
        error.to_string(),
        format!(
            "{} is in use: another notbefore serve has it open; stop it or choose another --data",
            path.display()
        )
    );
}

#[test]
fn foreign_file_is_refused_unchanged() {
    let directory = Directory::new();
    let path = directory.file("notes.txt");
    for garbage in [&b"x"[..], b"not a database at all", &[0; 9000]] {
        fs::write(&path, garbage).unwrap();
        let error = refused(&path);
        assert!(matches!(error, OpenError::NotAStore { .. }), "{error:?}");
        assert!(error.to_string().starts_with(&format!("{} is not a notbefore store", path.display())));
        assert_eq!(fs::read(&path).unwrap(), garbage);
    }
}

#[test]
fn foreign_redb_file_is_refused() {
    let directory = Directory::new();
    let path = directory.file("other.redb");
    {
        let database = Database::create(&path).unwrap();
        let txn = database.begin_write().unwrap();
        txn.open_table(TableDefinition::<u64, u64>::new("theirs")).unwrap();
        txn.commit().unwrap();
    }
    let error = refused(&path);
    assert!(matches!(error, OpenError::NotAStore { .. }), "{error:?}");
}

#[test]
fn a_file_of_another_format_is_refused() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    drop(RedbStore::open(&path).unwrap());
    {
        let database = Database::open(&path).unwrap();
        let txn = database.begin_write().unwrap();
        txn.open_table(format::META).unwrap().insert(format::META_FORMAT, 9).unwrap();
        txn.commit().unwrap();
    }
    assert!(matches!(refused(&path), OpenError::NewerFormat { found: 9, .. }));
    {
        let database = Database::open(&path).unwrap();
        let txn = database.begin_write().unwrap();
        txn.open_table(format::META).unwrap().insert(format::META_FORMAT, 2).unwrap();
        txn.commit().unwrap();
    }
    let error = refused(&path);
    assert!(matches!(error, OpenError::OlderFormat { found: 2, .. }), "{error:?}");
    assert!(error.to_string().contains("export with the old one and import that"), "{error}");
}

#[test]
fn a_damaged_file_is_refused() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    drop(RedbStore::open(&path).unwrap());
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let error = refused(&path);
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("is damaged and cannot be opened; restore it from a copy"));
}

#[test]
fn unreachable_file_is_named_in_error() {
    let directory = Directory::new();
    // Permissions would not stop a test that runs as root; these errors do.
    fs::write(directory.file("file"), "").unwrap();
    for path in [directory.file("nowhere/store.redb"), directory.file("file/store.redb"), directory.0.clone()]
    {
        let error = refused(&path);
        assert!(matches!(error, OpenError::Io { .. }), "{error:?}");
        assert!(error.to_string().starts_with(&format!("cannot open {}", path.display())), "{error}");
    }
}

#[test]
fn interrupted_creation_restarts() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    fs::write(directory.file("store.redb.new"), [0; 5000]).unwrap();
    drop(RedbStore::open(&path).unwrap());
    drop(RedbStore::open(&path).unwrap());
    assert!(!directory.file("store.redb.new").exists());
}

#[test]
fn an_empty_file_becomes_a_store() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    fs::write(&path, "").unwrap();
    drop(RedbStore::open(&path).unwrap());
    drop(RedbStore::open(&path).unwrap());
}

/// A part of the file is missing: reads report it, and the service survives.
#[tokio::test]
async fn sparse_file_is_reported_as_damaged() {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    {
        let store = RedbStore::open(&path).unwrap();
        for n in 0..20 {
            committed(&store, put(&format!("large/{n:02}"), &"x".repeat(60_000))).await;
        }
    }
    let whole = fs::read(&path).unwrap();
    let mut found = 0;
    // At any position after redb's header: a hole as long as a large record.
    for start in (8 * 4096..whole.len()).step_by(15 * 4096) {
        let mut holed = whole.clone();
        let end = (start + 16 * 4096).min(holed.len());
        holed[start..end].fill(0);
        fs::write(&path, holed).unwrap();
        let damaged = match RedbStore::open(&path) {
            Ok(store) => match store.snapshot().await {
                Ok(snapshot) => snapshot.scan("", None, 100).await.is_err(),
                Err(_) => true,
            },
            Err(error) => matches!(error, OpenError::Damaged { .. } | OpenError::NotAStore { .. }),
        };
        found += usize::from(damaged);
    }
    assert!(found > 5, "only {found} holes were noticed");
}
