//! Journal format 2 and its conversion: an event with its rule, a phase, and ten booleans.

use std::time::Duration;

use jiff::Timestamp;
use notbefore_client::document::{Event, EventStatus};
use serde::Deserialize;

use super::io::RunId;
use super::tracked_event::{
    self, AfterRestore, Approval, Boot, Course, End, Phase, Presence, Progress, RestoreWait, Start, Undo,
};
use crate::rules::Rule;

#[derive(Deserialize)]
pub struct State {
    boot: Option<String>,
    next_run: u64,
    events: Vec<TrackedEvent>,
    unheard_boot: bool,
    resting_until: Option<Duration>,
}

#[derive(Deserialize)]
struct TrackedEvent {
    event: Event,
    mine: bool,
    seen_at: Timestamp,
    rule: Option<Rule>,
    phase: OldPhase,
    approval: OldApproval,
    begun: bool,
    booted: bool,
    heard: bool,
    listed: bool,
    cancelled: bool,
    went_back: bool,
    held: bool,
    replaced: bool,
    deadline: Option<Duration>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OldPhase {
    Unmatched,
    Preparing(OldProgress),
    Ready,
    Over { stopping: Option<RunId> },
    Restoring(OldProgress),
    Done,
}

/// Position in a list of steps, with a failure reason in place of a flaw.
#[derive(Clone, Copy, Deserialize)]
struct OldProgress {
    #[serde(flatten)]
    progress: Progress,
    failed: bool,
    unready: bool,
}

/// Approval; a withheld one names the step.
#[derive(Deserialize)]
#[serde(untagged)]
enum OldApproval {
    Withheld { withheld: OldWithheld },
    Other(Approval),
}

#[derive(Deserialize)]
struct OldWithheld {
    reason: String,
    step: usize,
}

impl From<State> for super::State {
    fn from(old: State) -> super::State {
        let State { boot, next_run, events, unheard_boot, resting_until } = old;
        let events = events.into_iter().map(tracked_event::TrackedEvent::from).collect();
        super::State { boot, next_run, events, unheard_boot, resting_until }
    }
}

impl From<TrackedEvent> for tracked_event::TrackedEvent {
    fn from(old: TrackedEvent) -> tracked_event::TrackedEvent {
        let has_started = old.event.status == EventStatus::Started;
        let presence = match (old.listed, has_started) {
            (true, true) if old.went_back => Presence::Started(Start::TakenBack),
            (true, true) => Presence::Started(Start::Said),
            (true, false) => Presence::Waiting { deadline: old.deadline },
            (false, _) if old.cancelled => Presence::Gone(End::Cancelled),
            (false, _) => Presence::Gone(End::Happened),
        };
        let boot = match (old.booted, old.heard) {
            (false, true) => Boot::None,
            (true, false) => Boot::Unheard,
            (false, false) => Boot::UnheardAgain,
            (true, true) => Boot::Heard,
        };
        let (approval, withheld) = match old.approval {
            OldApproval::Withheld { withheld: OldWithheld { reason, step } } => {
                (Approval::Withheld { reason }, Some(step))
            }
            OldApproval::Other(approval) => (approval, None),
        };
        let undo = if old.begun { Undo::Owed } else { Undo::Nothing };
        let next = if old.replaced { AfterRestore::AnotherRule } else { AfterRestore::Done };
        let phase = match old.phase {
            OldPhase::Unmatched => None,
            OldPhase::Preparing(_) | OldPhase::Ready if old.replaced => {
                old.begun.then_some(Phase::Over { waits: RestoreWait::Nothing, next })
            }
            OldPhase::Preparing(OldProgress { progress, unready, .. }) => {
                let flaw = unready.then_some(withheld.unwrap_or(progress.step));
                Some(Phase::Preparing { progress: Progress { flaw, ..progress }, undo })
            }
            OldPhase::Ready => Some(match withheld {
                Some(step) => Phase::Withheld { step, undo },
                None => Phase::Ready { undo },
            }),
            OldPhase::Over { .. } if !old.begun => Some(Phase::Done),
            OldPhase::Over { stopping: Some(run) } => {
                Some(Phase::Over { waits: RestoreWait::Stopping(run), next })
            }
            OldPhase::Over { stopping: None } if old.held => {
                Some(Phase::Over { waits: RestoreWait::Held, next })
            }
            OldPhase::Over { stopping: None } => Some(Phase::Over { waits: RestoreWait::Nothing, next }),
            OldPhase::Restoring(OldProgress { progress, failed, .. }) => {
                let flaw = failed.then_some(progress.step);
                Some(Phase::Restoring { progress: Progress { flaw, ..progress }, next })
            }
            OldPhase::Done => Some(Phase::Done),
        };
        let course = old.rule.zip(phase).map(|(rule, phase)| Course { rule, phase, approval });
        let TrackedEvent { event, mine, seen_at, .. } = old;
        let is_unmatched_told = false;
        tracked_event::TrackedEvent { event, mine, seen_at, presence, boot, course, is_unmatched_told }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::tracked_event::{Bound, StepState};
    use super::*;

    /// Journal of an agent killed during the second step before its event.
    const WRITTEN: &str = include_str!("../../../cli/tests/fixtures/level-1/agent/journal.json");

    /// The fixture's event with these fields overridden.
    fn read(changes: Value) -> tracked_event::TrackedEvent {
        let mut state = serde_json::from_str::<Value>(WRITTEN).unwrap()["state"].take();
        let event = state["events"][0].as_object_mut().unwrap();
        event.extend(changes.as_object().unwrap().clone());
        let state: State = serde_json::from_value(state).unwrap();
        super::super::State::from(state).events()[0].clone()
    }

    fn phase(changes: Value) -> Option<Phase> {
        read(changes).phase()
    }

    #[test]
    fn format_2_presence_is_converted() {
        let presence = |changes| read(changes).presence;
        let deadline = Some(Duration::new(2_276_064_719, 806_868_289));
        assert_eq!(presence(json!({})), Presence::Waiting { deadline });
        let mut event = serde_json::from_str::<Value>(WRITTEN).unwrap()["state"]["events"][0]["event"].take();
        event["status"] = "Started".into();
        for (went_back, start) in [(false, Start::Said), (true, Start::TakenBack)] {
            let started = json!({ "event": event, "went_back": went_back });
            assert_eq!(presence(started), Presence::Started(start));
        }
        for (cancelled, end) in [(true, End::Cancelled), (false, End::Happened)] {
            let gone = json!({ "listed": false, "cancelled": cancelled });
            assert_eq!(presence(gone), Presence::Gone(end));
        }
        for (booted, heard, boot) in [
            (false, true, Boot::None),
            (true, false, Boot::Unheard),
            (false, false, Boot::UnheardAgain),
            (true, true, Boot::Heard),
        ] {
            assert_eq!(read(json!({ "booted": booted, "heard": heard })).boot, boot);
        }
    }

    #[test]
    fn format_2_phase_is_converted() {
        let doing = StepState::Running(RunId(2));
        let bound = Bound::Until(Duration::new(2_276_064_719, 306_868_289));
        let progress = Progress { step: 1, attempt: 1, doing, bound, flaw: None };
        let undo = Undo::Owed;
        assert_eq!(phase(json!({})), Some(Phase::Preparing { progress, undo }));
        assert_eq!(read(json!({})).rule().unwrap().name, "drain");
        assert_eq!(phase(json!({ "phase": "unmatched", "rule": null })), None);
        assert_eq!(phase(json!({ "phase": "ready" })), Some(Phase::Ready { undo }));
        assert_eq!(
            phase(json!({ "phase": "ready", "begun": false })),
            Some(Phase::Ready { undo: Undo::Nothing })
        );
        let withheld =
            json!({ "phase": "ready", "approval": { "withheld": { "reason": "why", "step": 1 } } });
        assert_eq!(phase(withheld.clone()), Some(Phase::Withheld { step: 1, undo }));
        assert_eq!(*read(withheld).approval(), Approval::Withheld { reason: "why".to_owned() });
        let over = |waits, next| Some(Phase::Over { waits, next });
        let stopping = json!({ "phase": { "over": { "stopping": 7 } } });
        assert_eq!(phase(stopping), over(RestoreWait::Stopping(RunId(7)), AfterRestore::Done));
        let held = json!({ "phase": { "over": { "stopping": null } }, "held": true });
        assert_eq!(phase(held), over(RestoreWait::Held, AfterRestore::Done));
        let nothing = json!({ "phase": { "over": { "stopping": null } }, "begun": false });
        assert_eq!(phase(nothing), Some(Phase::Done), "nothing to undo");
        assert_eq!(phase(json!({ "replaced": true })), over(RestoreWait::Nothing, AfterRestore::AnotherRule));
        assert_eq!(phase(json!({ "replaced": true, "begun": false })), None, "another rule applies");
        let halted = json!({ "step": 0, "attempt": 2, "doing": "halted", "bound": "open", "failed": true, "unready": false });
        let progress =
            Progress { step: 0, attempt: 2, doing: StepState::Halted, bound: Bound::Open, flaw: Some(0) };
        let restoring = Phase::Restoring { progress, next: AfterRestore::Done };
        assert_eq!(phase(json!({ "phase": { "restoring": halted } })), Some(restoring));
    }
}
