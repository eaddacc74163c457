//! Steps that fail, and what is undone.

use super::*;

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
    assert_eq!(world.state.events()[0].word(), "stranded");
    world.tell(Input::Retry);
    world.end(StepOutcome::Done);
    assert_eq!(world.state.events(), []);
}
