//! A rolling upgrade with real processes, under load: nodes of an older format level are replaced one by one.
//!
//! A node with `--format-level 1` writes like one of the release before. It stands for that release: an older binary would
//! be refused by the same record of the store.

use std::process::{Command, Output};

use notbefore_wire::operator::cluster::Cluster;

use super::faults::{FLAGS, Site, read};
use super::history::{Attempt, Outcome, Record};
use super::load::{Load, Shared};
use super::nodes::{NodeAddress, TOKEN};
use super::{assert_claims, eventually, in_own_thread};
use crate::crash::random::Random;
use crate::support::binary;

/// Changes of clients between two steps.
const COMMANDS: usize = 15;
const LIMIT: [&str; 2] = ["--format-level", "1"];

/// The command of the guide, for a node.
fn finish(node: NodeAddress) -> Output {
    let mut command = Command::new(binary());
    command.args(["cluster", "upgrade", "finish", "--yes", "--operator-without-tls"]);
    command.env("NOTBEFORE_OPERATOR", format!("http://{}", node.operator())).env("NOTBEFORE_TOKEN", TOKEN);
    command.output().unwrap()
}

fn level(node: NodeAddress) -> Option<u32> {
    read::<Cluster>(node, "/v1/cluster").format_level
}

/// Waits until clients have made some changes more.
fn wait_for_commands(shared: &Shared) {
    let made = |record: &Record| {
        matches!(record, Record::Attempt(Attempt { outcome: Outcome::Acknowledged(_), .. }))
    };
    let count = || shared.history.records().iter().filter(|record| made(record)).count();
    let before = count();
    eventually("clients make changes", || (count() >= before + COMMANDS).then_some(()));
}

impl Site {
    /// Stops a node in order, and starts it with these flags besides its own.
    fn restart_node(&mut self, node: usize, flags: &[&str]) {
        let status = self.nodes[node].terminate();
        assert!(status.success(), "node {node} ended with {status}: {}", self.nodes[node].log());
        self.nodes[node].flags.retain(|flag| !LIMIT.contains(&flag.as_str()));
        self.nodes[node].flags.extend(flags.iter().map(|&flag| flag.to_owned()));
        self.start_node(node);
    }
}

#[test]
fn rolling_upgrade_under_load_loses_nothing_and_refuses_the_older_level_afterwards() {
    in_own_thread(|| {
        let seed = Random::seed();
        println!("NOTBEFORE_SEED={seed}");
        let mut random = Random::new(seed);
        // Kept until the end of the test succeeds, so that a failure can be examined.
        let path = tempfile::tempdir().unwrap().keep();
        let mut site = Site::start(&path, 1, 4, &[&FLAGS[..], &LIMIT].concat());
        let shared = site.create_fleet(seed, 2, 2, 3);
        let mut load = Load::start(&shared, 3, &mut random);
        // The leader first, so that the lead moves under load.
        let first = site.wait_for_leader().0;
        for count in 0..3 {
            let node = (first + count) % 3;
            if count > 0 {
                let refused = finish(site.nodes[node].address);
                let message = String::from_utf8_lossy(&refused.stderr).into_owned();
                assert!(!refused.status.success() && message.contains("(level 1)"), "{message}");
            }
            site.restart_node(node, &[]);
            site.wait_until_ready();
            site.check(&shared);
            wait_for_commands(&shared);
            load.check();
            assert_eq!(level(site.nodes[node].address), Some(1), "all write the older level until the end");
        }
        eventually("the upgrade is finished", || {
            finish(site.nodes[0].address).status.success().then_some(())
        });
        for node in &site.nodes {
            eventually("the node shows the newer level", || (level(node.address) == Some(2)).then_some(()));
        }
        wait_for_commands(&shared);
        let complete_since = site.check(&shared);
        load.stop();
        for node in 0..3 {
            site.record_state(&shared, node, complete_since, node == 0);
        }
        let tally = assert_claims(&shared.history.records(), &path);
        println!("{tally:#?}; take-overs: {}", site.take_overs());
        assert!(tally.acknowledged >= 4 * COMMANDS && tally.documents >= 20, "too few commands: {tally:#?}");

        let before = site.nodes[0].log().len();
        site.restart_node(0, &LIMIT);
        let status = eventually("the older node ends", || site.nodes[0].ended());
        let log = site.nodes[0].log();
        let said = &log[before..];
        assert!(!status.success() && said.contains("limits this node to 1; leave the setting out"), "{said}");
        site.nodes[0].flags.retain(|flag| !LIMIT.contains(&flag.as_str()));
        site.start_node(0);
        site.wait_until_ready();
        drop(site);
        std::fs::remove_dir_all(path).unwrap();
    });
}
