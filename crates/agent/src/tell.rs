//! Facts, told: each as one line of the log with its fields, and as a sentence for people.

use jiff::SignedDuration;
use notbefore_wire::text::shorten;

use crate::config::Happening;
use crate::machine::io::{Fact, Stage, Then, What};

/// How much of a sentence is logged: a platform chooses names and kinds, and must not fill the disk with them.
const LINE_CHARACTERS_MAX: usize = 2_000;
/// How much of an event's kind is logged.
const WORD_CHARACTERS_MAX: usize = 100;

/// Writes a fact to the log.
pub fn log(fact: &Fact, dry_run: bool) {
    let text = match dry_run {
        true => format!("dry run: {}", sentence(fact)),
        false => sentence(fact),
    };
    let text = shorten(&text, LINE_CHARACTERS_MAX);
    let (event, kind) = (fact.event.id.to_string(), shorten(fact.event.kind.as_str(), WORD_CHARACTERS_MAX));
    let rule = fact.rule.as_deref().map(tracing::field::display);
    let step = step(&fact.what).map(tracing::field::display);
    match sort(fact).1 {
        Loudness::Info => tracing::info!(event, r#type = kind, rule, step, "{text}"),
        Loudness::Warn => tracing::warn!(event, r#type = kind, rule, step, "{text}"),
    }
}

/// What happened, in a sentence without its full stop.
pub fn sentence(fact: &Fact) -> String {
    let event = &fact.event;
    let kind = &event.kind;
    let place = |stage: &Stage| format!("{} the {kind}", stage.as_str());
    match &fact.what {
        What::Appeared { time_left, mine } => {
            let when = match (event.not_before, time_left) {
                (Some(at), Some(left)) => format!("not before {at}, in {}", span(*left)),
                (Some(_) | None, _) => event.status.as_str().to_lowercase(),
            };
            let whose = if *mine { "this VM" } else { "other VMs only" };
            format!("{kind} of {whose} ({}): {when}", event.resources.join(", "))
        }
        What::Matched => format!("rule {} is for it", fact.rule.as_deref().unwrap_or("none")),
        What::StepBegun { step, stage, attempt, budget } => {
            let again = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
            format!("step {step} {} begins: {} at most{again}", place(stage), span(*budget))
        }
        What::StepDone { step, stage } => format!("step {step} {} is done", place(stage)),
        What::StepFailed { step, stage, reason, then } => {
            let then = match (then, stage) {
                (Then::Retry, _) => "it is tried again",
                (Then::GoOn, _) => "the next one runs all the same",
                (Then::Withhold, Stage::Before) => "the rest is not run, and the event not approved",
                (Then::Withhold, Stage::After) => "the rest is not run, and the VM not put back",
                (Then::WithholdAndGoOn, _) => {
                    "the rest is run with the time that is left, and the event not approved"
                }
            };
            format!("step {step} {} failed: {reason}; {then}", place(stage))
        }
        What::StepInterrupted { step, stage, rerun } => {
            let then = if *rerun { "it is run again" } else { "it is taken for done" };
            format!("step {step} {} had begun when the agent ended: {then}", place(stage))
        }
        What::Prepared => format!("this VM is ready for the {kind}"),
        What::NotApproving { reason } => format!("this VM does not approve the {kind}: {reason}"),
        What::TriedAgain { step, stage } => {
            format!("step {step} {} is tried again", place(stage))
        }
        What::StepDropped { step, stage } => {
            format!("step {step} {} is no longer in its rule, and is not tried again", place(stage))
        }
        What::Withheld { reason } => format!(
            "the {kind} is not approved: {reason}; see to it and reload the agent, which tries it again, or approve by \
             hand: notbefore approve {}",
            event.id
        ),
        What::Approved => format!("the {kind} is approved"),
        What::ApprovalMoot => format!("the {kind} needs no approval any more: it has started or is gone"),
        What::ApprovalFailed { reason, again_in } => {
            format!("the {kind} could not be approved: {reason}; tried again in {}", span(*again_in))
        }
        What::Started { .. } if is_unprepared(fact) => {
            format!("the {kind} has started, and this VM was not ready")
        }
        What::Started { .. } => format!("the {kind} has started"),
        What::WentBack => format!("the platform takes back that the {kind} has started; it is not believed"),
        What::Changed => format!("the {kind} is another than before"),
        What::Booted => format!("this VM has booted since the {kind} was last seen"),
        What::Cancelled => format!("the {kind} is cancelled"),
        What::Ended => format!("the {kind} is over"),
        What::RestoreHeld { by } => format!("this VM is put back when event {by} is over, too"),
        What::Stranded { step } => format!(
            "this VM is not put back after the {kind}: see to the step {step} and reload the agent, which tries it again"
        ),
        What::Restored { whole: true } => format!("this VM is back after the {kind}"),
        What::Restored { whole: false } => format!("not every step after the {kind} went well"),
    }
}

/// The facts, by name, that say that something is not as it should be.
pub const ALARMS: [&str; 6] =
    ["step_failed", "withheld", "approval_failed", "started_unprepared", "stranded", "restored_in_part"];

/// What happened, in a word for programs.
pub fn name(fact: &Fact) -> &'static str {
    sort(fact).0
}

/// What an administrator may want to hear of it.
pub fn happening(fact: &Fact) -> Option<Happening> {
    sort(fact).2
}

/// How loud a fact is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loudness {
    Info,
    Warn,
}

/// What sort of fact it is: its name, how loud it is, and what an administrator may want to hear of it.
fn sort(fact: &Fact) -> (&'static str, Loudness, Option<Happening>) {
    use Loudness::{Info, Warn};
    match &fact.what {
        What::Appeared { .. } => ("appeared", Info, Some(Happening::Appeared)),
        What::Matched => ("matched", Info, None),
        What::StepBegun { .. } => ("step_begun", Info, None),
        What::StepDone { .. } => ("step_done", Info, None),
        What::StepFailed { then: Then::Retry, .. } => ("step_retried", Warn, None),
        What::StepFailed { then: Then::GoOn | Then::Withhold | Then::WithholdAndGoOn, .. } => {
            ("step_failed", Warn, Some(Happening::Failed))
        }
        What::StepInterrupted { .. } => ("step_interrupted", Info, None),
        What::TriedAgain { .. } => ("step_tried_again", Info, None),
        What::StepDropped { .. } => ("step_dropped", Info, None),
        What::Prepared => ("prepared", Info, None),
        What::NotApproving { .. } => ("not_approving", Info, None),
        What::Withheld { .. } => ("withheld", Warn, Some(Happening::Withheld)),
        What::Approved => ("approved", Info, Some(Happening::Approved)),
        What::ApprovalMoot => ("approval_moot", Info, None),
        What::ApprovalFailed { .. } => ("approval_failed", Warn, None),
        What::Started { .. } if is_unprepared(fact) => ("started_unprepared", Warn, Some(Happening::Started)),
        What::Started { .. } => ("started", Info, Some(Happening::Started)),
        What::WentBack => ("went_back", Warn, None),
        What::Changed => ("changed", Info, None),
        What::Booted => ("booted", Info, None),
        What::Cancelled => ("cancelled", Info, Some(Happening::Cancelled)),
        What::Ended => ("ended", Info, Some(Happening::Ended)),
        What::RestoreHeld { .. } => ("restore_held", Info, None),
        What::Stranded { .. } => ("stranded", Warn, None),
        What::Restored { whole: true } => ("restored", Info, Some(Happening::Restored)),
        What::Restored { whole: false } => ("restored_in_part", Warn, Some(Happening::Restored)),
    }
}

/// Whether an event has started that this VM should have been ready for. Where no rule is for it there is nothing to be
/// ready with: other VMs' events, as a rule.
fn is_unprepared(fact: &Fact) -> bool {
    matches!(fact.what, What::Started { prepared: false }) && fact.rule.is_some()
}

/// The step that it is about.
fn step(what: &What) -> Option<&str> {
    let (What::StepBegun { step, .. }
    | What::StepDone { step, .. }
    | What::StepFailed { step, .. }
    | What::StepInterrupted { step, .. }
    | What::TriedAgain { step, .. }
    | What::StepDropped { step, .. }
    | What::Stranded { step }) = what
    else {
        return None;
    };
    Some(step)
}

/// `14m 59s`, `500ms`: to the second, but for what is shorter than ten.
fn span(length: std::time::Duration) -> String {
    let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
    let unit = if length.as_secs() < 10 { jiff::Unit::Millisecond } else { jiff::Unit::Second };
    length.round(unit).map_or_else(|_| format!("{length:#}"), |rounded| format!("{rounded:#}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::hooks::facts::tests::run_of;
    use crate::rules::Deed;

    fn fact(what: What) -> Fact {
        let event = run_of(Deed::Wait { time: Duration::ZERO }, Duration::ZERO).event;
        Fact { event, rule: Some("drain".to_owned()), what }
    }

    fn said(what: What) -> String {
        sentence(&fact(what))
    }

    #[test]
    fn what_a_rule_leaves_to_others_is_no_news() {
        let reason = || "web-1 is first in Resources".to_owned();
        let not_mine = sort(&fact(What::NotApproving { reason: reason() }));
        assert_eq!(not_mine, ("not_approving", Loudness::Info, None));
        let withheld = sort(&fact(What::Withheld { reason: reason() }));
        assert_eq!(withheld, ("withheld", Loudness::Warn, Some(Happening::Withheld)));
    }

    #[test]
    fn that_a_vm_was_not_ready_is_no_news_where_no_rule_is_for_the_event() {
        let unready = fact(What::Started { prepared: false });
        let started = Some(Happening::Started);
        assert_eq!(sort(&unready), ("started_unprepared", Loudness::Warn, started));
        assert_eq!(sentence(&unready), "the Reboot has started, and this VM was not ready");
        let anothers = Fact { rule: None, ..unready };
        assert_eq!(sort(&anothers), ("started", Loudness::Info, started));
        assert_eq!(sentence(&anothers), "the Reboot has started");
    }

    #[test]
    fn facts_are_sentences() {
        assert_eq!(
            said(What::Appeared { time_left: Some(Duration::from_millis(899_600)), mine: true }),
            "Reboot of this VM (web-0, web-1): not before 2026-11-16T08:00:00Z, in 15m"
        );
        assert_eq!(
            said(What::StepBegun {
                step: "pool".to_owned(),
                stage: Stage::Before,
                attempt: 2,
                budget: Duration::from_millis(2_500)
            }),
            "step pool before the Reboot begins: 2s 500ms at most, attempt 2"
        );
        assert_eq!(
            said(What::StepFailed {
                step: "1".to_owned(),
                stage: Stage::Before,
                reason: "exit code 3".to_owned(),
                then: Then::Withhold
            }),
            "step 1 before the Reboot failed: exit code 3; the rest is not run, and the event not approved"
        );
    }
}
