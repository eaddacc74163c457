//! What guests did: a log of each VM in memory, and lines about refused requests in the service's log.
//!
//! Nothing is recorded for a plain poll. Workers and tasks of the guest listener record refused requests, stored
//! approvals and the begin of polls, the recorder ([`crate::delivery::recorder`]) records first reads. All of it is
//! bounded ([`entries`], [`lines`]), because guests control how often it happens.
//!
//! Recording takes a lock for about a microsecond: one of `SHARDS`, by VM. Lines are queued, and a task writes them,
//! so that a reader of the log that is slow does not delay guests.
//!
//! **In a cluster**, guests poll any node, and the leader shows their logs. A follower keeps, besides its own log, the
//! entries that the leader does not have yet; the next digest takes them ([`VmLog::take_unsent`]). The leader keeps the
//! entries of the others apart from its own ([`VmLog::record_of_other_node`]), and forgets them when it takes the lead
//! again: then every node sends all of its entries again ([`VmLog::all_entries`]).

pub mod entries;
pub mod lines;

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use notbefore_core::VmId;
use notbefore_wire::guest::error::GuestError;
use notbefore_wire::text::{printable, shorten};
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

use self::entries::{Entries, Entry, Happened, VmEntries};
use self::lines::{Hidden, LineLimit, Source};
use crate::clock::Clock;
use crate::guest::caller::{Caller, ListenerIdentity};
use crate::guest::platform::RefusedRequest;
use crate::lock;
use crate::names;
use crate::view::ScopeView;

/// Maximum bytes of all entries.
const BYTES_MAX: usize = 16 << 20;
const SHARDS: usize = 16;
/// Maximum bytes of entries that wait for a digest: a second of many refused requests. More are not told to the leader.
const UNSENT_BYTES_MAX: usize = 1 << 20;
/// Maximum characters of a request, a detail or a client.
const TEXT_CHARS_MAX: usize = 160;
/// Maximum lines that wait to be written. More wait only if the reader of the log is slow.
const PENDING_MAX: usize = 64;
/// Interval of reports about hidden lines.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Log target.
const TARGET: &str = "notbefore::guest";

/// The logs of all VMs, and the limit of log lines.
pub struct VmLog {
    shards: [Mutex<Entries>; SHARDS],
    /// Whether another node leads, which shows this log.
    is_following: AtomicBool,
    /// Entries that the leader does not have. Locked before a shard.
    unsent: Mutex<Entries>,
    /// Entries of other nodes.
    others: Mutex<Entries>,
    lines: Mutex<Lines>,
    has_lines: Notify,
}

#[derive(Default)]
struct Lines {
    limit: LineLimit,
    pending: Vec<RefusalLine>,
}

/// A line about a refused request.
#[derive(Debug)]
struct RefusalLine {
    /// The VM's path.
    vm: Option<String>,
    from: IpAddr,
    error: GuestError,
    request: Box<str>,
    message: String,
}

impl Default for VmLog {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::new(Entries::new(BYTES_MAX / SHARDS))),
            is_following: AtomicBool::new(false),
            unsent: Mutex::new(Entries::new(UNSENT_BYTES_MAX)),
            others: Mutex::new(Entries::new(BYTES_MAX)),
            lines: Mutex::default(),
            has_lines: Notify::new(),
        }
    }
}

impl VmLog {
    /// Records what a VM did.
    pub fn record(&self, vm: VmId, what: Happened, at: Timestamp) {
        let mut unsent = self.is_following.load(Relaxed).then(|| lock(&self.unsent));
        if let Some(unsent) = &mut unsent {
            unsent.record(vm, what.clone(), at);
        }
        lock(self.shard(vm)).record(vm, what, at);
    }

    /// The log of a VM, at all nodes that this one knows of.
    pub fn of(&self, vm: VmId) -> VmEntries {
        let own = lock(self.shard(vm)).get(vm).cloned().unwrap_or_default();
        let others = lock(&self.others).get(vm).cloned();
        match others {
            Some(others) => own.joined(others),
            None => own,
        }
    }

    /// Whether another node leads.
    pub fn set_following(&self, is_following: bool) {
        self.is_following.store(is_following, Relaxed);
        lock(&self.unsent).drain().for_each(drop);
        lock(&self.others).drain().for_each(drop);
    }

    /// The entries since the last call.
    pub fn take_unsent(&self) -> impl Iterator<Item = (VmId, Entry)> + use<> {
        lock(&self.unsent).drain()
    }

    /// All entries of this node; none is unsent then.
    pub fn all_entries(&self) -> Vec<(VmId, Entry)> {
        // Nothing is recorded meanwhile, so an entry is either among these or unsent.
        let mut unsent = lock(&self.unsent);
        unsent.drain().for_each(drop);
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(lock(shard).iter().map(|(vm, entry)| (vm, entry.clone())));
        }
        all
    }

    /// Records an entry of another node.
    pub fn record_of_other_node(&self, vm: VmId, entry: Entry) {
        lock(&self.others).record_entry(vm, entry);
    }

    fn shard(&self, vm: VmId) -> &Mutex<Entries> {
        let [.., last] = vm.0.into_bytes();
        &self.shards[usize::from(last) % SHARDS]
    }

    /// Records a refused request; `guest` is the VM and its scope, if the caller is a VM.
    pub fn record_refusal(
        &self,
        guest: Option<(VmId, &ScopeView)>,
        caller: &Caller,
        refused: &RefusedRequest<'_>,
    ) {
        let RefusedRequest { head, error, detail, at } = *refused;
        let (request, detail) = (request(head), text(detail.as_bytes()));
        let from = caller.source;
        let source = guest.map_or_else(|| Source::unknown_caller(from), |(vm, _)| Source::Vm(vm));
        let mut lines = lock(&self.lines);
        if lines.limit.admit_refusal(source, error.reason(), at) {
            match lines.pending.len() < PENDING_MAX {
                true => {
                    let vm = guest.map(|(vm, scope)| names::path(scope, vm));
                    let message = message(caller, error, &detail);
                    lines.pending.push(RefusalLine { vm, from, error, request: request.clone(), message });
                    self.has_lines.notify_one();
                }
                false => lines.limit.hide_refusal(),
            }
        }
        drop(lines);
        if let Some((vm, _)) = guest {
            self.record(vm, Happened::Refused { error, request, detail }, at);
        }
    }

    /// Whether to log a line about an event; if not, it is counted.
    pub fn admit_event_line(&self, now: Timestamp) -> bool {
        lock(&self.lines).limit.admit_event(now)
    }

    /// Writes lines forever.
    pub async fn write(self: Arc<Self>, clock: Arc<dyn Clock>) {
        let mut ticks = tokio::time::interval(REPORT_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.has_lines.notified() => self.write_pending(),
                _ = ticks.tick() => {
                    let hidden = lock(&self.lines).limit.take_hidden(clock.now());
                    report(hidden);
                }
            }
        }
    }

    /// Writes what is left, at the end of the process.
    pub fn write_rest(&self) {
        self.write_pending();
        let hidden = lock(&self.lines).limit.take_all_hidden();
        report(hidden);
    }

    fn write_pending(&self) {
        let pending = std::mem::take(&mut lock(&self.lines).pending);
        for RefusalLine { vm, from, error, request, message } in pending {
            let (vm, status, reason) = (vm.as_deref(), error.status(), error.reason());
            tracing::warn!(target: TARGET, vm, %from, status, reason, request = &*request, "refused a request: {message}");
        }
    }
}

fn report(Hidden { events, refusals }: Hidden) {
    if refusals > 0 {
        tracing::warn!(
            target: TARGET,
            count = refusals,
            "more refused requests of guests: 'notbefore vm log VM' shows those of a VM, the metrics count all by reason"
        );
    }
    if events > 0 {
        tracing::info!(
            target: crate::event_log::TARGET,
            count = events,
            "more changes of events: 'notbefore event list' and 'notbefore event history' show the events"
        );
    }
}

/// Why a request was refused, and what to do. Only for the log: an unknown caller is not told more than 403.
fn message(caller: &Caller, error: GuestError, detail: &str) -> String {
    if error == GuestError::UnknownCaller {
        return unknown_caller(caller);
    }
    with_detail(error, detail)
}

/// What the guest was told, and the detail.
pub fn with_detail(error: GuestError, detail: &str) -> String {
    match (error.message(), detail) {
        (message, "") => message,
        (message, detail) => format!("{message} ({detail})"),
    }
}

fn unknown_caller(caller: &Caller) -> String {
    match &*caller.listener {
        ListenerIdentity::Network(_) if caller.is_proxy => {
            "the trusted proxy named no known VM; the log has a line about the proxy with the reason"
                .to_owned()
        }
        ListenerIdentity::Network(network) => {
            let address = match network.as_str() {
                "default" => caller.source.to_string(),
                network => format!("{network}/{}", caller.source),
            };
            format!(
                "no VM has the address {address}; add one with 'notbefore vm add NAME --address {address}', or the address to a VM of the fleet file"
            )
        }
        ListenerIdentity::Bound(path) => {
            let (scope, name) = path.rsplit_once('/').unwrap_or(("", path));
            format!("VM {path} was removed; add it with 'notbefore vm add {name} --scope {scope}'")
        }
    }
}

/// Method and target at the start of a head, which may be incomplete or no HTTP at all.
fn request(head: &[u8]) -> Box<str> {
    let line = head.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
    let without_version = line.strip_suffix(b" HTTP/1.1").or_else(|| line.strip_suffix(b" HTTP/1.0"));
    text(without_version.unwrap_or(line))
}

/// A guest's bytes as text: escaped, and cut to `TEXT_CHARS_MAX`.
pub fn text(bytes: &[u8]) -> Box<str> {
    // A character has at most 4 bytes, so this is enough.
    let bytes = &bytes[..bytes.len().min(4 * (TEXT_CHARS_MAX + 1))];
    shorten(&printable(&String::from_utf8_lossy(bytes)), TEXT_CHARS_MAX).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::tests::{ViewFixture, at, scope, vm};

    fn caller(listener: ListenerIdentity, source: &str) -> Caller {
        Caller::new(Arc::new(listener), source.parse().unwrap(), "10.9.0.1".parse().unwrap())
    }

    fn network(name: &str) -> ListenerIdentity {
        ListenerIdentity::Network(name.to_owned())
    }

    fn refused<'a>(head: &'a [u8], error: GuestError, seconds: i64) -> RefusedRequest<'a> {
        RefusedRequest { head, error, detail: "", at: at(seconds) }
    }

    #[test]
    fn refusal_is_a_line_and_an_entry() {
        let mut fixture = ViewFixture::default();
        fixture.publish(&scope("web", &[vm(1)]), at(0));
        let view = fixture.views.newest();
        let guest = Some((vm(1), &**view.scope_of(vm(1)).unwrap()));
        let log = VmLog::default();
        let detail = "EventId 00000000-0000-0000-0000-000000000007";
        let refusal = RefusedRequest {
            detail,
            ..refused(b"POST /metadata/scheduledevents HTTP/1.1\r\nHost: x\r\n", GuestError::UnknownEvent, 1)
        };
        log.record_refusal(guest, &caller(network("default"), "10.0.0.4"), &refusal);
        let lines = std::mem::take(&mut lock(&log.lines).pending);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].vm.as_deref(), Some("default/default/web/vm-1"));
        assert_eq!(&*lines[0].request, "POST /metadata/scheduledevents");
        assert!(lines[0].message.ends_with(&format!("({detail})")), "{}", lines[0].message);
        let [entry] = &log.of(vm(1)).entries[..] else { panic!() };
        assert_eq!((entry.first_at, entry.count), (at(1), 1));
        assert_eq!(log.of(vm(2)), VmEntries::default());
    }

    #[test]
    fn line_of_unknown_caller_names_the_command_that_adds_it() {
        for (listener, expected) in [
            (
                network("default"),
                "no VM has the address 10.0.0.9; add one with 'notbefore vm add NAME --address 10.0.0.9'",
            ),
            (network("blue"), "add one with 'notbefore vm add NAME --address blue/10.0.0.9'"),
            (
                ListenerIdentity::Bound("default/default/web/web-0".to_owned()),
                "VM default/default/web/web-0 was removed; add it with 'notbefore vm add web-0 --scope default/default/web'",
            ),
        ] {
            let log = VmLog::default();
            let caller = caller(listener, "10.0.0.9");
            log.record_refusal(
                None,
                &caller,
                &refused(b"GET / HTTP/1.1\r\n\r\n", GuestError::UnknownCaller, 0),
            );
            let lines = &lock(&log.lines).pending;
            assert!(lines[0].message.contains(expected), "{}", lines[0].message);
            assert_eq!(lines[0].vm, None);
        }
    }

    #[test]
    fn slow_reader_of_the_log_costs_no_memory() {
        let log = VmLog::default();
        for n in 0..10_000_u32 {
            let source = std::net::Ipv4Addr::from(n).to_string();
            let refusal = refused(b"GET /", GuestError::UnknownCaller, i64::from(n));
            log.record_refusal(None, &caller(network("default"), &source), &refusal);
        }
        assert_eq!(lock(&log.lines).pending.len(), PENDING_MAX);
        let hidden = lock(&log.lines).limit.take_all_hidden();
        assert_eq!(hidden.refusals, 10_000 - PENDING_MAX as u64, "the others are counted");
    }

    #[test]
    fn bytes_of_guests_are_escaped_and_cut() {
        assert_eq!(&*request(b"GET /\x1b[2J\xff HTTP/1.1\r\nHost: x"), "GET /\\u{1b}[2J\u{fffd}");
        assert_eq!(&*request(b"\x00\x01\x02"), "\\u{0}\\u{1}\\u{2}");
        assert_eq!(&*request(b""), "");
        for long in [b"a".repeat(9_000), b"\xe2\x80\xae".repeat(3_000), "é".repeat(4_000).into_bytes()] {
            assert_eq!(request(&long).chars().count(), TEXT_CHARS_MAX + 1);
        }
    }

    /// All VMs write as much as they can.
    #[test]
    fn all_entries_fit_into_sixteen_mebibytes() {
        let log = VmLog::default();
        let long = "\u{fffd}".repeat(TEXT_CHARS_MAX);
        for n in 0..3_000 {
            for k in 0..8 {
                let what = Happened::Refused {
                    error: GuestError::NotFound,
                    request: format!("{k}{long}").into(),
                    detail: long.as_str().into(),
                };
                log.record(vm(n), what, at(0));
            }
        }
        let bytes: usize = log.shards.iter().map(|shard| lock(shard).bytes()).sum();
        assert!((BYTES_MAX / 2..=BYTES_MAX).contains(&bytes), "{bytes}");
    }
}
