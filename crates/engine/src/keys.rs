//! Record keys: a typed parser and encoder. `records` has the table of kinds.
//!
//! Keys are parsed only by [`RecordKey::parse`]. Code then matches on the kind without a wildcard, so the compiler
//! reports every place that a new kind of record affects.

use std::fmt;
use std::net::IpAddr;

use jiff::Timestamp;
use notbefore_core::{EventId, Name, OperationId, ScopeId, ScopePath, VmId};
use notbefore_store::Key;
use uuid::Uuid;

use crate::cluster::{CLUSTER, FORMAT, LEADER, NODE};
use crate::records::{ALIVE, SWEPT, prefix};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordKey<'a> {
    Scope(ScopeId),
    Vm(VmId),
    /// An address of a VM. The network is case-folded.
    Claim {
        network: &'a str,
        ip: IpAddr,
    },
    Operation(OperationId),
    /// A host, by its name.
    Host(&'a str),
    /// The idempotency record of a command.
    Command {
        principal: &'a str,
        key: &'a str,
    },
    /// The facts of one commit.
    Fact(Written<'a>),
    /// Refused requests.
    Refused(Written<'a>),
    /// An ended event.
    Past(EventId),
    /// An ended event in the index by time.
    Ended {
        at: Timestamp,
        event: EventId,
    },
    /// First reads of an event, as recorded by one process.
    Seen {
        event: EventId,
        node: &'a str,
    },
    /// The last poll of a scope.
    Heard(ScopeId),
    /// The heartbeat of the service.
    Alive,
    /// The time of the last cleanup.
    Swept,
    Token(Name),
    /// A secret of the service itself, which is never exported.
    Secret(&'a str),
    /// The format level of the cluster.
    ClusterFormat,
    /// The leader of the cluster.
    Leader,
    /// The heartbeat of a node of the cluster, by its name.
    ClusterNode(&'a str),
}

/// A batch that one process wrote, with the time in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written<'a> {
    /// Not before 1970.
    pub at: Timestamp,
    /// The process.
    pub node: &'a str,
    /// The process's counter.
    pub n: u64,
}

/// Why a text is not a record key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A newer release may know it.
    #[error("unknown kind of key in this release")]
    UnknownKind,
    /// The kind is known, the rest is not valid for it.
    #[error("malformed key")]
    Malformed,
}

impl<'a> RecordKey<'a> {
    pub fn parse(key: &'a str) -> Result<Self, KeyError> {
        let Some((kind, rest)) = key.find('/').map(|slash| key.split_at(slash + 1)) else {
            return match key {
                ALIVE => Ok(Self::Alive),
                SWEPT => Ok(Self::Swept),
                _ => Err(KeyError::UnknownKind),
            };
        };
        let read = match kind {
            prefix::SCOPE => scope(rest).map(Self::Scope),
            prefix::VM => uuid(rest).map(|id| Self::Vm(VmId(id))),
            prefix::CLAIM => rest
                .split_once('/')
                .and_then(|(network, ip)| Some(Self::Claim { network, ip: ip.parse().ok()? })),
            prefix::OPERATION => uuid(rest).map(|id| Self::Operation(OperationId(id))),
            prefix::HOST => Some(rest).filter(|name| !name.is_empty()).map(Self::Host),
            prefix::COMMAND => rest.split_once('/').map(|(principal, key)| Self::Command { principal, key }),
            prefix::FACT => Written::parse(rest).map(Self::Fact),
            prefix::REFUSED => Written::parse(rest).map(Self::Refused),
            prefix::PAST => uuid(rest).map(|id| Self::Past(EventId(id))),
            prefix::ENDED => rest
                .split_once('/')
                .and_then(|(at, event)| Some(Self::Ended { at: time(at)?, event: EventId(uuid(event)?) })),
            prefix::SEEN => rest
                .split_once('/')
                .and_then(|(event, node)| Some(Self::Seen { event: EventId(uuid(event)?), node })),
            prefix::HEARD => scope(rest).map(Self::Heard),
            prefix::TOKEN => rest.parse().ok().map(Self::Token),
            prefix::SECRET => Some(rest).filter(|name| !name.is_empty()).map(Self::Secret),
            CLUSTER if key == LEADER => Some(Self::Leader),
            CLUSTER if key == FORMAT => Some(Self::ClusterFormat),
            CLUSTER => key.strip_prefix(NODE).filter(|name| !name.is_empty()).map(Self::ClusterNode),
            _ => return Err(KeyError::UnknownKind),
        };
        read.ok_or(KeyError::Malformed)
    }

    /// The key as stored.
    pub fn encode(&self) -> Key {
        self.to_string().into()
    }
}

impl<'a> Written<'a> {
    fn parse(rest: &'a str) -> Option<Self> {
        let (at, rest) = rest.split_once('-')?;
        let (node, n) = rest.rsplit_once('-')?;
        Some(Self { at: time(at)?, node, n: n.parse().ok()? })
    }
}

fn scope(path: &str) -> Option<ScopeId> {
    Some(path.parse::<ScopePath>().ok()?.id())
}

fn uuid(text: &str) -> Option<Uuid> {
    Uuid::parse_str(text).ok()
}

fn time(millis: &str) -> Option<Timestamp> {
    Timestamp::from_millisecond(millis.parse().ok()?).ok()
}

impl fmt::Display for RecordKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scope(id) => write!(f, "{}{id}", prefix::SCOPE),
            Self::Vm(id) => write!(f, "{}{id}", prefix::VM),
            Self::Claim { network, ip } => write!(f, "{}{network}/{ip}", prefix::CLAIM),
            Self::Operation(id) => write!(f, "{}{id}", prefix::OPERATION),
            Self::Host(name) => write!(f, "{}{name}", prefix::HOST),
            Self::Command { principal, key } => write!(f, "{}{principal}/{key}", prefix::COMMAND),
            Self::Fact(written) => write!(f, "{}{written}", prefix::FACT),
            Self::Refused(written) => write!(f, "{}{written}", prefix::REFUSED),
            Self::Past(id) => write!(f, "{}{id}", prefix::PAST),
            Self::Ended { at, event } => write!(f, "{}{:013}/{event}", prefix::ENDED, at.as_millisecond()),
            Self::Seen { event, node } => write!(f, "{}{event}/{node}", prefix::SEEN),
            Self::Heard(id) => write!(f, "{}{id}", prefix::HEARD),
            Self::Alive => f.write_str(ALIVE),
            Self::Swept => f.write_str(SWEPT),
            Self::Token(name) => write!(f, "{}{}", prefix::TOKEN, name.folded()),
            Self::Secret(name) => write!(f, "{}{name}", prefix::SECRET),
            Self::Leader => f.write_str(LEADER),
            Self::ClusterFormat => f.write_str(FORMAT),
            Self::ClusterNode(name) => write!(f, "{NODE}{name}"),
        }
    }
}

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:013}-{}-{}", self.at.as_millisecond(), self.node, self.n)
    }
}

#[cfg(test)]
mod tests {
    use notbefore_core::samples::{event_id, operation_id, scope_id, vm};
    use proptest::prelude::*;

    use super::*;

    /// Every kind of key, with random parts.
    fn keys(id: u128, millis: i64, n: u64, text: &str, ip: IpAddr, kind: usize) -> Option<RecordKey<'_>> {
        let at = Timestamp::from_millisecond(millis).unwrap();
        let written = Written { at, node: text, n };
        let all = [
            RecordKey::Scope(scope_id(&format!("{text}/b/{text}"))),
            RecordKey::Vm(vm(id)),
            RecordKey::Claim { network: text, ip },
            RecordKey::Operation(operation_id(id)),
            RecordKey::Command { principal: text, key: text },
            RecordKey::Fact(written),
            RecordKey::Refused(written),
            RecordKey::Past(event_id(id)),
            RecordKey::Ended { at, event: event_id(id) },
            RecordKey::Seen { event: event_id(id), node: text },
            RecordKey::Heard(scope_id(text)),
            RecordKey::Alive,
            RecordKey::Swept,
            RecordKey::Token(text.parse().unwrap()),
            RecordKey::Secret(text),
            RecordKey::Leader,
            RecordKey::ClusterFormat,
            RecordKey::ClusterNode(text),
            RecordKey::Host(text),
        ];
        all.into_iter().nth(kind)
    }

    proptest! {
        #[test]
        fn key_round_trips(
            id: u128,
            millis in 0i64..253_000_000_000_000,
            n: u64,
            text in "[a-z0-9._][a-z0-9._-]{0,19}",
            ip: IpAddr,
        ) {
            let mut kinds = 0;
            while let Some(key) = keys(id, millis, n, &text, ip, kinds) {
                let written = key.encode();
                prop_assert_eq!(RecordKey::parse(&written), Ok(key));
                kinds += 1;
            }
            prop_assert_eq!(kinds, 19);
        }

        #[test]
        fn parse_accepts_any_text_without_panic(kind in 0usize..19, rest in ".{0,60}") {
            let known = keys(1, 2, 3, "x", IpAddr::from([10, 0, 0, 1]), kind).unwrap().to_string();
            let kind = known.split_inclusive('/').next().unwrap_or_default();
            let _ = RecordKey::parse(&format!("{kind}{rest}"));
            let _ = RecordKey::parse(&rest);
        }
    }

    #[test]
    fn key_text_is_stable() {
        let (id, at) = ("00000000-0000-0000-0000-000000000007", Timestamp::from_millisecond(5).unwrap());
        let written = Written { at, node: "ab12", n: 3 };
        for (key, text) in [
            (RecordKey::Scope(scope_id("Web")), "scope/default/default/web"),
            (RecordKey::Vm(vm(7)), &format!("vm/{id}")),
            (RecordKey::Claim { network: "blue", ip: [10, 0, 0, 1].into() }, "claim/blue/10.0.0.1"),
            (RecordKey::Command { principal: "root", key: "k" }, "command/root/k"),
            (RecordKey::Fact(written), "fact/0000000000005-ab12-3"),
            (RecordKey::Refused(written), "refused/0000000000005-ab12-3"),
            (RecordKey::Ended { at, event: event_id(7) }, &format!("ended/0000000000005/{id}")),
            (RecordKey::Seen { event: event_id(7), node: "ab12" }, &format!("seen/{id}/ab12")),
            (RecordKey::Token("Root".parse().unwrap()), "token/root"),
            (RecordKey::Secret("link/ab"), "secret/link/ab"),
            (RecordKey::Leader, "cluster/leader"),
            (RecordKey::ClusterFormat, "cluster/format"),
            (RecordKey::ClusterNode("a"), "cluster/node/a"),
            (RecordKey::Host("rack 1/h7"), "host/rack 1/h7"),
        ] {
            assert_eq!(key.to_string(), text);
        }
        for (text, error) in [
            ("other/x", KeyError::UnknownKind),
            ("scope", KeyError::UnknownKind),
            ("", KeyError::UnknownKind),
            ("vm/x", KeyError::Malformed),
            ("scope/a/b/c/d", KeyError::Malformed),
            ("claim/blue", KeyError::Malformed),
            ("fact/5-ab12", KeyError::Malformed),
            ("ended/x/y", KeyError::Malformed),
            ("token/a b", KeyError::Malformed),
            ("secret/", KeyError::Malformed),
            ("cluster/node/", KeyError::Malformed),
            ("cluster/x", KeyError::Malformed),
            ("host/", KeyError::Malformed),
        ] {
            assert_eq!(RecordKey::parse(text), Err(error), "{text}");
        }
    }
}
