//! Two tenants with the same addresses, each behind a bridge of its own.

use super::machine::{Machine, each_guest_is_its_own_vm};

#[test]
fn tenants_with_the_same_addresses() {
    let mut host = Machine::new();
    let guests = [("br-blue", "vnet0"), ("br-green", "vnet1")].map(|(bridge, port)| {
        host.bridge(bridge);
        host.guest(bridge, port, 4)
    });
    // The strictest that a system may come with; the page's commands must undo it where it hurts.
    host.shell("sysctl -q -w net.ipv4.conf.all.rp_filter=1").status().unwrap();
    host.run("networks");
    host.serve("networks-serve");
    host.run("networks-fleet");
    each_guest_is_its_own_vm(&host, &guests, [("blue/web/web", "10.0.0.4"), ("green/web/web", "10.0.0.4")]);

    // Nobody's VM is what another network has at that address.
    host.cli(&["vm", "remove", "--yes", "green/web/web"]);
    assert_eq!(guests[1].asks(super::machine::ADDRESS, &[]).unwrap().0, 403);
    assert_eq!(guests[0].name(), "web");
}
