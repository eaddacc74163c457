//! Checks a store that no service uses, and exports its undamaged records.
//!
//! Records are read in order; damaged ones are skipped and listed. If redb cannot follow the pages of the file, the
//! rest is read backwards from the end, so that one damaged page loses only its own records. The file is not changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;
use notbefore_store::redb::{self, OpenError, RedbStore};
use notbefore_store::{Key, ReadError, Revision, Snapshot, Store, Versioned};
use serde::Serialize;

use super::export::is_left_out;
use super::kinds::{Counts, RecordChecker};
use super::lines::LineWriter;

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
}

impl DamagedError {
    /// Whether a newer release wrote the store.
    pub fn is_newer_format(&self) -> bool {
        matches!(self, Self::Open(OpenError::NewerFormat { .. }))
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

/// Checks a whole store: redb's pages, the checksum and content of every record, the number of records, and their
/// consistency.
pub async fn check(store: &Path) -> Result<Checked, DamagedError> {
    let mut findings = Vec::new();
    if !redb::pages_are_whole(store)? {
        findings.push(Finding::of_file("the checksums of the file's pages do not match"));
    }
    let opened = match open(store, &mut findings)? {
        Some(opened) => opened,
        None => return Ok(Checked { findings, ..Checked::default() }),
    };
    let snapshot = opened.snapshot().await?;
    let survey = survey(&*snapshot, &mut findings).await?;
    findings.extend(survey.left_out().into_iter().map(|(key, why)| Finding::of(&*key, why)));
    let (records, counts) = (survey.records, survey.checker.counts());
    Ok(Checked { revision: snapshot.revision().0, records, counts, findings })
}

/// Reads all records, and adds damaged and missing ones to the findings.
async fn survey(snapshot: &dyn Snapshot, findings: &mut Vec<Finding>) -> Result<Survey, DamagedError> {
    let mut survey = Survey::default();
    let lost = walk(snapshot, |key, record| {
        survey.take(key, record);
        Ok(())
    })
    .await?;
    findings.extend(lost.findings());
    findings.extend(survey.miscounted(snapshot));
    Ok(survey)
}

/// Opens a damaged store; none if nothing can be read.
fn open(store: &Path, findings: &mut Vec<Finding>) -> Result<Option<RedbStore>, OpenError> {
    match RedbStore::open_unchanged(store) {
        Ok(opened) => Ok(Some(opened)),
        Err(error @ OpenError::Damaged { .. }) => {
            findings.push(Finding::of_file(chain(&error)));
            Ok(RedbStore::open_rebuilt(store).ok())
        }
        Err(error) => Err(error),
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

/// Exports all undamaged records that are consistent without the damaged ones, so that the export can be imported.
pub async fn save(
    store: &Path,
    tokens: bool,
    now: Timestamp,
    out: &mut dyn Write,
) -> Result<Saved, DamagedError> {
    let mut findings = Vec::new();
    let opened = match open(store, &mut findings)? {
        Some(opened) => opened,
        // Nothing can be read; the error says why.
        None => RedbStore::open_unchanged(store)?,
    };
    let snapshot = opened.snapshot().await?;
    let survey = survey(&*snapshot, &mut findings).await?;
    let left_out = survey.left_out();
    let mut writer = LineWriter::new(snapshot.revision(), now, tokens);
    walk(&*snapshot, |key, record| {
        if left_out.contains_key(key) || is_left_out(key, tokens) {
            return Ok(());
        }
        if let Err(error) = writer.record(key, record) {
            findings.push(Finding::of(&**key, error.to_string()));
        }
        match writer.waiting() >= CHUNK_BYTES {
            true => out.write_all(&writer.take()).map_err(DamagedError::Write),
            false => Ok(()),
        }
    })
    .await?;
    writer.finish();
    out.write_all(&writer.take()).map_err(DamagedError::Write)?;
    findings.extend(left_out.into_iter().map(|(key, why)| Finding::of(&*key, why)));
    Ok(Saved { revision: snapshot.revision(), records: writer.records(), left_out: findings })
}

/// The readable records, checked for consistency.
#[derive(Default)]
struct Survey {
    records: u64,
    kinds: BTreeMap<String, u64>,
    checker: RecordChecker,
    /// Records whose content does not match their key.
    wrong: BTreeMap<Key, String>,
}

impl Survey {
    fn take(&mut self, key: &Key, record: &Versioned) {
        self.records += 1;
        let kind = key.find('/').and_then(|slash| key.get(..=slash)).unwrap_or_default();
        *self.kinds.entry(kind.to_owned()).or_default() += 1;
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

    fn miscounted(&self, snapshot: &dyn Snapshot) -> Vec<Finding> {
        let counted: BTreeMap<String, u64> = snapshot.counts().into_iter().flatten().collect();
        let kinds: BTreeSet<&String> = counted.keys().chain(self.kinds.keys()).collect();
        let of = |counts: &BTreeMap<String, u64>, kind: &String| counts.get(kind).copied().unwrap_or(0);
        kinds
            .into_iter()
            .map(|kind| (kind, of(&self.kinds, kind), of(&counted, kind)))
            .filter(|(_, found, counted)| found != counted)
            .map(|(kind, found, counted)| {
                Finding::of(kind, format!("{found} records can be read, {counted} are expected"))
            })
            .collect()
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

/// Visits all readable records in the order of their keys.
async fn walk(
    snapshot: &dyn Snapshot,
    mut take: impl FnMut(&Key, &Versioned) -> Result<(), DamagedError>,
) -> Result<Damage, DamagedError> {
    let mut lost = Damage::default();
    let mut after: Option<Key> = None;
    let mut limit = PAGE;
    loop {
        let Ok(page) = snapshot.scan("", after.as_deref(), limit).await else {
            match limit {
                // Read single records up to the first one that cannot be reached.
                1 => break,
                _ => limit = 1,
            }
            continue;
        };
        for (key, record) in &page.records {
            take(key, record)?;
        }
        lost.damaged.extend(page.damaged);
        after = page.records.last().map(|(key, _)| key.clone()).or(after);
        if !page.more {
            return Ok(lost);
        }
    }
    let behind = scan_backwards(snapshot, after.as_deref(), &mut lost).await;
    lost.gap = Some((after, behind.last().map(|(key, _)| key.clone())));
    for (key, record) in behind.iter().rev() {
        take(key, record)?;
    }
    Ok(lost)
}

/// The records after an unreadable range, last one first.
async fn scan_backwards(
    snapshot: &dyn Snapshot,
    until: Option<&str>,
    lost: &mut Damage,
) -> Vec<(Key, Versioned)> {
    let mut behind: Vec<(Key, Versioned)> = Vec::new();
    let mut limit = PAGE;
    loop {
        let before = behind.last().map(|(key, _)| key.clone());
        let Ok(page) = snapshot.scan_back("", before.as_deref(), limit).await else {
            match limit {
                1 => return behind,
                _ => limit = 1,
            }
            continue;
        };
        lost.damaged.extend(page.damaged);
        let is_new = |key: &Key| until.is_none_or(|until| **key > *until);
        let count = behind.len();
        behind.extend(page.records.into_iter().take_while(|(key, _)| is_new(key)));
        if !page.more || behind.len() == count {
            return behind;
        }
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
