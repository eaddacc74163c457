//! Failing steps, retries after a reload, and restores.

use super::*;

#[test]
fn rule_without_before_steps_runs_after_steps() {
    let nothing_before = Rule { before: vec![], ..rule("r") };
    let mut world = with_event(vec![nothing_before], EventKind::Freeze, QUARTER);
    assert_eq!(world.approving.len(), 1, "no steps before: done at once");
    world.answer(ApprovalAnswer::Accepted);
    world.remove("A");
    world.poll();
    assert_eq!(world.only_run().step.name, "start");
    world.check_cleanup();
}

#[test]
fn event_without_started_steps_needs_no_restore() {
    let rules = vec![Rule { before: vec![step("drain")], ..rule("r") }];
    let mut world = World::new(rules);
    // At the limit of running steps; one more waits.
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
    world.check_cleanup();
}

#[test]
fn failed_step_is_retried_then_withholds_approval() {
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
    assert!(has_fact(
        &world,
        "A",
        &FactKind::Withheld { reason: "the step `drain` failed: exit code 1".into() }
    ));
    assert!(world.state.is_draining());
    world.start("A");
    world.poll();
    assert!(has_fact(&world, "A", &FactKind::Started { prepared: false }));
    world.remove("A");
    world.poll();
    assert_eq!(world.only_run().step.name, "start", "a failed preparation is also undone");
    world.check_cleanup();
}

#[test]
fn go_on_failure_does_not_withhold() {
    let optional = Step { on_failure: OnFailure::GoOn, ..step("drain") };
    let mut world = with_event(
        vec![Rule { before: vec![optional, step("stop")], ..rule("r") }],
        EventKind::Reboot,
        QUARTER,
    );
    world.end(failed());
    world.end(StepOutcome::Done);
    assert_eq!(world.approving.len(), 1);
    world.check_cleanup();
}

#[test]
fn timed_out_step_ends_list() {
    let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
    world.pass(seconds(60));
    world.end(StepOutcome::TimedOut);
    assert!(world.running.is_empty(), "the step's own timeout, not the event's");
}

#[test]
fn reload_retries_failed_step() {
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
            false => world.handle(Input::Retry),
        }
        assert_eq!(world.only_run().step.name, "stop", "from the step that failed on");
        world.end(StepOutcome::Done);
        assert_eq!(world.approving.len(), 1);
    }
}

#[test]
fn stranded_vm_stays_drained_until_reload() {
    let mut world = approved(vec![rule("r")], EventKind::Reboot);
    world.remove("A");
    world.poll();
    world.end(failed());
    world.pass(seconds(600));
    assert!(world.running.is_empty() && world.state.is_draining());
    assert_eq!(world.state.events()[0].phase_name(), "stranded");
    world.handle(Input::Retry);
    world.end(StepOutcome::Done);
    assert_eq!(world.state.events(), []);
}

#[test]
fn stopped_step_of_a_restore_strands_the_vm() {
    let mut world = approved(vec![rule("r")], EventKind::Reboot);
    world.remove("A");
    world.poll();
    world.end(StepOutcome::Stopped);
    assert!(world.state.events()[0].is_stranded() && world.state.events()[0].can_retry());
    world.check_cleanup();
}

fn named(name: &str) -> Step {
    Step { does: StepAction::Command { argv: vec![name.into()] }, ..step(name) }
}

/// Name and action of the running step, as configured.
fn runs(world: &World) -> (&str, &StepAction) {
    let step = &world.only_run().step;
    (&step.name, &step.does)
}

/// Loads these rules, by a reload or by a restart.
fn load_rules(world: &mut World, rules: Vec<Rule>, restarts: bool) {
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
fn failed_step_is_retried_with_reloaded_rule() {
    let corrected = Step { does: StepAction::Shell { line: "true".into() }, ..step("stop") };
    for restarts in [false, true] {
        let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
        world.end(StepOutcome::Done);
        world.end(failed());
        assert_eq!(world.state.events()[0].phase_name(), "withheld");
        // The step is found by name at its new position; steps inserted above it run first.
        let before = vec![step("drain"), step("another"), corrected.clone(), step("last")];
        load_rules(&mut world, vec![rule("first"), Rule { before, ..rule("r") }], restarts);
        assert_eq!(world.only_run().step.name, "another");
        world.end(StepOutcome::Done);
        assert_eq!(runs(&world), ("stop", &corrected.does));
        world.end(StepOutcome::Done);
        assert_eq!(world.only_run().step.name, "last");
        world.end(StepOutcome::Done);
        assert_eq!((world.state.events()[0].phase_name(), world.approving.len()), ("ready", 1));
    }
}

#[test]
fn failed_after_step_is_retried_with_reloaded_rule() {
    let corrected = Step { does: StepAction::Shell { line: "true".into() }, ..step("start") };
    for restarts in [false, true] {
        let mut world = approved(vec![rule("r")], EventKind::Reboot);
        world.remove("A");
        world.poll();
        world.end(failed());
        assert_eq!(world.state.events()[0].phase_name(), "stranded");
        let after = vec![corrected.clone(), step("check")];
        load_rules(&mut world, vec![Rule { after, ..rule("r") }], restarts);
        assert_eq!(runs(&world), ("start", &corrected.does));
        world.end(StepOutcome::Done);
        assert_eq!(world.only_run().step.name, "check");
        world.end(StepOutcome::Done);
        assert_eq!(world.state.events(), []);
    }
}

#[test]
fn waiting_retry_uses_reloaded_rule() {
    let stubborn = Step { retries: 3, retry_delay: seconds(60), ..step("drain") };
    let mut world = with_event(
        vec![Rule { before: vec![stubborn.clone(), step("stop")], ..rule("r") }],
        EventKind::Reboot,
        QUARTER,
    );
    world.end(failed());
    let corrected = Step { does: StepAction::Shell { line: "true".into() }, ..stubborn };
    world.reload(vec![Rule { before: vec![corrected.clone(), step("more")], ..rule("r") }]);
    assert!(world.running.is_empty(), "its delay is not over");
    world.pass(seconds(60));
    assert_eq!((runs(&world), world.only_run().attempt), (("drain", &corrected.does), 2));
    world.check_cleanup();
}

#[test]
fn removed_failed_step_is_skipped() {
    // Steps not done yet run, including a replacement of the failed one.
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
        assert!(has_fact(&world, "A", &FactKind::StepDropped { step: "stop".into(), stage: Stage::Before }));
        for name in run {
            assert_eq!(world.only_run().step.name, *name, "{written:?}");
            world.end(StepOutcome::Done);
        }
        assert_eq!(world.approving.len(), 1, "{written:?}");
    }
}

#[test]
fn failed_step_of_removed_rule_is_retried_unchanged() {
    for restarts in [false, true] {
        let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
        world.end(StepOutcome::Done);
        world.end(failed());
        load_rules(&mut world, vec![Rule { before: vec![step("other")], ..rule("renamed") }], restarts);
        assert_eq!(world.only_run().step, step("stop"));
        world.end(StepOutcome::Done);
        assert_eq!(world.approving.len(), 1);
    }
}

#[test]
fn failed_step_is_not_retried_if_its_rule_no_longer_matches() {
    let unmatched = || {
        let matches = Match { kinds: vec![EventKind::Freeze], ..rule("r").matches };
        Rule { matches, ..rule("r") }
    };
    for restarts in [false, true] {
        // What was done is undone; then another rule may match.
        let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
        world.end(StepOutcome::Done);
        world.end(failed());
        let other = Rule { before: vec![step("other")], ..rule("other") };
        load_rules(&mut world, vec![unmatched(), other], restarts);
        assert!(has_fact(&world, "A", &FactKind::RuleUnmatched));
        assert_eq!(world.only_run().stage, Stage::After);
        world.end(StepOutcome::Done);
        assert_eq!(world.only_run().step.name, "other");
        world.check_cleanup();

        // A retry that waits for its delay does not run either.
        let patient = Step { retries: 3, retry_delay: seconds(60), ..step("drain") };
        let rules = vec![Rule { before: vec![patient], after: vec![], ..rule("r") }];
        let mut world = with_event(rules, EventKind::Reboot, QUARTER);
        world.end(failed());
        load_rules(&mut world, vec![unmatched()], restarts);
        world.pass(seconds(120));
        assert!(world.running.is_empty() && world.state.events()[0].rule().is_none());

        // Another event keeps the VM out of service: what was done is undone when that event is over.
        let other =
            Rule { matches: Match { kinds: vec![EventKind::Redeploy], ..rule("b").matches }, ..rule("b") };
        let mut world = with_event(vec![other.clone(), rule("r")], EventKind::Reboot, QUARTER);
        world.end(StepOutcome::Done);
        world.end(failed());
        world.announce("B", EventKind::Redeploy, QUARTER);
        world.poll();
        world.end(StepOutcome::Done);
        world.end(StepOutcome::Done);
        load_rules(&mut world, vec![other, unmatched(), rule("later")], restarts);
        assert!(world.running.is_empty() && world.state.events()[0].is_waiting_for_another());
        world.check_approvals();
        world.remove("B");
        world.poll();
        assert_eq!((world.only_run().event.id.as_str(), world.only_run().stage), ("B", Stage::After));
        world.end(StepOutcome::Done);
        assert_eq!((world.only_run().event.id.as_str(), world.only_run().stage), ("A", Stage::After));
        world.end(StepOutcome::Done);
        assert_eq!(world.only_run().rule, "later");
        world.check_cleanup();
    }
}

#[test]
fn reload_does_not_affect_events_without_failures() {
    let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
    world.reload(vec![Rule { before: vec![step("drain"), named("stop")], ..rule("r") }]);
    world.end(StepOutcome::Done);
    assert_eq!(world.only_run().step, step("stop"));
    world.check_cleanup();
}

#[test]
fn retry_of_one_event_leaves_others() {
    let mut world = World::new(vec![rule("r")]);
    for id in ["A", "B"] {
        world.announce(id, EventKind::Reboot, QUARTER);
    }
    world.poll();
    for run in world.running.keys().copied().collect::<Vec<_>>() {
        world.end_run(run, failed());
    }
    assert!(
        world.state.events().iter().all(|handled| handled.phase_name() == "withheld" && handled.can_retry())
    );
    world.handle(Input::RetryEvent { event: EventId::new("B") });
    assert_eq!(world.only_run().event.id, EventId::new("B"));
    assert!(!world.state.events()[1].can_retry(), "it runs");
    world.handle(Input::RetryEvent { event: EventId::new("C") });
    world.check_cleanup();
}

#[test]
fn retry_does_not_wait_for_the_next_attempt() {
    let stubborn = Step { retries: 1, retry_delay: seconds(60), ..step("drain") };
    let mut world =
        with_event(vec![Rule { before: vec![stubborn], ..rule("r") }], EventKind::Reboot, QUARTER);
    let event = || EventId::new("A");
    world.handle(Input::RetryEvent { event: event() });
    assert_eq!(world.running.len(), 1, "nothing has failed");
    world.end(failed());
    assert!(world.running.is_empty() && world.state.events()[0].can_retry());
    world.handle(Input::RetryEvent { event: event() });
    assert_eq!(world.only_run().attempt, 2);
    world.end(StepOutcome::Done);
    world.answer(ApprovalAnswer::Refused { reason: "no".into() });
    assert!(world.approving.is_empty() && world.state.events()[0].can_retry());
    world.handle(Input::RetryEvent { event: event() });
    assert_eq!(world.approving.len(), 1, "the approval is sent again");
    world.check_cleanup();
}

#[test]
fn started_event_is_not_prepared_by_a_retry() {
    let mut world = with_event(vec![rule("r")], EventKind::Reboot, QUARTER);
    world.end(failed());
    world.start("A");
    world.poll();
    assert!(!world.state.events()[0].can_retry());
    world.handle(Input::RetryEvent { event: EventId::new("A") });
    assert!(world.running.is_empty());
    world.remove("A");
    world.poll();
    world.end(failed());
    assert!(world.state.events()[0].is_stranded() && world.state.events()[0].can_retry());
    world.handle(Input::RetryEvent { event: EventId::new("A") });
    assert_eq!(world.only_run().step.name, "start");
    world.check_cleanup();
}
