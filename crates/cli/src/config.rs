//! Configuration of `serve`: file, environment variables and flags.
//!
//! Three stages:
//! 1. Read: `notbefore_settings` collects the values of the file, the environment and the flags (`flags.rs`), and
//!    checks each with its setting's kind.
//! 2. Merge: flags override the environment, which overrides the file, which overrides the defaults. Each value keeps
//!    its source, which `--print-config` shows (`print.rs`).
//! 3. Validate: `serve.rs` converts the typed [`Settings`] to the service's configuration and refuses contradictions.
//!
//! [`settings`] is the only list of settings.

mod flags;
mod kinds;
pub mod print;
mod settings;
mod table;

use std::path::{Path, PathBuf};

use notbefore_settings::schema::Key;
use notbefore_settings::{ConfigErrors, Entry, Reader, Schema, Sources, read_text};
use toml::de::DeTable;

pub use flags::Flags;
pub use settings::{Etcd, Exec, Settings};

/// Default file, used if it exists and no other is named.
const USUAL_FILE: &str = "/etc/notbefore/notbefore.toml";

static SCHEMA: Schema = Schema {
    settings: settings::GROUPS,
    tables: &[],
    prefix: "NOTBEFORE_",
    // Variables of the command line and of the agent.
    not_settings: &[
        "NOTBEFORE_OPERATOR",
        "NOTBEFORE_TOKEN",
        "NOTBEFORE_TOKEN_FILE",
        "NOTBEFORE_CA",
        "NOTBEFORE_ENDPOINT",
        "NOTBEFORE_AGENT_",
    ],
    is_prefix_own: false,
    file_variable: "NOTBEFORE_CONFIG",
    directory: "data",
};

/// The loaded configuration.
#[derive(Debug)]
pub struct Loaded {
    /// `None` if no file was read.
    pub file: Option<PathBuf>,
    pub settings: Settings,
    /// Every setting with its value and source, in the order of the table.
    pub entries: Vec<Entry>,
}

/// Reads file, environment and flags. A file named by flag or variable must exist.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigErrors> {
    load_with(Path::new(USUAL_FILE), sources)
}

fn load_with(usual: &Path, sources: &Sources) -> Result<Loaded, ConfigErrors> {
    let named = sources.file.as_deref().or_else(|| sources.variable(SCHEMA.file_variable).map(Path::new));
    read(named.or_else(|| usual.exists().then_some(usual)), sources)
}

/// Reads environment and flags.
pub fn load_without_file(sources: &Sources) -> Result<Loaded, ConfigErrors> {
    read(None, sources)
}

fn read(path: Option<&Path>, sources: &Sources) -> Result<Loaded, ConfigErrors> {
    let text = match path {
        Some(path) => std::fs::File::open(path)
            .and_then(read_text)
            .map_err(|error| ConfigErrors::one(format!("cannot read {}: {error}", path.display())))?,
        None => String::new(),
    };
    let mut reader = Reader::new(&SCHEMA, path.unwrap_or(Path::new(USUAL_FILE)), &text, sources);
    match &DeTable::parse(&text) {
        Ok(entries) => drop(reader.top(entries.get_ref())),
        Err(error) => reader.parse_error(error),
    }
    reader.add_sources(sources);
    let settings = Settings::read(&mut reader);
    Ok(Loaded { file: path.map(Path::to_owned), settings, entries: reader.finish()? })
}

/// Every setting with its default, in the order of the table.
fn defaults() -> Vec<Entry> {
    let mut reader = Reader::new(&SCHEMA, Path::new(""), "", &Sources::default());
    Settings::read(&mut reader);
    reader.finish().unwrap_or_default()
}

/// The description of a setting, on one line.
fn help(key: &Key) -> String {
    key.what.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use notbefore_settings::FlagValue;

    use super::*;

    fn sources(environment: &[(&str, &str)]) -> Sources {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Sources { environment: environment.iter().map(owned).collect(), ..Sources::default() }
    }

    fn loaded(text: &str, sources: Sources) -> Result<Loaded, ConfigErrors> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("n.toml");
        std::fs::write(&file, text).unwrap();
        load(&Sources { file: Some(file), ..sources })
    }

    fn mistakes(text: &str, environment: &[(&str, &str)]) -> Vec<String> {
        let wrong = loaded(text, sources(environment)).unwrap_err().0;
        wrong
            .into_iter()
            .map(|one| one.rsplit_once("/n.toml:").map_or(one.clone(), |(_, rest)| rest.to_owned()))
            .collect()
    }

    #[test]
    fn keys_variables_and_flags_are_unique() {
        let keys = SCHEMA.settings().map(|(group, key)| group.path_of(key));
        let mut variables: Vec<String> = keys.map(|key| SCHEMA.variable(&key)).collect();
        let others = SCHEMA.not_settings.iter().chain([&SCHEMA.file_variable]);
        variables.extend(others.map(|name| (*name).to_owned()));
        variables.sort();
        let many = variables.len();
        variables.dedup();
        assert_eq!(variables.len(), many);
    }

    #[test]
    fn config_defaults_match_service() {
        let settings = loaded("", Sources::default()).unwrap().settings;
        let domain = notbefore_core::Settings::default();
        assert_eq!(settings.events.notice, domain.notice_scale);
        assert_eq!(settings.events.user_operations_max, domain.user_operations_max);
        assert_eq!(settings.driver.simulated_duration, domain.simulated_duration);
    }

    #[test]
    fn flags_override_environment_and_file() {
        let text = "[events]\nuser_operations_max = 1\n\n[guest]\nrate_limit = 5\nlisten = [\"127.0.0.1:1\"]\n[driver]\nkind = 'manual'\n";
        let environment =
            [("NOTBEFORE_EVENTS_USER_OPERATIONS_MAX", "2"), ("NOTBEFORE_GUEST_RATE_LIMIT", "none")];
        let flag = FlagValue::of_key("events.user_operations_max", "3".to_owned());
        let said =
            Sources { flags: vec![FlagValue { flag: "x".to_owned(), ..flag }], ..sources(&environment) };
        let Loaded { settings, entries, .. } = loaded(text, said).unwrap();
        assert_eq!(settings.events.user_operations_max, 3);
        assert_eq!(settings.guest.rate_limit, None);
        assert_eq!(settings.guest.listen[0].at.address.port(), 1);
        assert_eq!(settings.driver.kind, notbefore_core::DriverKind::Manual);
        let source = |key: &str| entries.iter().find(|one| one.key == key).unwrap().source.to_string();
        assert_eq!(source("events.user_operations_max"), "flag --x");
        assert_eq!(source("guest.rate_limit"), "environment NOTBEFORE_GUEST_RATE_LIMIT");
        assert!(source("driver.kind").ends_with("n.toml:8"));
        assert_eq!(source("guest.mode"), "default");
    }

    #[test]
    fn state_directory_is_default_data_directory() {
        let data = |text: &str| {
            loaded(text, sources(&[("STATE_DIRECTORY", "/var/lib/x")])).unwrap().settings.general.data
        };
        assert_eq!(data(""), Path::new("/var/lib/x"));
        assert_eq!(data("data = '/srv'"), Path::new("/srv"));
    }

    #[test]
    fn errors_name_line_key_and_suggestion() {
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
                "8: operator.listen: expected an address with port, for example \"127.0.0.1:9255\", not a table",
                "10: unknown key events.kind; did you mean driver.kind?",
                "12: driver.kind: expected \"simulated\", \"manual\" or \"exec\", not 7",
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
            [
                "1: guest: expected a table with listen, vms, mode, newest_version, rfc1123_everywhere, rate_limit, faults, threads, limits"
            ]
        );
        assert_eq!(
            mistakes("quux = 1", &[]),
            [
                "1: unknown key quux; there are data, log, log_format, root_token_file, fleet_file, ready_file, guest, proxy, operator, etcd, node, events, driver"
            ]
        );
        assert_eq!(mistakes("\n\nx = = 1", &[]).len(), 1);
        assert!(mistakes("\n\nx = = 1", &[])[0].starts_with("3: "));
        assert!(mistakes("a = 99999999999999999999\n[guest]\n[guest]", &[])[0].starts_with("3: "));
    }

    #[test]
    fn unknown_setting_variables_are_refused() {
        assert_eq!(
            mistakes(
                "",
                &[
                    ("NOTBEFORE_GUEST_RATELIMIT", "5"),
                    ("NOTBEFORE_DAT", "x"),
                    ("NOTBEFORE_DRIVER_KIND", "unknown")
                ]
            ),
            [
                "environment NOTBEFORE_GUEST_RATELIMIT: there is no such setting; did you mean NOTBEFORE_GUEST_RATE_LIMIT?",
                "environment NOTBEFORE_DAT: there is no such setting; did you mean NOTBEFORE_DATA?",
                "environment NOTBEFORE_DRIVER_KIND: expected \"simulated\", \"manual\" or \"exec\", not \"unknown\"",
            ]
        );
    }

    #[test]
    fn variable_with_the_end_of_a_setting_is_refused_with_the_full_name() {
        for (name, meant) in [
            ("NOTBEFORE_NOTICE", "NOTBEFORE_EVENTS_NOTICE"),
            ("NOTBEFORE_notice", "NOTBEFORE_EVENTS_NOTICE"),
            ("NOTBEFORE_RATE_LIMIT", "NOTBEFORE_GUEST_RATE_LIMIT"),
            ("NOTBEFORE_EXEC_TIMEOUT", "NOTBEFORE_DRIVER_EXEC_TIMEOUT"),
            ("NOTBEFORE_TIMEOUT", "NOTBEFORE_DRIVER_EXEC_TIMEOUT"),
            // The setting's flag.
            ("NOTBEFORE_DRIVER", "NOTBEFORE_DRIVER_KIND"),
            (
                "NOTBEFORE_LISTEN",
                "NOTBEFORE_GUEST_LISTEN or NOTBEFORE_OPERATOR_LISTEN or NOTBEFORE_NODE_LISTEN",
            ),
        ] {
            let refused = format!("environment {name}: there is no such setting; did you mean {meant}?");
            assert_eq!(mistakes("", &[(name, "1")]), [refused]);
        }
    }

    #[test]
    fn variables_of_other_programs_and_commands_are_accepted() {
        let others = [
            "PATH",
            // Kubernetes, for services named notbefore, notbefore-guest and notbefore-agent.
            "NOTBEFORE_PORT",
            "NOTBEFORE_PORT_9255_TCP",
            "NOTBEFORE_PORT_9255_TCP_ADDR",
            "NOTBEFORE_SERVICE_HOST",
            "NOTBEFORE_SERVICE_PORT",
            "NOTBEFORE_SERVICE_PORT_HTTP",
            "NOTBEFORE_GUEST_PORT",
            "NOTBEFORE_GUEST_PORT_80_TCP_PROTO",
            "NOTBEFORE_GUEST_SERVICE_HOST",
            "NOTBEFORE_AGENT_SERVICE_PORT",
            // The command line and the agent.
            "NOTBEFORE_OPERATOR",
            "NOTBEFORE_TOKEN",
            "NOTBEFORE_TOKEN_FILE",
            "NOTBEFORE_CA",
            "NOTBEFORE_ENDPOINT",
            "NOTBEFORE_AGENT_LISTEN",
            "NOTBEFORE_AGENT_LOG",
            // Handlers of a rehearsal.
            "NOTBEFORE_HOOK",
            "NOTBEFORE_STATE",
            // Commands of the exec driver, and tests.
            "NOTBEFORE_SUBSCRIPTION",
            "NOTBEFORE_GROUP",
            "NOTBEFORE_SCOPE",
            "NOTBEFORE_NAME",
            "NOTBEFORE_VM_ID",
            "NOTBEFORE_HOST",
            "NOTBEFORE_TARGET_HOST",
            "NOTBEFORE_UPDATE_DOMAIN",
            "NOTBEFORE_CAUSE",
            "NOTBEFORE_OPERATION_ID",
            "NOTBEFORE_FENCE",
            "NOTBEFORE_OWNER",
            "NOTBEFORE_RESULT",
            "NOTBEFORE_ABORT_AFTER_COMMITS",
            "NOTBEFORE_WRITE",
            "NOTBEFORE_SEED",
        ];
        let hooks = notbefore_agent::hooks::variables::VARIABLES.map(|(name, _)| format!("NOTBEFORE_{name}"));
        for name in others.into_iter().chain(hooks.iter().map(String::as_str)) {
            assert!(loaded("", sources(&[(name, "x")])).is_ok(), "{name}");
        }
        // An empty variable counts as unset.
        assert!(loaded("", sources(&[("NOTBEFORE_DRIVER_KIND", ""), ("NOTBEFORE_NOTICE", "")])).is_ok());
    }

    #[test]
    fn named_file_must_exist() {
        let nowhere = Sources { file: Some("/nowhere/n.toml".into()), ..Sources::default() };
        let wrong = load(&nowhere).unwrap_err().to_string();
        assert!(wrong.starts_with("cannot read /nowhere/n.toml: "), "{wrong}");
        let loaded = load_with(Path::new("/nowhere/n.toml"), &Sources::default()).unwrap();
        assert_eq!(loaded.file, None);
    }
}
