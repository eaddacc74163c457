//! The recorder: the one task that takes notes up, writes them down once a second, and warns.
//!
//! Notes go into the ledger as they come, so that whoever asks sees them at once; the disk gets them in bulk.
//! Writes run beside the task and come back to it: a disk that stalls keeps neither notes nor warnings
//! waiting. What the store would not take stays in the ledger and is tried again a second later.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use notbefore_core::EventId;
use notbefore_engine::Node;
use notbefore_engine::records::{self, Seen};
use notbefore_store::{Outcome, ReadError, Refusal, Store, TXN_BYTES_MAX, TXN_OPERATIONS_MAX, Txn};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use super::ledger::{Ledger, UnwrittenRecord};
use super::warning::Warning;
use super::{Delivery, SentDocument};
use crate::clock::Clock;
use crate::scan::Scan;
use crate::view::{View, Views};

/// How often notes are written down, and how much a crash may lose of them.
const TICK: Duration = Duration::from_secs(1);
/// How many scopes with live events are gone through a second, about. Where there are more, it is done less often: a
/// hundred thousand take some milliseconds, in which the thread does nothing else.
const SCOPES_REVIEWED_PER_SECOND: usize = 20_000;
/// How many notes are taken up in one go.
const SENT_DOCUMENTS_PER_TURN: usize = 4_096;
/// How many records are written in one go, in transactions that the store may put into one commit.
const RECORDS_PER_TURN: usize = 1_600;
/// How many warnings are spelt out at a time; the rest are counted.
const WARNINGS_SHOWN_MAX: usize = 50;
/// How long a closing recorder tries to write what it has.
const CLOSING_GRACE: Duration = Duration::from_secs(5);
/// How many records of one event are read at a time; there is one for each process that has noted a read of it.
const PAGE: usize = 100;

/// Where its words are found in the log.
const TARGET: &str = "notbefore::delivery";

/// What was written, and what became of it.
type Written = Vec<(Vec<(EventId, u64)>, Outcome)>;

/// The recorder; [`start`] makes it.
struct Recorder {
    delivery: Arc<Delivery>,
    views: Arc<Views>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    node: Node,
    /// The view that was last gone through, and when something in it is due.
    reviewed: Arc<View>,
    review_at: Option<Timestamp>,
    /// How many ticks pass before it is gone through again.
    ticks_to_skip: usize,
    is_failing: bool,
}

/// A recorder at work.
pub struct RecorderHandle {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl RecorderHandle {
    /// Lets it write what it has, and ends it.
    pub async fn close(self) {
        // A recorder that has ended already has nothing left to write.
        let _ = self.stop.send(());
        let mut task = self.task;
        if tokio::time::timeout(CLOSING_GRACE, &mut task).await.is_err() {
            task.abort();
            tracing::warn!("could not write down in time who has read what; the last of it is lost");
        }
    }
}

/// What is written about those who have read an event.
pub async fn stored_reads(store: &dyn Store, event: EventId) -> Result<Vec<Seen>, ReadError> {
    let (snapshot, prefix) = (store.snapshot().await?, records::seen_of(event));
    let (mut pages, mut found) = (Scan::new(&*snapshot, &prefix, PAGE), Vec::new());
    while let Some(page) = pages.next().await? {
        for (key, record) in &page.records {
            match records::decode::<Seen>(key, &record.value) {
                Ok(seen) => found.push(seen),
                Err(error) => tracing::warn!(target: TARGET, %error, "passed over"),
            }
        }
    }
    Ok(found)
}

/// Reads what earlier processes have left of the events that are live, and starts the recorder.
pub async fn start(
    node: Node,
    views: &Arc<Views>,
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
) -> Result<(Arc<Delivery>, RecorderHandle), ReadError> {
    let ledger = load(&**store, &views.newest()).await?;
    let (delivery, notes) = Delivery::new(ledger);
    let (stop, stopped) = oneshot::channel();
    let recorder = Recorder {
        delivery: Arc::clone(&delivery),
        views: Arc::clone(views),
        store: Arc::clone(store),
        clock: Arc::clone(clock),
        node,
        reviewed: Arc::default(),
        review_at: None,
        ticks_to_skip: 0,
        is_failing: false,
    };
    Ok((delivery, RecorderHandle { stop, task: tokio::spawn(recorder.run(notes, stopped)) }))
}

async fn load(store: &dyn Store, view: &View) -> Result<Ledger, ReadError> {
    let mut ledger = Ledger::default();
    for event in view.busy_scopes().flat_map(|scope| &scope.scope.events) {
        for record in stored_reads(store, event.id).await? {
            ledger.load(event.id, &record);
        }
    }
    Ok(ledger)
}

impl Recorder {
    async fn run(mut self, mut notes: mpsc::Receiver<SentDocument>, mut stopped: oneshot::Receiver<()>) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut taken = Vec::new();
        // One at most.
        let mut writes: JoinSet<Written> = JoinSet::new();
        loop {
            tokio::select! {
                _ = &mut stopped => break,
                Some(written) = writes.join_next() => {
                    if self.handle_written(written.unwrap_or_default()) {
                        self.write(&mut writes);
                    }
                }
                _ = ticks.tick() => {
                    match self.ticks_to_skip {
                        0 => self.review(),
                        ticks => self.ticks_to_skip = ticks - 1,
                    }
                    if writes.is_empty() {
                        self.write(&mut writes);
                    }
                }
                count = notes.recv_many(&mut taken, SENT_DOCUMENTS_PER_TURN) => {
                    if count == 0 {
                        break;
                    }
                    self.record(&mut taken);
                }
            }
        }
        while let Ok(sent) = notes.try_recv() {
            taken.push(sent);
        }
        self.record(&mut taken);
        loop {
            if let Some(written) = writes.join_next().await
                && !self.handle_written(written.unwrap_or_default())
            {
                return;
            }
            self.write(&mut writes);
            if writes.is_empty() {
                return;
            }
        }
    }

    fn record(&self, notes: &mut Vec<SentDocument>) {
        let (view, now) = (self.views.newest(), self.clock.now());
        let mut ledger = self.delivery.ledger();
        for waited in notes.drain(..).flat_map(|sent| ledger.record(&sent, &view, now)) {
            self.delivery.first_reads.observe(waited);
        }
    }

    /// Follows what has changed, and warns of what is due.
    fn review(&mut self) {
        let (view, now) = (self.views.newest(), self.clock.now());
        let has_changed = !Arc::ptr_eq(&view, &self.reviewed);
        let mut ledger = self.delivery.ledger();
        if has_changed {
            ledger.mark_ended(&view, now);
        }
        let lost = ledger.prune(now);
        let is_due = has_changed || self.review_at.is_some_and(|at| at <= now);
        let mut warnings = Vec::new();
        if is_due {
            (warnings, self.review_at) = ledger.collect_warnings(&view, now);
        }
        drop(ledger);
        self.ticks_to_skip = view.busy.len() / SCOPES_REVIEWED_PER_SECOND;
        self.reviewed = view;
        if lost > 0 {
            tracing::error!(target: TARGET, lost, "the store refuses for so long that the oldest reads were forgotten");
        }
        self.warn(&warnings);
    }

    fn warn(&self, warnings: &[Warning]) {
        let count: usize = warnings.iter().map(|warning| warning.vms.len()).sum();
        self.delivery.warnings.inc_by(count as u64);
        for warning in warnings.iter().take(WARNINGS_SHOWN_MAX) {
            tracing::warn!(
                target: TARGET,
                event = %warning.event,
                scope = %warning.scope,
                not_before = %warning.not_before,
                unread_by = warning.names(),
                "an event nears its NotBefore and was not read: see with 'notbefore vm show' whether the VM polls, and at an api-version that shows {}",
                warning.event_type,
            );
        }
        if let more @ 1.. = warnings.len().saturating_sub(WARNINGS_SHOWN_MAX) {
            tracing::warn!(target: TARGET, more, "more events near their NotBefore unread; 'notbefore event list' shows them");
        }
    }

    /// Begins to write some of what is not written, if there is any.
    fn write(&self, writes: &mut JoinSet<Written>) {
        let drafts = self.delivery.ledger().unwritten(RECORDS_PER_TURN);
        if drafts.is_empty() {
            return;
        }
        let (store, txns) = (Arc::clone(&self.store), transactions(drafts, &self.node));
        writes.spawn(async move {
            let commits = txns.into_iter().map(|(drafts, txn)| {
                let store = Arc::clone(&store);
                async move { (drafts, store.commit(txn).await) }
            });
            join_all(commits).await
        });
    }

    /// Takes over what became of a write. Says whether all of it was taken: otherwise the next is not at once.
    fn handle_written(&mut self, written: Written) -> bool {
        let mut failed = None;
        let mut ledger = self.delivery.ledger();
        for (drafts, outcome) in written {
            match outcome {
                Outcome::Committed(_) => {}
                // The same put again does no harm, whether the first was durable or not.
                Outcome::Unknown(why) => {
                    failed = Some(why);
                    continue;
                }
                Outcome::Refused(refusal @ Refusal::Unavailable(_)) => {
                    failed = Some(refusal.to_string());
                    continue;
                }
                // Nothing is expected, so nothing conflicts; and what is too large stays too large.
                Outcome::Conflict(_)
                | Outcome::Refused(
                    Refusal::TooManyOperations { .. }
                    | Refusal::ValueTooLarge { .. }
                    | Refusal::TxnTooLarge { .. },
                ) => {
                    tracing::error!(target: TARGET, "the store will not take a record of reads; it is dropped")
                }
            }
            drafts.into_iter().for_each(|(event, changes)| ledger.mark_written(event, changes));
        }
        drop(ledger);
        match (&failed, std::mem::replace(&mut self.is_failing, failed.is_some())) {
            (Some(why), false) => {
                tracing::warn!(target: TARGET, why, "cannot write down who has read what; will keep trying");
            }
            (None, true) => tracing::info!(target: TARGET, "who has read what is written down again"),
            (Some(_), true) | (None, false) => {}
        }
        failed.is_none()
    }
}

/// Records as transactions, each within the store's limits.
fn transactions(drafts: Vec<UnwrittenRecord>, node: &str) -> Vec<(Vec<(EventId, u64)>, Txn)> {
    let mut txns: Vec<(Vec<(EventId, u64)>, Txn)> = Vec::new();
    let mut bytes = 0;
    for UnwrittenRecord { event, changes, record } in drafts {
        let value = records::encode(&record);
        let is_full = txns.last().is_none_or(|(_, txn)| {
            txn.put.len() == TXN_OPERATIONS_MAX || bytes + value.len() > TXN_BYTES_MAX
        });
        if is_full {
            txns.push(Default::default());
            bytes = 0;
        }
        bytes += value.len();
        if let Some((written, txn)) = txns.last_mut() {
            written.push((event, changes));
            txn.put.push((records::seen(event, node), value));
        }
    }
    txns
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use async_trait::async_trait;
    use notbefore_core::Cause;
    use notbefore_engine::records::{NewRead, SeenRead};
    use notbefore_store::memory::MemoryStore;
    use notbefore_store::{Revision, Snapshot, Watch, WatchError};
    use notbefore_wire::guest::version::EventsVersion;

    use super::super::VmPolls;
    use super::super::tests::{ViewFixture, at, event, scope, vm};
    use super::*;

    fn draft(id: u128, readers: u128) -> UnwrittenRecord {
        let read = |n| SeenRead { vm: vm(n), at: at(0), version: "2020-07-01".into() };
        let added = |n| NewRead { vm: vm(n), name: "n".repeat(80).parse().unwrap() };
        let record = Seen {
            scope: scope("web", &[]).id(),
            reads: (0..readers).map(read).collect(),
            added: (0..readers).map(added).collect(),
        };
        UnwrittenRecord { event: notbefore_core::samples::event_id(id), changes: 1, record }
    }

    #[test]
    fn transactions_respect_store_limits() {
        for drafts in [
            (0..1_600).map(|n| draft(n, 1)).collect::<Vec<_>>(),
            // The largest event there can be, for all of a turn.
            (0..100).map(|n| draft(n, 1_000)).collect(),
        ] {
            let count = drafts.len();
            let txns = transactions(drafts, "node");
            assert!(txns.len() > 1);
            assert_eq!(txns.iter().map(|(written, _)| written.len()).sum::<usize>(), count);
            for (written, txn) in txns {
                assert_eq!((txn.check(), txn.put.len()), (Ok(()), written.len()));
            }
        }
    }

    /// A store that can be told to refuse.
    struct FlakyStore {
        store: MemoryStore,
        refuses: AtomicBool,
    }

    #[async_trait]
    impl Store for FlakyStore {
        async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
            self.store.snapshot().await
        }
        async fn commit(&self, txn: Txn) -> Outcome {
            match self.refuses.load(Relaxed) {
                true => Outcome::Refused(Refusal::Unavailable("no space left".into())),
                false => self.store.commit(txn).await,
            }
        }
        async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
            self.store.watch(after).await
        }
    }

    struct FixedClock;

    impl Clock for FixedClock {
        fn now(&self) -> Timestamp {
            at(5)
        }
    }

    #[tokio::test]
    async fn refused_writes_are_retried() {
        let mut scope = scope("web", &[vm(1)]);
        let reboot = event(7, Cause::HostReboot, &[vm(1)], at(0), at(900));
        scope.events.push(reboot.clone());
        let mut fixture = ViewFixture::default();
        fixture.publish(&scope, at(0));
        let views = Arc::clone(&fixture.views);
        let flaky = Arc::new(FlakyStore { store: MemoryStore::new(), refuses: AtomicBool::new(true) });
        let store: Arc<dyn Store> = flaky.clone();
        let (delivery, mut notes) = Delivery::new(Ledger::default());
        let mut recorder = Recorder {
            delivery: Arc::clone(&delivery),
            views: Arc::clone(&views),
            store: Arc::clone(&store),
            clock: Arc::new(FixedClock),
            node: "node".into(),
            reviewed: Arc::default(),
            review_at: None,
            ticks_to_skip: 0,
            is_failing: false,
        };

        let (view, vm_polls) = (views.newest(), VmPolls::default());
        let shown = view.guest(vm(1)).unwrap().scope;
        delivery.record_sent(vm(1), &vm_polls, shown, EventsVersion::NEWEST, at(3));
        delivery.record_sent(vm(1), &vm_polls, shown, EventsVersion::NEWEST, at(4));
        assert_eq!(notes.len(), 1, "the second poll is no news");
        recorder.record(&mut vec![notes.recv().await.unwrap()]);
        let mut writes = JoinSet::new();
        recorder.write(&mut writes);
        assert!(!recorder.handle_written(writes.join_next().await.unwrap().unwrap()) && recorder.is_failing);
        assert_eq!(stored_reads(&*store, reboot.id).await, Ok(vec![]));

        flaky.refuses.store(false, Relaxed);
        recorder.write(&mut writes);
        assert!(recorder.handle_written(writes.join_next().await.unwrap().unwrap()) && !recorder.is_failing);
        let read = SeenRead { vm: vm(1), at: at(3), version: "2020-07-01".into() };
        let name = reboot.resources[0].name.clone();
        let record = Seen { scope: scope.id(), reads: vec![read], added: vec![NewRead { vm: vm(1), name }] };
        assert_eq!(stored_reads(&*store, reboot.id).await, Ok(vec![record]));
        recorder.write(&mut writes);
        assert!(writes.is_empty(), "there is nothing left to write");

        let ledger = load(&*store, &view).await.unwrap();
        assert_eq!(ledger.reads(reboot.id).map(|(_, read)| read.at).collect::<Vec<_>>(), [at(3)]);
    }

    #[test]
    fn full_queue_records_read_at_next_poll() {
        let mut scope = scope("web", &[vm(1), vm(2)]);
        scope.events.push(event(7, Cause::HostReboot, &[vm(1)], at(0), at(900)));
        let mut fixture = ViewFixture::default();
        fixture.publish(&scope, at(0));
        let view = fixture.views.newest();
        let shown = view.guest(vm(1)).unwrap().scope;
        let (delivery, mut notes) = Delivery::new(Ledger::default());
        for _ in 0..super::super::SENT_DOCUMENTS_MAX {
            delivery.record_sent(vm(1), &VmPolls::default(), shown, EventsVersion::NEWEST, at(1));
        }
        let vm_polls = VmPolls::default();
        delivery.record_sent(vm(1), &vm_polls, shown, EventsVersion::NEWEST, at(2));
        assert!(!vm_polls.has_sent(shown.edition, EventsVersion::NEWEST));
        let other = VmPolls::default();
        delivery.record_sent(vm(2), &other, shown, EventsVersion::NEWEST, at(2));
        assert!(other.has_sent(shown.edition, EventsVersion::NEWEST), "nothing in it happens to this one");
        notes.try_recv().unwrap();
        delivery.record_sent(vm(1), &vm_polls, shown, EventsVersion::NEWEST, at(3));
        assert!(vm_polls.has_sent(shown.edition, EventsVersion::NEWEST));
    }
}
