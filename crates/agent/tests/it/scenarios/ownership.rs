//! Ownership of events, the VM's name, and approval by the leader.

use super::*;

#[test]
fn event_reassigned_to_other_vm_is_restored() {
    let mut world = World::new(vec![rule("r")]);
    world.announce_for("A", EventKind::Reboot, &[ME, "web-1"], QUARTER);
    world.poll();
    world.end(StepOutcome::Done);
    world.announce_for("A", EventKind::Reboot, &["web-1"], QUARTER);
    world.poll();
    assert!(world.state.is_draining(), "until it is restored");
    world.end(StepOutcome::Stopped);
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().cancelled), ("start", true));
    world.end(StepOutcome::Done);
    assert!(!world.state.is_draining());
    world.announce_for("A", EventKind::Reboot, &[ME], QUARTER);
    world.poll();
    assert_eq!(world.only_run().step.name, "drain", "prepared again when it returns");
    world.check_cleanup();
}

#[test]
fn new_leader_approves() {
    let leader = Rule { approve: Approve::Leader, before: vec![], after: vec![], ..rule("r") };
    let mut world = World::new(vec![leader]);
    world.announce_for("A", EventKind::Reboot, &["web-1", ME], QUARTER);
    world.poll();
    assert!(world.approving.is_empty());
    world.announce_for("A", EventKind::Reboot, &[ME], QUARTER);
    world.poll();
    assert_eq!(world.approving.len(), 1);
    world.check_cleanup();
}

#[test]
fn leader_is_first_resource() {
    let leader = Rule { approve: Approve::Leader, before: vec![], ..rule("r") };
    let mut world = World::new(vec![leader]);
    world.announce_for("A", EventKind::Reboot, &["web-1", ME], QUARTER);
    world.announce_for("B", EventKind::Reboot, &[ME, "web-1"], QUARTER);
    world.poll();
    assert_eq!(world.approving, [EventId::new("B")]);
    world.check_cleanup();
}

#[test]
fn event_of_other_vms_is_ignored() {
    let mut world = World::new(vec![rule("r")]);
    world.announce_for("A", EventKind::Reboot, &["web-1"], QUARTER);
    world.poll();
    assert!(world.running.is_empty() && world.approving.is_empty() && !world.state.is_draining());
    world.check_cleanup();
}

#[test]
fn reassigned_event_is_not_approved() {
    let mut world = with_event(vec![Rule { before: vec![], ..rule("r") }], EventKind::Reboot, QUARTER);
    world.answer(ApprovalAnswer::Failed { reason: "connection refused".into() });
    world.announce_for("A", EventKind::Reboot, &["web-1"], QUARTER);
    world.poll();
    world.pass(seconds(60));
    assert!(world.approving.is_empty());
    world.check_cleanup();
}

#[test]
fn unconfirmed_name_prepares_without_approval() {
    let mut world = World::new(vec![rule("all")]);
    world.set_name(ME, false);
    world.announce("A", EventKind::Reboot, seconds(900));
    world.poll();
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    world.pass(seconds(60));
    assert_eq!(world.approving, [], "it may be another VM's");
    world.set_name(ME, true);
    assert_eq!(world.approving.len(), 1);
}

#[test]
fn renamed_vm_restores_and_does_not_approve() {
    let mut world = World::new(vec![rule("all")]);
    world.set_name(ME, false);
    world.announce("A", EventKind::Reboot, seconds(900));
    world.poll();
    world.end(StepOutcome::Done);
    world.set_name("web-3", true);
    world.end(StepOutcome::Done);
    assert_eq!((world.only_run().stage, &world.approving[..]), (Stage::After, &[][..]));
    world.check_cleanup();
}

#[test]
fn reappearing_own_event_gets_matching_rule() {
    let others = Match { resources: ResourceMatch::Others, ..Match::default() };
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
fn reassigned_own_event_is_approved_by_any_rule() {
    let any = Match { resources: ResourceMatch::Any, ..Match::default() };
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
fn reassigned_own_event_gets_matching_rule() {
    let others = Match { resources: ResourceMatch::Others, ..Match::default() };
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
    world.check_cleanup();
}
