//! Exports a snapshot as lines, with back-pressure.
//!
//! A snapshot keeps old pages of the store from being reused, so a slow reader must not hold it without limit. The
//! export is aborted if the reader takes nothing for [`SEND_TIMEOUT`]. The reader's file then lacks the last line.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_engine::cluster::CLUSTER;
use notbefore_engine::records::{self, prefix};
use notbefore_store::{Key, ReadError, Snapshot, Tallies};
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;

use super::lines::{ExportRecordError, LineWriter};
use crate::integrity::RECOVERY_HINT;
use crate::scan::Scan;

/// Longest time that a reader may take nothing.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// Records per scan: at most 16 MiB.
const PAGE: usize = 32;

/// The same for a store whose pages are limited by bytes, and cost as much as the rest of their range.
const COSTLY_PAGE: usize = 1_000;

/// Approximate bytes per chunk.
const CHUNK_BYTES: usize = 128 * 1024;

/// Why an export was aborted.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Record(#[from] ExportRecordError),
    #[error("record {0} is damaged: its checksum does not match; {RECOVERY_HINT}")]
    Damaged(Key),
    #[error(
        "records below '{0}' are not those that were written last: a write to the store was lost; {RECOVERY_HINT}"
    )]
    Outdated(String),
    #[error("timeout: the reader took nothing for too long")]
    TooSlow,
    #[error("the reader has disconnected")]
    Disconnected,
}

#[derive(Clone, Copy, Debug)]
pub struct ExportOptions {
    /// Whether operator tokens (hashes and grants) are included.
    pub tokens: bool,
    /// [`SEND_TIMEOUT`]; shorter in tests.
    pub send_timeout: Duration,
}

/// Sends all lines in chunks, then an empty chunk. Returns the number of records.
pub async fn export(
    snapshot: Box<dyn Snapshot>,
    options: ExportOptions,
    now: Timestamp,
    chunks: Sender<Bytes>,
) -> Result<u64, ExportError> {
    let mut writer = LineWriter::new(snapshot.revision(), now, options.tokens);
    let mut found = Tallies::default();
    let is_costly = snapshot.has_costly_ranges();
    let limit = if is_costly { COSTLY_PAGE } else { PAGE };
    for range in records::all_ranges(is_costly) {
        let mut pages = Scan::new(&*snapshot, &range, limit);
        while let Some(page) = pages.next().await? {
            if let Some(key) = page.damaged.first() {
                return Err(ExportError::Damaged(key.clone()));
            }
            for (key, record) in &page.records {
                found.add(key, record.revision);
                if is_left_out(key, options.tokens) {
                    continue;
                }
                writer.record(key, record)?;
                if writer.waiting() >= CHUNK_BYTES {
                    send(&chunks, writer.take(), options.send_timeout).await?;
                }
            }
        }
    }
    let mismatches = snapshot.tallies().map(|written| found.mismatches(written)).unwrap_or_default();
    if let Some(mismatch) = mismatches.into_iter().next() {
        return Err(ExportError::Outdated(mismatch.kind));
    }
    writer.finish();
    send(&chunks, writer.take(), options.send_timeout).await?;
    send(&chunks, Bytes::new(), options.send_timeout).await?;
    Ok(writer.records())
}

/// Whether an export leaves a record out: secrets and what describes running nodes always, tokens unless they are wanted.
pub fn is_left_out(key: &str, tokens: bool) -> bool {
    key.starts_with(prefix::SECRET) || key.starts_with(CLUSTER) || (!tokens && key.starts_with(prefix::TOKEN))
}

async fn send(chunks: &Sender<Bytes>, chunk: Bytes, send_timeout: Duration) -> Result<(), ExportError> {
    match timeout(send_timeout, chunks.send(chunk)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(ExportError::Disconnected),
        Err(_) => Err(ExportError::TooSlow),
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use notbefore_store::memory::MemoryStore;
    use notbefore_store::{Outcome, Page, Revision, Store, Txn, Versioned};
    use tokio::sync::mpsc;

    use super::super::lines::Lines;
    use super::*;

    async fn store(records: usize) -> MemoryStore {
        let store = MemoryStore::new();
        for n in 0..records {
            let value = format!("1 \"{}\"", "x".repeat(20_000));
            let put = [
                (format!("fact/{n:03}"), value.as_str()),
                ("token/root".into(), "1 {}"),
                ("secret/x".into(), "2 {}"),
            ];
            let put = put.map(|(key, value)| (key.into(), value.to_owned().into())).into();
            assert!(matches!(store.commit(Txn { put, ..Txn::default() }).await, Outcome::Committed(_)));
        }
        store
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_reader_times_out() {
        let snapshot = store(40).await.snapshot().await.unwrap();
        let (chunks, mut taken) = mpsc::channel(1);
        let options = ExportOptions { tokens: true, send_timeout: Duration::from_millis(10) };
        let export = tokio::spawn(export(snapshot, options, Timestamp::UNIX_EPOCH, chunks));
        assert!(taken.recv().await.is_some_and(|chunk| chunk.len() < 2 * CHUNK_BYTES));
        assert!(matches!(export.await.unwrap(), Err(ExportError::TooSlow)));
        // One chunk was in the channel; the end is never sent.
        assert!(taken.recv().await.is_some_and(|chunk| !chunk.is_empty()));
        assert_eq!(taken.recv().await, None);
    }

    /// A snapshot with the tallies of other records than those that it returns.
    struct Outdated {
        snapshot: Box<dyn Snapshot>,
        written: Tallies,
    }

    #[async_trait]
    impl Snapshot for Outdated {
        fn revision(&self) -> Revision {
            self.snapshot.revision()
        }

        fn tallies(&self) -> Option<&Tallies> {
            Some(&self.written)
        }

        async fn get(&self, key: &str) -> Result<Option<Versioned>, ReadError> {
            self.snapshot.get(key).await
        }

        async fn scan(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, ReadError> {
            self.snapshot.scan(prefix, after, limit).await
        }

        async fn scan_back(
            &self,
            prefix: &str,
            before: Option<&str>,
            limit: usize,
        ) -> Result<Page, ReadError> {
            self.snapshot.scan_back(prefix, before, limit).await
        }
    }

    #[tokio::test]
    async fn records_of_a_lost_write_end_the_export_without_its_last_line() {
        // `token/root` was written last at revision 3, or at revision 4 in a write that was lost.
        for (token_at, outdated) in [(3, None), (4, Some("token/"))] {
            let snapshot = store(3).await.snapshot().await.unwrap();
            let mut written = Tallies::default();
            (0..3).for_each(|n| written.add(&format!("fact/{n:03}"), Revision(n + 1)));
            written.add("secret/x", Revision(3));
            written.add("token/root", Revision(token_at));
            let (chunks, mut taken) = mpsc::channel(1);
            let options = ExportOptions { tokens: true, send_timeout: SEND_TIMEOUT };
            let snapshot = Box::new(Outdated { snapshot, written });
            let task = tokio::spawn(export(snapshot, options, Timestamp::UNIX_EPOCH, chunks));
            let mut text = Vec::new();
            while let Some(chunk) = taken.recv().await {
                text.extend(chunk);
            }
            let mut lines = Lines::new(&text[..]);
            let is_complete = lines.header().is_ok()
                && loop {
                    match lines.next_record() {
                        Ok(Some(_)) => {}
                        Ok(None) => break true,
                        Err(_) => break false,
                    }
                };
            assert_eq!(is_complete, outdated.is_none());
            match task.await.unwrap() {
                Ok(records) => assert_eq!((records, outdated), (4, None)),
                Err(ExportError::Outdated(kind)) => assert_eq!(Some(kind.as_str()), outdated),
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[tokio::test]
    async fn export_without_tokens_omits_them() {
        for tokens in [true, false] {
            let snapshot = store(40).await.snapshot().await.unwrap();
            let (chunks, mut taken) = mpsc::channel(1);
            let options = ExportOptions { tokens, send_timeout: SEND_TIMEOUT };
            let task = tokio::spawn(export(snapshot, options, Timestamp::UNIX_EPOCH, chunks));
            let mut text = Vec::new();
            while let Some(chunk) = taken.recv().await {
                text.extend(chunk);
            }
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text.contains("token/root"), tokens);
            assert!(!text.contains("secret/"), "secrets are never exported");
            assert_eq!(task.await.unwrap().unwrap(), 40 + u64::from(tokens));
        }
    }
}
