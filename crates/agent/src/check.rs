//! What would go wrong with a rule's steps on this machine, found out without an event; and an event to try them with.

use std::net::ToSocketAddrs;
use std::process::{Command, Stdio};
use std::time::Duration;

use jiff::Timestamp;
use notbefore_client::document::{Event, EventId, EventKind, EventSource, EventStatus};
use serde_json::json;

use crate::config::Config;
use crate::hooks::process;
use crate::journal;
use crate::machine::io::{Run, RunId, Stage};
use crate::machine::{PREEMPT_NOTICE, RESERVE, share};
use crate::rules::{Deed, Rule, Step};

/// The notice that a sample event gives, as the platform would.
const NOTICE: Duration = Duration::from_secs(15 * 60);
/// The id of sample events, which no platform gives.
const SAMPLE_ID: &str = "00000000-0000-0000-0000-000000000000";

/// What would go wrong, a line for each step that cannot do what it should.
pub fn problems(rules: &[Rule]) -> Vec<String> {
    let mut problems = Vec::new();
    for rule in rules {
        let before = rule.before.iter().map(|step| ("before", step));
        let after = rule.after.iter().map(|step| ("after", step));
        for (stage, step) in before.chain(after) {
            if let Err(why) = looks_well(&step.does) {
                problems.push(format!("rule {}, step {} {stage}: {why}", rule.name, step.name));
            }
        }
    }
    problems
}

/// What would go wrong with the settings of the agent as a whole, but for where it listens, which it may do already.
pub fn problems_of_settings(config: &Config) -> Vec<String> {
    let told = config.notify.as_ref().and_then(|notify| host(&notify.url).err());
    let told = told.map(|why| format!("notify: {why}"));
    // A dry run has no journal.
    let journal = (!config.dry_run).then(|| journal::look_over(&config.state).err()).flatten();
    told.into_iter().chain(journal.map(|unfit| unfit.to_string())).collect()
}

fn looks_well(deed: &Deed) -> Result<(), String> {
    match deed {
        Deed::Command { argv } | Deed::WaitFor { argv, .. } => {
            process::find(argv.first().map_or("", String::as_str)).map(|_| ())
        }
        Deed::Shell { line } => shell(line),
        Deed::StartUnit { unit: name } | Deed::StopUnit { unit: name } => unit(name),
        Deed::Webhook(hook) => host(&hook.url),
        Deed::WriteFile { path, .. } => match path.parent() {
            Some(dir) if !dir.is_dir() => Err(format!("there is no directory {}; make it", dir.display())),
            Some(_) | None => Ok(()),
        },
        Deed::RemoveFile { .. } | Deed::Wait { .. } => Ok(()),
    }
}

/// Has the shell read a line without doing what it says; Windows' shell cannot.
fn shell(line: &str) -> Result<(), String> {
    if cfg!(windows) {
        return process::find("cmd").map(|_| ());
    }
    let read = Command::new("/bin/sh").args(["-n", "-c", line]).stdin(Stdio::null()).output();
    let read = read.map_err(|error| format!("/bin/sh: {error}"))?;
    let said = String::from_utf8_lossy(&read.stderr).trim().to_owned();
    if read.status.success() { Ok(()) } else { Err(format!("the shell cannot read it: {said}")) }
}

fn unit(name: &str) -> Result<(), String> {
    if cfg!(windows) {
        return Err(
            r#"units are systemd's, which Windows has not; say shell = "net stop NAME /y", or net start"#
                .into(),
        );
    }
    let systemctl = process::find("systemctl")?;
    let mut command = Command::new(systemctl);
    command.args(["show", "--property=LoadState", "--value", "--", name]).stdin(Stdio::null());
    let asked = command.output().map_err(|error| format!("systemctl: {error}"))?;
    let state = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    match (asked.status.success(), state.as_str()) {
        (true, "loaded") => Ok(()),
        (true, "not-found") => Err(format!("systemd knows no unit {name}")),
        (true, other) => Err(format!("systemd says that {name} is {other}")),
        (false, _) => {
            let said = String::from_utf8_lossy(&asked.stderr).trim().to_owned();
            Err(format!("systemd cannot be asked about {name}: {said}"))
        }
    }
}

fn host(url: &str) -> Result<(), String> {
    let uri: ureq::http::Uri = url.parse().map_err(|_| "its URL cannot be read".to_owned())?;
    let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let name = uri.host().unwrap_or_default();
    let port = uri.port_u16().unwrap_or(usual);
    match (name.trim_matches(['[', ']']), port).to_socket_addrs() {
        Ok(found) if found.len() > 0 => Ok(()),
        Ok(_) => Err(format!("{name} has no address")),
        Err(error) => Err(format!("{name} cannot be resolved: {error}")),
    }
}

/// An event that a rule is for, as the platform would announce it.
pub fn sample_event(kind: EventKind, vm: &str, now: Timestamp) -> Event {
    let not_before = now.checked_add(notice(&kind)).ok();
    let raw = json!({
        "EventId": SAMPLE_ID,
        "EventType": kind.as_str(),
        "ResourceType": "VirtualMachine",
        "Resources": [vm],
        "EventStatus": "Scheduled",
        "NotBefore": not_before.map(|at| at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()),
        "Description": "a rehearsal: notbefore agent check --run",
        "EventSource": "User",
        "DurationInSeconds": -1,
    });
    Event {
        id: EventId::new(SAMPLE_ID),
        kind,
        status: EventStatus::Scheduled,
        resources: vec![vm.to_owned()],
        not_before,
        description: "a rehearsal: notbefore agent check --run".to_owned(),
        source: Some(EventSource::User),
        duration_seconds: None,
        raw,
    }
}

/// One attempt at a step for a sample event, which was announced so long ago and may have been cancelled since, with the
/// time that it would have: steps before an event share its notice, less what is reserved and what later ones keep.
pub fn sample_run(
    rule: &Rule,
    stage: Stage,
    step: &Step,
    event: &Event,
    announced_ago: Duration,
    cancelled: bool,
) -> Run {
    let place = rule.before.iter().take_while(|one| one.name != step.name).count();
    let left = notice(&event.kind).saturating_sub(announced_ago);
    let budget = match stage {
        // Once its time has come, what is not done yet is done all the same.
        Stage::Before if left > RESERVE => step.timeout.min(share(rule, place, left)),
        Stage::Before | Stage::After => step.timeout,
    };
    Run {
        id: RunId(0),
        event: event.clone(),
        rule: rule.name.clone(),
        stage,
        step: step.clone(),
        attempt: 1,
        budget,
        until: None,
        cancelled,
    }
}

fn notice(kind: &EventKind) -> Duration {
    if *kind == EventKind::Preempt { PREEMPT_NOTICE } else { NOTICE }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::rules::Webhook;

    fn command(name: &str) -> Deed {
        Deed::Command { argv: vec![name.to_owned()] }
    }

    #[test]
    fn what_cannot_be_done_is_found_out() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("hook");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        let name = file.to_str().unwrap();
        assert_eq!(looks_well(&command("sh")), Ok(()));
        assert!(looks_well(&command("no-such-program-here")).unwrap_err().contains("there is no program"));
        assert!(looks_well(&command(name)).unwrap_err().contains("is not executable"));
        let line = |line: &str| looks_well(&Deed::Shell { line: line.to_owned() });
        assert_eq!(line("if true; then echo x; fi"), Ok(()));
        assert!(line("if true; then echo x").unwrap_err().contains("the shell cannot read it"));
        let webhook = |url: &str| {
            let url = url.to_owned();
            looks_well(&Deed::Webhook(Webhook {
                url,
                method: "POST".to_owned(),
                headers: [].into(),
                body: None,
            }))
        };
        assert_eq!(webhook("http://127.0.0.1:9/x"), Ok(()));
        assert!(webhook("http://no-such-host.invalid/x").unwrap_err().contains("cannot be resolved"));
        let write = |path: PathBuf| looks_well(&Deed::WriteFile { path, content: String::new() });
        assert_eq!(write(file), Ok(()));
        assert!(write("/nowhere/at/all".into()).unwrap_err().contains("there is no directory /nowhere/at"));
    }

    #[test]
    fn the_steps_of_a_rehearsal_share_the_notice_as_those_of_an_event_do() {
        let seconds = Duration::from_secs;
        let text = "[[rule]]\nname = 'all'\n[[rule.before]]\nwait = '16s'\n[[rule.before]]\nwait = '1s'\nkeep = '5s'\n";
        let config =
            crate::config::read("a.toml".as_ref(), text, &crate::config::Sources::default()).unwrap();
        let rule = &config.rules[0];
        let event = sample_event(EventKind::Preempt, "web-0", Timestamp::UNIX_EPOCH);
        let budget =
            |step: usize, ago| sample_run(rule, Stage::Before, &rule.before[step], &event, ago, false).budget;
        assert_eq!(budget(0, Duration::ZERO), seconds(25) - RESERVE, "the next one keeps five");
        assert_eq!(budget(1, seconds(16)), seconds(14) - RESERVE);
        assert_eq!(budget(0, seconds(25)), Duration::ZERO);
        assert_eq!(budget(1, seconds(30)), rule.before[1].timeout, "late, and done all the same");
    }
}
