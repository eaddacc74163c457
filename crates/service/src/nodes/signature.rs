//! Signed messages between nodes: HMAC-SHA256 over all parts, a clock window and nonces.
//!
//! A message names its sender and its receiver as `name~epoch`, when it was sent, and a random nonce. The receiver takes
//! a message once, within [`CLOCK_MAX`] of its own clock, and only if it names this process: a node that restarted, or
//! another node at the same address, refuses it. This module is pure; the time is an argument.

use std::collections::BTreeSet;
use std::fmt;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use jiff::{SignedDuration, Timestamp};

use super::parts;
use crate::stored_key::StoredKey;

/// The protocol between nodes. A node refuses messages of another level. It is part of the path and of the signature.
pub const LEVEL: &str = "1";
/// Distinguishes messages from other uses of the key.
const MESSAGE: &[u8] = b"notbefore node message 1\0";
/// Distinguishes the receiver's proof from other uses of the key.
const PROOF: &[u8] = b"notbefore node proof 1\0";
/// Largest difference between the time of a message and the receiver's clock.
pub const CLOCK_MAX: SignedDuration = SignedDuration::from_secs(30);
/// How long nonces are kept: a message is valid from 30 s before its time to 30 s after it.
const NONCES_KEPT: SignedDuration = SignedDuration::from_secs(60);
/// Most nonces: 4,000 messages a second for a minute, about 10 MB. Above it, messages are refused.
pub const NONCES_MAX: usize = 240_000;

pub type Nonce = [u8; 16];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first message of a connection. The answer proves that the receiver knows the key.
    Hello,
    /// A request of an operator.
    Operator,
    /// An approval of a guest.
    Approval,
    /// A digest of polls.
    Digest,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Hello, Self::Operator, Self::Approval, Self::Digest];

    pub fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Operator => "operator",
            Self::Approval => "approval",
            Self::Digest => "digest",
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
    pub sent_at: Timestamp,
    pub nonce: Nonce,
    /// A digest of the polls that precede the message; empty if there is none.
    pub notes: Bytes,
    /// By kind.
    pub content: Bytes,
}

/// A message as bytes, and their signature in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    pub bytes: Bytes,
    pub signature: String,
}

impl Message {
    /// None if it is too long to encode.
    pub fn sign(&self, key: &StoredKey) -> Option<Signed> {
        let sent_at = self.sent_at.as_millisecond().to_be_bytes();
        let (sender, receiver) = (self.sender.as_bytes(), self.receiver.as_bytes());
        let kind = self.kind.name().as_bytes();
        let bytes =
            parts::encode([kind, sender, receiver, &sent_at, &self.nonce, &self.notes, &self.content])?;
        let signature = HEXLOWER.encode(&key.sign(MESSAGE, &bytes));
        Some(Signed { bytes, signature })
    }

    fn decode(bytes: Bytes) -> Option<Self> {
        let [kind, sender, receiver, sent_at, nonce, notes, content]: [Bytes; 7] =
            parts::decode(bytes)?.try_into().ok()?;
        let text = |bytes: Bytes| String::from_utf8(bytes.into()).ok();
        let sent_at = i64::from_be_bytes(sent_at.as_ref().try_into().ok()?);
        Some(Self {
            kind: Kind::ALL.into_iter().find(|known| known.name().as_bytes() == kind)?,
            sender: text(sender)?,
            receiver: text(receiver)?,
            sent_at: Timestamp::from_millisecond(sent_at).ok()?,
            nonce: nonce.as_ref().try_into().ok()?,
            notes,
            content,
        })
    }
}

/// The receiver's answer to a hello: only a node with the key can make it.
pub fn proof(key: &StoredKey, hello: &Message) -> String {
    HEXLOWER.encode(&key.sign(PROOF, &proven(hello)))
}

/// Whether the answer to a hello is a proof.
pub fn is_proof(key: &StoredKey, hello: &Message, given: &[u8]) -> bool {
    HEXLOWER.decode(given).is_ok_and(|given| key.verify(PROOF, &proven(hello), &given))
}

/// The nonce has a fixed length, so this is unambiguous.
fn proven(hello: &Message) -> Vec<u8> {
    [&hello.nonce, hello.receiver.as_bytes()].concat()
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
    #[error("the message is {0:#} off this node's clock, {CLOCK_MAX:#} is the limit: set the clocks by NTP")]
    Clock(SignedDuration),
    #[error("the message was received before")]
    Replayed,
    #[error("{NONCES_MAX} messages arrived within a minute, which is the limit; repeat the message later")]
    TooMany,
    #[error("the first message of a connection must be a hello")]
    NoHello,
    #[error("{0} are open, which is the limit")]
    TooManyConnections(String),
    #[error("this node has no key for messages: the leader creates it when it takes the lead")]
    NoKey,
}

impl Refused {
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
            Self::Clock(_) => "clock",
            Self::Replayed => "replayed",
            Self::TooMany => "too_many",
            Self::NoHello => "no_hello",
            Self::TooManyConnections(_) => "too_many_connections",
            Self::NoKey => "no_key",
        }
    }
}

/// The code of [`Refused::Signature`]: the sender then reads the key again.
pub const SIGNATURE_CODE: &str = "signature";

/// Checks signature, receiver and time. Nonces are checked by [`Nonces::accept`], after everything else.
pub fn open(key: &StoredKey, me: &str, signed: Signed, now: Timestamp) -> Result<Message, Refused> {
    let Signed { bytes, signature } = signed;
    let given = HEXLOWER.decode(signature.as_bytes()).map_err(|_| Refused::Signature)?;
    if !key.verify(MESSAGE, &bytes, &given) {
        return Err(Refused::Signature);
    }
    let message = Message::decode(bytes).ok_or(Refused::Malformed)?;
    if message.receiver != me {
        return Err(Refused::OtherNode { asked: message.receiver, me: me.to_owned() });
    }
    let off = message.sent_at.duration_since(now);
    match off.abs() > CLOCK_MAX {
        true => Err(Refused::Clock(off.abs())),
        false => Ok(message),
    }
}

/// The nonces of accepted messages, in the order of the messages' times.
#[derive(Default)]
pub struct Nonces {
    seen: BTreeSet<(Timestamp, Nonce)>,
    /// Messages up to this time are refused: their nonces are forgotten. Without it, a clock that is set back would
    /// let them in again.
    forgotten_to: Option<Timestamp>,
}

impl fmt::Debug for Nonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nonces").field("seen", &self.seen.len()).finish_non_exhaustive()
    }
}

impl Nonces {
    /// Accepts a message that [`open`] has accepted, once.
    pub fn accept(&mut self, message: &Message, now: Timestamp) -> Result<(), Refused> {
        let oldest = now.checked_sub(NONCES_KEPT).unwrap_or(Timestamp::MIN);
        while self.seen.first().is_some_and(|(sent_at, _)| *sent_at < oldest) {
            self.forgotten_to = self.seen.pop_first().map(|(sent_at, _)| sent_at).max(self.forgotten_to);
        }
        if self.forgotten_to.is_some_and(|forgotten_to| message.sent_at <= forgotten_to) {
            return Err(Refused::Replayed);
        }
        let seen = (message.sent_at, message.nonce);
        if self.seen.contains(&seen) {
            return Err(Refused::Replayed);
        }
        if self.seen.len() >= NONCES_MAX {
            return Err(Refused::TooMany);
        }
        self.seen.insert(seen);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).unwrap()
    }

    fn key() -> StoredKey {
        StoredKey::of(&[7; 32]).unwrap()
    }

    fn message() -> Message {
        Message {
            kind: Kind::Operator,
            sender: "b~2".to_owned(),
            receiver: "a~1".to_owned(),
            sent_at: at(0),
            nonce: [9; 16],
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
            assert_eq!(open(&key(), "a~1", message.sign(&key()).unwrap(), at(0)), Ok(message));
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
                assert_eq!(open(&key(), "a~1", changed, at(0)), Err(Refused::Signature), "{position}");
            }
        }
        for position in 0..signature.len() {
            let mut changed = signature.clone().into_bytes();
            changed[position] = if changed[position] == b'0' { b'1' } else { b'0' };
            let changed = Signed { bytes: bytes.clone(), signature: String::from_utf8(changed).unwrap() };
            assert_eq!(open(&key(), "a~1", changed, at(0)), Err(Refused::Signature), "{position}");
        }
        for length in 0..bytes.len() {
            let cut = Signed { bytes: bytes.slice(..length), signature: signature.clone() };
            assert_eq!(open(&key(), "a~1", cut, at(0)), Err(Refused::Signature), "{length}");
        }
        for signature in ["", "zz", &signature[..62], &signature.to_uppercase()] {
            let other = Signed { bytes: bytes.clone(), signature: signature.to_owned() };
            assert_eq!(open(&key(), "a~1", other, at(0)), Err(Refused::Signature), "{signature}");
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
    fn other_key_epoch_or_time_is_refused() {
        let other = StoredKey::of(&[8; 32]).unwrap();
        assert_eq!(open(&other, "a~1", signed(), at(0)), Err(Refused::Signature));
        for me in ["a~2", "b~1", "a", ""] {
            let refused = open(&key(), me, signed(), at(0)).unwrap_err();
            assert_eq!(refused.code(), "other_node", "{refused}");
        }
        for (second, is_accepted) in
            [(-31, false), (-30, true), (-10, true), (10, true), (30, true), (31, false)]
        {
            let opened = open(&key(), "a~1", signed(), at(second));
            assert_eq!(opened.is_ok(), is_accepted, "{second}: {opened:?}");
        }
        let refused = open(&key(), "a~1", signed(), at(31)).unwrap_err().to_string();
        assert!(refused.contains("31s off") && refused.contains("30s is the limit"), "{refused}");
    }

    #[test]
    fn signed_garbage_is_malformed() {
        let sign = |bytes: Bytes| Signed { signature: HEXLOWER.encode(&key().sign(MESSAGE, &bytes)), bytes };
        let wrong_kind = parts::encode([&b"other"[..], b"b~2", b"a~1", &[0; 8], &[0; 16], b"", b""]).unwrap();
        let far = parts::encode([&b"hello"[..], b"b~2", b"a~1", &[0x7f; 8], &[0; 16], b"", b""]).unwrap();
        for bytes in [Bytes::new(), Bytes::from_static(b"x"), wrong_kind, far] {
            assert_eq!(open(&key(), "a~1", sign(bytes.clone()), at(0)), Err(Refused::Malformed), "{bytes:?}");
        }
    }

    #[test]
    fn message_is_accepted_once() {
        let mut nonces = Nonces::default();
        let with = |nonce: u8, second| Message { nonce: [nonce; 16], sent_at: at(second), ..message() };
        for message in [with(1, 0), with(2, 0), with(1, 1)] {
            assert_eq!(nonces.accept(&message, at(0)), Ok(()));
            assert_eq!(nonces.accept(&message, at(30)), Err(Refused::Replayed));
        }
        assert_eq!(nonces.accept(&with(3, 59), at(59)), Ok(()));
        assert_eq!(nonces.seen.len(), 4, "kept for a minute");
        assert_eq!(nonces.accept(&with(4, 62), at(62)), Ok(()));
        assert_eq!(nonces.seen.len(), 2);
        // The clock is set back: the nonces of these messages are forgotten.
        for message in [with(1, 0), with(2, 0), with(1, 1)] {
            assert_eq!(nonces.accept(&message, at(0)), Err(Refused::Replayed));
        }
        assert_eq!(nonces.accept(&with(5, 2), at(0)), Ok(()), "newer messages are accepted again");
    }

    #[test]
    fn nonces_are_bounded_until_the_oldest_expire() {
        let mut nonces = Nonces::default();
        let message = |n: usize| {
            let mut nonce = [0; 16];
            nonce[..8].copy_from_slice(&n.to_be_bytes());
            Message { nonce, ..message() }
        };
        for n in 0..NONCES_MAX {
            assert_eq!(nonces.accept(&message(n), at(0)), Ok(()));
        }
        assert_eq!(nonces.accept(&message(NONCES_MAX), at(0)), Err(Refused::TooMany));
        assert_eq!(nonces.accept(&message(0), at(0)), Err(Refused::Replayed));
        let later = Message { sent_at: at(61), ..message(1) };
        assert_eq!(nonces.accept(&later, at(61)), Ok(()));
    }

    #[test]
    fn proof_is_for_one_hello() {
        let hello = Message { kind: Kind::Hello, ..message() };
        let given = proof(&key(), &hello);
        assert!(is_proof(&key(), &hello, given.as_bytes()));
        for other in [
            Message { nonce: [8; 16], ..hello.clone() },
            Message { receiver: "a~2".to_owned(), ..hello.clone() },
        ] {
            assert!(!is_proof(&key(), &other, given.as_bytes()));
        }
        assert!(!is_proof(&StoredKey::of(&[8; 32]).unwrap(), &hello, given.as_bytes()));
        assert!(!is_proof(&key(), &hello, b"") && !is_proof(&key(), &hello, b"zz"));
    }
}
