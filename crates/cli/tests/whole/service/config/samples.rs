//! Every file in `dist/` is checked by the program that reads it: the service, `fleet apply`, systemd, a shell.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::binary;

/// Limit of the unit's exposure in `systemd-analyze security`, in tenths (0 is fully confined, 100 is root).
const EXPOSURE_MAX: &str = "20";

fn dist() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist")
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn run(program: &str, args: &[&str]) -> Output {
    let output = Command::new(program).args(args).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}; its package is in tools/needs/tests.txt"))
}

/// Runs a command that must succeed with empty output.
fn is_content(program: &str, args: &[&str]) {
    let output = run(program, args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{program} {args:?}: {stderr}");
}

#[test]
fn every_sample_is_valid() {
    let units = Units::copy();
    for path in files(&dist()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = path.to_str().unwrap();
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("toml") if name == "agent.toml" => {
                is_content(binary(), &["agent", "check", "--offline", "--config", text]);
            }
            Some("toml") => is_content(binary(), &["serve", "--check-config", "--config", text]),
            Some("yaml") => is_content(binary(), &["fleet", "apply", "--check", text]),
            Some("service") => units.verify(name),
            Some("conf") if path.parent().is_some_and(|dir| dir.ends_with("etcd.service.d")) => {
                units.verify("etcd.service");
            }
            // Read along with the unit that it belongs to.
            Some("conf") if path.parent().is_some_and(is_of_a_unit) => {}
            // service::dashboards checks these.
            Some("json" | "yml") => {}
            // cluster::tls and cluster::reach run these.
            Some("conf" | "cfg") if path.parent().is_some_and(|dir| dir.ends_with("cluster")) => {}
            // examples::ci checks it.
            _ if name == "Containerfile" => {}
            // Packaging files have their own test.
            _ if path.parent().is_some_and(|dir| dir.ends_with("debian")) => {}
            _ if std::fs::read_to_string(&path).unwrap().starts_with("#!/bin/") => {
                is_content("bash", &["-n", text]);
            }
            _ => panic!("{text}: say here how this sample is checked"),
        }
    }
}

fn is_of_a_unit(dir: &Path) -> bool {
    ["notbefore.service.d", "notbefore-agent.service.d"].iter().any(|name| dir.ends_with(name))
}

#[test]
fn systemd_unit_is_sandboxed() {
    let units = Units::copy();
    // With --offline it reads files only, and needs no running systemd.
    let unit = units.path("notbefore.service");
    let args = ["security", "--offline=true", "--threshold", EXPOSURE_MAX, unit.to_str().unwrap()];
    let output = run("systemd-analyze", &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// The units with their drop-ins, with the path of the tested binary, and Debian's unit of etcd.
struct Units(tempfile::TempDir);

impl Units {
    fn copy() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let from = dist().join("systemd");
        for path in files(&from) {
            let text = std::fs::read_to_string(&path).unwrap().replace("/usr/bin/notbefore", binary());
            let to = dir.path().join(path.strip_prefix(&from).unwrap());
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::write(to, text).unwrap();
        }
        let etcd = "/lib/systemd/system/etcd.service";
        crate::support::namespace::require_file(etcd, "etcd-server");
        std::fs::copy(etcd, dir.path().join("etcd.service")).unwrap();
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Verifies a unit with systemd; a template is instantiated for an interface.
    fn verify(&self, name: &str) {
        let instance = self.path(&name.replace("@.", "@br0."));
        if !instance.exists() {
            std::fs::copy(self.path(name), &instance).unwrap();
        }
        is_content("systemd-analyze", &["verify", "--man=no", instance.to_str().unwrap()]);
    }
}
