//! Platform implementation behind the guest listener: resolves callers, serves documents, sends approvals to the
//! engine.

use std::error::Error;
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use notbefore_core::{Actor, EventId, Member, Name, Refusal, Scope, ScopeId, ScopeKind, VmId};
use notbefore_engine::cluster::read_through::{
    PollAnswer, READ_TIMEOUT, ReadThroughs, StoredAnswer, Turn, decide, decide_by_store,
};
use notbefore_engine::{Failure, GuestApproval, Request, Vm, records};
use notbefore_store::{Revision, Store};
use notbefore_wire::guest::instance::document::set_and_number;
use notbefore_wire::guest::instance::{Instance, Interface, IpAddress, Priority};
use notbefore_wire::guest::version::EventsVersion;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::clock::UPTIME;
use crate::delivery::{Delivery, DeliveryRole, VmPolls};
use crate::guest::caller::{Caller, ListenerIdentity, ProxyClaim};
use crate::guest::client::Client;
use crate::guest::platform::{ApproveError, GuestHandle, Platform, ReadThrough, RefusedRequest, Rendered};
use crate::guest::rate::RateState;
use crate::nodes::Nodes;
use crate::nodes::messages::{Approval, GuestIdentity};
use crate::proxy::TrustedProxies;
use crate::runtime::EngineHandle;
use crate::view::{Guest, ScopeView, View, Views};
use crate::vm_log::entries::Happened;
use crate::vm_log::{self, VmLog};
use crate::wait_queues::WaitQueues;
use crate::{lock, names};

/// Concurrent reads of instance metadata from the store.
const READS_MAX: usize = 4;

/// Maximum VMs of one name that are checked for a second one in the group: a guest can trigger this at its rate limit.
const NAMESAKES_MAX: usize = 64;

/// The implementation of [`Platform`] for this service.
pub struct ScheduledEvents {
    views: Arc<Views>,
    engine: EngineHandle,
    proxies: Arc<TrustedProxies>,
    delivery: Arc<Delivery>,
    vm_log: Arc<VmLog>,
    store: Arc<dyn Store>,
    /// Limits concurrent reads from the store.
    reads: Semaphore,
    /// The node's place in a cluster; none for a service with one node.
    nodes: Option<Arc<Nodes>>,
    /// Until when this node says which VM has an address: nanoseconds of [`UPTIME`]. A single node always does.
    trusted_until_ns: AtomicU64,
    /// Limits reads of scopes for guests that are ahead of this node.
    read_throughs: Mutex<ReadThroughs<Option<StoredScope>>>,
}

/// A scope as the store has it.
#[derive(Clone)]
struct StoredScope {
    scope: Arc<Scope>,
    revision: u64,
}

/// A resolved guest, with its scope at that moment.
pub struct ResolvedGuest {
    vm: VmId,
    scope: Arc<ScopeView>,
    /// Index among the scope's members.
    position: usize,
    is_proxied: bool,
}

impl ResolvedGuest {
    fn new(vm: VmId, guest: &Guest<'_>, is_proxied: bool) -> Self {
        Self { vm, scope: Arc::clone(guest.scope), position: guest.position, is_proxied }
    }

    fn vm_polls(&self) -> Option<&VmPolls> {
        self.scope.vm_polls(self.position)
    }
}

impl GuestHandle for ResolvedGuest {
    fn vm(&self) -> Uuid {
        self.vm.0
    }

    fn rate_state(&self) -> Option<&RateState> {
        self.vm_polls().map(VmPolls::rate_state)
    }

    fn is_proxied(&self) -> bool {
        self.is_proxied
    }
}

impl ScheduledEvents {
    /// Reads `views`, sends approvals to the engine, trusts `proxies`, records reads in `delivery` and all else in
    /// `vm_log`, and reads instance metadata from the store.
    pub fn new(
        views: Arc<Views>,
        engine: EngineHandle,
        proxies: Arc<TrustedProxies>,
        delivery: Arc<Delivery>,
        vm_log: Arc<VmLog>,
        store: Arc<dyn Store>,
    ) -> Self {
        let (reads, read_throughs) = (Semaphore::new(READS_MAX), Mutex::default());
        Self {
            views,
            engine,
            proxies,
            delivery,
            vm_log,
            store,
            reads,
            read_throughs,
            trusted_until_ns: AtomicU64::new(u64::MAX),
            nodes: None,
        }
    }

    /// Forwards approvals if another node of the cluster leads.
    pub fn with_nodes(self, nodes: Option<Arc<Nodes>>) -> Self {
        Self { nodes, ..self }
    }

    /// For how long this node of a cluster says which VM has an address. Polls compare it with the time, so that a
    /// process that stood still does not answer with what it knew before.
    pub fn trust_addresses_for(&self, left: Duration) {
        let until = if left.is_zero() { Duration::ZERO } else { UPTIME.elapsed() + left };
        self.trusted_until_ns.store(u64::try_from(until.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Records that polls of a client begin.
    #[cold]
    fn record_begin(&self, vm: VmId, vm_polls: &VmPolls, client: &Client<'_>, now: Timestamp) {
        vm_polls.record_client(client.number);
        let polled = Happened::Polled { client: vm_log::text(client.agent), version: client.version };
        self.vm_log.record(vm, polled, now);
        self.delivery.record_begin(vm, client.version, now);
    }

    /// Reports a poll of a scope, at most once a minute.
    #[cold]
    fn report_poll(&self, scope: ScopeId, now: Timestamp) {
        self.delivery.record_scope_poll(&scope, now);
        self.engine.record_poll(scope, now);
    }

    /// A scope from the store; none if it is gone or cannot be read in time.
    async fn stored_scope(&self, id: &ScopeId) -> Option<StoredScope> {
        let key = records::scope(id);
        let read = async { self.store.snapshot().await?.get(&key).await };
        let record = match tokio::time::timeout(READ_TIMEOUT, read).await {
            Ok(Ok(record)) => record?,
            Ok(Err(error)) => {
                tracing::warn!(scope = %id, %error, "cannot read a scope for a guest that has a newer document");
                return None;
            }
            Err(_) => return None,
        };
        let scope = records::decode::<Scope>(&key, &record.value).ok()?;
        Some(StoredScope { scope: Arc::new(scope), revision: record.revision.0 })
    }

    /// The stored instance metadata of a VM. It is not held in memory: it is rarely read, and larger than all other
    /// data of a VM.
    async fn stored_instance(&self, vm: VmId) -> Result<serde_json::Value, Box<dyn Error + Send + Sync>> {
        // If a whole fleet starts at once, its guests queue here instead of delaying writes.
        let _turn = self.reads.acquire().await.map_err(|_| "the service is closing")?;
        let key = records::vm(vm);
        let record = self.store.snapshot().await?.get(&key).await?;
        let record = record.map(|record| records::decode::<Vm>(&key, &record.value)).transpose()?;
        Ok(record.map(|vm| vm.instance).unwrap_or_default())
    }

    fn trusts_addresses_at(&self, uptime: Duration) -> bool {
        uptime.as_nanos() < u128::from(self.trusted_until_ns.load(Relaxed))
    }

    /// The VM at the caller's address. Without a fleet, a caller on this machine is the first-run VM.
    fn identify(&self, caller: &Caller) -> Option<ResolvedGuest> {
        let view = self.views.newest_guard();
        let (vm, found) = match &*caller.listener {
            ListenerIdentity::Network(network) => {
                let first_run = || view.first_run.filter(|_| caller.is_local).map(|vm| (vm, view.guest(vm)));
                view.guest_at(network, caller.source).or_else(first_run)?
            }
            ListenerIdentity::Bound(vm) => view.at_path(vm).map(|vm| (vm, view.guest(vm)))?,
        };
        found.map(|guest| ResolvedGuest::new(vm, &guest, false))
    }
}

impl Platform for ScheduledEvents {
    type Guest = ResolvedGuest;
    type Scope = ScopeId;

    fn is_trusted_proxy(&self, caller: &Caller) -> bool {
        self.proxies.contains(caller)
    }

    fn guest(&self, caller: &Caller, claim: &ProxyClaim<'_>) -> Option<ResolvedGuest> {
        if !caller.is_proxy {
            return self.trusts_addresses().then(|| self.identify(caller)).flatten();
        }
        let vm = VmId(self.proxies.vm(caller, claim)?);
        let view = self.views.newest_guard();
        let found = view.guest(vm);
        if found.is_none() {
            // The proxy's list is probably older than the fleet; its guest gets only a 403.
            self.proxies.log_refusal(caller, &format!("X-Instance-ID {vm} is no known VM"));
        }
        found.map(|guest| ResolvedGuest::new(vm, &guest, true))
    }

    fn guest_by_address(&self, caller: &Caller, uptime: Duration) -> Option<ResolvedGuest> {
        self.trusts_addresses_at(uptime).then(|| self.identify(caller)).flatten()
    }

    fn path(&self, guest: &ResolvedGuest) -> String {
        names::path(&guest.scope, guest.vm)
    }

    fn trusts_addresses(&self) -> bool {
        self.trusts_addresses_at(UPTIME.elapsed())
    }

    fn record_client(&self, guest: &ResolvedGuest, client: &Client<'_>, now: Timestamp) {
        if let Some(vm_polls) = guest.vm_polls()
            && !vm_polls.is_continued_by(client.number, now)
        {
            self.record_begin(guest.vm, vm_polls, client, now);
        }
    }

    fn record_refusal(&self, guest: Option<&ResolvedGuest>, caller: &Caller, refused: &RefusedRequest<'_>) {
        self.vm_log.record_refusal(guest.map(|guest| (guest.vm, &*guest.scope)), caller, refused);
    }

    fn record_poll(&self, guest: &ResolvedGuest, version: EventsVersion, now: Timestamp) {
        if let Some(vm_polls) = guest.vm_polls() {
            vm_polls.record_poll(now, version);
        }
        if guest.scope.polls.claim_report(now.as_second()) {
            self.report_poll(guest.scope.scope.id(), now);
        }
    }

    fn document(&self, guest: &ResolvedGuest, version: EventsVersion) -> Rendered {
        let scope = &guest.scope;
        let (edition, incarnation) = (scope.edition, scope.scope.incarnation);
        Rendered { edition, incarnation, body: scope.document(version) }
    }

    fn may_lag(&self) -> bool {
        self.delivery.node_notes.role() != DeliveryRole::Alone
    }

    async fn read_through(
        &self,
        guest: &ResolvedGuest,
        tag: u64,
        version: EventsVersion,
    ) -> ReadThrough<ResolvedGuest> {
        let (id, came_at) = (guest.scope.scope.id(), UPTIME.elapsed());
        loop {
            // The view may have caught up. A VM that is gone or has moved gets its answer at the next poll.
            let view = self.views.newest();
            let current = view.guest(guest.vm).filter(|one| one.scope.scope.id() == id);
            let Some(Guest { scope: own, position }) = current else { return ReadThrough::NotModified };
            let sent = |scope: Arc<ScopeView>, position| {
                let guest = ResolvedGuest { vm: guest.vm, scope, position, is_proxied: guest.is_proxied };
                ReadThrough::Document { rendered: self.document(&guest, version), guest }
            };
            let incarnation = own.scope.incarnation;
            match decide(incarnation, Some(tag)) {
                PollAnswer::NotModified => return ReadThrough::NotModified,
                PollAnswer::Document => return sent(Arc::clone(own), position),
                PollAnswer::ReadThrough => {}
            }
            let now = UPTIME.elapsed();
            let Some(left) = (came_at + READ_TIMEOUT).checked_sub(now) else {
                return ReadThrough::NotModified;
            };
            let turn = lock(&self.read_throughs).turn(&id, came_at, now);
            let stored = match turn {
                Turn::Wait(time) => {
                    tokio::time::sleep(time.min(left)).await;
                    continue;
                }
                Turn::Known(stored) => stored,
                Turn::Read => {
                    let stored = self.stored_scope(&id).await;
                    lock(&self.read_throughs).finish(&id, stored.clone());
                    stored
                }
            };
            let stored_incarnation = stored.as_ref().map(|stored| stored.scope.incarnation);
            return match (decide_by_store(stored_incarnation, incarnation, tag), stored) {
                (StoredAnswer::Own, _) => sent(Arc::clone(own), position),
                (StoredAnswer::Stored, Some(StoredScope { scope, revision })) => {
                    match scope.members.iter().position(|member| member.vm == guest.vm) {
                        Some(position) => {
                            self.views.set_shown_to(Revision(revision));
                            sent(Arc::new(ScopeView::read_through(scope, revision, own)), position)
                        }
                        None => ReadThrough::NotModified,
                    }
                }
                (StoredAnswer::NotModified | StoredAnswer::Stored, _) => ReadThrough::NotModified,
            };
        }
    }

    fn scope(&self, guest: &ResolvedGuest) -> ScopeId {
        guest.scope.scope.id()
    }

    fn wait_queues(&self) -> &WaitQueues<ScopeId> {
        self.views.wait_queues()
    }

    fn record_delivery(&self, guest: &ResolvedGuest, version: EventsVersion, at: Timestamp) {
        if let Some(vm_polls) = guest.vm_polls() {
            self.delivery.record_sent(guest.vm, vm_polls, &guest.scope, version, at);
        }
    }

    async fn instance(&self, guest: &ResolvedGuest) -> Option<Instance> {
        let view = self.views.newest();
        let stored = match view.has_instance(guest.vm) {
            true => match self.stored_instance(guest.vm).await {
                Ok(stored) => stored,
                Err(error) => {
                    tracing::warn!(vm = %guest.vm, %error, "cannot read instance metadata");
                    return None;
                }
            },
            false => serde_json::Value::Null,
        };
        Some(instance(&view, stored, &guest.scope, guest.vm))
    }

    async fn approve(
        &self,
        guest: &ResolvedGuest,
        caller: &Caller,
        events: Vec<Uuid>,
        now: Timestamp,
    ) -> Result<(), ApproveError> {
        let scope = guest.scope.scope.id();
        if guest.scope.polls.claim_report(now.as_second()) {
            self.report_poll(scope.clone(), now);
        }
        let Some(member) = guest.scope.scope.members.get(guest.position) else {
            return Err(ApproveError::UnknownCaller);
        };
        let approved = Happened::Approved(events.iter().copied().collect());
        let events = events.into_iter().map(EventId).collect();
        // The first-run VM has no address of its own.
        let network = match &*caller.listener {
            ListenerIdentity::Network(network)
                if !guest.is_proxied && self.views.newest().first_run != Some(guest.vm) =>
            {
                Some(network.clone())
            }
            ListenerIdentity::Network(_) | ListenerIdentity::Bound(_) => None,
        };
        let (vm, address) = (guest.vm, caller.source);
        match self.nodes.as_ref().filter(|nodes| !nodes.leads()) {
            Some(nodes) => {
                let identity = GuestIdentity::new(network);
                let shown = self.views.shown_to();
                nodes.approve(&Approval { identity, address, vm, scope, events, shown }).await?;
            }
            None => {
                let by = Actor::Vm { vm, name: member.name.clone(), address };
                approve(&self.engine, by, GuestApproval { scope, events, network }).await?;
            }
        }
        self.vm_log.record(vm, approved, now);
        Ok(())
    }
}

/// Asks the engine to approve events for a guest.
pub async fn approve(engine: &EngineHandle, by: Actor, approval: GuestApproval) -> Result<(), ApproveError> {
    engine.ask(Request::new(by, approval)).await.map_err(|failure| match failure {
        Failure::Refused(Refusal::UnknownEvent(event)) => ApproveError::UnknownEvent(event.0),
        Failure::Refused(Refusal::UnknownCaller(_)) => ApproveError::UnknownCaller,
        Failure::OutcomeUnknown(_) => ApproveError::OutcomeUnknown,
        Failure::Refused(_) | Failure::KeyReused | Failure::Unavailable(_) => {
            ApproveError::Unavailable(failure.to_string())
        }
    })
}

/// A VM's instance metadata: the inventory's values override the stored ones.
fn instance(view: &View, stored: serde_json::Value, scope: &ScopeView, vm: VmId) -> Instance {
    let mut instance: Instance = serde_json::from_value(stored).unwrap_or_default();
    let Some(member) = scope.member(vm) else { return instance };
    let path = &scope.scope.path;
    instance.vm_id = vm.0;
    instance.name = member.name.as_str().to_owned();
    instance.platform_update_domain = Some(member.update_domain);
    instance.platform_fault_domain = Some(member.fault_domain);
    let fill = |field: &mut String, value: &str| {
        if field.is_empty() {
            value.clone_into(field);
        }
    };
    let name_of = |name: &Name| name.as_str().to_owned();
    fill(&mut instance.subscription_id, &name_of(&path.subscription));
    fill(&mut instance.resource_group_name, &name_of(&path.group));
    fill(&mut instance.zone, member.zone.as_deref().unwrap_or_default());
    fill(&mut instance.host_id, member.host.as_deref().unwrap_or_default());
    fill(&mut instance.computer_name, member.name.as_str());
    fill(&mut instance.os_type, "Linux");
    match scope.scope.kind {
        ScopeKind::ScaleSet => {
            // The scope is a placement group, and a set may have several. The name of a uniform member contains the
            // set's name.
            let set = set_and_number(member.name.as_str()).map_or(path.name.as_str(), |(set, _)| set);
            fill(&mut instance.vm_scale_set_name, set);
            fill(&mut instance.placement_group_id, path.name.as_str());
        }
        ScopeKind::Standalone | ScopeKind::AvailabilitySet | ScopeKind::CloudService => {}
    }
    if shares_name(view, scope, member) {
        path.name.as_str().clone_into(&mut instance.namesake_scope);
    }
    if member.spot {
        instance.priority = Priority::Spot;
        fill(&mut instance.eviction_policy, "Deallocate");
    }
    if instance.interfaces.is_empty() {
        instance.interfaces = view.addresses(vm).into_iter().map(|address| interface(address.ip)).collect();
    }
    instance
}

/// Whether another VM of the group has this VM's name; true if too many VMs have it to check all.
fn shares_name(view: &View, scope: &ScopeView, member: &Member) -> bool {
    let own_path = &scope.scope.path;
    let folded = member.name.folded();
    let namesakes: Vec<VmId> = view.named(&folded).take(NAMESAKES_MAX).collect();
    let in_group = |vm: &VmId| {
        let path = view.scope_of(*vm).map(|scope| &scope.scope.path);
        path.is_some_and(|path| {
            (&path.subscription, &path.group) == (&own_path.subscription, &own_path.group)
        })
    };
    namesakes.len() == NAMESAKES_MAX || namesakes.iter().any(|vm| *vm != member.vm && in_group(vm))
}

fn interface(address: IpAddr) -> Interface {
    let one = IpAddress { private: address.to_string(), public: String::new() };
    match address {
        IpAddr::V4(_) => Interface { ipv4: vec![one], ..Interface::default() },
        IpAddr::V6(_) => Interface { ipv6: vec![one], ..Interface::default() },
    }
}
