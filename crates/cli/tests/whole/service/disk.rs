//! Failing file systems under the running service: full, failing syncs, read-only. Changes are answered 503, polls are
//! served, `/readyz` gives the reason, and the service recovers by itself. No acknowledged change is lost, and none
//! applied twice.
//!
//! The file systems have a few megabytes; `support/mounts.rs` creates them.

use std::net::Ipv4Addr;

use crate::support::mounts::Mounts;
use crate::support::{Answer, Service, wait_for};
use serde_json::Value;

const GUEST: Ipv4Addr = Ipv4Addr::new(127, 1, 40, 1);

/// Adds a large VM, so that a full disk is detected soon.
fn add(service: &Service, n: usize) -> Answer {
    let data = "x".repeat(60_000);
    let body = format!("{{\"vm\":{{\"name\":\"large-{n}\",\"instance\":{{\"user_data\":\"{data}\"}}}}}}");
    service.operator_request("POST", "/v1/vms", &format!("Idempotency-Key: large-{n}\r\n"), &body)
}

fn restart(service: &Service) -> Answer {
    service.operator_request("POST", "/v1/vms/lab/restart", "Idempotency-Key: restart\r\n", "")
}

fn readyz(service: &Service) -> Answer {
    service.operator_request("GET", "/readyz", "", "")
}

fn larges(service: &Service) -> Vec<String> {
    let vms: Value = service.cli_json(&["vm", "list"]);
    let names = vms.as_array().unwrap().iter().map(|vm| vm["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.starts_with("large-")).collect()
}

/// Breaks the disk of a service and repairs it. `says` is the expected message meanwhile.
fn break_and_repair(mounts: &Mounts, message: &str, fail: impl FnOnce(), repair: impl FnOnce()) -> Service {
    let service = Service::start_in(&mounts.data(), &["--always-give-notice"]);
    service.cli(&["vm", "add", "lab", "--address", &GUEST.to_string()]);
    let restarted = restart(&service);
    assert_eq!(restarted.status, 201, "{restarted:?}");
    let document = service.poll(GUEST, "2020-07-01").body;

    fail();
    let mut acknowledged = 0;
    let mut tries = 0..1_000;
    let (refused, ready) = loop {
        tries.next().expect("the disk fails");
        let answer = add(&service, acknowledged);
        if answer.status == 201 {
            acknowledged += 1;
            continue;
        }
        // The service retries by itself, and a single write may succeed: then the next change is refused.
        let ready = readyz(&service);
        if ready.status == 503 {
            break (answer, ready);
        }
    };
    let code = refused.json()["code"].as_str().unwrap().to_owned();
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(["unavailable", "outcome_unknown"].contains(&code.as_str()), "{refused:?}");
    assert!(ready.body.contains(message), "{ready:?}");
    let data = service.data().to_str().unwrap();
    assert!(!ready.body.contains(data), "a caller without a token reads a path: {ready:?}");
    // Guests and operators still read the data, and the process is live.
    assert_eq!(service.poll(GUEST, "2020-07-01").body, document);
    assert_eq!(larges(&service).len(), acknowledged);
    assert_eq!(service.operator_request("GET", "/healthz", "", "").status, 200);
    let approval = service.approve(GUEST, "00000000-0000-4000-8000-000000000000");
    assert_eq!(approval.status, 400, "what needs no writing is answered: {approval:?}");

    repair();
    wait_for("the service to detect it", || (readyz(&service).status == 200).then_some(()));
    // A retry returns the outcome of an applied change, and applies the others now.
    for n in 0..=acknowledged {
        let again = add(&service, n);
        assert_eq!(again.status, 201, "{again:?}");
    }
    assert_eq!(larges(&service).len(), acknowledged + 1);
    assert_eq!(restart(&service).json()["id"], restarted.json()["id"]);
    assert_eq!(service.poll(GUEST, "2020-07-01").body, document);
    service
}

#[test]
fn full_disk_refuses_changes_and_serves_polls() {
    let mounts = Mounts::new();
    mounts.run("mkdir fs; mount -t tmpfs -o size=8m none fs");
    let fill = || mounts.run("cat /dev/zero > fs/fill || true");
    let mut service = break_and_repair(&mounts, "No space left on device", fill, || mounts.run("rm fs/fill"));
    let before = larges(&service);
    service.kill();
    let service = Service::start_in(&mounts.data(), &[]);
    assert_eq!(larges(&service), before);
}

#[test]
fn failing_sync_refuses_changes_and_serves_polls() {
    let mounts = Mounts::new();
    mounts.mount_ext4();
    let fill = || mounts.run("sync -f fs; fstrim fs; cat /dev/zero > back/fill || true");
    let mut service = break_and_repair(&mounts, "I/O error", fill, || mounts.run("rm back/fill"));
    let before = larges(&service);
    assert!(service.terminate().success());
    // A remount shows the device's content, not the page cache.
    wait_for("the file system to be unmounted", || mounts.try_run("umount fs").then_some(()));
    mounts.remount_ext4();
    let service = Service::start_in(&mounts.data(), &[]);
    assert_eq!(larges(&service), before);
}

#[test]
fn read_only_disk_refuses_changes_and_serves_polls() {
    let mounts = Mounts::new();
    mounts.mount_ext4();
    // The kernel remounts read-only when it detects a damaged file system; a normal remount fails while files are open.
    let damage = "echo test > /sys/fs/ext4/$(basename $(findmnt -no SOURCE fs))/trigger_fs_error";
    let repair = || {
        wait_for("the file system to be unmounted", || mounts.try_run("umount fs").then_some(()));
        mounts.remount_ext4();
    };
    let mut service = break_and_repair(&mounts, "Read-only file system", || mounts.run(damage), repair);
    let before = larges(&service);
    service.kill();
    let service = Service::start_in(&mounts.data(), &[]);
    assert_eq!(larges(&service), before);
}
