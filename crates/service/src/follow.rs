//! Following a store: each commit in order, or all records again if the log no longer has the next commit.

use std::ops::ControlFlow;

use notbefore_engine::cluster::CLUSTER;
use notbefore_engine::records::{self, ALIVE, LOADED};
use notbefore_store::{Batch, Key, ReadError, Revision, Store, Versioned, WatchError};

use crate::scan::Scan;

/// Records in a page when everything is read. In etcd 3.4 a page costs as much as the rest of its range, so few large pages
/// are faster.
pub const LOAD_PAGE: usize = 5_000;

/// Why [`follow_commits`] returned.
pub enum Followed {
    /// The store has closed, or the handler broke.
    Ended,
    /// Commits after `seen` are no longer in the log, whose oldest commit is `oldest`.
    Compacted { seen: Revision, oldest: Revision },
}

/// Calls `opened` when the watch is open, then `handle` with every commit after a revision, until it breaks, the store
/// closes or commits are missing.
pub async fn follow_commits(
    store: &dyn Store,
    after: Revision,
    opened: impl FnOnce(),
    mut handle: impl FnMut(Batch) -> ControlFlow<()>,
) -> Followed {
    let mut seen = after;
    let mut watch = match store.watch(after).await {
        Ok(watch) => watch,
        Err(WatchError::Compacted { oldest }) => return Followed::Compacted { seen, oldest },
        Err(WatchError::Closed) => return Followed::Ended,
    };
    opened();
    loop {
        match watch.next().await {
            Ok(batch) => {
                seen = batch.revision;
                if handle(batch).is_break() {
                    return Followed::Ended;
                }
            }
            Err(WatchError::Compacted { oldest }) => return Followed::Compacted { seen, oldest },
            Err(WatchError::Closed) => return Followed::Ended,
        }
    }
}

/// All records that the engine holds and those of the cluster, at one revision.
pub async fn snapshot_for_engine(store: &dyn Store) -> Result<(Revision, Vec<(Key, Versioned)>), ReadError> {
    let snapshot = store.snapshot().await?;
    let mut records = Vec::new();
    for range in LOADED
        .into_iter()
        .chain([CLUSTER])
        .flat_map(|kind| records::ranges(kind, snapshot.has_costly_ranges()))
    {
        let mut scan = Scan::new(&*snapshot, &range, LOAD_PAGE);
        while let Some(page) = scan.next().await? {
            if let Some(key) = page.damaged.first() {
                return Err(ReadError::Damaged { key: key.to_string() });
            }
            records.extend(page.records);
        }
    }
    let alive = snapshot.get(ALIVE).await?;
    records.extend(alive.map(|record| (Key::from(ALIVE), record)));
    Ok((snapshot.revision(), records))
}
