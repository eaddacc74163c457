//! Recipe load-balancer: leave HAProxy's pool before the event, rejoin after it.

use super::site::LoadBalancedSite;
use super::vm::{VM, Vm, require_file};
use crate::support::wait_for;

/// HAProxy, and the recipe that uses its admin socket.
fn balanced() -> LoadBalancedSite {
    require_file("/usr/bin/socat", "socat");
    let mut site = LoadBalancedSite::new(Vm::new("load-balancer", &[]), "", "");
    site.vm.start(&[("/run/haproxy/admin.sock", site.socket.to_str().unwrap())]);
    site.wait_until_both_serve();
    site
}

/// A current request finishes, new ones go to the other server, and a restart of the agent changes nothing.
#[test]
fn current_requests_finish_and_new_ones_go_elsewhere() {
    let mut site = balanced();
    let request = site.start_slow_request();
    let event = site.vm.announce("reboot");
    site.wait_until_other_serves();
    assert!(site.vm.draining());
    // Requests go to the other server before the step ends.
    wait_for("the agent to wait", || (site.vm.started_steps("finish-requests") == 1).then_some(()));
    site.vm.restart_agent();
    wait_for("the step to start again", || (site.vm.started_steps("finish-requests") == 2).then_some(()));
    assert_eq!(site.vm.status(&event), "Scheduled", "a request is still in progress");

    site.servers[0].release();
    assert_eq!(request.join().unwrap(), "web-0", "the server that accepted the request finishes it");
    site.vm.wait_for_approval(&event);
    site.vm.reboot();
    site.wait_until_other_serves();
    site.vm.complete(&event);
    site.vm.wait_until_restored();
    site.wait_until_both_serve();
}

#[test]
fn cancelled_event_is_undone() {
    let site = balanced();
    let request = site.start_slow_request();
    let event = site.vm.announce("redeploy");
    site.wait_until_other_serves();
    site.vm.cancel(&event);
    site.vm.wait_until_restored();
    site.wait_until_both_serve();
    site.servers[0].release();
    assert_eq!(request.join().unwrap(), "web-0");
}

#[test]
fn manually_drained_server_stays_drained() {
    let site = balanced();
    site.admin("set server web/web-0 state maint");
    let event = site.vm.announce("reboot");
    site.vm.wait_for_approval(&event);
    site.vm.complete(&event);
    site.vm.wait_until_restored();
    assert!(
        site.admin("show stat")
            .lines()
            .any(|line| line.starts_with("web,web-0,") && line.contains(",MAINT,"))
    );
    site.wait_until_other_serves();
}

#[test]
fn short_freeze_is_not_drained() {
    let site = balanced();
    let event = site.vm.announced(&["event", "schedule", "--type", "freeze", "--duration", "9", VM]);
    site.vm.wait_for_approval(&event);
    assert!(!site.vm.draining());
    site.wait_until_both_serve();
}

/// Without confirmation from HAProxy the VM does not approve.
#[test]
fn without_haproxy_the_event_is_not_approved() {
    let mut site = balanced();
    site.stop();
    let event = site.vm.announce("reboot");
    site.vm.wait_for_log("HAProxy does not answer");
    site.vm.wait_for_log("the Reboot is not approved");
    assert_eq!(site.vm.status(&event), "Scheduled");
}

#[test]
fn unreachable_haproxy_is_named() {
    let site = balanced();
    let socket = format!("UNIX-CONNECT:{}", site.socket.display());
    let refused = |args: [&str; 4], why: &str| {
        let output = site.vm.script("haproxy-server", &args);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && stderr.contains(why), "{args:?}: {stderr}");
    };
    refused(["drain", &socket, "web", "nobody"], "knows no web/nobody");
    refused(["idle", &socket, "web", "nobody"], "knows no web/nobody");
    refused(["drain", "UNIX-CONNECT:/nowhere", "web", "web-0"], "does not answer at UNIX-CONNECT:/nowhere");
    refused(["idle", "UNIX-CONNECT:/nowhere", "web", "web-0"], "does not answer at UNIX-CONNECT:/nowhere");
}

/// A hanging HAProxy accepts the command and answers nothing, like a successful command.
#[test]
fn hanging_haproxy_withholds_approval() {
    let site = balanced();
    let socket = format!("UNIX-CONNECT:{}", site.socket.display());
    site.vm.run_script("haproxy-server", &["drain", &socket, "web", "web-0"]);
    site.freeze(true);
    let output = site.vm.script("haproxy-server", &["ready", &socket, "web", "web-0"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && stderr.contains("does not answer"), "{stderr}");
    site.freeze(false);
    site.vm.run_script("haproxy-server", &["ready", &socket, "web", "web-0"]);
    site.wait_until_both_serve();
}
