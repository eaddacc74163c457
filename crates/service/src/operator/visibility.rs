//! Authorization: what a caller may see and do.
//!
//! Handlers of shared routes get the view and the engine only through a [`CallerView`]. Their state is
//! [`SharedState`], which gives out nothing else, so a handler cannot forget to filter. A handler that takes all of
//! [`Operator`] compiles only among the routes that need operator on `/`.
//!
//! - A resource outside the caller's paths does not exist for the caller: lists omit it, names do not resolve to it,
//!   and a request for it gets the same 404 as a resource that never existed.
//! - A visible resource on which the caller lacks the role answers 403 with the role needed.
//! - A change takes a [`Permit`], which only a role check creates.
//! - A presentation of a failed command takes [`CommandReasons`], which only a [`Principal`] creates.

use std::collections::BTreeMap;
use std::ops::{Bound, Deref, RangeBounds};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use jiff::Timestamp;
use notbefore_core::{
    Actor, Event, EventId, ExecRun, Fact, Member, Operation, OperationId, OperationState, Past, Prefix,
    Refusal, Role, ScopeId, ScopePath, Source, TargetState, VmId,
};
use notbefore_engine::records;
use notbefore_engine::{Engine, Failure, NewOperation, TypedCommand};
use notbefore_listener::slots::AdmissionSlot;
use notbefore_store::{Batch, Key, Revision, Snapshot, Watch, WatchError};
use notbefore_wire::operator as wire;
use notbefore_wire::operator::Listening;
use notbefore_wire::operator::plan::Plan;
use notbefore_wire::operator::status::ListeningCounts;
use notbefore_wire::operator::vm_log::VmLog;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::access::{self, Change, CommandReasons, Principal};
use super::present::PresentContext;
use super::problem::Problem;
use super::session::Sessions;
use super::status::ListeningCache;
use super::{Operator, facts, operations, plan, present, seen, vm_log};
use crate::names::{self, NameError};
use crate::sessions::{create_link, record_fact};
use crate::view::{Counts, EventTime, OperationTime, ScopeView, View};

/// Fewest digits of an abbreviated id.
const SHORT_ID_MIN: usize = 4;
/// Most ended things that are compared with an abbreviated id.
const CANDIDATES_MAX: usize = 20;
/// Most candidates in the text of a problem.
const CANDIDATES_NAMED_MAX: usize = 5;

/// The first digits of an id.
struct ShortId {
    /// The smallest id that begins with them.
    first: Uuid,
    /// The largest one.
    last: Uuid,
}

impl ShortId {
    /// None if no id begins with the text.
    fn parse(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|char| *char != '-').collect();
        if !(SHORT_ID_MIN..=32).contains(&digits.len()) || !digits.is_ascii() {
            return None;
        }
        let fill = |digit: &str| Uuid::parse_str(&(digits.clone() + &digit.repeat(32 - digits.len()))).ok();
        let (first, last) = (fill("0")?, fill("f")?);
        let is_start = first.to_string().starts_with(&text.to_ascii_lowercase());
        (is_start || !text.contains('-')).then_some(Self { first, last })
    }

    fn fits(&self, id: Uuid) -> bool {
        (self.first..=self.last).contains(&id)
    }
}

/// What two keys begin with.
fn common_start<'a>(one: &'a str, two: &str) -> &'a str {
    let end = one.bytes().zip(two.bytes()).position(|(one, two)| one != two).unwrap_or(one.len());
    one.get(..end).unwrap_or_default()
}

/// Ids that begin with a text.
#[derive(Default)]
struct Candidates {
    /// Each id, and whether the caller sees it.
    ids: BTreeMap<Uuid, bool>,
    /// There are more than were read.
    has_more: bool,
}

/// The id that a text means.
fn chosen(what: &str, text: &str, found: &Candidates) -> Result<Uuid, Problem> {
    let Candidates { ids, has_more } = found;
    let seen: Vec<Uuid> = ids.iter().filter(|(_, is_seen)| **is_seen).map(|(id, _)| *id).collect();
    let ambiguous = |detail| Problem::new(StatusCode::CONFLICT, &format!("ambiguous_{what}"), detail);
    match seen.as_slice() {
        // The one that is meant may be among those that were not read.
        [] | [_] if *has_more => {
            Err(ambiguous(format!("{text} is too short for the number of ids; give more of the id")))
        }
        [id] => Ok(*id),
        [] => {
            let detail = format!(
                "there is no {what} {text}; 'notbefore {what} list' lists the live ones (an id may be cut to {SHORT_ID_MIN} digits or more)"
            );
            Err(Problem::not_found(&format!("unknown_{what}"), detail).hide_existence(!ids.is_empty()))
        }
        several => {
            let candidates: Vec<String> = several.iter().map(Uuid::to_string).collect();
            let named = names::first_of(&candidates, CANDIDATES_NAMED_MAX);
            let detail = format!("{text} could be any of {named}; give more of the id");
            Err(ambiguous(detail).of_candidates(candidates))
        }
    }
}

/// State of the shared routes. Only [`Caller`] and [`CallerView`] can read it.
#[derive(Clone)]
pub struct SharedState(Operator);

impl SharedState {
    pub fn new(operator: Operator) -> Self {
        Self(operator)
    }
}

/// The principal of a request, and the paths that it sees.
pub struct Caller {
    operator: Operator,
    principal: Principal,
    roots: Roots,
}

/// Paths sorted like scopes, without those below another one.
type Roots = Arc<[Prefix]>;

/// Live events with their scopes.
pub type LiveEvents<'a> = Box<dyn Iterator<Item = (&'a Arc<ScopeView>, &'a Event)> + 'a>;

/// A view, restricted to what a caller sees.
pub struct VisibleView {
    view: Arc<View>,
    /// The view shows every commit up to this revision, and may show later ones.
    pub revision: u64,
    roots: Roots,
    pub reasons: CommandReasons,
}

/// A caller with its view at one moment; also sends the caller's commands.
pub struct CallerView {
    caller: Caller,
    visible: VisibleView,
}

impl Deref for CallerView {
    type Target = VisibleView;

    fn deref(&self) -> &VisibleView {
        &self.visible
    }
}

/// Proof that a caller's role was checked.
#[derive(Debug)]
pub struct Permit(());

impl FromRequestParts<SharedState> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &SharedState) -> Result<Self, Problem> {
        let principal = Principal::of(&parts.extensions)?;
        let roots = roots(principal.token().grants.iter().map(|grant| &grant.path));
        Ok(Self { operator: shared.0.clone(), principal, roots })
    }
}

impl FromRequestParts<SharedState> for CallerView {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &SharedState) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, shared).await?;
        let (revision, view) = caller.operator.views.complete_to();
        let (roots, reasons) = (Arc::clone(&caller.roots), caller.reasons());
        let visible = VisibleView { view, revision, roots, reasons };
        Ok(Self { caller, visible })
    }
}

/// Paths sorted like scopes, without those below another one.
fn roots<'a>(paths: impl Iterator<Item = &'a Prefix>) -> Roots {
    let mut sorted: Vec<&Prefix> = paths.collect();
    sorted.sort();
    let mut roots: Vec<Prefix> = Vec::new();
    for path in sorted {
        // A path that contains another is a prefix of it, so it sorts first.
        if !roots.iter().any(|root| root.contains(path)) {
            roots.push(path.clone());
        }
    }
    roots.into()
}

fn can_see(roots: &[Prefix], scope: &ScopeId) -> bool {
    roots.iter().any(|root| root.covers(scope))
}

fn can_see_all(roots: &[Prefix]) -> bool {
    roots.iter().any(Prefix::is_root)
}

fn can_see_part(roots: &[Prefix], operation: &Operation) -> bool {
    operation.targets.iter().any(|target| can_see(roots, &target.scope))
}

impl Caller {
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    pub fn now(&self) -> Timestamp {
        self.operator.clock.now()
    }

    pub fn sessions(&self) -> &Sessions {
        &self.operator.sessions
    }

    /// Creates a sign-in link of the caller's token. It counts as a change.
    pub async fn create_sign_in_link(&self) -> Result<(String, Timestamp), Problem> {
        self.principal.count_change(&self.operator)?;
        let Principal { known, session_expires_at, from, sees_hosts: _ } = &self.principal;
        let (store, now) = (&*self.operator.store, self.now());
        let created = create_link(store, known, *session_expires_at, now).await?;
        let by = Actor::Token(self.principal.name().to_owned());
        record_fact(store, by, *from, Fact::SignInLinkCreated, now).await;
        Ok(created)
    }

    pub fn reasons(&self) -> CommandReasons {
        self.principal.command_reasons()
    }

    pub fn can_see(&self, scope: &ScopeId) -> bool {
        can_see(&self.roots, scope)
    }

    /// A snapshot of the whole store. The user of it must check [`Caller::can_see`] for each record.
    pub async fn snapshot(&self) -> Result<Box<dyn Snapshot>, Problem> {
        Ok(self.operator.store.snapshot().await?)
    }

    /// All commits after a revision, unfiltered: use [`Caller::can_see_fact`].
    pub async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        self.operator.store.watch(after).await
    }

    /// Becomes true when the service stops.
    pub fn shutdown(&self) -> tokio::sync::watch::Receiver<bool> {
        self.operator.shutdown.clone()
    }

    /// Reserves a slot for a stream of the caller's token.
    pub fn reserve_stream(&self) -> Result<AdmissionSlot, Problem> {
        let slot = self.operator.slots.stream(self.principal.quota_key());
        slot.map_err(|exceeded| access::too_many("streams", exceeded))
    }

    /// Whether the caller's token is neither revoked nor expired, and its session, if it has one, has not ended.
    pub fn is_valid(&self) -> bool {
        let now = self.operator.clock.now();
        let has_ended = self.principal.session_expires_at.is_some_and(|at| at <= now);
        !has_ended && self.operator.views.newest().tokens.is_valid(self.principal.token(), now)
    }

    /// Whether a commit revoked the caller's token. The view may show that later.
    pub fn is_revoked_by(&self, batch: &Batch) -> bool {
        let own = records::token(&self.principal.token().name);
        batch.revision > self.principal.revision() && batch.changes.iter().any(|change| change.key == own)
    }

    /// Whether the caller sees a fact. Facts without a scope need a grant on `/`, except those about the command for a
    /// host, which concern everybody with a part of the operation; facts about tokens need operator on `/`.
    pub fn can_see_fact(&self, scope: Option<&ScopeId>, fact: Option<&Fact>) -> bool {
        let seen = match (scope, fact) {
            (Some(scope), _) => self.can_see(scope),
            (None, Some(Fact::HostCommand { operation, .. })) => {
                let view = self.operator.views.newest();
                can_see_all(&self.roots)
                    || view.operation(*operation).is_some_and(|held| can_see_part(&self.roots, &held.value))
            }
            (None, _) => can_see_all(&self.roots),
        };
        self.principal.token().is_full_operator() || (seen && !fact.is_some_and(Fact::is_about_tokens))
    }
}

impl VisibleView {
    #[cfg(test)]
    pub fn everything(view: Arc<View>) -> Self {
        Self::of(view, [Prefix::root()].into())
    }

    #[cfg(test)]
    pub fn of(view: Arc<View>, roots: Roots) -> Self {
        Self { view, revision: 0, roots, reasons: CommandReasons::SHOWN }
    }

    pub fn roots(&self) -> &Roots {
        &self.roots
    }

    /// Whether nothing is hidden from the caller.
    pub fn sees_all(&self) -> bool {
        can_see_all(&self.roots)
    }

    /// When the service started.
    pub fn since(&self) -> Option<Timestamp> {
        self.view.since
    }

    /// Number of open operations, also those that the caller does not see.
    pub fn operations_open(&self) -> usize {
        self.view.operations_open()
    }

    /// Counts of the caller's scopes, VMs and events.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.roots.iter().for_each(|root| counts += self.view.counts_below(root));
        counts
    }

    /// Counts the caller's listening VMs. The work grows with their number.
    pub fn listening_counts(&self, now: Timestamp) -> ListeningCounts {
        let mut counts = ListeningCounts { counted_at: now, ..ListeningCounts::default() };
        for vm_polls in self.scopes(Bound::Unbounded).flat_map(|(_, scope)| scope.all_vm_polls()) {
            match vm_polls.listening(now, self.view.since) {
                Listening::Yes => counts.yes += 1,
                Listening::No => counts.no += 1,
                Listening::Unclear | Listening::Unknown(_) => counts.unknown += 1,
            }
        }
        counts
    }

    /// The caller's started events with a command without attempts left.
    pub fn failed(&self) -> impl Iterator<Item = (&Arc<ScopeView>, &Event)> {
        let scopes = self.roots.iter().flat_map(|root| self.view.failed_below(root));
        let events = scopes.flat_map(|scope| scope.scope.events.iter().map(move |event| (scope, event)));
        events.filter(|(_, event)| event.has_failed())
    }

    /// Open operations with a part of the caller, whose host's command has no attempts left.
    pub fn failed_hosts(&self) -> impl Iterator<Item = &Operation> {
        let failed = self.view.operations_with_host_run();
        let failed = failed.filter(|operation| operation.host_run().is_some_and(ExecRun::has_failed));
        failed.filter(|operation| can_see_part(&self.roots, operation))
    }

    /// The caller's live events in order of time, from a position on. If the caller does not see everything, its events
    /// are sorted for this call, at most the first `most` of them by scope; whether there are more is returned too.
    pub fn events_by_time<'a>(&'a self, from: Bound<EventTime>, most: usize) -> (LiveEvents<'a>, bool) {
        if can_see_all(&self.roots) {
            return (Box::new(self.view.events_by_time(from)), false);
        }
        let scopes = self.busy(Bound::Unbounded);
        let mut own = scopes.flat_map(|scope| scope.scope.events.iter().map(move |event| (scope, event)));
        let mut events: Vec<_> = own.by_ref().take(most).collect();
        let is_cut = own.next().is_some();
        events.retain(|(_, event)| (from, Bound::Unbounded).contains(&EventTime::of(event)));
        events.sort_by_key(|(_, event)| EventTime::of(event));
        (Box::new(events.into_iter()), is_cut)
    }

    pub fn can_see(&self, scope: &ScopeId) -> bool {
        can_see(&self.roots, scope)
    }

    /// The caller's scopes, sorted, starting at `from`.
    pub fn scopes<'a>(
        &'a self,
        from: Bound<&'a str>,
    ) -> impl Iterator<Item = (&'a ScopeId, &'a Arc<ScopeView>)> {
        self.roots.iter().flat_map(move |root| self.view.scopes_below(root, from))
    }

    /// The caller's scopes with live events, sorted, starting at `from`.
    pub fn busy<'a>(&'a self, from: Bound<&'a str>) -> impl Iterator<Item = &'a Arc<ScopeView>> {
        self.roots.iter().flat_map(move |root| self.view.busy_below(root, from))
    }

    /// The caller's VMs on a host, grouped by scope, starting at `from`.
    pub fn on_host<'a>(
        &'a self,
        host: &str,
        from: Option<&ScopeId>,
    ) -> impl Iterator<Item = (&'a Arc<ScopeView>, Vec<&'a Member>)> {
        let entry = self.view.hosts.get(host);
        let members = entry.map(|entry| self.view.members_on(&entry.places, from));
        members.into_iter().flatten().filter(|(scope, _)| self.can_see(&scope.scope.id()))
    }

    pub fn scope(&self, path: &ScopePath) -> Result<&Arc<ScopeView>, Problem> {
        let id = path.id();
        self.view.scope(&id).filter(|_| self.can_see(&id)).ok_or_else(|| self.unknown_scope(path))
    }

    /// The scope that a list is limited to.
    pub fn only_scope(&self, text: Option<&str>) -> Result<Option<ScopeId>, Problem> {
        let path = text.map(str::parse::<ScopePath>).transpose().map_err(Refusal::Name)?;
        path.map(|path| Ok(self.scope(&path)?.scope.id())).transpose()
    }

    fn unknown_scope(&self, path: &ScopePath) -> Problem {
        let is_hidden = self.view.scope(&path.id()).is_some();
        Problem::from(Refusal::UnknownScope(path.clone())).hide_existence(is_hidden)
    }

    pub fn scope_of(&self, vm: VmId) -> Result<&Arc<ScopeView>, Problem> {
        let found = self.view.scope_of(vm);
        found
            .filter(|scope| self.can_see(&scope.scope.id()))
            .ok_or_else(|| Problem::from(Refusal::UnknownVm(vm)).hide_existence(found.is_some()))
    }

    /// Resolves the name or id of a VM.
    pub fn vm(&self, text: &str) -> Result<VmId, Problem> {
        let seen = names::resolve_among(&self.view, text, |scope| self.can_see(&scope.scope.id()));
        seen.map_err(|error| {
            let hidden = matches!(error, NameError::Unknown(_))
                && !matches!(names::resolve(&self.view, text), Err(NameError::Unknown(_)));
            Problem::from(error)
                .hide_existence(hidden)
                .with_candidates("unknown_vm", || self.similar_vms(text))
        })
    }

    /// Names of the caller's VMs that are similar to an unknown one; paths if it is a path.
    fn similar_vms(&self, text: &str) -> Vec<String> {
        let scopes = self.scopes(Bound::Unbounded).map(|(_, scope)| &scope.scope);
        let members = scopes.flat_map(|scope| scope.members.iter().map(move |member| (scope, &member.name)));
        match text.contains('/') {
            true => names::similar(text, members.map(|(scope, name)| format!("{}/{name}", scope.path))),
            false => names::similar(text, members.map(|(_, name)| name.as_str())),
        }
    }

    /// Refuses a filter by host to a caller that does not see hosts: it would tell where VMs are.
    pub fn check_host_filter(&self, host: Option<&str>) -> Result<(), Problem> {
        if host.is_none_or(|host| self.reasons.host(Some(host)).is_some()) {
            return Ok(());
        }
        let detail = "this token does not see hosts; leave the filter out, or ask an operator for operator.hosts_shown";
        Err(Problem::not_permitted(detail))
    }

    /// Checks that a host exists, for a list that is empty. Callers who do not see everything know the hosts of their VMs
    /// only.
    pub fn check_host(&self, host: &str) -> Result<(), Problem> {
        let exists = self.view.hosts.get(host).is_some();
        if self.on_host(host, None).next().is_some() || can_see_all(&self.roots) && exists {
            return Ok(());
        }
        let unknown = Problem::from(Refusal::UnknownHost(host.to_owned()));
        Err(match can_see_all(&self.roots) {
            true => super::hosts::unknown(&self.view, host, unknown),
            false => unknown.hide_existence(exists),
        })
    }

    /// The scope of a live or recently ended event.
    fn scope_of_event(&self, event: EventId) -> Option<&Arc<ScopeView>> {
        self.view.scope_of_event(event).filter(|scope| self.can_see(&scope.scope.id()))
    }

    pub fn live_event(&self, event: EventId) -> Option<&Event> {
        self.scope_of_event(event).and_then(|scope| scope.scope.event(event))
    }

    fn unknown_event(&self, event: EventId) -> Problem {
        Problem::from(Refusal::UnknownEvent(event)).hide_existence(self.view.scope_of_event(event).is_some())
    }

    /// The context in which events of a page are presented.
    pub fn present_context(&self, now: Timestamp) -> PresentContext<'_> {
        PresentContext::new(&self.view, |scope| self.can_see(scope), now, self.reasons)
    }

    /// Open operations with events in the caller's scopes, in order of time, after `after`.
    pub fn operations<'a>(
        &'a self,
        context: &'a PresentContext<'a>,
        after: Option<OperationTime>,
        is_meant: impl Fn(&Operation) -> bool + 'a,
    ) -> impl Iterator<Item = (OperationTime, wire::Operation)> + 'a {
        let all = self.view.operations_after(after).filter(move |operation| is_meant(operation));
        all.filter_map(|operation| Some((OperationTime::of(operation), self.show(context, operation)?)))
            .filter(|(_, shown)| shown.state != wire::OperationState::Closed)
    }

    /// Presents an operation with only those parts that the caller sees; none if there are none. The operation's state
    /// is then computed from these parts alone.
    fn show(&self, context: &PresentContext<'_>, operation: &Operation) -> Option<wire::Operation> {
        if can_see_all(&self.roots) {
            return Some(present::operation(context, operation, self.reasons));
        }
        let mut own = operation.clone();
        own.targets.retain(|target| self.can_see(&target.scope));
        if own.targets.is_empty() {
            return None;
        }
        if own.targets.iter().all(|target| target.state == TargetState::Ended) {
            own.state = OperationState::Closed;
        }
        Some(present::operation(context, &own, self.reasons))
    }
}

impl CallerView {
    pub fn principal(&self) -> &Principal {
        &self.caller.principal
    }

    pub fn now(&self) -> Timestamp {
        self.caller.operator.clock.now()
    }

    /// All of the service, if the caller is operator on `/`.
    pub fn as_full_operator(&self) -> Option<&Operator> {
        self.caller.principal.token().is_full_operator().then_some(&self.caller.operator)
    }

    pub fn listening_cache(&self) -> &ListeningCache {
        &self.caller.operator.listening
    }

    /// Calls `examine` with a function that says whether an affected VM has not read a live event.
    pub fn with_unread<T>(&self, examine: impl FnOnce(&dyn Fn(&ScopeView, &Event) -> bool) -> T) -> T {
        let ledger = self.caller.operator.delivery.ledger();
        examine(&|scope, event| ledger.is_unread(scope, event))
    }

    /// See [`Caller::snapshot`].
    pub async fn snapshot(&self) -> Result<Box<dyn Snapshot>, Problem> {
        self.caller.snapshot().await
    }

    pub fn show_vm(&self, scope: &ScopeView, vm: VmId) -> Option<wire::Vm> {
        present::vm(&self.view, scope, vm, self.now(), self.reasons)
    }

    /// The log of a VM in a scope that the caller sees.
    pub fn vm_log(&self, scope: &ScopeView, vm: VmId) -> VmLog {
        let since = self.view.since.unwrap_or_else(|| self.now());
        vm_log::present(scope, vm, since, self.caller.operator.vm_log.of(vm))
    }

    /// Names of the VMs that have not read a live event.
    pub fn unread_by(&self, scope: &ScopeView, event: &Event) -> Vec<String> {
        seen::unread_by(&self.caller.operator, scope, event)
    }

    /// Presents a live or ended event.
    pub async fn show_event(&self, id: EventId) -> Result<wire::Event, Problem> {
        if let Some(scope) = self.scope_of_event(id)
            && let Some(event) = scope.scope.event(id)
        {
            let seen = seen::of_live(&self.caller.operator, event);
            let unread_by = self.unread_by(scope, event);
            let mut shown = present::event(&self.present_context(self.now()), scope, event, self.reasons);
            // If the store cannot be read, the event is shown without ids in its trail.
            if let Ok(snapshot) = self.snapshot().await {
                let _ = facts::identify(&*snapshot, &mut shown.trail, self.reasons).await;
            }
            return Ok(wire::Event { seen, unread_by, ..shown });
        }
        let key = records::past(id);
        let snapshot = self.snapshot().await?;
        let record = snapshot.get(&key).await?.ok_or_else(|| self.unknown_event(id))?;
        let past = records::decode::<Past>(&key, &record.value)?;
        if !self.can_see(&past.scope) {
            return Err(self.unknown_event(id).hide_existence(true));
        }
        let seen = seen::of_past(&self.caller.operator, &past.event).await?;
        let mut shown = wire::Event { seen, ..present::past(&past, record.revision.0, self.reasons) };
        facts::identify(&*snapshot, &mut shown.trail, self.reasons).await?;
        Ok(shown)
    }

    /// Resolves an event: by its id, or by the first digits of the id of a live or ended event.
    pub async fn find_event(&self, text: &str) -> Result<EventId, Problem> {
        let live = |short: &ShortId| -> Vec<(Uuid, bool)> {
            let ids = self.view.event_ids().filter(|id| short.fits(id.0));
            ids.map(|id| (id.0, self.scope_of_event(id).is_some())).collect()
        };
        let is_seen = |past: &Past| self.can_see(&past.scope);
        self.find("event", text, live, |id| records::past(EventId(id)), is_seen).await.map(EventId)
    }

    /// Resolves an operation: by its id, or by the first digits of the id of an open or closed one.
    pub async fn find_operation(&self, text: &str) -> Result<OperationId, Problem> {
        let is_seen = |one: &Operation| one.targets.iter().any(|target| self.can_see(&target.scope));
        let open = |short: &ShortId| -> Vec<(Uuid, bool)> {
            let ids = OperationId(short.first)..=OperationId(short.last);
            self.view.operations_between(ids).map(|one| (one.id.0, is_seen(one))).collect()
        };
        self.find("operation", text, open, |id| records::operation(OperationId(id)), is_seen)
            .await
            .map(OperationId)
    }

    /// Resolves an id or its first digits. `published` gives ids in the view, `key` the record of an id in the store;
    /// both say whether the caller sees the thing.
    async fn find<T: DeserializeOwned>(
        &self,
        what: &str,
        text: &str,
        published: impl Fn(&ShortId) -> Vec<(Uuid, bool)>,
        key: impl Fn(Uuid) -> Key,
        is_seen: impl Fn(&T) -> bool,
    ) -> Result<Uuid, Problem> {
        if let Ok(id) = Uuid::parse_str(text) {
            return Ok(id);
        }
        let short = ShortId::parse(text);
        let mut found = Candidates { ids: short.iter().flat_map(&published).collect(), has_more: false };
        if let Some(short) = &short {
            let (first, last) = (key(short.first), key(short.last));
            match self.stored_ids(common_start(&first, &last), is_seen).await {
                Ok(stored) => {
                    found.ids.extend(stored.ids);
                    found.has_more = stored.has_more;
                }
                // Live things are found while the store cannot be read.
                Err(problem) if found.ids.is_empty() => return Err(problem),
                Err(_) => {}
            }
        }
        chosen(what, text, &found)
    }

    /// The ids of the first records whose keys begin with a text.
    async fn stored_ids<T: DeserializeOwned>(
        &self,
        start: &str,
        is_seen: impl Fn(&T) -> bool,
    ) -> Result<Candidates, Problem> {
        let page = self.snapshot().await?.scan(start, None, CANDIDATES_MAX).await?;
        let ids = page.records.iter().filter_map(|(key, record)| {
            let id = Uuid::parse_str(key.rsplit('/').next()?).ok()?;
            Some((id, records::decode::<T>(key, &record.value).is_ok_and(|one| is_seen(&one))))
        });
        Ok(Candidates { ids: ids.collect(), has_more: page.more })
    }

    /// Presents an open or closed operation.
    pub async fn show_operation(&self, id: OperationId) -> Result<wire::Operation, Problem> {
        let operation = operations::stored(&self.caller.operator, &self.view, id).await?;
        self.show(&self.present_context(self.now()), &operation)
            .ok_or_else(|| Problem::from(Refusal::UnknownOperation(id)).hide_existence(true))
    }
}

impl CallerView {
    /// Checks the caller's role in a scope. The caller must see the scope.
    pub fn permit(&self, needed: Role, scope: &ScopeId) -> Result<Permit, Problem> {
        match self.caller.principal.token().role_in(scope) {
            Some(role) if role >= needed => Ok(Permit(())),
            role => {
                let has = role.map_or("none".to_owned(), |role| role.to_string());
                let name = self.caller.principal.name();
                Err(Problem::not_permitted(format!(
                    "this needs the role {needed} on {scope}; token {name} has {has} there"
                )))
            }
        }
    }

    /// Checks the caller's role in all of the scopes. The caller must see them.
    pub fn permit_all<'a>(
        &self,
        needed: Role,
        scopes: impl IntoIterator<Item = &'a ScopeId>,
    ) -> Result<Permit, Problem> {
        for scope in scopes {
            self.permit(needed, scope)?;
        }
        Ok(Permit(()))
    }

    /// Checks the caller's role at the path of a scope, which may not exist yet.
    pub fn permit_at(&self, needed: Role, path: &ScopePath) -> Result<Permit, Problem> {
        let id = path.id();
        if self.can_see(&id) {
            return self.permit(needed, &id);
        }
        // The same words for a scope that exists and for one that does not.
        let name = self.caller.principal.name();
        Err(self.unknown_scope(path).with_detail(format!(
            "token {name} has no role on {path} and does not see it; this needs the role {needed} there"
        )))
    }

    pub fn permit_on_vm(&self, needed: Role, vm: VmId) -> Result<Permit, Problem> {
        self.permit(needed, &self.scope_of(vm)?.scope.id())
    }

    pub fn permit_on_event(&self, needed: Role, event: EventId) -> Result<Permit, Problem> {
        match self.scope_of_event(event) {
            Some(scope) => self.permit(needed, &scope.scope.id()),
            // The engine decides whether the event exists.
            None if self.caller.principal.token().is_full_operator() => Ok(Permit(())),
            None => Err(self.unknown_event(event)),
        }
    }

    /// Checks that the caller may cancel an operation: the role is needed in all its scopes.
    pub fn permit_on_operation(&self, id: OperationId) -> Result<Permit, Problem> {
        if self.caller.principal.token().is_full_operator() {
            return Ok(Permit(()));
        }
        let unknown = || Problem::from(Refusal::UnknownOperation(id));
        let held = self.view.operation(id).ok_or_else(unknown)?;
        if !held.value.targets.iter().any(|target| self.can_see(&target.scope)) {
            return Err(unknown().hide_existence(true));
        }
        let needed = role_for(held.value.cause.source());
        match held.value.targets.iter().find(|target| !self.can_see(&target.scope)) {
            Some(_) => Err(Problem::not_permitted("this needs the role operator everywhere")),
            None => self.permit_all(needed, held.value.targets.iter().map(|target| &target.scope)),
        }
    }

    /// Checks that the caller may start or complete an operation: this needs operator in all its scopes.
    pub fn permit_to_start_or_complete(&self, id: OperationId) -> Result<Permit, Problem> {
        let permit = self.permit_on_operation(id)?;
        match self.view.operation(id) {
            Some(held) if !self.caller.principal.token().is_full_operator() => {
                self.permit_all(Role::Operator, held.value.targets.iter().map(|target| &target.scope))
            }
            Some(_) | None => Ok(permit),
        }
    }

    /// Sends the request's command to the engine, then reads the view with its effect.
    pub async fn ask<A: TypedCommand>(
        &mut self,
        change: Change,
        command: Result<(Permit, A), Problem>,
    ) -> Result<A::Answer, Problem> {
        let command = command.map(|(Permit(()), command)| command);
        let answer =
            change.ask_with(&self.caller.operator, command, |failure| self.problem_of(failure)).await;
        self.visible.view = self.caller.operator.views.newest();
        answer
    }

    /// Asks the engine for a plan.
    pub async fn query<T: Send + 'static>(
        &mut self,
        _: Permit,
        question: impl FnOnce(&Engine, Timestamp) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Problem> {
        let answer = self.caller.operator.engine.query(question).await;
        self.visible.view = self.caller.operator.views.newest();
        answer.map_err(|failure| self.problem_of(failure))
    }

    /// The plan of an operation on VMs that the caller sees.
    pub async fn plan(&mut self, permit: Permit, by: Actor, new: NewOperation) -> Result<Plan, Problem> {
        let preview = self.query(permit, move |engine, now| engine.preview(&by, &new, now)).await?;
        Ok(plan::plan(&self.view, &preview, self.now(), self.reasons))
    }

    /// A failure, without details about scopes that the caller does not see.
    fn problem_of(&self, failure: Failure) -> Problem {
        if let Failure::Refused(Refusal::AddressTaken { address, network, owner }) = &failure
            && self.vm(owner).is_err()
        {
            let detail = format!("address {address} in network {network} is taken; choose another");
            return Problem::new(StatusCode::CONFLICT, "address_taken", detail);
        }
        failure.into()
    }
}

/// The role needed to request or cancel events of this source: tenant for User, operator for Platform.
pub fn role_for(source: Source) -> Role {
    match source {
        Source::User => Role::Tenant,
        Source::Platform => Role::Operator,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_id_is_four_digits_or_more() {
        let range =
            |text: &str| ShortId::parse(text).map(|short| (short.first.to_string(), short.last.to_string()));
        let of = |first: &str, last: &str| Some((first.to_owned(), last.to_owned()));
        let wide = of("ab120000-0000-0000-0000-000000000000", "ab12ffff-ffff-ffff-ffff-ffffffffffff");
        assert_eq!((range("ab12"), range("AB12")), (wide.clone(), wide));
        let long = of("ab12cd34-5600-0000-0000-000000000000", "ab12cd34-56ff-ffff-ffff-ffffffffffff");
        assert_eq!((range("ab12cd34-56"), range("ab12cd3456")), (long.clone(), long));
        assert!(range("ab12cd34-5678-").is_some());
        for wrong in ["ab1", "ab12x", "ab-12", "ab12-", "-ab12", "", "é123", "web-0"] {
            assert_eq!(range(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ambiguous_id_lists_the_candidates_that_the_caller_sees() {
        let found = |seen: &[bool]| {
            let ids = (0..).map(|n| Uuid::from_u128((0xab12 << 112) | n));
            Candidates { ids: ids.zip(seen.iter().copied()).collect(), has_more: false }
        };
        let text = |problem: Problem| format!("{problem:?}");
        assert_eq!(
            chosen("event", "ab12", &found(&[false, true])).unwrap(),
            Uuid::from_u128((0xab12 << 112) | 1)
        );
        let ambiguous = text(chosen("event", "ab12", &found(&[true, false, true])).unwrap_err());
        for part in
            ["ambiguous_event", "ab120000-0000-0000-0000-000000000000, ab120000-0000-0000-0000-000000000002;"]
        {
            assert!(ambiguous.contains(part), "{ambiguous}");
        }
        assert!(!ambiguous.contains("000000000001"), "{ambiguous}");
        let unknown =
            [&[][..], &[false]].map(|seen| text(chosen("event", "ab12", &found(seen)).unwrap_err()));
        assert!(unknown[0].contains("unknown_event") && unknown[0].contains("hidden: false"), "{unknown:?}");
        assert_eq!(unknown[0].replace("hidden: false", "hidden: true"), unknown[1]);
        // Not all were read: neither "unknown" nor the only one read is a safe answer.
        for seen in [&[][..], &[true], &[false], &[true, false]] {
            let found = Candidates { has_more: true, ..found(seen) };
            let short = text(chosen("event", "ab12", &found).unwrap_err());
            assert!(short.contains("ambiguous_event") && short.contains("give more of the id"), "{short}");
        }
    }

    #[test]
    fn roots_are_sorted_and_disjoint() {
        let parse =
            |texts: &[&str]| -> Vec<Prefix> { texts.iter().map(|text| text.parse().unwrap()).collect() };
        let of = |texts: &[&str]| roots(parse(texts).iter());
        assert_eq!(of(&["b", "a/g/s", "a/g", "a-b", "a/g"])[..], parse(&["a-b", "a/g", "b"]));
        assert_eq!(of(&["a", ""])[..], parse(&[""]));
        assert!(of(&[]).is_empty());
    }
}
