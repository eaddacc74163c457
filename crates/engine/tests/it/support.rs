//! Shared helpers.

use jiff::Timestamp;
use notbefore_core::samples::operator;
use notbefore_core::{Scope, Settings};
use notbefore_engine::records::{self, Vm};
use notbefore_engine::{Command, Effect, Engine, EngineSettings, Input, JobId, Request, RequestId};
use notbefore_store::{Key, Revision, Txn, Versioned};

/// An engine over these records, and the effects of its start.
pub fn started(domain: Settings, records: Vec<(Key, Versioned)>, now: Timestamp) -> (Engine, Vec<Effect>) {
    let settings = EngineSettings { domain, node: "n1".into() };
    let newest = records.iter().map(|(_, record)| record.revision).max().unwrap_or(Revision(0));
    Engine::new(settings, records, newest, now).unwrap()
}

/// The records of scopes and of their VMs without addresses, at revision 1.
pub fn stored(scopes: impl IntoIterator<Item = Scope>) -> Vec<(Key, Versioned)> {
    let mut stored = Vec::new();
    for scope in scopes {
        let mut put = |key, value| stored.push((key, Versioned { revision: Revision(1), value }));
        put(records::scope(&scope.id()), records::encode(&scope));
        for id in scope.members.iter().map(|member| member.vm) {
            let vm = Vm { id, scope: scope.id(), addresses: Vec::new(), instance: Default::default() };
            put(records::vm(id), records::encode(&vm));
        }
    }
    stored
}

pub fn request(command: impl Into<Command>) -> Input {
    Input::Request(RequestId(0), Box::new(Request::new(operator(), command.into())))
}

pub fn commits(effects: Vec<Effect>) -> Vec<(JobId, Txn)> {
    let commit = |effect| match effect {
        Effect::Commit(id, txn) => Some((id, txn)),
        Effect::Publish(_) | Effect::Run(_) | Effect::Stop(_) | Effect::Answer(..) | Effect::Resync => None,
    };
    effects.into_iter().filter_map(commit).collect()
}
