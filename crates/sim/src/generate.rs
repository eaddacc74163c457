//! Property-based generation of histories from a seed with `proptest`, which also shrinks failing ones.
//!
//! The weights make histories eventful: a fleet comes first, commits mostly succeed, and faults, crashes and a clock
//! that is set back are frequent enough to coincide within one history.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

use crate::conformance::Violation;
use crate::history::{CommandEnd, History, ReportedOutcome, RequestKind, Setup, Spec, Step, When};
use crate::world::{Stats, play};

/// A failing history, shrunk, and its violation.
#[derive(Debug)]
pub struct Failure {
    pub history: History,
    pub violation: Violation,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}\n", self.violation)?;
        writeln!(f, "{}", self.history.to_lines())?;
        writeln!(f, "{} steps. Save these lines to a file and replay them with", self.history.steps.len())?;
        write!(f, "  NOTBEFORE_REPLAY=FILE cargo test -p notbefore-sim --test it replay -- --nocapture")
    }
}

/// Plays `cases` histories of one node from `seed`; returns their total statistics, or the first failure.
pub fn search(seed: u64, cases: u32) -> Result<Stats, Box<Failure>> {
    search_among(&histories(), seed, cases)
}

/// Like [`search`], with histories of two or three nodes.
pub fn search_clusters(seed: u64, cases: u32) -> Result<Stats, Box<Failure>> {
    search_among(&cluster_histories(), seed, cases)
}

fn search_among(
    histories: &impl Strategy<Value = History>,
    seed: u64,
    cases: u32,
) -> Result<Stats, Box<Failure>> {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 4_000, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let sum = std::cell::Cell::new(Stats::default());
    let outcome = runner.run(histories, |history| match play(&history) {
        Ok(stats) => {
            sum.set(sum.get() + stats);
            Ok(())
        }
        Err(violation) => Err(TestCaseError::fail(violation.to_string())),
    });
    match outcome {
        Ok(()) => Ok(sum.get()),
        Err(TestError::Fail(reason, history)) => {
            let unsteady = || Violation {
                number: None,
                words: "a history has the same result each time",
                detail: reason.to_string(),
            };
            let history = shortened(history);
            let violation = play(&history).err().unwrap_or_else(unsteady);
            Err(Box::new(Failure { history, violation }))
        }
        Err(TestError::Abort(reason)) => Err(Box::new(Failure {
            history: History::default(),
            violation: Violation {
                number: None,
                words: "histories can be generated",
                detail: reason.to_string(),
            },
        })),
    }
}

/// Removes every step, and every VM of a step, without which the history still fails.
pub fn shortened(mut history: History) -> History {
    let words = |history: &History| play(history).err().map(|violation| violation.words);
    let wrong = words(&history);
    loop {
        let before = history.clone();
        for index in (0..history.steps.len()).rev() {
            let mut without = history.clone();
            without.steps.remove(index);
            if words(&without) == wrong {
                history = without;
                continue;
            }
            while let Some(smaller) =
                smaller(&history, index).into_iter().find(|smaller| words(smaller) == wrong)
            {
                history = smaller;
            }
        }
        if history == before {
            return history;
        }
    }
}

/// The histories with one VM or event less in one step.
fn smaller(history: &History, index: usize) -> Vec<History> {
    let without = |nth| {
        let mut history = history.clone();
        let Step::Request { what, .. } = &mut history.steps[index] else { return None };
        let left = if let RequestKind::PutScope { vms, .. } = what {
            (nth < vms.len()).then(|| _ = vms.remove(nth))
        } else if let RequestKind::Schedule { vms: list, .. }
        | RequestKind::GuestApprove { events: list, .. } = what
        {
            (nth < list.len()).then(|| _ = list.remove(nth))
        } else {
            None
        };
        left.map(|()| history)
    };
    (0..).map_while(without).collect()
}

/// The subject of most requests in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    All,
    /// Hosts with VMs in several scopes, which are frozen or rebooted together.
    Hosts,
}

/// The strategy for all histories.
pub fn histories() -> impl Strategy<Value = History> {
    let of = |about| {
        let scopes = if about == About::Hosts { 3..6 } else { 0..6 };
        let steps = (vec(fleet(about), scopes), vec(step(about), 1..80)).prop_map(|(fleet, rest)| {
            let put = |what| Step::Request { what, key: false, revision: None, at: None };
            let first = fleet.into_iter().map(put).chain([Step::Settle]);
            first.chain(rest).collect()
        });
        (setup(), steps).prop_map(|(setup, steps)| History { setup, steps })
    };
    prop_oneof![2 => of(About::All), 1 => of(About::Hosts)]
}

/// The strategy for histories of clusters. Notice is short, since every second of a cluster is simulated.
pub fn cluster_histories() -> impl Strategy<Value = History> {
    let of = |about| {
        let scopes = if about == About::Hosts { 3..6 } else { 1..6 };
        (vec(fleet(about), scopes), vec(cluster_step(about), 1..120)).prop_map(|(fleet, rest)| {
            let put = |what| Step::Request { what, key: false, revision: None, at: None };
            let first = fleet.into_iter().map(put).chain([Step::Settle]);
            first.chain(rest).collect::<Vec<_>>()
        })
    };
    let steps = prop_oneof![3 => of(About::All), 1 => of(About::Hosts)];
    let scale = prop_oneof![3 => Just(1), 1 => Just(10)];
    let nodes = prop_oneof![1 => Just(2), 3 => Just(3)];
    let split_at = option::weighted(0.3, 4u8..8);
    (setup(), scale, nodes, split_at, steps).prop_map(|(setup, scale_permille, nodes, split_at, steps)| {
        let setup = Setup { scale_permille, nodes, split_at, ..setup };
        History { setup, steps }
    })
}

fn cluster_step(about: About) -> impl Strategy<Value = Step> {
    let how = prop_oneof![
        8 => Just(ReportedOutcome::Actual),
        1 => Just(ReportedOutcome::Unavailable),
        2 => Just(ReportedOutcome::UnknownLanded),
        2 => Just(ReportedOutcome::UnknownLost),
    ];
    let count = || 1u8..5;
    let usual = prop_oneof![
        16 => (what(about), any::<bool>(), option::weighted(0.05, any::<bool>()), option::weighted(0.4, 0u8..3))
            .prop_map(|(what, key, revision, at)| Step::Request { what, key, revision, at }),
        2 => (0u8..3, prop::bool::weighted(0.2), option::weighted(0.4, 0u8..3))
            .prop_map(|(which, other, at)| Step::Retry { which, other, at }),
        2 => (0u8..4, option::weighted(0.6, 0u8..3)).prop_map(|(scope, at)| Step::Polled { scope, at }),
        6 => prop_oneof![3 => 0i64..1_500, 2 => 1_500i64..6_000, 1 => 6_000i64..10_000].prop_map(|ms| Step::Advance { ms }),
        4 => prop_oneof![3 => Just(0i64), 1 => 1i64..3_000].prop_map(|plus_ms| Step::ToDue { plus_ms }),
        3 => any::<u8>().prop_map(|which| Step::Apply { which }),
        10 => (any::<u8>(), how).prop_map(|(which, how)| Step::Deliver { which, how }),
        4 => (any::<u8>(), ends()).prop_map(|(which, how)| Step::Ran { which, how }),
        1 => (any::<u8>(), ends()).prop_map(|(which, how)| Step::Late { which, how }),
        6 => Just(Step::Settle),
        // Deletions, for watches that lose them.
        3 => any::<u8>().prop_map(|vm| Step::Request { what: RequestKind::RemoveVm { vm }, key: false, revision: None, at: None }),
    ];
    let faults = prop_oneof![
        8 => (0u8..3).prop_map(|which| Step::Node { which }),
        2 => (any::<u16>(), 0i64..6_000).prop_map(|(lands, down_ms)| Step::Crash { lands, down_ms }),
        3 => Just(Step::Pause),
        3 => Just(Step::Cut),
        2 => Just(Step::Stall),
        2 => count().prop_map(|count| Step::WatchBack { count }),
        8 => count().prop_map(|count| Step::DropDeletes { count }),
        2 => Just(Step::Compact),
        2 => count().prop_map(|count| Step::StaleReads { count }),
        2 => (0u16..10_000).prop_map(|ms| Step::LoadTime { ms }),
        2 => count().prop_map(|count| Step::LoseAnswers { count }),
        3 => count().prop_map(|count| Step::LoseMessages { count }),
        3 => (count(), 0u16..8_000).prop_map(|(count, ms)| Step::DelayMessages { count, ms }),
        3 => (count(), 0u16..8_000).prop_map(|(count, ms)| Step::DoubleMessages { count, ms }),
        4 => any::<u8>().prop_map(|which| Step::LateLanding { which }),
        2 => (0u16..2_000).prop_map(|ms| Step::Lag { ms }),
        1 => (-5_000i16..5_000).prop_map(|ms| Step::Offset { ms }),
        1 => (-100i8..100).prop_map(|permille| Step::Drift { permille }),
        2 => Just(Step::HandOver),
        3 => Just(Step::Heal),
    ];
    prop_oneof![5 => usual, 3 => faults]
}

fn setup() -> impl Strategy<Value = Setup> {
    let scale = prop_oneof![3 => Just(1_000), 1 => Just(10), 1 => Just(1)];
    let most = prop_oneof![3 => Just(100), 1 => Just(2)];
    let driver = prop_oneof![
        3 => Just((false, false, false)),
        1 => Just((true, false, false)),
        2 => Just((false, true, false)),
        2 => Just((false, true, true))
    ];
    let attempts = prop_oneof![Just(1u32), Just(2), Just(5)];
    (scale, driver, attempts, most, prop::bool::weighted(0.5)).prop_map(
        |(scale_permille, (manual, exec, exec_host), attempts, user_operations_max, run_at_once)| Setup {
            scale_permille,
            manual,
            exec,
            exec_host,
            attempts,
            user_operations_max,
            run_at_once,
            nodes: 1,
            leaderless: false,
            split_at: None,
        },
    )
}

fn spec(about: About) -> impl Strategy<Value = Spec> {
    // Mostly one bit, so that addresses collide sometimes.
    let addresses = prop_oneof![6 => Just(0), 6 => (0u8..8).prop_map(|bit| 1 << bit), 1 => any::<u8>()];
    let host = match about {
        About::All => option::weighted(0.5, 0u8..3),
        About::Hosts => option::weighted(0.95, 0u8..3),
    };
    (0u8..6, 0u8..3, prop::bool::weighted(0.3), addresses, host).prop_map(
        |(name, update_domain, spot, addresses, host)| Spec { name, update_domain, spot, addresses, host },
    )
}

fn fleet(about: About) -> impl Strategy<Value = RequestKind> {
    // A scope keeps its kind, so most requests use the same one.
    let kind = |scope| prop_oneof![9 => Just([1, 3, 2, 0][usize::from(scope)]), 1 => 0u8..4];
    let placed = (0u8..4).prop_flat_map(move |scope| (Just(scope), kind(scope)));
    (placed, 0u8..6, any::<bool>(), prop::bool::weighted(0.4), vec(spec(about), 0..6)).prop_map(
        |((scope, kind), policy, fleet, prune, mut vms)| {
            if kind == 0 {
                vms.truncate(1);
            }
            vms.sort_by_key(|spec| spec.name);
            vms.dedup_by_key(|spec| spec.name);
            RequestKind::PutScope {
                scope,
                kind,
                policy: if policy == 5 { 1 } else { policy },
                fleet,
                prune,
                vms,
            }
        },
    )
}

fn when() -> impl Strategy<Value = When> {
    let near = prop_oneof![
        Just(-1_500),
        Just(-1),
        Just(0),
        Just(1),
        Just(1_000),
        Just(4_000),
        Just(5_000),
        Just(60_000),
        Just(900_000),
    ];
    prop_oneof![2 => Just(When::Usual), 1 => near.prop_map(|ms| When::NoticePlus { ms })]
}

fn what(about: About) -> impl Strategy<Value = RequestKind> {
    let (of_vms, of_hosts, causes) = match about {
        About::All => (16, 6, 0u8..6),
        About::Hosts => (8, 24, 0u8..3),
    };
    let as_it_comes = (0u8..4, 0u8..4, 0u8..6, any::<bool>(), any::<bool>(), vec(spec(about), 0..4))
        .prop_map(|(scope, kind, policy, fleet, prune, vms)| RequestKind::PutScope {
            scope,
            kind,
            policy,
            fleet,
            prune,
            vms,
        });
    prop_oneof![
        2 => fleet(about),
        1 => as_it_comes,
        2 => (0u8..4, option::of(0u8..4), spec(about)).prop_map(|(scope, kind, vm)| RequestKind::AddVm { scope, kind, vm }),
        2 => any::<u8>().prop_map(|vm| RequestKind::RemoveVm { vm }),
        1 => (0u8..4, any::<bool>()).prop_map(|(scope, fleet)| RequestKind::RemoveScope { scope, fleet }),
        1 => prop_oneof![
            2 => fleet(about),
            1 => (0u8..4, any::<bool>()).prop_map(|(scope, fleet)| RequestKind::RemoveScope { scope, fleet }),
        ]
        .prop_map(|what| RequestKind::PlanScope(Box::new(what))),
        1 => any::<u8>().prop_map(|vm| RequestKind::StartVm { vm }),
        1 => Just(RequestKind::FirstRun),
        of_vms => schedule(),
        of_hosts => (0u8..4, causes, when(), prop::bool::weighted(0.1))
            .prop_map(|(host, cause, when, preview)| RequestKind::Host { host, cause, when, preview }),
        6 => (any::<u8>(), vec(any::<u8>(), 0..4))
            .prop_map(|(vm, events)| RequestKind::GuestApprove { vm, events }),
        5 => any::<u8>().prop_map(|event| RequestKind::Approve { event }),
        2 => any::<u8>().prop_map(|event| RequestKind::Cancel { event }),
        3 => any::<u8>().prop_map(|event| RequestKind::Start { event }),
        2 => (any::<u8>(), any::<bool>()).prop_map(|(event, moved)| RequestKind::Complete { event, moved }),
        2 => any::<u8>().prop_map(|event| RequestKind::RetryEvent { event }),
        2 => any::<u8>().prop_map(|operation| RequestKind::CancelOperation { operation }),
        2 => any::<u8>().prop_map(|operation| RequestKind::StartOperation { operation }),
        1 => any::<u8>().prop_map(|operation| RequestKind::CompleteOperation { operation }),
        1 => any::<u8>().prop_map(|operation| RequestKind::RetryOperation { operation }),
    ]
}

fn schedule() -> impl Strategy<Value = RequestKind> {
    let duration = prop_oneof![6 => Just(None), 1 => Just(Some(0)), 1 => Just(Some(600))];
    (0u8..10, vec(0u8..=210, 1..5), when(), duration, any::<bool>()).prop_map(
        |(cause, vms, when, duration_s, force)| RequestKind::Schedule { cause, vms, when, duration_s, force },
    )
}

fn time() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 0i64..5_000,
        2 => 5_000i64..120_000,
        2 => Just(900_000),
        1 => Just(86_400_000),
        1 => Just(8 * 86_400_000),
    ]
}

fn clock_set_by() -> impl Strategy<Value = i64> {
    prop_oneof![
        2 => -3_600_000i64..3_600_000,
        1 => Just(86_400_000),
        1 => Just(-86_400_000),
        1 => Just(8 * 86_400_000),
    ]
}

fn ends() -> impl Strategy<Value = CommandEnd> {
    prop_oneof![
        4 => Just(CommandEnd::Well),
        1 => Just(CommandEnd::Elsewhere),
        6 => Just(CommandEnd::Badly),
        1 => Just(CommandEnd::Absurdly),
        1 => Just(CommandEnd::Blocked),
    ]
}

fn step(about: About) -> impl Strategy<Value = Step> {
    let how = prop_oneof![
        6 => Just(ReportedOutcome::Actual),
        1 => Just(ReportedOutcome::Unavailable),
        2 => Just(ReportedOutcome::UnknownLanded),
        1 => Just(ReportedOutcome::UnknownLost),
    ];
    prop_oneof![
        14 => (what(about), any::<bool>(), option::weighted(0.05, any::<bool>()))
            .prop_map(|(what, key, revision)| Step::Request { what, key, revision, at: None }),
        2 => (0u8..3, prop::bool::weighted(0.2))
            .prop_map(|(which, other)| Step::Retry { which, other, at: None }),
        1 => (0u8..4).prop_map(|scope| Step::Polled { scope, at: None }),
        3 => time().prop_map(|ms| Step::Advance { ms }),
        1 => clock_set_by().prop_map(|ms| Step::SetClock { ms }),
        5 => prop_oneof![3 => Just(0i64), 1 => 1i64..70_000].prop_map(|plus_ms| Step::ToDue { plus_ms }),
        2 => any::<u8>().prop_map(|which| Step::Apply { which }),
        7 => (any::<u8>(), how).prop_map(|(which, how)| Step::Deliver { which, how }),
        2 => (1u8..5).prop_map(|count| Step::Watch { count }),
        1 => any::<u8>().prop_map(|which| Step::Foreign { which }),
        1 => (any::<u16>(), prop_oneof![Just(0i64), 0i64..5_000, Just(3_600_000), Just(-61_000), Just(2 * 86_400_000)])
            .prop_map(|(lands, down_ms)| Step::Crash { lands, down_ms }),
        5 => (any::<u8>(), ends()).prop_map(|(which, how)| Step::Ran { which, how }),
        1 => (any::<u8>(), ends()).prop_map(|(which, how)| Step::Late { which, how }),
        6 => Just(Step::Settle),
        1 => Just(Step::Drain),
    ]
}
