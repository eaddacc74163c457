//! Paths in the package's texts exist in the package: linked pages, and files to copy or read.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::pages::links;

/// Directory of the pages, and the working directory of their commands.
const DOCUMENTS: &str = "usr/share/doc/notbefore";
/// Paths that pages name relative to the repository.
const PARTS: [&str; 4] = ["docs/", "recipes/", "examples/", "dist/"];
/// Paths that are not in the package: from other packages, or created by the site.
const ELSEWHERE: [&str; 13] = [
    "/etc/notbefore/operator-ca.pem",
    "/etc/notbefore/proxy.secret",
    "/etc/notbefore/tenant.token",
    "/etc/notbefore/tls",
    "/usr/bin/etcd",
    "/usr/bin/env",
    "/usr/bin/python3",
    "/usr/lib/debug/usr/bin/notbefore.debug",
    "/usr/local/",
    "/usr/sbin/ip",
    "/usr/share/bash-completion/completions/notbefore",
    "/usr/share/common-licenses/",
    "/usr/share/zsh/site-functions/_notbefore",
];

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// A file's text without manual page formatting; empty for a program.
fn text(file: &Path) -> Option<String> {
    let bytes = match file.extension().is_some_and(|ending| ending == "gz") {
        true => Command::new("gzip").arg("-dc").arg(file).output().unwrap().stdout,
        false => std::fs::read(file).unwrap(),
    };
    let text = String::from_utf8(bytes).ok()?;
    Some(text.replace("\\-", "-").replace("\\fB", " ").replace("\\fR", " "))
}

/// The files that a text names, as paths in the package.
fn named(text: &str) -> Vec<String> {
    let ends = |c: char| c.is_whitespace() || "\"'`()<>[]{}|,;:=#*!$\\".contains(c);
    let words = text.split(ends).map(|word| word.trim_end_matches('.'));
    let place = |word: &str| {
        let here = word.strip_prefix("./").unwrap_or(word);
        let is_ours = word.starts_with("/usr/") || word.starts_with("/etc/notbefore/");
        if PARTS.iter().any(|part| here.starts_with(part)) {
            Some(format!("{DOCUMENTS}/{here}"))
        } else if is_ours && !ELSEWHERE.iter().any(|place| word.starts_with(place)) {
            word.strip_prefix('/').map(str::to_owned)
        } else {
            None
        }
    };
    words.filter_map(place).collect()
}

#[test]
fn every_named_path_is_packaged() {
    let tree = tempfile::tempdir().unwrap();
    let extracted = Command::new("dpkg-deb").arg("--extract").arg(super::deb()).arg(tree.path()).status();
    assert!(extracted.unwrap().success());
    let mut missing = Vec::new();
    let mut seen = 0;
    for file in files_below(tree.path()) {
        let Some(text) = text(&file) else { continue };
        let shown = file.strip_prefix(tree.path()).unwrap().display();
        let linked = match file.extension().is_some_and(|ending| ending == "md") {
            true => links(&text).into_iter().map(|link| file.parent().unwrap().join(link)).collect(),
            false => Vec::new(),
        };
        let named = named(&text).into_iter().map(|name| tree.path().join(name));
        for path in linked.into_iter().chain(named) {
            seen += 1;
            if !path.exists() {
                missing.push(format!("{shown}: {}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "what is named is not there:\n{}", missing.join("\n"));
    assert!(seen > 100, "only {seen} paths were found");
}
