//! Licences of the crates that the binary links.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::deb;
use crate::support::pages::root;

/// Licences allowed in a binary under MIT or Apache-2.0.
const ALLOWED: [&str; 17] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 with LLVM-exception",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "MPL-2.0+",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Linked crates as NAME-VERSION, without ours.
fn linked() -> Vec<String> {
    let mut tree = Command::new("cargo");
    tree.args(["tree", "--locked", "--offline", "-p", "notbefore", "-e", "normal,no-proc-macro"]);
    let listed = tree.args(["--prefix", "none", "-f", "{p}"]).current_dir(root()).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).unwrap();
    let theirs = listed.lines().filter(|line| !line.contains("(/"));
    let crates =
        theirs.map(|line| line.split(' ').take(2).collect::<Vec<_>>().join("-").replacen("-v", "-", 1));
    let mut crates: Vec<String> = crates.collect();
    crates.sort();
    crates.dedup();
    crates
}

/// The value of a field in a paragraph of the copyright file, with continuation lines.
fn field<'a>(paragraph: &'a str, name: &str) -> Option<(&'a str, String)> {
    let mut lines = paragraph.lines().skip_while(|line| !line.starts_with(&format!("{name}: ")));
    let first = lines.next()?.split_once(": ")?.1;
    let more: Vec<&str> = lines.take_while(|line| line.starts_with(' ')).map(str::trim).collect();
    Some((first, more.join("\n")))
}

/// Runs the program that writes the copyright file.
fn write_copyright(crates: &str) -> Output {
    let mut program = Command::new(root().join("dist/debian/copyright.py"));
    let mut child =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(crates.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn copyright_file_lists_every_linked_crate_with_licence() {
    let tree = tempfile::tempdir().unwrap();
    let mut extract = Command::new("dpkg-deb");
    assert!(extract.arg("--extract").arg(deb()).arg(tree.path()).status().unwrap().success());
    let copyright = std::fs::read_to_string(tree.path().join("usr/share/doc/notbefore/copyright")).unwrap();
    let paragraphs: Vec<&str> = copyright.split("\n\n").collect();
    let linked = linked();
    assert!(linked.len() > 100, "{linked:?}");
    for one in linked {
        let pattern = format!("vendor/{one}/*");
        let names = |paragraph: &&&str| {
            field(paragraph, "Files")
                .is_some_and(|(first, more)| first == pattern || more.lines().any(|line| line == pattern))
        };
        let paragraph =
            paragraphs.iter().find(names).unwrap_or_else(|| panic!("{one} is not in the copyright file"));
        let (licence, text) = field(paragraph, "License").unwrap();
        let plain = licence.replace(['(', ')'], "").replace(" and ", " or ");
        assert!(plain.split(" or ").all(|licence| ALLOWED.contains(&licence)), "{one}: {licence}");
        assert!(text.len() > 40, "{one} has no text: {text:?}");
        assert!(field(paragraph, "Copyright").is_some(), "{one}");
    }
}

#[test]
fn release_list_has_every_linked_crate_with_licence_and_checksum() {
    let list = "cargo tree --locked --offline -p notbefore -e normal,no-proc-macro --prefix none -f '{p}|{l}|{r}' \
                | tools/dependencies 1.2.3";
    let done =
        Command::new("bash").args(["-euo", "pipefail", "-c", list]).current_dir(root()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let list: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(list["bomFormat"], "CycloneDX");
    assert_eq!(list["metadata"]["component"]["version"], "1.2.3");
    let components = list["components"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut listed = Vec::new();
    for one in components {
        listed.push(format!("{}-{}", text(&one["name"]), text(&one["version"])));
        let licence =
            text(&one["licenses"][0]["expression"]).replace(['(', ')'], "").replace(" AND ", " OR ");
        let licence = licence.replace(" WITH ", " with ");
        assert!(licence.split(" OR ").all(|licence| ALLOWED.contains(&licence)), "{one}");
        assert_eq!(text(&one["hashes"][0]["content"]).len(), 64, "{one}");
    }
    listed.sort();
    assert_eq!(listed, linked());
}

#[test]
fn crate_without_allowed_licence_or_text_fails_packaging() {
    for (crates, expected) in [
        ("serde v1.0.0|", "serde-1.0.0 names no licence"),
        ("serde v1.0.0|GPL-3.0-only", "serde-1.0.0 has the licence 'GPL-3.0-only'"),
        ("serde v1.0.0|MIT AND Proprietary", "['Proprietary'] is not among those"),
        ("nowhere-to-be-found v1.0.0|MIT", "the source of nowhere-to-be-found-1.0.0 is not below"),
        ("notbefore v0.1.0 (/src)|MIT", "there is no crate on standard input"),
    ] {
        let refused = write_copyright(crates);
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(1) && error.contains(expected), "{crates}: {error}");
    }
}
