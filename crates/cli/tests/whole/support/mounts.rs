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
pub struct Ground {
    holder: Child,
    place: TempDir,
}

impl Ground {
    /// One of its own; it takes root.
    pub fn new() -> Self {
        let mut command = Command::new("unshare");
        // It ends by itself if the test cannot end it.
        command.args(["--mount", "--propagation", "private", "sh", "-c", "echo ready; exec sleep 600"]);
        let mut holder = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "unshare made no mount namespace; are you root?");
        Self { holder, place: tempfile::tempdir().unwrap() }
    }

    /// Runs a script within, in the directory, and answers whether it went well.
    pub fn try_run(&self, script: &str) -> bool {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.holder.id().to_string(), "--mount", "sh", "-ec"]);
        command.arg(format!("cd {}; {script}", self.place.path().display()));
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }

    /// Runs a script within, which must go well.
    pub fn run(&self, script: &str) {
        assert!(self.try_run(script), "{script}");
    }

    /// A program that runs within. The process that is spawned becomes the program.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.holder.id().to_string(), "--mount", program]);
        command
    }

    /// The directory in which things are mounted, as it is found within.
    pub fn place(&self) -> PathBuf {
        self.place.path().to_owned()
    }

    /// The data directory on the file system, as it is found from outside.
    pub fn data(&self) -> PathBuf {
        let place = self.place.path().strip_prefix("/").unwrap();
        PathBuf::from(format!("/proc/{}/root", self.holder.id())).join(place).join("fs/data")
    }

    /// An ext4 of its own on a loop device. All of its blocks are there: were it sparse, its journal could fail.
    pub fn mount_ext4(&self) {
        self.run("mkdir back fs; mount -t tmpfs -o size=24m none back");
        self.run(
            "truncate -s 20M image; mkfs.ext4 -q -b 4096 -m 0 -E nodiscard image; cat image > back/image",
        );
        self.remount_ext4();
    }

    /// Mounts it again, after it was unmounted.
    pub fn remount_ext4(&self) {
        self.run("mount -o loop,errors=remount-ro back/image fs");
        self.run("echo 4 > /sys/block/$(basename $(findmnt -no SOURCE fs))/queue/max_sectors_kb");
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // What is mounted goes with the namespace, and a loop device with its mount.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
