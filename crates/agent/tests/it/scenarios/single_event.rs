//! One event from start to end, including contradictory documents.

use super::*;

#[test]
fn event_is_prepared_approved_and_restored() {
    let mut world = with_event(vec![rule("r")], EventKind::Freeze, QUARTER);
    assert!(world.state.is_draining());
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().stage), ("drain", Stage::Before));
    world.end(StepOutcome::Done);
    assert_eq!(world.only_run().step.name, "stop");
    assert!(world.approving.is_empty());
    world.end(StepOutcome::Done);
    assert_eq!(world.approving, [EventId::new("a")]);
    world.answer(ApprovalAnswer::Accepted);
    world.start("A");
    world.poll();
    assert!(has_fact(&world, "A", &FactKind::Started { prepared: true }));
    assert!(world.running.is_empty());
    world.remove("A");
    world.poll();
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().cancelled), ("start", false));
    assert!(world.state.is_draining(), "until the restore is done");
    world.end(StepOutcome::Done);
    assert!(has_fact(&world, "A", &FactKind::Restored { whole: true }));
    assert!(!world.state.is_draining());
    world.check_cleanup();
}

#[test]
fn cancelled_event_stops_running_step_and_restores() {
    let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
    let drain = world.only_run().id;
    world.remove("A");
    world.poll();
    assert!(world.stopping.contains(&drain));
    assert!(has_fact(&world, "A", &FactKind::Cancelled));
    world.end_run(drain, StepOutcome::Stopped);
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().cancelled), ("start", true));
    world.check_cleanup();
}

#[test]
fn refused_approval_is_retried_until_moot() {
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
    world.check_cleanup();
}

#[test]
fn reappearing_event_is_prepared_again() {
    let mut world = approved(vec![rule("r")], EventKind::Freeze);
    world.remove("A");
    world.poll();
    let start = world.only_run().id;
    world.announce("A", EventKind::Freeze, QUARTER);
    world.poll();
    assert!(world.stopping.contains(&start));
    world.end_run(start, StepOutcome::Stopped);
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().stage), ("drain", Stage::Before));
    world.check_cleanup();
}

#[test]
fn retracted_start_is_ignored() {
    let mut world = approved(vec![rule("r")], EventKind::Reboot);
    world.start("A");
    world.poll();
    world.revert_to_scheduled("A", QUARTER);
    world.poll();
    world.poll();
    let backs = world.facts.iter().filter(|(_, what)| *what == FactKind::WentBack).count();
    assert_eq!(backs, 1, "reported once");
    assert!(world.running.is_empty() && world.approving.is_empty());
    world.check_cleanup();
}

#[test]
fn already_started_event_is_prepared_without_approval() {
    let mut world = World::new(vec![rule("r")]);
    world.announce("A", EventKind::Reboot, QUARTER);
    world.start("A");
    world.poll();
    assert_eq!(world.only_run().budget, seconds(60));
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    assert!(world.approving.is_empty());
    world.check_cleanup();
}

#[test]
fn kinds_missing_from_older_version_are_not_gone() {
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
    let kinds: Vec<_> = world.state.events().iter().map(|handled| handled.is_listed()).collect();
    assert_eq!(kinds, [true, false], "the Reboot is gone, the version does not cover Terminate");
    world.remove("A");
    world.poll();
    world.end(StepOutcome::Done);
    assert_eq!(world.state.events().len(), 1, "now it is gone");
}

#[test]
fn moot_approval_is_resent_if_event_still_scheduled() {
    let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    world.answer(ApprovalAnswer::Moot);
    world.poll();
    assert_eq!(world.approving.len(), 1);
}

#[test]
fn approval_is_resent_when_platform_is_back() {
    let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    for _ in 0..6 {
        world.answer(ApprovalAnswer::Failed { reason: "down".into() });
        world.pass(seconds(15));
    }
    world.answer(ApprovalAnswer::Failed { reason: "down".into() });
    assert_eq!(world.approving, []);
    world.handle(Input::Back);
    assert_eq!(world.approving.len(), 1);
}

#[test]
fn unapproved_started_event_is_not_cancelled() {
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

fn unmatched(world: &World) -> usize {
    world.facts.iter().filter(|(_, what)| *what == FactKind::Unmatched).count()
}

#[test]
fn event_without_rule_is_reported_once_and_after_reload() {
    let freeze =
        Rule { matches: Match { kinds: vec![EventKind::Freeze], ..Match::default() }, ..rule("freeze") };
    let mut world = with_event(vec![freeze.clone()], EventKind::Reboot, QUARTER);
    assert_eq!(unmatched(&world), 1);
    world.pass(seconds(60));
    world.poll();
    world.restart(false);
    world.poll();
    assert_eq!(unmatched(&world), 1);
    world.reload(vec![freeze]);
    assert_eq!(unmatched(&world), 2, "the reload did not help");
    world.reload(vec![rule("all")]);
    assert_eq!((unmatched(&world), world.running.len()), (2, 1));
    world.check_cleanup();
}

#[test]
fn event_that_a_rule_matches_later_or_of_other_vms_is_not_unmatched() {
    let within =
        |at_least, at_most| Match { time_left: DurationRange { at_least, at_most }, ..Match::default() };
    let late = Rule { matches: within(None, Some(seconds(60))), ..rule("late") };
    let world = with_event(vec![late], EventKind::Reboot, QUARTER);
    assert_eq!((unmatched(&world), world.running.len()), (0, 0));
    let early = Rule { matches: within(Some(QUARTER + seconds(60)), None), ..rule("early") };
    let mut world = with_event(vec![early], EventKind::Reboot, QUARTER);
    assert_eq!(unmatched(&world), 1, "its time has passed");
    world.announce_for("B", EventKind::Reboot, &["web-1"], QUARTER);
    world.poll();
    assert_eq!(unmatched(&world), 1, "of other VMs");
}
