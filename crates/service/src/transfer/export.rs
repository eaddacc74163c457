//! From a snapshot to lines, at the pace of whoever reads them.
//!
//! A snapshot holds the store's old pages for as long as it lives, so an export may not take for ever: a reader
//! that takes nothing for [`PATIENCE`] is let go, and what it has is a file without a last line.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_engine::records::prefix;
use notbefore_store::{Key, ReadError, Snapshot};
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;

use super::lines::{LineWriter, NotARecord};
use crate::scan::Scan;
use crate::whole::WAY_BACK;

/// How long a reader may take nothing.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How many records are read at a time: 16 MiB where every one is as large as it may be.
const PAGE: usize = 32;

/// How many bytes are handed over at a time, give or take a record.
const PIECE_BYTES: usize = 128 * 1024;

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A record is none.
    #[error(transparent)]
    Record(#[from] NotARecord),
    /// A record is not what was written.
    #[error("record {0} is damaged: its checksum does not match; {WAY_BACK}")]
    Damaged(Key),
    /// Nobody took what was read.
    #[error("its reader took nothing for too long")]
    TooSlow,
    /// The reader has gone.
    #[error("its reader has gone")]
    Gone,
}

/// What is exported, and how long for.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Whether the operators' tokens are included: their hashes and what they may do.
    pub tokens: bool,
    /// How long the reader may take nothing; [`PATIENCE`] but for tests.
    pub patience: Duration,
}

/// Hands over all lines, piece by piece; an empty piece says that it was the last. Answers how many records
/// there were.
pub async fn export(
    snapshot: Box<dyn Snapshot>,
    terms: Terms,
    now: Timestamp,
    pieces: Sender<Bytes>,
) -> Result<u64, ExportError> {
    let mut writer = LineWriter::new(snapshot.revision(), now, terms.tokens);
    let mut pages = Scan::new(&*snapshot, "", PAGE);
    while let Some(page) = pages.next().await? {
        if let Some(key) = page.damaged.first() {
            return Err(ExportError::Damaged(key.clone()));
        }
        for (key, record) in &page.records {
            if !terms.tokens && key.starts_with(prefix::TOKEN) {
                continue;
            }
            writer.record(key, record)?;
            if writer.waiting() >= PIECE_BYTES {
                hand_over(&pieces, writer.take(), terms.patience).await?;
            }
        }
    }
    writer.finish();
    hand_over(&pieces, writer.take(), terms.patience).await?;
    hand_over(&pieces, Bytes::new(), terms.patience).await?;
    Ok(writer.records())
}

async fn hand_over(pieces: &Sender<Bytes>, piece: Bytes, patience: Duration) -> Result<(), ExportError> {
    match timeout(patience, pieces.send(piece)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(ExportError::Gone),
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
    async fn a_reader_that_takes_nothing_is_let_go() {
        let snapshot = store(40).await.snapshot().await.unwrap();
        let (pieces, mut taken) = mpsc::channel(1);
        let terms = Terms { tokens: true, patience: Duration::from_millis(10) };
        let export = tokio::spawn(export(snapshot, terms, Timestamp::UNIX_EPOCH, pieces));
        assert!(taken.recv().await.is_some_and(|piece| piece.len() < 2 * PIECE_BYTES));
        assert!(matches!(export.await.unwrap(), Err(ExportError::TooSlow)));
        // One piece waited in the channel; the end never comes.
        assert!(taken.recv().await.is_some_and(|piece| !piece.is_empty()));
        assert_eq!(taken.recv().await, None);
    }

    #[tokio::test]
    async fn an_export_without_tokens_has_none() {
        for tokens in [true, false] {
            let snapshot = store(40).await.snapshot().await.unwrap();
            let (pieces, mut taken) = mpsc::channel(1);
            let terms = Terms { tokens, patience: PATIENCE };
            let task = tokio::spawn(export(snapshot, terms, Timestamp::UNIX_EPOCH, pieces));
            let mut text = Vec::new();
            while let Some(piece) = taken.recv().await {
                text.extend(piece);
            }
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text.contains("token/root"), tokens);
            assert_eq!(task.await.unwrap().unwrap(), 40 + u64::from(tokens));
        }
    }
}
