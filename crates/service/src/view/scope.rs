//! Published scope: its rendered documents and its VMs' poll slots.
//!
//! Most scopes of a large fleet have no events and need little memory: all such scopes with the same incarnation share
//! one rendered document.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_core::{Event, EventId, EventType, Member, Phase, Scope, ScopeKind, Source, VmId};
use notbefore_wire::guest::document::{self, Document, RenderStyle};
use notbefore_wire::guest::version::EventsVersion;

use crate::delivery::VmPolls;

/// Number of api-versions.
const VERSIONS: usize = EventsVersion::ALL.len();
/// Number of incarnations whose empty documents are shared. A scope with a higher incarnation has its own.
const SHARED: usize = 512;

/// Bit of the editions of documents that are not published. Slots keep 56 bits of an edition.
const UNPUBLISHED: u64 = 1 << 55;

/// Documents without events, by incarnation; they are the same at every version.
static EMPTY_DOCUMENTS: [OnceLock<Bytes>; SHARED] = [const { OnceLock::new() }; SHARED];

/// A scope with its documents.
pub struct ScopeView {
    /// The scope.
    pub scope: Arc<Scope>,
    /// The store revision of the scope.
    pub revision: u64,
    /// Unique among all documents that this process has published: incarnations of two scopes may be equal.
    pub edition: u64,
    /// Poll slots, which survive changes of the scope.
    pub polls: Arc<ScopePolls>,
    rfc1123_everywhere: bool,
    /// Only for scopes with events or with an incarnation that is not shared.
    own: Option<Box<OwnDocuments>>,
}

#[derive(Default)]
struct OwnDocuments {
    /// When each live event was first published.
    published: Vec<(EventId, Timestamp)>,
    documents: [OnceLock<Bytes>; VERSIONS],
}

/// The poll slots of a scope's VMs, in the order of its members, and the time of the last report to the engine.
#[derive(Default)]
pub struct ScopePolls {
    reported_at_s: AtomicI64,
    vms: Box<[VmPolls]>,
}

impl ScopePolls {
    /// Whether to report this poll to the engine; true at most once a minute.
    pub fn claim_report(&self, now_s: i64) -> bool {
        const REPORT_INTERVAL_S: i64 = 60;
        let reported = self.reported_at_s.load(Relaxed);
        let old = reported == 0 || now_s - reported >= REPORT_INTERVAL_S || now_s < reported;
        old && self.reported_at_s.compare_exchange(reported, now_s, Relaxed, Relaxed).is_ok()
    }

    /// Makes the next poll one to report.
    pub fn release_report(&self) {
        self.reported_at_s.store(0, Relaxed);
    }

    /// Poll slots for the members; those that stay keep their slots. `is_first`: the process starts with this scope.
    fn of(before: Option<&ScopeView>, scope: &Scope, is_first: bool) -> Arc<Self> {
        let fresh = || if is_first { VmPolls::polled_before_start() } else { VmPolls::default() };
        let Some(before) = before else {
            let vms = scope.members.iter().map(|_| fresh()).collect();
            return Arc::new(Self { reported_at_s: AtomicI64::new(0), vms });
        };
        let ids = |scope: &Scope| scope.members.iter().map(|member| member.vm).collect::<Vec<_>>();
        let (known, wanted) = (ids(&before.scope), ids(scope));
        if known == wanted {
            return Arc::clone(&before.polls);
        }
        let known: std::collections::HashMap<VmId, &VmPolls> =
            known.into_iter().zip(&before.polls.vms).collect();
        let vm_polls = |vm| known.get(&vm).map_or_else(fresh, |vm_polls| vm_polls.copy());
        let reported_at_s = AtomicI64::new(before.polls.reported_at_s.load(Relaxed));
        Arc::new(Self { reported_at_s, vms: wanted.into_iter().map(vm_polls).collect() })
    }
}

impl ScopeView {
    /// A scope that replaces `before`, if there is one. `edition` is the number for a new document.
    pub(super) fn new(
        scope: Arc<Scope>,
        revision: u64,
        before: Option<&ScopeView>,
        context: PublishContext,
    ) -> Self {
        let PublishContext { now, is_first, rfc1123_everywhere, edition } = context;
        let published = scope.events.iter().map(|event| {
            let known = before.map(|view| view.published_at(event.id).unwrap_or(now));
            let announced = || event.announced_at().unwrap_or(now);
            (event.id, known.unwrap_or_else(announced))
        });
        let is_shared = scope.events.is_empty() && scope.incarnation < SHARED as u64;
        let own = (!is_shared)
            .then(|| Box::new(OwnDocuments { published: published.collect(), ..OwnDocuments::default() }));
        let same = before.filter(|view| view.scope.incarnation == scope.incarnation);
        let edition = same.map_or(edition, |view| view.edition);
        let polls = ScopePolls::of(before, &scope, is_first);
        Self { scope, revision, edition, polls, rfc1123_everywhere, own }
    }

    /// A scope from the store that is newer than the published one. It is not published: the watch will show it.
    pub fn read_through(scope: Arc<Scope>, revision: u64, published: &ScopeView) -> Self {
        // Editions of published documents count from 1. Of documents that are not published, a VM is sent one for each
        // incarnation.
        let edition = UNPUBLISHED | scope.incarnation;
        let rfc1123_everywhere = published.rfc1123_everywhere;
        // Other nodes have published it when it was announced.
        let announced = scope.events.iter().filter_map(Event::announced_at);
        let now = announced.max().unwrap_or(Timestamp::UNIX_EPOCH);
        let context = PublishContext { now, is_first: false, rfc1123_everywhere, edition };
        Self::new(scope, revision, Some(published), context)
    }

    /// The document's bytes at a version; the first call after a change renders them.
    pub fn document(&self, version: EventsVersion) -> Bytes {
        let rendered = match &self.own {
            Some(own) => &own.documents[version.index()],
            None => &EMPTY_DOCUMENTS[usize::try_from(self.scope.incarnation).unwrap_or_default() % SHARED],
        };
        rendered.get_or_init(|| document(&self.scope).render(version, &self.style())).clone()
    }

    /// When a live event was first published. For an event older than this process: when it was announced.
    pub fn published_at(&self, event: EventId) -> Option<Timestamp> {
        let published = &self.own.as_ref()?.published;
        published.iter().find(|(id, _)| *id == event).map(|(_, at)| *at)
    }

    /// A member by id.
    pub fn member(&self, vm: VmId) -> Option<&Member> {
        self.scope.member(vm)
    }

    /// The poll slot of the member at a position.
    pub fn vm_polls(&self, position: usize) -> Option<&VmPolls> {
        self.polls.vms.get(position)
    }

    /// The poll slots of all members.
    pub fn all_vm_polls(&self) -> impl Iterator<Item = &VmPolls> {
        self.polls.vms.iter()
    }

    fn style(&self) -> RenderStyle {
        RenderStyle {
            underscore_names: self.scope.kind != ScopeKind::CloudService,
            rfc1123_everywhere: self.rfc1123_everywhere,
        }
    }
}

/// Inputs of [`ScopeView::new`] besides the scope.
#[derive(Clone, Copy)]
pub(super) struct PublishContext {
    pub now: Timestamp,
    pub is_first: bool,
    pub rfc1123_everywhere: bool,
    pub edition: u64,
}

/// Converts a scope to the wire format.
fn document(scope: &Scope) -> Document {
    Document { incarnation: scope.incarnation, events: scope.events.iter().map(event).collect() }
}

/// An event's type in the wire format; it determines which versions show the event.
pub fn shown_type(event: &Event) -> document::EventType {
    match event.cause.event_type() {
        EventType::Freeze => document::EventType::Freeze,
        EventType::Reboot => document::EventType::Reboot,
        EventType::Redeploy => document::EventType::Redeploy,
        EventType::Preempt => document::EventType::Preempt,
        EventType::Terminate => document::EventType::Terminate,
        EventType::SpotRebalanceRecommendation => document::EventType::SpotRebalanceRecommendation,
    }
}

fn event(event: &Event) -> document::Event {
    document::Event {
        id: event.id.0,
        status: match event.phase {
            Phase::Scheduled { not_before, .. } => document::Status::Scheduled { not_before },
            Phase::Started { .. } => document::Status::Started,
            Phase::Advisory { date } => document::Status::Advisory { date },
        },
        event_type: shown_type(event),
        resources: event.resources.iter().map(|resource| resource.name.as_str().to_owned()).collect(),
        description: event.description.clone(),
        source: match event.cause.source() {
            Source::Platform => document::Source::Platform,
            Source::User => document::Source::User,
        },
        duration_in_seconds: event.duration_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::tests::{at, scope, vm};

    #[test]
    fn scopes_without_events_share_documents_by_incarnation() {
        let view = |name: &str, incarnation: u64| {
            let mut scope = scope(name, &[vm(1)]);
            scope.incarnation = incarnation;
            let context = PublishContext {
                now: at(0),
                is_first: false,
                rfc1123_everywhere: false,
                edition: incarnation,
            };
            ScopeView::new(Arc::new(scope), 1, None, context)
        };
        let last = SHARED as u64 - 1;
        for incarnation in [1, 2, last, last + 1, last + 2, u64::MAX] {
            let expected = format!(r#"{{"DocumentIncarnation":{incarnation},"Events":[]}}"#);
            for version in EventsVersion::ALL {
                let documents = ["a", "b"].map(|name| view(name, incarnation).document(version));
                assert_eq!(documents[0], expected, "{version}");
                let same = documents[0].as_ptr() == documents[1].as_ptr();
                assert_eq!(same, incarnation <= last, "{incarnation} at {version}");
            }
        }
    }
}
