//! Temporary directories of a rehearsal. They are removed when they are dropped, without what a handler has mounted there;
//! the keeper removes them if the rehearsal is killed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use notbefore_service::remove_tree::remove_tree;
use tempfile::TempDir;

use crate::keeper::Keeper;

/// A temporary directory.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    keeper: Option<Keeper>,
}

impl Directory {
    /// Creates a directory whose name starts with a prefix.
    pub(crate) fn create(prefix: &str, keeper: Option<&Keeper>) -> io::Result<Self> {
        // Its own removal would enter mounts.
        let path = TempDir::with_prefix(prefix)?.keep();
        if let Some(keeper) = keeper {
            keeper.add_directory(&path);
        }
        Ok(Self { path, keeper: keeper.cloned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        remove(&self.path, &mut io::stderr());
        if let Some(keeper) = &self.keeper {
            keeper.remove_directory(&self.path);
        }
    }
}

/// Removes a directory, and says what is left.
pub(crate) fn remove(directory: &Path, messages: &mut impl Write) {
    if let Err(left) = remove_tree(directory) {
        // A rehearsal that was killed may have no reader left.
        let _ = writeln!(messages, "notbefore rehearse: {left}");
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::thread::UnshareFlags;

    use super::*;
    use crate::keeper::keep;

    #[test]
    fn directory_and_keeper_leave_what_a_handler_has_mounted() {
        #[expect(
            deprecated,
            reason = "the successor is unsafe because of UnshareFlags::FILES, which is not used"
        )]
        rustix::thread::unshare(UnshareFlags::NEWNS).expect("this test needs root");
        let run = |script: &str, on: &Path| {
            let status = Command::new("sh").args(["-ec", script]).current_dir(on).status().unwrap();
            assert!(status.success(), "{script}");
        };
        let precious = tempfile::tempdir().unwrap();
        std::fs::write(precious.path().join("file"), "content").unwrap();
        let mount = format!(
            "mount --make-rprivate /; mkdir data; mount --bind {} data; touch own",
            precious.path().display()
        );
        let directory = Directory::create("notbefore-test-", None).unwrap();
        let path = directory.path().to_owned();
        run(&mount, &path);
        drop(directory);
        assert!(precious.path().join("file").exists() && !path.join("own").exists());

        let mut messages = Vec::new();
        let orders = format!("{}\n", path.display());
        keep(orders.as_bytes(), "no-such-value", &mut messages).unwrap();
        let messages = String::from_utf8(messages).unwrap();
        assert!(precious.path().join("file").exists());
        let mounted = path.join("data");
        assert!(messages.starts_with("notbefore rehearse: ") && messages.contains(&format!("{mounted:?}")));

        // The rehearsal has removed it, or said what is left.
        let mut messages = Vec::new();
        let orders = format!("{0}\n-{0}\n", path.display());
        keep(orders.as_bytes(), "no-such-value", &mut messages).unwrap();
        assert!(messages.is_empty() && path.exists());

        run("umount data", &path);
        keep(format!("{}\n", path.display()).as_bytes(), "no-such-value", &mut io::sink()).unwrap();
        assert!(!path.exists() && precious.path().join("file").exists());
    }
}
