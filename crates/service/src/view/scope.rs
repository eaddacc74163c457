//! A scope as it is published: what its guests are sent, and what is known of them as listeners.
//!
//! Most scopes of a large fleet have no events, and then hold as little as will do: their documents are the same as
//! those of every other such scope with that incarnation, and are rendered once for all of them.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_core::{Event, EventId, EventType, Member, Phase, Scope, ScopeKind, Source, VmId};
use notbefore_wire::guest::document::{self, Document, RenderStyle};
use notbefore_wire::guest::version::EventsVersion;

use crate::delivery::VmPolls;

/// How many api-versions there are to render for.
const VERSIONS: usize = EventsVersion::ALL.len();
/// For how many incarnations the documents without events are shared. A scope that has been through more events has
/// its own.
const SHARED: usize = 512;

/// The documents without events, by incarnation; they are the same at every version.
static EMPTY_DOCUMENTS: [OnceLock<Bytes>; SHARED] = [const { OnceLock::new() }; SHARED];

/// A scope with its documents.
pub struct ScopeView {
    /// The scope.
    pub scope: Arc<Scope>,
    /// When it was written.
    pub revision: u64,
    /// A number that only this document has, of all that this process has published: incarnations of two scopes
    /// may be the same.
    pub edition: u64,
    /// What outlives a change of the scope.
    pub polls: Arc<ScopePolls>,
    rfc1123_everywhere: bool,
    /// What only scopes with events have, and those whose incarnation is not shared.
    own: Option<Box<OwnDocuments>>,
}

#[derive(Default)]
struct OwnDocuments {
    /// When each live event was first published.
    published: Vec<(EventId, Timestamp)>,
    documents: [OnceLock<Bytes>; VERSIONS],
}

/// What is known of a scope's VMs as listeners, in the order of its members, and when the engine was last told that
/// there are any.
#[derive(Default)]
pub struct ScopePolls {
    reported_at_s: AtomicI64,
    vms: Box<[VmPolls]>,
}

impl ScopePolls {
    /// Whether this poll is worth telling the engine: it is told once a minute at most.
    pub fn claim_report(&self, now_s: i64) -> bool {
        const REPORT_INTERVAL_S: i64 = 60;
        let reported = self.reported_at_s.load(Relaxed);
        let old = reported == 0 || now_s - reported >= REPORT_INTERVAL_S || now_s < reported;
        old && self.reported_at_s.compare_exchange(reported, now_s, Relaxed, Relaxed).is_ok()
    }

    /// Those of a scope's VMs, with what was known of the ones that stay. `is_first` says that the process begins
    /// with them.
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
    /// A scope that comes after `before`, if it was there. `edition` is the next one.
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

    /// The document's bytes at a version; rendered by the first who asks after a change.
    pub fn document(&self, version: EventsVersion) -> Bytes {
        let place = match &self.own {
            Some(own) => &own.documents[version.index()],
            None => &EMPTY_DOCUMENTS[usize::try_from(self.scope.incarnation).unwrap_or_default() % SHARED],
        };
        place.get_or_init(|| document(&self.scope).render(version, &self.style())).clone()
    }

    /// When a live event was first published. Of one that is older than this process, it is when it was announced.
    pub fn published_at(&self, event: EventId) -> Option<Timestamp> {
        let published = &self.own.as_ref()?.published;
        published.iter().find(|(id, _)| *id == event).map(|(_, at)| *at)
    }

    /// A member by its id.
    pub fn member(&self, vm: VmId) -> Option<&Member> {
        self.scope.member(vm)
    }

    /// What is known of the VM that stands there among the members.
    pub fn vm_polls(&self, position: usize) -> Option<&VmPolls> {
        self.polls.vms.get(position)
    }

    /// What is known of each of its VMs.
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

/// What the making of a [`ScopeView`] goes by.
#[derive(Clone, Copy)]
pub(super) struct PublishContext {
    pub now: Timestamp,
    pub is_first: bool,
    pub rfc1123_everywhere: bool,
    pub edition: u64,
}

/// A scope in the words of the wire.
fn document(scope: &Scope) -> Document {
    Document { incarnation: scope.incarnation, events: scope.events.iter().map(event).collect() }
}

/// An event's type in the words of the wire: whether a version shows the event is asked of it.
pub fn shown_type(event: &Event) -> document::EventType {
    match event.cause.event_type() {
        EventType::Freeze => document::EventType::Freeze,
        EventType::Reboot => document::EventType::Reboot,
        EventType::Redeploy => document::EventType::Redeploy,
        EventType::Preempt => document::EventType::Preempt,
        EventType::Terminate => document::EventType::Terminate,
    }
}

fn event(event: &Event) -> document::Event {
    document::Event {
        id: event.id.0,
        status: match event.phase {
            Phase::Scheduled { not_before, .. } => document::Status::Scheduled { not_before },
            Phase::Started { .. } => document::Status::Started,
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
