//! A copy-on-write overlay over the store's file: reads a store without changing the file.
//!
//! redb writes to a file when it opens it, and more if the file was not closed properly. All writes go to blocks in
//! memory over the file, so a damaged store can be inspected any number of times.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ::redb::{AccessGuard, Builder, Database, ReadableTable, StorageBackend, StorageError};

use super::OpenError;
use super::format::{Fault, RECORDS, STATE, STATE_KEY, State, decode, reading};
use super::open::{self, OpenAttempt, OpenDatabase, Opened};

type Entry<'a> = (AccessGuard<'a, &'static [u8]>, AccessGuard<'a, &'static [u8]>);

const BLOCK: usize = 4096;

#[derive(Debug)]
struct Overlay {
    file: File,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    len: u64,
    /// File bytes beyond this are ignored: they were truncated, and read as zero if the file grows again.
    from_file: u64,
    /// Written blocks, by number.
    blocks: BTreeMap<u64, Box<[u8; BLOCK]>>,
}

/// Opens the file for reading, locked against a service that would write to it.
fn overlay(path: &Path) -> Result<Overlay, OpenError> {
    let io = |source| OpenError::Io { path: path.into(), source };
    let file = File::open(path).map_err(io)?;
    open::locked(file.try_lock_shared(), path, path)?;
    let len = file.metadata().map_err(io)?.len();
    Ok(Overlay { file, written: Mutex::new(Written { len, from_file: len, blocks: BTreeMap::new() }) })
}

/// Opens an existing store that is not empty.
pub(super) fn open(path: &Path) -> Result<Opened, OpenError> {
    let (database, state) = open::open_backend(path, overlay(path)?, OpenAttempt::Reopen)?;
    Ok(Opened { database: OpenDatabase::unlocked(database), state, file: None })
}

/// Opens a store with a damaged state record: revision and counts are recomputed from the readable records.
pub(super) fn open_rebuilt(path: &Path) -> Result<Opened, OpenError> {
    let database = open::open_database(path, overlay(path)?)?;
    let state = reading(|| rebuild_state(&database)).map_err(|fault| open::damaged(path, fault))?;
    Ok(Opened { database: OpenDatabase::unlocked(database), state, file: None })
}

fn rebuild_state(database: &Database) -> Result<State, Fault> {
    let txn = open::begin_durable(database)?;
    let mut state = State::new()?;
    {
        let table = txn.open_table(RECORDS)?;
        let mut take = |entry: Result<Entry<'_>, StorageError>| {
            let (key, raw) = entry?;
            if let (Ok(record), Ok(key)) =
                (decode(key.value(), raw.value()), std::str::from_utf8(key.value()))
            {
                state.revision = state.revision.max(record.revision);
                state.counts.add(key);
            }
            Ok::<_, Fault>(())
        };
        // Records behind unreadable pages may be newer.
        if reading(|| table.iter()?.try_for_each(&mut take)).is_err() {
            let _ = reading(|| table.iter()?.rev().try_for_each(&mut take));
        }
        txn.open_table(STATE)?.insert(STATE_KEY, state.encode().as_slice())?;
    }
    txn.commit()?;
    Ok(state)
}

/// Verifies redb's checksums of all pages without changing the file.
pub fn pages_are_whole(path: &Path) -> Result<bool, OpenError> {
    let backend = overlay(path)?;
    let checked = reading(|| {
        let mut database = Builder::new().create_with_backend(backend).map_err(::redb::Error::from)?;
        Ok(database.check_integrity().map_err(::redb::Error::from)?)
    });
    Ok(checked.is_ok_and(|whole| whole))
}

impl Overlay {
    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file's bytes, followed by zeros.
    fn read_below(&self, from_file: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = usize::try_from(from_file.saturating_sub(offset)).unwrap_or(usize::MAX).min(out.len());
        let (there, behind) = out.split_at_mut(there);
        behind.fill(0);
        self.file.read_exact_at(there, offset)
    }
}

/// The numbers of the blocks that a byte range touches.
fn blocks_of(offset: u64, len: usize) -> std::ops::Range<u64> {
    let block = BLOCK as u64;
    offset / block..(offset + len as u64).div_ceil(block)
}

/// The overlap of a block and the byte range at `offset`: its start in each, and its length.
fn common(block: u64, offset: u64, len: usize) -> (usize, usize, usize) {
    let begin = block * BLOCK as u64;
    let start = begin.max(offset);
    let end = (begin + BLOCK as u64).min(offset + len as u64);
    let within = |from: u64| usize::try_from(start - from).unwrap_or(usize::MAX);
    (within(begin), within(offset), usize::try_from(end - start).unwrap_or(0))
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > written.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.read_below(written.from_file, offset, out)?;
        for (block, bytes) in written.blocks.range(blocks_of(offset, out.len())) {
            let (in_block, in_out, len) = common(*block, offset, out.len());
            out[in_out..in_out + len].copy_from_slice(&bytes[in_block..in_block + len]);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut written = self.written();
        written.len = len;
        written.from_file = written.from_file.min(len);
        let kept = len / BLOCK as u64;
        if let (Some(last), Ok(inside)) = (written.blocks.get_mut(&kept), usize::try_from(len % BLOCK as u64))
        {
            last[inside..].fill(0);
        }
        written.blocks.retain(|block, _| *block <= kept);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written();
        let from_file = written.from_file;
        for block in blocks_of(offset, data.len()) {
            let mut bytes = match written.blocks.remove(&block) {
                Some(bytes) => bytes,
                None => {
                    let mut bytes = Box::new([0; BLOCK]);
                    self.read_below(from_file, block * BLOCK as u64, &mut bytes[..])?;
                    bytes
                }
            };
            let (in_block, in_data, len) = common(block, offset, data.len());
            bytes[in_block..in_block + len].copy_from_slice(&data[in_data..in_data + len]);
            written.blocks.insert(block, bytes);
        }
        Ok(())
    }
}
