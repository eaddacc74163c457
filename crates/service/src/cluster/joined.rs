//! The cluster that a node has joined, kept in `cluster.json` of its data directory.
//!
//! With a wrong URL, a node would serve another fleet, or start a new and empty one. So a node that has been ready once
//! remembers its cluster, and compares it with what etcd holds at the next start, before anything is written:
//!
//! | etcd holds | the node |
//! |---|---|
//! | the mark with the same id, or one from before an import | starts. The cluster id of etcd may be another: a backup was restored |
//! | the mark of an import with a fleet, under the same prefix and cluster id | starts: the fleet was replaced |
//! | any other mark, no mark, or no fleet | is refused |
//!
//! The cluster id of etcd alone says little: it is a hash of settings, and many have the default ones.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use notbefore_etcd::EtcdStore;
use serde::{Deserialize, Serialize};

use crate::data_dir::{CLUSTER, write_atomic};

/// Larger than any that a node writes.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Imports whose earlier fleets may come back from a backup.
const EARLIER_MARKS_MAX: usize = 16;

/// What the ids of marks that an import writes begin with.
const IMPORT: &str = "import-";

/// Who marks a prefix that has no mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimant {
    /// A node, or a command that prepares for the first one.
    Node,
    /// An import: nodes that have joined the fleet before it accept the new one.
    Import,
}

/// The id of a new mark.
pub(super) fn new_mark(claimant: Claimant) -> String {
    let id = uuid::Uuid::new_v4().simple();
    match claimant {
        Claimant::Node => id.to_string(),
        Claimant::Import => format!("{IMPORT}{id}"),
    }
}

/// Where a fleet is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedCluster {
    /// The cluster id of etcd, in hexadecimal.
    pub etcd: String,
    pub prefix: String,
    /// The id of the prefix's mark; none if there is no mark.
    pub mark: Option<String>,
    /// Ids before imports that replaced the fleet: a backup of then may be restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_marks: Vec<String>,
}

impl fmt::Display for JoinedCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "prefix {} of the etcd cluster {}", self.prefix, self.etcd)
    }
}

/// Why a node does not join.
#[derive(Debug, thiserror::Error)]
pub enum JoinedError {
    #[error(
        "this node has joined a cluster at {known}; it finds {} at {found}. Correct --etcd or --etcd-prefix, or restore etcd from a backup; if the node belongs here, remove {}. Nothing was written",
        if *.holds_fleet { "another one" } else { "no fleet" }, .file.display()
    )]
    Other { known: String, found: String, holds_fleet: bool, file: PathBuf },
    #[error(
        "cannot read {}, which says what cluster this node has joined; if --etcd and --etcd-prefix are right, remove it. Nothing was written",
        .path.display()
    )]
    File { path: PathBuf, source: io::Error },
}

impl JoinedCluster {
    /// `mark` is its id.
    pub fn of(etcd: &EtcdStore, mark: Option<String>) -> Self {
        Self {
            etcd: format!("{:x}", etcd.cluster_id()),
            prefix: etcd.prefix().to_owned(),
            mark,
            earlier_marks: Vec::new(),
        }
    }

    /// Checks that this is the cluster that the node has joined, if it has joined one.
    pub fn check(&self, holds_fleet: bool, data: &Path) -> Result<(), JoinedError> {
        let file = data.join(CLUSTER);
        let known = match Self::read(&file) {
            Ok(Some(known)) => known,
            Ok(None) => return Ok(()),
            Err(source) => return Err(JoinedError::File { path: file, source }),
        };
        match self.continues(&known, holds_fleet) {
            true => Ok(()),
            false => {
                let (known, found) = (known.to_string(), self.to_string());
                Err(JoinedError::Other { known, found, holds_fleet, file })
            }
        }
    }

    /// None if there is no file.
    fn read(file: &Path) -> io::Result<Option<Self>> {
        let mut text = Vec::new();
        match fs::File::open(file).and_then(|opened| opened.take(FILE_BYTES_MAX).read_to_end(&mut text)) {
            Ok(_) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn continues(&self, known: &Self, holds_fleet: bool) -> bool {
        let has_same_mark = self.mark.is_some()
            && known.mark.iter().chain(&known.earlier_marks).any(|mark| Some(mark) == self.mark.as_ref());
        let is_same_place = (&self.etcd, &self.prefix) == (&known.etcd, &known.prefix);
        let is_imported = self.mark.as_ref().is_some_and(|mark| mark.starts_with(IMPORT));
        holds_fleet && (has_same_mark || is_same_place && is_imported)
    }

    /// Remembers the cluster.
    pub fn write(&self, data: &Path) -> io::Result<()> {
        let file = data.join(CLUSTER);
        let mut next = self.clone();
        if let Ok(Some(known)) = Self::read(&file) {
            next.earlier_marks = known.earlier_marks;
            next.earlier_marks.extend(known.mark);
            next.earlier_marks.retain(|mark| Some(mark) != self.mark.as_ref());
            let surplus = next.earlier_marks.len().saturating_sub(EARLIER_MARKS_MAX);
            next.earlier_marks.drain(..surplus);
        }
        let text = serde_json::to_string(&next)? + "\n";
        match fs::read_to_string(&file).is_ok_and(|known| known == text) {
            true => Ok(()),
            false => write_atomic(&file, text.as_bytes(), 0o644),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(etcd: &str, prefix: &str, mark: &str) -> JoinedCluster {
        let mark = Some(mark.to_owned()).filter(|mark| !mark.is_empty());
        JoinedCluster { etcd: etcd.to_owned(), prefix: prefix.to_owned(), mark, earlier_marks: Vec::new() }
    }

    #[test]
    fn only_the_joined_cluster_is_accepted() {
        let known = at("e1", "/nb/", "m1");
        for (found, holds_fleet, is_accepted) in [
            (at("e1", "/nb/", "m1"), true, true),
            // A restored backup, with another cluster id or under another prefix.
            (at("e2", "/nb/", "m1"), true, true),
            (at("e2", "/else/", "m1"), true, true),
            // An import has replaced the fleet.
            (at("e1", "/nb/", "import-m2"), true, true),
            (at("e2", "/nb/", "import-m2"), true, false),
            // Another etcd with the same, default, settings, or a prefix that was emptied and used again.
            (at("e1", "/nb/", "m2"), true, false),
            // etcd has lost its data and has the same members.
            (at("e1", "/nb/", ""), false, false),
            (at("e1", "/nb/", "m1"), false, false),
            (at("e2", "/nb/", ""), false, false),
            (at("e2", "/nb/", "m2"), true, false),
            (at("e1", "/else/", "m2"), true, false),
            (at("e1", "/else/", ""), false, false),
        ] {
            let dir = tempfile::tempdir().unwrap();
            found.check(holds_fleet, dir.path()).unwrap();
            known.write(dir.path()).unwrap();
            let checked = found.check(holds_fleet, dir.path());
            assert_eq!(checked.is_ok(), is_accepted, "{found:?} {holds_fleet}");
            if let Err(error) = checked {
                let text = error.to_string();
                assert!(
                    text.contains(dir.path().to_str().unwrap()) && text.contains(&found.prefix),
                    "{text}"
                );
            }
        }
        // A backup from before two imports is of this cluster.
        let dir = tempfile::tempdir().unwrap();
        for mark in ["m1", "import-m2", "import-m3"] {
            at("e1", "/nb/", mark).write(dir.path()).unwrap();
        }
        at("e2", "/nb/", "m1").check(true, dir.path()).unwrap();
        assert!(at("e2", "/nb/", "m4").check(true, dir.path()).is_err());
        // Without ids, marks are not the same.
        assert!(!at("e2", "/nb/", "").continues(&at("e1", "/nb/", ""), true));
    }

    #[test]
    fn unreadable_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(CLUSTER), "half").unwrap();
        let error = at("e1", "/nb/", "m1").check(true, dir.path()).unwrap_err().to_string();
        assert!(error.contains("cluster.json") && error.contains("remove it"), "{error}");
    }
}
