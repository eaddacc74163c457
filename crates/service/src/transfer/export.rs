//! From a snapshot to lines, at the pace of whoever reads them.
//!
//! A snapshot holds the store's old pages for as long as it lives, so an export may not take for ever: a reader
//! that takes nothing for [`SEND_TIMEOUT`] is let go, and what it has is a file without a last line.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_engine::records::prefix;
use notbefore_store::{Key, ReadError, Snapshot};
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;

use super::lines::{ExportRecordError, LineWriter};
use crate::integrity::RECOVERY_HINT;
use crate::scan::Scan;

/// How long a reader may take nothing.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// How many records are read at a time: 16 MiB where every one is as large as it may be.
const PAGE: usize = 32;

/// How many bytes are handed over at a time, give or take a record.
const CHUNK_BYTES: usize = 128 * 1024;

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A record is none.
    #[error(transparent)]
    Record(#[from] ExportRecordError),
    /// A record is not what was written.
    #[error("record {0} is damaged: its checksum does not match; {RECOVERY_HINT}")]
    Damaged(Key),
    /// Nobody took what was read.
    #[error("its reader took nothing for too long")]
    TooSlow,
    /// The reader has gone.
    #[error("its reader has gone")]
    Disconnected,
}

/// What is exported, and how long for.
#[derive(Clone, Copy, Debug)]
pub struct ExportOptions {
    /// Whether the operators' tokens are included: their hashes and what they may do.
    pub tokens: bool,
    /// How long the reader may take nothing; [`SEND_TIMEOUT`] but for tests.
    pub send_timeout: Duration,
}

/// Hands over all lines, chunk by chunk; an empty chunk says that it was the last. Answers how many records
/// there were.
pub async fn export(
    snapshot: Box<dyn Snapshot>,
    options: ExportOptions,
    now: Timestamp,
    chunks: Sender<Bytes>,
) -> Result<u64, ExportError> {
    let mut writer = LineWriter::new(snapshot.revision(), now, options.tokens);
    let mut pages = Scan::new(&*snapshot, "", PAGE);
    while let Some(page) = pages.next().await? {
        if let Some(key) = page.damaged.first() {
            return Err(ExportError::Damaged(key.clone()));
        }
        for (key, record) in &page.records {
            if !options.tokens && key.starts_with(prefix::TOKEN) {
                continue;
            }
            writer.record(key, record)?;
            if writer.waiting() >= CHUNK_BYTES {
                send(&chunks, writer.take(), options.send_timeout).await?;
            }
        }
    }
    writer.finish();
    send(&chunks, writer.take(), options.send_timeout).await?;
    send(&chunks, Bytes::new(), options.send_timeout).await?;
    Ok(writer.records())
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
    use notbefore_store::memory::MemoryStore;
    use notbefore_store::{Outcome, Store, Txn};
    use tokio::sync::mpsc;

    use super::*;

    async fn store(records: usize) -> MemoryStore {
        let store = MemoryStore::new();
        for n in 0..records {
            let value = format!("1 \"{}\"", "x".repeat(20_000));
            let put =
                vec![(format!("fact/{n:03}").into(), value.into()), ("token/root".into(), "1 {}".into())];
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
        // One chunk waited in the channel; the end never comes.
        assert!(taken.recv().await.is_some_and(|chunk| !chunk.is_empty()));
        assert_eq!(taken.recv().await, None);
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
            assert_eq!(task.await.unwrap().unwrap(), 40 + u64::from(tokens));
        }
    }
}
