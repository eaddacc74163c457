//! Whose an event is, by which name, and who approves it.

use super::*;

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
