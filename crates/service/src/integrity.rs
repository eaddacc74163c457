//! Whether the records that the service starts from are all there and as they were written.
//!
//! Damage in a record that is held in memory is not passed over: a scope without its events, or a VM without its scope,
//! would be served as the truth. So the start is refused. Damage in history only makes history shorter.

use notbefore_store::{Page, Snapshot};

/// Why the service does not start from a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum IntegrityError {
    /// A record is not what was written.
    #[error(
        "record {key} is damaged: its checksum does not match, and the service does not start without it; {RECOVERY_HINT}"
    )]
    Damaged { key: String },
    /// There are more or fewer records of a kind (what their keys begin with) than were written.
    #[error(
        "the store is damaged: it has {found} records below '{kind}', {counted} were written, and the service does not start without them; {RECOVERY_HINT}"
    )]
    Miscounted { kind: String, found: u64, counted: u64 },
}

/// How to go on from a damaged store.
pub const RECOVERY_HINT: &str = "'notbefore check --data DIR' lists all damage; restore a copy or import a backup into a new directory, or save what is left with 'notbefore export --data DIR --skip-damaged FILE' and import that";

/// Checks that nothing was passed over.
pub fn check_damaged(page: &Page) -> Result<(), IntegrityError> {
    page.damaged.first().map_or(Ok(()), |key| Err(IntegrityError::Damaged { key: key.to_string() }))
}

/// Checks that as many records of a kind were found as the store has counted.
pub fn check_count(snapshot: &dyn Snapshot, kind: &str, found: u64) -> Result<(), IntegrityError> {
    let Some(counts) = snapshot.counts() else { return Ok(()) };
    let counted = counts.iter().find(|(counted, _)| counted == kind).map_or(0, |(_, count)| *count);
    match counted == found {
        true => Ok(()),
        false => Err(IntegrityError::Miscounted { kind: kind.to_owned(), found, counted }),
    }
}
