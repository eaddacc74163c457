//! Records: their kinds and their versioned JSON encoding.
//!
//! | key | holds |
//! |---|---|
//! | `scope/{subscription}/{group}/{scope}` | a whole scope: the value that commits compare |
//! | `vm/{id}` | a VM's addresses and instance metadata |
//! | `claim/{network}/{address}` | the VM that has the address; created only if missing |
//! | `operation/{id}` | an operation and its progress |
//! | `host/{name}` | a host and its state; a host that VMs name and that has no record is ok |
//! | `command/{principal}/{key}` | idempotency record: the answer to a command; kept for a day |
//! | `fact/{millis}-{node}-{n}` | the facts of one commit, for the audit trail |
//! | `refused/{millis}-{node}-{n}` | refused requests of operators, for the audit trail |
//! | `past/{event}` | an ended event with its whole trail |
//! | `ended/{millis}/{event}` | an index of `past` by time; the value is empty |
//! | `seen/{event}/{node}` | first reads of the event per VM, as recorded by one process; the earliest counts |
//! | `heard/{scope}` | the last poll of a guest of the scope, to the hour |
//! | `alive` | the last time the service ran, to the minute |
//! | `swept` | the time of the last cleanup of old records |
//! | `token/{name}` | a token of the operator API |
//! | `secret/session-key` | the key that seals sessions of the console; never exported |
//! | `secret/node-key` | the key that signs messages between nodes; never exported |
//! | `secret/link/{hash}` | a one-time sign-in link of the console; never exported |
//! | `cluster/format` | the format level at which the nodes of the cluster write |
//! | `cluster/leader` | the leader of the cluster; its revision is the leader's fence |
//! | `cluster/node/{name}` | the heartbeat of a node of the cluster |
//!
//! A value is a format level in digits, a space, and JSON: `2 {"path":…}`. A release reads its own level and the
//! previous one; it refuses any other and changes nothing. A record keeps its level until it is written again, so a
//! store may hold both. JSON costs some bytes, but people can read the records with any tool in an emergency.
//!
//! | level | added | default if absent |
//! |---|---|---|
//! | 1 | everything that is not below | |
//! | 1 | `target_host` in events | the VM stays on its host |
//! | 1 | `moved_from` in a scope's members | the VM is on the host that was named last |
//! | 2 | `outcome` in an operation's parts | unknown |
//!
//! Nodes of a cluster write at the cluster's level until an upgrade is finished: [`downgrade`].
//!
//! Until the first release is tagged, both levels are of that release, and the two exist to test rolling upgrades. A new
//! field then raises no level: it gets a default (`#[serde(default)]`) and a row here, under level 1. Afterwards a field
//! or variant that an older release would misread, refuse or drop raises the level.

mod levels;

use std::fmt;
use std::net::IpAddr;

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_core::{EventId, Fact, Name, OperationId, Recorded, ScopeId, VmId};
use notbefore_store::{Key, check};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::keys::{RecordKey, Written};
use crate::request::Answer;

pub use levels::{downgrade, downgrade_txn};

/// The level that this release writes.
pub const FORMAT_LEVEL: u32 = 2;
pub const FORMAT_LEVELS_READ: [u32; 2] = [1, FORMAT_LEVEL];
const FORMAT_PREFIX: &str = "2 ";

/// Key prefixes of the kinds of records.
pub mod prefix {
    pub const SCOPE: &str = "scope/";
    pub const VM: &str = "vm/";
    /// Addresses of VMs.
    pub const CLAIM: &str = "claim/";
    pub const OPERATION: &str = "operation/";
    pub const HOST: &str = "host/";
    /// Idempotency records.
    pub const COMMAND: &str = "command/";
    pub const FACT: &str = "fact/";
    pub const REFUSED: &str = "refused/";
    pub const PAST: &str = "past/";
    /// Index of ended events by time.
    pub const ENDED: &str = "ended/";
    /// First reads of events.
    pub const SEEN: &str = "seen/";
    /// Last polls of scopes.
    pub const HEARD: &str = "heard/";
    /// Tokens of the operator API.
    pub const TOKEN: &str = "token/";
    /// Secrets of the service itself. An export never contains them.
    pub const SECRET: &str = "secret/";
    /// One-time sign-in links of the console.
    pub const LINK: &str = "secret/link/";

    /// The kinds of records, without those of the cluster.
    pub const ALL: [&str; 14] =
        [SCOPE, VM, CLAIM, OPERATION, HOST, COMMAND, FACT, REFUSED, PAST, ENDED, SEEN, HEARD, TOKEN, SECRET];
}

/// Key of the heartbeat.
pub const ALIVE: &str = "alive";

/// Key of the time of the last cleanup.
pub const SWEPT: &str = "swept";

/// Key of the record with the key that seals sessions.
pub const SESSION_KEY: &str = "secret/session-key";

/// Key of the record with the key that signs messages between nodes.
pub const NODE_KEY: &str = "secret/node-key";

/// Keys without an id.
pub const TIMES: [&str; 2] = [ALIVE, SWEPT];

/// The prefixes that the engine loads into memory at the start, besides [`ALIVE`]. Scopes come before their VMs, so
/// that each VM finds its position.
pub const LOADED: [&str; 7] =
    [prefix::SCOPE, prefix::VM, prefix::CLAIM, prefix::OPERATION, prefix::HOST, prefix::HEARD, prefix::TOKEN];

/// Whether the engine holds records with this key.
pub fn is_loaded(key: &str) -> bool {
    key == ALIVE || LOADED.iter().any(|kind| key.starts_with(kind))
}

/// Whether a node of a cluster follows records with this key: those that the engine holds, and those of the cluster.
pub fn is_followed(key: &str) -> bool {
    is_loaded(key) || key.starts_with(crate::cluster::CLUSTER)
}

/// The ranges in which the records with a prefix are loaded, in key order. Where a page costs as much as the rest of its
/// range, a million VMs are loaded in 256 ranges.
pub fn ranges(kind: &str, has_costly_ranges: bool) -> Vec<String> {
    match has_costly_ranges && kind == prefix::VM {
        true => (0..=u8::MAX).map(|byte| format!("{kind}{byte:02x}")).collect(),
        false => vec![kind.to_owned()],
    }
}

/// Ranges that hold all records, in key order; see [`ranges`].
pub fn all_ranges(has_costly_ranges: bool) -> Vec<String> {
    if !has_costly_ranges {
        return vec![String::new()];
    }
    let mut kinds: Vec<&str> =
        prefix::ALL.into_iter().chain(TIMES).chain([crate::cluster::CLUSTER]).collect();
    kinds.sort_unstable();
    kinds.into_iter().flat_map(|kind| ranges(kind, true)).collect()
}

/// An address in a network. Networks may overlap; within one network an address is unique.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The network of the guest listener.
    pub network: Name,
    pub ip: IpAddr,
}

impl fmt::Display for Address {
    /// Omits the network if it is `default`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.network.folded().as_str() {
            "default" => write!(f, "{}", self.ip),
            _ => write!(f, "{}/{}", self.network, self.ip),
        }
    }
}

/// A VM's data outside its scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vm {
    pub id: VmId,
    pub scope: ScopeId,
    /// The addresses from which it polls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
    /// Instance metadata in wire format; the engine does not interpret it.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub instance: serde_json::Value,
}

/// The idempotency record of a command that took effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// A hash of the whole request: reuse of the key for another request is an error.
    pub hash: String,
    pub at: Timestamp,
    pub answer: Answer,
}

/// The facts of one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactBatch {
    /// None if it concerns no scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopeId>,
    /// The caller's address; none for automatic changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
    /// The number of its first fact within the command, which may have several batches in one commit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first: u64,
    /// In order.
    pub facts: Vec<Recorded<Fact>>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Refused requests of operators during an interval, for the audit trail. Requests beyond the rate limit are only
/// counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalBatch {
    pub at: Timestamp,
    /// A sample, in order.
    pub requests: Vec<RefusedRequest>,
    /// Counts of the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<FurtherRefusals>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRequest {
    pub at: Timestamp,
    pub from: Option<IpAddr>,
    /// The name of the token, if known.
    pub token: Option<String>,
    /// The problem's code, or `hidden`.
    pub code: String,
    /// Method and path, truncated.
    pub request: String,
}

/// Counted refusals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FurtherRefusals {
    /// None for all other addresses.
    pub from: Option<IpAddr>,
    pub count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastAt {
    pub at: Timestamp,
}

/// The heartbeat of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alive {
    /// From a trusted clock.
    pub at: Timestamp,
    /// The boot in which the service ran, if the system has boot ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<Boot>,
}

/// A boot of the machine. Within one boot, the boot time by the wall clock changes only if the clock is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// The system's boot id.
    pub id: String,
    /// The boot time by the wall clock.
    pub at: Timestamp,
}

/// The VMs that have read an event, as recorded by one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub scope: ScopeId,
    /// Sorted by VM.
    pub reads: Vec<SeenRead>,
    /// Reads that the previous record did not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<NewRead>,
}

/// The value of [`SESSION_KEY`] and [`NODE_KEY`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredKeyRecord {
    /// 32 random bytes, in hexadecimal.
    pub key: String,
}

impl StoredKeyRecord {
    /// Whether the key is 64 hexadecimal digits, as the service writes it.
    pub fn is_well_formed(&self) -> bool {
        self.key.len() == 64 && self.key.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }
}

/// A one-time sign-in link of the console. The key of its record is a hash of its code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignInLink {
    /// The token that the session will stand for.
    pub token: Name,
    /// The revision of the token's record.
    pub token_revision: u64,
    pub expires_at: Timestamp,
    /// If a session created the link: when that session expires. The new session ends then, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_expires_at: Option<Timestamp>,
}

/// A VM that has read an event since the previous record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewRead {
    pub vm: VmId,
    pub name: Name,
}

/// A VM's first read of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenRead {
    pub vm: VmId,
    pub at: Timestamp,
    /// The api-version, as in the query.
    pub version: String,
}

/// Functions that encode a key.
macro_rules! keys {
    ($($name:ident($($part:ident: $of:ty),+) => $key:expr;)+) => {
        $(pub fn $name($($part: $of),+) -> Key {
            $key.encode()
        })+
    };
}

keys! {
    scope(id: &ScopeId) => RecordKey::Scope(id.clone());
    vm(id: VmId) => RecordKey::Vm(id);
    claim(address: &Address) => RecordKey::Claim { network: &address.network.folded(), ip: address.ip };
    operation(id: OperationId) => RecordKey::Operation(id);
    host(name: &str) => RecordKey::Host(name);
    command(principal: &str, key: &str) => RecordKey::Command { principal, key };
    fact(at: Timestamp, node: &str, n: u64) => RecordKey::Fact(Written { at, node, n });
    refused(at: Timestamp, node: &str, n: u64) => RecordKey::Refused(Written { at, node, n });
    past(id: EventId) => RecordKey::Past(id);
    ended(at: Timestamp, event: EventId) => RecordKey::Ended { at, event };
    seen(event: EventId, node: &str) => RecordKey::Seen { event, node };
    heard(id: &ScopeId) => RecordKey::Heard(id.clone());
    token(name: &Name) => RecordKey::Token(name.clone());
    link(hash: &str) => RecordKey::Secret(&format!("link/{hash}"));
}

/// Prefix of the fact batches of one millisecond.
pub fn facts_at(at: Timestamp) -> String {
    format!("{}{:013}-", prefix::FACT, at.as_millisecond())
}

/// Prefix of an event's `seen` records.
pub fn seen_of(event: EventId) -> String {
    RecordKey::Seen { event, node: "" }.to_string()
}

/// The time in the key of a fact, a refused request or an entry of the index of ended events.
pub fn time_in_key(key: &str) -> Option<Timestamp> {
    match RecordKey::parse(key) {
        Ok(RecordKey::Fact(written) | RecordKey::Refused(written)) => Some(written.at),
        Ok(RecordKey::Ended { at, .. }) => Some(at),
        Ok(_) | Err(_) => None,
    }
}

/// The event of a `seen` record or of an entry of the index of ended events.
pub fn event_in_key(key: &str) -> Option<EventId> {
    match RecordKey::parse(key) {
        Ok(RecordKey::Ended { event, .. } | RecordKey::Seen { event, .. }) => Some(event),
        Ok(_) | Err(_) => None,
    }
}

/// Start of the index entries of events that ended at a time or later.
pub fn ended_from(at: Timestamp) -> Key {
    format!("{}{:013}", prefix::ENDED, at.as_millisecond().max(0)).into()
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Another release wrote it; `found` is its level, or the text instead of a level.
    #[error(
        "record {key} has format level {found}; this release reads levels {}: run the release that wrote it, or export from there",
        levels_read()
    )]
    Level { key: String, found: String },
    /// The JSON does not match the kind of record.
    #[error("record {key} cannot be decoded: {why}")]
    Content { key: String, why: String },
}

pub fn encode<T: Serialize>(record: &T) -> Bytes {
    // Most records fit, so the buffer does not grow; the result is an exact copy.
    let mut bytes = Vec::with_capacity(1_000);
    bytes.extend_from_slice(FORMAT_PREFIX.as_bytes());
    // Writing to memory cannot fail, and no record has a map with keys that are not text.
    if serde_json::to_writer(&mut bytes, record).is_err() {
        check(|| false, "a record cannot be written as JSON");
    }
    Bytes::copy_from_slice(&bytes)
}

/// The levels that this release reads, for messages.
pub fn levels_read() -> String {
    FORMAT_LEVELS_READ.map(|level| level.to_string()).join(" and ")
}

/// A record's level and JSON, if this release reads that level.
pub fn level_and_json(value: &[u8]) -> Option<(u32, &[u8])> {
    let (level, json) = value.split_at_checked(FORMAT_PREFIX.len())?;
    match level {
        b"2 " => Some((FORMAT_LEVEL, json)),
        b"1 " => Some((1, json)),
        _ => None,
    }
}

/// Decodes any level that this release reads. Fields that level 1 lacks have defaults in the types.
pub fn decode<T: DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, DecodeError> {
    let Some((_, json)) = level_and_json(value) else {
        let level = value.split(|byte| *byte == b' ').next().unwrap_or_default();
        let found = String::from_utf8_lossy(&level[..level.len().min(20)]).into_owned();
        return Err(DecodeError::Level { key: key.to_owned(), found });
    };
    serde_json::from_slice(json)
        .map_err(|error| DecodeError::Content { key: key.to_owned(), why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_round_trips() {
        let at = LastAt { at: "2016-09-19T18:29:47.5Z".parse().unwrap() };
        let bytes = encode(&at);
        assert!(bytes.starts_with(format!("{FORMAT_LEVEL} {{\"at\":").as_bytes()));
        assert_eq!(decode::<LastAt>("alive", &bytes), Ok(at));
    }

    #[test]
    fn both_format_levels_decode() {
        let at = LastAt { at: "2016-09-19T18:29:47Z".parse().unwrap() };
        for level in FORMAT_LEVELS_READ {
            let bytes = format!("{level} {{\"at\":\"2016-09-19T18:29:47Z\"}}");
            assert_eq!(decode::<LastAt>("alive", bytes.as_bytes()), Ok(at), "{level}");
        }
    }

    #[test]
    fn unknown_format_level_is_an_error() {
        let error = decode::<LastAt>("alive", b"3 {\"at\":\"x\"}").unwrap_err();
        assert_eq!(error, DecodeError::Level { key: "alive".into(), found: "3".into() });
        assert!(error.to_string().contains("reads levels 1 and 2"), "{error}");
        assert!(matches!(decode::<LastAt>("alive", b""), Err(DecodeError::Level { .. })));
        assert!(matches!(decode::<LastAt>("alive", b"1 {"), Err(DecodeError::Content { .. })));
    }
}
