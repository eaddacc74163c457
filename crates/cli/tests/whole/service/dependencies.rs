//! Rules for dependencies, checked over `cargo metadata`: banned crates, one major version of each shipped crate, and
//! the direct dependencies of the crates that others build on. Each rule gives its reason.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Crates banned everywhere, including transitive and test dependencies.
const BANNED: [(&str, &str); 9] = [
    ("async-std", "there is one runtime, tokio"),
    (
        "aws-lc-sys",
        "there is one provider of cryptography, ring; this one needs cmake and builds for minutes",
    ),
    ("chrono", "jiff does dates and times"),
    ("hickory-proto", "a DNS library; no name is looked up but by the system"),
    ("native-tls", "TLS is rustls, the same on every system"),
    ("openssl-sys", "TLS is rustls; a binary that is linked with OpenSSL runs on one distribution"),
    ("reqwest", "HTTP is hyper; agent/src/hooks/webhook/connect.rs calls servers of others through proxies"),
    ("serde_yaml", "it is no longer maintained; serde-saphyr reads YAML"),
    ("tungstenite", "nothing here speaks WebSocket"),
];

/// Crates banned as direct dependencies only.
const BANNED_HERE: [(&str, &str); 6] = [
    ("lazy_static", "std::sync::LazyLock does it"),
    ("libc", "it takes unsafe code, which is forbidden; rustix has safe calls"),
    ("log", "tracing does the logging"),
    ("once_cell", "std::sync::OnceLock and LazyLock do it"),
    ("rand", "shipped code needs random bytes, from getrandom; tests need sequences that never change"),
    ("time", "jiff does dates and times"),
];

/// Crates with two major versions in the binary, or with test features: cargo metadata does not distinguish these.
const TWICE: [(&str, [&str; 2], &str); 5] = [
    ("base64", ["0.22", "0.23"], "tonic stays with 0.22"),
    ("bitflags", ["1", "2"], "defmt stays with 1; it is for machines without a system, and not built"),
    ("getrandom", ["0.2", "0.4"], "ring 0.17 stays with 0.2"),
    (
        "rand_core",
        ["0.9", "0.10"],
        "imbl stays with 0.9; 0.10 comes with a feature that only proptest asks for",
    ),
    ("syn", ["2", "3"], "tracing-attributes stays with 2; neither is linked, both only build"),
];

/// Most crates of others in the binary for Linux, with macros that only build. Lower it when the count falls.
const SHIPPED_MAX: usize = 170;

/// Features that the binary must not have. `checks` panics, and reads crash points from the environment.
const OF_TESTS: [(&str, &str); 4] = [
    ("notbefore-core", "samples"),
    ("notbefore-service", "describe"),
    ("notbefore-store", "checks"),
    ("notbefore-store", "contract"),
];

/// Direct dependencies of the crates that other projects use, or that all of ours build on. Every user pays for a new
/// one: consider it, then add it here.
const DIRECT: [(&str, &[&str]); 3] = [
    ("notbefore-core", &["jiff", "serde", "smol_str", "thiserror", "uuid"]),
    (
        "notbefore-wire",
        &[
            "bytes",
            "jiff",
            "notbefore-undescribed (optional)",
            "serde",
            "serde_json",
            "thiserror",
            "utoipa (optional)",
            "uuid",
        ],
    ),
    (
        "notbefore-client",
        &[
            "bytes",
            "futures-core",
            "getrandom",
            "http-body-util",
            "hyper",
            "hyper-util",
            "jiff",
            "notbefore-wire",
            "rustix on cfg(unix)",
            "serde",
            "serde_json",
            "socket2",
            "thiserror",
            "tokio",
            "tracing",
            "windows-registry on cfg(windows)",
        ],
    ),
];

/// Cargo metadata of the workspace for Linux, offline: crates for other systems may be missing.
fn metadata() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform"]);
    cargo.arg(format!("{}-unknown-linux-gnu", std::env::consts::ARCH));
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value[field].as_array().unwrap_or_else(|| panic!("no list {field}")).iter()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("no text {field} in {value}"))
}

/// The packages of this workspace.
fn workspace_packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    list(metadata, "packages").filter(|package| package["source"].is_null())
}

/// Ids of the packages in the binary, reached by normal dependencies.
fn shipped(metadata: &Value) -> BTreeSet<&str> {
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"], "nodes").map(|node| (text(node, "id"), node)).collect();
    let binary = workspace_packages(metadata).find(|package| text(package, "name") == "notbefore").unwrap();
    let (mut reached, mut ahead) = (BTreeSet::new(), vec![text(binary, "id")]);
    while let Some(id) = ahead.pop() {
        if reached.insert(id) {
            let is_normal = |dep: &&Value| list(dep, "dep_kinds").any(|kind| kind["kind"].is_null());
            ahead.extend(list(nodes[id], "deps").filter(is_normal).map(|dep| text(dep, "pkg")));
        }
    }
    reached
}

/// The part of a version whose change may break users: `1` of 1.2.3, `0.4` of 0.4.5.
fn major(version: &str) -> &str {
    let dots = if version.starts_with("0.") { 2 } else { 1 };
    version.match_indices('.').nth(dots - 1).map_or(version, |(end, _)| &version[..end])
}

#[test]
fn no_banned_crate_is_used() {
    let metadata = metadata();
    for package in list(&metadata, "packages") {
        let name = text(package, "name");
        if let Some((_, reason)) = BANNED.iter().find(|(banned, _)| *banned == name) {
            panic!("{name} is banned: {reason}; 'cargo tree -i {name}' says where it comes from");
        }
    }
    for package in workspace_packages(&metadata) {
        for dependency in list(package, "dependencies").map(|dependency| text(dependency, "name")) {
            if let Some((_, reason)) = BANNED_HERE.iter().find(|(banned, _)| *banned == dependency) {
                panic!("{} names {dependency}, which is banned: {reason}", text(package, "name"));
            }
        }
    }
}

#[test]
fn binary_has_one_major_version_of_each_crate() {
    let metadata = metadata();
    let shipped = shipped(&metadata);
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in list(&metadata, "packages").filter(|package| shipped.contains(text(package, "id"))) {
        versions.entry(text(package, "name")).or_default().insert(major(text(package, "version")));
    }
    assert!(versions.len() > 100, "{versions:?}");
    let found: Vec<_> = versions.into_iter().filter(|(_, majors)| majors.len() > 1).collect();
    let allowed: Vec<_> = TWICE.map(|(name, majors, _)| (name, BTreeSet::from(majors))).into();
    assert_eq!(found, allowed, "crates with several major versions, and those allowed in TWICE");
}

#[test]
fn binary_needs_no_more_crates_than_before() {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--offline", "-p", "notbefore", "--edges", "normal", "--prefix", "none"]);
    tree.arg("--target").arg(format!("{}-unknown-linux-gnu", std::env::consts::ARCH));
    let listed = tree.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).unwrap();
    let crates: BTreeSet<&str> = listed
        .lines()
        .map(|line| line.trim_end_matches(" (*)").trim_end_matches(" (proc-macro)"))
        .filter(|line| !line.starts_with("notbefore"))
        .collect();
    assert!(crates.len() > 100, "{crates:?}");
    assert!(crates.len() <= SHIPPED_MAX, "{} crates, {SHIPPED_MAX} at most: {crates:?}", crates.len());
}

/// Tests and './dev run' have them by crates/features: a crate that asks for one as a normal dependency would ship it.
#[test]
fn binary_has_no_features_of_tests() {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--offline", "-p", "notbefore", "--edges", "normal", "--prefix", "none"]);
    let listed = tree.args(["--format", "{p}|{f}"]).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).unwrap();
    let ours: BTreeMap<&str, &str> = listed
        .lines()
        .filter(|line| line.starts_with("notbefore"))
        .filter_map(|line| line.trim_end_matches(" (*)").split_once('|'))
        .map(|(package, features)| (package.split(' ').next().unwrap_or_default(), features))
        .collect();
    for (package, of_tests) in OF_TESTS {
        let features: Vec<&str> = ours[package].split(',').collect();
        assert!(!features.contains(&of_tests), "the binary has {package} with the feature {of_tests}");
    }
}

#[test]
fn core_wire_and_client_dependencies_match_list() {
    let metadata = metadata();
    for (name, expected) in DIRECT {
        let package = workspace_packages(&metadata).find(|package| text(package, "name") == name).unwrap();
        let normal = list(package, "dependencies").filter(|dependency| dependency["kind"].is_null());
        let mut found: Vec<String> = normal
            .map(|dependency| {
                let target = dependency["target"].as_str().map(|target| format!(" on {target}"));
                let optional = if dependency["optional"] == true { " (optional)" } else { "" };
                format!("{}{optional}{}", text(dependency, "name"), target.unwrap_or_default())
            })
            .collect();
        found.sort();
        assert_eq!(found, expected, "the dependencies of {name}, and those written down in DIRECT");
    }
}
