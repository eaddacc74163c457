//! Several events at once: independent approvals, restores in reverse order.

use super::*;

#[test]
fn restore_waits_for_second_draining_event() {
    let mut world = approved(vec![rule("r")], EventKind::Freeze);
    world.announce("B", EventKind::Reboot, QUARTER);
    world.poll();
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    assert_eq!(world.approving, [EventId::new("B")], "each for itself");
    world.remove("A");
    world.poll();
    assert!(world.running.is_empty());
    assert!(has_fact(&world, "A", &FactKind::RestoreHeld { by: EventId::new("B") }));
    world.remove("B");
    world.poll();
    assert_eq!(world.only_run().event.id, EventId::new("B"), "restored in reverse order");
    world.end(StepOutcome::Done);
    assert_eq!(world.only_run().event.id, EventId::new("A"));
    world.check_cleanup();
}

#[test]
fn new_event_preempts_restore() {
    let mut world = approved(vec![rule("r")], EventKind::Freeze);
    world.remove("A");
    world.poll();
    let start = world.only_run().id;
    world.announce("B", EventKind::Preempt, seconds(30));
    world.poll();
    assert!(world.stopping.contains(&start));
    assert_eq!(world.running.len(), 1, "no step starts before that has ended");
    world.end_run(start, StepOutcome::Stopped);
    assert_eq!((world.only_run().event.id.as_str(), world.only_run().stage), ("B", Stage::Before));
    world.remove("B");
    world.poll();
    world.end(StepOutcome::Stopped);
    assert_eq!((world.only_run().event.id.as_str(), world.only_run().stage), ("B", Stage::After));
    world.end(StepOutcome::Done);
    assert_eq!((world.only_run().event.id.as_str(), world.only_run().stage), ("A", Stage::After));
    world.check_cleanup();
}

#[test]
fn concurrent_steps_are_limited() {
    let mut world = World::new(vec![Rule { before: vec![step("drain")], ..rule("r") }]);
    for number in 0..100 {
        world.announce(&number.to_string(), EventKind::Freeze, QUARTER);
    }
    world.poll();
    assert_eq!(world.running.len(), RUNNING_MAX);
    let first = *world.running.keys().next().unwrap();
    world.end_run(first, StepOutcome::Done);
    assert_eq!(world.running.len(), RUNNING_MAX);
    world.check_cleanup();
}

#[test]
fn own_event_is_not_delayed_by_other_vms_events() {
    let others = Match { resources: ResourceMatch::Others, ..Match::default() };
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
