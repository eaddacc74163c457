//! Recipe health-probe: leave and rejoin the pool of a load balancer that probes.

use super::site::LoadBalancedSite;
use super::vm::{Vm, lines, require_file};
use crate::support::wait_for;

/// Wrapper of the real program: logs its call, and fails while a file exists.
const SS: &str = r#"#!/bin/sh
echo asked >>"$PLAYED"
if [ -e "$PLAYED.fails" ]; then
  echo 'Cannot open netlink socket: Operation not permitted' >&2
  exit 1
fi
exec /usr/bin/ss "$@"
"#;

/// HAProxy with health checks against the agent, as on the recipe's page but more frequent.
fn probed() -> LoadBalancedSite {
    require_file("/usr/bin/ss", "iproute2");
    let vm = Vm::new("health-probe", &[]);
    vm.install_fake("ss", SS);
    let signals = vm.signals();
    let probe = format!("check addr {} port {} inter 100ms fall 2 rise 1", signals.ip(), signals.port());
    let mut site = LoadBalancedSite::new(vm, "  option httpchk GET /drainz\n", &probe);
    let port = format!("sport = :{}", site.servers[0].address.port());
    site.vm.start(&[
        ("0.0.0.0:9256", &signals.to_string()),
        ("wait = \"15s\"", "wait = \"1s\""),
        ("sport = :80", &port),
    ]);
    site.wait_until_both_serve();
    site
}

#[test]
fn probe_drains_and_restores_vm() {
    let mut site = probed();
    let request = site.start_slow_request();
    let event = site.vm.announce("reboot");
    site.wait_until_other_serves();
    wait_for("the second count of connections", || (lines(&site.vm.path("played")).len() > 1).then_some(()));
    assert_eq!(site.vm.status(&event), "Scheduled", "a request is still in progress");
    site.servers[0].release();
    assert_eq!(request.join().unwrap(), "web-0", "the server that accepted the request finishes it");
    site.vm.wait_for_approval(&event);
    site.vm.reboot();
    site.wait_until_other_serves();
    site.vm.complete(&event);
    site.wait_until_both_serve();
}

#[test]
fn cancelled_event_is_undone() {
    let site = probed();
    let event = site.vm.announce("redeploy");
    site.wait_until_other_serves();
    site.vm.cancel(&event);
    site.wait_until_both_serve();
}

/// An unknown number of connections is not zero.
#[test]
fn drain_waits_while_connections_are_unknown() {
    let site = probed();
    std::fs::write(site.vm.path("played.fails"), "").unwrap();
    let event = site.vm.announce("reboot");
    wait_for("the third count of connections", || (lines(&site.vm.path("played")).len() > 2).then_some(()));
    assert_eq!(site.vm.status(&event), "Scheduled");
    std::fs::remove_file(site.vm.path("played.fails")).unwrap();
    site.vm.wait_for_approval(&event);
}
