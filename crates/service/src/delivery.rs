//! Delivery assurance: whether word reaches the guests.
//!
//! A poll writes nothing down. It stores its time in a slot that belongs to the VM ([`VmPolls`]); the slot is
//! found in the same lookup that finds the VM's scope, outlives every change of the scope, and is gone when
//! the VM or the process is. The slot also knows which document the VM was last sent, at which versions. Only
//! a poll that is sent something else than that leaves a [`SentDocument`], and only if the document has an event that
//! happens to the VM. Notes become first reads in the [`Ledger`], and those become records, in bulk.
//!
//! **What counts as read.** A VM has read an event once it was sent a document that shows it: whole, as an
//! answer 200, at a version that knows the event's type. A 304 is no reading of its own. It says that the
//! client has a tag, and a tag says nothing of the version it was read at, or whether it was read at all (`*`).
//! Normally the document behind it was sent before, and that was noted. An approval is no reading either: it
//! speaks for all of an event's VMs, and one of them may have told the others.
//!
//! **What is lost.** A crash loses the notes of the last second. The VM's next poll is noted anew, unless it is
//! answered 304: then the event stays unread in the books until the document changes. That is the lesser evil:
//! an operator who is told "not read" looks, one who is told "read" does not.
//!
//! | file | what is in it |
//! |---|---|
//! | [`vm_polls`] | one VM's slot |
//! | [`ledger`] | who read what first when; pure |
//! | [`warning`] | when an unread event is worth a warning; pure |
//! | [`recorder`] | the task that takes notes, writes records and warns |

pub mod ledger;
pub mod recorder;
#[cfg(test)]
pub(crate) mod tests;
pub mod vm_polls;
pub mod warning;

use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;
use notbefore_core::VmId;
use notbefore_wire::guest::version::EventsVersion;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::mpsc;

pub use ledger::{Ledger, Read};
pub use vm_polls::VmPolls;

use crate::view::ScopeView;

/// How many notes may wait to be taken up. They are taken up at once, so this is what a processor that is busy
/// elsewhere for a moment needs; a poll that finds no room is noted at the next one.
const SENT_DOCUMENTS_MAX: usize = 65_536;

/// The buckets of publish-to-first-read: polls come every second, or every minute, or not at all.
const FIRST_READ_S: [f64; 11] = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0];

/// A VM was sent a document that it had not been sent before.
#[derive(Clone)]
pub struct SentDocument {
    /// The VM.
    pub vm: VmId,
    /// The scope as it was shown.
    pub scope: Arc<ScopeView>,
    /// At which version.
    pub version: EventsVersion,
    /// When.
    pub at: Timestamp,
}

/// What those who serve guests, those who ask and the recorder share.
pub struct Delivery {
    notes: mpsc::Sender<SentDocument>,
    ledger: Mutex<Ledger>,
    /// From an event's publication to its first read by each VM that it happens to.
    pub first_reads: Histogram,
    /// How many warnings there were: one for each event and VM.
    pub warnings: Counter,
}

impl Delivery {
    /// Nothing read yet; the notes are for the recorder.
    pub fn new(ledger: Ledger) -> (Arc<Self>, mpsc::Receiver<SentDocument>) {
        let (notes, taken) = mpsc::channel(SENT_DOCUMENTS_MAX);
        let (ledger, first_reads) = (Mutex::new(ledger), Histogram::new(FIRST_READ_S));
        (Arc::new(Self { notes, ledger, first_reads, warnings: Counter::default() }), taken)
    }

    /// A VM was sent its scope's document. Usually it was before, and then this is one load.
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
        let concerned = scope.scope.events.iter().any(|event| event.includes_vm(vm));
        let sent = || SentDocument { vm, scope: Arc::clone(scope), version, at };
        // Where there is no room for the note the slot stays as it is, and the next poll tries again.
        if !concerned || self.notes.try_send(sent()).is_ok() {
            vm_polls.record_sent(scope.edition, version);
        }
    }

    /// Who read what, for as long as the guard is held; polls never wait for it.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // Whoever panicked while it held the ledger left it as good as it was: each change is one insertion.
        crate::lock(&self.ledger)
    }
}
