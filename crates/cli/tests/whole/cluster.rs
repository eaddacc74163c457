//! Three nodes on one etcd under faults. Nothing acknowledged is lost, and nothing is applied twice.
//!
//! Three members of etcd and three nodes run, each on a machine of its own: a network namespace at one bridge. Clients
//! send changes through any node and guests poll any node while the faults happen. All that they send and receive is
//! recorded, and judged at the end.
//!
//! | module | content |
//! |---|---|
//! | `network` | machines, the bridge, cuts in one direction or both |
//! | `members`, `nodes` | the processes of etcd and of the service |
//! | `load` | clients and guests |
//! | `history`, `judge` | what was sent and received, as JSON lines, and what contradicts the claims |
//! | `faults` | the faults, each with the condition that ends it, and the check after each |
//! | `addresses` | addresses that move between VMs |
//! | `guide` | the commands of the guide, as printed, on three machines |
//! | `tls`, `reach` | the samples in `dist/cluster`, as the guide uses them |
//! | `upgrade` | a rolling upgrade under load |
//! | `commands` | commands of the exec driver while the lead changes |
//! | `chaos` | random faults for as long as wanted: `./dev chaos` |

mod addresses;
mod chaos;
mod commands;
mod faults;
pub mod guide;
mod history;
mod judge;
mod load;
mod members;
mod network;
mod nodes;
mod reach;
mod tls;
mod upgrade;

use std::path::Path;
use std::time::Duration;

use faults::TEN_FAULTS;
use history::Record;
use judge::{Tally, judge};
use load::Load;
use notbefore_service::clock::Stopwatch;

use crate::crash::random::Random;
use crate::support::pause;

/// Limit on any wait. A take-over takes five seconds, the rest is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Limit on the ten faults, for a busy machine. On two idle cores they must stay below 90 s.
const TEN_FAULTS_MAX: Duration = Duration::from_secs(900);
/// Where the test writes how long each fault took.
const TIMES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/cluster-faults.txt");

/// Asks again until there is an answer; panics with `what` on timeout.
fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Stopwatch::start();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "timeout after {PATIENCE:?}: {what}");
        pause(Duration::from_millis(30), what);
    }
}

/// Runs a test in a thread of its own, because it moves that thread to another network namespace.
fn in_own_thread(test: impl FnOnce() + Send + 'static) {
    if let Err(panic) = std::thread::spawn(test).join() {
        std::panic::resume_unwind(panic);
    }
}

/// Fails if the history at this place contradicts the claims.
fn assert_claims(records: &[Record], place: &Path) -> Tally {
    let (tally, violations) = judge(records);
    let shown: Vec<String> = violations.iter().take(10).map(ToString::to_string).collect();
    let count = violations.len();
    assert!(
        violations.is_empty(),
        "{count} violations; the history is in {}:\n{}",
        place.display(),
        shown.join("\n")
    );
    tally
}

#[test]
fn faults_one_after_the_other_lose_and_duplicate_nothing() {
    in_own_thread(|| {
        let seed = Random::seed();
        println!("NOTBEFORE_SEED={seed}");
        let mut random = Random::new(seed);
        let dir = tempfile::tempdir().unwrap();
        // Kept until the end of the test succeeds, so that a failure can be examined.
        let path = dir.keep();
        let begun = Stopwatch::start();
        let (mut site, shared) = faults::start(&path, seed, 4, 3, 4);
        println!(
            "started: {:.1} s; logs and history are in {}",
            begun.elapsed().as_secs_f64(),
            path.display()
        );
        let mut load = Load::start(&shared, 4, &mut random);
        site.check(&shared);
        let mut times = String::new();
        let mut note = |what: &str, took: Duration| {
            let line = format!("{what}: {:.1} s", took.as_secs_f64());
            println!("{line}");
            times += &format!("{line}\n");
        };
        for fault in faults::all() {
            let fault_begun = Stopwatch::start();
            site.inflict(fault, &shared, &mut random);
            let complete_since = site.check(&shared);
            site.record_state(&shared, 0, complete_since, false);
            load.check();
            note(fault.name(), fault_begun.elapsed());
            if Some(&fault) == TEN_FAULTS.last() {
                note("the ten, with the start", begun.elapsed());
                assert!(begun.elapsed() < TEN_FAULTS_MAX, "the ten faults take too long");
            }
        }
        std::fs::write(TIMES, &times).unwrap();
        load.stop();
        let complete_since = site.check(&shared);
        for node in 0..3 {
            site.record_state(&shared, node, complete_since, node == 0);
        }
        let tally = assert_claims(&shared.history.records(), &path);
        println!("{tally:#?}; take-overs: {}; {:.1} s", site.take_overs(), begun.elapsed().as_secs_f64());
        assert_eq!(tally.faults.values().sum::<usize>(), faults::all().len());
        assert!(
            tally.acknowledged >= 100 && tally.in_doubt > 0 && tally.repeats > 0,
            "too few commands: {tally:#?}"
        );
        assert!(tally.documents >= 100 && tally.moved > 0, "too few polls: {tally:#?}");
        assert!(tally.trails > 50 && site.take_overs() >= 6, "too few events or take-overs: {tally:#?}");
        drop(site);
        std::fs::remove_dir_all(path).unwrap();
    });
}
