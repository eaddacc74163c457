//! Texts of facts: a log line with fields, and a sentence for people.

use jiff::SignedDuration;
use notbefore_wire::text::shorten;

use crate::config::NotifyOn;
use crate::machine::io::{AfterFailure, Fact, FactKind, Stage};

/// Longest logged sentence: the platform chooses names and types and must not fill the disk.
const LINE_CHARACTERS_MAX: usize = 2_000;
/// Longest logged event type.
const WORD_CHARACTERS_MAX: usize = 100;

pub fn log(fact: &Fact, dry_run: bool) {
    let text = match dry_run {
        true => format!("dry run: {}", sentence(fact)),
        false => sentence(fact),
    };
    let text = shorten(&text, LINE_CHARACTERS_MAX);
    let (event, kind) = (fact.event.id.to_string(), shorten(fact.event.kind.as_str(), WORD_CHARACTERS_MAX));
    let rule = fact.rule.as_deref().map(tracing::field::display);
    let step = step(&fact.kind).map(tracing::field::display);
    match sort(fact).1 {
        Severity::Info => tracing::info!(event, r#type = kind, rule, step, "{text}"),
        Severity::Warn => tracing::warn!(event, r#type = kind, rule, step, "{text}"),
    }
}

/// One sentence without its full stop.
pub fn sentence(fact: &Fact) -> String {
    let event = &fact.event;
    let kind = &event.kind;
    let place = |stage: &Stage| format!("{} the {kind}", stage.as_str());
    match &fact.kind {
        FactKind::Appeared { time_left, mine } => {
            let when = match (event.not_before, time_left) {
                (Some(at), Some(left)) => format!("not before {at}, in {}", span(*left)),
                (Some(_) | None, _) => event.status.as_str().to_lowercase(),
            };
            let whose = if *mine { "this VM" } else { "other VMs only" };
            format!("{kind} of {whose} ({}): {when}", event.resources.join(", "))
        }
        FactKind::Matched => format!("rule {} applies", fact.rule.as_deref().unwrap_or("none")),
        FactKind::Unmatched => format!(
            "no rule matches the {kind} of this VM: it is not prepared for and not approved; add a rule and run \
             'notbefore agent reload', or approve it: notbefore approve {}",
            event.id
        ),
        FactKind::StepBegun { step, stage, attempt, budget } => {
            let again = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
            format!("step {step} {} starts: {} at most{again}", place(stage), span(*budget))
        }
        FactKind::StepDone { step, stage } => format!("step {step} {} is done", place(stage)),
        FactKind::StepFailed { step, stage, reason, then } => {
            let then = match (then, stage) {
                (AfterFailure::Retry, _) => "it is retried",
                (AfterFailure::GoOn, _) => "the next step still runs",
                (AfterFailure::Withhold, Stage::Before) => {
                    "the remaining steps are skipped, and the event is not approved"
                }
                (AfterFailure::Withhold, Stage::After) => {
                    "the remaining steps are skipped, and the VM is stranded"
                }
                (AfterFailure::WithholdAndGoOn, _) => {
                    "the remaining steps use the time that is left, and the event is not approved"
                }
            };
            format!("step {step} {} failed: {reason}; {then}", place(stage))
        }
        FactKind::StepInterrupted { step, stage, rerun } => {
            let then = if *rerun { "it runs again" } else { "it counts as done" };
            format!("step {step} {} was running when the agent stopped: {then}", place(stage))
        }
        FactKind::Prepared => format!("this VM is ready for the {kind}"),
        FactKind::NotApproving { reason } => format!("this VM does not approve the {kind}: {reason}"),
        FactKind::TriedAgain { step, stage } => {
            format!("step {step} {} is retried", place(stage))
        }
        FactKind::StepDropped { step, stage } => {
            format!("step {step} {} is no longer in its rule and is not retried", place(stage))
        }
        FactKind::RuleUnmatched => {
            format!(
                "the rule no longer matches the {kind}: its failed step is not retried, its steps are undone"
            )
        }
        FactKind::Withheld { reason } => format!(
            "the {kind} is not approved: {reason}; fix the cause and run 'notbefore agent retry {}', or approve it: \
             notbefore approve {}",
            event.id, event.id
        ),
        FactKind::Approved => format!("the {kind} is approved"),
        FactKind::ApprovalMoot => format!("the {kind} no longer needs approval: it has started or is gone"),
        FactKind::ApprovalFailed { reason, again_in } => {
            format!("the {kind} could not be approved: {reason}; next attempt in {}", span(*again_in))
        }
        FactKind::Started { .. } if is_unprepared(fact) => {
            format!("the {kind} has started, and this VM was not ready")
        }
        FactKind::Started { .. } => format!("the {kind} has started"),
        FactKind::WentBack => {
            format!("the platform shows the started {kind} as scheduled; the agent ignores that")
        }
        FactKind::Changed => format!("the {kind} has changed"),
        FactKind::Booted => format!("this VM has booted since the {kind} was last seen"),
        FactKind::Cancelled => format!("the {kind} is cancelled"),
        FactKind::Ended => format!("the {kind} is over"),
        FactKind::TookOver { from } => format!("the {kind} takes over what was begun for event {from}"),
        FactKind::RestoreHeld { by } => format!("this VM is restored after event {by} is over too"),
        FactKind::Stranded { step } => format!(
            "this VM is stranded: it is not restored after the {kind}, because the step `{step}` failed; fix the cause \
             and run 'notbefore agent retry {}'",
            event.id
        ),
        FactKind::Restored { whole: true } => format!("this VM is restored after the {kind}"),
        FactKind::Restored { whole: false } => format!("some steps after the {kind} failed"),
    }
}

/// Names of facts that report a problem; their metrics start at zero.
pub const ALARMS: [&str; 7] = [
    "unmatched",
    "step_failed",
    "withheld",
    "approval_failed",
    "started_unprepared",
    "stranded",
    "restored_in_part",
];

/// Name of the fact in metrics.
pub fn name(fact: &Fact) -> &'static str {
    sort(fact).0
}

/// The notification for this fact, if it has one.
pub fn notify_on(fact: &Fact) -> Option<NotifyOn> {
    sort(fact).2
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    Info,
    Warn,
}

/// Name, severity and notification of a fact.
fn sort(fact: &Fact) -> (&'static str, Severity, Option<NotifyOn>) {
    use Severity::{Info, Warn};
    match &fact.kind {
        FactKind::Appeared { .. } => ("appeared", Info, Some(NotifyOn::Appeared)),
        FactKind::Matched => ("matched", Info, None),
        FactKind::Unmatched => ("unmatched", Warn, Some(NotifyOn::Unmatched)),
        FactKind::StepBegun { .. } => ("step_begun", Info, None),
        FactKind::StepDone { .. } => ("step_done", Info, None),
        FactKind::StepFailed { then: AfterFailure::Retry, .. } => ("step_retried", Warn, None),
        FactKind::StepFailed {
            then: AfterFailure::GoOn | AfterFailure::Withhold | AfterFailure::WithholdAndGoOn,
            ..
        } => ("step_failed", Warn, Some(NotifyOn::Failed)),
        FactKind::StepInterrupted { .. } => ("step_interrupted", Info, None),
        FactKind::TriedAgain { .. } => ("step_tried_again", Info, None),
        FactKind::StepDropped { .. } => ("step_dropped", Info, None),
        FactKind::RuleUnmatched => ("rule_unmatched", Info, None),
        FactKind::Prepared => ("prepared", Info, None),
        FactKind::NotApproving { .. } => ("not_approving", Info, None),
        FactKind::Withheld { .. } => ("withheld", Warn, Some(NotifyOn::Withheld)),
        FactKind::Approved => ("approved", Info, Some(NotifyOn::Approved)),
        FactKind::ApprovalMoot => ("approval_moot", Info, None),
        FactKind::ApprovalFailed { .. } => ("approval_failed", Warn, None),
        FactKind::Started { .. } if is_unprepared(fact) => {
            ("started_unprepared", Warn, Some(NotifyOn::Started))
        }
        FactKind::Started { .. } => ("started", Info, Some(NotifyOn::Started)),
        FactKind::WentBack => ("went_back", Warn, None),
        FactKind::Changed => ("changed", Info, None),
        FactKind::Booted => ("booted", Info, None),
        FactKind::Cancelled => ("cancelled", Info, Some(NotifyOn::Cancelled)),
        FactKind::Ended => ("ended", Info, Some(NotifyOn::Ended)),
        FactKind::TookOver { .. } => ("took_over", Info, None),
        FactKind::RestoreHeld { .. } => ("restore_held", Info, None),
        FactKind::Stranded { .. } => ("stranded", Warn, Some(NotifyOn::Stranded)),
        FactKind::Restored { whole: true } => ("restored", Info, Some(NotifyOn::Restored)),
        FactKind::Restored { whole: false } => ("restored_in_part", Warn, Some(NotifyOn::Restored)),
    }
}

/// Whether an event started that this VM should have been prepared for. Without a rule, as for most events of other
/// VMs, there is nothing to prepare.
fn is_unprepared(fact: &Fact) -> bool {
    matches!(fact.kind, FactKind::Started { prepared: false }) && fact.rule.is_some()
}

fn step(what: &FactKind) -> Option<&str> {
    let (FactKind::StepBegun { step, .. }
    | FactKind::StepDone { step, .. }
    | FactKind::StepFailed { step, .. }
    | FactKind::StepInterrupted { step, .. }
    | FactKind::TriedAgain { step, .. }
    | FactKind::StepDropped { step, .. }
    | FactKind::Stranded { step }) = what
    else {
        return None;
    };
    Some(step)
}

/// `14m 59s`, `500ms`: whole seconds; milliseconds below ten seconds.
fn span(length: std::time::Duration) -> String {
    let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
    let unit = if length.as_secs() < 10 { jiff::Unit::Millisecond } else { jiff::Unit::Second };
    length.round(unit).map_or_else(|_| format!("{length:#}"), |rounded| format!("{rounded:#}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::hooks::variables::tests::run_of;
    use crate::rules::StepAction;

    fn fact(what: FactKind) -> Fact {
        let event = run_of(StepAction::Wait { time: Duration::ZERO }, Duration::ZERO).event;
        Fact { event, mine: true, rule: Some("drain".to_owned()), kind: what }
    }

    fn said(what: FactKind) -> String {
        sentence(&fact(what))
    }

    #[test]
    fn unapproved_by_rule_is_debug_severity() {
        let reason = || "web-1 is first in Resources".to_owned();
        let not_mine = sort(&fact(FactKind::NotApproving { reason: reason() }));
        assert_eq!(not_mine, ("not_approving", Severity::Info, None));
        let withheld = sort(&fact(FactKind::Withheld { reason: reason() }));
        assert_eq!(withheld, ("withheld", Severity::Warn, Some(NotifyOn::Withheld)));
    }

    #[test]
    fn stranded_vm_is_an_alarm_with_its_own_notification() {
        let stranded = fact(FactKind::Stranded { step: "start".to_owned() });
        assert_eq!(sort(&stranded), ("stranded", Severity::Warn, Some(NotifyOn::Stranded)));
        assert!(ALARMS.contains(&name(&stranded)));
        assert_eq!(
            sentence(&stranded),
            "this VM is stranded: it is not restored after the Reboot, because the step `start` failed; fix the cause \
             and run 'notbefore agent retry A123'"
        );
    }

    #[test]
    fn unprepared_start_without_rule_is_not_an_alarm() {
        let unready = fact(FactKind::Started { prepared: false });
        let started = Some(NotifyOn::Started);
        assert_eq!(sort(&unready), ("started_unprepared", Severity::Warn, started));
        assert_eq!(sentence(&unready), "the Reboot has started, and this VM was not ready");
        let anothers = Fact { rule: None, ..unready };
        assert_eq!(sort(&anothers), ("started", Severity::Info, started));
        assert_eq!(sentence(&anothers), "the Reboot has started");
    }

    #[test]
    fn facts_are_sentences() {
        assert_eq!(
            said(FactKind::Appeared { time_left: Some(Duration::from_millis(899_600)), mine: true }),
            "Reboot of this VM (web-0, web-1): not before 2026-11-16T08:00:00Z, in 15m"
        );
        assert_eq!(
            said(FactKind::StepBegun {
                step: "pool".to_owned(),
                stage: Stage::Before,
                attempt: 2,
                budget: Duration::from_millis(2_500)
            }),
            "step pool before the Reboot starts: 2s 500ms at most, attempt 2"
        );
        assert_eq!(
            said(FactKind::StepFailed {
                step: "1".to_owned(),
                stage: Stage::Before,
                reason: "exit code 3".to_owned(),
                then: AfterFailure::Withhold
            }),
            "step 1 before the Reboot failed: exit code 3; the remaining steps are skipped, and the event is not approved"
        );
    }
}
