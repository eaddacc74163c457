//! What the machine does in the cases that have a name.

use std::time::Duration;

use jiff::SignedDuration;
use notbefore_agent::machine::io::{ApprovalAnswer, Input, Run, Stage, StepOutcome, What};
use notbefore_agent::machine::{RESERVE, RUNNING_MAX};
use notbefore_agent::rules::{
    Approve, Deed, Match, OnFailure, OnInterrupt, Restore, Rule, Step, Whose, Within,
};
use notbefore_client::document::{Event, EventId, EventKind, EventsVersion};

use crate::world::{ME, World, event, rule, seconds, step};

const QUARTER: Duration = Duration::from_secs(900);

fn failed() -> StepOutcome {
    StepOutcome::Failed { reason: "exit code 1".into() }
}

fn told(world: &World, id: &str, what: &What) -> bool {
    world.facts.contains(&(EventId::new(id), what.clone()))
}

/// A world in which an event of this VM was announced and read.
fn with_event(rules: Vec<Rule>, kind: EventKind, notice: Duration) -> World {
    let mut world = World::new(rules);
    world.announce("A", kind, notice);
    world.poll();
    world
}

/// The same, with both steps done and the approval taken.
fn approved(rules: Vec<Rule>, kind: EventKind) -> World {
    let mut world = with_event(rules, kind, QUARTER);
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    world.answer(ApprovalAnswer::Accepted);
    world
}

#[test]
fn an_event_is_prepared_for_approved_and_undone() {
    let mut world = with_event(vec![rule("r")], EventKind::Freeze, QUARTER);
    assert!(world.state.draining());
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().stage), ("drain", Stage::Before));
    world.end(StepOutcome::Done);
    assert_eq!(world.only_run().step.name, "stop");
    assert!(world.approving.is_empty());
    world.end(StepOutcome::Done);
    assert_eq!(world.approving, [EventId::new("a")]);
    world.answer(ApprovalAnswer::Accepted);
    world.start("A");
    world.poll();
    assert!(told(&world, "A", &What::Started { prepared: true }));
    assert!(world.running.is_empty());
    world.remove("A");
    world.poll();
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().cancelled), ("start", false));
    assert!(world.state.draining(), "until everything is put back");
    world.end(StepOutcome::Done);
    assert!(told(&world, "A", &What::Restored { whole: true }));
    assert!(!world.state.draining());
    world.wind_up();
}

#[test]
fn a_cancelled_event_is_undone_and_the_step_that_runs_is_stopped() {
    let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
    let drain = world.only_run().id;
    world.remove("A");
    world.poll();
    assert!(world.stopping.contains(&drain));
    assert!(told(&world, "A", &What::Cancelled));
    world.end_run(drain, StepOutcome::Stopped);
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().cancelled), ("start", true));
    world.wind_up();
}

#[test]
fn what_has_no_steps_before_still_has_those_after() {
    let nothing_before = Rule { before: vec![], ..rule("r") };
    let mut world = with_event(vec![nothing_before], EventKind::Freeze, QUARTER);
    assert_eq!(world.approving.len(), 1, "nothing to do before is done at once");
    world.answer(ApprovalAnswer::Accepted);
    world.remove("A");
    world.poll();
    assert_eq!(world.only_run().step.name, "start");
    world.wind_up();
}

#[test]
fn of_what_was_not_begun_nothing_is_undone() {
    let rules = vec![Rule { before: vec![step("drain")], ..rule("r") }];
    let mut world = World::new(rules);
    // As many run as may; one more waits.
    for number in 0..=RUNNING_MAX {
        world.announce(&format!("{number:02}"), EventKind::Reboot, QUARTER);
    }
    world.poll();
    let last = EventId::new(format!("{RUNNING_MAX:02}"));
    assert!(world.running.values().all(|run| run.event.id != last));
    world.remove(last.as_str());
    world.poll();
    let undone = |run: &Run| run.event.id == last;
    assert!(!world.running.values().any(undone));
    assert!(world.state.events().iter().all(|handled| handled.event.id != last), "it is forgotten");
    world.wind_up();
}

#[test]
fn a_step_that_fails_is_tried_again_and_then_withholds() {
    let stubborn = Step { retries: 1, retry_delay: seconds(4), ..step("drain") };
    let mut world = with_event(
        vec![Rule { before: vec![stubborn, step("stop")], ..rule("r") }],
        EventKind::Reboot,
        QUARTER,
    );
    world.end(failed());
    assert!(world.running.is_empty());
    world.pass(seconds(4));
    assert_eq!(world.only_run().attempt, 2);
    world.end(failed());
    assert!(world.running.is_empty() && world.approving.is_empty());
    assert!(told(&world, "A", &What::Withheld { reason: "the step `drain` failed".into() }));
    assert!(world.state.draining());
    world.start("A");
    world.poll();
    assert!(told(&world, "A", &What::Started { prepared: false }));
    world.remove("A");
    world.poll();
    assert_eq!(world.only_run().step.name, "start", "what was begun is undone, failed or not");
    world.wind_up();
}

#[test]
fn a_failure_that_does_not_matter_does_not() {
    let optional = Step { on_failure: OnFailure::GoOn, ..step("drain") };
    let mut world = with_event(
        vec![Rule { before: vec![optional, step("stop")], ..rule("r") }],
        EventKind::Reboot,
        QUARTER,
    );
    world.end(failed());
    world.end(StepOutcome::Done);
    assert_eq!(world.approving.len(), 1);
    world.wind_up();
}

#[test]
fn of_the_thirty_seconds_of_preempt_the_hooks_get_all_but_the_reserve() {
    let keeps = Step { keep: seconds(5), ..step("stop") };
    let mut world = with_event(
        vec![Rule { before: vec![step("drain"), keeps], ..rule("r") }],
        EventKind::Preempt,
        seconds(30),
    );
    assert_eq!(world.only_run().budget, seconds(25) - RESERVE);
    world.pass(seconds(25) - RESERVE);
    world.end(StepOutcome::TimedOut);
    assert!(world.approving.is_empty(), "withheld");
    let mut world = with_event(vec![rule("r")], EventKind::Preempt, seconds(30));
    world.pass(seconds(20));
    world.end(StepOutcome::Done);
    assert_eq!(world.only_run().budget, seconds(10) - RESERVE);
    world.wind_up();
}

#[test]
fn once_its_time_has_come_what_is_not_done_yet_is_done_all_the_same_but_nothing_again() {
    let optional = Step { on_failure: OnFailure::GoOn, retries: 3, ..step("drain") };
    let rules = vec![Rule { before: vec![optional, step("stop")], ..rule("r") }];
    let mut world = with_event(rules, EventKind::Preempt, seconds(30));
    world.pass(seconds(30) - RESERVE);
    world.end(StepOutcome::TimedOut);
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().budget), ("stop", seconds(60)));
    world.pass(seconds(50));
    assert!(world.stopping.is_empty(), "it is late already");
    world.end(StepOutcome::Done);
    assert_eq!(world.approving.len(), 1);
    world.wind_up();
}

#[test]
fn an_event_that_is_late_when_it_is_first_seen_is_prepared_for() {
    let mut world = World::new(vec![rule("r")]);
    world.announce("A", EventKind::Reboot, Duration::ZERO);
    world.pass(seconds(10));
    world.poll();
    assert_eq!(world.only_run().step.name, "drain");
    world.wind_up();
}

#[test]
fn an_eviction_that_does_not_say_when_has_half_a_minute() {
    let mut world = World::new(vec![rule("r")]);
    let now = world.platform_time();
    let event = Event { not_before: None, ..event("A", EventKind::Preempt, &[ME], now) };
    world.announce_event(event, seconds(30));
    world.poll();
    assert_eq!(world.only_run().budget, seconds(30) - RESERVE);
    world.wind_up();
}

#[test]
fn an_event_that_is_taken_from_this_vm_is_over_for_it() {
    let mut world = World::new(vec![rule("r")]);
    world.announce_for("A", EventKind::Reboot, &[ME, "web-1"], QUARTER);
    world.poll();
    world.end(StepOutcome::Done);
    world.announce_for("A", EventKind::Reboot, &["web-1"], QUARTER);
    world.poll();
    assert!(world.state.draining(), "until it is put back");
    world.end(StepOutcome::Stopped);
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().cancelled), ("start", true));
    world.end(StepOutcome::Done);
    assert!(!world.state.draining());
    world.announce_for("A", EventKind::Reboot, &[ME], QUARTER);
    world.poll();
    assert_eq!(world.only_run().step.name, "drain", "and if it is given back, it is prepared for again");
    world.wind_up();
}

#[test]
fn who_becomes_the_leader_approves() {
    let leader = Rule { approve: Approve::Leader, before: vec![], after: vec![], ..rule("r") };
    let mut world = World::new(vec![leader]);
    world.announce_for("A", EventKind::Reboot, &["web-1", ME], QUARTER);
    world.poll();
    assert!(world.approving.is_empty());
    world.announce_for("A", EventKind::Reboot, &[ME], QUARTER);
    world.poll();
    assert_eq!(world.approving.len(), 1);
    world.wind_up();
}

#[test]
fn a_refused_approval_is_sent_again_until_it_does_not_matter() {
    let mut world = with_event(vec![Rule { before: vec![], ..rule("r") }], EventKind::Reboot, QUARTER);
    for _ in 0..20 {
        assert_eq!(world.approving.len(), 1);
        world.answer(ApprovalAnswer::Failed { reason: "connection refused".into() });
        assert!(world.approving.is_empty());
        world.pass(seconds(15));
    }
    world.start("A");
    world.poll();
    world.answer(ApprovalAnswer::Refused { reason: "too late".into() });
    world.pass(seconds(100));
    assert!(world.approving.is_empty(), "it has started");
    world.wind_up();
}

#[test]
fn only_the_first_of_its_vms_approves_as_leader() {
    let leader = Rule { approve: Approve::Leader, before: vec![], ..rule("r") };
    let mut world = World::new(vec![leader]);
    world.announce_for("A", EventKind::Reboot, &["web-1", ME], QUARTER);
    world.announce_for("B", EventKind::Reboot, &[ME, "web-1"], QUARTER);
    world.poll();
    assert_eq!(world.approving, [EventId::new("B")]);
    world.wind_up();
}

#[test]
fn an_event_for_others_only_is_left_alone() {
    let mut world = World::new(vec![rule("r")]);
    world.announce_for("A", EventKind::Reboot, &["web-1"], QUARTER);
    world.poll();
    assert!(world.running.is_empty() && world.approving.is_empty() && !world.state.draining());
    world.wind_up();
}

#[test]
fn while_a_second_event_keeps_the_vm_out_it_stays_out() {
    let mut world = approved(vec![rule("r")], EventKind::Freeze);
    world.announce("B", EventKind::Reboot, QUARTER);
    world.poll();
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    assert_eq!(world.approving, [EventId::new("B")], "each for itself");
    world.remove("A");
    world.poll();
    assert!(world.running.is_empty());
    assert!(told(&world, "A", &What::RestoreHeld { by: EventId::new("B") }));
    world.remove("B");
    world.poll();
    assert_eq!(world.only_run().event.id, EventId::new("B"), "what was taken out last is put back first");
    world.end(StepOutcome::Done);
    assert_eq!(world.only_run().event.id, EventId::new("A"));
    world.wind_up();
}

#[test]
fn after_a_restart_an_interrupted_step_is_run_again_or_taken_for_done() {
    for (on_interrupt, next) in [(OnInterrupt::Rerun, "drain"), (OnInterrupt::Skip, "stop")] {
        let drain = Step { on_interrupt, ..step("drain") };
        let mut world = with_event(
            vec![Rule { before: vec![drain, step("stop")], ..rule("r") }],
            EventKind::Reboot,
            QUARTER,
        );
        world.restart(false);
        assert!(world.running.is_empty(), "first it is asked whether there is still a reason");
        world.poll();
        assert_eq!(world.only_run().step.name, next);
        world.wind_up();
    }
}

#[test]
fn after_a_restart_with_the_endpoint_down_it_goes_on_with_what_it_knows() {
    let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
    world.restart(false);
    world.pass(seconds(5));
    assert_eq!(world.only_run().step.name, "drain");
    world.wind_up();
}

#[test]
fn after_the_reboot_it_waits_for_the_end_and_restores() {
    let mut world = approved(vec![rule("r")], EventKind::Reboot);
    world.start("A");
    world.poll();
    world.restart(true);
    world.pass(seconds(60));
    world.poll();
    assert!(world.running.is_empty(), "the event is still there");
    assert!(world.state.draining());
    world.remove("A");
    world.poll();
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().cancelled), ("start", false));
    world.wind_up();
}

#[test]
fn a_reboot_whose_start_nobody_saw_is_no_reason_to_prepare_anew() {
    let mut world = approved(vec![rule("r")], EventKind::Reboot);
    world.start("A");
    world.restart(true);
    world.pass(seconds(3_600));
    assert!(world.running.is_empty(), "until a document says how it is, nothing is begun");
    world.poll();
    assert!(world.running.is_empty(), "it has started, and the VM has booted");
    world.remove("A");
    world.poll();
    assert_eq!(world.only_run().step.name, "start");
    assert!(!world.only_run().cancelled);
    world.wind_up();
}

#[test]
fn restore_may_begin_as_soon_as_the_vm_has_booted() {
    let early = Rule { restore: Restore::Booted, ..rule("r") };
    let mut world = approved(vec![early], EventKind::Reboot);
    world.start("A");
    world.poll();
    world.restart(true);
    world.poll();
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().stage), ("start", Stage::After));
    world.end(StepOutcome::Done);
    assert!(!world.state.draining());
    world.poll();
    assert!(world.running.is_empty(), "once is enough");
    world.wind_up();
}

#[test]
fn a_boot_before_the_event_means_preparing_anew() {
    let mut world = approved(vec![rule("r")], EventKind::Reboot);
    world.restart(true);
    world.poll();
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().stage), ("drain", Stage::Before));
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    assert!(world.approving.is_empty(), "it was approved before");
    world.wind_up();
}

#[test]
fn an_event_that_comes_back_is_prepared_for_again() {
    let mut world = approved(vec![rule("r")], EventKind::Freeze);
    world.remove("A");
    world.poll();
    let start = world.only_run().id;
    world.announce("A", EventKind::Freeze, QUARTER);
    world.poll();
    assert!(world.stopping.contains(&start));
    world.end_run(start, StepOutcome::Stopped);
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().stage), ("drain", Stage::Before));
    world.wind_up();
}

#[test]
fn a_start_that_the_platform_takes_back_changes_nothing() {
    let mut world = approved(vec![rule("r")], EventKind::Reboot);
    world.start("A");
    world.poll();
    world.go_back("A", QUARTER);
    world.poll();
    world.poll();
    let backs = world.facts.iter().filter(|(_, what)| *what == What::WentBack).count();
    assert_eq!(backs, 1, "said once");
    assert!(world.running.is_empty() && world.approving.is_empty());
    world.wind_up();
}

#[test]
fn an_event_that_begins_started_is_prepared_for_without_a_deadline_or_an_approval() {
    let mut world = World::new(vec![rule("r")]);
    world.announce("A", EventKind::Reboot, QUARTER);
    world.start("A");
    world.poll();
    assert_eq!(world.only_run().budget, seconds(60));
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    assert!(world.approving.is_empty());
    world.wind_up();
}

#[test]
fn a_rule_for_the_last_hour_waits_for_it() {
    let time_left = Within { at_least: None, at_most: Some(seconds(3_600)) };
    let late = Rule { matches: Match { time_left, ..Match::default() }, ..rule("late") };
    let week = seconds(7 * 24 * 3_600);
    let mut world = with_event(vec![late], EventKind::Redeploy, week);
    assert!(world.running.is_empty() && !world.state.draining());
    world.pass(week - seconds(3_601));
    assert!(world.running.is_empty());
    world.pass(seconds(1));
    assert_eq!(world.only_run().step.name, "drain");
    world.wind_up();
}

#[test]
fn a_clock_that_is_wrong_or_stepped_changes_no_deadline() {
    let mut world = World::new(vec![rule("r")]);
    world.step_clock(SignedDuration::from_hours(5));
    world.announce("A", EventKind::Preempt, seconds(30));
    world.poll();
    assert_eq!(world.only_run().budget, seconds(29) - RESERVE, "the platform's clock tells whole seconds");
    world.step_clock(SignedDuration::from_hours(-50));
    world.pass(seconds(10));
    world.end(StepOutcome::Done);
    assert_eq!(world.only_run().budget, seconds(19) - RESERVE);
    world.wind_up();
}

#[test]
fn an_event_that_is_no_longer_this_vms_is_not_approved() {
    let mut world = with_event(vec![Rule { before: vec![], ..rule("r") }], EventKind::Reboot, QUARTER);
    world.answer(ApprovalAnswer::Failed { reason: "connection refused".into() });
    world.announce_for("A", EventKind::Reboot, &["web-1"], QUARTER);
    world.poll();
    world.pass(seconds(60));
    assert!(world.approving.is_empty());
    world.wind_up();
}

#[test]
fn an_event_that_comes_while_the_vm_is_put_back_goes_first() {
    let mut world = approved(vec![rule("r")], EventKind::Freeze);
    world.remove("A");
    world.poll();
    let start = world.only_run().id;
    world.announce("B", EventKind::Preempt, seconds(30));
    world.poll();
    assert!(world.stopping.contains(&start));
    assert_eq!(world.running.len(), 1, "nothing is begun before that has ended");
    world.end_run(start, StepOutcome::Stopped);
    assert_eq!((world.only_run().event.id.as_str(), world.only_run().stage), ("B", Stage::Before));
    world.remove("B");
    world.poll();
    world.end(StepOutcome::Stopped);
    assert_eq!((world.only_run().event.id.as_str(), world.only_run().stage), ("B", Stage::After));
    world.end(StepOutcome::Done);
    assert_eq!((world.only_run().event.id.as_str(), world.only_run().stage), ("A", Stage::After));
    world.wind_up();
}

#[test]
fn a_step_is_stopped_when_not_before_comes_nearer() {
    let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
    world.announce("A", EventKind::Reboot, seconds(20));
    world.poll();
    assert!(world.stopping.is_empty(), "there is time left");
    world.pass(seconds(20) - RESERVE);
    assert_eq!(world.stopping.len(), 1);
    world.pass(seconds(100));
    world.end(StepOutcome::Stopped);
    assert_eq!(world.only_run().step.name, "stop", "the event comes all the same");
    world.end(StepOutcome::Done);
    assert!(world.running.is_empty() && world.approving.is_empty(), "but it is not approved");
    world.wind_up();
}

#[test]
fn after_a_boot_with_the_endpoint_down_what_may_be_put_back_is() {
    let early = Rule { restore: Restore::Booted, ..rule("r") };
    let mut world = approved(vec![early], EventKind::Reboot);
    world.start("A");
    world.poll();
    world.restart(true);
    world.pass(seconds(5));
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().stage), ("start", Stage::After));
    world.wind_up();
}

#[test]
fn of_a_thousand_events_a_few_are_prepared_for_at_a_time() {
    let mut world = World::new(vec![Rule { before: vec![step("drain")], ..rule("r") }]);
    for number in 0..100 {
        world.announce(&number.to_string(), EventKind::Freeze, QUARTER);
    }
    world.poll();
    assert_eq!(world.running.len(), RUNNING_MAX);
    let first = *world.running.keys().next().unwrap();
    world.end_run(first, StepOutcome::Done);
    assert_eq!(world.running.len(), RUNNING_MAX);
    world.wind_up();
}

#[test]
fn what_an_older_version_has_no_word_for_is_not_gone() {
    let mut world = World::new(vec![rule("all")]);
    world.announce("A", EventKind::Terminate, seconds(900));
    world.announce("B", EventKind::Reboot, seconds(900));
    world.poll();
    for _ in 0..4 {
        let run = *world.running.keys().next().unwrap();
        world.end_run(run, StepOutcome::Done);
    }
    world.remove("B");
    world.poll_at(EventsVersion::V2017_03_01);
    let kinds: Vec<_> = world.state.events().iter().map(|handled| handled.listed).collect();
    assert_eq!(kinds, [true, false], "the Reboot is gone, of the Terminate nothing was said");
    world.remove("A");
    world.poll();
    world.end(StepOutcome::Done);
    assert_eq!(world.state.events().len(), 1, "now it is gone");
}

#[test]
fn a_vm_that_is_not_sure_of_its_name_prepares_and_does_not_approve() {
    let mut world = World::new(vec![rule("all")]);
    world.is_called(ME, false);
    world.announce("A", EventKind::Reboot, seconds(900));
    world.poll();
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    world.pass(seconds(60));
    assert_eq!(world.approving, [], "it may be another VM's");
    world.is_called(ME, true);
    assert_eq!(world.approving.len(), 1);
}

#[test]
fn an_event_of_a_name_that_turns_out_to_be_another_vms_is_undone_and_not_approved() {
    let mut world = World::new(vec![rule("all")]);
    world.is_called(ME, false);
    world.announce("A", EventKind::Reboot, seconds(900));
    world.poll();
    world.end(StepOutcome::Done);
    world.is_called("web-3", true);
    world.end(StepOutcome::Done);
    assert_eq!((world.only_run().stage, &world.approving[..]), (Stage::After, &[][..]));
    world.wind_up();
}

#[test]
fn an_event_that_comes_back_as_this_vms_has_the_rule_that_is_for_that() {
    let others = Match { resources: Whose::Others, ..Match::default() };
    let log = Rule { matches: others, before: vec![step("log")], approve: Approve::Never, ..rule("others") };
    let mut world = World::new(vec![rule("mine"), log]);
    world.announce_for("A", EventKind::Reboot, &["web-1"], QUARTER);
    world.poll();
    world.remove("A");
    world.poll();
    world.announce_for("A", EventKind::Reboot, &["web-1", ME], QUARTER);
    world.poll();
    world.end(StepOutcome::Stopped);
    world.end(StepOutcome::Done);
    assert_eq!(world.only_run().step.name, "drain");
}

#[test]
fn an_approval_that_seemed_moot_is_sent_again_when_the_event_is_seen_to_wait() {
    let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    world.answer(ApprovalAnswer::Moot);
    world.poll();
    assert_eq!(world.approving.len(), 1);
}

#[test]
fn a_step_that_was_begun_before_anybody_knew_when_is_stopped_in_time_too() {
    let mut world = World::new(vec![rule("r")]);
    let unsaid = Event { not_before: None, ..event("A", EventKind::Reboot, &[ME], world.platform_time()) };
    world.announce_event(unsaid, seconds(700_000));
    world.poll_served_at(None);
    assert_eq!(world.only_run().until, None);
    world.announce("A", EventKind::Reboot, seconds(20));
    world.poll();
    world.pass(seconds(20));
    assert_eq!(world.stopping.len(), 1);
}

#[test]
fn what_a_step_keeps_it_has_although_another_used_up_its_time() {
    let keeps = Step { keep: seconds(5), timeout: seconds(3), ..step("stop") };
    let rules = vec![Rule { before: vec![step("drain"), keeps], ..rule("r") }];
    let mut world = with_event(rules, EventKind::Preempt, seconds(30));
    let drain = world.only_run().budget;
    world.pass(drain);
    world.end(StepOutcome::TimedOut);
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().budget), ("stop", seconds(3)));
    world.end(StepOutcome::Done);
    assert_eq!(world.approving, [], "a step that had to be done was not");
    assert!(world.facts.iter().any(|(_, what)| matches!(what, What::Withheld { .. })));
    assert!(!world.facts.iter().any(|(_, what)| *what == What::Prepared));
    world.wind_up();
}

#[test]
fn who_was_only_to_wait_has_waited_when_the_time_is_over() {
    let waits = Step { does: Deed::Wait { time: seconds(300) }, timeout: seconds(400), ..step("wait") };
    let rules = vec![Rule { before: vec![waits, Step { keep: seconds(5), ..step("stop") }], ..rule("r") }];
    let mut world = with_event(rules, EventKind::Preempt, seconds(30));
    let wait = world.only_run().budget;
    world.pass(wait);
    world.end(StepOutcome::TimedOut);
    assert_eq!(world.only_run().step.name, "stop");
    world.end(StepOutcome::Done);
    assert_eq!(world.approving.len(), 1);
}

#[test]
fn a_step_that_takes_longer_than_it_may_still_ends_the_list() {
    let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
    world.pass(seconds(60));
    world.end(StepOutcome::TimedOut);
    assert!(world.running.is_empty(), "that was its own time, not that of the event");
}

#[test]
fn what_failed_is_tried_again_when_somebody_has_seen_to_it() {
    for restarts in [false, true] {
        let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
        world.end(StepOutcome::Done);
        world.end(failed());
        world.pass(seconds(60));
        assert!(world.running.is_empty());
        match restarts {
            true => {
                world.restart(false);
                world.poll();
            }
            false => world.tell(Input::Retry),
        }
        assert_eq!(world.only_run().step.name, "stop", "from the step that failed on");
        world.end(StepOutcome::Done);
        assert_eq!(world.approving.len(), 1);
    }
}

#[test]
fn a_vm_that_cannot_be_put_back_stays_out_until_somebody_has_seen_to_it() {
    let mut world = approved(vec![rule("r")], EventKind::Reboot);
    world.remove("A");
    world.poll();
    world.end(failed());
    world.pass(seconds(600));
    assert!(world.running.is_empty() && world.state.draining());
    assert_eq!(world.state.events()[0].phase.word(), "stranded");
    world.tell(Input::Retry);
    world.end(StepOutcome::Done);
    assert_eq!(world.state.events(), []);
}

#[test]
fn an_event_that_becomes_this_vms_is_approved_by_a_rule_for_anybodys() {
    let any = Match { resources: Whose::Any, ..Match::default() };
    let mut world = World::new(vec![Rule { matches: any, ..rule("any") }]);
    world.announce_for("A", EventKind::Reboot, &["web-1"], QUARTER);
    world.poll();
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    assert_eq!(world.approving, []);
    world.announce_for("A", EventKind::Reboot, &["web-1", ME], QUARTER);
    world.poll();
    assert_eq!(world.approving.len(), 1);
    assert!(world.running.is_empty(), "it is prepared for already");
}

#[test]
fn an_event_that_becomes_this_vms_has_the_rule_that_is_for_that() {
    let others = Match { resources: Whose::Others, ..Match::default() };
    let log = Rule {
        matches: others,
        before: vec![step("log")],
        after: vec![step("log the end")],
        approve: Approve::Never,
        drain: false,
        ..rule("others")
    };
    let mut world = World::new(vec![rule("mine"), log]);
    world.announce_for("A", EventKind::Reboot, &["web-1"], QUARTER);
    world.poll();
    assert_eq!(world.only_run().step.name, "log");
    world.announce_for("A", EventKind::Reboot, &["web-1", ME], QUARTER);
    world.poll();
    world.end(StepOutcome::Stopped);
    assert_eq!(world.only_run().step.name, "log the end", "what was begun is undone");
    world.end(StepOutcome::Done);
    assert_eq!(world.only_run().step.name, "drain");
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    assert_eq!(world.approving.len(), 1);
    world.wind_up();
}

#[test]
fn this_vms_own_event_does_not_wait_for_those_of_others() {
    let others = Match { resources: Whose::Others, ..Match::default() };
    let log = Rule { matches: others, before: vec![step("log")], approve: Approve::Never, ..rule("others") };
    let mut world = World::new(vec![rule("mine"), log]);
    for number in 0..100 {
        world.announce_for(&format!("A{number}"), EventKind::Preempt, &["web-1"], seconds(30));
    }
    world.poll();
    assert_eq!(world.running.len(), RUNNING_MAX);
    world.announce("Z", EventKind::Preempt, seconds(30));
    world.poll();
    assert!(world.running.values().any(|run| run.event.id == EventId::new("Z")));
}

#[test]
fn what_a_vm_has_just_booted_for_is_not_prepared_for() {
    let mut world = World::new(vec![Rule { restore: Restore::Booted, ..rule("r") }]);
    world.poll();
    world.announce("A", EventKind::Reboot, QUARTER);
    world.start("A");
    world.restart(true);
    world.poll();
    assert!(world.running.is_empty(), "the host had failed, and the VM is up again");
    // One that comes later is.
    world.announce("B", EventKind::Reboot, QUARTER);
    world.start("B");
    world.poll();
    assert_eq!(world.only_run().event.id, EventId::new("B"));
    world.wind_up();
}

#[test]
fn a_vm_that_stood_still_learns_from_the_platforms_clock_how_late_it_is() {
    let mut world = with_event(vec![rule("r")], EventKind::Reboot, seconds(100));
    // Twenty seconds for everybody but this VM.
    let frozen = seconds(20);
    world.tell(Input::Unchanged { served_at: world.platform_time() + frozen });
    world.pass(seconds(80) - RESERVE);
    assert_eq!(world.stopping.len(), 1);
}

#[test]
fn an_approval_is_sent_as_soon_as_the_platform_is_back() {
    let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    for _ in 0..6 {
        world.answer(ApprovalAnswer::Failed { reason: "down".into() });
        world.pass(seconds(15));
    }
    world.answer(ApprovalAnswer::Failed { reason: "down".into() });
    assert_eq!(world.approving, []);
    world.tell(Input::Back);
    assert_eq!(world.approving.len(), 1);
}

#[test]
fn an_eviction_that_does_not_say_when_has_no_more_time_after_a_restart() {
    let mut world = World::new(vec![rule("r")]);
    let unsaid = Event { not_before: None, ..event("A", EventKind::Preempt, &[ME], world.platform_time()) };
    world.announce_event(unsaid, seconds(30));
    world.poll_served_at(None);
    world.pass(seconds(10));
    world.restart(false);
    world.pass(seconds(5));
    assert_eq!(world.only_run().budget, seconds(15) - RESERVE);
}

#[test]
fn an_event_that_had_started_was_not_cancelled_though_nobody_approved_it() {
    let mut world =
        with_event(vec![Rule { approve: Approve::Never, ..rule("r") }], EventKind::Reboot, QUARTER);
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    world.start("A");
    world.poll();
    world.remove("A");
    world.poll();
    assert!(!world.only_run().cancelled);
}
