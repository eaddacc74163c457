//! The script that dpkg runs at a purge, in a mount namespace with an empty `/var/lib`.

use std::process::Stdio;

use crate::support::mounts::Mounts;
use crate::support::pages::root;

/// Runs the script after a preparation; returns what it says. Then `holds` must be true.
fn purged(prepare: &str, holds: &str) -> String {
    let mounts = Mounts::new();
    mounts.run("mount -t tmpfs none /var/lib; mkdir -p /var/lib/private/notbefore /var/lib/notbefore-agent");
    mounts.run("ln -s private/notbefore /var/lib/notbefore; echo > /var/lib/notbefore/store");
    mounts.run("mkdir precious; echo > precious/file; cp -r precious /var/lib/precious");
    mounts.run(prepare);
    let mut script = mounts.command("sh");
    let done =
        script.arg(root().join("dist/debian/postrm")).arg("purge").stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "the purge fails: {said}");
    assert!(mounts.try_run(&format!("! test -e /var/lib/private/notbefore; {holds}")), "not {holds}: {said}");
    said
}

#[test]
fn purge_removes_data_and_survives_mount_points() {
    let gone = "! test -e /var/lib/notbefore-agent && ! test -L /var/lib/notbefore";
    assert_eq!(purged("echo > /var/lib/notbefore-agent/journal", gone), "");

    // A disk for the journal.
    let disk = "mount -t tmpfs none /var/lib/notbefore-agent; echo > /var/lib/notbefore-agent/journal";
    let said = purged(disk, "test -d /var/lib/notbefore-agent && ! test -e /var/lib/notbefore-agent/journal");
    assert_eq!(
        said,
        "notbefore: /var/lib/notbefore-agent is emptied and left, because it is a mount point\n"
    );

    // Another directory of the same file system, mounted deeper.
    let deeper =
        "mkdir /var/lib/notbefore-agent/data; mount --bind /var/lib/precious /var/lib/notbefore-agent/data";
    let said = purged(deeper, "test -e /var/lib/precious/file");
    assert!(said.contains("/var/lib/notbefore-agent is left") && said.contains("agent/data"), "{said}");
}
