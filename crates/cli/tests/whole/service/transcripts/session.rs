//! One session: its directory with files, the placeholders, and the comparison.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use regex_lite::{Captures, Regex};
use tempfile::TempDir;

use crate::support::{Service, binary};

static ID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b").unwrap());
/// Other values that differ between runs, with their placeholders.
static VARYING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"\b20\d\d-\d\d-\d\d  Reboot", "<day>  Reboot"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "<time>"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+00:00", "<time>"),
        (r"\bin \d+ (s|min|h|d)( \d+ (s|min|h))?\b", "in <span>"),
        (r", in \d+m( \d+s)?\b", ", in <span>"),
        (r"(\b\d+ (ms|s|min|h|d) )+ago\b", "<age>"),
        (r"\b\d+(\.\d+)? s\b", "<span>"),
        (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT", "<time>"),
        (r"  now\b", "  <age>"),
        // Ephemeral ports and ports of tests; ports in examples have fewer digits.
        (r"\b(127\.\d+\.\d+\.\d+|localhost):\d{5}\b", "<address>"),
        (r"\brevision \d+\b", "revision <revision>"),
        (r"\brevision: \d+\b", "revision: <revision>"),
        (r#""revision": \d+"#, r#""revision": <revision>"#),
        (r#""id": "\d+\.(\d+)""#, r#""id": "<revision>.$1""#),
        (r"\bnb_[A-Za-z0-9_-]+", "<secret>"),
        (r"\b\d+\.\d [KMGT]iB\b", "<size>"),
        (r"\bstarted now\b", "started <age>"),
        (r"\bversion \d+\.\d+\.\d+\b", "version <version>"),
        (r#""version": "\d+\.\d+\.\d+""#, r#""version": "<version>""#),
        (r#""(bytes|bytes_free)": \d+"#, r#""$1": <size>"#),
    ]
    .map(|(pattern, name)| (Regex::new(pattern).unwrap(), name))
    .into()
});
/// Placeholders of different lengths; column widths are normalised.
static WIDTH_VARIES: LazyLock<Regex> = LazyLock::new(|| Regex::new("<time>|<span>|<age>|<secret>").unwrap());
static GAP: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(\S) {2,}").unwrap());

/// A session being recorded.
pub struct Session {
    dir: TempDir,
    data: Option<PathBuf>,
    /// Placeholders in angle brackets, with their values.
    placeholders: Vec<(String, String)>,
    /// The printed ids, in order.
    ids: RefCell<Vec<String>>,
}

impl Session {
    /// A session without a service.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(transcripts().join("files")).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), dir.path().join(file.file_name())).unwrap();
        }
        let placeholders = vec![("dir".to_owned(), dir.path().display().to_string())];
        Self { dir, data: None, placeholders, ids: RefCell::default() }
    }

    /// A session with a service, running or not.
    pub fn with_service(service: &Service) -> Self {
        let session = Self { data: Some(service.data().to_owned()), ..Self::new() };
        session.with_placeholder("data", &service.data().display().to_string())
    }

    /// Adds a placeholder: commands may use it, and it replaces its value in the transcript.
    pub fn with_placeholder(mut self, name: &str, meaning: &str) -> Self {
        self.placeholders.push((name.to_owned(), meaning.to_owned()));
        self
    }

    /// Runs the commands of a transcript and compares their output.
    pub fn check(&self, name: &str) {
        let file = transcripts().join(format!("{name}.txt"));
        let before = std::fs::read_to_string(&file).unwrap();
        let mut now = String::new();
        for line in before.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                now += &format!("\n$ {command}\n{}", self.run(command));
            } else if line.starts_with("#: ") {
                now += &format!("{}{line}\n", if now.is_empty() { "" } else { "\n" });
            }
        }
        if std::env::var_os("NOTBEFORE_WRITE").is_some() {
            std::fs::write(&file, now).unwrap();
            return;
        }
        let differs = before.lines().zip(now.lines()).position(|(before, now)| before != now);
        let differs = differs.or((before != now).then(|| before.lines().count().min(now.lines().count())));
        if let Some(at) = differs {
            let shown =
                |text: &str| text.lines().skip(at.saturating_sub(3)).take(12).collect::<Vec<_>>().join("\n");
            panic!(
                "{name}.txt differs from line {} on. It has\n\n{}\n\nand the commands print\n\n{}\n\nIf that is as it should be: NOTBEFORE_WRITE=1 cargo test --workspace --test whole transcripts::",
                at + 1,
                shown(&before),
                shown(&now)
            );
        }
    }

    /// Runs one command; returns its text in the transcript.
    pub fn run(&self, line: &str) -> String {
        let words = self.expanded(line);
        let (variables, words) = words.split_at(words.iter().position(|word| word == "notbefore").unwrap());
        let mut command = Command::new(binary());
        command.args(&words[1..]).current_dir(self.dir.path()).stdin(Stdio::null());
        // Remove the terminal's width and settings for other services.
        for (name, _) in std::env::vars_os() {
            if name == "COLUMNS" || name.to_str().is_some_and(|name| name.starts_with("NOTBEFORE_")) {
                command.env_remove(name);
            }
        }
        command.env_remove("STATE_DIRECTORY").env("TZ", "UTC");
        command.envs(self.data.iter().map(|data| ("NOTBEFORE_DATA", data)));
        command.envs(variables.iter().filter_map(|variable| variable.split_once('=')));
        let output = command.output().unwrap();
        let mut printed = String::from_utf8(output.stdout).unwrap();
        if !printed.is_empty() && !printed.ends_with('\n') {
            printed += "\n";
        }
        for line in String::from_utf8(output.stderr).unwrap().lines() {
            printed += format!("2> {line}").trim_end();
            printed += "\n";
        }
        if output.status.code() != Some(0) {
            printed += &format!("[exit {}]\n", output.status.code().unwrap());
        }
        self.shown(&printed)
    }

    /// The arguments of a command, with placeholders expanded.
    fn expanded(&self, line: &str) -> Vec<String> {
        let mut line = line.to_owned();
        for (name, meaning) in &self.placeholders {
            line = line.replace(&format!("<{name}>"), meaning);
        }
        for (at, id) in self.ids.borrow().iter().enumerate() {
            line = line.replace(&format!("<id {}>", at + 1), id);
            line = line.replace(&format!("<id {}…>", at + 1), &id[..8]);
        }
        // What is between quotes is one word.
        let parts = line.split('\'').enumerate();
        let words = parts.flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        });
        words.collect()
    }

    /// The output, with placeholders for values that differ between runs.
    fn shown(&self, printed: &str) -> String {
        let mut ids = self.ids.borrow_mut();
        let mut text = ID.replace_all(printed, |found: &Captures<'_>| {
            let id = found[0].to_lowercase();
            let at = ids.iter().position(|known| *known == id).unwrap_or_else(|| {
                ids.push(id);
                ids.len() - 1
            });
            format!("<id {}>", at + 1)
        });
        for (at, id) in ids.iter().enumerate() {
            text = text.replace(&id[..8], &format!("<id {}…>", at + 1)).into();
        }
        for (name, meaning) in &self.placeholders {
            text = text.replace(meaning, &format!("<{name}>")).into();
        }
        let mut text = text.into_owned();
        for (pattern, name) in VARYING.iter() {
            text = pattern.replace_all(&text, *name).into_owned();
        }
        match WIDTH_VARIES.is_match(&text) {
            true => GAP.replace_all(&text, "$1  ").into_owned(),
            false => text,
        }
    }
}

fn transcripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/whole/service/transcripts")
}
