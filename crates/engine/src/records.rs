//! The records: their keys, and how they become bytes and come back.
//!
//! | key | holds |
//! |---|---|
//! | `scope/{subscription}/{group}/{scope}` | a whole scope: the value that commits compare |
//! | `vm/{id}` | a VM's addresses and instance metadata |
//! | `claim/{network}/{address}` | the VM that has the address; made only where there is none |
//! | `operation/{id}` | an operation and how far it is |
//! | `command/{principal}/{key}` | the answer to a command, for those who ask twice; kept a day |
//! | `fact/{millis}-{node}-{n}` | what one commit made happen, for the audit trail |
//! | `refused/{millis}-{node}-{n}` | requests of operators that were refused, for the audit trail |
//! | `past/{event}` | an ended event with its whole trail |
//! | `ended/{millis}/{event}` | an index of `past` by time; the value is empty |
//! | `seen/{event}/{node}` | which of the event's VMs read it first when, as one process noted it; the earliest counts |
//! | `heard/{scope}` | when a guest of the scope last asked, to the hour |
//! | `alive` | when the service last ran, to the minute |
//! | `swept` | the time by which records past their time were last removed |
//! | `token/{name}` | who may use the operator API |
//!
//! A value is a format level in digits, a space, and JSON: `2 {"path":…}`. A release reads its own level and
//! the one before; it refuses any other and touches nothing. A record keeps the level it was written with until
//! it is written again, so a store may hold both. JSON costs some bytes and buys records that a person can read
//! with any tool on the worst day of the year.
//!
//! | level | what it added | what its absence means |
//! |---|---|---|
//! | 1 | | |
//! | 2 | `time_given` in operations and events | no time was given |
//! | 2 | `joint_start` in operations and events | each event starts by itself, also those of one host |
//! | 2 | `completed_by` in operations | nobody has completed the operation as a whole |
//! | 2 | `outcome` in an operation's parts | how the part ended is not known |
//! | 2 | `operation` in facts of events | the operation is not known |
//! | 2 | `first` in facts, `added` in readers | 0; none |

use std::fmt;
use std::net::IpAddr;

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_core::{EventId, Fact, Name, OperationId, Recorded, ScopeId, VmId};
use notbefore_store::Key;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::keys::{RecordKey, Written};
use crate::request::Answer;

/// The level that this release writes.
pub const FORMAT_LEVEL: u32 = 2;
/// The levels that it reads.
pub const FORMAT_LEVELS_READ: [u32; 2] = [1, FORMAT_LEVEL];
/// What its records begin with.
const FORMAT_PREFIX: &str = "2 ";

/// Where the records of each kind begin.
pub mod prefix {
    /// Scopes.
    pub const SCOPE: &str = "scope/";
    /// VMs.
    pub const VM: &str = "vm/";
    /// Addresses.
    pub const CLAIM: &str = "claim/";
    /// Operations.
    pub const OPERATION: &str = "operation/";
    /// Answers for those who ask twice.
    pub const COMMAND: &str = "command/";
    /// The audit trail.
    pub const FACT: &str = "fact/";
    /// Refused requests.
    pub const REFUSED: &str = "refused/";
    /// Ended events.
    pub const PAST: &str = "past/";
    /// Ended events by time.
    pub const ENDED: &str = "ended/";
    /// Who read what first when.
    pub const SEEN: &str = "seen/";
    /// When guests last asked.
    pub const HEARD: &str = "heard/";
    /// Who may use the operator API.
    pub const TOKEN: &str = "token/";
}

/// The record of when the service last ran.
pub const ALIVE: &str = "alive";

/// The record of the time by which old records were last removed.
pub const SWEPT: &str = "swept";

/// The records whose keys are no kind and an id, but one word.
pub const TIMES: [&str; 2] = [ALIVE, SWEPT];

/// The prefixes that the engine holds in memory and must be given at the start, besides [`ALIVE`]. Scopes come
/// before their VMs, so that each VM finds its place.
pub const LOADED: [&str; 6] =
    [prefix::SCOPE, prefix::VM, prefix::CLAIM, prefix::OPERATION, prefix::HEARD, prefix::TOKEN];

/// An address in a network; tenants' addresses may overlap, those of one network may not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The network, a property of the listener that guests come in by.
    pub network: Name,
    /// The address.
    pub ip: IpAddr,
}

impl fmt::Display for Address {
    /// As people write it: the network is named unless it is `default`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.network.folded().as_str() {
            "default" => write!(f, "{}", self.ip),
            _ => write!(f, "{}/{}", self.network, self.ip),
        }
    }
}

/// What is known of a VM besides its place in its scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vm {
    /// Its id.
    pub id: VmId,
    /// Its scope.
    pub scope: ScopeId,
    /// Where it calls from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
    /// What it is told about itself, in the wire's own form; the engine only keeps it.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub instance: serde_json::Value,
}

/// A command that took effect, for whoever asks again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// A hash of the whole request: the same key with another request is a mistake.
    pub hash: String,
    /// When it took effect.
    pub at: Timestamp,
    /// What was answered.
    pub answer: Answer,
}

/// What one commit made happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactBatch {
    /// The scope it happened in, if in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopeId>,
    /// Where the request that made it happen came from, if it was somebody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
    /// The number of its first fact among those of the command, which may have several such records in one commit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first: u64,
    /// What happened, in order.
    pub facts: Vec<Recorded<Fact>>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Requests of operators that were refused in a while, as the audit trail keeps them. What came too fast is only
/// counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalBatch {
    /// When it was written.
    pub at: Timestamp,
    /// Some of them, in order.
    pub requests: Vec<RefusedRequest>,
    /// How many more there were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<FurtherRefusals>,
}

/// A request that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRequest {
    /// When.
    pub at: Timestamp,
    /// Where it came from.
    pub from: Option<IpAddr>,
    /// Whose token came with it, if that is known.
    pub token: Option<String>,
    /// Why: the problem's code, or `hidden`.
    pub code: String,
    /// Method and path, cut if they were long.
    pub request: String,
}

/// Refusals that were only counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FurtherRefusals {
    /// Where they came from; none for all the other places.
    pub from: Option<IpAddr>,
    /// How many.
    pub count: u64,
}

/// When something was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastAt {
    /// When.
    pub at: Timestamp,
}

/// When the service last ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alive {
    /// When, by a clock that was trusted.
    pub at: Timestamp,
    /// The boot in which that was, where the system says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<Boot>,
}

/// A boot of the machine. In one and the same boot, the time of the boot changes only as far as the clock is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// The system's id of it.
    pub id: String,
    /// When it was, by the wall clock.
    pub at: Timestamp,
}

/// Which of an event's VMs have read it, as one process noted it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The event's scope.
    pub scope: ScopeId,
    /// First reads, in the order of VMs.
    pub reads: Vec<SeenRead>,
    /// Those of them that the record before did not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<NewRead>,
}

/// A VM that has read an event since the record before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewRead {
    /// The VM.
    pub vm: VmId,
    /// Its name.
    pub name: Name,
}

/// A VM's first read of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenRead {
    /// The VM.
    pub vm: VmId,
    /// When.
    pub at: Timestamp,
    /// At which api-version, as the query spells it.
    pub version: String,
}

/// Key of a scope.
pub fn scope(id: &ScopeId) -> Key {
    RecordKey::Scope(id.clone()).encode()
}

/// Key of a VM.
pub fn vm(id: VmId) -> Key {
    RecordKey::Vm(id).encode()
}

/// Key of a claim.
pub fn claim(address: &Address) -> Key {
    RecordKey::Claim { network: &address.network.folded(), ip: address.ip }.encode()
}

/// Key of an operation.
pub fn operation(id: OperationId) -> Key {
    RecordKey::Operation(id).encode()
}

/// Key of a command's record.
pub fn command(principal: &str, key: &str) -> Key {
    RecordKey::Command { principal, key }.encode()
}

/// Key of an ended event.
pub fn past(id: EventId) -> Key {
    RecordKey::Past(id).encode()
}

/// Key of an ended event in the index by time.
pub fn ended(at: Timestamp, event: EventId) -> Key {
    RecordKey::Ended { at, event }.encode()
}

/// Key of a batch of facts.
pub fn fact(at: Timestamp, node: &str, n: u64) -> Key {
    RecordKey::Fact(Written { at, node, n }).encode()
}

/// Where the batches of facts of a millisecond begin.
pub fn facts_at(at: Timestamp) -> String {
    format!("{}{:013}-", prefix::FACT, at.as_millisecond())
}

/// The event that a record of readers is of.
pub fn event_in_seen(key: &str) -> Option<EventId> {
    let (id, _) = key.strip_prefix(prefix::SEEN)?.split_once('/')?;
    uuid::Uuid::parse_str(id).ok().map(EventId)
}

/// Where the records of an event's readers begin.
pub fn seen_of(event: EventId) -> String {
    RecordKey::Seen { event, node: "" }.to_string()
}

/// Key of an event's readers as one process noted them.
pub fn seen(event: EventId, node: &str) -> Key {
    RecordKey::Seen { event, node }.encode()
}

/// The time in the key of a record of a kind whose keys begin with it: facts, refused requests, and the index of ended
/// events.
pub fn time_in_key(key: &str) -> Option<Timestamp> {
    match RecordKey::parse(key) {
        Ok(RecordKey::Fact(written) | RecordKey::Refused(written)) => Some(written.at),
        Ok(RecordKey::Ended { at, .. }) => Some(at),
        Ok(_) | Err(_) => None,
    }
}

/// The event that an entry in the index of ended events is of.
pub fn event_in_key(key: &str) -> Option<EventId> {
    match RecordKey::parse(key) {
        Ok(RecordKey::Ended { event, .. }) => Some(event),
        Ok(_) | Err(_) => None,
    }
}

/// Where the entries of the index that ended at a time or later begin.
pub fn ended_from(at: Timestamp) -> Key {
    format!("{}{:013}", prefix::ENDED, at.as_millisecond().max(0)).into()
}

/// Key of a batch of refused requests.
pub fn refused(at: Timestamp, node: &str, n: u64) -> Key {
    RecordKey::Refused(Written { at, node, n }).encode()
}

/// Key of when a scope was last heard of.
pub fn heard(id: &ScopeId) -> Key {
    RecordKey::Heard(id.clone()).encode()
}

/// Key of a token.
pub fn token(name: &Name) -> Key {
    RecordKey::Token(name.clone()).encode()
}

/// Why a record could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It was written by another release, at this level, or what stands there.
    #[error(
        "record {key} has format level {found}; this release reads levels {}: run the release that wrote it, or export from there",
        levels_read()
    )]
    Level { key: String, found: String },
    /// It is not what its key says.
    #[error("record {key} cannot be read: {why}")]
    Content { key: String, why: String },
}

/// A record as bytes.
pub fn encode<T: Serialize>(record: &T) -> Bytes {
    // Most records fit: they are written in one place, and then take exactly the bytes that they have.
    let mut bytes = Vec::with_capacity(1_000);
    bytes.extend_from_slice(FORMAT_PREFIX.as_bytes());
    // Writing to memory cannot fail, and none of our records has a map with keys that are not text.
    if serde_json::to_writer(&mut bytes, record).is_err() {
        debug_assert!(false, "a record that cannot be written as JSON");
    }
    Bytes::copy_from_slice(&bytes)
}

/// The levels that this release reads, for messages.
pub fn levels_read() -> String {
    FORMAT_LEVELS_READ.map(|level| level.to_string()).join(" and ")
}

/// A record's level and its JSON, if this release reads that level.
pub fn level_and_json(value: &[u8]) -> Option<(u32, &[u8])> {
    let (level, json) = value.split_at_checked(FORMAT_PREFIX.len())?;
    match level {
        b"2 " => Some((FORMAT_LEVEL, json)),
        b"1 " => Some((1, json)),
        _ => None,
    }
}

/// A record from bytes of any level that this release reads. What level 1 lacks has a default in the types.
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
