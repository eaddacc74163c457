//! Step budgets, deadlines and clock differences.

use super::*;

#[test]
fn preempt_notice_minus_reserve_is_step_budget() {
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
    world.check_cleanup();
}

/// As in a damaged journal.
#[test]
fn keep_beyond_notice_leaves_no_time_for_first_step() {
    let keeps = |name| Step { keep: Duration::MAX, ..step(name) };
    let rule = Rule { before: vec![step("drain"), keeps("stop"), keeps("copy")], ..rule("r") };
    for (step, left) in [(0, 0), (1, 0), (2, 30), (usize::MAX, 30)] {
        let left = seconds(left).saturating_sub(RESERVE);
        assert_eq!(notbefore_agent::machine::step_budget(&rule, step, seconds(30)), left, "{step}");
    }
}

#[test]
fn after_not_before_pending_steps_run_once_without_retry() {
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
    world.check_cleanup();
}

#[test]
fn late_event_is_prepared() {
    let mut world = World::new(vec![rule("r")]);
    world.announce("A", EventKind::Reboot, Duration::ZERO);
    world.pass(seconds(10));
    world.poll();
    assert_eq!(world.only_run().step.name, "drain");
    world.check_cleanup();
}

#[test]
fn preempt_without_not_before_has_30_seconds() {
    let mut world = World::new(vec![rule("r")]);
    let now = world.platform_time();
    let event = Event { not_before: None, ..event("A", EventKind::Preempt, &[ME], now) };
    world.announce_event(event, seconds(30));
    world.poll();
    assert_eq!(world.only_run().budget, seconds(30) - RESERVE);
    world.check_cleanup();
}

#[test]
fn time_left_rule_matches_when_time_comes() {
    let time_left = DurationRange { at_least: None, at_most: Some(seconds(3_600)) };
    let late = Rule { matches: Match { time_left, ..Match::default() }, ..rule("late") };
    let week = seconds(7 * 24 * 3_600);
    let mut world = with_event(vec![late], EventKind::Redeploy, week);
    assert!(world.running.is_empty() && !world.state.is_draining());
    world.pass(week - seconds(3_601));
    assert!(world.running.is_empty());
    world.pass(seconds(1));
    assert_eq!(world.only_run().step.name, "drain");
    world.check_cleanup();
}

#[test]
fn wrong_or_stepped_clock_keeps_deadline() {
    let mut world = World::new(vec![rule("r")]);
    world.step_clock(SignedDuration::from_hours(5));
    world.announce("A", EventKind::Preempt, seconds(30));
    world.poll();
    assert_eq!(world.only_run().budget, seconds(29) - RESERVE, "the platform's clock has whole seconds");
    world.step_clock(SignedDuration::from_hours(-50));
    world.pass(seconds(10));
    world.end(StepOutcome::Done);
    assert_eq!(world.only_run().budget, seconds(19) - RESERVE);
    world.check_cleanup();
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
    assert_eq!(world.only_run().step.name, "stop", "the event starts anyway");
    world.end(StepOutcome::Done);
    assert!(world.running.is_empty() && world.approving.is_empty(), "but it is not approved");
    world.check_cleanup();
}

#[test]
fn step_started_without_deadline_is_stopped_at_not_before() {
    let mut world = World::new(vec![rule("r")]);
    let without_time =
        Event { not_before: None, ..event("A", EventKind::Reboot, &[ME], world.platform_time()) };
    world.announce_event(without_time, seconds(700_000));
    world.poll_served_at(None);
    assert_eq!(world.only_run().until, None);
    world.announce("A", EventKind::Reboot, seconds(20));
    world.poll();
    world.pass(seconds(20));
    assert_eq!(world.stopping.len(), 1);
}

#[test]
fn kept_time_is_reserved_for_later_step() {
    let keeps = Step { keep: seconds(5), timeout: seconds(3), ..step("stop") };
    let rules = vec![Rule { before: vec![step("drain"), keeps], ..rule("r") }];
    let mut world = with_event(rules, EventKind::Preempt, seconds(30));
    let drain = world.only_run().budget;
    world.pass(drain);
    world.end(StepOutcome::TimedOut);
    assert_eq!((world.only_run().step.name.as_str(), world.only_run().budget), ("stop", seconds(3)));
    world.end(StepOutcome::Done);
    assert_eq!(world.approving, [], "a required step was not done");
    assert!(world.facts.iter().any(|(_, what)| matches!(what, FactKind::Withheld { .. })));
    assert!(!world.facts.iter().any(|(_, what)| *what == FactKind::Prepared));
    world.check_cleanup();
}

#[test]
fn wait_step_cut_by_deadline_is_done() {
    let waits = Step { does: StepAction::Wait { time: seconds(300) }, timeout: seconds(400), ..step("wait") };
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
fn paused_vm_uses_platform_clock() {
    let mut world = with_event(vec![rule("r")], EventKind::Reboot, seconds(100));
    // Twenty seconds on every clock but this VM's.
    let frozen = seconds(20);
    world.handle(Input::Unchanged { served_at: world.platform_time() + frozen });
    world.pass(seconds(80) - RESERVE);
    assert_eq!(world.stopping.len(), 1);
}

#[test]
fn restart_does_not_extend_implicit_notice() {
    let mut world = World::new(vec![rule("r")]);
    let without_time =
        Event { not_before: None, ..event("A", EventKind::Preempt, &[ME], world.platform_time()) };
    world.announce_event(without_time, seconds(30));
    world.poll_served_at(None);
    world.pass(seconds(10));
    world.restart(false);
    world.pass(seconds(5));
    assert_eq!(world.only_run().budget, seconds(15) - RESERVE);
}
