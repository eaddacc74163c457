//! Setups that keep the guest's source address on its way to the service.

use super::machine::{ADDRESS, Machine, each_guest_is_its_own_vm};

const VMS: [(&str, &str); 2] = [("web-0", "10.0.0.4"), ("web-1", "10.0.0.5")];

#[test]
fn address_on_bridge() {
    let (mut host, guests) = Machine::with_guests();
    host.run("bridge");
    host.serve("bridge-serve");
    host.run("fleet");
    each_guest_is_its_own_vm(&host, &guests, VMS);

    // A guest with a link-local route finds the address too.
    guests[0].namespace.ip("route del default");
    guests[0].namespace.ip("route add 169.254.0.0/16 dev eth0");
    assert_eq!(guests[0].name(), "web-0");
    // Guests cannot reach the operator listener.
    assert_eq!(guests[0].request(&format!("{ADDRESS}:9255"), &[]), Err(REFUSED));
    assert_eq!(guests[1].request("10.0.0.1:9255", &[]), Err(REFUSED));
}

/// curl's exit code for a refused connection.
const REFUSED: i32 = 7;

#[test]
fn redirect() {
    let (mut host, guests) = Machine::with_guests();
    host.run("redirect");
    host.serve("redirect-serve");
    host.run("fleet");
    each_guest_is_its_own_vm(&host, &guests, VMS);
    assert_eq!(guests[0].request("10.0.0.1:9254", &[]).unwrap().0, 200, "known there as well");
}

#[test]
fn tproxy() {
    let (mut host, guests) = Machine::with_guests();
    host.run("tproxy");
    host.serve("tproxy-serve");
    host.run("fleet");
    each_guest_is_its_own_vm(&host, &guests, VMS);
}

/// A guest without address and route gets its own address and the service's by DHCP. The anti-spoofing rules are on,
/// and must not block a guest without an address.
#[test]
fn dhcp() {
    let (mut host, guests) = Machine::with_guests();
    host.run("guard");
    host.run("bridge");
    host.run("dhcp");
    host.serve("dhcp-serve");
    host.run("fleet");
    host.start("dhcp-run", "");
    host.wait_for_socket("-Hlun", ":67");

    let guest = &guests[0];
    guest.namespace.ip("addr flush dev eth0");
    guest.namespace.ip("route add unreachable 169.254.0.0/16");
    assert!(guest.request(ADDRESS, &[]).is_err());
    let stdout = guest.run("dhcp-guest");
    assert_eq!(stdout, "web-0");
    assert_eq!(std::fs::read_to_string(guest.dir.path().join("endpoint")).unwrap(), "168.63.129.16\n");
    assert!(guest.request(ADDRESS, &[]).is_err(), "the default address is still unreachable");
    assert_eq!(guests[1].name(), "web-1", "which those who have one go on using");
}
