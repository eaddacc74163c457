//! `notbefore status` and the lists: what a person sees of many hosts, and the number of requests that it takes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use serde_json::Value;

use crate::support::{Service, binary, wait_for};

const HOSTS: usize = 40;

/// Forty hosts, each with a VM of `acme/shop/web` and one of `globex/shop/web`.
fn fleet_of_40_hosts() -> String {
    let scope = |subscription: &str, net: u8| {
        let vm = |n: usize| {
            format!(
                "      - {{ name: web-{n}, update_domain: {}, addresses: [127.1.{net}.{n}], host: h{n} }}\n",
                n % 5
            )
        };
        let vms: String = (1..=HOSTS).map(vm).collect();
        format!(
            "  - name: web\n    subscription: {subscription}\n    group: shop\n    kind: availability-set\n    vms:\n{vms}"
        )
    };
    format!("scopes:\n{}{}", scope("acme", 50), scope("globex", 51))
}

/// A service whose forty hosts reboot in 20 to 25 minutes, all at the same time.
fn before_maintenance() -> Service {
    let service = Service::start(&["--driver", "manual"]);
    service.apply_fleet(&fleet_of_40_hosts());
    let hosts: Vec<String> = (1..=HOSTS).map(|n| format!("h{n}")).collect();
    let now: Timestamp = service.cli_json(&["clock", "show"])["now"].as_str().unwrap().parse().unwrap();
    let not_before = Timestamp::from_second((now.as_second() / 300 + 5) * 300).unwrap().to_string();
    let words = ["host", "maintain", "--type", "reboot", "--not-before", &not_before, "--yes"];
    let words: Vec<&str> = words.into_iter().chain(hosts.iter().map(String::as_str)).collect();
    service.cli(&words);
    service
}

#[test]
fn status_shows_on_one_screen_what_happens_to_40_hosts() {
    let service = before_maintenance();
    let text = service.cli(&["status"]);
    assert!(text.lines().count() <= 20, "{text}");
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    assert!(text.contains("80 events for 80 VMs; 0 approved, 80 unread"), "{text}");
    assert!(text.contains("40 hosts: h1, h2, h3 …"), "{text}");
    assert!(text.contains("operations  40 open"), "{text}");

    // One VM reads its events and approves one: it is no longer unread.
    let web_1 = Ipv4Addr::new(127, 1, 50, 1);
    let document = service.poll(web_1, "2020-07-01").json();
    let sum = |status: &Value, count: &str| -> u64 {
        let groups = status["next"]["groups"].as_array().unwrap();
        groups.iter().map(|group| group[count].as_u64().unwrap()).sum()
    };
    let status = wait_for("the read event", || {
        let status = service.cli_json(&["status"]);
        (sum(&status, "unread") == 79).then_some(status)
    });
    assert_eq!((sum(&status, "events"), sum(&status, "vms"), status["vms"].as_u64()), (80, 80, Some(80)));
    assert_eq!(
        (status["listening"]["yes"].as_u64(), status["events"]["scheduled"].as_u64()),
        (Some(1), Some(80))
    );
    let own = document["Events"].as_array().unwrap().iter().find(|event| event["Resources"][0] == "web-1");
    let own = own.unwrap()["EventId"].as_str().unwrap().to_owned();
    assert_eq!(service.approve(web_1, &own).status, 200);
    assert_eq!(sum(&service.cli_json(&["status"]), "approved"), 1);
}

#[test]
fn tenant_sees_its_own_scopes_in_status() {
    let service = before_maintenance();
    let token = service.cli_json(&["token", "create", "acme", "--role", "tenant", "--on", "acme"]);
    let token = token["secret"].as_str().unwrap();
    let status = service.request_with(token, "GET", "/v1/status", "", "").json();
    assert_eq!((status["vms"].as_u64(), status["scopes"].as_u64()), (Some(40), Some(1)));
    assert_eq!(status["events"]["scheduled"].as_u64(), Some(40));
    assert_eq!(status["listening"]["no"].as_u64(), Some(40));
    for group in status["next"]["groups"].as_array().unwrap() {
        assert_eq!(group["scope_names"], serde_json::json!(["acme/shop/web"]));
    }
    assert!(status.get("service").is_none(), "{status}");
    let viewer = service.cli_json(&["token", "create", "viewer", "--grant", "viewer:/"]);
    let status = service.request_with(viewer["secret"].as_str().unwrap(), "GET", "/v1/status", "", "").json();
    assert_eq!(status["vms"].as_u64(), Some(80));
    assert!(status.get("service").is_none(), "{status}");
    assert!(service.cli_json(&["status"])["service"]["disk"]["bytes_free"].as_u64() > Some(0));
}

/// A proxy to the operator listener that counts requests.
fn counting_proxy(to: SocketAddr) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), TcpStream::connect(to).unwrap());
            let (mut answers, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
            let counted = Arc::clone(&counted);
            std::thread::spawn(move || {
                let (mut buffer, mut last) = ([0; 4096], [0; 3]);
                while let Ok(length @ 1..) = client.read(&mut buffer) {
                    // A head ends with an empty line, which may come in two pieces.
                    let bytes = [&last[..], &buffer[..length]].concat();
                    let heads = bytes.windows(4).filter(|four| four == b"\r\n\r\n").count();
                    counted.fetch_add(heads, Ordering::SeqCst);
                    last.copy_from_slice(&bytes[bytes.len() - 3..]);
                    server.write_all(&buffer[..length]).unwrap();
                }
                let _ = server.shutdown(Shutdown::Write);
            });
        }
    });
    (url, count)
}

#[test]
fn status_and_the_page_of_a_list_take_one_request() {
    let service = before_maintenance();
    let (url, count) = counting_proxy(service.operator);
    let lists =
        ["status", "vm list", "host list", "event list", "operation list", "token list", "fleet show"];
    for words in lists {
        count.store(0, Ordering::SeqCst);
        let mut command = Command::new(binary());
        command.arg("--data").arg(service.data()).args(["--operator-url", &url]);
        let output = command.args(words.split(' ')).output().unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(count.load(Ordering::SeqCst), 1, "{words}");
    }
}
