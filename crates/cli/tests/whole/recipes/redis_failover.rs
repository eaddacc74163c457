//! The primary of a Redis pair hands over before its VM goes, and comes back as a replica.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::redis::{Redis, says};
use super::vm::{Vm, need};
use crate::support::wait_for;

/// A VM with one of a pair, the other elsewhere; this one is the primary.
fn pair(flags: &[&str]) -> (Vm, Redis, Redis) {
    need("/usr/bin/redis-cli", "redis-server");
    let mut vm = Vm::new("redis-failover", flags);
    let own = Redis::start(&vm.path("own"), "");
    let peer =
        Redis::start(&vm.path("peer"), &format!("replicaof {} {}", own.address.ip(), own.address.port()));
    wait_for("the replica", || says(own.address, "WAIT 1 100").ok().filter(|answer| answer == ":1"));
    vm.start(&[("10.0.0.10:6379", &own.address()), ("10.0.0.11:6379", &peer.address())]);
    (vm, own, peer)
}

/// Somebody who writes one number after the other to whichever of the two takes it, until told to stop; gives what was
/// acknowledged.
fn writer(addresses: [SocketAddr; 2], stop: &Arc<AtomicBool>) -> JoinHandle<Vec<String>> {
    let stop = stop.clone();
    std::thread::spawn(move || {
        let (mut acknowledged, mut turn) = (Vec::new(), 0);
        for number in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            match says(addresses[turn], &format!("RPUSH numbers {number}")) {
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
    wait_for("some writes", || says(own.address, "LLEN numbers").ok().filter(|answer| answer.len() > 3));

    let event = vm.announce("reboot");
    vm.approved(&event);
    assert_eq!((own.role(), peer.role()), ("slave".to_owned(), "master".to_owned()), "approved only then");
    own.kill();
    wait_for("writes to the other", || {
        let before = peer.says("LLEN numbers").unwrap();
        wait_for("one more", || (peer.says("LLEN numbers").unwrap() != before).then_some(()));
        Some(())
    });
    own.restart();
    vm.reboot();
    vm.complete(&event);
    vm.back_in_service();
    stop.store(true, Ordering::Relaxed);
    let acknowledged = writer.join().unwrap();

    assert_eq!((own.role(), peer.role()), ("slave".to_owned(), "master".to_owned()), "it stays where it is");
    let kept = peer.list("numbers");
    assert!(acknowledged.len() > 10);
    assert!(acknowledged.iter().all(|number| kept.contains(number)), "every acknowledged write is there");
    wait_for("the replica to have them too", || (own.list("numbers") == kept).then_some(()));

    // As a replica it has nothing to hand over, whatever happens to it.
    let event = vm.announce("reboot");
    vm.approved(&event);
    vm.complete(&event);
    vm.back_in_service();
    assert_eq!((own.role(), peer.role()), ("slave".to_owned(), "master".to_owned()));
}

/// A primary that came back without its configuration is told who is primary now.
#[test]
fn two_primaries_become_one_again() {
    let (vm, mut own, peer) = pair(&[]);
    vm.does("redis-pair", &["hand-over", &own.address(), &peer.address()]);
    vm.does("redis-pair", &["hand-over", &own.address(), &peer.address()]);
    peer.says("SET after handover").unwrap();
    own.says("REPLICAOF NO ONE").unwrap();
    assert_eq!((own.role(), peer.role()), ("master".to_owned(), "master".to_owned()));
    vm.does("redis-pair", &["rejoin", &own.address(), &peer.address()]);
    vm.does("redis-pair", &["rejoin", &own.address(), &peer.address()]);
    assert_eq!((own.role(), peer.role()), ("slave".to_owned(), "master".to_owned()));
    own.kill();
    own.restart();
    assert_eq!(own.role(), "slave", "it is written down, so that a reboot does not make it a primary again");
}

/// A primary that has not handed over loses nothing, whatever its peer says it is: after an event that was called off, and
/// after one that it could not prepare for.
#[test]
fn a_peer_that_was_set_up_anew_does_not_cost_the_primary_its_data() {
    let (vm, own, mut peer) = pair(&[]);
    assert_eq!(own.says("SET precious data").unwrap(), "+OK");
    peer.set_up_anew();
    let event = vm.announce("reboot");
    vm.logs("requires connected replicas");
    vm.cancel(&event);
    vm.logs("has not taken over");
    assert_eq!((own.role(), own.says("EXISTS precious").unwrap()), ("master".to_owned(), ":1".to_owned()));
}

/// Nor does one that has handed over, and is a primary again, if its heir lost what it was given.
#[test]
fn empty_replica_is_not_promoted() {
    let (vm, own, mut peer) = pair(&[]);
    assert_eq!(own.says("SET precious data").unwrap(), "+OK");
    vm.does("redis-pair", &["hand-over", &own.address(), &peer.address()]);
    own.says("REPLICAOF NO ONE").unwrap();
    peer.set_up_anew();
    let said = vm.script("redis-pair", &["rejoin", &own.address(), &peer.address()]);
    let complaint = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(!said.status.success() && complaint.contains("nothing was changed"), "{complaint}");
    assert_eq!((own.role(), own.says("EXISTS precious").unwrap()), ("master".to_owned(), ":1".to_owned()));
}

/// With nobody to take over, the VM does not agree to go: it keeps all the time that it has.
#[test]
fn without_a_replica_the_event_is_not_approved() {
    let (vm, own, mut peer) = pair(&["--notice", "0.008"]);
    peer.kill();
    let event = vm.announce("reboot");
    wait_for("NotBefore", || (vm.status(&event) == "Started").then_some(()));
    assert_eq!(vm.trail(&event)[1].1, "timer", "nobody has approved");
    assert_eq!(own.role(), "master");
    peer.restart();
    vm.complete(&event);
    vm.back_in_service();
    assert_eq!((own.role(), peer.role()), ("master".to_owned(), "slave".to_owned()));
}

/// A replica that does not answer holds writes up while it is waited for. When the event is called off, they go on.
#[test]
fn cancelled_failover_restores_primary() {
    let (vm, own, peer) = pair(&[]);
    peer.freeze(true);
    // What the replica has not got is what is waited for.
    assert_eq!(own.says("SET not there").unwrap(), "+OK");
    let event = vm.announce("reboot");
    wait_for("the hand-over to begin", || {
        (own.replication("master_failover_state") == "waiting-for-sync").then_some(())
    });
    vm.cancel(&event);
    assert_eq!(own.says("SET taken again").unwrap(), "+OK");
    assert_eq!(
        (own.role(), own.replication("master_failover_state").as_str()),
        ("master".to_owned(), "no-failover")
    );
    peer.freeze(false);
    vm.back_in_service();
    assert_eq!((own.role(), peer.role()), ("master".to_owned(), "slave".to_owned()));
}
