//! Dry checks of a configuration on this machine: programs, units, host names and directories, without an event.

use std::fmt;
use std::net::ToSocketAddrs;
use std::process::{Command, Stdio};

use crate::config::Config;
use crate::hooks::{HookError, process};
use crate::journal;
use crate::machine::io::Stage;
use crate::rules::{Rule, StepAction};

/// A step that would fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `rule drain, step pool before`; no secret.
    pub step: String,
    pub why: HookError,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.why)
    }
}

/// Warning about a file with `[notify]` and without rules.
pub const NO_RULES: &str = "no [[rule]]: the agent notifies and approves nothing";

/// The steps that would fail. Asks other programs and the resolver.
pub fn problems(rules: &[Rule]) -> Vec<Problem> {
    failing(rules, check_action)
}

/// The steps whose program is missing. Only looks for files, so the agent can do it at any time.
pub fn missing_programs(rules: &[Rule]) -> Vec<Problem> {
    failing(rules, |action| program(action).map_or(Ok(()), |name| process::find(name).map(|_| ())))
}

fn failing(rules: &[Rule], check: impl Fn(&StepAction) -> Result<(), HookError>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for rule in rules {
        for stage in [Stage::Before, Stage::After] {
            for step in rule.steps(stage) {
                if let Err(why) = check(&step.does) {
                    let step = format!("rule {}, step {} {}", rule.name, step.name, stage.as_str());
                    problems.push(Problem { step, why });
                }
            }
        }
    }
    problems
}

/// The program that the step itself names or needs; the shell finds those of its line.
fn program(action: &StepAction) -> Option<&str> {
    match action {
        StepAction::Command { argv } | StepAction::WaitFor { argv, .. } => argv.first().map(String::as_str),
        StepAction::StartUnit { .. } | StepAction::StopUnit { .. } => Some("systemctl"),
        StepAction::Shell { .. }
        | StepAction::Webhook(_)
        | StepAction::WriteFile { .. }
        | StepAction::RemoveFile { .. }
        | StepAction::Wait { .. } => None,
    }
}

/// Problems of global settings, except the listen address, which a running agent may use.
pub fn setting_problems(config: &Config) -> Vec<String> {
    let told = config.notify.as_ref().and_then(|notify| host(&notify.url).err());
    let told = told.map(|why| format!("notify: {why}"));
    // A dry run has no journal.
    let journal = (!config.dry_run).then(|| journal::check(&config.state).err()).flatten();
    told.into_iter().chain(journal.map(|unfit| unfit.to_string())).collect()
}

fn check_action(action: &StepAction) -> Result<(), HookError> {
    match action {
        StepAction::Command { argv } | StepAction::WaitFor { argv, .. } => {
            process::find(argv.first().map_or("", String::as_str)).map(|_| ())
        }
        StepAction::Shell { line } => shell(line),
        StepAction::StartUnit { unit: name } | StepAction::StopUnit { unit: name } => unit(name),
        StepAction::Webhook(hook) => host(&hook.url),
        StepAction::WriteFile { path, .. } => match path.parent() {
            Some(dir) if !dir.is_dir() => {
                Err(HookError(format!("there is no directory {}; create it", dir.display())))
            }
            Some(_) | None => Ok(()),
        },
        StepAction::RemoveFile { .. } | StepAction::Wait { .. } => Ok(()),
    }
}

/// Syntax check by the shell (`sh -n`); not possible on Windows.
fn shell(line: &str) -> Result<(), HookError> {
    if cfg!(windows) {
        return process::find("cmd").map(|_| ());
    }
    let read = Command::new("/bin/sh").args(["-n", "-c", line]).stdin(Stdio::null()).output();
    let read = read.map_err(|error| HookError(format!("/bin/sh: {error}")))?;
    let said = String::from_utf8_lossy(&read.stderr).trim().to_owned();
    if read.status.success() { Ok(()) } else { Err(HookError(format!("shell syntax error: {said}"))) }
}

fn unit(name: &str) -> Result<(), HookError> {
    if cfg!(windows) {
        let cure = r#"use shell = "net stop NAME /y", or net start"#;
        return Err(HookError(format!("units need systemd, which Windows does not have; {cure}")));
    }
    let systemctl = process::find("systemctl")?;
    let mut command = Command::new(systemctl);
    command.args(["show", "--property=LoadState", "--value", "--", name]).stdin(Stdio::null());
    let asked = command.output().map_err(|error| HookError(format!("systemctl: {error}")))?;
    let state = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    Err(HookError(match (asked.status.success(), state.as_str()) {
        (true, "loaded") => return Ok(()),
        (true, "not-found") => format!("systemd knows no unit {name}"),
        (true, other) => format!("systemd reports {name} as {other}"),
        (false, _) => {
            let said = String::from_utf8_lossy(&asked.stderr).trim().to_owned();
            format!("cannot query systemd about {name}: {said}")
        }
    }))
}

fn host(url: &str) -> Result<(), HookError> {
    let uri: hyper::Uri = url.parse().map_err(|_| HookError("its URL is invalid".to_owned()))?;
    let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let name = uri.host().unwrap_or_default();
    let port = uri.port_u16().unwrap_or(usual);
    match (name.trim_matches(['[', ']']), port).to_socket_addrs() {
        Ok(found) if found.len() > 0 => Ok(()),
        Ok(_) => Err(HookError(format!("{name} has no address"))),
        Err(error) => Err(HookError(format!("{name} cannot be resolved: {error}"))),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::rules::Webhook;

    fn command(name: &str) -> StepAction {
        StepAction::Command { argv: vec![name.to_owned()] }
    }

    #[test]
    fn missing_programs_are_found_without_other_checks() {
        let text = "[[rule]]\nname = 'r'\n[[rule.before]]\ncommand = ['sh']\n[[rule.before]]\nname = 'gone'\n\
                    command = ['no-such-program-here']\n[[rule.after]]\nwait_for = ['/nowhere/probe']\n\
                    [[rule.after]]\nwebhook = { url = 'http://no-such-host.invalid/' }\n";
        let config =
            crate::config::read("a.toml".as_ref(), text, &crate::config::Sources::default()).unwrap();
        let missing: Vec<String> = missing_programs(&config.rules).iter().map(ToString::to_string).collect();
        assert_eq!(
            missing,
            [
                "rule r, step gone before: no program no-such-program-here found",
                "rule r, step 1 after: no program /nowhere/probe found"
            ]
        );
    }

    #[test]
    fn impossible_steps_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("hook");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        let name = file.to_str().unwrap();
        assert_eq!(check_action(&command("sh")), Ok(()));
        assert!(check_action(&command("no-such-program-here")).unwrap_err().0.contains("no program"));
        assert!(check_action(&command(name)).unwrap_err().0.contains("is not executable"));
        let line = |line: &str| check_action(&StepAction::Shell { line: line.to_owned() });
        assert_eq!(line("if true; then echo x; fi"), Ok(()));
        assert!(line("if true; then echo x").unwrap_err().0.contains("shell syntax error"));
        let webhook = |url: &str| {
            let url = url.to_owned();
            check_action(&StepAction::Webhook(Webhook {
                url,
                method: "POST".to_owned(),
                headers: [].into(),
                body: None,
            }))
        };
        assert_eq!(webhook("http://127.0.0.1:9/x"), Ok(()));
        assert!(webhook("http://no-such-host.invalid/x").unwrap_err().0.contains("cannot be resolved"));
        let write = |path: PathBuf| check_action(&StepAction::WriteFile { path, content: String::new() });
        assert_eq!(write(file), Ok(()));
        assert!(write("/nowhere/at/all".into()).unwrap_err().0.contains("there is no directory /nowhere/at"));
    }
}
