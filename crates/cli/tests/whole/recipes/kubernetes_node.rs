//! A Kubernetes node is cordoned, drained and uncordoned; kubectl is played.

use super::vm::{Vm, lines};
use crate::support::wait_for;

/// Plays kubectl for one node: what it is asked is written down, whether the node is cordoned and annotated is kept in
/// files. The cluster is away, and a drain fails, as long as the files that say so are there.
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
    vm.play("kubectl", KUBECTL);
    vm.start(&[]);
    vm
}

/// What kubectl was asked to do, without what it was only asked; and the node's name.
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
fn the_node_is_drained_before_the_event_and_takes_pods_again_after_it() {
    let mut vm = node(&[]);
    let event = vm.announce("reboot");
    vm.approved(&event);
    let (node, told) = (name(), calls(&vm));
    assert_eq!(
        told[0],
        format!("annotate node {node} --overwrite notbefore/cordoned={}", event.to_uppercase())
    );
    assert_eq!(told[1], format!("cordon {node}"));
    let drain =
        told[2].strip_prefix(&format!("drain {node} --ignore-daemonsets --delete-emptydir-data --timeout="));
    let seconds: u64 =
        drain.unwrap_or_else(|| panic!("{told:?}")).strip_suffix('s').unwrap().parse().unwrap();
    assert!((60..=81).contains(&seconds), "nine tenths of a minute and a half: {seconds}");
    assert_eq!(told.len(), 3);

    vm.reboot();
    assert!(cordoned(&vm));
    // The cluster is not to be reached at first: that is tried again, and not taken for "nobody has cordoned it".
    std::fs::write(vm.path("played.away"), "").unwrap();
    vm.complete(&event);
    wait_for("the first try to fail", || vm.path("played.refused").exists().then_some(()));
    assert!(vm.draining());
    std::fs::remove_file(vm.path("played.away")).unwrap();
    vm.back_in_service();
    assert!(!cordoned(&vm));
    assert_eq!(
        calls(&vm)[3..],
        [format!("uncordon {node}"), format!("annotate node {node} notbefore/cordoned-")]
    );
}

/// Pods that may not go are asked again; when the event is called off meanwhile, the node takes pods again. There is
/// little time here, so pods get no more of it than there is.
#[test]
fn a_drain_that_fails_is_repeated_and_a_cancelled_event_is_undone() {
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
    vm.back_in_service();
    assert!(!cordoned(&vm));
}

/// What `kubectl drain` asks the cluster for, beside what the script's own calls do: a right that is missing would show when
/// the first pod has been evicted.
#[test]
fn the_rights_are_what_kubectl_asks_for() {
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
    vm.approved(&event);
    vm.complete(&event);
    vm.back_in_service();
    assert!(cordoned(&vm));
    let told = calls(&vm);
    assert!(told.len() == 1 && told[0].starts_with("drain"), "{told:?}");
}
