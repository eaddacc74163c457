//! Did they hear? Who listens, as an operator is told.

mod support;

use std::net::Ipv4Addr;

use serde_json::Value;
use support::Service;

const A: Ipv4Addr = Ipv4Addr::new(127, 1, 40, 1);
const NEWEST: &str = "2020-07-01";

/// Two VMs of an availability set, in two update domains.
const SET: &str = "scopes:\n  - name: web\n    kind: availability-set\n    vms:\n      - { name: web-0, addresses: [127.1.40.1] }\n      - { name: web-1, update_domain: 1, addresses: [127.1.40.2] }\n";

fn vm(service: &Service, name: &str) -> Value {
    service.cli_json(&["vm", "show", name])
}

fn metric(service: &Service, name: &str) -> String {
    let page = service.operator_request("GET", "/metrics", "", "").body;
    let line = page.lines().find(|line| line.starts_with(name));
    let (_, value) =
        line.and_then(|line| line.rsplit_once(' ')).unwrap_or_else(|| panic!("no {name} in {page}"));
    value.to_owned()
}

#[test]
fn an_operator_sees_who_listens() {
    let service = Service::start(&[]);
    service.apply_fleet(SET);
    assert_eq!(vm(&service, "web-0")["listening"], "no", "it is new, so nothing was missed");
    assert_eq!(service.poll(A, "2019-08-01").status, 200);
    let heard = vm(&service, "web-0");
    assert_eq!((&heard["listening"], &heard["last_poll_version"]), (&"yes".into(), &"2019-08-01".into()));
    assert!(heard["last_poll_at"].is_string(), "{heard}");
    assert_eq!(
        vm(&service, "web-1")["listening"],
        "no",
        "each VM for itself, although they share a document"
    );
    assert_eq!(metric(&service, "notbefore_vms_listening{listening=\"yes\"}"), "1");

    // A change of the scope, and of the VM itself, forgets nothing.
    service.cli(&["vm", "add", "web-2", "--scope", "web"]);
    service.apply_fleet(&SET.replace("{ name: web-0,", "{ name: web-0, host: h1,"));
    assert_eq!(vm(&service, "web-0")["last_poll_at"], heard["last_poll_at"]);
    let shown = service.cli(&["vm", "list"]);
    assert!(shown.lines().any(|line| line.contains("/web-0 ") && line.ends_with("yes")), "{shown}");

    // Whoever has not polled since a start is not accused of silence.
    let service = service.restart();
    assert_eq!(vm(&service, "web-0")["listening"], "unknown");
    assert_eq!(metric(&service, "notbefore_vms_listening{listening=\"unknown\"}"), "3");
    assert!(service.cli(&["vm", "show", "web-0"]).contains("unknown: it has not polled since"));
    assert_eq!(service.poll(A, NEWEST).status, 200);
    assert_eq!(vm(&service, "web-0")["listening"], "yes");
}
