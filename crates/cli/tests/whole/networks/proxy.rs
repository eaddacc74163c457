//! haproxy on the hypervisor, the service on another machine. Callers other than the proxy, or without a valid
//! signature, are refused.

use std::path::Path;

use super::machine::{ADDRESS, Machine, each_guest_is_its_own_vm};
use crate::support::{wait_for, write_program};

const SERVICE: &str = "10.9.0.1";

/// The service's machine, linked to the hypervisor.
fn service_of(host: &Machine) -> Machine {
    let service = Machine::new();
    let link = format!("link add mgmt type veth peer name eth0 netns {}", service.namespace.name());
    host.namespace.ip(&link);
    host.namespace.ip("addr add 10.9.0.2/24 dev mgmt");
    host.namespace.ip("link set mgmt up");
    service.namespace.ip("addr add 10.9.0.1/24 dev eth0");
    service.namespace.ip("link set eth0 up");
    service
}

/// A signature made with `openssl`, with one line of the secret file.
fn signature(service: &Machine, line: u8, id: &str) -> String {
    let key = format!("$(sed -n {line}p proxy.secret)");
    let text = format!("printf %s {id} | openssl dgst -sha256 -hmac \"{key}\" | sed 's/.* //'");
    String::from_utf8(service.shell(&text).output().unwrap().stdout).unwrap().trim().to_owned()
}

fn copy_secret(from: &Machine, to: &Machine) {
    std::fs::copy(from.dir.path().join("proxy.secret"), to.dir.path().join("proxy.secret")).unwrap();
}

/// `systemctl reload`: SIGHUP to the service.
fn play_systemctl(dir: &Path, service: u32) {
    let script = format!("#!/bin/sh\n[ \"$*\" = 'reload notbefore' ] && kill -HUP {service}\n");
    write_program(&dir.join("systemctl"), &script);
}

#[test]
fn signing_proxy() {
    let (mut host, guests) = Machine::with_guests();
    let mut service = service_of(&host);
    service.run("proxy-secret");
    let process = service.serve("proxy-serve");
    play_systemctl(service.dir.path(), process);
    for vm in ["web-0", "web-1"] {
        service.cli(&["vm", "add", vm]);
    }
    // The proxy's address is also a VM's address; this must have no effect.
    service.cli(&["vm", "add", "bastion", "--address", "10.9.0.2"]);
    let ids = ["web-0", "web-1"].map(|vm| service.id(vm));
    copy_secret(&service, &host);
    let maps =
        host.shell(super::page::block("proxy")).env("WEB_0", &ids[0]).env("WEB_1", &ids[1]).output().unwrap();
    assert!(maps.status.success(), "{maps:?}");
    host.start("proxy-run", "");
    host.wait_for_socket("-Hltn", "169.254.169.254:80");
    each_guest_is_its_own_vm(&service, &guests, [("web-0", "10.9.0.2"), ("web-1", "10.9.0.2")]);

    let id = |id: &str| format!("X-Instance-ID: {id}");
    let sign = |signature: &str| format!("X-Instance-ID-Signature: {signature}");
    let proofs = [0, 1].map(|vm: usize| sign(&signature(&service, 1, &ids[vm])));
    let forged = sign(&"0".repeat(64));

    // A guest that sends another VM's id and signature is itself behind the proxy, and unknown without it.
    let claims = ["-H", &id(&ids[1]), "-H", &proofs[1]];
    let event =
        service.cli(&["vm", "restart", "web-1"])["targets"][0]["event"].as_str().unwrap().to_uppercase();
    assert!(!guests[0].request(ADDRESS, &claims).unwrap().1.contains(&event));
    assert!(guests[1].request(ADDRESS, &[]).unwrap().1.contains(&event));
    let sent_on = ["-H", "X-Forwarded-For: 192.0.2.1"];
    assert_eq!(guests[0].request(ADDRESS, &sent_on).unwrap().0, 400, "sent on by something in the guest");
    host.shell("sysctl -q -w net.ipv4.ip_forward=1").status().unwrap();
    service.namespace.ip("route add 10.0.0.0/24 via 10.9.0.2");
    assert_eq!(guests[0].request(SERVICE, &claims).unwrap().0, 403, "replayed from a guest's own address");
    assert_eq!(service.request(SERVICE, &claims).unwrap().0, 403, "replayed beside the service");

    // From the proxy's address the signature decides.
    let status = |host: &Machine, args: &[&str]| host.request(SERVICE, args).unwrap().0;
    assert_eq!(status(&host, &claims), 200, "the same request from the same address is the same request");
    for (name, args) in [
        ("nothing", &[] as &[&str]),
        ("no proof", &["-H", &id(&ids[0])]),
        ("no id", &["-H", &proofs[0]]),
        ("a forged proof", &["-H", &id(&ids[0]), "-H", &forged]),
        ("the proof of another", &["-H", &id(&ids[0]), "-H", &proofs[1]]),
        ("two ids", &["-H", &id(&ids[0]), "-H", &id(&ids[1]), "-H", &proofs[0]]),
    ] {
        assert_eq!(status(&host, args), 403, "{name}");
    }

    // Rotate the secret while guests poll.
    service.run("proxy-rotate-begin");
    let proof = sign(&signature(&service, 2, &ids[0]));
    let new = ["-H", &id(&ids[0]), "-H", &proof];
    wait_for("the new secret to count", || (status(&host, &new) == 200).then_some(()));
    assert_eq!(guests[0].name(), "web-0", "and so does the old one");
    copy_secret(&service, &host);
    host.end_last();
    host.start("proxy-run", "");
    host.wait_for_socket("-Hltn", "169.254.169.254:80");
    assert_eq!(guests[0].name(), "web-0");
    service.run("proxy-rotate-end");
    wait_for("the old secret to go", || {
        (status(&host, &["-H", &id(&ids[0]), "-H", &proofs[0]]) == 403).then_some(())
    });
    assert_eq!((guests[0].name(), guests[1].name()), ("web-0".to_owned(), "web-1".to_owned()));
}
