//! Two tenants with overlapping addresses, each behind its own bridge.

use super::machine::{Machine, each_guest_is_its_own_vm};

#[test]
fn tenants_with_overlapping_addresses() {
    let mut host = Machine::new();
    let guests = [("br-blue", "vnet0"), ("br-green", "vnet1")].map(|(bridge, port)| {
        host.bridge(bridge);
        host.guest(bridge, port, 4)
    });
    // The strictest system default; the page's commands must override it.
    host.shell("sysctl -q -w net.ipv4.conf.all.rp_filter=1").status().unwrap();
    host.run("networks");
    host.serve("networks-serve");
    host.run("networks-fleet");
    each_guest_is_its_own_vm(&host, &guests, [("blue/web/web", "10.0.0.4"), ("green/web/web", "10.0.0.4")]);

    // The same address in another network is not this VM.
    host.cli(&["vm", "remove", "--yes", "green/web/web"]);
    assert_eq!(guests[1].request(super::machine::ADDRESS, &[]).unwrap().0, 403);
    assert_eq!(guests[0].name(), "web");
}
