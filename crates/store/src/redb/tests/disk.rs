//! A simulated disk in memory that separates written from synced bytes, with fault injection.

use std::io;
use std::sync::{Arc, Condvar, Mutex};

use ::redb::StorageBackend;

use super::PATIENCE;

/// Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    state: Arc<Mutex<State>>,
    /// Notified when `held` or `waiting` changes.
    changed: Arc<Condvar>,
}

#[derive(Debug, Default)]
struct State {
    /// What a read returns.
    live: Vec<u8>,
    /// What remains after a power cut.
    durable: Vec<u8>,
    /// Writes since the last sync, for images with only some of them.
    pending: Vec<Write>,
    syncs: usize,
    fault: Option<Fault>,
    failure: Option<FailureMode>,
    held: bool,
    /// A sync is waiting to be released.
    waiting: bool,
    panics: bool,
    images: Option<Vec<Vec<u8>>>,
    /// The content that the next open finds instead.
    replacement: Option<Vec<u8>>,
    /// Number of successful syncs before one that is done, reports failure and breaks the disk.
    break_at_sync: Option<usize>,
}

#[derive(Debug)]
enum Write {
    Len(usize),
    Bytes(usize, Vec<u8>),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    /// Number of writes, resizes and syncs that succeed before it.
    pub after: usize,
    /// Whether the operation takes effect although it reports failure.
    pub done: bool,
    /// Whether unsynced data is lost, as after a power cut, or still visible, as in a page cache.
    pub lost: bool,
}

/// A lasting failure of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureMode {
    /// Every operation fails.
    Broken,
    /// Overwriting works, growing fails.
    Full,
    /// Only reads work.
    ReadOnly,
    /// Only syncs fail.
    SyncFails,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiskOperation {
    Open,
    Read,
    Write,
    Grow,
    Sync,
}

impl FailureMode {
    /// The result of an operation.
    fn allows(self, operation: DiskOperation) -> io::Result<()> {
        match (self, operation) {
            (Self::Full, DiskOperation::Grow) => Err(io::ErrorKind::StorageFull.into()),
            (
                Self::ReadOnly,
                DiskOperation::Open | DiskOperation::Write | DiskOperation::Grow | DiskOperation::Sync,
            ) => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
            (Self::SyncFails, DiskOperation::Sync) => Err(io::Error::other("the sync failed")),
            (Self::Broken, _) => Err(broken()),
            (Self::Full | Self::ReadOnly | Self::SyncFails, _) => Ok(()),
        }
    }
}

fn broken() -> io::Error {
    io::Error::other("the disk is broken")
}

impl Disk {
    pub fn new() -> Self {
        Self::default()
    }

    /// A disk with this content.
    pub fn holding(image: Vec<u8>) -> Self {
        let disk = Self::new();
        disk.with(|state| {
            state.live = image.clone();
            state.durable = image;
        });
        disk
    }

    pub fn open(&self) -> io::Result<Self> {
        self.with(|state| {
            if let Some(replacement) = state.replacement.take() {
                state.live = replacement.clone();
                state.durable = replacement;
            }
            state.check(DiskOperation::Open)
        })?;
        Ok(self.clone())
    }

    pub fn fail(&self, fault: Fault) {
        self.with(|state| state.fault = Some(fault));
    }

    /// Whether the fault has not happened yet.
    pub fn take_fault(&self) -> bool {
        self.with(|state| state.fault.take().is_some())
    }

    /// Makes every operation fail, or none.
    pub fn set_broken(&self, broken: bool) {
        self.set_failure(broken.then_some(FailureMode::Broken));
    }

    pub fn set_failure(&self, failure: Option<FailureMode>) {
        self.with(|state| state.failure = failure);
    }

    /// While held, every sync blocks.
    pub fn hold(&self, held: bool) {
        self.with(|state| state.held = held);
        self.changed.notify_all();
    }

    /// Waits until a sync blocks.
    pub fn wait_for_sync(&self) {
        let state = self.state.lock().unwrap();
        let (_state, waited) =
            self.changed.wait_timeout_while(state, PATIENCE, |state| !state.waiting).unwrap();
        assert!(!waited.timed_out(), "no sync");
    }

    /// Makes every sync panic, or none.
    pub fn set_panics(&self, panics: bool) {
        self.with(|state| state.panics = panics);
    }

    pub fn syncs(&self) -> usize {
        self.with(|state| state.syncs)
    }

    /// After this many syncs, one is done, reports failure and breaks the disk.
    pub fn break_at_sync(&self, after: usize) {
        self.with(|state| state.break_at_sync = Some(after));
    }

    /// Replaces the content at the next open.
    pub fn replace(&self, image: Vec<u8>) {
        self.with(|state| state.replacement = Some(image));
    }

    /// The durable content.
    pub fn image(&self) -> Vec<u8> {
        self.with(|state| state.durable.clone())
    }

    /// Starts to record, at each sync, images of what a power cut would leave.
    pub fn keep_images(&self) {
        self.with(|state| state.images = Some(Vec::new()));
    }

    /// The images since the last call.
    pub fn take_images(&self) -> Vec<Vec<u8>> {
        self.with(|state| state.images.replace(Vec::new()).unwrap_or_default())
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap())
    }

    /// Runs an operation, or fails it.
    fn operate(&self, operation: DiskOperation, work: impl FnOnce(&mut State)) -> io::Result<()> {
        self.with(|state| {
            state.check(operation)?;
            match &mut state.fault {
                Some(fault) if fault.after == 0 => {
                    let Fault { done, lost, .. } = *fault;
                    state.fault = None;
                    if done {
                        work(state);
                    }
                    if lost {
                        state.live = state.durable.clone();
                        state.pending.clear();
                    }
                    return Err(io::Error::other("injected"));
                }
                Some(fault) => fault.after -= 1,
                None => {}
            }
            work(state);
            Ok(())
        })
    }
}

impl State {
    fn check(&self, operation: DiskOperation) -> io::Result<()> {
        self.failure.map_or(Ok(()), |failure| failure.allows(operation))
    }

    fn sync(&mut self) {
        self.syncs += 1;
        if let Some(mut images) = self.images.take() {
            // Before the sync, any subset of the writes may be on disk: none, the first ones, the last ones,
            // every other one, or all.
            let count = self.pending.len();
            images.push(self.durable.clone());
            images.push(self.torn(|index| index < count / 2));
            images.push(self.torn(|index| index >= count / 2));
            images.push(self.torn(|index| index % 2 == 0));
            images.push(self.torn(|index| index % 2 == 1));
            images.push(self.live.clone());
            self.images = Some(images);
        }
        self.durable = self.live.clone();
        self.pending.clear();
    }

    fn torn(&self, keep: impl Fn(usize) -> bool) -> Vec<u8> {
        let mut image = self.durable.clone();
        for (index, write) in self.pending.iter().enumerate() {
            match write {
                // File systems journal lengths; only the bytes may be lost.
                Write::Len(len) => image.resize(*len, 0),
                Write::Bytes(offset, bytes) if keep(index) => {
                    image[*offset..offset + bytes.len()].copy_from_slice(bytes);
                }
                Write::Bytes(..) => {}
            }
        }
        image
    }
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.with(|state| state.check(DiskOperation::Read).map(|()| state.live.len() as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.with(|state| {
            state.check(DiskOperation::Read)?;
            let end = index(offset) + out.len();
            out.copy_from_slice(state.live.get(index(offset)..end).ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let grows = self.with(|state| index(len) > state.live.len());
        self.operate(if grows { DiskOperation::Grow } else { DiskOperation::Write }, |state| {
            state.live.resize(index(len), 0);
            state.pending.push(Write::Len(index(len)));
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.waiting = state.held;
        self.changed.notify_all();
        state = self.changed.wait_while(state, |state| state.held).unwrap();
        state.waiting = false;
        let panics = state.panics;
        drop(state);
        assert!(!panics, "injected");
        self.operate(DiskOperation::Sync, State::sync)?;
        self.with(|state| match &mut state.break_at_sync {
            Some(0) => {
                state.break_at_sync = None;
                state.failure = Some(FailureMode::Broken);
                Err(broken())
            }
            Some(after) => {
                *after -= 1;
                Ok(())
            }
            None => Ok(()),
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.operate(DiskOperation::Write, |state| {
            state.live[index(offset)..index(offset) + data.len()].copy_from_slice(data);
            state.pending.push(Write::Bytes(index(offset), data.to_vec()));
        })
    }
}
