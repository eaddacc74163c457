//! Advisories: no deadline, no approval, and a Preempt that takes over.

use super::*;

const ADVISORY: EventKind = EventKind::SpotRebalanceRecommendation;

/// One rule for advisories and Preempts.
fn shared() -> Rule {
    let kinds = vec![ADVISORY, EventKind::Preempt];
    Rule { matches: Match { kinds, advisory: true, ..Match::default() }, ..rule("spot") }
}

fn stages(world: &World) -> Vec<(&str, Stage)> {
    world.running.values().map(|run| (run.event.id.as_str(), run.stage)).collect()
}

/// Both steps are done for an advisory whose date has passed.
fn prepared(rules: Vec<Rule>) -> World {
    let mut world = with_event(rules, ADVISORY, seconds(1));
    world.pass(QUARTER);
    assert_eq!(world.only_run().until, None);
    world.end(StepOutcome::Done);
    world.end(StepOutcome::Done);
    assert!(world.state.is_draining() && world.approving.is_empty());
    world
}

#[test]
fn advisory_is_never_approved_and_undone_when_it_goes() {
    let mut world = prepared(vec![shared()]);
    world.handle(Input::Back);
    world.pass(seconds(700_000));
    assert!(world.running.is_empty() && world.approving.is_empty());
    assert_eq!(world.state.next_not_before(), None);
    world.remove("A");
    world.poll();
    assert!(has_fact(&world, "A", &FactKind::Cancelled));
    assert_eq!(stages(&world), [("A", Stage::After)]);
    world.check_cleanup();
}

#[test]
fn only_rules_that_name_it_match_an_advisory() {
    let mut world = with_event(vec![rule("all")], ADVISORY, QUARTER);
    assert!(world.running.is_empty() && !has_fact(&world, "A", &FactKind::Unmatched));
    let all = Match { advisory: true, ..Match::default() };
    world.reload(vec![Rule { matches: all, ..rule("all") }]);
    assert_eq!(stages(&world), [("A", Stage::Before)]);
}

#[test]
fn preempt_by_the_same_rule_continues_what_was_begun() {
    let mut world = prepared(vec![shared()]);
    world.remove("A");
    world.announce("B", EventKind::Preempt, seconds(30));
    world.poll();
    assert!(has_fact(&world, "B", &FactKind::TookOver { from: EventId::new("A") }));
    assert!(world.running.is_empty(), "no step twice, nothing undone");
    assert_eq!(world.approving, [EventId::new("B")]);
    world.answer(ApprovalAnswer::Accepted);
    world.remove("B");
    world.poll();
    assert_eq!(stages(&world), [("B", Stage::After)], "one undo");
    world.end(StepOutcome::Done);
    assert!(!world.state.is_draining());
    world.check_cleanup();
}

#[test]
fn preempt_bounds_the_step_that_runs() {
    let mut world = with_event(vec![shared()], ADVISORY, QUARTER);
    world.announce("B", EventKind::Preempt, seconds(30));
    world.poll();
    let run = world.only_run().id;
    world.pass(seconds(30));
    assert!(world.stopping.contains(&run), "its budget was a minute");
    world.end_run(run, StepOutcome::Stopped);
    world.check_cleanup();
}

#[test]
fn preempt_is_withheld_after_a_required_step_of_the_advisory_was_stopped() {
    let mut world = with_event(vec![shared()], ADVISORY, QUARTER);
    world.end(StepOutcome::Stopped);
    world.announce("B", EventKind::Preempt, seconds(30));
    world.poll();
    world.end(StepOutcome::Done);
    let is_withheld = |(id, fact): &(EventId, FactKind)| {
        *id == EventId::new("B") && matches!(fact, FactKind::Withheld { .. })
    };
    assert!(world.facts.iter().any(is_withheld), "no reason: {:?}", world.facts);
    assert!(world.approving.is_empty());
    world.check_approvals();
}

#[test]
fn preempt_beside_its_advisory_takes_over_too() {
    let mut world = prepared(vec![shared()]);
    world.announce("B", EventKind::Preempt, seconds(30));
    world.poll();
    assert!(world.running.is_empty());
    world.answer(ApprovalAnswer::Accepted);
    // The eviction was called off, and the advisory still holds: it is prepared again, without an undo.
    world.remove("B");
    world.poll();
    assert_eq!(stages(&world), [("A", Stage::Before)]);
    world.check_cleanup();
}

#[test]
fn nothing_is_undone_between_advisory_and_preempt_of_another_rule() {
    let advisory = Match { kinds: vec![ADVISORY], advisory: true, ..Match::default() };
    let preempt = Match { kinds: vec![EventKind::Preempt], ..Match::default() };
    let quiet = Rule { matches: preempt, before: vec![], after: vec![], drain: false, ..rule("preempt") };
    for rules in [
        vec![Rule { matches: advisory.clone(), ..rule("advisory") }, quiet],
        vec![Rule { matches: advisory, ..rule("advisory") }],
    ] {
        let mut world = prepared(rules);
        world.remove("A");
        world.announce("B", EventKind::Preempt, seconds(30));
        world.poll();
        assert!(world.running.is_empty());
        assert!(has_fact(&world, "A", &FactKind::RestoreHeld { by: EventId::new("B") }));
        world.start("B");
        world.poll();
        assert!(world.running.is_empty());
        world.remove("B");
        world.poll();
        assert_eq!(stages(&world), [("A", Stage::After)]);
        world.check_cleanup();
    }
}
