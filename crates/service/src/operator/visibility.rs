//! What a caller may see and do: the one way from a request of a tenant to the view and to the engine.
//!
//! A handler that takes a [`CallerView`] has no other: the routes that everybody may call are given [`SharedState`] as
//! their state, which holds the server's parts and hands out nothing but caller views. So a handler cannot forget to
//! filter. A handler that wants all of [`Operator`] does not fit among them, only among those that are for an
//! operator of everywhere.
//!
//! Three rules hold throughout. What is below none of the caller's paths does not exist: it is in no list, no
//! name means it, and asking for it gives the very answer that is given for what was never there. What exists
//! and may not be done is 403, with the role that it needs. And a change takes a [`Permit`], which only a check
//! of a role gives out.

use std::ops::{Bound, Deref};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use jiff::Timestamp;
use notbefore_core::{
    Event, EventId, Fact, Member, Operation, OperationId, OperationState, Past, Prefix, Refusal, Role,
    ScopeId, ScopePath, Source, TargetState, VmId,
};
use notbefore_engine::records;
use notbefore_engine::{Engine, Failure, TypedCommand};
use notbefore_listener::slots::AdmissionSlot;
use notbefore_store::{Batch, Revision, Snapshot, Watch, WatchError};
use notbefore_wire::operator as wire;
use uuid::Uuid;

use super::access::{self, Change, Principal};
use super::present::PresentContext;
use super::problem::Problem;
use super::{Operator, facts, operations, present, seen};
use crate::names::{self, NameError};
use crate::view::{ScopeView, View};

/// The fewest digits by which an event may be called.
const SHORT_ID_MIN: usize = 4;

/// The server's parts, for routes that everybody may call; only a [`CallerView`] gets at them.
#[derive(Clone)]
pub struct SharedState(Operator);

impl SharedState {
    /// Closes the parts up.
    pub fn new(operator: Operator) -> Self {
        Self(operator)
    }
}

/// Who asks, and what exists for them.
pub struct Caller {
    operator: Operator,
    principal: Principal,
    roots: Roots,
}

/// Paths without those that are below another of them, in the order of scopes.
type Roots = Arc<[Prefix]>;

/// What of a view exists for a caller.
pub struct VisibleView {
    view: Arc<View>,
    /// The view shows every commit up to this revision, and perhaps later ones.
    pub revision: u64,
    roots: Roots,
}

/// What a caller sees, at one moment, and the way to change it.
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

/// The proof that a caller's role was checked.
#[derive(Debug)]
pub struct Permit(());

impl FromRequestParts<SharedState> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &SharedState) -> Result<Self, Problem> {
        let principal = parts.extensions.get::<Principal>().cloned();
        let principal =
            principal.ok_or_else(|| Problem::new(StatusCode::UNAUTHORIZED, "token_missing", ""))?;
        let roots = roots(principal.token().grants.iter().map(|grant| &grant.path));
        Ok(Self { operator: shared.0.clone(), principal, roots })
    }
}

impl FromRequestParts<SharedState> for CallerView {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &SharedState) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, shared).await?;
        let (revision, view) = caller.operator.views.complete_to();
        let visible = VisibleView { view, revision, roots: Arc::clone(&caller.roots) };
        Ok(Self { caller, visible })
    }
}

/// Paths without those that are below another of them, in the order of scopes.
fn roots<'a>(paths: impl Iterator<Item = &'a Prefix>) -> Roots {
    let mut sorted: Vec<&Prefix> = paths.collect();
    sorted.sort();
    let mut roots: Vec<Prefix> = Vec::new();
    for path in sorted {
        // What contains a path is a beginning of it, so it has come before.
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

impl Caller {
    /// Whether a scope exists for the caller.
    pub fn can_see(&self, scope: &ScopeId) -> bool {
        can_see(&self.roots, scope)
    }

    /// What is stored, at one moment: all of it, so that whoever looks things up there asks [`Caller::can_see`] of
    /// each.
    pub async fn snapshot(&self) -> Result<Box<dyn Snapshot>, Problem> {
        Ok(self.operator.store.snapshot().await?)
    }

    /// Every commit after a revision; [`Caller::can_see_fact`] says what of it the caller sees.
    pub async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        self.operator.store.watch(after).await
    }

    /// Turns true when the service closes.
    pub fn shutdown(&self) -> tokio::sync::watch::Receiver<bool> {
        self.operator.shutdown.clone()
    }

    /// A place for a stream of the caller's token.
    pub fn reserve_stream(&self) -> Result<AdmissionSlot, Problem> {
        let slot = self.operator.slots.stream(self.principal.quota_key());
        slot.map_err(|exceeded| access::too_many("streams", exceeded))
    }

    /// Whether the caller's token is still in force.
    pub fn has_valid_token(&self) -> bool {
        let now = self.operator.clock.now();
        self.operator.views.newest().tokens.is_valid(self.principal.token(), now)
    }

    /// Whether a commit has revoked the caller's token, which the view may not know of yet.
    pub fn is_revoked_by(&self, batch: &Batch) -> bool {
        let own = records::token(&self.principal.token().name);
        batch.revision > self.principal.revision() && batch.changes.iter().any(|change| change.key == own)
    }

    /// Whether the caller sees a fact: those of its scopes; and, seeing everything, those of none. What is done with tokens
    /// is for those who may do everything.
    pub fn can_see_fact(&self, scope: Option<&ScopeId>, fact: Option<&Fact>) -> bool {
        let seen = match scope {
            Some(scope) => self.can_see(scope),
            None => can_see_all(&self.roots),
        };
        self.principal.token().is_full_operator() || (seen && !fact.is_some_and(Fact::is_about_tokens))
    }
}

/// What is seen.
impl VisibleView {
    /// All of a view.
    #[cfg(test)]
    pub fn everything(view: Arc<View>) -> Self {
        Self { view, revision: 0, roots: [Prefix::root()].into() }
    }

    /// Whether a scope exists for the caller.
    pub fn can_see(&self, scope: &ScopeId) -> bool {
        can_see(&self.roots, scope)
    }

    /// The caller's scopes in order, from a place in it on.
    pub fn scopes<'a>(
        &'a self,
        from: Bound<&'a str>,
    ) -> impl Iterator<Item = (&'a ScopeId, &'a Arc<ScopeView>)> {
        self.roots.iter().flat_map(move |root| self.view.scopes_below(root, from))
    }

    /// The caller's scopes with live events, in order, from a place in it on.
    pub fn busy<'a>(&'a self, from: Bound<&'a str>) -> impl Iterator<Item = &'a Arc<ScopeView>> {
        self.roots.iter().flat_map(move |root| self.view.busy_below(root, from))
    }

    /// The caller's VMs on a host, by their scopes in order, from one.
    pub fn on_host<'a>(
        &'a self,
        host: &str,
        from: Option<&ScopeId>,
    ) -> impl Iterator<Item = (&'a Arc<ScopeView>, Vec<&'a Member>)> {
        let places = self.view.hosts.get(host);
        let members = places.map(|places| self.view.members_on(places, from));
        members.into_iter().flatten().filter(|(scope, _)| self.can_see(&scope.scope.id()))
    }

    /// A scope.
    pub fn scope(&self, path: &ScopePath) -> Result<&Arc<ScopeView>, Problem> {
        let id = path.id();
        self.view.scope(&id).filter(|_| self.can_see(&id)).ok_or_else(|| self.unknown_scope(path))
    }

    fn unknown_scope(&self, path: &ScopePath) -> Problem {
        let is_hidden = self.view.scope(&path.id()).is_some();
        Problem::from(Refusal::UnknownScope(path.clone())).hide_existence(is_hidden)
    }

    /// The scope of a VM.
    pub fn scope_of(&self, vm: VmId) -> Result<&Arc<ScopeView>, Problem> {
        let found = self.view.scope_of(vm);
        found
            .filter(|scope| self.can_see(&scope.scope.id()))
            .ok_or_else(|| Problem::from(Refusal::UnknownVm(vm)).hide_existence(found.is_some()))
    }

    /// The VM that a text means.
    pub fn vm(&self, text: &str) -> Result<VmId, Problem> {
        let seen = names::resolve_among(&self.view, text, |scope| self.can_see(&scope.scope.id()));
        seen.map_err(|error| {
            let hidden = matches!(error, NameError::Unknown(_))
                && !matches!(names::resolve(&self.view, text), Err(NameError::Unknown(_)));
            Problem::from(error).hide_existence(hidden)
        })
    }

    /// The event that a text means: its whole id, or the beginning of one that is live or has ended lately.
    pub fn find_event(&self, text: &str) -> Result<EventId, Problem> {
        if let Ok(id) = Uuid::parse_str(text) {
            return Ok(EventId(id));
        }
        let wanted = text.to_ascii_lowercase();
        let plausible =
            wanted.len() >= SHORT_ID_MIN && wanted.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        let is_meant = |id: &EventId| plausible && id.to_string().starts_with(&wanted);
        let all: Vec<EventId> = self.view.event_ids().filter(is_meant).collect();
        let seen = |id: &&EventId| self.scope_of_event(**id).is_some();
        let found: Vec<&EventId> = all.iter().filter(seen).take(2).collect();
        match found.as_slice() {
            [id] => Ok(**id),
            [] => {
                let detail = format!(
                    "there is no event {text}; 'notbefore event list' shows those there are (an id may be cut to {SHORT_ID_MIN} digits or more)"
                );
                Err(Problem::not_found("unknown_event", detail).hide_existence(!all.is_empty()))
            }
            _ => {
                let detail = format!("several events begin with {text}; give more of the id");
                Err(Problem::new(StatusCode::CONFLICT, "ambiguous_event", detail))
            }
        }
    }

    /// The scope in which an event lives or has ended lately.
    fn scope_of_event(&self, event: EventId) -> Option<&Arc<ScopeView>> {
        self.view.scope_of_event(event).filter(|scope| self.can_see(&scope.scope.id()))
    }

    /// An event while it is live.
    pub fn live_event(&self, event: EventId) -> Option<&Event> {
        self.scope_of_event(event).and_then(|scope| scope.scope.event(event))
    }

    fn unknown_event(&self, event: EventId) -> Problem {
        Problem::from(Refusal::UnknownEvent(event)).hide_existence(self.view.scope_of_event(event).is_some())
    }

    /// Where live events are shown, one or a page of them.
    pub fn present_context(&self, now: Timestamp) -> PresentContext<'_> {
        PresentContext::new(&self.view, |scope| self.can_see(scope), now)
    }

    /// Open operations that reach one of the caller's scopes, after one.
    pub fn operations<'a>(
        &'a self,
        context: &'a PresentContext<'a>,
        after: Option<OperationId>,
    ) -> impl Iterator<Item = wire::Operation> + 'a {
        let all = self.view.operations_after(after);
        all.filter_map(|(_, held)| self.show(context, &held.value))
            .filter(|shown| shown.state != wire::OperationState::Closed)
    }

    /// An operation with those of its parts that the caller sees; none if that is none of them. Where it stands
    /// is then also told of those parts alone.
    fn show(&self, context: &PresentContext<'_>, operation: &Operation) -> Option<wire::Operation> {
        if can_see_all(&self.roots) {
            return Some(present::operation(context, operation));
        }
        let mut own = operation.clone();
        own.targets.retain(|target| self.can_see(&target.scope));
        if own.targets.is_empty() {
            return None;
        }
        if own.targets.iter().all(|target| target.state == TargetState::Ended) {
            own.state = OperationState::Closed;
        }
        Some(present::operation(context, &own))
    }
}

/// What is looked up besides.
impl CallerView {
    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.caller.operator.clock.now()
    }

    /// What is stored; see [`Caller::snapshot`].
    pub async fn snapshot(&self) -> Result<Box<dyn Snapshot>, Problem> {
        self.caller.snapshot().await
    }

    /// A VM as it is shown.
    pub fn show_vm(&self, scope: &ScopeView, vm: VmId) -> Option<wire::Vm> {
        present::vm(&self.view, scope, vm, self.now())
    }

    /// The VMs that have not read a live event, by name.
    pub fn unread_by(&self, scope: &ScopeView, event: &Event) -> Vec<String> {
        seen::unread_by(&self.caller.operator, scope, event)
    }

    /// An event, live or ended, as it is shown.
    pub async fn show_event(&self, id: EventId) -> Result<wire::Event, Problem> {
        if let Some(scope) = self.scope_of_event(id)
            && let Some(event) = scope.scope.event(id)
        {
            let seen = seen::of_live(&self.caller.operator, event);
            let unread_by = self.unread_by(scope, event);
            let mut shown = present::event(&self.present_context(self.now()), scope, event);
            // An event is shown though the store cannot be read; its trail is then without ids.
            if let Ok(snapshot) = self.snapshot().await {
                let _ = facts::identify(&*snapshot, &mut shown.trail).await;
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
        let mut shown = wire::Event { seen, ..present::past(&past, record.revision.0) };
        facts::identify(&*snapshot, &mut shown.trail).await?;
        Ok(shown)
    }

    /// An operation, open or closed.
    pub async fn show_operation(&self, id: OperationId) -> Result<wire::Operation, Problem> {
        let operation = operations::stored(&self.caller.operator, &self.view, id).await?;
        self.show(&self.present_context(self.now()), &operation)
            .ok_or_else(|| Problem::from(Refusal::UnknownOperation(id)).hide_existence(true))
    }
}

/// What is done.
impl CallerView {
    /// Checks that the caller has a role in a scope that it is known to see.
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

    /// Checks that the caller has a role in every one of some scopes that it is known to see.
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

    /// Checks that the caller has a role where a scope is, or may be made.
    pub fn permit_at(&self, needed: Role, path: &ScopePath) -> Result<Permit, Problem> {
        let id = path.id();
        if self.can_see(&id) { self.permit(needed, &id) } else { Err(self.unknown_scope(path)) }
    }

    /// Checks that the caller has a role in the scope of a VM.
    pub fn permit_on_vm(&self, needed: Role, vm: VmId) -> Result<Permit, Problem> {
        self.permit(needed, &self.scope_of(vm)?.scope.id())
    }

    /// Checks that the caller has a role in the scope of an event.
    pub fn permit_on_event(&self, needed: Role, event: EventId) -> Result<Permit, Problem> {
        match self.scope_of_event(event) {
            Some(scope) => self.permit(needed, &scope.scope.id()),
            // The engine knows best whether there is one.
            None if self.caller.principal.token().is_full_operator() => Ok(Permit(())),
            None => Err(self.unknown_event(event)),
        }
    }

    /// Checks that the caller may call an operation off: all of it, so the role is needed in every scope that it
    /// reaches.
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

    /// Checks that the caller may start or complete an operation: that is the platform's work, in every scope that it
    /// reaches.
    pub fn permit_to_start_or_complete(&self, id: OperationId) -> Result<Permit, Problem> {
        let permit = self.permit_on_operation(id)?;
        match self.view.operation(id) {
            Some(held) if !self.caller.principal.token().is_full_operator() => {
                self.permit_all(Role::Operator, held.value.targets.iter().map(|target| &target.scope))
            }
            Some(_) | None => Ok(permit),
        }
    }

    /// Sends a command in a request's name, and sees what came of it.
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

    /// Asks what something would come to.
    pub async fn query<T: Send + 'static>(
        &mut self,
        _: Permit,
        question: impl FnOnce(&Engine, Timestamp) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Problem> {
        let answer = self.caller.operator.engine.query(question).await;
        self.visible.view = self.caller.operator.views.newest();
        answer.map_err(|failure| self.problem_of(failure))
    }

    /// A failure, without what it would tell of scopes that do not exist for the caller.
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

/// The role that it takes to ask for something of this source, or to call it off: what users do is for the VMs'
/// owners, what the platform does is not.
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
    fn roots_are_sorted_and_disjoint() {
        let parse =
            |texts: &[&str]| -> Vec<Prefix> { texts.iter().map(|text| text.parse().unwrap()).collect() };
        let of = |texts: &[&str]| roots(parse(texts).iter());
        assert_eq!(of(&["b", "a/g/s", "a/g", "a-b", "a/g"])[..], parse(&["a-b", "a/g", "b"]));
        assert_eq!(of(&["a", ""])[..], parse(&[""]));
        assert!(of(&[]).is_empty());
    }
}
