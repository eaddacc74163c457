//! Pages of the repository, and their commands run as their readers type them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The fenced blocks of a language on a page, in order.
pub fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap().to_owned()).collect()
}

/// Takes from a command what this test has in its environment and whoever reads the page has not. What cargo tells a test of
/// its package would also have cargo build again what it has built.
pub fn as_typed(command: &mut Command) {
    let of_cargo =
        ["CARGO", "CARGO_CRATE_NAME", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PRIMARY_PACKAGE"];
    for (name, _) in std::env::vars_os() {
        let word = name.to_string_lossy();
        let of_the_package = word.starts_with("CARGO_PKG_") || word.starts_with("CARGO_BIN_");
        let of_ours = word.starts_with("NOTBEFORE_") || word.eq_ignore_ascii_case("http_proxy");
        if of_cargo.contains(&&*word) || of_the_package || of_ours {
            command.env_remove(&name);
        }
    }
}
