//! Recipe kubernetes-node: a node is cordoned, drained and uncordoned, with a fake kubectl.

use super::vm::{Vm, lines};
use crate::support::wait_for;

/// Fake kubectl for one node: records calls, and keeps cordon and annotation in files. While certain files exist, the
/// cluster is unreachable or a drain fails.
const KUBECTL: &str = r#"#!/bin/sh
set -eu
echo "$*" >>"$PLAYED"
if [ -e "$PLAYED.away" ]; then
  : >"$PLAYED.refused"
  echo 'The connection to the server was refused' >&2
  exit 1
fi
case "$1 $*" in
  'get '*unschedulable*) [ ! -e "$PLAYED.cordoned" ] || echo true ;;
  'get '*annotations*) cat "$PLAYED.annotation" 2>/dev/null || true ;;
  'annotate '*=*) echo "${5#*=}" >"$PLAYED.annotation" ;;
  'annotate '*-) rm -f "$PLAYED.annotation" ;;
  'cordon '*) : >"$PLAYED.cordoned" ;;
  'uncordon '*) rm -f "$PLAYED.cordoned" ;;
  'drain '*)
    if [ -e "$PLAYED.budget" ]; then
      echo 'error when evicting pods: Cannot evict pod as it would violate the pod disruption budget' >&2
      exit 1
    fi
    ;;
  *) echo "not played: $*" >&2; exit 1 ;;
esac
"#;

fn node(flags: &[&str]) -> Vm {
    let mut vm = Vm::new("kubernetes-node", flags);
    vm.install_fake("kubectl", KUBECTL);
    vm.start(&[]);
    vm
}

/// Recorded changes, without queries and without the node's name.
fn calls(vm: &Vm) -> Vec<String> {
    lines(&vm.path("played")).into_iter().filter(|call| !call.starts_with("get ")).collect()
}

fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().to_lowercase()
}

fn cordoned(vm: &Vm) -> bool {
    vm.path("played.cordoned").exists()
}

#[test]
fn node_is_drained_before_event_and_uncordoned_after() {
    let mut vm = node(&[]);
    let event = vm.announce("reboot");
    vm.wait_for_approval(&event);
    let (node, recorded) = (name(), calls(&vm));
    assert_eq!(
        recorded[0],
        format!("annotate node {node} --overwrite notbefore/cordoned={}", event.to_uppercase())
    );
    assert_eq!(recorded[1], format!("cordon {node}"));
    let drain = recorded[2]
        .strip_prefix(&format!("drain {node} --ignore-daemonsets --delete-emptydir-data --timeout="));
    let seconds: u64 =
        drain.unwrap_or_else(|| panic!("{recorded:?}")).strip_suffix('s').unwrap().parse().unwrap();
    assert!((60..=81).contains(&seconds), "nine tenths of a minute and a half: {seconds}");
    assert_eq!(recorded.len(), 3);

    vm.reboot();
    assert!(cordoned(&vm));
    // The cluster is unreachable at first: this is retried, and not taken for "not cordoned".
    std::fs::write(vm.path("played.away"), "").unwrap();
    vm.complete(&event);
    wait_for("the first try to fail", || vm.path("played.refused").exists().then_some(()));
    assert!(vm.draining());
    std::fs::remove_file(vm.path("played.away")).unwrap();
    vm.wait_until_restored();
    assert!(!cordoned(&vm));
    assert_eq!(
        calls(&vm)[3..],
        [format!("uncordon {node}"), format!("annotate node {node} notbefore/cordoned-")]
    );
}

/// Evictions that are refused are retried. If the event is cancelled meanwhile, the node is uncordoned. The time is
/// short here, and limits the pods' grace period.
#[test]
fn failed_drain_is_retried_and_cancelled_event_is_undone() {
    let vm = node(&["--notice", "0.05"]);
    std::fs::write(vm.path("played.budget"), "").unwrap();
    let event = vm.announce("reboot");
    let drain = wait_for("the drain to fail", || {
        calls(&vm).iter().find(|call| call.starts_with("drain") && call.contains("--grace-period=")).cloned()
    });
    let seconds = |flag: &str| -> u64 {
        let value = drain.split_once(flag).unwrap().1.split(' ').next().unwrap();
        value.trim_end_matches('s').parse().unwrap()
    };
    assert_eq!(seconds("--grace-period=") + 5, seconds("--timeout="), "a pod may use all that it is given");
    assert_eq!(vm.status(&event), "Scheduled");
    vm.cancel(&event);
    vm.wait_until_restored();
    assert!(!cordoned(&vm));
}

/// Requests of `kubectl drain`, besides the script's own calls. A missing right would show only at the first eviction.
#[test]
fn rbac_rules_match_kubectl_requests() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recipes/kubernetes-node/rights.yaml");
    let page = std::fs::read_to_string(page).unwrap();
    let role = page.split("---\n").nth(1).unwrap();
    let after = |key: &str| -> Vec<String> {
        role.lines().filter_map(|line| line.trim().strip_prefix(key)).map(str::to_owned).collect()
    };
    assert_eq!(after("resources: "), ["[nodes]", "[pods]", "[pods/eviction]", "[daemonsets]"]);
    assert_eq!(after("verbs: "), ["[get, patch]", "[get, list]", "[create]", "[get]"]);
}

#[test]
fn node_cordoned_by_others_stays_cordoned() {
    let vm = node(&[]);
    std::fs::write(vm.path("played.cordoned"), "").unwrap();
    let event = vm.announce("redeploy");
    vm.wait_for_approval(&event);
    vm.complete(&event);
    vm.wait_until_restored();
    assert!(cordoned(&vm));
    let calls = calls(&vm);
    assert!(calls.len() == 1 && calls[0].starts_with("drain"), "{calls:?}");
}
