//! What `serve` is told, and by whom.
//!
//! Three stages. *As written*: the file (`file.rs`), the environment (`environment.rs`) and the flags (`flags.rs`)
//! are each read on their own, every value checked by its setting's type, every mistake collected. *Merged*: a flag
//! goes before the environment, that before the file, that before the default; each value keeps its source, which
//! `--print-config` shows (`print.rs`). *Validated*: the typed [`Settings`] become the service's own configuration in
//! `serve.rs`, where settings that contradict each other are refused.
//!
//! [`settings`] is the one list of settings; a new one is added there and nowhere else.

mod environment;
mod file;
mod flags;
pub mod print;
mod settings;
mod suggest;
mod table;
mod value;

use std::fmt;
use std::path::{Path, PathBuf};

use toml::Value as Toml;

pub use flags::Flags;
use settings::SETTINGS;
pub use settings::{Exec, Settings};
use table::{FromMerged, Setting};
pub use value::Variable;

use notbefore_settings::Mistakes;

/// The file that is used if it exists and no other is named.
pub const USUAL_FILE: &str = "/etc/notbefore/notbefore.toml";
/// The variable that names another.
pub const FILE_VARIABLE: &str = "NOTBEFORE_CONFIG";
/// Where systemd says that a service shall keep its data. It comes before the built-in default only.
const STATE_DIRECTORY: &str = "STATE_DIRECTORY";

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody said anything.
    Default,
    /// A line of the file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A variable.
    Environment(String),
    /// A flag.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(f, "default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag --{name}"),
        }
    }
}

/// One value that somebody has written, of the right type.
#[derive(Clone, Debug)]
pub struct Written {
    setting: &'static Setting,
    value: Toml,
    source: Source,
}

/// Every setting with its value and where that came from.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The file that was read, if one was.
    pub file: Option<PathBuf>,
    /// In the order of [`SETTINGS`].
    values: Vec<Written>,
}

impl Merged {
    /// Starts with the defaults.
    fn new(file: Option<PathBuf>) -> Self {
        let default = |setting: &'static Setting| Written {
            setting,
            value: (setting.default)(),
            source: Source::Default,
        };
        Self { file, values: SETTINGS.iter().map(default).collect() }
    }

    /// Lays one source over what there is.
    fn lay_over(&mut self, written: Vec<Written>) {
        for one in written {
            let place = self.values.iter_mut().find(|place| std::ptr::eq(place.setting, one.setting));
            if let Some(place) = place {
                *place = one;
            }
        }
    }

    /// The value of a setting. Every setting of the table has one; `false` stands where there is no such setting.
    fn value(&self, section: &str, name: &str) -> &Toml {
        let found = self.values.iter().find(|one| one.setting.section == section && one.setting.name == name);
        found.map_or(&Toml::Boolean(false), |one| &one.value)
    }

    /// The settings with their types.
    pub fn settings(&self) -> Result<Settings, Mistakes> {
        Settings::from_merged(self).map_err(Mistakes::one)
    }
}

/// Reads file, environment and flags and merges them. `named` is the file that a flag names; a file that is named,
/// there or in the environment, must exist.
pub fn load(
    named: Option<&Path>,
    environment: &[(String, String)],
    flags: Flags,
) -> Result<Merged, Mistakes> {
    load_with(named, Path::new(USUAL_FILE), environment, flags)
}

fn load_with(
    named: Option<&Path>,
    usual: &Path,
    environment: &[(String, String)],
    flags: Flags,
) -> Result<Merged, Mistakes> {
    let by_variable = environment.iter().find(|(name, value)| name == FILE_VARIABLE && !value.is_empty());
    let named = named.or_else(|| by_variable.map(|(_, value)| Path::new(value)));
    let path = named.or_else(|| usual.exists().then_some(usual));
    let mut mistakes = Vec::new();
    let mut merged = Merged::new(path.map(Path::to_owned));
    merged.lay_over(state_directory(environment));
    if let Some(path) = path {
        merged.lay_over(file::read(path, &mut mistakes));
    }
    merged.lay_over(environment::read(environment, &mut mistakes));
    merged.lay_over(flags.written);
    if mistakes.is_empty() { Ok(merged) } else { Err(Mistakes(mistakes)) }
}

/// The variables of this process, as text; those that are none cannot be settings.
pub fn process_environment() -> Vec<(String, String)> {
    let texts = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        let name = name.into_string().ok()?;
        Some((name, value.to_string_lossy().into_owned()))
    };
    std::env::vars_os().filter_map(texts).collect()
}

fn state_directory(environment: &[(String, String)]) -> Vec<Written> {
    let data = SETTINGS.iter().find(|setting| setting.section.is_empty() && setting.name == "data");
    let said = environment.iter().find(|(name, value)| name == STATE_DIRECTORY && !value.is_empty());
    let written = data.zip(said).and_then(|(setting, (name, value))| {
        let value = (setting.from_text)(value).ok()?;
        Some(Written { setting, value, source: Source::Environment(name.clone()) })
    });
    written.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(text: &str, environment: &[(&str, &str)], flags: Flags) -> Result<Merged, Mistakes> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("n.toml");
        std::fs::write(&file, text).unwrap();
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let environment: Vec<_> = environment.iter().map(owned).collect();
        load(Some(&file), &environment, flags)
    }

    fn mistakes(text: &str, environment: &[(&str, &str)]) -> Vec<String> {
        let wrong = loaded(text, environment, Flags::default()).unwrap_err().0;
        wrong
            .into_iter()
            .map(|one| one.rsplit_once("/n.toml:").map_or(one.clone(), |(_, rest)| rest.to_owned()))
            .collect()
    }

    fn flag(section: &str, name: &str, text: &str) -> Flags {
        let setting =
            SETTINGS.iter().find(|setting| setting.section == section && setting.name == name).unwrap();
        let value = (setting.from_text)(text).unwrap();
        Flags { written: vec![Written { setting, value, source: Source::Flag("x".to_owned()) }] }
    }

    #[test]
    fn keys_variables_and_flags_are_unique() {
        let mut variables: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
        variables.extend([FILE_VARIABLE, "NOTBEFORE_OPERATOR", "NOTBEFORE_TOKEN"].map(str::to_owned));
        variables.sort();
        let many = variables.len();
        variables.dedup();
        assert_eq!(variables.len(), many);
    }

    #[test]
    fn the_defaults_are_those_of_the_service() {
        let settings = Merged::new(None).settings().unwrap();
        let domain = notbefore_core::Settings::default();
        assert_eq!(settings.events.notice.0, domain.notice_scale);
        assert_eq!(settings.events.user_operations_max.0, domain.user_operations_max);
        assert_eq!(settings.driver.simulated_duration.0, domain.simulated_duration);
    }

    #[test]
    fn a_flag_goes_before_the_environment_and_that_before_the_file() {
        let text = "[events]\nuser_operations_max = 1\n\n[guest]\nrate_limit = 5\nlisten = [\"127.0.0.1:1\"]\n[driver]\nkind = 'manual'\n";
        let environment =
            [("NOTBEFORE_EVENTS_USER_OPERATIONS_MAX", "2"), ("NOTBEFORE_GUEST_RATE_LIMIT", "none")];
        let merged = loaded(text, &environment, flag("events", "user_operations_max", "3")).unwrap();
        let settings = merged.settings().unwrap();
        assert_eq!(settings.events.user_operations_max.0, 3);
        assert_eq!(settings.guest.rate_limit, None);
        assert_eq!(settings.guest.listen[0].at.address.port(), 1);
        assert_eq!(settings.driver.kind, notbefore_core::DriverKind::Manual);
        let source =
            |key: &str| merged.values.iter().find(|one| one.setting.key() == key).unwrap().source.to_string();
        assert_eq!(source("events.user_operations_max"), "flag --x");
        assert_eq!(source("guest.rate_limit"), "environment NOTBEFORE_GUEST_RATE_LIMIT");
        assert!(source("driver.kind").ends_with("n.toml:8"));
        assert_eq!(source("guest.mode"), "default");
    }

    #[test]
    fn the_state_directory_is_a_default() {
        let data = |text: &str| {
            let merged = loaded(text, &[("STATE_DIRECTORY", "/var/lib/x")], Flags::default()).unwrap();
            merged.settings().unwrap().general.data.0
        };
        assert_eq!(data(""), Path::new("/var/lib/x"));
        assert_eq!(data("data = '/srv'"), Path::new("/srv"));
    }

    #[test]
    fn mistakes_name_line_key_and_the_nearest_known_one() {
        let wrong = mistakes(
            "[guest]\nlimts = 1\nrate_limit = \"many\"\n\n[gest]\nx = 1\n\n[operator.listen]\n[events]\nkind = \"manual\"\n[driver]\nkind = 7\n",
            &[],
        );
        assert_eq!(
            wrong,
            [
                "2: unknown key guest.limts; did you mean guest.limits?",
                "3: guest.rate_limit: expected a whole number from 1 on, or \"none\", not \"many\"",
                "5: unknown key gest; did you mean guest?",
                "8: operator.listen: expected an address with its port, as \"127.0.0.1:9255\", not a table",
                "10: unknown key events.kind; did you mean driver.kind?",
                "12: driver.kind: expected \"simulated\" or \"manual\" or \"exec\", not 7",
            ]
        );
        assert_eq!(
            mistakes("keep_history = '1d'", &[]),
            ["1: unknown key keep_history; did you mean events.keep_history?"]
        );
        assert_eq!(
            mistakes("operator_without_tls = true", &[]),
            ["1: unknown key operator_without_tls; did you mean operator.without_tls?"]
        );
        assert_eq!(
            mistakes("guest = 1", &[]),
            ["1: guest is a section, not a value: write [guest] and its keys below"]
        );
        assert_eq!(
            mistakes("quux = 1", &[]),
            ["1: unknown key quux; 'notbefore serve --print-config' shows all that there are"]
        );
        assert_eq!(mistakes("\n\nx = = 1", &[]).len(), 1);
        assert!(mistakes("\n\nx = = 1", &[])[0].starts_with("3: "));
        assert!(mistakes("a = 99999999999999999999\n[guest]\n[guest]", &[])[0].starts_with("3: "));
    }

    #[test]
    fn variables_that_look_like_settings_and_are_none_are_refused() {
        assert_eq!(
            mistakes(
                "",
                &[
                    ("NOTBEFORE_GUEST_RATELIMIT", "5"),
                    ("NOTBEFORE_DAT", "x"),
                    ("NOTBEFORE_DRIVER_KIND", "nobody")
                ]
            ),
            [
                "environment NOTBEFORE_GUEST_RATELIMIT: there is no such setting; did you mean NOTBEFORE_GUEST_RATE_LIMIT?",
                "environment NOTBEFORE_DAT: there is no such setting; did you mean NOTBEFORE_DATA?",
                "environment NOTBEFORE_DRIVER_KIND: expected \"simulated\" or \"manual\" or \"exec\", not \"nobody\"",
            ]
        );
        // Of other programs, of other commands of this one, and empty ones, which mean that nothing is said.
        let others = [
            ("PATH", "/bin"),
            ("NOTBEFORE_PORT", "tcp://10.0.0.1:9255"),
            ("NOTBEFORE_PORT_9255_TCP", "tcp://10.0.0.1:9255"),
            ("NOTBEFORE_OPERATOR", "http://x"),
            ("NOTBEFORE_TOKEN", "nb_x"),
            ("NOTBEFORE_CONFIG", "x"),
            ("NOTBEFORE_AGENT_LISTEN", "none"),
            ("NOTBEFORE_DRIVER_KIND", ""),
        ];
        assert!(loaded("", &others, Flags::default()).is_ok());
    }

    #[test]
    fn a_file_that_is_named_must_be_there() {
        let wrong = load(Some(Path::new("/nowhere/n.toml")), &[], Flags::default()).unwrap_err().to_string();
        assert!(wrong.starts_with("cannot read /nowhere/n.toml: "), "{wrong}");
        let merged = load_with(None, Path::new("/nowhere/n.toml"), &[], Flags::default()).unwrap();
        assert_eq!(merged.file, None);
    }
}
