//! A machine to install things on: this one's own files under an overlay in memory, with processes, mounts and a
//! network of its own. What is done to it is gone when the test is; this machine never notices.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// Mounts the overlay, brings the loopback device up, moves in, and stays for as long as somebody holds the other
/// end of its standard input. It is process 1 of its namespace, so that everything inside ends with it.
const MOVE_IN: &str = r#"
set -e
place=$(mktemp -d)
mount -t tmpfs none "$place"
mkdir "$place/new" "$place/work" "$place/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$place/new,workdir=$place/work" "$place/root"
mount --rbind /dev "$place/root/dev"
mount -t proc proc "$place/root/proc"
mount -t tmpfs none "$place/root/tmp"
mount -t tmpfs none "$place/root/run"
cp "$1" "$place/root/tmp/package.deb"
ip link set lo up
exec chroot "$place/root" sh -c 'cd /; echo in; read -r _'
"#;

/// The machine.
pub struct Machine {
    holder: Child,
    /// The process whose namespaces they are.
    inside: String,
}

impl Machine {
    /// One with a package's file in `/tmp/package.deb`.
    pub fn with_package(deb: &Path) -> Self {
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "private"]);
        unshare.args(["sh", "-c", MOVE_IN, "sh"]).arg(deb);
        unshare.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = unshare.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "in\n", "no overlay over this machine's files (these tests run as root)");
        let pid = holder.id();
        let inside = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        Self { holder, inside: inside.trim().to_owned() }
    }

    /// A program on it.
    pub fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.inside, "--mount", "--net", "--pid", "--root", "--wdns=/", "--"]);
        command.arg(program).args(words).env_clear();
        command.envs([("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), ("LC_ALL", "C.UTF-8"), ("HOME", "/root")]);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    /// Runs a program and gives what it printed; it must succeed.
    pub fn said(&self, program: &str, words: &[&str]) -> String {
        let output = self.command(program, words).output().unwrap();
        assert!(output.status.success(), "{program} {words:?}: {}", all_of(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Whether a shell finds something to be so.
    pub fn finds(&self, test: &str) -> bool {
        self.command("sh", &["-c", test]).stdout(Stdio::null()).status().unwrap().success()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// How a program ended, and all that it said.
pub fn all_of(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{}\n{out}{err}", output.status)
}
