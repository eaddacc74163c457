//! A disk in memory that keeps what was written and what was synced apart, and fails when told to.

use std::io;
use std::sync::{Arc, Condvar, Mutex};

use ::redb::StorageBackend;

use super::PATIENCE;

/// What stands on the disk. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    state: Arc<Mutex<State>>,
    /// Rung when `held` or `waiting` changes.
    changed: Arc<Condvar>,
}

#[derive(Debug, Default)]
struct State {
    /// What a read sees.
    live: Vec<u8>,
    /// What a power cut leaves.
    durable: Vec<u8>,
    /// Writes since the last sync, for images in which only some of them made it.
    pending: Vec<Write>,
    syncs: usize,
    fault: Option<Fault>,
    failure: Option<FailureMode>,
    held: bool,
    /// Whether a sync waits to be let go.
    waiting: bool,
    panics: bool,
    images: Option<Vec<Vec<u8>>>,
    /// What the next opening finds in place of what was there.
    replacement: Option<Vec<u8>>,
    /// How many syncs succeed before the one that is done but breaks the disk.
    break_at_sync: Option<usize>,
}

#[derive(Debug)]
enum Write {
    Len(usize),
    Bytes(usize, Vec<u8>),
}

/// One operation that fails.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    /// How many writes, resizes and syncs succeed before it.
    pub after: usize,
    /// Whether it is done all the same.
    pub done: bool,
    /// Whether what was not synced is lost then, as after a power cut, or still seen, as in a page cache.
    pub lost: bool,
}

/// What is wrong with the disk, for as long as it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureMode {
    /// Nothing works.
    Broken,
    /// What is there can be overwritten, and nothing can grow.
    Full,
    /// It can only be read.
    ReadOnly,
    /// Everything works but a sync.
    SyncFails,
}

/// What is done to the disk.
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

    /// A disk with these bytes on it.
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

    /// Whether the fault is still to come.
    pub fn take_fault(&self) -> bool {
        self.with(|state| state.fault.take().is_some())
    }

    /// From now on everything fails, or nothing.
    pub fn set_broken(&self, broken: bool) {
        self.set_failure(broken.then_some(FailureMode::Broken));
    }

    /// From now on this is wrong, or nothing is.
    pub fn set_failure(&self, failure: Option<FailureMode>) {
        self.with(|state| state.failure = failure);
    }

    /// While held, every sync waits.
    pub fn hold(&self, held: bool) {
        self.with(|state| state.held = held);
        self.changed.notify_all();
    }

    /// Waits until a sync is being held.
    pub fn wait_for_sync(&self) {
        let state = self.state.lock().unwrap();
        let (_state, waited) =
            self.changed.wait_timeout_while(state, PATIENCE, |state| !state.waiting).unwrap();
        assert!(!waited.timed_out(), "nothing was synced");
    }

    /// From now on every sync panics, or none.
    pub fn set_panics(&self, panics: bool) {
        self.with(|state| state.panics = panics);
    }

    pub fn syncs(&self) -> usize {
        self.with(|state| state.syncs)
    }

    /// After so many syncs one is done, says it was not, and breaks the disk.
    pub fn break_at_sync(&self, after: usize) {
        self.with(|state| state.break_at_sync = Some(after));
    }

    /// What the next opening finds.
    pub fn replace(&self, image: Vec<u8>) {
        self.with(|state| state.replacement = Some(image));
    }

    /// What is durable.
    pub fn image(&self) -> Vec<u8> {
        self.with(|state| state.durable.clone())
    }

    /// Begins to keep, at each sync, images of what a power cut would leave.
    pub fn keep_images(&self) {
        self.with(|state| state.images = Some(Vec::new()));
    }

    /// The images since they were last asked for.
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
            // Before the sync anything may have reached the disk: nothing, the first writes, the last ones,
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
                // A file system journals its lengths; it is the bytes that go astray.
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
