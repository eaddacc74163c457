//! Checks a store that no service uses, and exports its undamaged records.
//!
//! Records are read in order; damaged ones are skipped and listed. If redb cannot follow the pages of the file, the
//! rest is read backwards from the end, so that one damaged page loses only its own records. The file is not changed.
//!
//! Damaged pages may lead in a circle. Each walk visits no more entries than the file has room for, on a thread that is
//! given up if it takes no step for [`STALL_MAX`].

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_store::redb::{self, ENTRY_BYTES_MIN, OpenError, Progress, RedbStore};
use notbefore_store::{Key, Page, ReadError, Revision, Snapshot, Store, Tallies, TallyMismatch, Versioned};
use serde::Serialize;

use super::export::is_left_out;
use super::kinds::{Counts, RecordChecker};
use super::lines::LineWriter;
use crate::integrity::STALL_MAX;

/// Records per scan.
const PAGE: usize = 500;

/// Approximate bytes per write.
const CHUNK_BYTES: usize = 128 * 1024;

/// Why a store could not be checked.
#[derive(Debug, thiserror::Error)]
pub enum DamagedError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("cannot write the export: {0}")]
    Write(io::Error),
    #[error("cannot start the thread that reads the store: {0}")]
    Thread(io::Error),
    #[error(
        "nothing more was read from {} for {} s, so reading was given up: the disk does not answer, or damaged pages of the file lead in a circle; copy the file to another disk and try again, or restore a backup",
        path.display(), after.as_secs()
    )]
    Stalled { path: PathBuf, after: Duration },
    #[error("the thread that reads the store has ended unexpectedly; try again, or restore a backup")]
    Died,
}

impl DamagedError {
    /// Whether a newer release wrote the store.
    pub fn is_newer_format(&self) -> bool {
        matches!(self, Self::Open(OpenError::NewerFormat { .. }))
    }

    /// Whether the reason says nothing about damage: the store is in use, cannot be opened, or has another format.
    pub fn is_no_damage(&self) -> bool {
        match self {
            Self::Open(error) => match error {
                OpenError::InUse { .. }
                | OpenError::OlderFormat { .. }
                | OpenError::NewerFormat { .. }
                | OpenError::Exists { .. }
                | OpenError::Io { .. }
                | OpenError::Thread(_) => true,
                OpenError::NotAStore { .. } | OpenError::Damaged { .. } | OpenError::Vanished { .. } => false,
            },
            Self::Write(_) | Self::Thread(_) | Self::Died => true,
            Self::Read(_) | Self::Stalled { .. } => false,
        }
    }
}

/// One defect of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A record's key, or a prefix of keys; none if the whole file is concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub problem: String,
}

impl Finding {
    fn of(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: Some(key.into()), problem: problem.into() }
    }

    fn of_file(problem: impl Into<String>) -> Self {
        Self { key: None, problem: problem.into() }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// The newest revision; 0 if the store could not be opened.
    pub revision: u64,
    /// Number of readable records.
    pub records: u64,
    /// Readable records by kind.
    pub counts: Counts,
    /// Empty if the store is undamaged.
    pub findings: Vec<Finding>,
}

/// Checks a whole store: redb's pages, the checksum and content of every record, the tallies, and the consistency of
/// all records. Blocking.
pub fn check(store: &Path) -> Result<Checked, DamagedError> {
    let findings = page_findings(store)?;
    guarded(store, &mut io::sink(), async move |reader| reader.check(findings).await)
}

/// Exports all undamaged records that are consistent without the damaged ones, so that the export can be imported.
/// Blocking.
pub fn save(store: &Path, tokens: bool, now: Timestamp, out: &mut dyn Write) -> Result<Saved, DamagedError> {
    let findings = page_findings(store)?;
    guarded(store, out, async move |reader| reader.save(findings, tokens, now).await)
}

/// Verifies redb's checksums of the file's pages.
fn page_findings(store: &Path) -> Result<Vec<Finding>, DamagedError> {
    let verify = async |reader: Reader| Ok(redb::pages_are_whole(&reader.path, &reader.progress)?);
    match guarded(store, &mut io::sink(), verify) {
        Ok(true) => Ok(Vec::new()),
        Ok(false) => Ok(vec![Finding::of_file("the checksums of the file's pages do not match")]),
        // The records may be readable.
        Err(stalled @ DamagedError::Stalled { .. }) => Ok(vec![Finding::of_file(stalled.to_string())]),
        Err(error) => Err(error),
    }
}

/// Reads a store on a thread of its own, and writes what it sends to `out`.
fn guarded<T, W>(store: &Path, out: &mut dyn Write, work: W) -> Result<T, DamagedError>
where
    T: Send + 'static,
    W: AsyncFnOnce(Reader) -> Result<T, DamagedError> + Send + 'static,
{
    guarded_for(STALL_MAX, store, out, work)
}

fn guarded_for<T, W>(
    stall_max: Duration,
    store: &Path,
    out: &mut dyn Write,
    work: W,
) -> Result<T, DamagedError>
where
    T: Send + 'static,
    W: AsyncFnOnce(Reader) -> Result<T, DamagedError> + Send + 'static,
{
    let (chunks, waiting) = mpsc::sync_channel(1);
    let progress = Progress::default();
    let reader = Reader { path: store.to_owned(), progress: progress.clone(), chunks: chunks.clone() };
    let read = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(DamagedError::Thread)?;
        let done = runtime.block_on(work(reader));
        drop(runtime);
        // Until here the store may still be closing.
        drop(chunks);
        done
    };
    let thread =
        thread::Builder::new().name("notbefore-check".into()).spawn(read).map_err(DamagedError::Thread)?;
    loop {
        match progress.recv(&waiting, stall_max) {
            Ok(chunk) => out.write_all(&chunk).map_err(DamagedError::Write)?,
            Err(RecvTimeoutError::Timeout) => {
                return Err(DamagedError::Stalled { path: store.to_owned(), after: stall_max });
            }
            Err(RecvTimeoutError::Disconnected) => {
                return thread.join().unwrap_or(Err(DamagedError::Died));
            }
        }
    }
}

/// The result of [`save`].
#[derive(Clone, Debug)]
pub struct Saved {
    pub revision: Revision,
    /// Number of exported records.
    pub records: u64,
    /// Records that were not exported, and why.
    pub left_out: Vec<Finding>,
}

/// Reads one store.
struct Reader {
    path: PathBuf,
    progress: Progress,
    /// Bytes of the export.
    chunks: SyncSender<Bytes>,
}

impl Reader {
    async fn check(self, mut findings: Vec<Finding>) -> Result<Checked, DamagedError> {
        let opened = match self.open(&mut findings)? {
            Some(opened) => opened,
            None => return Ok(Checked { findings, ..Checked::default() }),
        };
        let snapshot = opened.snapshot().await?;
        let survey = self.survey(&*snapshot, &mut findings).await?;
        findings.extend(survey.left_out().into_iter().map(|(key, why)| Finding::of(&*key, why)));
        let (records, counts) = (survey.records, survey.checker.counts());
        Ok(Checked { revision: snapshot.revision().0, records, counts, findings })
    }

    async fn save(
        self,
        mut findings: Vec<Finding>,
        tokens: bool,
        now: Timestamp,
    ) -> Result<Saved, DamagedError> {
        let opened = match self.open(&mut findings)? {
            Some(opened) => opened,
            // Nothing can be read; the error says why.
            None => RedbStore::open_unchanged_with(&self.path, &self.progress)?,
        };
        let snapshot = opened.snapshot().await?;
        let survey = self.survey(&*snapshot, &mut findings).await?;
        let left_out = survey.left_out();
        let mut writer = LineWriter::new(snapshot.revision(), now, tokens);
        self.walk(&*snapshot, |key, record| {
            if left_out.contains_key(key) || is_left_out(key, tokens) {
                return;
            }
            if let Err(error) = writer.record(key, record) {
                findings.push(Finding::of(&**key, error.to_string()));
            }
            if writer.waiting() >= CHUNK_BYTES {
                self.send(writer.take());
            }
        })
        .await?;
        writer.finish();
        self.send(writer.take());
        findings.extend(left_out.into_iter().map(|(key, why)| Finding::of(&*key, why)));
        Ok(Saved { revision: snapshot.revision(), records: writer.records(), left_out: findings })
    }

    /// Opens a damaged store; none if nothing can be read.
    fn open(&self, findings: &mut Vec<Finding>) -> Result<Option<RedbStore>, OpenError> {
        match RedbStore::open_unchanged_with(&self.path, &self.progress) {
            Ok(opened) => Ok(Some(opened)),
            Err(error @ OpenError::Damaged { .. }) => {
                findings.push(Finding::of_file(chain(&error)));
                Ok(RedbStore::open_rebuilt(&self.path, &self.progress).ok())
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a part of the export.
    fn send(&self, chunk: Bytes) {
        // Fails only if writing has failed; then the result is not waited for.
        let _ = self.chunks.send(chunk);
        self.progress.advance();
    }

    /// Reads all records, and adds damaged and missing ones to the findings.
    async fn survey(
        &self,
        snapshot: &dyn Snapshot,
        findings: &mut Vec<Finding>,
    ) -> Result<Survey, DamagedError> {
        let mut survey = Survey::default();
        let lost = self.walk(snapshot, |key, record| survey.take(key, record)).await?;
        findings.extend(lost.findings());
        findings.extend(survey.mismatches(snapshot));
        Ok(survey)
    }

    /// Visits all readable records in the order of their keys.
    async fn walk(
        &self,
        snapshot: &dyn Snapshot,
        mut take: impl FnMut(&Key, &Versioned),
    ) -> Result<Damage, DamagedError> {
        let mut lost = Damage::default();
        let bytes = std::fs::metadata(&self.path)
            .map_err(|source| OpenError::Io { path: self.path.clone(), source })?;
        let mut room = EntryRoom(bytes.len() / ENTRY_BYTES_MIN);
        let mut after: Option<Key> = None;
        let mut limit = PAGE;
        while room.0 > 0 {
            let Ok(page) = snapshot.scan("", after.as_deref(), limit).await else {
                match limit {
                    // Read single records up to the first one that cannot be reached.
                    1 => break,
                    _ => limit = 1,
                }
                continue;
            };
            self.progress.advance();
            room.take(&page);
            limit = (2 * limit).min(PAGE);
            page.records.iter().for_each(|(key, record)| take(key, record));
            lost.damaged.extend(page.damaged);
            match (page.more, page.records.last()) {
                (false, _) => return Ok(lost),
                (true, Some((key, _))) => after = Some(key.clone()),
                (true, None) => break,
            }
        }
        let behind = self.scan_backwards(snapshot, after.as_deref(), &mut lost, &mut room).await;
        lost.gap = Some((after, behind.last().map(|(key, _)| key.clone())));
        behind.iter().rev().for_each(|(key, record)| take(key, record));
        Ok(lost)
    }

    /// The records after an unreadable range, last one first.
    async fn scan_backwards(
        &self,
        snapshot: &dyn Snapshot,
        until: Option<&str>,
        lost: &mut Damage,
        room: &mut EntryRoom,
    ) -> Vec<(Key, Versioned)> {
        let mut behind: Vec<(Key, Versioned)> = Vec::new();
        let mut limit = PAGE;
        while room.0 > 0 {
            let before = behind.last().map(|(key, _)| key.clone());
            let Ok(page) = snapshot.scan_back("", before.as_deref(), limit).await else {
                match limit {
                    1 => break,
                    _ => limit = 1,
                }
                continue;
            };
            self.progress.advance();
            room.take(&page);
            limit = (2 * limit).min(PAGE);
            lost.damaged.extend(page.damaged);
            let is_new = |key: &Key| until.is_none_or(|until| **key > *until);
            let count = behind.len();
            behind.extend(page.records.into_iter().take_while(|(key, _)| is_new(key)));
            if !page.more || behind.len() == count {
                break;
            }
        }
        behind
    }
}

/// How many entries a walk may still visit: a file of its size has no more.
struct EntryRoom(u64);

impl EntryRoom {
    fn take(&mut self, page: &Page) {
        let entries = page.records.len() + page.damaged.len() + 1;
        self.0 = self.0.saturating_sub(entries as u64);
    }
}

/// The readable records, checked for consistency.
#[derive(Default)]
struct Survey {
    records: u64,
    tallies: Tallies,
    checker: RecordChecker,
    /// Records whose content does not match their key.
    wrong: BTreeMap<Key, String>,
}

impl Survey {
    fn take(&mut self, key: &Key, record: &Versioned) {
        self.records += 1;
        self.tallies.add(key, record.revision);
        if let Err(bad) = self.checker.check(self.records, key, &record.value) {
            self.wrong.insert(key.clone(), bad.to_string());
        }
    }

    /// Records that an import would refuse, by themselves or because others are missing.
    fn left_out(&self) -> BTreeMap<Key, String> {
        let inconsistencies =
            self.checker.inconsistencies().into_iter().map(|(key, inconsistency)| (key, inconsistency.why));
        self.wrong.clone().into_iter().chain(inconsistencies).collect()
    }

    /// Kinds whose records are not those that were written last.
    fn mismatches(&self, snapshot: &dyn Snapshot) -> Vec<Finding> {
        let mismatches =
            snapshot.tallies().map(|written| self.tallies.mismatches(written)).unwrap_or_default();
        let finding = |TallyMismatch { kind, found, written }: TallyMismatch| match found.count
            == written.count
        {
            true => Finding::of(
                kind,
                "some records are not those that were written last: a write was lost, or went to another place",
            ),
            false => Finding::of(
                kind,
                format!("{} records can be read, {} are expected", found.count, written.count),
            ),
        };
        mismatches.into_iter().map(finding).collect()
    }
}

/// What could not be read.
#[derive(Default)]
struct Damage {
    damaged: BTreeSet<Key>,
    /// The last key before and the first key after an unreadable range.
    gap: Option<(Option<Key>, Option<Key>)>,
}

impl Damage {
    fn findings(&self) -> Vec<Finding> {
        let damaged = self.damaged.iter().map(|key| Finding::of(&**key, "its checksum does not match"));
        let mut findings: Vec<Finding> = damaged.collect();
        if let Some((before, behind)) = &self.gap {
            let before = before.as_deref().unwrap_or("the beginning");
            let behind = behind.as_deref().unwrap_or("the end");
            findings.push(Finding::of_file(format!(
                "the file's pages cannot be followed: all records between {before} and {behind} are lost"
            )));
        }
        findings
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// redb may follow damaged pages in a circle without end.
    #[test]
    fn reader_that_takes_no_step_is_given_up() {
        let (held, end) = mpsc::channel::<()>();
        let stuck = async move |reader: Reader| {
            reader.send(Bytes::from_static(b"the first part"));
            let _ = end.recv();
            Ok(())
        };
        let mut out = Vec::new();
        let given_up = guarded_for(Duration::from_millis(20), Path::new("store.redb"), &mut out, stuck);
        let Err(error @ DamagedError::Stalled { .. }) = given_up else { panic!("{given_up:?}") };
        assert!(error.to_string().contains("store.redb") && error.to_string().contains("lead in a circle"));
        drop(held);
    }

    #[test]
    fn reader_that_ends_is_waited_for() {
        let mut out = Vec::new();
        let sent = guarded(Path::new("store.redb"), &mut out, async |reader: Reader| {
            reader.send(Bytes::from_static(b"one "));
            reader.send(Bytes::from_static(b"two"));
            Ok(2)
        });
        assert_eq!((sent.unwrap(), &out[..]), (2, &b"one two"[..]));
        let died = guarded(Path::new("store.redb"), &mut io::sink(), async |_reader| -> Result<(), _> {
            // Like a bug of this file: panics of redb are errors before they come here.
            std::panic::resume_unwind(Box::new("a bug"))
        });
        assert!(matches!(died, Err(DamagedError::Died)), "{died:?}");
    }
}
