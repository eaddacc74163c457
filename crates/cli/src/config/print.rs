//! The configuration as text: what `--print-config` shows. The sample file and the table of the documentation are
//! written here too, and kept right by tests.

use std::fmt::Write;

use serde::Serialize;
use toml::Value as Toml;

use super::{Merged, Written};

/// A setting for programs.
#[derive(Serialize)]
struct Entry {
    key: String,
    value: Toml,
    source: String,
}

/// The configuration for programs.
#[derive(Serialize)]
pub struct Effective {
    file: Option<String>,
    settings: Vec<Entry>,
}

impl Effective {
    /// What was merged.
    pub fn new(merged: &Merged) -> Self {
        let entry = |one: &Written| Entry {
            key: one.setting.key(),
            value: one.value.clone(),
            source: one.source.to_string(),
        };
        Self {
            file: merged.file.as_ref().map(|path| path.display().to_string()),
            settings: merged.values.iter().map(entry).collect(),
        }
    }
}

/// The effective configuration as a file that can be used, each line with its source.
pub fn toml(merged: &Merged) -> String {
    let mut text = match &merged.file {
        Some(path) => format!("# What notbefore serve goes by. The file is {}.\n", path.display()),
        None => "# What notbefore serve goes by. There is no file.\n".to_owned(),
    };
    let lines: Vec<String> =
        merged.values.iter().map(|one| format!("{} = {}", one.setting.name, one.value)).collect();
    // A long list does not push every comment to the right.
    let width = lines.iter().map(|line| line.chars().count()).filter(|width| *width <= 60).max().unwrap_or(0);
    let mut section = "";
    for (one, line) in merged.values.iter().zip(&lines) {
        if one.setting.section != section {
            section = one.setting.section;
            let _ = write!(text, "\n[{section}]\n");
        }
        let _ = writeln!(text, "{line:<width$}  # {}", one.source);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::settings::SETTINGS;
    use super::super::table::{Flag, Setting};
    use super::super::{Flags, Source, USUAL_FILE, load};
    use super::*;

    /// Every key at its default, commented out, so that a copy of it does not freeze today's defaults.
    fn sample() -> String {
        let mut text = format!(
            "# Settings of notbefore serve, each shown with its default. Copy this to {USUAL_FILE},\n\
             # and take the # off what you change. 'notbefore serve --check-config' looks it over,\n\
             # 'notbefore serve --print-config' shows what is in force and where it came from.\n"
        );
        let mut section = "";
        for setting in SETTINGS {
            if setting.section != section {
                section = setting.section;
                let _ = write!(text, "\n\n## {}\n[{section}]\n", setting.title.trim());
            }
            let _ = write!(text, "\n{}#{} = {}\n", comment(setting), setting.name, (setting.default)());
        }
        text
    }

    fn comment(setting: &Setting) -> String {
        let mut lines = vec![String::from("#")];
        for word in setting.help().split(' ') {
            let last = lines.len() - 1;
            if lines[last].chars().count() + word.chars().count() > 100 {
                lines.push(format!("# {word}"));
            } else {
                lines[last] = format!("{} {word}", lines[last]);
            }
        }
        lines.join("\n") + "\n"
    }

    /// The table of the documentation.
    fn reference() -> String {
        let mut text = "| key | default | flag | what it does |\n|---|---|---|---|\n".to_owned();
        for setting in SETTINGS {
            let flag = match setting.flag {
                Flag::None => String::new(),
                Flag::Value(name, value) => format!("`--{name} {value}`"),
                Flag::Switch(name) => format!("`--{name}`"),
                Flag::Choices(choices) => {
                    choices.iter().map(|(name, ..)| format!("`--{name}`")).collect::<Vec<_>>().join(", ")
                }
                Flag::Everywhere(name) => format!("`--{name} DIR`"),
            };
            let (key, default, help) = (setting.key(), (setting.default)(), setting.help());
            let _ = writeln!(text, "| `{key}` | `{default}` | {flag} | {} |", help.replace('|', "\\|"));
        }
        text
    }

    /// Compares a checked-in text with what the settings say, or writes it.
    fn checked_in(path: &str, wanted: impl Fn(&str) -> String) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        let wanted = wanted(&there);
        if std::env::var_os("NOTBEFORE_WRITE").is_some() {
            std::fs::write(&path, &wanted).unwrap();
            return;
        }
        assert!(
            there == wanted,
            "{} does not say what the settings are; write it anew with\n  NOTBEFORE_WRITE=1 cargo test -p notbefore --bin notbefore config::print",
            path.display()
        );
    }

    #[test]
    fn the_sample_has_every_setting() {
        checked_in("dist/notbefore.toml", |_| sample());
    }

    #[test]
    fn the_documentation_has_every_setting() {
        checked_in("docs/configuration.md", |page| {
            let (before, rest) =
                page.split_once("<!-- settings -->\n").expect("the page has a place for the table");
            let (_, after) = rest.split_once("<!-- end of settings -->\n").expect("the table has an end");
            format!("{before}<!-- settings -->\n{}<!-- end of settings -->\n{after}", reference())
        });
    }

    #[test]
    fn the_sample_says_the_defaults() {
        let sample = sample();
        let taken_off = sample.lines().map(|line| {
            let setting =
                line.strip_prefix('#').filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
            setting.unwrap_or(line).to_owned() + "\n"
        });
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("n.toml");
        std::fs::write(&file, taken_off.collect::<String>()).unwrap();
        let merged = load(Some(&file), &[], Flags::default()).unwrap();
        for one in &merged.values {
            assert!(matches!(one.source, Source::File { .. }), "{} is not in the sample", one.setting.key());
            assert_eq!(one.value, (one.setting.default)(), "{}", one.setting.key());
        }
    }

    #[test]
    fn what_is_printed_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("n.toml");
        let environment =
            [("NOTBEFORE_GUEST_LISTEN", "10.0.0.1:80,blue=[::1]:81"), ("NOTBEFORE_GUEST_RATE_LIMIT", "5")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let first = load(Some(Path::new("/dev/null")), &environment, Flags::default()).unwrap();
        std::fs::write(&file, toml(&first)).unwrap();
        let second = load(Some(&file), &[], Flags::default()).unwrap();
        let values = |merged: &Merged| merged.values.iter().map(|one| one.value.clone()).collect::<Vec<_>>();
        assert_eq!(values(&first), values(&second));
        assert!(toml(&first).contains("# environment NOTBEFORE_GUEST_LISTEN"), "{}", toml(&first));
    }
}
