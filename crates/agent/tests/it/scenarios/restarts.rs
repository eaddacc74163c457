//! Restarts of the agent and boots of the VM.

use super::*;

#[test]
fn interrupted_step_is_rerun_or_skipped_after_restart() {
    for (on_interrupt, next) in [(OnInterrupt::Rerun, "drain"), (OnInterrupt::Skip, "stop")] {
        let drain = Step { on_interrupt, ..step("drain") };
        let mut world = with_event(
            vec![Rule { before: vec![drain, step("stop")], ..rule("r") }],
            EventKind::Reboot,
            QUARTER,
        );
        world.restart(false);
        assert!(world.running.is_empty(), "waits for a document first");
        world.poll();
        assert_eq!(world.only_run().step.name, next);
        world.check_cleanup();
    }
}

#[test]
fn restart_without_endpoint_resumes_from_journal() {
    let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
    world.restart(false);
    world.pass(seconds(5));
    assert_eq!(world.only_run().step.name, "drain");
    world.check_cleanup();
}

#[test]
fn reboot_event_is_restored_after_it_ends() {
    let mut world = approved(vec![rule("r")], EventKind::Reboot);
    world.start("A");
    world.poll();
    world.restart(true);
    world.pass(seconds(60));
    world.poll();
    assert!(world.running.is_empty(), "the event is still there");
    assert!(world.state.is_draining());
    world.remove("A");
    world.poll();
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().cancelled), ("start", false));
    world.check_cleanup();
}

#[test]
fn unseen_start_before_reboot_is_not_prepared_again() {
    let mut world = approved(vec![rule("r")], EventKind::Reboot);
    world.start("A");
    world.restart(true);
    world.pass(seconds(3_600));
    assert!(world.running.is_empty(), "no step starts before a document");
    world.poll();
    assert!(world.running.is_empty(), "it has started, and the VM has booted");
    world.remove("A");
    world.poll();
    assert_eq!(world.only_run().step.name, "start");
    assert!(!world.only_run().cancelled);
    world.check_cleanup();
}

#[test]
fn restore_booted_begins_after_boot() {
    let early = Rule { restore: Restore::Booted, ..rule("r") };
    let mut world = approved(vec![early], EventKind::Reboot);
    world.start("A");
    world.poll();
    world.restart(true);
    world.poll();
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().stage), ("start", Stage::After));
    world.end(StepOutcome::Done);
    assert!(!world.state.is_draining());
    world.poll();
    assert!(world.running.is_empty(), "once is enough");
    world.check_cleanup();
}

#[test]
fn boot_before_event_prepares_again() {
    let mut world = approved(vec![rule("r")], EventKind::Reboot);
    world.restart(true);
    world.poll();
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().stage), ("drain", Stage::Before));
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    assert!(world.approving.is_empty(), "it was approved before");
    world.check_cleanup();
}

#[test]
fn boot_without_endpoint_restores_finished_events() {
    let early = Rule { restore: Restore::Booted, ..rule("r") };
    let mut world = approved(vec![early], EventKind::Reboot);
    world.start("A");
    world.poll();
    world.restart(true);
    world.pass(seconds(5));
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().stage), ("start", Stage::After));
    world.check_cleanup();
}

#[test]
fn event_that_caused_boot_is_not_prepared() {
    let mut world = World::new(vec![Rule { restore: Restore::Booted, ..rule("r") }]);
    world.poll();
    world.announce("A", EventKind::Reboot, QUARTER);
    world.start("A");
    world.restart(true);
    world.poll();
    assert!(world.running.is_empty(), "the host had failed, and the VM is up again");
    // A later one is prepared.
    world.announce("B", EventKind::Reboot, QUARTER);
    world.start("B");
    world.poll();
    assert_eq!(world.only_run().event.id, EventId::new("B"));
    world.check_cleanup();
}
