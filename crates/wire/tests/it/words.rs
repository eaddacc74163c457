//! Checks that words of the operator API are compared as enums: outside the wire crate, no match arm and no comparison
//! has such a word as a string literal.
//!
//! Checked: `crates/*/src` except `crates/wire`, each file up to its tests. A finding is a literal equal to a word of
//! [`notbefore_wire::operator::words`] (ignoring case) in a pattern (before `=>`, or in `matches!`), beside `==` or
//! `!=`, or as the argument of `eq_ignore_ascii_case`. Tables that turn settings into enums (`words!`) are exempt.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use notbefore_wire::operator::words::KNOWN;

/// Collects the source files below a directory.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.extension().and_then(|end| end.to_str()) {
            Some("rs") if entry.file_name().is_some_and(|name| name != "tests.rs") => found.push(entry),
            None if entry.is_dir() => sources(&entry, found),
            _ => {}
        }
    }
}

/// The words that a source compares as text, with their lines.
fn compared(source: &str, words: &BTreeSet<String>) -> Vec<(usize, String)> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let mut found = Vec::new();
    let (mut in_table, mut in_matches) = (false, false);
    for (number, line) in source.lines().enumerate() {
        let code = line.trim();
        in_table = (in_table || code.starts_with("words!")) && !code.ends_with("});") && code != "}";
        if in_table || code.starts_with("//") || code.starts_with("words!") {
            continue;
        }
        in_matches |= code.contains("matches!(");
        for (at, _) in code.match_indices('"') {
            let Some((literal, after)) = code[at + 1..].split_once('"') else { continue };
            if !words.contains(&literal.to_ascii_lowercase()) {
                continue;
            }
            let (before, after) = (code[..at].trim_end(), after.trim_start());
            let compares = ["==", "!=", "eq_ignore_ascii_case("].iter().any(|sign| before.ends_with(sign))
                || after.starts_with("==")
                || after.starts_with("!=");
            // A pattern ends with an arrow, or is one of several alternatives.
            let is_pattern = (after.contains("=>") && !before.contains("=>"))
                || after.starts_with('|')
                || code.starts_with("| ")
                || in_matches;
            if compares || is_pattern {
                found.push((number + 1, literal.to_owned()));
            }
        }
        in_matches &= !code.contains(')');
    }
    found
}

#[test]
fn api_words_are_not_compared_as_text() {
    let mut words: BTreeSet<String> = KNOWN.concat().iter().map(|word| word.to_ascii_lowercase()).collect();
    // Also the answer to a confirmation.
    words.remove("yes");
    // Also a route.
    words.remove("status");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for one in fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()) {
        if one.file_name().is_some_and(|name| name != "wire") && one.join("src").is_dir() {
            sources(&one.join("src"), &mut files);
        }
    }
    assert!(files.len() > 100, "{files:?}");
    let mut found = Vec::new();
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(crates).unwrap().display().to_string();
        found.extend(compared(&source, &words).iter().map(|(line, word)| format!("{name}:{line}: {word:?}")));
    }
    assert!(found.is_empty(), "{} words compared as text:\n{}", found.len(), found.join("\n"));
}

#[test]
fn text_comparison_with_api_word_is_detected() {
    let words = BTreeSet::from(["failed".to_owned(), "started".to_owned()]);
    for (source, count) in [
        ("match text {\n    \"failed\" => 1,\n    \"Started\" | \"failed\" => 2,\n}", 3),
        ("    (\"failed\", Some(_)) => 1,", 1),
        ("    Some(\"failed\") if is_so => 1,", 1),
        ("if state == \"failed\" || \"started\" != state {", 2),
        ("if text.eq_ignore_ascii_case(\"failed\") {", 1),
        ("matches!(text, \"failed\" | \"x\")", 1),
        ("matches!(\n    text,\n    \"failed\"\n)", 1),
        ("    State::Failed => \"failed\",", 0),
        ("line(\"failed\");", 0),
        ("// \"failed\" => 1,", 0),
        ("words!(State, \"a\" {\n    \"failed\" => State::Failed,\n});", 0),
        ("#[cfg(test)]\nmod tests {\n    a == \"failed\"", 0),
    ] {
        assert_eq!(compared(source, &words).len(), count, "{source}");
    }
}
