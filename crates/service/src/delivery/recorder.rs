//! Recorder: the task that collects notes, writes them once a second, and warns.
//!
//! Notes enter the ledger at once, so readers see them immediately; the store gets them in bulk. Writes run beside the
//! task: a slow disk delays neither notes nor warnings. Records that the store refused stay in the ledger and are
//! retried after a second.
//!
//! **In a cluster**, a follower writes nothing and warns of nothing. Its notes go to the leader with digests
//! ([`super::digests`]), and stay in its ledger until their events have ended, in case the leader fails before it has
//! written them. A node that takes the lead reads the stored reads of live events, and writes those of its own that are
//! missing. It warns when it knows the guests of all nodes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use notbefore_core::EventId;
use notbefore_engine::Node;
use notbefore_engine::cluster::LEADER;
use notbefore_engine::records::{self, Seen};
use notbefore_store::{
    Key, Outcome, ReadError, Refusal, Store, TXN_BYTES_MAX, TXN_OPERATIONS_MAX, Txn, Versioned,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use super::ledger::{Ledger, UnwrittenRecord};
use super::warning::Warning;
use super::{Delivery, DeliveryRole, Read, SentDocument};
use crate::clock::Clock;
use crate::scan::Scan;
use crate::view::{View, Views, shown_type};
use crate::vm_log::VmLog;
use crate::vm_log::entries::Happened;

/// Interval between writes; a crash loses at most this much.
const TICK: Duration = Duration::from_secs(1);
/// Approximate number of busy scopes reviewed a second. With more scopes, reviews are less frequent: a hundred thousand
/// take some milliseconds of the thread.
const SCOPES_REVIEWED_PER_SECOND: usize = 20_000;
/// Maximum notes taken at a time.
const SENT_DOCUMENTS_PER_TURN: usize = 4_096;
/// Maximum records written at a time, in transactions that the store may group into one commit.
const RECORDS_PER_TURN: usize = 1_600;
/// Records in a transaction; one operation is for the leader's fence.
const PUTS_PER_TXN: usize = TXN_OPERATIONS_MAX - 1;
/// Maximum warnings logged at a time; the rest are counted.
const WARNINGS_SHOWN_MAX: usize = 50;
/// How long a closing recorder tries to write the rest.
const CLOSING_GRACE: Duration = Duration::from_secs(5);
/// Page size for the records of one event; there is one for each process that noted a read of it.
const PAGE: usize = 100;
/// Page size for the records of all events.
const EVENTS_PAGE: usize = 1_000;

/// Log target.
const TARGET: &str = "notbefore::delivery";

/// Written events with their change numbers, and the store's outcome.
type Written = Vec<(Vec<(EventId, u64)>, Outcome)>;

/// State of the task; [`start`] creates it.
struct Recorder {
    delivery: Arc<Delivery>,
    vm_log: Arc<VmLog>,
    views: Arc<Views>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    node: Node,
    /// The last view reviewed, and when its next warning is due.
    reviewed: Arc<View>,
    review_at: Option<Timestamp>,
    /// Number of ticks to skip before the next review.
    ticks_to_skip: usize,
    is_failing: bool,
    /// The term for which the stored reads are known; 0 for a single node.
    loaded_term: u64,
}

/// Handle of a running recorder.
pub struct RecorderHandle {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl RecorderHandle {
    /// Writes the rest and stops the task.
    pub async fn close(self) {
        // Fails if the recorder has already ended; then nothing is left to write.
        let _ = self.stop.send(());
        let mut task = self.task;
        if tokio::time::timeout(CLOSING_GRACE, &mut task).await.is_err() {
            task.abort();
            tracing::warn!("reads not stored in time at shutdown: the latest are lost");
        }
    }
}

/// The stored reads of an event, one record for each process.
pub async fn stored_reads(store: &dyn Store, event: EventId) -> Result<Vec<Seen>, ReadError> {
    let (snapshot, prefix) = (store.snapshot().await?, records::seen_of(event));
    let (mut pages, mut found) = (Scan::new(&*snapshot, &prefix, PAGE), Vec::new());
    while let Some(page) = pages.next().await? {
        found.extend(page.records.iter().filter_map(|(key, record)| decoded(key, record)));
    }
    Ok(found)
}

/// Loads the stored reads of live events and starts the recorder.
pub async fn start(
    node: Node,
    views: &Arc<Views>,
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
    vm_log: &Arc<VmLog>,
) -> Result<(Arc<Delivery>, RecorderHandle), ReadError> {
    let ledger = load(&**store, &views.newest()).await?;
    let (delivery, notes) = Delivery::new(ledger);
    let (stop, stopped) = oneshot::channel();
    let recorder = Recorder {
        delivery: Arc::clone(&delivery),
        vm_log: Arc::clone(vm_log),
        views: Arc::clone(views),
        store: Arc::clone(store),
        clock: Arc::clone(clock),
        node,
        reviewed: Arc::default(),
        review_at: None,
        ticks_to_skip: 0,
        is_failing: false,
        loaded_term: 0,
    };
    Ok((delivery, RecorderHandle { stop, task: tokio::spawn(recorder.run(notes, stopped)) }))
}

/// The stored reads of live events. A page has those of many events: with a request for each, a node with many events
/// would need minutes to read them from etcd.
async fn load(store: &dyn Store, view: &View) -> Result<Ledger, ReadError> {
    let events = view.busy_scopes().flat_map(|scope| &scope.scope.events);
    let live: BTreeSet<Key> = events.map(|event| records::seen_of(event.id).into()).collect();
    let live_event = |key: &Key| {
        let event = records::event_in_key(key)?;
        live.contains(&*records::seen_of(event)).then_some(event)
    };
    let (mut ledger, mut next) = (Ledger::default(), live.first().cloned());
    let snapshot = store.snapshot().await?;
    while let Some(after) = next.take() {
        let page = snapshot.scan(records::prefix::SEEN, Some(&after), EVENTS_PAGE).await?;
        for (key, record) in &page.records {
            if let Some((event, seen)) = live_event(key).zip(decoded(key, record)) {
                ledger.load(event, &seen);
            }
        }
        next = page.records.last().filter(|_| page.more).and_then(|(last, _)| match live_event(last) {
            // It may have more records.
            Some(_) => Some(last.clone()),
            // Skips records of events that have ended.
            None => live.range(last.clone()..).next().cloned(),
        });
    }
    Ok(ledger)
}

fn decoded(key: &str, record: &Versioned) -> Option<Seen> {
    let seen = records::decode::<Seen>(key, &record.value);
    let skipped =
        |error| tracing::warn!(target: TARGET, %error, "skipped a record of reads that cannot be decoded");
    seen.map_err(skipped).ok()
}

impl Recorder {
    async fn run(mut self, mut notes: mpsc::Receiver<SentDocument>, mut stopped: oneshot::Receiver<()>) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut taken = Vec::new();
        // At most one.
        let mut writes: JoinSet<Written> = JoinSet::new();
        // At most one: the stored reads, for a term.
        let mut loads: JoinSet<(u64, Result<Ledger, ReadError>)> = JoinSet::new();
        loop {
            tokio::select! {
                _ = &mut stopped => break,
                Some(written) = writes.join_next() => {
                    if self.handle_written(written.unwrap_or_default()) {
                        self.write(&mut writes);
                    }
                }
                Some(loaded) = loads.join_next() => {
                    if let Ok((term, loaded)) = loaded {
                        self.handle_loaded(term, loaded);
                    }
                }
                _ = ticks.tick() => {
                    if loads.is_empty() {
                        self.load_for_lead(&mut loads);
                    }
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
        for sent in notes.iter() {
            self.vm_log.record(sent.vm, read_of(sent), sent.at);
        }
        let (view, now) = (self.views.newest(), self.clock.now());
        let mut ledger = self.delivery.ledger();
        for waited in notes.iter().flat_map(|sent| ledger.record(sent, &view, now)) {
            self.delivery.first_reads.observe(waited);
        }
        drop(ledger);
        // After the ledger, where the sender of digests collects them.
        self.delivery.node_notes.add_reads(notes.iter().flat_map(|sent| {
            let read = Read { at: sent.at, version: sent.version };
            shown_events(sent).map(move |event| (event, sent.vm, read))
        }));
        notes.clear();
    }

    /// Whether this node writes reads: it leads and knows those in the store, or it is the only node.
    fn writes(&self) -> bool {
        match self.delivery.node_notes.role() {
            DeliveryRole::Alone => true,
            DeliveryRole::Following => false,
            DeliveryRole::Collecting | DeliveryRole::Leading => {
                self.loaded_term == self.delivery.node_notes.term()
            }
        }
    }

    /// Whether this node warns: it writes, and knows the guests of all nodes.
    fn warns(&self) -> bool {
        self.writes() && self.delivery.node_notes.role() != DeliveryRole::Collecting
    }

    /// Starts to read the stored reads, if this node has taken the lead.
    fn load_for_lead(&self, loads: &mut JoinSet<(u64, Result<Ledger, ReadError>)>) {
        let role = self.delivery.node_notes.role();
        let term = self.delivery.node_notes.term();
        if !matches!(role, DeliveryRole::Collecting | DeliveryRole::Leading) || self.loaded_term == term {
            return;
        }
        let (store, view) = (Arc::clone(&self.store), self.views.newest());
        loads.spawn(async move { (term, load(&*store, &view).await) });
    }

    fn handle_loaded(&mut self, term: u64, loaded: Result<Ledger, ReadError>) {
        match loaded {
            Ok(stored) => {
                self.delivery.ledger().take_lead(stored);
                self.loaded_term = term;
            }
            Err(error) => {
                tracing::warn!(target: TARGET, %error, "cannot read the stored reads of events: retrying");
            }
        }
    }

    /// Updates the ledger from the newest view and logs the warnings that are due.
    fn review(&mut self) {
        let (view, now) = (self.views.newest(), self.clock.now());
        let has_changed = !Arc::ptr_eq(&view, &self.reviewed);
        let mut ledger = self.delivery.ledger();
        if has_changed {
            ledger.mark_ended(&view, now);
        }
        let lost = match self.delivery.node_notes.role() {
            DeliveryRole::Following => {
                ledger.prune_follower(now);
                0
            }
            DeliveryRole::Alone | DeliveryRole::Collecting | DeliveryRole::Leading => ledger.prune(now),
        };
        let is_due = has_changed || self.review_at.is_some_and(|at| at <= now);
        let mut warnings = Vec::new();
        if !self.warns() {
            // When it may warn, it looks at once.
            self.review_at = Some(now);
        } else if is_due {
            (warnings, self.review_at) = ledger.collect_warnings(&view, now);
        }
        drop(ledger);
        self.ticks_to_skip = view.busy.len() / SCOPES_REVIEWED_PER_SECOND;
        self.reviewed = view;
        if lost > 0 {
            tracing::error!(target: TARGET, lost, "store refused writes for too long: the oldest reads were dropped");
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
                "event unread and close to its NotBefore: check with 'notbefore vm show' whether the VM polls, and at an api-version that shows {}",
                warning.event_type,
            );
        }
        if let more @ 1.. = warnings.len().saturating_sub(WARNINGS_SHOWN_MAX) {
            tracing::warn!(target: TARGET, more, "more events unread and close to their NotBefore: see 'notbefore event list'");
        }
    }

    /// Starts a write, if there are unwritten records.
    fn write(&self, writes: &mut JoinSet<Written>) {
        if !self.writes() {
            return;
        }
        let drafts = self.delivery.ledger().unwritten(RECORDS_PER_TURN);
        if drafts.is_empty() {
            return;
        }
        let (store, txns) = (
            Arc::clone(&self.store),
            transactions(drafts, &seen_by(&self.node, self.delivery.node_notes.term())),
        );
        writes.spawn(async move {
            let commits = txns.into_iter().map(|(drafts, txn)| {
                let store = Arc::clone(&store);
                async move { (drafts, store.commit(txn).await) }
            });
            join_all(commits).await
        });
    }

    /// Handles the result of a write. Returns whether all of it was stored; otherwise the next write waits for a tick.
    fn handle_written(&mut self, written: Written) -> bool {
        let mut failed = None;
        let mut ledger = self.delivery.ledger();
        for (drafts, outcome) in written {
            match outcome {
                Outcome::Committed(_) => {}
                // Writing the same record again is idempotent.
                Outcome::Unknown(why) => {
                    failed = Some(why);
                    continue;
                }
                Outcome::Refused(refusal @ Refusal::Unavailable(_)) => {
                    failed = Some(refusal.to_string());
                    continue;
                }
                // Nothing is expected, so nothing conflicts; a record that is too large stays too large.
                Outcome::Conflict(_)
                | Outcome::Refused(
                    Refusal::TooManyOperations { .. }
                    | Refusal::ValueTooLarge { .. }
                    | Refusal::TxnTooLarge { .. }
                    | Refusal::DuplicateKey { .. },
                ) => {
                    tracing::error!(target: TARGET, "store refused a record of reads: it is dropped")
                }
            }
            drafts.into_iter().for_each(|(event, changes)| ledger.mark_written(event, changes));
        }
        drop(ledger);
        match (&failed, std::mem::replace(&mut self.is_failing, failed.is_some())) {
            (Some(why), false) => {
                tracing::warn!(target: TARGET, why, "cannot store reads: retrying");
            }
            (None, true) => tracing::info!(target: TARGET, "reads are stored again"),
            (Some(_), true) | (None, false) => {}
        }
        failed.is_none()
    }
}

/// The entry of a VM's log for a document that it was sent.
fn read_of(sent: &SentDocument) -> Happened {
    Happened::Read {
        incarnation: sent.scope.scope.incarnation,
        version: sent.version,
        events: shown_events(sent).map(|event| event.0).collect(),
    }
}

/// The VM's events that the document shows.
fn shown_events(sent: &SentDocument) -> impl Iterator<Item = EventId> {
    let of_vm = sent.scope.scope.events.iter().filter(|event| event.includes_vm(sent.vm));
    of_vm.filter(|event| sent.version.knows(shown_type(event))).map(|event| event.id)
}

/// The name under which a node stores reads. A process that leads again, in another term, must not replace what it
/// stored before: by then its ledger has only what is not stored yet.
fn seen_by(node: &str, term: u64) -> String {
    match term {
        0 => node.to_owned(),
        _ => format!("{node}-{term}"),
    }
}

/// Groups records into transactions within the store's limits.
fn transactions(drafts: Vec<UnwrittenRecord>, node: &str) -> Vec<(Vec<(EventId, u64)>, Txn)> {
    let mut txns: Vec<(Vec<(EventId, u64)>, Txn)> = Vec::new();
    let mut bytes = 0;
    for UnwrittenRecord { event, changes, record } in drafts {
        let value = records::encode(&record);
        let key = records::seen(event, node);
        let size = key.len() + value.len();
        let is_full = txns.last().is_none_or(|(_, txn)| {
            txn.put.len() == PUTS_PER_TXN || bytes + size + LEADER.len() > TXN_BYTES_MAX
        });
        if is_full {
            txns.push(Default::default());
            bytes = 0;
        }
        bytes += size;
        if let Some((written, txn)) = txns.last_mut() {
            written.push((event, changes));
            txn.put.push((key, value));
        }
    }
    txns
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

    use async_trait::async_trait;
    use notbefore_core::Cause;
    use notbefore_engine::records::{NewRead, SeenRead};
    use notbefore_store::memory::MemoryStore;
    use notbefore_store::{Page, Revision, Snapshot, Watch, WatchError};
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
    fn process_that_leads_again_stores_reads_under_another_name() {
        assert_eq!(seen_by("n1", 0), "n1", "a single node has no terms");
        let [first, second] =
            [7, 9].map(|term| records::seen(EventId(uuid::Uuid::nil()), &seen_by("n1", term)));
        assert_ne!(first, second);
        assert!(notbefore_engine::RecordKey::parse(&first).is_ok());
    }

    #[test]
    fn transactions_respect_store_limits() {
        for drafts in [
            (0..1_600).map(|n| draft(n, 1)).collect::<Vec<_>>(),
            // The largest possible event, for a whole turn.
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

    /// A store that can be set to refuse.
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
            vm_log: Arc::default(),
            delivery: Arc::clone(&delivery),
            views: Arc::clone(&views),
            store: Arc::clone(&store),
            clock: Arc::new(FixedClock),
            node: "node".into(),
            reviewed: Arc::default(),
            review_at: None,
            ticks_to_skip: 0,
            is_failing: false,
            loaded_term: 0,
        };

        let (view, vm_polls) = (views.newest(), VmPolls::default());
        let shown = view.guest(vm(1)).unwrap().scope;
        delivery.record_sent(vm(1), &vm_polls, shown, EventsVersion::NEWEST, at(3));
        delivery.record_sent(vm(1), &vm_polls, shown, EventsVersion::NEWEST, at(4));
        assert_eq!(notes.len(), 1, "the second poll leaves no note");
        recorder.record(&mut vec![notes.recv().await.unwrap()]);
        let [entry] = &recorder.vm_log.of(vm(1)).entries[..] else { panic!("no entry") };
        let events = [reboot.id.0].into_iter().collect();
        let (incarnation, version) = (scope.incarnation, EventsVersion::NEWEST);
        assert_eq!((entry.first_at, &entry.what), (at(3), &Happened::Read { incarnation, version, events }));
        let mut writes = JoinSet::new();
        recorder.write(&mut writes);
        assert!(!recorder.handle_written(writes.join_next().await.unwrap().unwrap()) && recorder.is_failing);
        assert_eq!(stored_reads(&*store, reboot.id).await, Ok(vec![]));

        flaky.refuses.store(false, Relaxed);
        recorder.write(&mut writes);
        assert!(recorder.handle_written(writes.join_next().await.unwrap().unwrap()) && !recorder.is_failing);
        let read = SeenRead { vm: vm(1), at: at(3), version: EventsVersion::NEWEST.to_string() };
        let name = reboot.resources[0].name.clone();
        let record = Seen { scope: scope.id(), reads: vec![read], added: vec![NewRead { vm: vm(1), name }] };
        assert_eq!(stored_reads(&*store, reboot.id).await, Ok(vec![record]));
        recorder.write(&mut writes);
        assert!(writes.is_empty(), "nothing left to write");

        let ledger = load(&*store, &view).await.unwrap();
        assert_eq!(ledger.reads(reboot.id).map(|(_, read)| read.at).collect::<Vec<_>>(), [at(3)]);
    }

    /// A store that counts the pages that are read.
    #[derive(Clone, Default)]
    struct CountingStore {
        store: Arc<MemoryStore>,
        pages: Arc<AtomicUsize>,
    }

    #[async_trait]
    impl Store for CountingStore {
        async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
            let snapshot = self.store.snapshot().await?;
            Ok(Box::new(CountingSnapshot { snapshot, pages: Arc::clone(&self.pages) }))
        }
        async fn commit(&self, txn: Txn) -> Outcome {
            self.store.commit(txn).await
        }
        async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
            self.store.watch(after).await
        }
    }

    struct CountingSnapshot {
        snapshot: Box<dyn Snapshot>,
        pages: Arc<AtomicUsize>,
    }

    #[async_trait]
    impl Snapshot for CountingSnapshot {
        fn revision(&self) -> Revision {
            self.snapshot.revision()
        }
        async fn get(&self, key: &str) -> Result<Option<Versioned>, ReadError> {
            self.snapshot.get(key).await
        }
        async fn scan(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, ReadError> {
            self.pages.fetch_add(1, Relaxed);
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
    async fn reads_of_many_events_are_loaded_in_few_pages() {
        const EVENTS: u128 = 1_200;
        let store = CountingStore::default();
        // Three nodes have noted a read of each event, so that pages end in the middle of an event.
        for id in 0..EVENTS {
            let record = |reader: u128| {
                let read = SeenRead { vm: vm(reader), at: at(3), version: "2020-07-01".into() };
                let record = Seen { scope: scope("web", &[]).id(), reads: vec![read], added: vec![] };
                let event = notbefore_core::samples::event_id(id);
                (records::seen(event, &format!("n{reader}")), records::encode(&record))
            };
            let put = (1..=3).map(record).collect();
            assert!(matches!(store.commit(Txn { put, ..Txn::default() }).await, Outcome::Committed(_)));
        }
        // Of the others, only records are left.
        for (live, pages) in [(vec![], 0), (vec![1_100], 1), ((0..EVENTS).step_by(2).collect(), 4)] {
            let mut scope = scope("web", &[vm(1), vm(2), vm(3)]);
            let reboot = |id: &u128| event(*id, Cause::HostReboot, &[vm(1)], at(0), at(900));
            scope.events = live.iter().map(reboot).collect();
            let mut fixture = ViewFixture::default();
            fixture.publish(&scope, at(0));
            store.pages.store(0, Relaxed);
            let ledger = load(&store, &fixture.views.newest()).await.unwrap();
            assert_eq!(store.pages.load(Relaxed), pages, "{} live events", live.len());
            for id in 0..EVENTS {
                let expected = if live.contains(&id) { 3 } else { 0 };
                assert_eq!(ledger.reads(notbefore_core::samples::event_id(id)).count(), expected, "{id}");
            }
        }
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
        assert!(other.has_sent(shown.edition, EventsVersion::NEWEST), "no event affects this VM");
        notes.try_recv().unwrap();
        delivery.record_sent(vm(1), &vm_polls, shown, EventsVersion::NEWEST, at(3));
        assert!(vm_polls.has_sent(shown.edition, EventsVersion::NEWEST));
    }
}
