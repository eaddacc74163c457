//! Digests and acknowledgements as bytes.
//!
//! A digest of a busy node has thousands of ids, so the format is binary: a VM takes 21 bytes. Numbers are
//! little-endian.
//!
//! ```text
//! digest   level u8, flags u8 (1: whole), number u64, term u64, revision u64,
//!          n u32, n × scope: length u8, path, age u32
//!          n u32, n × read:  event [16], vm [16], age u32, version u8
//!          n u32, n × heard: vm [16], age u32, version u8
//!          n u32, n × log:   vm [16], first age u32, last age u32, count u32, length u16, bytes
//! ack      level u8, number u64, term u64
//! ```
//!
//! Ages are milliseconds, at most 49 days. The decoder takes any bytes: it compares every length with the rest of the
//! message before it allocates, and a message has at most [`DIGEST_BYTES_MAX`].

use jiff::{SignedDuration, Timestamp};
use notbefore_core::{EventId, ScopeId, ScopePath, VmId};
use notbefore_store::Revision;
use uuid::Uuid;

use super::{FirstRead, Heard, LogNote, Notes};

/// The level of this format. A node refuses other levels.
pub const DIGEST_LEVEL: u8 = 1;
/// Maximum bytes of a digest.
pub const DIGEST_BYTES_MAX: usize = 1 << 20;
/// Maximum bytes of an entry of a VM's log, encoded.
pub const LOG_BYTES_MAX: usize = 2_048;

const WHOLE: u8 = 1;
const VM_BYTES: usize = 16;
pub(super) const HEARD_BYTES: usize = VM_BYTES + 5;
pub(super) const READ_BYTES: usize = 2 * VM_BYTES + 5;
/// Without the path.
const SCOPE_BYTES: usize = 5;
/// Without the entry.
const LOG_BYTES: usize = VM_BYTES + 14;
/// Bytes of a digest without notes.
const EMPTY_BYTES: usize = 2 + 8 + 8 + 8 + 4 * 4;

/// Bytes are not a message that this release knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    #[error(
        "digest of polls has level {0}, this node knows level {DIGEST_LEVEL}: run the same release on all nodes"
    )]
    Level(u8),
    #[error("digest of polls has {0} bytes, the limit is {DIGEST_BYTES_MAX}")]
    TooLarge(usize),
    #[error("digest of polls is malformed at byte {0}")]
    Malformed(usize),
}

/// A digest. Times are those of the reader's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// Rises with each digest of a process.
    pub number: u64,
    /// The leader's term that the sender knows; 0 if none.
    pub term: u64,
    /// The sender's guests were shown nothing newer than this revision.
    pub revision: Revision,
    /// With this digest the leader has all notes of the node from before it was sent.
    pub is_whole: bool,
    pub notes: Notes,
}

/// The leader's answer to a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Number of the digest.
    pub number: u64,
    /// The leader's term. The digest was taken if it has the same.
    pub term: u64,
}

impl Ack {
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = vec![DIGEST_LEVEL];
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.term.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, DigestError> {
        let mut bytes = Bytes::of_level(bytes)?;
        let ack = Self { number: bytes.u64()?, term: bytes.u64()? };
        bytes.end().map(|()| ack)
    }
}

pub(super) fn scope_bytes(scope: &ScopeId) -> usize {
    SCOPE_BYTES + scope.as_str().len()
}

fn log_bytes(note: &LogNote) -> usize {
    LOG_BYTES + note.what.len()
}

/// Bytes that are left in a message.
pub(super) struct Room(usize);

impl Room {
    pub fn of_message(bytes_max: usize) -> Self {
        Self(bytes_max.saturating_sub(EMPTY_BYTES))
    }

    /// Takes the bytes if there are as many.
    pub fn take(&mut self, bytes: usize) -> bool {
        let rest = self.0.checked_sub(bytes);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }
}

/// Removes notes that fit into a message from `notes` and returns them: scopes and reads first.
pub(super) fn cut(notes: &mut Notes, bytes_max: usize) -> Notes {
    let (mut part, mut room) = (Notes::default(), Room::of_message(bytes_max));
    while let Some(first) = notes.scopes.first_entry()
        && room.take(scope_bytes(first.key()))
    {
        part.scopes.extend([first.remove_entry()]);
    }
    while let Some(first) = notes.reads.first_entry()
        && room.take(READ_BYTES)
    {
        part.reads.extend([first.remove_entry()]);
    }
    while let Some(first) = notes.heard.first_entry()
        && room.take(HEARD_BYTES)
    {
        part.heard.extend([first.remove_entry()]);
    }
    let fitting = notes.log.iter().take_while(|note| room.take(log_bytes(note))).count();
    part.log = notes.log.drain(..fitting).collect();
    part
}

impl Digest {
    /// The digest as bytes at `now`, which turns times into ages.
    pub fn encode(&self, now: Timestamp) -> Vec<u8> {
        let Self { number, term, revision, is_whole, notes } = self;
        let Notes { scopes, reads, heard, log } = notes;
        let mut bytes = vec![DIGEST_LEVEL, if *is_whole { WHOLE } else { 0 }];
        bytes.reserve(EMPTY_BYTES + scopes.len() * 64 + reads.len() * READ_BYTES + heard.len() * HEARD_BYTES);
        bytes.extend(number.to_le_bytes());
        bytes.extend(term.to_le_bytes());
        bytes.extend(revision.0.to_le_bytes());
        let age = |at: Timestamp| {
            let millis = now.duration_since(at).max(SignedDuration::ZERO).as_millis();
            u32::try_from(millis).unwrap_or(u32::MAX).to_le_bytes()
        };
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes();
        bytes.extend(count(scopes.len()));
        for (scope, at) in scopes {
            // A path has three names of at most 80 characters.
            bytes.push(u8::try_from(scope.as_str().len()).unwrap_or(u8::MAX));
            bytes.extend(scope.as_str().as_bytes());
            bytes.extend(age(*at));
        }
        bytes.extend(count(reads.len()));
        for ((event, vm), read) in reads {
            bytes.extend(event.0.as_bytes());
            bytes.extend(vm.0.as_bytes());
            bytes.extend(age(read.at));
            bytes.push(read.version);
        }
        bytes.extend(count(heard.len()));
        for (vm, heard) in heard {
            bytes.extend(vm.0.as_bytes());
            bytes.extend(age(heard.at));
            bytes.push(heard.version);
        }
        bytes.extend(count(log.len()));
        for note in log {
            bytes.extend(note.vm.0.as_bytes());
            bytes.extend(age(note.first_at));
            bytes.extend(age(note.last_at));
            bytes.extend(note.count.to_le_bytes());
            bytes.extend(u16::try_from(note.what.len()).unwrap_or(u16::MAX).to_le_bytes());
            bytes.extend(&note.what);
        }
        bytes
    }

    /// Reads a digest at `now`, which turns ages into times.
    pub fn decode(bytes: &[u8], now: Timestamp) -> Result<Self, DigestError> {
        let mut bytes = Bytes::of_level(bytes)?;
        let flags = bytes.u8()?;
        if flags & !WHOLE != 0 {
            return Err(bytes.malformed());
        }
        let (number, term, revision) = (bytes.u64()?, bytes.u64()?, Revision(bytes.u64()?));
        let mut notes = Notes::default();
        for _ in 0..bytes.count(SCOPE_BYTES)? {
            let length = usize::from(bytes.u8()?);
            let path = std::str::from_utf8(bytes.take(length)?).ok();
            let path = path.and_then(|path| path.parse::<ScopePath>().ok());
            let scope = path.ok_or_else(|| bytes.malformed())?.id();
            notes.add_scope(scope, bytes.time(now)?);
        }
        for _ in 0..bytes.count(READ_BYTES)? {
            let (event, vm) = (EventId(bytes.uuid()?), VmId(bytes.uuid()?));
            notes.add_read(event, vm, FirstRead { at: bytes.time(now)?, version: bytes.u8()? });
        }
        for _ in 0..bytes.count(HEARD_BYTES)? {
            let vm = VmId(bytes.uuid()?);
            notes.add_heard(vm, Heard { at: bytes.time(now)?, version: bytes.u8()? });
        }
        for _ in 0..bytes.count(LOG_BYTES)? {
            let vm = VmId(bytes.uuid()?);
            let (first_at, last_at, count) = (bytes.time(now)?, bytes.time(now)?, bytes.u32()?);
            let length = usize::from(bytes.u16()?);
            let what = bytes.take(length)?;
            if length > LOG_BYTES_MAX {
                return Err(bytes.malformed());
            }
            notes.log.push(LogNote { vm, first_at, last_at, count, what: what.into() });
        }
        bytes.end()?;
        Ok(Self { number, term, revision, is_whole: flags & WHOLE != 0, notes })
    }
}

/// The unread rest of a message.
struct Bytes<'b> {
    rest: &'b [u8],
    length: usize,
}

impl<'b> Bytes<'b> {
    /// The rest after a known level.
    fn of_level(bytes: &'b [u8]) -> Result<Self, DigestError> {
        if bytes.len() > DIGEST_BYTES_MAX {
            return Err(DigestError::TooLarge(bytes.len()));
        }
        let mut all = Self { rest: bytes, length: bytes.len() };
        match all.u8()? {
            DIGEST_LEVEL => Ok(all),
            level => Err(DigestError::Level(level)),
        }
    }

    fn malformed(&self) -> DigestError {
        DigestError::Malformed(self.length - self.rest.len())
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], DigestError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(|| self.malformed())?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DigestError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| self.malformed())?;
        self.rest = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, DigestError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, DigestError> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, DigestError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, DigestError> {
        self.array().map(u64::from_le_bytes)
    }

    fn uuid(&mut self) -> Result<Uuid, DigestError> {
        self.array().map(Uuid::from_bytes)
    }

    /// A number of notes of at least `bytes` each; the message must have as many bytes left.
    fn count(&mut self, bytes: usize) -> Result<usize, DigestError> {
        let count = self.u32()?;
        let fits = |count: &usize| *count <= self.rest.len() / bytes;
        usize::try_from(count).ok().filter(fits).ok_or_else(|| self.malformed())
    }

    fn time(&mut self, now: Timestamp) -> Result<Timestamp, DigestError> {
        let age = SignedDuration::from_millis(self.u32()?.into());
        Ok(now.checked_sub(age).unwrap_or(Timestamp::MIN))
    }

    fn end(&self) -> Result<(), DigestError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.malformed()) }
    }
}
