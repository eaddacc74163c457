//! Real file systems that can be made to fail, in the test's mount namespace. A sleeping process keeps it open; others
//! reach it through `/proc/PID/root`, or run inside it.
//!
//! Failing syncs need no device mapper: ext4 is on a loop device whose backing file is on a tmpfs. Free blocks are
//! discarded, and when the tmpfs is full the device can no longer write to them: the file system accepts data, and
//! cannot sync it.
//!
//! A loop device reports a short write as complete. To avoid that, each write is one page of the tmpfs, which fits or
//! fails as a whole: blocks and requests have 4 KiB.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A mount namespace and a directory for mounts.
pub struct Mounts {
    keeper: Child,
    dir: TempDir,
}

impl Mounts {
    /// Creates the namespace; needs root.
    pub fn new() -> Self {
        let mut command = Command::new("unshare");
        // The process ends after a while if the test cannot kill it.
        command.args(["--mount", "--propagation", "private", "sh", "-c", "echo ready; exec sleep 600"]);
        let mut keeper = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "unshare made no mount namespace; are you root?");
        Self { keeper, dir: tempfile::tempdir().unwrap() }
    }

    /// Runs a script in the namespace and directory; returns whether it succeeded.
    pub fn try_run(&self, script: &str) -> bool {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.keeper.id().to_string(), "--mount", "sh", "-ec"]);
        command.arg(format!("cd {}; {script}", self.dir.path().display()));
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }

    /// Runs a script, which must succeed.
    pub fn run(&self, script: &str) {
        assert!(self.try_run(script), "{script}");
    }

    /// A program in the namespace. The spawned process execs the program.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.keeper.id().to_string(), "--mount", program]);
        command
    }

    /// The directory for mounts; valid inside the namespace.
    pub fn dir(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    /// The data directory on the file system; valid outside the namespace.
    pub fn data(&self) -> PathBuf {
        let dir = self.dir.path().strip_prefix("/").unwrap();
        PathBuf::from(format!("/proc/{}/root", self.keeper.id())).join(dir).join("fs/data")
    }

    /// Mounts an ext4 on a loop device. All blocks are allocated: with a sparse file its journal could fail.
    pub fn mount_ext4(&self) {
        self.run("mkdir back fs; mount -t tmpfs -o size=24m none back");
        self.run(
            "truncate -s 20M image; mkfs.ext4 -q -b 4096 -m 0 -E nodiscard image; cat image > back/image",
        );
        self.remount_ext4();
    }

    /// Mounts it again after an unmount.
    pub fn remount_ext4(&self) {
        self.run("mount -o loop,errors=remount-ro back/image fs");
        self.run("echo 4 > /sys/block/$(basename $(findmnt -no SOURCE fs))/queue/max_sectors_kb");
    }
}

impl Drop for Mounts {
    fn drop(&mut self) {
        // Mounts end with the namespace, and a loop device ends with its mount.
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}
