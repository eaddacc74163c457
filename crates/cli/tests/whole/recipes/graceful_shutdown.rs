//! Recipe graceful-shutdown: units stop in order before the VM is gone, the database last and with enough time.

use std::net::{Ipv4Addr, SocketAddr};

use super::vm::{Vm, lines};
use crate::support::{Service, wait_for};

/// Fake systemd for `systemctl --no-ask-password VERB -- UNIT`: a unit is a process of `recipes/process`, and stopping
/// one waits until it has ended.
const SYSTEMCTL: &str = r#"#!/bin/sh
set -eu
process=$(dirname "$0")/../lib/process units=$(dirname "$0")/..
verb=$2 unit=$4
echo "$verb $unit" >>"$PLAYED"
case $verb in
  stop)
    "$process" stop "$units/$unit"
    until "$process" ended "$units/$unit"; do sleep 0.05; done
    echo "stopped $unit" >>"$PLAYED"
    ;;
  start) "$process" again "$units/$unit" "$(dirname "$0")/unit" "$unit" ;;
esac
"#;

/// A unit that needs a moment to stop. If its file exists, it does not stop at all.
const UNIT: &str = r#"#!/bin/sh
trap '[ -e "$PLAYED.$1.hangs" ] || { sleep 0.5; exit; }' TERM
echo "runs $1" >>"$PLAYED"
while true; do sleep 0.05; done
"#;

const UNITS: [&str; 3] = ["nginx.service", "app.service", "postgresql.service"];

fn units(vm: &mut Vm) {
    vm.install_fake("systemctl", SYSTEMCTL);
    vm.install_fake("unit", UNIT);
    vm.start(&[]);
    for unit in UNITS {
        let program = vm.text("bin/unit");
        vm.run(unit, &[&program, unit]);
    }
    wait_for("the units", || (lines(&vm.path("played")).len() == UNITS.len()).then_some(()));
    std::fs::write(vm.path("played"), "").unwrap();
}

/// An eviction with 15 seconds' notice, half of the default. One unit would use all of it; 10 seconds are reserved for
/// the database.
#[test]
fn hanging_service_keeps_time_for_database() {
    let mut vm = Vm::new("graceful-shutdown", &["--notice", "0.5"]);
    units(&mut vm);
    std::fs::write(vm.path("played.app.service.hangs"), "").unwrap();
    let event = vm.announced(&["vm", "evict", super::vm::VM]);
    vm.wait_for_approval(&event);
    let calls = lines(&vm.path("played"));
    assert_eq!(
        calls,
        [
            "stop nginx.service",
            "stopped nginx.service",
            "stop app.service",
            "stop postgresql.service",
            "stopped postgresql.service",
        ]
    );
}

/// A cancelled deletion: stopped units start again, in reverse order.
#[test]
fn cancelled_deletion_is_restored() {
    let service = Service::start(&["--strict", "--simulated-duration", "1h"]);
    service.apply_fleet(
        "scopes:
  - name: web
    kind: scale-set
    terminate_notification: 5m
    vms: [ { name: web-0, addresses: [127.0.0.1] }, { name: web-1, addresses: [127.0.0.2] } ]
",
    );
    // A guest must have polled, or the deletion has no notice.
    assert_eq!(service.poll(Ipv4Addr::LOCALHOST, "2020-07-01").status, 200);
    let endpoint: SocketAddr = service.guest;
    let mut vm = Vm::on_service(service, endpoint, "graceful-shutdown");
    units(&mut vm);
    std::fs::write(vm.path("played.app.service.hangs"), "").unwrap();
    let event = vm.announced(&["vm", "delete", "--yes", super::vm::VM]);
    wait_for("the second unit to get its stop request", || {
        vm.path("app.service/stopped").exists().then_some(())
    });
    vm.cancel(&event);
    std::fs::remove_file(vm.path("played.app.service.hangs")).unwrap();
    // The unit ignored SIGTERM; kill it.
    vm.run_script("process", &["kill", &vm.text("app.service")]);
    vm.wait_until_restored();
    let calls = lines(&vm.path("played"));
    let started: Vec<&str> = calls.iter().filter_map(|line| line.strip_prefix("start ")).collect();
    assert_eq!(started, ["postgresql.service", "app.service", "nginx.service"]);
    wait_for("the units to run again", || {
        let calls = lines(&vm.path("played"));
        ["runs nginx.service", "runs app.service"]
            .iter()
            .all(|line| calls.contains(&(*line).to_owned()))
            .then_some(())
    });
}
