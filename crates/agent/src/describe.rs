//! Rules in words, for whoever wants to see what was understood.

use std::time::Duration;

use notbefore_settings::span;

use crate::hooks::webhook;
use crate::machine::io::Stage;
use crate::rules::{
    Approve, DurationRange, Match, OnFailure, OnInterrupt, ResourceMatch, Restore, Rule, Step, StepAction,
};

/// A rule, a line for each part of it.
pub fn rule(rule: &Rule) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", rule.name, matches(&rule.matches))];
    lines.extend(rule.before.iter().map(|one| format!("  before  {}", step(one, Stage::Before))));
    let drains = if rule.drain { "; until the VM is restored, /drainz is red" } else { "" };
    lines.push(match rule.approve {
        Approve::WhenDone if rule.before.is_empty() => format!("  approved at once{drains}"),
        Approve::WhenDone => format!("  approved when the steps before are done{drains}"),
        Approve::Leader => {
            format!("  approved when the steps before are done, if this VM is first in Resources{drains}")
        }
        Approve::Never => format!("  never approved by this agent{drains}"),
    });
    lines.extend(rule.after.iter().map(|one| format!("  after   {}", step(one, Stage::After))));
    if !rule.after.is_empty() && rule.restore == Restore::Booted {
        lines.push("  the steps after begin when the VM has booted, or the event is gone".to_owned());
    }
    lines
}

fn matches(matches: &Match) -> String {
    let words =
        |words: Vec<&str>, any: &str| if words.is_empty() { any.to_owned() } else { words.join(" or ") };
    let kinds = words(matches.kinds.iter().map(|kind| kind.as_str()).collect(), "any event");
    let whose = match matches.resources {
        ResourceMatch::Mine => "of this VM",
        ResourceMatch::Others => "of other VMs only",
        ResourceMatch::Any => "of any VM",
    };
    let mut text = format!("{kinds} {whose}");
    if !matches.sources.is_empty() {
        let sources = words(matches.sources.iter().map(|source| source.as_str()).collect(), "");
        text.push_str(&format!(", asked for by {sources}"));
    }
    let duration = &matches.duration;
    match (bounds(&duration.within), duration.unknown) {
        (Some(bounds), true) => text.push_str(&format!(", lasting {bounds} or nobody knows how long")),
        (Some(bounds), false) => text.push_str(&format!(", lasting {bounds}")),
        (None, true) => {}
        (None, false) => text.push_str(", of a known duration"),
    }
    if let Some(bounds) = bounds(&matches.time_left) {
        text.push_str(&format!(", {bounds} before its time"));
    }
    text
}

fn bounds(within: &DurationRange) -> Option<String> {
    let show = |bound: Duration| span::show(bound.as_secs());
    match (within.at_least, within.at_most) {
        (Some(least), Some(most)) => Some(format!("{} to {}", show(least), show(most))),
        (Some(least), None) => Some(format!("at least {}", show(least))),
        (None, Some(most)) => Some(format!("at most {}", show(most))),
        (None, None) => None,
    }
}

/// A step in a line.
pub fn step(step: &Step, stage: Stage) -> String {
    let mut text =
        format!("{}: {}, {} at most", step.name, action(&step.does), span::show(step.timeout.as_secs()));
    if !step.keep.is_zero() {
        text.push_str(&format!(", {} of it kept", span::show(step.keep.as_secs())));
    }
    if step.retries > 0 {
        let delay = span::show(step.retry_delay.as_secs());
        text.push_str(&format!(", {} retries {delay} apart", step.retries));
    }
    match (step.on_failure, stage) {
        (OnFailure::Withhold, Stage::Before) => text.push_str("; if it fails, the event is not approved"),
        (OnFailure::GoOn, Stage::Before) => text.push_str("; if it fails, the next runs all the same"),
        (OnFailure::Withhold, Stage::After) => {
            text.push_str("; if it fails, the rest is not run and the VM not put back")
        }
        (OnFailure::GoOn, Stage::After) => {}
    }
    if step.on_interrupt == OnInterrupt::Skip {
        text.push_str("; not run again if it is interrupted");
    }
    text
}

/// What a step does. Requests may hold secrets, so only their host is named.
pub fn action(action: &StepAction) -> String {
    match action {
        StepAction::Command { argv } => format!("runs {}", argv.join(" ")),
        StepAction::Shell { line } => format!("runs in a shell: {line}"),
        StepAction::Webhook(hook) => format!("sends {} to {}", hook.method, webhook::host(&hook.url)),
        StepAction::StartUnit { unit } => format!("starts {unit}"),
        StepAction::StopUnit { unit } => format!("stops {unit}"),
        StepAction::WriteFile { path, .. } => format!("writes {}", path.display()),
        StepAction::RemoveFile { path } => format!("removes {}", path.display()),
        StepAction::Wait { time } => format!("waits {}", span::show(time.as_secs())),
        StepAction::WaitFor { argv, every } => {
            format!("waits for {} to succeed, looking every {}", argv.join(" "), span::show(every.as_secs()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{self, Sources};

    #[test]
    fn rule_description() {
        let text = "
[[rule]]
name = 'drain'
types = ['reboot', 'Redeploy']
sources = ['Platform']
duration = { at_most = '1m' }
time_left = { at_least = '10s' }
[[rule.before]]
name = 'pool'
command = ['drain', '--now']
timeout = '5m'
retries = 2
on_interrupt = 'skip'
[[rule.after]]
webhook = { url = 'https://hooks.example/s3cret' }
on_failure = 'withhold'
";
        let config = config::read(Path::new("a.toml"), text, &Sources::default()).unwrap();
        assert_eq!(
            rule(&config.rules[0]),
            [
                "drain: Reboot or Redeploy of this VM, asked for by Platform, lasting at most 1m, at least 10s before its time",
                "  before  pool: runs drain --now, 5m at most, 2 retries 1s apart; if it fails, the event is not approved; not run again if it is interrupted",
                "  approved when the steps before are done; until the VM is restored, /drainz is red",
                "  after   1: sends POST to hooks.example, 5m at most; if it fails, the rest is not run and the VM not put back",
            ]
        );
    }
}
