//! Describes validated rules in words, for `notbefore agent check`.

use std::time::Duration;

use notbefore_settings::span;

use crate::hooks::webhook;
use crate::machine::io::Stage;
use crate::rules::{
    Approve, DurationRange, Match, OnFailure, OnInterrupt, ResourceMatch, Restore, Rule, Step, StepAction,
};

/// One line per part of the rule.
pub fn rule(rule: &Rule) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", rule.name, matches(&rule.matches))];
    lines.extend(rule.before.iter().map(|one| format!("  before  {}", step(one, Stage::Before))));
    let drains = if rule.drain { "; /drainz answers 503 until the VM is restored" } else { "" };
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
        lines.push("  the steps after start when the VM has booted or the event is gone".to_owned());
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
        text.push_str(&format!(", requested by {sources}"));
    }
    let duration = &matches.duration;
    match (bounds(&duration.within), duration.unknown) {
        (Some(bounds), true) => text.push_str(&format!(", lasting {bounds} or of unknown duration")),
        (Some(bounds), false) => text.push_str(&format!(", lasting {bounds}")),
        (None, true) => {}
        (None, false) => text.push_str(", of a known duration"),
    }
    if let Some(bounds) = bounds(&matches.time_left) {
        text.push_str(&format!(", {bounds} before NotBefore"));
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

pub fn step(step: &Step, stage: Stage) -> String {
    let mut text =
        format!("{}: {}, {} at most", step.name, action(&step.does), span::show(step.timeout.as_secs()));
    if !step.keep.is_zero() {
        text.push_str(&format!(", {} reserved", span::show(step.keep.as_secs())));
    }
    if step.retries > 0 {
        let delay = span::show(step.retry_delay.as_secs());
        text.push_str(&format!(", {} retries {delay} apart", step.retries));
    }
    text.push_str(match (step.on_failure, stage) {
        (OnFailure::Withhold, Stage::Before) => {
            "; if it fails, the remaining steps are skipped and the event is not approved"
        }
        (OnFailure::GoOn, Stage::Before) => "; if it fails, the next step still runs",
        (OnFailure::Withhold, Stage::After) => {
            "; if it fails, the remaining steps are skipped and the VM is stranded until a retry"
        }
        (OnFailure::GoOn, Stage::After) => {
            "; if it fails, the next step still runs and the VM goes back into service"
        }
    });
    if step.on_interrupt == OnInterrupt::Skip {
        text.push_str("; not run again after an interruption");
    }
    text
}

/// Names only the host of a request; the rest may be secret.
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
            format!("waits for {} to succeed, retried every {}", argv.join(" "), span::show(every.as_secs()))
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
[[rule.after]]
command = ['start']
on_failure = 'go-on'
";
        let config = config::read(Path::new("a.toml"), text, &Sources::default()).unwrap();
        assert_eq!(
            rule(&config.rules[0]),
            [
                "drain: Reboot or Redeploy of this VM, requested by Platform, lasting at most 1m, at least 10s before NotBefore",
                "  before  pool: runs drain --now, 5m at most, 2 retries 1s apart; if it fails, the remaining steps are skipped and the event is not approved; not run again after an interruption",
                "  approved when the steps before are done; /drainz answers 503 until the VM is restored",
                "  after   1: sends POST to hooks.example, 5m at most; if it fails, the remaining steps are skipped and the VM is stranded until a retry",
                "  after   2: runs start, 5m at most; if it fails, the next step still runs and the VM goes back into service",
            ]
        );
    }
}
