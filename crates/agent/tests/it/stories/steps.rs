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

fn named(name: &str) -> Step {
    Step { does: Deed::Command { argv: vec![name.into()] }, ..step(name) }
}

/// How the step that runs is written: what it is called, and what it does.
fn runs(world: &World) -> (&str, &Deed) {
    let step = &world.only_run().step;
    (&step.name, &step.does)
}

/// Has the agent read these rules, by a reload or by a restart.
fn read_anew(world: &mut World, rules: Vec<Rule>, restarts: bool) {
    match restarts {
        true => {
            world.edit(rules);
            world.restart(false);
            world.poll();
        }
        false => world.reload(rules),
    }
}

#[test]
fn a_failed_step_is_retried_as_its_rule_is_written_now() {
    let corrected = Step { does: Deed::Shell { line: "true".into() }, ..step("stop") };
    for restarts in [false, true] {
        let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
        world.end(StepOutcome::Done);
        world.end(failed());
        assert_eq!(world.state.events()[0].word(), "withheld");
        // The step is found by its name, wherever it is by now; what was put above it has yet to be done.
        let before = vec![step("drain"), step("another"), corrected.clone(), step("last")];
        read_anew(&mut world, vec![rule("first"), Rule { before, ..rule("r") }], restarts);
        assert_eq!(world.only_run().step.name, "another");
        world.end(StepOutcome::Done);
        assert_eq!(runs(&world), ("stop", &corrected.does));
        world.end(StepOutcome::Done);
        assert_eq!(world.only_run().step.name, "last");
        world.end(StepOutcome::Done);
        assert_eq!((world.state.events()[0].word(), world.approving.len()), ("ready", 1));
    }
}

#[test]
fn a_failed_step_after_the_event_is_retried_as_its_rule_is_written_now() {
    let corrected = Step { does: Deed::Shell { line: "true".into() }, ..step("start") };
    for restarts in [false, true] {
        let mut world = approved(vec![rule("r")], EventKind::Reboot);
        world.remove("A");
        world.poll();
        world.end(failed());
        assert_eq!(world.state.events()[0].word(), "stranded");
        let after = vec![corrected.clone(), step("check")];
        read_anew(&mut world, vec![Rule { after, ..rule("r") }], restarts);
        assert_eq!(runs(&world), ("start", &corrected.does));
        world.end(StepOutcome::Done);
        assert_eq!(world.only_run().step.name, "check");
        world.end(StepOutcome::Done);
        assert_eq!(world.state.events(), []);
    }
}

#[test]
fn a_step_that_waits_for_its_next_attempt_is_retried_as_its_rule_is_written_now() {
    let stubborn = Step { retries: 3, retry_delay: seconds(60), ..step("drain") };
    let mut world = with_event(
        vec![Rule { before: vec![stubborn.clone(), step("stop")], ..rule("r") }],
        EventKind::Reboot,
        QUARTER,
    );
    world.end(failed());
    let corrected = Step { does: Deed::Shell { line: "true".into() }, ..stubborn };
    world.reload(vec![Rule { before: vec![corrected.clone(), step("more")], ..rule("r") }]);
    assert!(world.running.is_empty(), "its delay is not over");
    world.pass(seconds(60));
    assert_eq!((runs(&world), world.only_run().attempt), (("drain", &corrected.does), 2));
    world.wind_up();
}

#[test]
fn a_failed_step_that_its_rule_has_no_more_is_passed_over() {
    // What has not been done is: also what came in place of the one that failed.
    let cases: [(&[&str], &[&str]); 4] = [
        (&["drain", "last"], &["last"]),
        (&["drain", "better", "last"], &["better", "last"]),
        (&["drain"], &[]),
        (&["better", "last"], &["better", "last"]),
    ];
    for (written, run) in cases {
        let steps = |names: &[&str]| names.iter().map(|name| named(name)).collect::<Vec<_>>();
        let before = steps(&["drain", "stop", "last"]);
        let mut world = with_event(vec![Rule { before, ..rule("r") }], EventKind::Reboot, QUARTER);
        world.end(StepOutcome::Done);
        world.end(failed());
        world.reload(vec![Rule { before: steps(written), ..rule("r") }]);
        assert!(told(&world, "A", &What::StepDropped { step: "stop".into(), stage: Stage::Before }));
        for name in run {
            assert_eq!(world.only_run().step.name, *name, "{written:?}");
            world.end(StepOutcome::Done);
        }
        assert_eq!(world.approving.len(), 1, "{written:?}");
    }
}

#[test]
fn a_failed_step_whose_rule_is_gone_is_retried_as_it_was() {
    for restarts in [false, true] {
        let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
        world.end(StepOutcome::Done);
        world.end(failed());
        read_anew(&mut world, vec![Rule { before: vec![step("other")], ..rule("renamed") }], restarts);
        assert_eq!(world.only_run().step, step("stop"));
        world.end(StepOutcome::Done);
        assert_eq!(world.approving.len(), 1);
    }
}

#[test]
fn a_reload_changes_nothing_for_an_event_whose_steps_go_well() {
    let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
    world.reload(vec![Rule { before: vec![step("drain"), named("stop")], ..rule("r") }]);
    world.end(StepOutcome::Done);
    assert_eq!(world.only_run().step, step("stop"));
    world.wind_up();
}
