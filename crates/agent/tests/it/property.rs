//! Property test of the state machine. Random inputs: events that appear, start, vanish, return and contradict
//! themselves; steps with every outcome; lost answers; clock steps; restarts and boots at any time; failed journal
//! writes. [`World`](crate::world::World) checks every action.

use jiff::SignedDuration;
use notbefore_agent::machine::io::{ApprovalAnswer, Input, StepOutcome};
use notbefore_client::document::{EventId, EventKind, EventSource, EventsVersion};
use proptest::prelude::*;

use crate::world::{ME, World, event, rules_as_edited, rules_of_every_sort, seconds};

const IDS: [&str; 3] = ["A", "B", "C"];

#[derive(Clone, Debug)]
enum Op {
    Announce {
        id: usize,
        kind: EventKind,
        whose: usize,
        notice: u64,
        duration: Option<u64>,
        user: bool,
    },
    Start(usize),
    GoBack(usize),
    Remove(usize),
    Poll {
        tells_time: bool,
    },
    /// Only an older api-version is served: it does not list every type of event.
    PollOld,
    /// The VM's name changes or is confirmed.
    Named {
        other: bool,
        sure: bool,
    },
    /// A poll without changes; only the time is new.
    Unchanged,
    /// The platform answers again after a silence.
    Back,
    /// The operator asks to retry an event.
    Retry(usize),
    /// The rules are edited, and loaded by a reload or by the next agent.
    Edit {
        edit: usize,
        reload: bool,
    },
    End {
        which: usize,
        outcome: StepOutcome,
    },
    Answer(ApprovalAnswer),
    Pass(u64),
    StepClock(i64),
    Restart {
        boots: bool,
    },
    /// Journal writes succeed from here on, or fail; a restart resumes from the last write.
    Disk {
        full: bool,
    },
}

fn kind() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        proptest::sample::select(EventKind::KNOWN.to_vec()),
        Just(EventKind::Other("Teleport".into())),
    ]
}

fn outcome() -> impl Strategy<Value = StepOutcome> {
    prop_oneof![
        5 => Just(StepOutcome::Done),
        1 => Just(StepOutcome::Failed { reason: "exit code 1".into() }),
        1 => Just(StepOutcome::TimedOut),
        1 => Just(StepOutcome::Stopped),
    ]
}

fn answer() -> impl Strategy<Value = ApprovalAnswer> {
    prop_oneof![
        3 => Just(ApprovalAnswer::Accepted),
        1 => Just(ApprovalAnswer::Moot),
        1 => Just(ApprovalAnswer::Refused { reason: "no".into() }),
        1 => Just(ApprovalAnswer::Failed { reason: "down".into() }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let id = 0..IDS.len();
    let notice = prop_oneof![Just(0_u64), Just(1), Just(30), Just(900), Just(604_800)];
    let duration = prop_oneof![Just(None), Just(Some(0_u64)), Just(Some(5)), Just(Some(30))];
    prop_oneof![
        4 => (id.clone(), kind(), 0..4_usize, notice, duration, any::<bool>()).prop_map(
            |(id, kind, whose, notice, duration, user)| Op::Announce { id, kind, whose, notice, duration, user }
        ),
        3 => id.clone().prop_map(Op::Start),
        1 => id.clone().prop_map(Op::GoBack),
        3 => id.prop_map(Op::Remove),
        8 => any::<bool>().prop_map(|tells_time| Op::Poll { tells_time }),
        1 => Just(Op::PollOld),
        1 => any::<(bool, bool)>().prop_map(|(other, sure)| Op::Named { other, sure }),
        1 => Just(Op::Unchanged),
        1 => Just(Op::Back),
        1 => (0..IDS.len()).prop_map(Op::Retry),
        1 => (0..3_usize, any::<bool>()).prop_map(|(edit, reload)| Op::Edit { edit, reload }),
        10 => (0..3_usize, outcome()).prop_map(|(which, outcome)| Op::End { which, outcome }),
        4 => answer().prop_map(Op::Answer),
        4 => prop_oneof![0..3_u64, 3..100_u64, 100..700_000_u64].prop_map(Op::Pass),
        1 => (-100_000..100_000_i64).prop_map(Op::StepClock),
        2 => any::<bool>().prop_map(|boots| Op::Restart { boots }),
        1 => any::<bool>().prop_map(|full| Op::Disk { full }),
    ]
}

fn play(ops: Vec<Op>) {
    let mut world = World::new(rules_of_every_sort());
    // With a full disk: the world as of the last journal write.
    let mut written: Option<World> = None;
    let mut next_rules = None;
    for op in ops {
        match op {
            Op::Announce { id, kind, whose, notice, duration, user } => {
                let resources: &[&str] = [&[ME][..], &["web-1"], &[ME, "web-1"], &["web-1", ME]][whose];
                let mut event = event(IDS[id], kind, resources, world.platform_time() + seconds(notice));
                event.duration_seconds = duration;
                event.source = user.then_some(EventSource::User);
                world.announce_event(event, seconds(notice));
            }
            Op::Start(id) => world.start(IDS[id]),
            Op::GoBack(id) => world.revert_to_scheduled(IDS[id], seconds(900)),
            Op::Remove(id) => world.remove(IDS[id]),
            Op::Poll { tells_time: true } => world.poll(),
            Op::Poll { tells_time: false } => world.poll_served_at(None),
            Op::PollOld => world.poll_at(EventsVersion::V2017_03_01),
            Op::Named { other, sure } => world.set_name(if other { "web-1" } else { ME }, sure),
            Op::Unchanged => world.handle(Input::Unchanged { served_at: world.platform_second() }),
            Op::Back => world.handle(Input::Back),
            Op::Retry(id) => world.handle(Input::RetryEvent { event: EventId::new(IDS[id]) }),
            Op::Edit { edit, reload: true } => world.reload(rules_as_edited(edit)),
            Op::Edit { edit, reload: false } => next_rules = Some(rules_as_edited(edit)),
            Op::End { which, outcome } => {
                if let Some(run) = world.running.keys().nth(which).copied() {
                    world.end_run(run, outcome);
                }
            }
            Op::Answer(answer) => world.answer(answer),
            Op::Pass(time) => world.pass(seconds(time)),
            Op::StepClock(by) => world.step_clock(SignedDuration::from_secs(by)),
            Op::Disk { full } => written = full.then(|| world.clone()),
            Op::Restart { boots } => {
                if let Some(written) = &written {
                    world.restore_journal_of(written);
                }
                if let Some(rules) = next_rules.take() {
                    world.edit(rules);
                }
                world.restart(boots);
            }
        }
    }
    world.check_approvals();
    world.check_cleanup();
}

proptest! {
    // A failure is printed in shrunk form and becomes a named scenario; a seed would not be readable.
    #![proptest_config(ProptestConfig {
        cases: 5_000,
        max_shrink_iters: 100_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn invariants_hold_for_random_histories(ops in proptest::collection::vec(op(), 0..60)) {
        play(ops);
    }
}
