//! Recipe load-balancer: leave HAProxy's pool before the event, rejoin after it.

use super::site::Balanced;
use super::vm::{VM, Vm, need};
use crate::support::wait_for;

/// HAProxy, and the recipe that uses its admin socket.
fn balanced() -> Balanced {
    need("/usr/bin/socat", "socat");
    let mut site = Balanced::new(Vm::new("load-balancer", &[]), "", "");
    site.vm.start(&[("/run/haproxy/admin.sock", site.socket.to_str().unwrap())]);
    site.both_serve();
    site
}

/// A current request finishes, new ones go to the other server, and a restart of the agent changes nothing.
#[test]
fn current_requests_finish_and_new_ones_go_elsewhere() {
    let mut site = balanced();
    let request = site.under_way();
    let event = site.vm.announce("reboot");
    site.only_the_other_serves();
    assert!(site.vm.draining());
    // Requests go to the other server before the step ends.
    wait_for("the agent to wait", || (site.vm.begun("finish-requests") == 1).then_some(()));
    site.vm.restart_agent();
    wait_for("it to go on waiting", || (site.vm.begun("finish-requests") == 2).then_some(()));
    assert_eq!(site.vm.status(&event), "Scheduled", "a request is still in progress");

    site.servers[0].let_go();
    assert_eq!(request.join().unwrap(), "web-0", "it was finished where it was begun");
    site.vm.approved(&event);
    site.vm.reboot();
    site.only_the_other_serves();
    site.vm.complete(&event);
    site.vm.back_in_service();
    site.both_serve();
}

#[test]
fn cancelled_event_is_undone() {
    let site = balanced();
    let request = site.under_way();
    let event = site.vm.announce("redeploy");
    site.only_the_other_serves();
    site.vm.cancel(&event);
    site.vm.back_in_service();
    site.both_serve();
    site.servers[0].let_go();
    assert_eq!(request.join().unwrap(), "web-0");
}

#[test]
fn manually_drained_server_stays_drained() {
    let site = balanced();
    site.admin("set server web/web-0 state maint");
    let event = site.vm.announce("reboot");
    site.vm.approved(&event);
    site.vm.complete(&event);
    site.vm.back_in_service();
    assert!(
        site.admin("show stat")
            .lines()
            .any(|line| line.starts_with("web,web-0,") && line.contains(",MAINT,"))
    );
    site.only_the_other_serves();
}

#[test]
fn short_freeze_is_not_drained() {
    let site = balanced();
    let event = site.vm.announced(&["event", "schedule", "--type", "freeze", "--duration", "9", VM]);
    site.vm.approved(&event);
    assert!(!site.vm.draining());
    site.both_serve();
}

/// Without confirmation from HAProxy the VM does not approve.
#[test]
fn without_haproxy_the_event_is_not_approved() {
    let mut site = balanced();
    site.stop();
    let event = site.vm.announce("reboot");
    site.vm.logs("HAProxy does not answer");
    site.vm.logs("the Reboot is not approved");
    assert_eq!(site.vm.status(&event), "Scheduled");
}

#[test]
fn unreachable_haproxy_is_named() {
    let site = balanced();
    let socket = format!("UNIX-CONNECT:{}", site.socket.display());
    let refused = |words: [&str; 4], why: &str| {
        let said = site.vm.script("haproxy-server", &words);
        let complaint = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(!said.status.success() && complaint.contains(why), "{words:?}: {complaint}");
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
    site.vm.does("haproxy-server", &["drain", &socket, "web", "web-0"]);
    site.freeze(true);
    let said = site.vm.script("haproxy-server", &["ready", &socket, "web", "web-0"]);
    let complaint = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(!said.status.success() && complaint.contains("does not answer"), "{complaint}");
    site.freeze(false);
    site.vm.does("haproxy-server", &["ready", &socket, "web", "web-0"]);
    site.both_serve();
}
