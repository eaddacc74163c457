//! Visibility: all guests of a scope see its events, and no other caller does.

use std::net::Ipv4Addr;

use notbefore_wire::guest::version::EventsVersion;

use crate::support;
use crate::support::{Answer, Service, first_event};

fn address(group: u8, n: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 1, group, n)
}

fn events(answer: &Answer) -> usize {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["Events"].as_array().expect("a document has Events").len()
}

/// A hundred VMs of an availability set, and a hundred standalone zonal VMs.
fn fleet_of_two_hundred() -> String {
    let mut yaml = "scopes:\n  - name: set\n    kind: availability-set\n    vms:\n".to_owned();
    for n in 0..100 {
        yaml += &format!(
            "      - {{ name: set-{n}, update_domain: {}, addresses: [{}] }}\n",
            n % 5,
            address(1, n)
        );
    }
    for n in 0..100 {
        yaml += &format!(
            "  - name: zonal-{n}\n    kind: standalone\n    vms: [ {{ name: zonal-{n}, zone: \"1\", addresses: [{}] }} ]\n",
            address(2, n)
        );
    }
    yaml
}

#[test]
fn scale_set_sees_all_members_and_zonal_vm_only_itself() {
    let service = Service::start(&[]);
    let stdout = service.apply_fleet(&fleet_of_two_hundred());
    assert_eq!(stdout.lines().count(), 102, "one for each scope, and the totals");
    assert!(stdout.starts_with("default/default/set: created, 100 VMs\n"), "{stdout}");

    service.cli(&["event", "schedule", "--type", "reboot", "set-7"]);
    service.cli(&["event", "schedule", "--type", "reboot", "zonal-7"]);
    for n in 0..100 {
        let (set, zonal) =
            (service.poll(address(1, n), "2020-07-01"), service.poll(address(2, n), "2020-07-01"));
        assert_eq!(events(&set), 1, "set-{n}");
        assert_eq!(set.json()["Events"][0]["Resources"][0], "set-7");
        assert_eq!(events(&zonal), usize::from(n == 7), "zonal-{n}");
    }
    // Any member of the set may approve for all members.
    let id = first_event(&service.poll(address(1, 42), "2020-07-01").json());
    assert_eq!(service.approve(address(1, 42), &id).status, 200);
    assert_eq!(service.poll(address(1, 99), "2020-07-01").json()["Events"][0]["EventStatus"], "Started");
}

#[test]
fn scopes_are_isolated() {
    let service = Service::start(&[]);
    service.apply_fleet(
        "scopes:\n  - { name: a, kind: standalone, vms: [ { name: a, spot: true, addresses: [127.1.3.1] } ] }\n  - { name: b, kind: standalone, vms: [ { name: b, addresses: [127.1.3.2] } ] }\n",
    );
    let (a, b) = (address(3, 1), address(3, 2));
    service.cli(&["vm", "evict", "a"]);
    let foreign = first_event(&service.poll(a, "2020-07-01").json());

    for version in EventsVersion::ALL.map(EventsVersion::as_str) {
        assert_eq!(service.poll(b, version).body, "{\"DocumentIncarnation\":1,\"Events\":[]}", "{version}");
    }
    // An id of another scope and an unknown id get identical responses.
    let unknown = "00000000-0000-4000-8000-000000000000";
    let (refused_foreign, refused_unknown) = (service.approve(b, &foreign), service.approve(b, unknown));
    assert_eq!((refused_foreign.status, &refused_foreign.body), (400, &refused_unknown.body));
    assert_eq!(refused_unknown.status, 400);
    // Also together with a valid id: then nothing is approved.
    service.cli(&["vm", "restart", "b", "--in", "1h"]);
    assert_eq!(events(&service.poll(b, "2020-07-01")), 1, "b has polled, so it gets its notice");
    let own = first_event(&service.poll(b, "2020-07-01").json());
    let both = format!("{{\"StartRequests\":[{{\"EventId\":\"{own}\"}},{{\"EventId\":\"{foreign}\"}}]}}");
    let target = "/metadata/scheduledevents?api-version=2020-07-01";
    assert_eq!(service.guest_request(b, "POST", target, &both).status, 400);
    assert_eq!(service.poll(b, "2020-07-01").json()["Events"][0]["EventStatus"], "Scheduled");
    // Headers that claim another identity change nothing.
    for header in
        ["X-Instance-ID: a", "X-Instance-Id-Signature: x", "X-Real-IP: 127.1.3.1", "Forwarded: for=127.1.3.1"]
    {
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: 127.1.3.1\r\nMetadata: true\r\n{header}\r\nConnection: close\r\n\r\n"
        );
        let answer = support::exchange(b.into(), service.guest, request.as_bytes());
        assert!(!answer.body.contains(&foreign), "{header}: {answer:?}");
    }
    assert_eq!(service.poll(a, "2020-07-01").json()["Events"][0]["EventStatus"], "Scheduled");
    // Callers outside the fleet learn nothing.
    let unknown_caller = address(3, 9);
    for path in
        ["/metadata/scheduledevents?api-version=2020-07-01", "/metadata/instance?api-version=2021-02-01", "/"]
    {
        assert_eq!(service.guest_request(unknown_caller, "GET", path, "").status, 403, "{path}");
    }
    assert_eq!(
        service.poll(Ipv4Addr::LOCALHOST, "2020-07-01").status,
        403,
        "with a fleet, loopback is an unknown caller"
    );
}

#[test]
fn moved_vm_keeps_open_connections() {
    use std::io::{Read, Write};
    let service = Service::start(&[]);
    service.cli(&["vm", "add", "one", "--address", "127.1.4.1"]);
    let mut stream = support::connect(address(4, 1).into(), service.guest).unwrap();
    let mut ask = || {
        let request = "GET /metadata/instance/compute/name?api-version=2021-02-01&format=text HTTP/1.1\r\nHost: x\r\nMetadata: true\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut buffer = [0; 4096];
        let n = stream.read(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..n]).into_owned()
    };
    assert!(ask().ends_with("\r\n\r\none"));
    service.cli(&["vm", "remove", "--yes", "one"]);
    service.cli(&["vm", "add", "two", "--address", "127.1.4.1"]);
    assert!(ask().ends_with("\r\n\r\ntwo"), "the same connection, another VM");
}

/// A VM loses its address between the head and the body of its approval.
#[test]
fn approval_after_address_removal_is_refused() {
    use std::io::{Read, Write};
    let service = Service::start(&[]);
    let fleet = |at: Ipv4Addr| {
        service.apply_fleet(&format!(
            "scopes:\n  - {{ name: web, kind: availability-set, vms: [ {{ name: web-1, addresses: [{at}] }} ] }}\n"
        ))
    };
    let (before, after) = (address(8, 1), address(8, 2));
    fleet(before);
    service.cli(&["event", "schedule", "--type", "reboot", "web-1", "--in", "1h"]);
    let event = first_event(&service.poll(before, "2020-07-01").json());
    let body = format!("{{\"StartRequests\":[{{\"EventId\":\"{event}\"}}]}}");
    let head = format!(
        "POST /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = support::connect(before.into(), service.guest).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    fleet(after);
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let events = service.cli_json(&["event", "list"]);
    assert_eq!(events[0]["status"], "Scheduled", "{events}");
    // The same approval from the VM's new address is accepted.
    assert_eq!(service.approve(after, &event).status, 200);
}

#[test]
fn placement_groups_name_scale_set_and_resource_ids_are_unique() {
    let service = Service::start(&[]);
    let mut yaml = "scopes:\n".to_owned();
    for (n, (scope, kind, vm)) in [
        ("pg-1", "scale-set", "batch_0"),
        ("pg-2", "scale-set", "batch_1"),
        ("flex", "scale-set", "own-name"),
        ("blue", "availability-set", "web-0"),
        ("green", "availability-set", "WEB-0"),
        ("web-0", "standalone", "web-0"),
        ("x/alone", "standalone", "web-0"),
        ("pg-3", "scale-set", "pair_7"),
        ("pg-4", "scale-set", "pair_7"),
    ]
    .into_iter()
    .enumerate()
    {
        let (group, scope) = scope.split_once('/').unwrap_or(("default", scope));
        let address = address(6, u8::try_from(n).unwrap());
        yaml += &format!(
            "  - {{ name: {scope}, group: {group}, kind: {kind}, vms: [ {{ name: {vm}, addresses: [{address}] }} ] }}\n"
        );
    }
    service.apply_fleet(&yaml);
    let target = "/metadata/instance/compute?api-version=2021-02-01";
    let metadata: Vec<[String; 3]> = (0..9)
        .map(|n| {
            let compute = service.guest_request(address(6, n), "GET", target, "").json();
            ["vmScaleSetName", "placementGroupId", "resourceId"]
                .map(|key| compute[key].as_str().unwrap().to_owned())
        })
        .collect();
    let group = "/subscriptions/default/resourceGroups/default/providers/Microsoft.Compute";
    for (one, [set, placement_group, id]) in metadata.iter().zip([
        ["batch", "pg-1", "virtualMachineScaleSets/batch/virtualMachines/0"],
        ["batch", "pg-2", "virtualMachineScaleSets/batch/virtualMachines/1"],
        ["flex", "flex", "virtualMachines/own-name"],
        ["", "", "virtualMachines/blue~web-0"],
        ["", "", "virtualMachines/green~WEB-0"],
        ["", "", "virtualMachines/web-0~web-0"],
    ]) {
        assert_eq!(*one, [set.to_owned(), placement_group.to_owned(), format!("{group}/{id}")]);
    }
    assert!(
        metadata[6][2].ends_with("/resourceGroups/x/providers/Microsoft.Compute/virtualMachines/web-0"),
        "{metadata:?}"
    );
    let ids: std::collections::HashSet<String> =
        metadata.iter().map(|[_, _, id]| id.to_ascii_lowercase()).collect();
    assert_eq!(ids.len(), metadata.len(), "{metadata:?}");
}

#[test]
fn bound_listeners_need_no_addresses() {
    let service =
        Service::start(&["--guest-vm", "web-0=127.0.0.1:0", "--guest-vm", "shop/web-1=127.0.0.1:0"]);
    let name = |at| {
        let request = "GET /metadata/instance/compute/name?api-version=2021-02-01&format=text HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nConnection: close\r\n\r\n";
        support::exchange(Ipv4Addr::LOCALHOST.into(), at, request.as_bytes()).body
    };
    assert_eq!(
        (name(service.guest_vms[0]).as_str(), name(service.guest_vms[1]).as_str()),
        ("web-0", "web-1")
    );
    // Their scopes are enabled from the start, so a restart has notice although no guest has polled.
    let stdout = service.cli(&["vm", "restart", "web-0"]);
    assert!(stdout.contains("(in 15 min)"), "{stdout}");
    let listed = service.cli_json(&["event", "list"]);
    assert_eq!(listed[0]["status"], "Scheduled");
}

#[test]
fn every_event_type_works_on_bound_listener_and_first_run_vm() {
    let bound = Service::start(&["--guest-vm", "web-0=127.0.0.1:0"]);
    let first_run = Service::start(&[]);
    let host = first_run.cli_json(&["vm", "list"])[0]["name"].as_str().unwrap().to_owned();
    for (service, vm) in [(&bound, "web-0"), (&first_run, host.as_str())] {
        assert_eq!(service.cli_json(&["vm", "show", vm])["spot"], true);
        let made = ["freeze", "reboot", "redeploy", "preempt", "terminate"]
            .map(|kind| service.cli_json(&["event", "schedule", "--type", kind, vm]));
        let listed = service.cli_json(&["event", "list"]);
        let events = listed.as_array().unwrap();
        assert_eq!(events.len(), 5);
        assert!(events.iter().all(|event| event["status"] == "Scheduled"), "{listed}");
        let time = |key: &str| made[4][key].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        let notice = time("not_before").duration_since(time("requested_at")).as_secs();
        assert!((300..=301).contains(&notice), "{}", made[4]);
    }
}

#[test]
fn banner_shows_guest_listener_only_if_a_vm_can_use_it() {
    let flags = ["--guest-vm", "web-0=127.0.0.1:0", "--guest", "tenant=127.0.0.1:0"];
    let service = Service::start(&flags);
    assert_eq!((service.guest.port(), service.guest_vms.len()), (0, 1));
    service.cli(&["vm", "add", "other", "--address", "127.1.7.1"]);
    let service = service.restart();
    assert_eq!(service.guest.port(), 0, "that VM's network is another");
    service.cli(&["vm", "add", "tenants", "--address", "Tenant/127.1.7.1"]);
    let service = service.restart();
    assert_eq!(service.poll(address(7, 1), "2020-07-01").status, 200);
}

#[test]
fn only_spot_vms_are_evicted_without_force() {
    let service = Service::start(&[]);
    service.apply_fleet(
        "scopes:\n  - { name: set, kind: availability-set, vms: [ { name: plain }, { name: spare, spot: true } ] }\n",
    );
    for args in [
        &["vm", "evict", "plain"][..],
        &["event", "schedule", "--type", "preempt", "plain"],
        &["event", "schedule", "--cause", "eviction", "spare", "plain"],
    ] {
        let stderr = service.cli_refused(args);
        assert!(stderr.contains("VM plain is not a Spot VM") && stderr.contains("--force"), "{stderr}");
    }
    let evict = |body: &str| service.operator_request("POST", "/v1/vms/plain/evict", "", body);
    let refused = evict("");
    assert_eq!((refused.status, refused.json()["code"].as_str()), (409, Some("not_spot")));
    assert_eq!(service.cli_json(&["event", "list"]).as_array().unwrap().len(), 0);
    assert_eq!(evict("{\"force\":true}").status, 201);
    service.cli(&["vm", "evict", "plain", "--force"]);
    service.cli(&["event", "schedule", "--type", "preempt", "--force", "plain", "spare"]);
    service.cli(&["vm", "evict", "spare"]);
    assert_eq!(service.cli_json(&["event", "list"]).as_array().unwrap().len(), 5);
}
