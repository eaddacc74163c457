//! The writer thread: group commit, and recovery from I/O errors. It owns the file.
//!
//! The order is always: make durable, append to the log, answer. [`super`] describes what happens when the disk fails;
//! `in_doubt` is the batch whose outcome the next successful open decides.
//!
//! Before a batch is answered, the file must still be at its path: a removed file is lost with the process. While
//! it is not, commits are refused and reads continue, so that everything can still be exported.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError};
use std::time::Duration;

use ::redb::Database;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tracing::{debug, error, info};

use super::format::{Fault, RECORDS, STATE, STATE_KEY, State, TableWriter, reading};
use super::open::{self, FileMismatch, Inspected, OpenAttempt, OpenDatabase, Opened, Opener, StoreFile};
use super::overlay::DAMAGED_PAGES;
use super::{DatabaseState, Shared, Unavailable};
use crate::apply::{self, Applied};
use crate::{Batch, CHECKS, Outcome, Refusal, Revision, Txn};

/// Transactions per redb commit. A sync may take milliseconds, in which a thousand events that start in the same
/// second queue up: one sync should serve them all. A larger batch saves no more, and makes its first transaction
/// wait for the last.
const BATCH_TXNS_MAX: usize = 2_048;

/// Bytes per redb commit; limits its duration and redb's memory use.
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The size of a redb commit.
#[derive(Clone, Copy, Default)]
struct Size {
    txns: usize,
    bytes: usize,
}

impl Size {
    fn of(txns: &[Txn]) -> Self {
        Self { txns: txns.len(), bytes: txns.iter().map(Txn::bytes).sum() }
    }

    /// The sum, or none if it exceeds one commit. A single transaction that exceeds it gets its own commit.
    fn and(self, more: Self) -> Option<Self> {
        let both = Self { txns: self.txns + more.txns, bytes: self.bytes + more.bytes };
        let fits = both.txns <= BATCH_TXNS_MAX && both.bytes <= BATCH_BYTES_MAX;
        (fits || self.txns == 0).then_some(both)
    }
}

/// Splits transactions, in order, into redb commits.
pub(super) fn parts(txns: Vec<Txn>) -> Vec<Vec<Txn>> {
    let mut parts = Vec::new();
    let (mut part, mut size) = (Vec::new(), Size::default());
    for txn in txns {
        let this = Size::of(std::slice::from_ref(&txn));
        size = size.and(this).unwrap_or_else(|| {
            parts.push(std::mem::take(&mut part));
            this
        });
        part.push(txn);
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// Retry interval for a file that does not open while no request arrives.
const REOPEN_EVERY: Duration = Duration::from_secs(1);

/// Crash point for tests; a release does not read it. `N` aborts the process once the N-th transaction that this store
/// writes since it was opened is durable: nothing after it is on disk, and no caller in its commit is answered. It
/// counts transactions, not syncs, since how many share a sync depends on timing.
const ABORT_AFTER_COMMITS: &str = "NOTBEFORE_ABORT_AFTER_COMMITS";

/// The revision of the crash point. Each transaction that writes raises the revision by one.
fn crash_point(opened_at: Revision) -> Option<Revision> {
    if !CHECKS {
        return None;
    }
    let commits: NonZeroU64 = std::env::var(ABORT_AFTER_COMMITS).ok()?.parse().ok()?;
    Some(Revision(opened_at.0 + commits.get()))
}

pub(super) enum Message {
    Commit(Request),
    /// A read failed: check whether the database still works.
    Check,
    /// The last handle was dropped.
    Stop,
}

/// Transactions for at most one redb commit, and the channel for their outcomes.
pub(super) struct Request {
    pub txns: Vec<Txn>,
    pub answer: oneshot::Sender<Vec<Outcome>>,
    /// Their share of the queue, released with the answer.
    pub room: OwnedSemaphorePermit,
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    messages: Receiver<Message>,
    /// A request that was dequeued but did not fit; it is the first of the next commit.
    kept: Option<Request>,
    open: Opener,
    /// The newest state known to be durable; the log ends with it.
    state: State,
    /// None while the file is closed, and for a backend that is not a file.
    file: Option<StoreFile>,
    /// Why the path no longer leads to the open file; kept to log each reason once.
    moved: Option<FileMismatch>,
    /// The state after the batch in doubt, if that is in the open file and only the file is not at its path.
    landed: Option<State>,
    /// The revision at which the process aborts; tests only.
    crash_at: Option<Revision>,
    /// The batch whose commit failed, until the revision on disk decides its outcome.
    in_doubt: Vec<Batch>,
    /// Why the file is closed; kept to log each reason once.
    shut: Option<Unavailable>,
    /// Why the last commit failed; kept to log each reason once.
    failed: Option<String>,
}

/// Everything taken from the queue at once.
#[derive(Default)]
struct TakenRequests {
    requests: Vec<Request>,
    suspect: bool,
    stop: bool,
}

/// One result per transaction; an error names a damaged record, and the transaction changed nothing.
type Results = Vec<Result<Applied, Fault>>;

struct Failed {
    fault: Fault,
    /// Results before the failure, in the order of the requests; they may be on disk.
    applied: Results,
}

impl Writer {
    pub fn new(
        shared: Arc<Shared>,
        messages: Receiver<Message>,
        open: Opener,
        state: State,
        file: Option<StoreFile>,
    ) -> Self {
        let crash_at = crash_point(state.revision);
        Self {
            shared,
            messages,
            kept: None,
            open,
            state,
            file,
            moved: None,
            landed: None,
            crash_at,
            in_doubt: Vec::new(),
            shut: None,
            failed: None,
        }
    }

    pub fn run(self) {
        let _closing = CloseGuard(self.shared.clone());
        // Declared after the guard, so that the queue is dropped before the store reports that it has closed.
        let mut writer = self;
        while writer.run_once() {}
    }

    /// Waits for work and does it; returns false when the thread must end.
    fn run_once(&mut self) -> bool {
        let taken = self.take();
        if taken.suspect {
            self.check_database();
        }
        if self.shut.is_some() && !taken.stop {
            self.reopen();
        }
        if !taken.requests.is_empty() {
            self.serve(taken.requests);
        }
        !taken.stop
    }

    /// Waits for a message, then takes all queued ones, within the limits of a batch. While the file is closed it
    /// times out now and then, to retry the open.
    fn take(&mut self) -> TakenRequests {
        let first = match (self.kept.take(), &self.shut) {
            (Some(kept), _) => Ok(Message::Commit(kept)),
            (None, None) => self.messages.recv().map_err(|RecvError| RecvTimeoutError::Disconnected),
            (None, Some(_)) => self.messages.recv_timeout(REOPEN_EVERY),
        };
        let mut taken = TakenRequests::default();
        let mut size = Size::default();
        let mut next = match first {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Message::Stop),
        };
        while let Some(message) = next {
            match message {
                Message::Commit(request) => match size.and(Size::of(&request.txns)) {
                    Some(both) => {
                        size = both;
                        taken.requests.push(request);
                    }
                    None => {
                        self.kept = Some(request);
                        break;
                    }
                },
                Message::Check => taken.suspect = true,
                Message::Stop => {
                    taken.stop = true;
                    break;
                }
            }
            next = self.messages.try_recv().ok();
        }
        taken
    }

    /// Commits the requests together and answers them.
    fn serve(&mut self, requests: Vec<Request>) {
        let mut txns = Vec::new();
        let mut callers = Vec::with_capacity(requests.len());
        for Request { txns: theirs, answer, room } in requests {
            callers.push((theirs.len(), answer, room));
            txns.extend(theirs);
        }
        let writes: Vec<bool> = txns.iter().map(Txn::writes).collect();

        let outcomes = self.outcomes(txns, &writes);
        let mut outcomes = outcomes.into_iter();
        for (count, answer, _room) in callers {
            // The send fails if the caller has gone; its transactions are still committed.
            let _ = answer.send(outcomes.by_ref().take(count).collect());
        }
    }

    /// Commits the transactions and returns one outcome each.
    fn outcomes(&mut self, txns: Vec<Txn>, writes: &[bool]) -> Vec<Outcome> {
        let refused = |reason: String| {
            let refused = Outcome::Refused(Refusal::Unavailable(reason));
            writes.iter().map(|_| refused.clone()).collect()
        };
        if let Err(reason) = self.check_file(StoreFile::check_unchanged) {
            return refused(reason.to_string());
        }
        let is_damaged = |open: &OpenDatabase| matches!(open.inspected, Some(Inspected::Damaged));
        if self.shared.with_open(is_damaged).is_ok_and(|is_damaged| is_damaged) {
            return refused(format!("the store is {DAMAGED_PAGES}"));
        }
        let (state, crash_at) = (&self.state, self.crash_at);
        match self.shared.with_database(|database| write(database, state, txns, crash_at)) {
            Err(shut) => refused(shut.to_string()),
            Ok(Err(failed)) => self.failed(failed, writes),
            Ok(Ok((applied, state))) => match self.check_file(StoreFile::check) {
                Ok(()) => {
                    self.file.iter_mut().for_each(StoreFile::remember);
                    self.committed(applied, state)
                }
                Err(reason) => {
                    let (outcomes, in_doubt) = in_doubt(applied, writes, &reason.to_string());
                    (self.in_doubt, self.landed) = (in_doubt, Some(state));
                    outcomes
                }
            },
        }
    }

    /// Checks that the path leads to the open file; if so, earlier writes to it count.
    fn check_file(
        &mut self,
        check: impl Fn(&StoreFile) -> Result<(), FileMismatch>,
    ) -> Result<(), FileMismatch> {
        let Some(file) = &self.file else { return Ok(()) };
        match check(file) {
            Ok(()) => {
                if self.moved.take().is_some() {
                    info!("the store's file is at its path again");
                }
                if let Some(state) = self.landed.take() {
                    self.state = state;
                    self.shared.log.append(std::mem::take(&mut self.in_doubt));
                }
                Ok(())
            }
            Err(reason) => {
                if self.moved.as_ref() != Some(&reason) {
                    error!(%reason, "changes are refused: the store's file is not at its path");
                    self.moved = Some(reason.clone());
                }
                Err(reason)
            }
        }
    }

    fn committed(&mut self, applied: Results, state: State) -> Vec<Outcome> {
        let mut batches = Vec::with_capacity(applied.len());
        let outcome = |applied: Result<Applied, Fault>| match applied {
            Ok(Applied::Wrote(batch)) => {
                let revision = batch.revision;
                batches.push(batch);
                Outcome::Committed(revision)
            }
            Ok(Applied::Held(revision)) => Outcome::Committed(revision),
            Ok(Applied::Conflict(found)) => Outcome::Conflict(found),
            Err(damaged) => Outcome::Refused(Refusal::Unavailable(damaged.to_string())),
        };
        let outcomes = applied.into_iter().map(outcome).collect();
        if !batches.is_empty() {
            self.failed = None;
            self.state = state;
            self.shared.log.append(batches);
        }
        outcomes
    }

    /// Reopens the file before it answers, so that a caller that reads next sees the actual state if the file opens.
    fn failed(&mut self, failed: Failed, writes: &[bool]) -> Vec<Outcome> {
        let reason = open::chain(&failed.fault);
        let (outcomes, in_doubt) = in_doubt(failed.applied, writes, &reason);
        self.in_doubt = in_doubt;
        // On a full disk the file opens and every commit fails; log that once.
        if self.failed.as_ref() != Some(&reason) {
            error!(%reason, transactions = writes.len(), "commit failed; reopening the store");
            self.failed = Some(reason.clone());
        }
        self.close(Unavailable::Failed(reason));
        self.reopen();
        outcomes
    }

    /// Checks whether redb still accepts a write transaction, which it refuses after any I/O error.
    fn check_database(&mut self) {
        self.shared.check_requested.store(false, Ordering::Release);
        let looked = self.shared.with_database(|database| {
            reading(|| {
                database.begin_write()?.abort()?;
                Ok(())
            })
        });
        if let Ok(Err(fault)) = looked {
            let reason = open::chain(&fault);
            error!(%reason, "read failed; reopening the store");
            self.close(Unavailable::Failed(reason));
        }
    }

    fn close(&mut self, reason: Unavailable) {
        (self.file, self.moved, self.landed) = (None, None, None);
        self.shared.set_database(DatabaseState::Closed(reason.clone()));
        self.shut = Some(reason);
    }

    fn reopen(&mut self) {
        match self.try_reopen() {
            Ok(()) => self.shut = None,
            Err(reason) => {
                if self.shut.as_ref() != Some(&reason) {
                    error!(%reason, "the store does not open; retrying");
                    self.close(reason);
                }
            }
        }
    }

    fn try_reopen(&mut self) -> Result<(), Unavailable> {
        let Opened { database, state, file } =
            (self.open)(OpenAttempt::Reopen).map_err(|error| Unavailable::Failed(open::chain(&error)))?;
        // A redb commit is atomic, so there are two possible revisions.
        let (found, durable) = (state.revision, self.state.revision);
        let landed = self.in_doubt.last().map_or(durable, |batch| batch.revision);
        if state.id != self.state.id {
            return Err(Unavailable::OtherStore);
        }
        if found != durable && found != landed {
            return Err(Unavailable::OtherRevision { found, durable });
        }
        match found == durable {
            true => debug!(revision = %found, "store reopened"),
            false => info!(revision = %found, "store reopened; the commit in doubt is durable"),
        }
        self.shared.set_database(DatabaseState::Open(database));
        let in_doubt = std::mem::take(&mut self.in_doubt);
        (self.state, self.file) = (state, file);
        if found != durable {
            self.shared.log.append(in_doubt);
        }
        Ok(())
    }
}

/// The outcomes of transactions that may not be durable, and the batches they would have written.
fn in_doubt(applied: Results, writes: &[bool], reason: &str) -> (Vec<Outcome>, Vec<Batch>) {
    let mut applied = applied.into_iter();
    let mut outcomes = Vec::with_capacity(writes.len());
    let mut batches = Vec::new();
    for &writes in writes {
        let is_in_doubt = match applied.next() {
            Some(Ok(Applied::Wrote(batch))) => {
                batches.push(batch);
                true
            }
            // These compared with writes that may be lost, so their result is unknown. They themselves wrote nothing.
            Some(Ok(Applied::Held(_) | Applied::Conflict(_)) | Err(_)) => false,
            None => writes,
        };
        outcomes.push(match is_in_doubt {
            true => Outcome::Unknown(reason.to_owned()),
            false => Outcome::Refused(Refusal::Unavailable(reason.to_owned())),
        });
    }
    (outcomes, batches)
}

/// Applies all transactions, each on the state that the previous one left, and commits them together. If none
/// changes anything, there is no write and no sync. Returns the new state.
fn write(
    database: &Database,
    before: &State,
    txns: Vec<Txn>,
    crash_at: Option<Revision>,
) -> Result<(Results, State), Failed> {
    let mut applied = Vec::with_capacity(txns.len());
    match reading(|| try_write(database, before, txns, crash_at, &mut applied)) {
        Ok(state) => Ok((applied, state)),
        Err(fault) => Err(Failed { fault, applied }),
    }
}

fn try_write(
    database: &Database,
    before: &State,
    txns: Vec<Txn>,
    crash_at: Option<Revision>,
    applied: &mut Results,
) -> Result<State, Fault> {
    let transaction = open::begin_durable(database)?;
    let mut state = before.clone();
    {
        let tallies = std::mem::take(&mut state.tallies);
        let mut writing = TableWriter { table: transaction.open_table(RECORDS)?, tallies };
        for txn in txns {
            let one = match apply::apply(txn, state.revision, &mut writing) {
                Ok(one) => Ok(one),
                // Found while comparing, before any change.
                Err(fault @ Fault::Damaged { .. }) => Err(fault),
                Err(fault @ (Fault::Redb(_) | Fault::Unfollowable)) => return Err(fault),
            };
            if let Ok(Applied::Wrote(batch)) = &one {
                state.revision = batch.revision;
            }
            applied.push(one);
            if crash_at == Some(state.revision) {
                break;
            }
        }
        state.tallies = writing.tallies;
        if state.revision != before.revision {
            transaction.open_table(STATE)?.insert(STATE_KEY, state.encode().as_slice())?;
        }
    }
    if state.revision == before.revision {
        transaction.abort()?;
    } else {
        transaction.commit()?;
        if crash_at == Some(state.revision) {
            std::process::abort();
        }
    }
    Ok(state)
}

/// Closes the store however the thread ends, including a panic: watches end and the file is released.
struct CloseGuard(Arc<Shared>);

impl Drop for CloseGuard {
    fn drop(&mut self) {
        self.0.set_database(DatabaseState::Closed(Unavailable::Closed));
        self.0.log.close();
    }
}
