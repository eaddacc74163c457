//! Signed messages between nodes: HMAC-SHA256 over all parts, and a challenge for each connection.
//!
//! A message names its sender and its receiver as `name~epoch`: a node that restarted, or another node at the same
//! address, refuses it. No wall clock is compared.
//!
//! ```text
//! sender                             receiver
//! hello, nonce                  ──▶
//!                               ◀──  challenge: connection id, receiver's clock; signed with the nonce
//! hello, id, number 1           ──▶  now the sender has proved that it knows the key
//! message, id, number 2, …      ──▶
//! ```
//!
//! **Once.** The connection id is random. Every later message of the connection carries it, and a number that rises by
//! one. So a recorded message fits no other connection, and its own only once. A recorded hello gets a challenge that
//! is useless without the key.
//!
//! **In time.** Every message has a deadline by the receiver's monotonic clock. The sender estimates that clock: the
//! challenge's, plus the time since the challenge *arrived*. This is never ahead of the receiver's clock, so a message
//! is never carried out after its sender has given up, also if the sender, the receiver or the network stood still. Clocks
//! drift, so a thousandth is taken off, and connections are short-lived.
//!
//! This module is pure; times are arguments. Monotonic times are durations since the receiver's boot.

use std::time::Duration;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use notbefore_store::Revision;

use super::parts;
use crate::stored_key::StoredKey;

/// The protocol between nodes. A node refuses messages of another level. It is part of the path and of the signature.
pub const LEVEL: &str = "1";
/// Distinguishes messages from other uses of the key.
const MESSAGE: &[u8] = b"notbefore node message 1\0";
/// Distinguishes challenges from other uses of the key.
const CHALLENGE: &[u8] = b"notbefore node challenge 1\0";
/// Resolution of the monotonic clock ([`Clock::since_boot`](crate::clock::Clock::since_boot)): the receiver's clock may
/// be ahead of its reading by this much.
const CLOCK_TICK: Duration = Duration::from_millis(10);
/// One of so many parts of a time may be missing at the receiver: NTP slews each of two clocks by at most 500 ppm.
const CLOCK_DRIFT: u32 = 1_000;

/// 16 random bytes: the id of a connection, or the nonce of a hello.
pub type ConnectionId = [u8; 16];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first two messages of a connection: one asks for a challenge, one answers it.
    Hello,
    /// A request of an operator.
    Operator,
    /// An approval of a guest.
    Approval,
    /// A digest of polls.
    Digest,
    /// Refused requests and uses of tokens.
    Audit,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Hello, Self::Operator, Self::Approval, Self::Digest, Self::Audit];

    pub fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Operator => "operator",
            Self::Approval => "approval",
            Self::Digest => "digest",
            Self::Audit => "audit",
        }
    }
}

/// A message, without its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub kind: Kind,
    /// The sender as `name~epoch`.
    pub sender: String,
    /// The receiver as `name~epoch`: the process that led when the message was sent.
    pub receiver: String,
    pub stamp: Stamp,
    /// A digest of the polls that precede the message; empty if there is none.
    pub notes: Bytes,
    /// By kind.
    pub content: Bytes,
}

/// The place of a message on its connection, and how long it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// From the challenge; a nonce in the first hello.
    pub connection: ConnectionId,
    /// 0 in the first hello, then rising by one.
    pub number: u64,
    /// By the receiver's monotonic clock, in whole milliseconds. Unused in the first hello.
    pub deadline: Duration,
}

/// A message as bytes, and their signature in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    pub bytes: Bytes,
    pub signature: String,
}

impl Message {
    /// The first message of a connection.
    pub fn hello(sender: String, receiver: String, nonce: ConnectionId) -> Self {
        let stamp = Stamp { connection: nonce, ..Stamp::default() };
        Self { kind: Kind::Hello, sender, receiver, stamp, notes: Bytes::new(), content: Bytes::new() }
    }

    /// None if it is too long to encode.
    pub fn sign(&self, key: &StoredKey) -> Option<Signed> {
        let Stamp { connection, number, deadline } = &self.stamp;
        let (number, deadline) = (number.to_be_bytes(), millis(*deadline));
        let (sender, receiver) = (self.sender.as_bytes(), self.receiver.as_bytes());
        let kind = self.kind.name().as_bytes();
        let bytes = parts::encode([
            kind,
            sender,
            receiver,
            connection,
            &number,
            &deadline,
            &self.notes,
            &self.content,
        ])?;
        let signature = HEXLOWER.encode(&key.sign(MESSAGE, &bytes));
        Some(Signed { bytes, signature })
    }

    fn decode(bytes: Bytes) -> Option<Self> {
        let [kind, sender, receiver, connection, number, deadline, notes, content]: [Bytes; 8] =
            parts::decode(bytes)?.try_into().ok()?;
        let text = |bytes: Bytes| String::from_utf8(bytes.into()).ok();
        let integer = |bytes: Bytes| Some(u64::from_be_bytes(bytes.as_ref().try_into().ok()?));
        let stamp = Stamp {
            connection: connection.as_ref().try_into().ok()?,
            number: integer(number)?,
            deadline: Duration::from_millis(integer(deadline)?),
        };
        Some(Self {
            kind: Kind::ALL.into_iter().find(|known| known.name().as_bytes() == kind)?,
            sender: text(sender)?,
            receiver: text(receiver)?,
            stamp,
            notes,
            content,
        })
    }
}

fn millis(duration: Duration) -> [u8; 8] {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).to_be_bytes()
}

/// The receiver's answer to the first hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    pub connection: ConnectionId,
    /// The receiver's monotonic clock, in whole milliseconds.
    pub clock: Duration,
}

impl Challenge {
    /// The challenge as bytes. Only a node with the key can make them, and they are for one hello.
    pub fn sign(&self, key: &StoredKey, hello: &Message) -> Bytes {
        let bytes = [&self.connection[..], &millis(self.clock)].concat();
        let signature = key.sign(CHALLENGE, &Self::signed(&bytes, hello));
        [&bytes[..], signature.as_ref()].concat().into()
    }

    /// None if the bytes are not the answer to this hello by a node with the key.
    pub fn open(key: &StoredKey, hello: &Message, bytes: &[u8]) -> Option<Self> {
        let (bytes, signature) = bytes.split_at_checked(size_of::<ConnectionId>() + size_of::<u64>())?;
        if !key.verify(CHALLENGE, &Self::signed(bytes, hello), signature) {
            return None;
        }
        let (connection, clock) = bytes.split_first_chunk()?;
        let clock = Duration::from_millis(u64::from_be_bytes(clock.try_into().ok()?));
        Some(Self { connection: *connection, clock })
    }

    /// All but the receiver have fixed lengths, so this is unambiguous.
    fn signed(bytes: &[u8], hello: &Message) -> Vec<u8> {
        [bytes, &hello.stamp.connection, hello.receiver.as_bytes()].concat()
    }

    /// The stamp of a message that counts for `left`. `since_arrival` is the time since the challenge arrived; the caller
    /// reads it before `left`, so that a pause in between shortens the deadline.
    pub fn stamp(&self, number: u64, since_arrival: Duration, left: Duration) -> Stamp {
        let later = since_arrival.saturating_add(left);
        let deadline = self.clock.saturating_add(later - later / CLOCK_DRIFT);
        Stamp { connection: self.connection, number, deadline }
    }
}

/// The receiver's side of a connection: which message comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    connection: ConnectionId,
    next: u64,
}

impl Sequence {
    /// After the first hello.
    pub fn new(challenge: &Challenge) -> Self {
        Self { connection: challenge.connection, next: 1 }
    }

    /// Accepts a message that [`open`] has accepted, once. `now` is this node's monotonic clock. The number of a late
    /// message counts as used.
    pub fn accept(&mut self, stamp: &Stamp, now: Duration) -> Result<(), Refused> {
        if (stamp.connection, stamp.number) != (self.connection, self.next) {
            return Err(Refused::Replayed);
        }
        self.next += 1;
        match now.saturating_add(CLOCK_TICK).checked_sub(stamp.deadline) {
            Some(late) if !late.is_zero() => Err(Refused::Late(late)),
            Some(_) | None => Ok(()),
        }
    }
}

/// Why a message is refused. Nothing of it was carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("this node speaks level {LEVEL} of the node protocol, not {0}: run releases that share a level")]
    Level(String),
    #[error("the message exceeds {0} bytes")]
    TooLarge(usize),
    #[error("the message did not arrive completely")]
    Incomplete,
    #[error(
        "the signature does not match the key in the store: all nodes of a cluster must use the same store"
    )]
    Signature,
    #[error("the message cannot be parsed")]
    Malformed,
    #[error("the message is for {asked}, and this node is {me}")]
    OtherNode { asked: String, me: String },
    #[error("this node does not lead the cluster")]
    NotLeader,
    #[error(
        "the message arrived {0:?} after its deadline; check the load of both nodes and the network between them"
    )]
    Late(Duration),
    #[error(
        "the message is not the next one of this connection: it was received before, or belongs to another connection"
    )]
    Replayed,
    #[error("a connection must begin with two hellos: one gets a challenge, one answers it")]
    NoHello,
    #[error("{0} are open, which is the limit")]
    TooManyConnections(String),
    #[error("this node has no key for messages: the leader creates it when it takes the lead")]
    NoKey,
    #[error("the system gives no random bytes for a challenge")]
    NoRandomBytes,
    #[error("this node's watch has not shown revision {0} yet, which the sender has shown its callers")]
    Behind(Revision),
}

impl Refused {
    /// All values of [`Self::code`].
    pub const CODES: [&str; 14] = [
        "level",
        "too_large",
        "incomplete",
        SIGNATURE_CODE,
        "malformed",
        "other_node",
        "not_leader",
        "late",
        "replayed",
        "no_hello",
        "too_many_connections",
        "no_key",
        "no_random_bytes",
        BEHIND_CODE,
    ];

    /// A stable identifier, for the sender and the metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Level(_) => "level",
            Self::TooLarge(_) => "too_large",
            Self::Incomplete => "incomplete",
            Self::Signature => SIGNATURE_CODE,
            Self::Malformed => "malformed",
            Self::OtherNode { .. } => "other_node",
            Self::NotLeader => "not_leader",
            Self::Late(_) => "late",
            Self::Replayed => "replayed",
            Self::NoHello => "no_hello",
            Self::TooManyConnections(_) => "too_many_connections",
            Self::NoKey => "no_key",
            Self::NoRandomBytes => "no_random_bytes",
            Self::Behind(_) => BEHIND_CODE,
        }
    }
}

/// Why a message was refused, for the caller of the sender, by the code in the answer. The answer's own text is for the
/// log: the process that sent it may not be the leader.
pub fn why_refused(code: &str) -> &'static str {
    match code {
        "level" => "it speaks another level of the node protocol; run releases that share a level",
        "too_large" => "it takes no message of this size",
        "incomplete" => "the message did not arrive completely; check the network between the nodes",
        SIGNATURE_CODE => OTHER_KEY,
        "malformed" => "it cannot parse the message",
        "other_node" => "it has restarted, or another node has its address",
        "not_leader" => "it does not lead any more",
        "late" => {
            "the message arrived after its deadline; check the load of both nodes and the network between them"
        }
        "replayed" | "no_hello" => "the connection did not begin as it must",
        "too_many_connections" => "this node has too many connections to it",
        "no_key" => "it has no key for messages yet",
        "no_random_bytes" => "its system gives no random bytes",
        BEHIND_CODE => "it has not seen yet what this node has shown",
        // Of a later release, or no refusal of a node.
        _ => "its answer is none that this release knows; the log has its text",
    }
}

/// See [`why_refused`].
pub const OTHER_KEY: &str = "it has another key; all nodes of a cluster must use the same store";

/// The code of [`Refused::Signature`]: the sender then reads the key again.
pub const SIGNATURE_CODE: &str = "signature";
/// The code of [`Refused::Behind`].
pub const BEHIND_CODE: &str = "behind";

/// Checks signature and receiver. [`Sequence::accept`] checks the stamp.
pub fn open(key: &StoredKey, me: &str, signed: Signed) -> Result<Message, Refused> {
    let Signed { bytes, signature } = signed;
    let given = HEXLOWER.decode(signature.as_bytes()).map_err(|_| Refused::Signature)?;
    if !key.verify(MESSAGE, &bytes, &given) {
        return Err(Refused::Signature);
    }
    let message = Message::decode(bytes).ok_or(Refused::Malformed)?;
    match message.receiver == me {
        true => Ok(message),
        false => Err(Refused::OtherNode { asked: message.receiver, me: me.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_says_why() {
        let unknown = why_refused("of_a_later_release");
        for code in Refused::CODES {
            assert_ne!(why_refused(code), unknown, "{code}");
        }
    }

    fn key() -> StoredKey {
        StoredKey::of(&[7; 32]).unwrap()
    }

    fn stamp(number: u64, deadline_ms: u64) -> Stamp {
        Stamp { connection: [9; 16], number, deadline: Duration::from_millis(deadline_ms) }
    }

    fn message() -> Message {
        Message {
            kind: Kind::Operator,
            sender: "b~2".to_owned(),
            receiver: "a~1".to_owned(),
            stamp: stamp(3, 1_000),
            notes: Bytes::from_static(b"notes"),
            content: Bytes::from_static(b"content"),
        }
    }

    fn signed() -> Signed {
        message().sign(&key()).unwrap()
    }

    #[test]
    fn signed_message_opens_unchanged() {
        for kind in Kind::ALL {
            let message = Message { kind, ..message() };
            assert_eq!(open(&key(), "a~1", message.sign(&key()).unwrap()), Ok(message));
        }
    }

    #[test]
    fn any_changed_byte_is_refused() {
        let Signed { bytes, signature } = signed();
        for position in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.to_vec();
                changed[position] ^= 1 << bit;
                let changed = Signed { bytes: changed.into(), signature: signature.clone() };
                assert_eq!(open(&key(), "a~1", changed), Err(Refused::Signature), "{position}");
            }
        }
        for position in 0..signature.len() {
            let mut changed = signature.clone().into_bytes();
            changed[position] = if changed[position] == b'0' { b'1' } else { b'0' };
            let changed = Signed { bytes: bytes.clone(), signature: String::from_utf8(changed).unwrap() };
            assert_eq!(open(&key(), "a~1", changed), Err(Refused::Signature), "{position}");
        }
        for length in 0..bytes.len() {
            let cut = Signed { bytes: bytes.slice(..length), signature: signature.clone() };
            assert_eq!(open(&key(), "a~1", cut), Err(Refused::Signature), "{length}");
        }
        for signature in ["", "zz", &signature[..62], &signature.to_uppercase()] {
            let other = Signed { bytes: bytes.clone(), signature: signature.to_owned() };
            assert_eq!(open(&key(), "a~1", other), Err(Refused::Signature), "{signature}");
        }
    }

    #[test]
    fn parts_cannot_move_between_fields() {
        let one =
            Message { notes: Bytes::from_static(b"ab"), content: Bytes::from_static(b"c"), ..message() };
        let other =
            Message { notes: Bytes::from_static(b"a"), content: Bytes::from_static(b"bc"), ..message() };
        assert_ne!(one.sign(&key()).unwrap().signature, other.sign(&key()).unwrap().signature);
    }

    #[test]
    fn other_key_or_epoch_is_refused() {
        let other = StoredKey::of(&[8; 32]).unwrap();
        assert_eq!(open(&other, "a~1", signed()), Err(Refused::Signature));
        for me in ["a~2", "b~1", "a", ""] {
            let refused = open(&key(), me, signed()).unwrap_err();
            assert_eq!(refused.code(), "other_node", "{refused}");
        }
    }

    #[test]
    fn signed_garbage_is_malformed() {
        let sign = |bytes: Bytes| Signed { signature: HEXLOWER.encode(&key().sign(MESSAGE, &bytes)), bytes };
        let parts = |kind: &[u8], nonce: &[u8]| {
            parts::encode([kind, b"b~2", b"a~1", nonce, &[0; 8], &[0; 8], b"", b""]).unwrap()
        };
        assert!(open(&key(), "a~1", sign(parts(b"hello", &[0; 16]))).is_ok());
        let (wrong_kind, short) = (parts(b"other", &[0; 16]), parts(b"hello", &[0; 15]));
        for bytes in [Bytes::new(), Bytes::from_static(b"x"), wrong_kind, short] {
            assert_eq!(open(&key(), "a~1", sign(bytes.clone())), Err(Refused::Malformed), "{bytes:?}");
        }
    }

    const CLOCK: Duration = Duration::from_secs(1_000);

    fn challenge() -> Challenge {
        Challenge { connection: [9; 16], clock: CLOCK }
    }

    #[test]
    fn message_is_accepted_once_on_its_connection() {
        let mut sequence = Sequence::new(&challenge());
        let far = 9_000_000;
        for number in 1..4 {
            assert_eq!(sequence.accept(&stamp(number, far), CLOCK), Ok(()));
            for replayed in [number, number - 1, 0, number + 2] {
                assert_eq!(sequence.accept(&stamp(replayed, far), CLOCK), Err(Refused::Replayed));
            }
        }
        let elsewhere = Stamp { connection: [8; 16], ..stamp(4, far) };
        assert_eq!(sequence.accept(&elsewhere, CLOCK), Err(Refused::Replayed));
        assert_eq!(sequence.accept(&stamp(4, far), CLOCK), Ok(()));
    }

    #[test]
    fn late_message_is_refused_and_its_number_is_used() {
        let seconds = Duration::from_secs;
        // The sender computes the stamp 3 s after the challenge, and stands still before it sends. Of 2 s, 10 ms are the
        // clock's resolution, and 5 ms its drift within 5 s.
        for (stopped, is_accepted) in [(0, true), (1_985, true), (1_986, false), (20_000, false)] {
            let mut sequence = Sequence::new(&challenge());
            let stamp = challenge().stamp(1, seconds(3), seconds(2));
            let now = CLOCK + seconds(3) + Duration::from_millis(stopped);
            let accepted = sequence.accept(&stamp, now);
            assert_eq!(accepted.is_ok(), is_accepted, "{stopped}: {accepted:?}");
            assert_eq!(sequence.accept(&stamp, CLOCK), Err(Refused::Replayed), "{stopped}");
        }
        let mut sequence = Sequence::new(&challenge());
        let late = sequence.accept(&challenge().stamp(1, seconds(0), seconds(1)), CLOCK + seconds(4));
        let late = late.unwrap_err().to_string();
        assert!(late.contains("3.011s after its deadline") && late.contains("the load of both"), "{late}");
    }

    #[test]
    fn challenge_is_for_one_hello() {
        let hello = Message::hello("b~2".to_owned(), "a~1".to_owned(), [7; 16]);
        let bytes = challenge().sign(&key(), &hello);
        assert_eq!(Challenge::open(&key(), &hello, &bytes), Some(challenge()));
        for other in [
            Message::hello("b~2".to_owned(), "a~1".to_owned(), [8; 16]),
            Message::hello("b~2".to_owned(), "a~2".to_owned(), [7; 16]),
        ] {
            assert_eq!(Challenge::open(&key(), &other, &bytes), None);
        }
        assert_eq!(Challenge::open(&StoredKey::of(&[8; 32]).unwrap(), &hello, &bytes), None);
        for position in 0..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[position] ^= 1;
            assert_eq!(Challenge::open(&key(), &hello, &changed), None, "{position}");
            assert_eq!(Challenge::open(&key(), &hello, &bytes[..position]), None, "{position}");
        }
    }
}
