//! A faulty service, and how the samples handle it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use super::samples::{at, bash, csharp, python3, rust};
use crate::support::program::Program;
use crate::support::wait_for;

/// A status and a body. An empty status closes the connection.
type Answer = (&'static str, &'static str);

/// Responses to successive polls; the last one repeats.
const POLLS: [Answer; 7] = [
    ("200 OK", ""),
    ("200 OK", "{\"DocumentIncarnation\":1}"),
    ("200 OK", "<html>not now</html>"),
    ("500 Internal Server Error", "{\"DocumentIncarnation\":1,\"Events\":[]}"),
    ("", ""),
    ("429 Too Many Requests", "{\"error\":\"Too many requests\"}"),
    ("200 OK", ODD),
];
/// A document with invalid events; its incarnation is text. The first event has no VMs and no time, the second is not
/// an object, the third has no id. The fourth has text instead of a list of VMs and a time in another language. The
/// fifth has an unknown type, a VM name in another case, and a wrong weekday (11 April 2026 is a Saturday). The last
/// is valid.
const ODD: &str = r#"{"DocumentIncarnation":"7","Events":[
    {"EventId":"cc-dd","EventStatus":"Scheduled","EventType":"Reboot"},
    "nothing of the kind",
    {"EventStatus":"Scheduled","EventType":"Freeze","Resources":["web-0"],"NotBefore":null},
    {"EventId":"ee-ff","EventStatus":"Scheduled","EventType":"Redeploy","Resources":"web-1",
     "NotBefore":"lunes, 19 de septiembre de 2026 18:29:47"},
    {"EventId":"aa-bb","EventStatus":"Scheduled","EventType":"Melt","ResourceType":"VirtualMachine",
     "Resources":["WEB-0"],"NotBefore":"Mon, 11 Apr 2026 10:00:00 GMT"},
    {"EventId":"gg-hh","EventStatus":"Scheduled","EventType":"Reboot","Resources":["web-0"],
     "NotBefore":"2026-04-11T10:00:00Z"}]}"#;
/// The samples' output for it.
const ODD_SHOWN: [&str; 6] = [
    "7 cc-dd Scheduled Reboot  - others",
    "7 - - -  - others",
    "7 - Scheduled Freeze web-0 - mine",
    "7 ee-ff Scheduled Redeploy web-1 lunes, 19 de septiembre de 2026 18:29:47 others",
    "7 aa-bb Scheduled Melt WEB-0 2026-04-11T10:00:00Z mine",
    "7 gg-hh Scheduled Reboot web-0 2026-04-11T10:00:00Z mine",
];
/// A plain document with one event.
const PLAIN: Answer = (
    "200 OK",
    r#"{"DocumentIncarnation":3,"Events":[{"EventId":"ii-jj","EventStatus":"Scheduled","EventType":"Reboot",
    "Resources":["web-0"],"NotBefore":""}]}"#,
);
/// The id of the event whose approval is refused.
const REFUSED: &str = "aa-bb";
/// Response of a metadata service that is not ready.
const NO_NAME: [Answer; 3] =
    [("503 Service Unavailable", "not now"), ("404 Not Found", "not found"), ("200 OK", "")];

/// Serves during the test, and counts requests.
struct Platform {
    address: SocketAddr,
    received: Arc<Mutex<Received>>,
}

#[derive(Default)]
struct Received {
    names: usize,
    polls: usize,
    approvals: Vec<String>,
}

impl Platform {
    /// Starts a platform with these responses to requests for the VM's name and to polls. The last of each repeats.
    fn start(names: &'static [Answer], polls: &'static [Answer]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Received::default()));
        let counted = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(&mut stream.unwrap(), |line, body| {
                    let mut received = counted.lock().unwrap();
                    if line.starts_with("GET /metadata/instance/compute/name") {
                        return nth(names, &mut received.names);
                    }
                    if line.starts_with("GET") {
                        return nth(polls, &mut received.polls);
                    }
                    received.approvals.push(body.to_owned());
                    match body.contains(REFUSED) {
                        true => ("400 Bad Request", "{\"error\":\"Bad request\"}"),
                        false => ("200 OK", ""),
                    }
                });
            }
        });
        Self { address, received }
    }

    /// Waits for this many further polls.
    fn was_polled(&self, more: usize) {
        let before = self.received.lock().unwrap().polls;
        wait_for("further polls", || (self.received.lock().unwrap().polls >= before + more).then_some(()));
    }

    /// The approvals received.
    fn approvals(&self) -> Vec<String> {
        self.received.lock().unwrap().approvals.clone()
    }
}

/// The next response.
fn nth(answers: &[Answer], count: &mut usize) -> Answer {
    let now = answers[(*count).min(answers.len() - 1)];
    *count += 1;
    now
}

fn answer(stream: &mut TcpStream, judge: impl FnOnce(&str, &str) -> Answer) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut lines = reader.by_ref().lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let mut length = 0;
    for line in lines.take_while(|line| !line.is_empty()).map(|line| line.to_lowercase()) {
        // mono sends the body only after 100 Continue.
        if line == "expect: 100-continue" {
            let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let (status, body) = judge(&first, std::str::from_utf8(&body).unwrap());
    if !status.is_empty() {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        let _ = stream.write_all((head + body).as_bytes());
    }
}

/// The sample survives all faults, never reports an empty document, handles every event, and does not resend a refused
/// approval.
fn assert_survives_faults(sample: Command) {
    let platform = Platform::start(&[("200 OK", "web-0\n")], &POLLS);
    let mut client = Program::start(at(sample, platform.address, &["--yes"]));
    let mut shown = Vec::new();
    while shown.len() < ODD_SHOWN.len() {
        shown.push(client.wait_for_line(&[]));
    }
    assert_eq!(shown, ODD_SHOWN, "printed events");
    assert_eq!(client.wait_for_line(&[]), "approved gg-hh");
    platform.was_polled(3);
    let approvals = platform.approvals();
    let of = |id: &str| approvals.iter().filter(|body| body.contains(id)).count();
    assert_eq!((of("aa-bb"), of("gg-hh"), approvals.len()), (1, 1, 2), "{approvals:?}");
}

/// With `--once`, an unreadable response is a failure.
fn fails_once(sample: Command) {
    let platform = Platform::start(&[("200 OK", "web-0")], &POLLS);
    let stderr = Program::start(at(sample, platform.address, &["--once", "--yes"])).fails();
    assert!(stderr.contains("no document from"), "{stderr}");
}

/// Without a name from the platform nothing is approved: the host name may differ.
fn learns_its_name(sample: impl Fn() -> Command) {
    let platform = Platform::start(&NO_NAME, &[PLAIN]);
    let stderr = Program::start(at(sample(), platform.address, &["--once", "--yes"])).fails();
    assert!(stderr.contains("does not say what this VM is called"), "{stderr}");
    assert!(platform.approvals().is_empty());

    const LATE: [Answer; 4] = [NO_NAME[0], NO_NAME[1], NO_NAME[2], ("200 OK", "web-0")];
    let platform = Platform::start(&LATE, &[PLAIN]);
    let mut client = Program::start(at(sample(), platform.address, &["--yes"]));
    assert_eq!(client.wait_for_line(&[]), "3 ii-jj Scheduled Reboot web-0 - unknown");
    assert_eq!(client.wait_for_line(&[]), "3 ii-jj Scheduled Reboot web-0 - mine");
    assert_eq!(client.wait_for_line(&[]), "approved ii-jj");
    assert_eq!(platform.approvals().len(), 1);
}

#[test]
fn bash_survives_faults() {
    assert_survives_faults(bash());
    fails_once(bash());
}

#[test]
fn python3_survives_faults() {
    assert_survives_faults(python3());
    fails_once(python3());
}

#[test]
fn csharp_survives_faults() {
    assert_survives_faults(csharp());
    fails_once(csharp());
}

/// The crate backs off after failures, and has its own tests for faults.
#[test]
fn rust_once_fails_on_faults() {
    fails_once(rust());
}

#[test]
fn bash_learns_its_name() {
    learns_its_name(bash);
}

#[test]
fn python3_learns_its_name() {
    learns_its_name(python3);
}

#[test]
fn csharp_learns_its_name() {
    learns_its_name(csharp);
}

#[test]
fn rust_learns_its_name() {
    learns_its_name(rust);
}
