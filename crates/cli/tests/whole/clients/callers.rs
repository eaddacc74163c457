//! Caller identity by source address: the first-run VM, listeners bound to one VM, and guests behind their own links.
//!
//! Loopback cannot provide real source addresses; namespaces can.

use crate::support::in_namespace::{ADDRESS, Guest, Service};
use crate::support::namespace::Namespace;

/// The ids that a guest sees.
fn ids(guest: &Guest<'_>) -> Vec<String> {
    guest.events().iter().map(|event| event["EventId"].as_str().unwrap().to_owned()).collect()
}

/// Without a fleet, a caller from the called address itself or from loopback is the first-run VM. Another address of
/// the same machine is not: it could be a bridge that forwards packets of others.
#[test]
fn local_callers_are_first_run_vm() {
    let service = Service::start(&[]);
    service.namespace.add_address("10.77.0.9");
    let vm = service.first_run_vm();
    let from = |source| Guest { namespace: &service.namespace, source, address: ADDRESS };
    let (itself, loopback, other) = (from(None), from(Some("127.0.0.1")), from(Some("10.77.0.9")));

    assert!(ids(&itself).is_empty() && ids(&loopback).is_empty());
    let event = service.user_operation("restart", &vm);
    assert_eq!((ids(&itself), ids(&loopback)), (vec![event.clone()], vec![event.clone()]));
    assert_unknown_caller(&other, &event);

    assert_eq!(itself.approve(&event), (200, String::new()));
    assert_eq!(loopback.events()[0]["EventStatus"], "Started");
    service.complete(&event);
    assert!(ids(&itself).is_empty());
    service.assert_approved_by(&event, &vm, ADDRESS);
}

/// Every caller of a bound listener is its VM, from any address. Once there are VMs, no caller is the first-run VM.
#[test]
fn bound_listener_callers_are_its_vm() {
    let namespace = Namespace::new();
    for address in ["10.77.0.1", "10.77.0.2", "10.77.0.9"] {
        namespace.add_address(address);
    }
    let service = Service::start_in(
        namespace,
        &["--guest-vm", "web-0=10.77.0.1:80", "--guest-vm", "web-1=10.77.0.2:80"],
    );
    let at = |address| Guest { namespace: &service.namespace, source: Some("10.77.0.9"), address };
    let (first, second) = (at("10.77.0.1"), at("10.77.0.2"));

    let event = service.user_operation("restart", "web-0");
    assert_eq!((ids(&first), ids(&second)), (vec![event.clone()], vec![]));
    assert_eq!(second.approve(&event).0, 400, "another VM's event");
    assert_unknown_caller(&Guest { namespace: &service.namespace, source: None, address: ADDRESS }, &event);

    assert_eq!(first.approve(&event), (200, String::new()));
    assert_eq!(first.events()[0]["EventStatus"], "Started");
    service.complete(&event);
    assert!(ids(&first).is_empty());
    service.assert_approved_by(&event, "web-0", "10.77.0.9");
}

/// Two guests and an unknown caller, each in a namespace linked to the service's. Each guest sees only its own scope,
/// the unknown caller sees nothing, and none of them reaches the operator listener.
#[test]
fn guests_behind_links_see_their_own_scope() {
    let namespace = Namespace::new();
    let homes = [1, 2, 3].map(|number| linked(&namespace, number));
    let service = Service::start_in(namespace, &[]);
    service.apply_fleet(
        "scopes:
  - name: web
    kind: availability-set
    vms: [ { name: web-0, addresses: [10.77.1.2] } ]
  - name: db
    kind: standalone
    vms: [ { name: db, addresses: [10.77.2.2] } ]
",
    );
    let [web, db, unknown] = [&homes[0], &homes[1], &homes[2]].map(|namespace| Guest {
        namespace,
        source: None,
        address: ADDRESS,
    });

    // The first request is what makes user operations give notice in a scope.
    assert!(ids(&web).is_empty() && ids(&db).is_empty());
    let of_web = service.user_operation("restart", "web-0");
    let of_db = service.user_operation("redeploy", "db");
    assert_eq!((ids(&web), ids(&db)), (vec![of_web.clone()], vec![of_db.clone()]));
    assert_unknown_caller(&unknown, &of_web);
    assert_eq!(db.approve(&of_web).0, 400, "another scope's event");
    assert_eq!(service.status(&of_web), "Scheduled");

    for (guest, event, (vm, address)) in
        [(&web, &of_web, ("web-0", "10.77.1.2")), (&db, &of_db, ("db", "10.77.2.2"))]
    {
        assert_eq!(guest.approve(event), (200, String::new()));
        assert_eq!(guest.events()[0]["EventStatus"], "Started");
        service.complete(event);
        assert!(ids(guest).is_empty());
        service.assert_approved_by(event, vm, address);
    }

    let refused =
        homes[0].bounded("curl").args(["-q", "-s", &format!("http://{ADDRESS}:9255/healthz")]).output();
    assert_eq!(refused.unwrap().status.code(), Some(7), "curl's number for a connection that was refused");
}

/// A guest's namespace with its address and a link to the service's.
pub(super) fn linked(service: &Namespace, number: u8) -> Namespace {
    let guest = Namespace::new();
    service.ip(&format!("link add guest{number} type veth peer name uplink netns {}", guest.name()));
    service.ip(&format!("addr add 10.77.{number}.1/24 dev guest{number}"));
    service.ip(&format!("link set guest{number} up"));
    guest.ip(&format!("addr add 10.77.{number}.2/24 dev uplink"));
    guest.ip("link set uplink up");
    guest.ip(&format!("route add {ADDRESS}/32 via 10.77.{number}.1"));
    guest
}

/// Asserts that a caller is unknown: every request is refused and shows no event.
fn assert_unknown_caller(guest: &Guest<'_>, event: &str) {
    for (status, body) in
        [guest.poll(), guest.approve(event), guest.approve("00000000-0000-0000-0000-000000000000")]
    {
        assert_eq!((status, body.as_str()), (403, "{\"error\":\"Forbidden\"}"));
    }
}
