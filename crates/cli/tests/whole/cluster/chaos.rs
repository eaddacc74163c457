//! Random faults for as long as wanted, with 50 guests and 10 clients: `./dev chaos MINUTES [SEED]`.
//!
//! The seed gives the order of the faults and the choices of clients and guests, not the moments. The history and the
//! logs are in `target/chaos/SEED`.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use notbefore_service::clock::Stopwatch;

use super::faults;
use super::history::Record;
use super::load::Load;
use super::{assert_claims, in_own_thread, members};
use crate::crash::random::Random;
use crate::support::pause;

const SCOPES: usize = 10;
const VMS_PER_SCOPE: usize = 5;
const CLIENTS: usize = 10;
/// Faults between two judgements.
const JUDGED_EVERY: usize = 5;
/// Longest time without a fault, in milliseconds.
const QUIET_MAX: u64 = 3_000;

/// Judges a history again: `NOTBEFORE_HISTORY=target/chaos/SEED/history.jsonl`, relative to the source tree.
#[test]
#[ignore = "needs a history of ./dev chaos"]
fn stored_history_is_judged() {
    let file = std::env::var("NOTBEFORE_HISTORY").expect("NOTBEFORE_HISTORY names the file");
    let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(file);
    let text = fs::read_to_string(&file).unwrap();
    let records: Vec<Record> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    println!("{:#?}", assert_claims(&records, &file));
}

/// How long `./dev chaos` runs.
pub fn minutes() -> Option<u64> {
    std::env::var("NOTBEFORE_CHAOS_MINUTES").ok().map(|text| text.parse().unwrap())
}

#[test]
#[ignore = "takes minutes: ./dev chaos"]
fn random_faults_lose_and_duplicate_nothing() {
    in_own_thread(|| {
        let minutes = minutes().unwrap_or(10);
        let seed = Random::seed();
        let dir =
            PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/chaos")).join(seed.to_string());
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let dir = dir.canonicalize().unwrap();
        println!("seed {seed}; history and logs: {}", dir.display());
        let (begun, mut random) = (Stopwatch::start(), Random::new(seed));
        let (mut site, shared) = faults::start(&dir, seed, SCOPES, VMS_PER_SCOPE, CLIENTS);
        let mut load = Load::start(&shared, CLIENTS, &mut random);
        let mut count = 0;
        while begun.elapsed() < Duration::from_secs(minutes * 60) {
            let fault = *random.pick(&faults::all());
            pause(Duration::from_millis(random.within(0..=QUIET_MAX)), "the fault comes at a random moment");
            let fault_begun = Stopwatch::start();
            site.inflict(fault, &shared, &mut random);
            let complete_since = site.check(&shared);
            load.check();
            count += 1;
            let at = begun.elapsed().as_secs();
            println!("{at:>5} s  {count:>4}  {}, {:.1} s", fault.name(), fault_begun.elapsed().as_secs_f64());
            // The load must not reach the quota.
            members::compact(&site.members);
            if count % JUDGED_EVERY == 0 {
                site.record_state(&shared, random.index(site.nodes.len()), complete_since, false);
                assert_claims(&shared.history.records(), &dir);
            }
        }
        load.stop();
        let complete_since = site.check(&shared);
        for node in 0..site.nodes.len() {
            site.record_state(&shared, node, complete_since, node == 0);
        }
        let tally = assert_claims(&shared.history.records(), &dir);
        println!("{tally:#?}\ntake-overs: {}", site.take_overs());
        println!("seed {seed}: {count} faults in {} s, no violation", begun.elapsed().as_secs());
    });
}
