//! Tests of the configuration as a whole.

use std::time::Duration;

use super::*;
use crate::rules::{Approve, OnFailure, OnInterrupt, ResourceMatch, Restore, StepAction};

fn sources(environment: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Sources {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Sources {
        environment: environment.iter().map(owned).collect(),
        flags: flags.iter().map(|(key, text)| FlagValue::of_key(key, (*text).to_owned())).collect(),
        ..Sources::default()
    }
}

fn read_text(text: &str) -> Result<Config, ConfigErrors> {
    read(Path::new("a.toml"), text, &Sources::default())
}

fn mistakes(text: &str) -> Vec<String> {
    read_text(text).unwrap_err().0
}

const RULE: &str = "[[rule]]\nname = 'drain'\n";

#[test]
fn sample_configuration_is_valid() {
    let config = read_text(SAMPLE).unwrap();
    let names: Vec<&str> = config.rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names, ["short-freeze", "drain"]);
    assert_eq!((config.rules[0].drain, config.rules[1].drain), (false, true));
    assert_eq!(
        config.rules[1].before[0].on_failure,
        OnFailure::GoOn,
        "less time than wished for withholds nothing"
    );
    let is_key = |line: &str| line.starts_with(|c: char| c.is_ascii_lowercase() || c == '[');
    let uncommented: String = SAMPLE
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| is_key(rest)).unwrap_or(line).to_owned() + "\n")
        .collect();
    let config = read_text(&uncommented).unwrap();
    assert!(config.notify.is_some() && config.dry_run && config.rules[1].after.len() == 1);
}

#[test]
fn rule_defaults_match_documentation() {
    let rule = &read_text(&format!("{RULE}[[rule.before]]\nshell='x'\n[[rule.after]]\ncommand=['y', '']\n"))
        .unwrap()
        .rules[0];
    assert_eq!((rule.approve, rule.restore, rule.drain), (Approve::WhenDone, Restore::Gone, true));
    assert_eq!(rule.matches.resources, ResourceMatch::Mine);
    let (before, after) = (&rule.before[0], &rule.after[0]);
    assert_eq!((before.name.as_str(), before.timeout), ("1", Duration::from_secs(3_600)));
    assert_eq!((before.on_failure, before.on_interrupt), (OnFailure::Withhold, OnInterrupt::Rerun));
    assert_eq!((after.timeout, after.on_failure), (Duration::from_secs(300), OnFailure::Withhold));
    assert_eq!(after.does, StepAction::Command { argv: vec!["y".to_owned(), String::new()] });
    let others =
        &read_text(&format!("{RULE}resources='others'\n[[rule.before]]\nwait='2h'\n")).unwrap().rules[0];
    assert_eq!((others.approve, others.drain), (Approve::Never, false));
    assert_eq!(others.before[0].timeout, Duration::from_secs(7_260), "a wait has time to end");
}

#[test]
fn notifications_are_by_default_those_that_need_an_administrator() {
    let on = |keys: &str| {
        read_text(&format!("[notify]\nurl = 'http://x'\n{keys}{RULE}")).unwrap().notify.unwrap().on
    };
    let usual = "'appeared', 'unmatched', 'withheld', 'stranded', 'failed'";
    assert_eq!(on(""), on(&format!("on = [{usual}]\n")));
    assert_eq!(on("on = ['stranded']\n"), [NotifyOn::Stranded]);
}

/// A log that cannot be written must not take the VM out of service.
#[test]
fn failing_steps_of_the_recipe_event_log_withhold_nothing() {
    let recipe = read_text(include_str!("../../../../recipes/event-log/agent.toml")).unwrap();
    let rule = &recipe.rules[0];
    for steps in [&rule.before, &rule.after] {
        let on_failure: Vec<_> = steps.iter().map(|step| step.on_failure).collect();
        assert_eq!(on_failure, [OnFailure::GoOn]);
    }
}

#[test]
fn at_most_matches_unknown_duration_only_if_set() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    for (duration, known, unknown) in [
        ("{ at_most = '10s' }", [true, false], false),
        ("{ at_least = '7s', at_most = '10s' }", [false, false], false),
        ("{ at_most = '10s', unknown = false }", [true, false], false),
        ("{ at_most = '10s', unknown = true }", [true, false], true),
        ("{ at_least = '10s' }", [false, true], true),
        ("{ at_least = '10s', unknown = false }", [false, true], false),
        ("{}", [true, true], true),
    ] {
        let config = read_text(&format!("{RULE}duration = {duration}\n")).unwrap();
        let matches = config.rules[0].matches.duration;
        assert_eq!([seconds(5), seconds(11)].map(|length| matches.holds(length)), known, "{duration}");
        assert_eq!(matches.holds(None), unknown, "{duration}");
    }
}

#[test]
fn flags_override_environment_and_file() {
    let text = format!("listen = '127.0.0.1:1'\nname = 'file'\nlog = 'warn'\n{RULE}");
    let said = sources(
        &[
            ("NOTBEFORE_AGENT_LISTEN", "none"),
            ("NOTBEFORE_AGENT_NAME", "env"),
            ("STATE_DIRECTORY", "/var/lib/x"),
        ],
        &[("name", "flag"), ("dry_run", "true")],
    );
    let config = read(Path::new("a.toml"), &text, &said).unwrap();
    assert_eq!((config.listen, config.name.as_deref(), config.log.as_str()), (None, Some("flag"), "warn"));
    assert_eq!((config.dry_run, config.state.as_path()), (true, Path::new("/var/lib/x")));
}

#[test]
fn config_errors_name_line_and_fix() {
    let text = "
endpont = 'http://x'
listen = 80
rule_name = 1
[notify]
on = ['sometimes']
[[rule]]
name = 'a'
types = ['Rebot', 'Hibernate']
resources = 'others'
approve = 'leader'
duration = { at_lest = '1s' }
[[rule.before]]
timout = '5m'
[[rule.before]]
shell = 'x'
wait = '1s'
[[rule.before]]
wait = '1m'
timeout = '5s'
every = '1s'
[[rule.after]]
keep = '1s'
write_file = { path = 'run/drained' }
[[rule]]
name = 'a'
[[rule.before]]
webhook = 'http://x'
[[rule.before]]
webhook = { url = 'ftp://x', method = 'BREW' }
retries = 101
[[rule.before]]
write_file = { path = '/run/x', content = '{EVENT_IDD} {a: 1}' }
[[rule]]
approve = 'yes'
";
    assert_eq!(
        mistakes(text),
        [
            "a.toml:2: unknown key endpont; did you mean endpoint?",
            "a.toml:3: listen: expected an address with its port, as \"127.0.0.1:9256\", or \"none\", not 80",
            "a.toml:4: unknown key rule_name; did you mean rule.name?",
            "a.toml:5: notify.url is missing; expected a URL, as \"https://hooks.example/drain\"",
            "a.toml:6: notify.on: expected \"appeared\", \"unmatched\", \"failed\", \"withheld\", \"stranded\", \"approved\", \"started\", \"cancelled\", \"ended\" or \"restored\", not \"sometimes\"",
            "a.toml:9: rule.types: \"Rebot\" is unknown; did you mean \"Reboot\"?",
            "a.toml:11: rule.approve: an agent approves for its own VM alone; write approve = \"never\", or resources = \"mine\"",
            "a.toml:12: unknown key rule.duration.at_lest; did you mean rule.duration.at_least?",
            "a.toml:13: a step has no action; give it one of command, shell, webhook, stop_unit, start_unit, write_file, remove_file, wait, wait_for",
            "a.toml:14: unknown key rule.before.timout; did you mean rule.before.timeout?",
            "a.toml:15: a step has one action, not shell and wait; split it",
            "a.toml:20: rule.before.timeout: a wait of 1m exceeds it; leave it out, or increase it",
            "a.toml:21: rule.before.every: only wait_for repeats; leave it out",
            "a.toml:23: rule.after.keep: steps after an event have no deadline to reserve time from; leave it out",
            "a.toml:24: rule.after.write_file.path: expected an absolute path, as \"/run/drained\", not \"run/drained\"",
            "a.toml:26: rule.name: there are two rules \"a\"; rename one",
            "a.toml:28: rule.before.webhook: expected a table with url, method, headers, body",
            "a.toml:30: rule.before.webhook.url: expected a URL, as \"https://hooks.example/drain\", not this text",
            "a.toml:31: rule.before.retries: expected a whole number from 0 to 100, not 101",
            "a.toml:33: rule.before.write_file.content: there is no variable {EVENT_IDD}; did you mean {EVENT_ID}?",
            "a.toml:34: a rule has no name; write name = \"drain\" below its [[rule]]",
            "a.toml:35: rule.approve: expected \"when-done\", \"leader\" or \"never\", not \"yes\"",
        ]
    );
}

#[test]
fn unsupported_settings_are_errors() {
    let step = |step: &str| mistakes(&format!("{RULE}[[rule.before]]\n{step}\n"));
    for program in ["./drain.sh", "bin/drain"] {
        assert_eq!(
            step(&format!("command = ['{program}']")),
            [format!(
                "a.toml:4: rule.before.command: hooks start in /, so {program:?} is not found; write its absolute path"
            )]
        );
    }
    assert_eq!(
        step("wait_for = ['true']\nevery = '0s'"),
        ["a.toml:5: rule.before.every: expected a span from 1s on, as \"20m\", not \"0s\""]
    );
    for well in ["command = ['drain.sh']", "command = ['/usr/bin/drain']", "wait_for = ['true']"] {
        let text = format!("{RULE}[[rule.before]]\n{well}\n");
        assert!(read(Path::new("a.toml"), &text, &sources(&[], &[])).is_ok(), "{well}");
    }
}

#[test]
fn unreachable_rule_is_an_error() {
    let behind = mistakes(&format!("{RULE}\n[[rule]]\nname = 'late'\ntypes = ['Freeze']\n"));
    assert_eq!(behind.len(), 1);
    assert!(behind[0].starts_with("a.toml:4: the rule `late` can never match"), "{behind:?}");
    let empty = mistakes(&format!("{RULE}time_left = {{ at_least = '2m', at_most = '1m' }}\n"));
    assert!(empty[0].starts_with("a.toml:1: the rule `drain` can never match"), "{empty:?}");
}

#[test]
fn config_errors_omit_secrets() {
    let text = "
[notify]
url = 'hooks.example/s3cret'
headers = { Authorization = 'Bearer s3cret', X-Retry = 3 }
[[rule]]
name = 'a'
[[rule.before]]
command = 'curl -H s3cret'
[[rule.before]]
shell = ['s3cret']
[[rule.before]]
webhook = { url = 'http://x', headers = ['s3cret'], body = ['s3cret'] }
";
    let wrong = mistakes(text);
    assert_eq!(wrong.len(), 6, "{wrong:?}");
    assert!(wrong.iter().all(|one| !one.contains("s3cret")), "{wrong:?}");
    assert_eq!(
        wrong[1],
        "a.toml:4: notify.headers: expected headers, as { Authorization = \"Bearer …\" }, but \"X-Retry\" is none"
    );
    let said = sources(&[], &[]);
    let broken = read(Path::new("a.toml"), "[notify]\nurl = 'https://s3cret", &said).unwrap_err().to_string();
    assert!(!broken.contains("s3cret"), "{broken}");
}

#[test]
fn misplaced_key_error_names_its_section() {
    assert_eq!(
        mistakes(&format!("{RULE}dry_run = true\n")),
        [
            "a.toml:3: unknown key rule.dry_run; did you mean dry_run, at the top of the file, above the first [table]?"
        ]
    );
    assert_eq!(
        mistakes(&format!("on_failure = 'go-on'\n{RULE}")),
        ["a.toml:1: unknown key on_failure; did you mean rule.before.on_failure?"]
    );
    assert!(
        mistakes("rule = 1")[0].starts_with("a.toml:1: rule: expected tables, each under a line [[rule]]")
    );
    assert_eq!(
        mistakes(&format!("quux = 1\n{RULE}")),
        [
            "a.toml:1: unknown key quux; there are endpoint, name, api_version, state, listen, dry_run, log, log_format, notify, rule"
        ]
    );
    assert!(mistakes("\n\nx = = 1")[0].starts_with("a.toml:3: "));
    assert!(mistakes("")[0].contains("there is no [[rule]]"));
}

#[test]
fn misspelt_log_level_is_an_error() {
    for (level, meant) in [("inof", Some("info")), ("!!", None)] {
        let said = read_text(&format!("log = '{level}'\n{RULE}")).unwrap_err().0;
        assert!(said[0].starts_with("a.toml:1: log: expected a level"), "{said:?}");
        assert_eq!(said[0].ends_with("did you mean info?"), meant.is_some(), "{said:?}");
    }
}

#[test]
fn unknown_variables_are_errors() {
    let said = sources(
        &[
            ("NOTBEFORE_AGENT_LISTN", "none"),
            ("NOTBEFORE_AGENT_RULE", "x"),
            ("NOTBEFORE_AGENT_DRY_RUN", "perhaps"),
            ("NOTBEFORE_AGENT_BOOT_ID", "1"),
            ("NOTBEFORE_AGENT_VM_ID", "1"),
            ("NOTBEFORE_AGENT_NAME", ""),
            ("NOTBEFORE_LOG", "x"),
        ],
        &[("endpoint", "http://127.0.0.1:9254/events"), ("api_version", "2020-7-1")],
    );
    assert_eq!(
        read(Path::new("a.toml"), RULE, &said).unwrap_err().0,
        [
            "environment NOTBEFORE_AGENT_LISTN: there is no such setting; did you mean NOTBEFORE_AGENT_LISTEN?",
            "environment NOTBEFORE_AGENT_RULE: there is no such setting; unset it",
            "environment NOTBEFORE_AGENT_DRY_RUN: expected true or false, not \"perhaps\"",
            "flag --endpoint: \"http://127.0.0.1:9254/events\" is no endpoint: it has a path, which is not that of scheduled events; write http://169.254.169.254, or host:port",
            "flag --api-version: expected an api-version of scheduled events, as \"2020-07-01\", not \"2020-7-1\"",
        ]
    );
}

#[test]
fn missing_file_error_shows_how_to_create_it() {
    let said = Sources { file: Some("/nowhere/agent.toml".into()), ..Sources::default() };
    let wrong = load(&said).unwrap_err().to_string();
    assert!(wrong.contains("notbefore agent sample > /nowhere/agent.toml"), "{wrong}");
}

#[test]
fn file_with_bom_and_crlf_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agent.toml");
    let said = Sources { file: Some(file.clone()), ..Sources::default() };
    let text = SAMPLE.replace('\n', "\r\n");
    let units = |unit: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(unit).collect::<Vec<u8>>();
    let written = [
        text.clone().into_bytes(),
        [&[0xef, 0xbb, 0xbf], text.as_bytes()].concat(),
        [&[0xff, 0xfe], &units(u16::to_le_bytes)[..]].concat(),
        [&[0xfe, 0xff], &units(u16::to_be_bytes)[..]].concat(),
    ];
    for bytes in written {
        std::fs::write(&file, &bytes).unwrap();
        assert_eq!(load(&said).unwrap().rules.len(), 2, "{:?}", &bytes[..4]);
    }
    for neither in [&b"name = '\xe4'"[..], b"\xff\xfea", b"\xff\xfe\x00\xd8"] {
        std::fs::write(&file, neither).unwrap();
        let wrong = load(&said).unwrap_err().to_string();
        assert!(wrong.ends_with("agent.toml: neither UTF-8 nor UTF-16; save it as UTF-8"), "{wrong}");
    }
}

/// The page with every key and every variable, as the code knows them.
fn page(there: &str) -> String {
    let between = |page: &str, name: &str, text: &str| {
        let (before, rest) =
            page.split_once(&format!("<!-- {name} -->\n")).expect("the page has a place for it");
        let end = format!("<!-- end of {name} -->\n");
        let (_, after) = rest.split_once(&end).expect("the place has an end");
        format!("{before}<!-- {name} -->\n{text}{end}{after}")
    };
    let mut rows = "| in | key | default | what it is |\n|---|---|---|---|\n".to_owned();
    for group in SCHEMA.groups() {
        let place = group.title;
        for key in group.keys {
            rows.push_str(&format!("| {place} | `{}` | {} | {} |\n", key.name, key.default, key.what));
        }
    }
    let variable = |(name, what): &(&str, &str)| format!("| `NOTBEFORE_{name}` | {what} |\n");
    let variables: String = crate::hooks::variables::VARIABLES.iter().map(variable).collect();
    let variables = format!("| variable | what it says |\n|---|---|\n{variables}");
    between(&between(there, "keys", &rows), "variables", &variables)
}

#[test]
fn documentation_lists_every_key_and_variable() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/agent-file.md");
    let there = std::fs::read_to_string(&path).unwrap();
    let wanted = page(&there);
    if std::env::var_os("NOTBEFORE_WRITE").is_some() {
        std::fs::write(&path, &wanted).unwrap();
        return;
    }
    assert!(
        there == wanted,
        "docs/reference/agent-file.md is out of date; regenerate it with\n  NOTBEFORE_WRITE=1 cargo test --workspace --lib config"
    );
}

#[test]
fn documentation_sample_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/agent.md");
    let page = std::fs::read_to_string(path).unwrap();
    let sample = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(read_text(sample).unwrap().rules.len(), 2);
}

#[test]
fn running_agent_is_found_despite_config_errors() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agent.toml");
    let found = |environment: &[(&str, &str)], flags: &[(&'static str, &str)]| {
        find_running_agent(&Sources { file: Some(file.clone()), ..sources(environment, flags) })
    };
    let at = |text: &str| Some(text.parse().unwrap());
    let usual = found(&[], &[]).unwrap();
    assert_eq!((usual.listen, usual.state.to_str()), (Some(USUAL_LISTEN), Some("/var/lib/notbefore-agent")));
    assert!(usual.unread.unwrap().contains("agent.toml"), "there is no file");
    for broken in ["tipes = 1\n", "[[rule]\n", "log = \n", "name = 'x\n"] {
        std::fs::write(&file, format!("listen = '127.0.0.1:7'\nstate = '/s'\n{broken}")).unwrap();
        let found = found(&[("NOTBEFORE_AGENT_LOUD", "1")], &[]).unwrap();
        let expected =
            RunningAgent { listen: at("127.0.0.1:7"), state: "/s".into(), unread: None, is_untrusted: false };
        assert_eq!(found, expected, "{broken}");
    }
    let variable = [("NOTBEFORE_AGENT_LISTEN", "127.0.0.1:8")];
    assert_eq!(found(&variable, &[]).unwrap().listen, at("127.0.0.1:8"));
    assert_eq!(found(&variable, &[("listen", "none")]).unwrap().listen, None);
    let wrong = found(&[], &[("listen", "here")]).unwrap_err().to_string();
    assert!(wrong.starts_with("flag --listen: expected an address"), "{wrong}");
}

#[test]
fn create_hint_depends_on_installation() {
    let dir = tempfile::tempdir().unwrap();
    let (nowhere, here) = (dir.path().join("nowhere/agent.toml"), dir.path().join("agent.toml"));
    assert!(how_to_create(&nowhere, true).starts_with("run 'notbefore agent install'"));
    assert_eq!(how_to_create(&nowhere, false), "create its directory, then run ");
    for path in [&here, Path::new("agent.toml")] {
        assert_eq!(how_to_create(path, true), "create one with ");
    }
}
