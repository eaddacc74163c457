//! Configuration as text, for `--print-config`. Tests here also generate the sample file and the documentation's table
//! of settings, and compare both with the checked-in files.

use notbefore_settings::{Entry, print};
use serde::Serialize;

use super::Loaded;

/// The effective configuration, for JSON output.
#[derive(Serialize)]
pub struct Effective<'a> {
    file: Option<String>,
    settings: &'a [Entry],
}

impl<'a> Effective<'a> {
    pub fn new(loaded: &'a Loaded) -> Self {
        Self { file: loaded.file.as_ref().map(|path| path.display().to_string()), settings: &loaded.entries }
    }
}

/// The effective configuration as a valid TOML file, each line with its source as a comment.
pub fn toml(loaded: &Loaded) -> String {
    let file = match &loaded.file {
        Some(path) => format!("File: {}.", path.display()),
        None => "File: none.".to_owned(),
    };
    format!("# Effective configuration of notbefore serve. {file}\n{}", print::toml(&loaded.entries))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::path::Path;

    use notbefore_settings::schema::{Flag, Key};
    use notbefore_settings::{Source, Sources};

    use super::super::{SCHEMA, USUAL_FILE, defaults, help, load};
    use super::*;

    fn loaded(file: &Path, environment: &[(&str, &str)]) -> Loaded {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let environment = environment.iter().map(owned).collect();
        load(&Sources { file: Some(file.to_owned()), environment, ..Sources::default() }).unwrap()
    }

    /// The sample file. Keys are commented out, so that a copy does not pin today's defaults.
    fn sample() -> String {
        let mut text = format!(
            "# Settings of notbefore serve with their defaults. Copy this file to {USUAL_FILE}\n\
             # and uncomment the settings you change. 'notbefore serve --check-config' checks the file,\n\
             # 'notbefore serve --print-config' shows the effective settings and their sources.\n"
        );
        let mut section = "";
        for ((group, key), entry) in SCHEMA.settings().zip(defaults()) {
            if group.path != section {
                section = group.path;
                let _ = write!(text, "\n\n## {}\n[{section}]\n", group.title.trim());
            }
            let _ = write!(text, "\n{}#{} = {}\n", comment(key), key.name, entry.value);
        }
        text
    }

    fn comment(key: &Key) -> String {
        let mut lines = vec![String::from("#")];
        for word in help(key).split(' ') {
            let last = lines.len() - 1;
            if lines[last].chars().count() + word.chars().count() > 100 {
                lines.push(format!("# {word}"));
            } else {
                lines[last] = format!("{} {word}", lines[last]);
            }
        }
        lines.join("\n") + "\n"
    }

    /// The documentation's table of settings.
    fn reference() -> String {
        let mut text = "| key | default | flag | description |\n|---|---|---|---|\n".to_owned();
        for ((_, key), entry) in SCHEMA.settings().zip(defaults()) {
            let flag = match key.flag {
                Flag::None => String::new(),
                Flag::Value(name, value) => format!("`--{name} {value}`"),
                Flag::Switch(name) => format!("`--{name}`"),
                Flag::Choices(choices) => {
                    choices.iter().map(|(name, ..)| format!("`--{name}`")).collect::<Vec<_>>().join(", ")
                }
                Flag::Everywhere(name) => format!("`--{name} DIR`"),
            };
            let what = help(key).replace('|', "\\|");
            let _ = writeln!(text, "| `{}` | `{}` | {flag} | {what} |", entry.key, entry.value);
        }
        text
    }

    /// Compares a checked-in file with the generated text, or rewrites it if `NOTBEFORE_WRITE` is set.
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
            "{} does not match the settings; rewrite it with\n  NOTBEFORE_WRITE=1 cargo test --workspace --lib config::print",
            path.display()
        );
    }

    #[test]
    fn sample_file_is_up_to_date() {
        checked_in("dist/notbefore.toml", |_| sample());
    }

    #[test]
    fn documentation_table_is_up_to_date() {
        checked_in("docs/reference/configuration.md", |page| {
            let (before, rest) = page.split_once("<!-- settings -->\n").expect("no <!-- settings --> marker");
            let (_, after) =
                rest.split_once("<!-- end of settings -->\n").expect("no <!-- end of settings --> marker");
            format!("{before}<!-- settings -->\n{}<!-- end of settings -->\n{after}", reference())
        });
    }

    #[test]
    fn uncommented_sample_equals_defaults() {
        let sample = sample();
        let taken_off = sample.lines().map(|line| {
            let setting =
                line.strip_prefix('#').filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
            setting.unwrap_or(line).to_owned() + "\n"
        });
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("n.toml");
        std::fs::write(&file, taken_off.collect::<String>()).unwrap();
        for (one, default) in loaded(&file, &[]).entries.iter().zip(defaults()) {
            assert!(matches!(one.source, Source::File { .. }), "{} is not in the sample", one.key);
            assert_eq!(one.value, default.value, "{}", one.key);
        }
    }

    #[test]
    fn printed_config_round_trips() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("n.toml");
        let environment =
            [("NOTBEFORE_GUEST_LISTEN", "10.0.0.1:80,blue=[::1]:81"), ("NOTBEFORE_GUEST_RATE_LIMIT", "5")];
        let first = loaded(Path::new("/dev/null"), &environment);
        std::fs::write(&file, toml(&first)).unwrap();
        let second = loaded(&file, &[]);
        let values = |loaded: &Loaded| loaded.entries.iter().map(|one| one.value.clone()).collect::<Vec<_>>();
        assert_eq!(values(&first), values(&second));
        assert!(toml(&first).contains("# environment NOTBEFORE_GUEST_LISTEN"), "{}", toml(&first));
    }
}
