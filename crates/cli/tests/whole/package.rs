//! The Debian package, installed with dpkg on a temporary machine: its files, what runs, and what remains after remove
//! and purge.
//!
//! `./dev test deb` builds the package and sets `NOTBEFORE_DEB` to its path.

mod licences;
mod machine;
mod named;
mod node_units;
mod purge;
mod units;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::pages::root;
use machine::Machine;

const UNITS: [&str; 2] = ["notbefore.service", "notbefore-agent.service"];

/// Largest stripped binary: it was 36 MB once, and 26 MB with one unit per crate.
const BINARY_BYTES_MAX: u64 = 28_000_000;

fn deb() -> PathBuf {
    let deb = std::env::var_os("NOTBEFORE_DEB").map(PathBuf::from);
    let deb =
        deb.expect("NOTBEFORE_DEB must name the package; './dev test deb' builds it and sets the variable");
    assert!(deb.is_file(), "{} is no file", deb.display());
    deb
}

fn installed() -> Machine {
    installed_on(Machine::idle(&deb()))
}

fn installed_on(machine: Machine) -> Machine {
    machine.stdout("dpkg", &["--install", "/root/package.deb"]);
    machine
}

/// Files with our name in theirs, including those of other packages.
fn files_with_our_name(machine: &Machine) -> BTreeSet<String> {
    let found = machine.stdout("find", &["/etc", "/usr", "/var", "-xdev", "-iname", "*notbefore*"]);
    found.lines().map(str::to_owned).collect()
}

/// Mode, owner and path of every file of the package.
fn contents() -> Vec<(String, String, String)> {
    let listed = Command::new("dpkg-deb").arg("--contents").arg(deb()).output().unwrap();
    assert!(listed.status.success());
    let listed = String::from_utf8(listed.stdout).unwrap();
    let entry = |line: &str| {
        let mut words = line.split_whitespace().map(str::to_owned);
        (words.next().unwrap(), words.next().unwrap(), words.nth(3).unwrap())
    };
    listed.lines().map(entry).collect()
}

/// Every file that ships besides the program: its path in the package, and whether it is executable.
fn documents() -> Vec<(String, bool)> {
    let root = root();
    let mut find = Command::new("find");
    find.args(["docs", "recipes", "examples", "dist", "-type", "f", "-not", "-path", "dist/debian/*"]);
    let listed = find.current_dir(&root).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let is_program = |file: &str| root.join(file).metadata().unwrap().permissions().mode() & 0o111 != 0;
    let files: Vec<_> =
        listed.lines().map(|file| (format!("./usr/share/doc/notbefore/{file}"), is_program(file))).collect();
    assert!(files.len() > 40, "there are only {files:?}");
    files
}

#[test]
fn package_files_follow_debian_layout_and_belong_to_root() {
    let homes = [
        "./etc/notbefore/",
        "./usr/bin/notbefore",
        "./usr/lib/systemd/system/",
        "./usr/share/bash-completion/completions/notbefore",
        "./usr/share/doc/notbefore/",
        "./usr/share/fish/vendor_completions.d/notbefore.fish",
        "./usr/share/lintian/overrides/notbefore",
        "./usr/share/man/man1/",
        "./usr/share/man/man5/notbefore-agent.toml.5.gz",
        "./usr/share/zsh/vendor-completions/_notbefore",
    ];
    let documents = documents();
    let is_program = |path: &str| {
        path == "./usr/bin/notbefore" || documents.iter().any(|(file, program)| file == path && *program)
    };
    let contents = contents();
    for (file, _) in &documents {
        assert!(contents.iter().any(|(_, _, path)| path == file), "{file} is not in the package");
    }
    for (mode, owner, path) in contents {
        assert!(owner == "0/0" || owner == "root/root", "{path} belongs to {owner}");
        let expected = match path.as_str() {
            _ if mode.starts_with('d') => "drwxr-xr-x",
            // It may contain webhook secrets.
            "./etc/notbefore/agent.toml" => "-rw-r-----",
            path if is_program(path) => "-rwxr-xr-x",
            _ => "-rw-r--r--",
        };
        assert_eq!(mode, expected, "{path}");
        let at_home = homes
            .iter()
            .any(|home| path.starts_with(home) || (mode.starts_with('d') && home.starts_with(&path)));
        assert!(at_home, "what is {path} doing in the package?");
        let is_manual = path.starts_with("./usr/share/man/") && !mode.starts_with('d');
        assert!(!is_manual || path.ends_with(".gz"), "{path} is not compressed");
    }
}

/// The sections of a program or a debug file.
fn sections(file: &Path) -> String {
    let listed = Command::new("readelf").args(["--wide", "--sections"]).arg(file).output().unwrap();
    assert!(listed.status.success(), "{}", machine::status_and_output(&listed));
    String::from_utf8(listed.stdout).unwrap()
}

#[test]
fn debug_file_has_line_tables_and_is_linked() {
    let (tree, debug) = (tempfile::tempdir().unwrap(), deb().with_file_name("notbefore.debug"));
    let mut extract = Command::new("dpkg-deb");
    assert!(extract.arg("--extract").arg(deb()).arg(tree.path()).status().unwrap().success());
    let binary = tree.path().join("usr/bin/notbefore");
    assert!(!sections(&binary).contains(".debug_line") && !sections(&binary).contains(".symtab"));
    assert!(sections(&debug).contains(".debug_line") && sections(&debug).contains(".symtab"));
    let bytes = binary.metadata().unwrap().len();
    assert!(bytes <= BINARY_BYTES_MAX, "the binary has {bytes} bytes, {BINARY_BYTES_MAX} at most");
    let named = Command::new("readelf").arg("--string-dump=.gnu_debuglink").arg(&binary).output().unwrap();
    assert!(
        String::from_utf8_lossy(&named.stdout).contains("notbefore.debug"),
        "{}",
        machine::status_and_output(&named)
    );
}

#[test]
fn installed_services_run_and_wait_for_configuration() {
    let machine = installed();
    let version = format!("notbefore {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(machine.stdout("notbefore", &["--version"]), version);
    assert!(machine.stdout("notbefore", &["serve", "--check-config"]).contains("no errors"));
    let checked = machine.stdout("notbefore", &["agent", "check", "--offline"]);
    assert!(checked.contains("drain"), "{checked}");
    for unit in UNITS {
        let path = format!("/usr/lib/systemd/system/{unit}");
        let verified = machine.command("systemd-analyze", &["verify", &path]).output().unwrap();
        assert!(
            verified.status.success() && verified.stderr.is_empty(),
            "{}",
            machine::status_and_output(&verified)
        );
        // The machine is not configured yet.
        let enabled = machine.command("systemctl", &["--root=/", "is-enabled", unit]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&enabled.stdout).trim(), "disabled");
    }
    // dpkg --verify finds changed files.
    assert_eq!(machine.stdout("dpkg", &["--verify", "notbefore"]), "");
    let changed = "echo >>/usr/share/doc/notbefore/docs/guide/agent.md; dpkg --verify notbefore";
    assert!(machine.stdout("sh", &["-c", changed]).contains("/docs/guide/agent.md"));
    for page in ["notbefore", "notbefore-serve", "notbefore-agent-run"] {
        let shown = machine.stdout("man", &[page]);
        assert!(shown.contains("SYNOPSIS") && shown.contains(&page.replacen('-', " ", 2)), "{page}: {shown}");
    }
    let shown = machine.stdout("man", &["5", "notbefore-agent.toml"]);
    assert!(shown.contains("on_interrupt") && shown.contains("NOTBEFORE_EVENT_TYPE"), "{shown}");
    // As bash does for 'notbefore ev' and the tab key.
    let typed = "source /usr/share/bash-completion/completions/notbefore; COMP_WORDS=(notbefore ev); COMP_CWORD=1; \
                 _notbefore notbefore ev notbefore; echo \"${COMPREPLY[@]}\"";
    assert_eq!(machine.stdout("bash", &["-c", typed]), "event\n");
}

#[test]
fn removal_keeps_site_files_and_purge_deletes_them() {
    let machine = Machine::idle(&deb());
    let others = files_with_our_name(&machine);
    let machine = installed_on(machine);
    let mine = "echo '# mine' >> /etc/notbefore/agent.toml; mkdir -p /var/lib/notbefore-agent; echo > /var/lib/notbefore-agent/journal";
    machine.stdout("sh", &["-c", mine]);
    let keeps = "grep -q '# mine' /etc/notbefore/agent.toml && test -f /var/lib/notbefore-agent/journal";
    // A second installation is an upgrade.
    machine.stdout("dpkg", &["--install", "/root/package.deb"]);
    assert!(machine.holds(keeps), "an upgrade replaced a site file");
    machine.stdout("dpkg", &["--remove", "notbefore"]);
    assert!(machine.holds(keeps), "what the site wrote has gone with the package");
    for path in
        ["/usr/bin/notbefore", "/usr/lib/systemd/system/notbefore-agent.service", "/usr/share/doc/notbefore"]
    {
        assert!(!machine.holds(&format!("test -e {path}")), "{path} is still there");
    }
    machine.stdout("dpkg", &["--purge", "notbefore"]);
    let left: Vec<String> = files_with_our_name(&machine).difference(&others).cloned().collect();
    assert_eq!(left, Vec::<String>::new());
}
