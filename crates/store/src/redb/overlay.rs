//! A copy-on-write overlay over the store's file: reads a store without changing the file.
//!
//! redb writes to a file when it opens it, and more if the file was not closed properly. All writes go to blocks in
//! memory over the file, so a damaged store can be inspected any number of times.
//!
//! Pages of a damaged file may lead redb in a circle. [`Progress`] shows it from another thread: reads count, but no more
//! of them than the file can need.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ::redb::{AccessGuard, Database, ReadableDatabase, ReadableTable, StorageBackend, StorageError};

use super::OpenError;
use super::format::{Fault, RECORDS, State, decode, reading};
use super::open::{self, DirLock, Inspected, OpenAttempt, OpenDatabase, Opened};
use super::order::KeyOrder;

type Entry<'a> = (AccessGuard<'a, &'static [u8]>, AccessGuard<'a, &'static [u8]>);

const BLOCK: usize = 4096;

/// Room that an entry takes in the file at least: redb stores where its key and its value end.
pub const ENTRY_BYTES_MIN: u64 = 8;

/// A reader of a file that takes no step for so long is given up: damaged pages may lead it in a circle.
pub const STALL_MAX: Duration = Duration::from_secs(10);

/// What is said of a file whose pages do not match their checksums.
pub(super) const DAMAGED_PAGES: &str = "damaged: the checksums of its pages do not match. It is read, and changes are \
    refused, so that nothing more is lost; 'notbefore check --data DIR' lists what is damaged, and an export of the \
    running service, or 'notbefore export --data DIR --skip-damaged FILE', can be imported into a new directory";

/// How often each block of a file may be read, on average: redb verifies and rebuilds in a few passes, and then all
/// records are read twice.
const READS_PER_BLOCK: u64 = 64;

/// Steps that a reader of a file has taken. Clones are the same counter.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    pub fn advance(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of steps so far.
    fn steps(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits for a message of the reader; a timeout if it takes no step for `stall_max`.
    pub fn recv<T>(&self, from: &Receiver<T>, stall_max: Duration) -> Result<T, RecvTimeoutError> {
        let mut steps = self.steps();
        loop {
            match from.recv_timeout(stall_max) {
                Err(RecvTimeoutError::Timeout) if self.steps() != steps => steps = self.steps(),
                received => return received,
            }
        }
    }
}

#[derive(Debug)]
struct Overlay {
    file: File,
    written: Mutex<Written>,
    /// How many more reads are progress.
    reads_left: AtomicU64,
    progress: Progress,
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
fn overlay(path: &Path, progress: &Progress) -> Result<Overlay, OpenError> {
    let io = |source| OpenError::Io { path: path.into(), source };
    let file = File::open(path).map_err(io)?;
    open::locked(file.try_lock_shared(), path, path)?;
    let len = file.metadata().map_err(io)?.len();
    Ok(Overlay {
        file,
        written: Mutex::new(Written { len, from_file: len, blocks: BTreeMap::new() }),
        reads_left: AtomicU64::new((len / BLOCK as u64 + 1).saturating_mul(READS_PER_BLOCK)),
        progress: progress.clone(),
    })
}

/// Opens an existing store that is not empty.
pub(super) fn open(path: &Path, progress: &Progress) -> Result<Opened, OpenError> {
    let (database, state) = open::open_backend(path, overlay(path, progress)?, OpenAttempt::Reopen)?;
    Ok(Opened { database: OpenDatabase::inspected(database, Inspected::AsItIs), state, file: None })
}

/// Opens the file of a service whose pages are damaged. redb would repair it in place, and its commits may overwrite
/// records that only a stale page calls free: then nothing of it could be saved. So it is read, and not written.
pub(super) fn open_damaged(path: &Path, lock: Option<DirLock>) -> Result<Opened, OpenError> {
    tracing::error!("{} is {DAMAGED_PAGES}", path.display());
    let (database, state) =
        open::open_backend(path, overlay(path, &Progress::default())?, OpenAttempt::Reopen)?;
    Ok(Opened { database: OpenDatabase::damaged(database, lock), state, file: None })
}

/// Whether all pages of a file are as they were written. Damaged pages may lead redb in a circle, so the file is read on
/// a thread that is given up if it takes no step for [`STALL_MAX`].
pub(super) fn is_whole(path: &Path) -> Result<bool, OpenError> {
    let (path, progress) = (path.to_path_buf(), Progress::default());
    let (answer, answers) = mpsc::channel();
    let reader = progress.clone();
    let read = move || _ = answer.send(pages_are_whole(&path, &reader));
    thread::Builder::new().name("notbefore-pages".into()).spawn(read).map_err(OpenError::Thread)?;
    match progress.recv(&answers, STALL_MAX) {
        Ok(found) => found,
        // It walks in a circle, or has panicked.
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(false),
    }
}

/// Opens a store with a damaged state record: revision and counts are recomputed from the readable records.
pub(super) fn open_rebuilt(path: &Path, progress: &Progress) -> Result<Opened, OpenError> {
    let overlay = overlay(path, progress)?;
    let entries_max = usize::try_from(overlay.written().len / ENTRY_BYTES_MIN).unwrap_or(usize::MAX);
    let database = open::open_database(path, overlay)?;
    match reading(|| state_of_records(&database, entries_max)) {
        Ok(state) => {
            let database = OpenDatabase::inspected(database, Inspected::Rebuilt(state.clone()));
            Ok(Opened { database, state, file: None })
        }
        Err(fault) => {
            open::discard(database);
            Err(open::damaged(path, fault))
        }
    }
}

/// Reads all records that can be reached, `entries_max` of them at most: damaged ones may lead in a circle. Nothing is
/// written: on damaged pages that may abort the process.
fn state_of_records(database: &Database, entries_max: usize) -> Result<State, Fault> {
    let table = database.begin_read()?.open_table(RECORDS)?;
    let mut state = State::new()?;
    let mut last = Vec::new();
    let mut rising = KeyOrder::rising(Bound::Unbounded);
    let forward = reading(|| {
        for entry in table.iter()?.take(entries_max) {
            add(&mut state, entry, |key| {
                rising.accept(key)?;
                last = key.to_vec();
                Ok(())
            })?;
        }
        Ok(())
    });
    if forward.is_err() {
        // Records behind unreadable pages may be newer. Those before them are counted.
        let mut falling = KeyOrder::falling(Bound::Unbounded);
        let _ = reading(|| {
            for entry in table.iter()?.rev().take(entries_max) {
                add(&mut state, entry, |key| match key > last.as_slice() {
                    true => falling.accept(key),
                    false => Err(Fault::Unfollowable),
                })?;
            }
            Ok(())
        });
    }
    Ok(state)
}

/// Counts a record that is valid, if its key is in order.
fn add(
    state: &mut State,
    entry: Result<Entry<'_>, StorageError>,
    accept: impl FnOnce(&[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let (key, raw) = entry?;
    let key = key.value();
    if let (Ok(record), Ok(text)) = (decode(key, raw.value()), std::str::from_utf8(key)) {
        accept(key)?;
        state.revision = state.revision.max(record.revision);
        state.tallies.add(text, record.revision);
    }
    Ok(())
}

/// Verifies redb's checksums of all pages without changing the file.
pub fn pages_are_whole(path: &Path, progress: &Progress) -> Result<bool, OpenError> {
    let backend = overlay(path, progress)?;
    let checked = reading(|| {
        let mut database = open::builder().create_with_backend(backend).map_err(::redb::Error::from)?;
        let checked = reading(|| Ok(database.check_integrity().map_err(::redb::Error::from)?));
        open::discard(database);
        checked
    });
    Ok(checked.is_ok_and(|whole| whole))
}

impl Overlay {
    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_read(&self) {
        let left =
            self.reads_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left.is_ok() {
            self.progress.advance();
        }
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
        self.count_read();
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
