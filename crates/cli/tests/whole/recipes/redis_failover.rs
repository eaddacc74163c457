//! Recipe redis-failover: the primary hands over before its VM goes, and returns as a replica.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::redis::{Redis, command};
use super::vm::{Vm, require_file};
use crate::support::wait_for;

/// A VM with the primary of a pair; the replica is elsewhere.
fn pair(flags: &[&str]) -> (Vm, Redis, Redis) {
    require_file("/usr/bin/redis-cli", "redis-server");
    let mut vm = Vm::new("redis-failover", flags);
    let own = Redis::start(&vm.path("own"), "");
    let peer =
        Redis::start(&vm.path("peer"), &format!("replicaof {} {}", own.address.ip(), own.address.port()));
    wait_for("the replica", || command(own.address, "WAIT 1 100").ok().filter(|answer| answer == ":1"));
    vm.start(&[("10.0.0.10:6379", &own.address()), ("10.0.0.11:6379", &peer.address())]);
    (vm, own, peer)
}

/// Writes numbers to the server that accepts them, until stopped; returns the acknowledged ones.
fn writer(addresses: [SocketAddr; 2], stop: &Arc<AtomicBool>) -> JoinHandle<Vec<String>> {
    let stop = stop.clone();
    std::thread::spawn(move || {
        let (mut acknowledged, mut turn) = (Vec::new(), 0);
        for number in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            match command(addresses[turn], &format!("RPUSH numbers {number}")) {
                Ok(answer) if answer.starts_with(':') => acknowledged.push(number.to_string()),
                _ => turn = 1 - turn,
            }
        }
        acknowledged
    })
}

#[test]
fn replica_takes_over_without_lost_writes() {
    let (mut vm, mut own, peer) = pair(&[]);
    let stop = Arc::new(AtomicBool::new(false));
    let writer = writer([own.address, peer.address], &stop);
    wait_for("some writes", || command(own.address, "LLEN numbers").ok().filter(|answer| answer.len() > 3));

    let event = vm.announce("reboot");
    vm.wait_for_approval(&event);
    assert_eq!((own.role(), peer.role()), ("slave".to_owned(), "master".to_owned()), "approved only then");
    own.kill();
    wait_for("writes to the other", || {
        let before = peer.command("LLEN numbers").unwrap();
        wait_for("one more", || (peer.command("LLEN numbers").unwrap() != before).then_some(()));
        Some(())
    });
    own.restart();
    vm.reboot();
    vm.complete(&event);
    vm.wait_until_restored();
    stop.store(true, Ordering::Relaxed);
    let acknowledged = writer.join().unwrap();

    assert_eq!((own.role(), peer.role()), ("slave".to_owned(), "master".to_owned()), "it stays where it is");
    let kept = peer.list("numbers");
    assert!(acknowledged.len() > 10);
    assert!(acknowledged.iter().all(|number| kept.contains(number)), "every acknowledged write is there");
    wait_for("the replica to have them too", || (own.list("numbers") == kept).then_some(()));

    // A replica has nothing to hand over, for any event.
    let event = vm.announce("reboot");
    vm.wait_for_approval(&event);
    vm.complete(&event);
    vm.wait_until_restored();
    assert_eq!((own.role(), peer.role()), ("slave".to_owned(), "master".to_owned()));
}

/// A primary that returns without its configuration learns the current primary.
#[test]
fn split_brain_is_resolved() {
    let (vm, mut own, peer) = pair(&[]);
    vm.run_script("redis-pair", &["hand-over", &own.address(), &peer.address()]);
    vm.run_script("redis-pair", &["hand-over", &own.address(), &peer.address()]);
    peer.command("SET after handover").unwrap();
    own.command("REPLICAOF NO ONE").unwrap();
    assert_eq!((own.role(), peer.role()), ("master".to_owned(), "master".to_owned()));
    vm.run_script("redis-pair", &["rejoin", &own.address(), &peer.address()]);
    vm.run_script("redis-pair", &["rejoin", &own.address(), &peer.address()]);
    assert_eq!((own.role(), peer.role()), ("slave".to_owned(), "master".to_owned()));
    own.kill();
    own.restart();
    assert_eq!(
        own.role(),
        "slave",
        "the role is in the configuration file, so a restart does not make it a primary again"
    );
}

/// A primary that has not handed over keeps its data, whatever role its peer reports: after a cancelled event, and
/// after one without preparation.
#[test]
fn reinstalled_peer_does_not_erase_primary() {
    let (vm, own, mut peer) = pair(&[]);
    assert_eq!(own.command("SET precious data").unwrap(), "+OK");
    peer.reinstall();
    let event = vm.announce("reboot");
    vm.wait_for_log("requires connected replicas");
    vm.cancel(&event);
    vm.wait_for_log("has not taken over");
    assert_eq!((own.role(), own.command("EXISTS precious").unwrap()), ("master".to_owned(), ":1".to_owned()));
}

/// So does one that has handed over and is primary again, if the new primary lost its data.
#[test]
fn empty_replica_is_not_promoted() {
    let (vm, own, mut peer) = pair(&[]);
    assert_eq!(own.command("SET precious data").unwrap(), "+OK");
    vm.run_script("redis-pair", &["hand-over", &own.address(), &peer.address()]);
    own.command("REPLICAOF NO ONE").unwrap();
    peer.reinstall();
    let output = vm.script("redis-pair", &["rejoin", &own.address(), &peer.address()]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && stderr.contains("nothing was changed"), "{stderr}");
    assert_eq!((own.role(), own.command("EXISTS precious").unwrap()), ("master".to_owned(), ":1".to_owned()));
}

/// Without a replica the VM does not approve, and keeps its full notice.
#[test]
fn without_a_replica_the_event_is_not_approved() {
    let (vm, own, mut peer) = pair(&["--notice", "0.008"]);
    peer.kill();
    let event = vm.announce("reboot");
    wait_for("NotBefore", || (vm.status(&event) == "Started").then_some(()));
    assert_eq!(vm.trail(&event)[1].1, "timer", "not approved");
    assert_eq!(own.role(), "master");
    peer.restart();
    vm.complete(&event);
    vm.wait_until_restored();
    assert_eq!((own.role(), peer.role()), ("master".to_owned(), "slave".to_owned()));
}

/// A silent replica blocks writes while the failover waits. When the event is cancelled, writes continue.
#[test]
fn cancelled_failover_restores_primary() {
    let (vm, own, peer) = pair(&[]);
    peer.freeze(true);
    // The failover waits for writes that the replica does not have.
    assert_eq!(own.command("SET not there").unwrap(), "+OK");
    let event = vm.announce("reboot");
    wait_for("the failover to start", || {
        (own.replication("master_failover_state") == "waiting-for-sync").then_some(())
    });
    vm.cancel(&event);
    assert_eq!(own.command("SET taken again").unwrap(), "+OK");
    assert_eq!(
        (own.role(), own.replication("master_failover_state").as_str()),
        ("master".to_owned(), "no-failover")
    );
    peer.freeze(false);
    vm.wait_until_restored();
    assert_eq!((own.role(), peer.role()), ("master".to_owned(), "slave".to_owned()));
}
