//! Integrity checks at start: all records are present, undamaged, and those that were written last.
//!
//! Damage to a record that is held in memory prevents the start: a scope without its events, or a VM without its scope,
//! would be served as valid. Damage to history only shortens history.

use notbefore_store::{Page, Snapshot, Tally};

pub use notbefore_store::redb::STALL_MAX;

/// Why the service does not start from a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntegrityError {
    /// A record's checksum does not match.
    #[error(
        "record {key} is damaged: its checksum does not match, and the service cannot start without it; {RECOVERY_HINT}"
    )]
    Damaged { key: String },
    /// The number of records of a kind (a prefix of their keys) differs from the stored count.
    #[error(
        "the store is damaged: it has {found} records below '{kind}', {counted} were written, and the service cannot start without them; {RECOVERY_HINT}"
    )]
    Miscounted { kind: String, found: u64, counted: u64 },
    /// Records of a kind are not those that were written last, but valid ones of the past.
    #[error(
        "the store is damaged: records below '{kind}' are not those that were written last (a write was lost, or went to another place), and the service cannot start without them; {RECOVERY_HINT}"
    )]
    Outdated { kind: String },
    /// Nothing more could be read.
    #[error(
        "no more records were read from the store for {} s: the disk does not answer, or damaged pages of the file lead in a circle; {RECOVERY_HINT}",
        STALL_MAX.as_secs()
    )]
    Stalled,
}

/// How to recover from a damaged store.
pub const RECOVERY_HINT: &str = "'notbefore check --data DIR' lists all damage; restore a copy or import a backup into a new directory, or save what is left with 'notbefore export --data DIR --skip-damaged FILE' and import that";

/// Fails if a record of the page is damaged.
pub fn check_damaged(page: &Page) -> Result<(), IntegrityError> {
    page.damaged.first().map_or(Ok(()), |key| Err(IntegrityError::Damaged { key: key.to_string() }))
}

/// Compares the records of a kind with the stored tally.
pub fn check_tally(snapshot: &dyn Snapshot, kind: &str, found: Tally) -> Result<(), IntegrityError> {
    let Some(tallies) = snapshot.tallies() else { return Ok(()) };
    let (kind, written) = (kind.to_owned(), tallies.of(kind));
    if written.count != found.count {
        Err(IntegrityError::Miscounted { kind, found: found.count, counted: written.count })
    } else if written != found {
        Err(IntegrityError::Outdated { kind })
    } else {
        Ok(())
    }
}
