//! Fleet files.
//!
//! Invariants: an accepted file has each scope once, and no more VMs than a file of that size could list, despite
//! anchors. The same fleet in plain form parses to the same value. libFuzzer's limits, which `./dev fuzz` sets low,
//! bound time and memory.

use std::collections::HashSet;
use std::path::Path;

use crate::fleet_file::{FileScope, parse};
use crate::planted_bug;
use serde_json::{Value, json};

pub fn check(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Ok(scopes) = parse(Path::new("fleet.yaml"), text) else { return false };
    let paths: HashSet<String> = scopes.iter().map(|scope| scope.display().to_ascii_lowercase()).collect();
    assert_eq!(paths.len(), scopes.len(), "a scope twice");
    let vms: usize = scopes.iter().map(|scope| scope.spec.vms.len()).sum();
    assert!(scopes.len() + vms <= text.len().max(100_000), "{vms} VMs in {} bytes", text.len());
    let plain = json!({ "scopes": scopes.iter().map(written).collect::<Vec<_>>() }).to_string();
    let again = parse(Path::new("plain.yaml"), &plain).unwrap_or_else(|error| panic!("{error:#}: {plain}"));
    let same = |a: &FileScope, b: &FileScope| a.path == b.path && a.spec == b.spec;
    assert!(scopes.iter().zip(&again).all(|(a, b)| same(a, b)) && again.len() == scopes.len(), "{plain}");
    let notice = |scope: &FileScope| scope.spec.policy.terminate_notification_seconds;
    planted_bug(scopes.iter().filter_map(notice).any(|seconds| seconds > 600));
    true
}

fn written(scope: &FileScope) -> Value {
    let [subscription, group, name] = &scope.path;
    let policy = &scope.spec.policy;
    json!({
        "name": name,
        "kind": scope.spec.kind,
        "subscription": subscription,
        "group": group,
        "automatically_approve_reboot": policy.automatically_approve_reboot,
        "automatically_approve_redeploy": policy.automatically_approve_redeploy,
        "terminate_notification": policy.terminate_notification_seconds.map(|seconds| format!("{seconds}s")),
        "vms": scope.spec.vms,
    })
}
