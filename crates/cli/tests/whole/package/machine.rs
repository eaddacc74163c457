//! A temporary machine: an overlay in memory over this machine's files, with its own processes, mounts, control groups
//! and network. All changes are gone after the test. It can run nothing, or systemd booted to `basic.target`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::support::wait_for;

/// Creates the machine and waits until its standard input is closed. Then it kills all processes inside and removes the
/// control group.
const KEEP: &str = r#"
set -e
place=$(mktemp -d)
mount -t tmpfs none "$place"
mkdir "$place/new" "$place/work" "$place/root" "$place/groups"
mount -t overlay overlay -o "lowerdir=/,upperdir=$place/new,workdir=$place/work" "$place/root"
mount -t cgroup2 none "$place/groups"
group=$(mktemp -d "$place/groups/notbefore-XXXXXX")
unshare --pid --fork --kill-child sh -c "$MOVE_IN" sh "$place/root" "$group" "$1" "$2" </dev/null 2>"$place/complaints" &
holder=$!
read -r _ || true
kill -9 $(cat "/proc/$holder/task/$holder/children") || true
wait $holder || true
# That unshare cannot end itself by the signal that has ended its child is no news.
grep -v 'sigprocmask unblock' "$place/complaints" >&2 || true
find "$group" -depth -type d -exec rmdir {} ';'
umount --recursive --lazy "$place"
rmdir "$place"
"#;

/// Process 1 of the machine: changes root, then execs systemd or sleeps. Kernel settings are shared with the host, so
/// they are read-only.
const PIVOT: &str = r#"
set -e
root=$1
echo 0 >"$2/cgroup.procs"
cp "$3" "$root/root/package.deb"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs none "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs none "$root/run"
mount -t tmpfs none "$root/tmp"
: >"$root/etc/fstab"
# What this machine does from time to time is nothing for that one.
ln -sf /dev/null "$root/etc/systemd/system/timers.target"
# Where this machine is a container's image, it says that packages start and stop nothing.
rm -f "$root/usr/sbin/policy-rc.d"
ip link set lo up
exec unshare --cgroup --uts --ipc sh -ec '
  mount -t cgroup2 cgroup2 "$1/sys/fs/cgroup"
  exec setpriv --bounding-set=-sys_module,-sys_time,-sys_rawio chroot "$1" sh -c "$BE" sh "$2"' sh "$root" "$4"
"#;

/// Reported by process 1 after it has changed root: a process that enters earlier would be on the host.
const INIT: &str = r#"
echo in
case $1 in
  booted) exec env -i container=test /lib/systemd/systemd --system --unit=basic.target --show-status=no --log-target=journal ;;
  *) exec sleep infinity ;;
esac
"#;

/// The machine.
pub struct Machine {
    keeper: Child,
    /// The process that owns the namespaces.
    inside: String,
}

impl Machine {
    /// A machine without processes, with the package at `/root/package.deb`.
    pub fn idle(deb: &Path) -> Self {
        Self::make(deb, "at-rest")
    }

    /// A booted machine.
    pub fn booted(deb: &Path) -> Self {
        let machine = Self::make(deb, "booted");
        let state = || machine.command("systemctl", &["is-system-running"]).output().unwrap().stdout;
        // A failed unit of the host system is not the package's.
        wait_for("systemd to boot", || [&b"running\n"[..], b"degraded\n"].contains(&&*state()).then_some(()));
        machine
    }

    /// Removes a notbefore that is installed on the host.
    fn make(deb: &Path, how: &str) -> Self {
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--mount", "--net", "--propagation", "private", "sh", "-c", KEEP, "sh"])
            .arg(deb)
            .arg(how);
        unshare.env("MOVE_IN", PIVOT).env("BE", INIT).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = unshare.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "in\n", "no machine could be made (these tests run as root)");
        // The keeper's child is `unshare`, whose child is process 1.
        let child = |pid: &str| {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
            children.split_whitespace().next().unwrap().to_owned()
        };
        let inside = child(&child(&keeper.id().to_string()));
        let machine = Self { keeper, inside };
        assert!(machine.holds("test -f /root/package.deb"), "not in the machine's namespaces");
        machine.stdout("dpkg", &["--purge", "notbefore"]);
        machine
    }

    /// A program on the machine.
    pub fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.inside, "--mount", "--net", "--pid", "--cgroup", "--uts", "--root"]);
        command.args(["--wdns=/", "--", program]).args(args).env_clear();
        command.envs([("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), ("LC_ALL", "C.UTF-8"), ("HOME", "/root")]);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    /// Runs a program, which must succeed; returns its standard output.
    pub fn stdout(&self, program: &str, args: &[&str]) -> String {
        let output = self.command(program, args).output().unwrap();
        assert!(output.status.success(), "{program} {args:?}: {}", status_and_output(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Whether a shell test succeeds.
    pub fn holds(&self, test: &str) -> bool {
        self.command("sh", &["-c", test]).stdout(Stdio::null()).status().unwrap().success()
    }

    /// Writes a file.
    pub fn write(&self, path: &str, text: &str) {
        self.stdout(
            "sh",
            &["-ec", "mkdir -p \"$(dirname \"$1\")\"; printf %s \"$2\" >\"$1\"", "sh", path, text],
        );
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Exit status and output of a program.
pub fn status_and_output(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{}\n{out}{err}", output.status)
}
