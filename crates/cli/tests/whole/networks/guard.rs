//! Address spoofing: a guest that uses its neighbour's address, with and without the page's rules.

use super::machine::{ADDRESS, Machine};
use crate::support::wait_for;

/// The spoofed address. The neighbour is down, so it does not answer ARP.
const SPOOFED: [(&str, &[&str]); 2] = [
    ("the address", &["addr add 10.0.0.4/24 dev eth0"]),
    (
        "the address and the MAC address",
        &[
            "link set eth0 down",
            "link set eth0 address 02:00:00:00:00:04",
            "link set eth0 up",
            "addr add 10.0.0.4/24 dev eth0",
            "route replace default via 10.0.0.1",
        ],
    ),
];

#[test]
fn address_spoofing_is_blocked_by_rules() {
    for (lie, commands) in SPOOFED {
        let (mut host, [victim, spoofer]) = Machine::with_guests();
        host.run("bridge");
        host.serve("bridge-serve");
        host.run("fleet");
        assert!(victim.events().is_empty());
        host.cli(&["vm", "restart", "web-0"]);
        let own = victim.events();
        assert_eq!(own.len(), 1);
        victim.namespace.ip("link set eth0 down");
        for command in commands {
            spoofer.namespace.ip(command);
        }

        let request = || spoofer.request(ADDRESS, &["--interface", "10.0.0.4"]);
        let (status, body) = request().unwrap();
        assert_eq!(status, 200, "{lie}");
        assert!(body.contains(&own[0]), "{lie}: this is why the rules are needed: {body}");

        host.run("guard");
        host.namespace.ip("neigh flush dev br0");
        request().expect_err("a spoofed address gets no response");
        assert!(!neighbour(&host).contains("02:00:00:00:00:0"), "{lie}: no owner of the address");

        // The guest's own address still works.
        victim.namespace.ip("link set eth0 up");
        victim.namespace.ip("route replace default via 10.0.0.1");
        wait_for_answer(&victim);
        assert_eq!(victim.events(), own, "{lie}");
    }
}

/// The owner of the address in the hypervisor's ARP table.
fn neighbour(host: &Machine) -> String {
    let looked = host.shell("curl -q -s -m 2 http://10.0.0.4/ || true; ip neigh show 10.0.0.4 dev br0");
    let output = { looked }.output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn new_guest_is_served_after_rule_update() {
    let (mut host, _guests) = Machine::with_guests();
    let third = host.guest("br0", "vnet2", 6);
    host.run("bridge");
    host.run("guard");
    host.serve("bridge-serve");
    host.run("fleet");
    assert!(third.request(ADDRESS, &[]).is_err());
    host.run("guard-add");
    assert_eq!(wait_for_answer(&third), 403, "not in the fleet");
}

/// Waits until a guest is answered: ARP retries a failed lookup only after a while.
fn wait_for_answer(guest: &Machine) -> u16 {
    wait_for("an answer to the guest", || guest.request(ADDRESS, &[]).ok()).0
}
