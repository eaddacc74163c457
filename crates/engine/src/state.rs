//! The committed records that the engine works with, in memory. Nothing gets in here but what the store has
//! made durable, so whatever is published from it is at most what is committed.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_core::{EventId, Name, Operation, OperationId, OperationState, Scope, ScopeId, Token, VmId};
use notbefore_store::{Key, Revision};

use crate::records::{self, Address, DecodeError, LastAt, Vm, prefix};

/// A record and the revision that wrote it.
#[derive(Debug)]
pub struct Held<T> {
    /// The revision.
    pub revision: Revision,
    /// The record, shared with whoever it was published to.
    pub value: Arc<T>,
}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        Self { revision: self.revision, value: Arc::clone(&self.value) }
    }
}

/// An address as maps use it: network folded, and the address.
pub type CallerKey = (String, IpAddr);

/// A change for those who read without asking the engine: the guests' snapshot and the operators' lists.
#[derive(Clone, Debug)]
pub enum Published {
    /// A scope is so now, or gone.
    Scope(ScopeId, Option<Held<Scope>>),
    /// A VM is so now, or gone.
    Vm(VmId, Option<Held<Vm>>),
    /// An address is this VM's now, or nobody's.
    Claim(CallerKey, Option<VmId>),
    /// An operation is so now, or closed.
    Operation(OperationId, Option<Held<Operation>>),
    /// A token is so now, or gone.
    Token(Name, Option<Held<Token>>),
}

impl Published {
    fn is_gone(&self) -> bool {
        match self {
            Self::Scope(_, held) => held.is_none(),
            Self::Vm(_, held) => held.is_none(),
            Self::Claim(_, vm) => vm.is_none(),
            Self::Operation(_, held) => held.is_none(),
            Self::Token(_, held) => held.is_none(),
        }
    }
}

/// All records that decisions are made from.
#[derive(Debug, Default)]
pub struct State {
    scopes: HashMap<ScopeId, Held<Scope>>,
    vms: HashMap<VmId, Held<Vm>>,
    claims: HashMap<CallerKey, Held<VmId>>,
    operations: HashMap<OperationId, Held<Operation>>,
    /// By their folded names.
    tokens: HashMap<String, Held<Token>>,
    heard: HashMap<ScopeId, Timestamp>,
    /// Where an event lives, or lived lately.
    homes: HashMap<EventId, ScopeId>,
    /// The scopes that have a VM on a host.
    hosts: HashMap<String, BTreeSet<ScopeId>>,
    alive: Option<Timestamp>,
    /// Records that were removed, and when, until the watch has come so far: what it shows of them from before
    /// is old news.
    gone: HashMap<Key, Revision>,
}

impl State {
    /// A scope.
    pub fn scope(&self, id: &ScopeId) -> Option<&Held<Scope>> {
        self.scopes.get(id)
    }

    /// The scope that a key is of.
    pub(crate) fn scope_of_key(&self, key: &str) -> Option<&Held<Scope>> {
        self.scopes.get(&scope_id(key, key.strip_prefix(prefix::SCOPE)?).ok()?)
    }

    /// All scopes.
    pub fn scopes(&self) -> impl Iterator<Item = (&ScopeId, &Held<Scope>)> {
        self.scopes.iter()
    }

    /// A VM.
    pub fn vm(&self, id: VmId) -> Option<&Held<Vm>> {
        self.vms.get(&id)
    }

    /// Who has an address.
    pub fn claim(&self, address: &Address) -> Option<&Held<VmId>> {
        self.claims.get(&caller_key(address))
    }

    /// An operation that is not closed.
    pub fn operation(&self, id: OperationId) -> Option<&Held<Operation>> {
        self.operations.get(&id)
    }

    /// All operations that are not closed.
    pub fn operations(&self) -> impl Iterator<Item = (&OperationId, &Held<Operation>)> {
        self.operations.iter()
    }

    /// A token.
    pub fn token(&self, name: &Name) -> Option<&Held<Token>> {
        self.tokens.get(&name.folded())
    }

    /// All tokens.
    pub fn tokens(&self) -> impl Iterator<Item = &Held<Token>> {
        self.tokens.values()
    }

    /// The scope an event lives in, or has ended in lately.
    pub fn home(&self, event: EventId) -> Option<&ScopeId> {
        self.homes.get(&event)
    }

    /// The scopes that have a VM on a host, in order.
    pub fn scopes_on(&self, host: &str) -> impl Iterator<Item = (&ScopeId, &Held<Scope>)> {
        let scopes = self.hosts.get(host).into_iter().flatten();
        scopes.filter_map(|id| self.scopes.get_key_value(id))
    }

    /// When a guest of the scope is stored to have last asked.
    pub fn heard(&self, id: &ScopeId) -> Option<Timestamp> {
        self.heard.get(id).copied()
    }

    /// When each scope is stored to have been heard of.
    pub fn all_heard(&self) -> impl Iterator<Item = (&ScopeId, Timestamp)> {
        self.heard.iter().map(|(id, at)| (id, *at))
    }

    /// When the service was last known to run.
    pub fn alive(&self) -> Option<Timestamp> {
        self.alive
    }

    /// Whether there is any VM.
    pub fn is_empty(&self) -> bool {
        self.scopes.is_empty()
    }

    /// The scope that stands in for a fleet, if it is there.
    pub fn first_run(&self) -> Option<&Held<Scope>> {
        // With a first-run scope there is no other, so there is nothing to search.
        self.scopes.values().next().filter(|held| held.value.first_run)
    }

    /// Takes over one record as the store has it, unless what is held is as new. Records of other kinds are
    /// passed over.
    pub fn install(
        &mut self,
        key: &str,
        revision: Revision,
        value: Option<&Bytes>,
    ) -> Result<Option<Published>, DecodeError> {
        if self.gone.get(key).is_some_and(|gone| *gone >= revision) {
            return Ok(None);
        }
        let change = self.install_newer(key, revision, value)?;
        match change.as_ref().map(Published::is_gone) {
            Some(true) => {
                self.gone.insert(key.into(), revision);
            }
            Some(false) => {
                self.gone.remove(key);
            }
            None => {}
        }
        Ok(change)
    }

    /// The watch has shown all up to this revision: nothing older will come any more.
    pub fn watched(&mut self, revision: Revision) {
        self.gone.retain(|_, gone| *gone > revision);
    }

    /// The revision that is held of a record.
    pub fn revision_of(&self, key: &str) -> Option<Revision> {
        let id = |rest| uuid::Uuid::parse_str(rest).ok();
        if let Some(rest) = key.strip_prefix(prefix::SCOPE) {
            self.scopes.get(&scope_id(key, rest).ok()?).map(|held| held.revision)
        } else if let Some(rest) = key.strip_prefix(prefix::VM) {
            self.vms.get(&VmId(id(rest)?)).map(|held| held.revision)
        } else if let Some(rest) = key.strip_prefix(prefix::CLAIM) {
            self.claims.get(&parse_caller(key, rest).ok()?).map(|held| held.revision)
        } else if let Some(rest) = key.strip_prefix(prefix::OPERATION) {
            self.operations.get(&OperationId(id(rest)?)).map(|held| held.revision)
        } else if let Some(name) = key.strip_prefix(prefix::TOKEN) {
            self.tokens.get(name).map(|held| held.revision)
        } else {
            None
        }
    }

    fn install_newer(
        &mut self,
        key: &str,
        revision: Revision,
        value: Option<&Bytes>,
    ) -> Result<Option<Published>, DecodeError> {
        if let Some(id) = key.strip_prefix(prefix::SCOPE) {
            return self.install_scope(key, id, revision, value);
        }
        if let Some(id) = key.strip_prefix(prefix::VM) {
            let id = VmId(parse_id(key, id)?);
            let held = decode(key, revision, value)?;
            if !put(&mut self.vms, id, revision, held.clone()) {
                return Ok(None);
            }
            return Ok(Some(Published::Vm(id, held)));
        }
        if let Some(rest) = key.strip_prefix(prefix::CLAIM) {
            let caller = parse_caller(key, rest)?;
            let held = decode::<VmId>(key, revision, value)?;
            let vm = held.as_ref().map(|held| *held.value);
            if !put(&mut self.claims, caller.clone(), revision, held) {
                return Ok(None);
            }
            return Ok(Some(Published::Claim(caller, vm)));
        }
        if let Some(id) = key.strip_prefix(prefix::OPERATION) {
            let id = OperationId(parse_id(key, id)?);
            // A closed operation is history: it stays in the store and leaves memory.
            let held = decode::<Operation>(key, revision, value)?
                .filter(|held| held.value.state != OperationState::Closed);
            if !put(&mut self.operations, id, revision, held.clone()) {
                return Ok(None);
            }
            return Ok(Some(Published::Operation(id, held)));
        }
        if let Some(folded) = key.strip_prefix(prefix::TOKEN) {
            let name = folded.parse::<Name>().map_err(|error| bad_key(key, error))?;
            let held = decode::<Token>(key, revision, value)?;
            if !put(&mut self.tokens, folded.to_owned(), revision, held.clone()) {
                return Ok(None);
            }
            return Ok(Some(Published::Token(name, held)));
        }
        if let Some(id) = key.strip_prefix(prefix::HEARD) {
            let id = scope_id(key, id)?;
            match value {
                Some(value) => self.heard.insert(id, records::decode::<LastAt>(key, value)?.at),
                None => self.heard.remove(&id),
            };
        } else if key == records::ALIVE {
            self.alive =
                value.map(|value| records::decode::<LastAt>(key, value)).transpose()?.map(|last| last.at);
        }
        Ok(None)
    }

    fn install_scope(
        &mut self,
        key: &str,
        id: &str,
        revision: Revision,
        value: Option<&Bytes>,
    ) -> Result<Option<Published>, DecodeError> {
        let id = scope_id(key, id)?;
        let held = decode::<Scope>(key, revision, value)?;
        let before = self.scopes.get(&id).map(|held| Arc::clone(&held.value));
        if !put(&mut self.scopes, id.clone(), revision, held.clone()) {
            return Ok(None);
        }
        for event in before.iter().flat_map(|scope| scope.event_ids()) {
            self.homes.remove(&event);
        }
        for event in held.iter().flat_map(|held| held.value.event_ids()) {
            self.homes.insert(event, id.clone());
        }
        self.place(&id, before.as_deref(), held.as_ref().map(|held| &*held.value));
        Ok(Some(Published::Scope(id, held)))
    }

    /// Keeps the index of hosts in step with a scope.
    fn place(&mut self, id: &ScopeId, before: Option<&Scope>, after: Option<&Scope>) {
        if before.map(|scope| &scope.members) == after.map(|scope| &scope.members) {
            return;
        }
        let (before, after) = (hosts(before), hosts(after));
        for gone in before.difference(&after) {
            if let Some(scopes) = self.hosts.get_mut(*gone) {
                scopes.remove(id);
                if scopes.is_empty() {
                    self.hosts.remove(*gone);
                }
            }
        }
        for come in after.difference(&before) {
            self.hosts.entry((*come).to_owned()).or_default().insert(id.clone());
        }
    }

    /// Everything there is, for those who start with nothing.
    pub fn everything(&self) -> Vec<Published> {
        let scopes = self.scopes.iter().map(|(id, held)| Published::Scope(id.clone(), Some(held.clone())));
        let vms = self.vms.iter().map(|(id, held)| Published::Vm(*id, Some(held.clone())));
        let claims = self.claims.iter().map(|(key, held)| Published::Claim(key.clone(), Some(*held.value)));
        let operations =
            self.operations.iter().map(|(id, held)| Published::Operation(*id, Some(held.clone())));
        let tokens =
            self.tokens.values().map(|held| Published::Token(held.value.name.clone(), Some(held.clone())));
        scopes.chain(vms).chain(claims).chain(operations).chain(tokens).collect()
    }
}

/// The hosts that a scope's VMs are on.
fn hosts(scope: Option<&Scope>) -> BTreeSet<&str> {
    scope.iter().flat_map(|scope| &scope.members).filter_map(|member| member.host.as_deref()).collect()
}

/// An address in the form in which maps hold it.
pub fn caller_key(address: &Address) -> CallerKey {
    (address.network.folded(), address.ip)
}

fn put<K: std::hash::Hash + Eq, V>(
    map: &mut HashMap<K, Held<V>>,
    key: K,
    revision: Revision,
    held: Option<Held<V>>,
) -> bool {
    if map.get(&key).is_some_and(|known| known.revision >= revision) {
        return false;
    }
    match held {
        Some(held) => {
            map.insert(key, held);
        }
        None => {
            map.remove(&key);
        }
    }
    true
}

fn decode<T: serde::de::DeserializeOwned>(
    key: &str,
    revision: Revision,
    value: Option<&Bytes>,
) -> Result<Option<Held<T>>, DecodeError> {
    let held = |value| Held { revision, value: Arc::new(value) };
    value.map(|value| records::decode(key, value).map(held)).transpose()
}

fn parse_id(key: &str, id: &str) -> Result<uuid::Uuid, DecodeError> {
    uuid::Uuid::parse_str(id).map_err(|error| bad_key(key, error))
}

fn parse_caller(key: &str, rest: &str) -> Result<CallerKey, DecodeError> {
    let (network, ip) = rest.split_once('/').ok_or_else(|| bad_key(key, "no address in its key"))?;
    Ok((network.to_owned(), ip.parse().map_err(|error| bad_key(key, error))?))
}

fn scope_id(key: &str, id: &str) -> Result<ScopeId, DecodeError> {
    let path = id.parse::<notbefore_core::ScopePath>().map_err(|error| bad_key(key, error))?;
    Ok(path.id())
}

fn bad_key(key: &str, why: impl std::fmt::Display) -> DecodeError {
    DecodeError::Content { key: key.to_owned(), why: why.to_string() }
}
