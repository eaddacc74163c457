//! Delivery tracking: which VMs have read which events.
//!
//! A poll writes no record. It stores its time in the VM's slot ([`VmPolls`]), which is found in the same lookup as the
//! scope. The slot survives changes of the scope and is dropped with the VM or the process. It also holds the last
//! document that the VM was sent, and at which versions. A poll that is sent another document leaves a [`SentDocument`]
//! note, if the document has an event that affects the VM. Notes become first reads in the [`Ledger`], and these become
//! records, in bulk.
//!
//! **Read.** A VM has read an event once it was sent a document that shows it: whole, with status 200, at a version
//! that has the event's type.
//!
//! - A 304 is no read. It shows that the client has an ETag, but not at which version it was read, or whether it was
//!   read at all (`*`). Normally the document was sent before and that was noted.
//! - An approval is no read. It is given for all of an event's VMs, and the approving VM may have informed the others.
//!
//! **Loss.** A crash loses the notes of the last second. The VM's next poll is noted again, unless its answer is 304:
//! then the event stays unread until the document changes. This error is the safe one: an operator checks an unread
//! event, but not a read one.
//!
//! | file | content |
//! |---|---|
//! | [`vm_polls`] | one VM's slot |
//! | [`ledger`] | first reads by event and VM; pure |
//! | [`warning`] | when to warn about an unread event; pure |
//! | [`recorder`] | the task that collects notes, writes records and warns |
//! | [`digests`] | in a cluster: what a follower tells the leader |

pub mod digests;
pub mod ledger;
pub mod recorder;
#[cfg(test)]
pub(crate) mod tests;
pub mod vm_polls;
pub mod warning;

use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;
use notbefore_core::{ScopeId, VmId};
use notbefore_wire::guest::version::EventsVersion;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::mpsc;

pub use digests::{DeliveryRole, Digests};
pub use ledger::{Ledger, Read};
pub use vm_polls::VmPolls;

use self::digests::NodeNotes;
use crate::view::ScopeView;

/// Capacity of the note channel. Notes are taken at once, so this covers a moment of high load. A poll that finds the
/// channel full is noted at the next poll.
const SENT_DOCUMENTS_MAX: usize = 65_536;

/// Buckets of publish-to-first-read, in seconds: VMs poll every second, every minute, or not at all.
const FIRST_READ_S: [f64; 11] = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0];

/// Note: a VM was sent a document for the first time.
#[derive(Clone)]
pub struct SentDocument {
    /// The VM.
    pub vm: VmId,
    /// The scope as it was sent.
    pub scope: Arc<ScopeView>,
    /// The api-version.
    pub version: EventsVersion,
    /// When the request arrived.
    pub at: Timestamp,
}

/// Delivery state, shared by guest server, operator API and recorder.
pub struct Delivery {
    notes: mpsc::Sender<SentDocument>,
    ledger: Mutex<Ledger>,
    /// Notes for the leader of the cluster.
    pub node_notes: NodeNotes,
    /// Time from an event's publication to its first read by each affected VM.
    pub first_reads: Histogram,
    /// Number of warnings: one for each event and VM.
    pub warnings: Counter,
}

impl Delivery {
    /// Creates the state; the receiver of notes is for the recorder.
    pub fn new(ledger: Ledger) -> (Arc<Self>, mpsc::Receiver<SentDocument>) {
        let (notes, taken) = mpsc::channel(SENT_DOCUMENTS_MAX);
        let (ledger, first_reads) = (Mutex::new(ledger), Histogram::new(FIRST_READ_S));
        let (node_notes, warnings) = (NodeNotes::default(), Counter::default());
        (Arc::new(Self { notes, ledger, node_notes, first_reads, warnings }), taken)
    }

    /// Records that a VM was sent its scope's document. Usually it was sent before, and then this is one load.
    pub fn record_sent(
        &self,
        vm: VmId,
        vm_polls: &VmPolls,
        scope: &Arc<ScopeView>,
        version: EventsVersion,
        at: Timestamp,
    ) {
        if vm_polls.has_sent(scope.edition, version) {
            return;
        }
        let is_affected = scope.scope.events.iter().any(|event| event.includes_vm(vm));
        let sent = || SentDocument { vm, scope: Arc::clone(scope), version, at };
        // If the channel is full, the slot stays unchanged and the next poll tries again.
        if !is_affected || self.notes.try_send(sent()).is_ok() {
            vm_polls.record_sent(scope.edition, version);
        }
    }

    /// Records for the leader that a VM of the scope polled. Call it when the engine is told, once a minute.
    pub fn record_scope_poll(&self, scope: &ScopeId, at: Timestamp) {
        self.node_notes.add_scope(scope, at);
    }

    /// Records for the leader that polls of a VM begin.
    pub fn record_begin(&self, vm: VmId, version: EventsVersion, at: Timestamp) {
        self.node_notes.add_heard(vm, version, at);
    }

    /// Locks the ledger. Polls never take this lock.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // A poisoned lock is safe: each change of the ledger is one insertion.
        crate::lock(&self.ledger)
    }
}
