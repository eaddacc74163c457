//! A service that knows nothing but trouble, and what the samples make of it.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;

use super::program::Program;
use super::samples::{at, bash, csharp, python3, rust};

/// What is answered to one poll after the other, as status and body; an empty status is a connection that is closed.
/// The last one stays. Its incarnation is text, its first event names nobody and no time; the type of the second nobody
/// knows, its VM is spelt in another case, and the 11th of April 2026 is a Saturday.
const POLLS: [(&str, &str); 7] = [
    ("200 OK", ""),
    ("200 OK", "{\"DocumentIncarnation\":1}"),
    ("200 OK", "<html>not now</html>"),
    ("500 Internal Server Error", "{\"DocumentIncarnation\":1,\"Events\":[]}"),
    ("", ""),
    ("429 Too Many Requests", "{\"error\":\"Too many requests\"}"),
    (
        "200 OK",
        "{\"DocumentIncarnation\":\"7\",\"Events\":[{\"EventId\":\"cc-dd\",\"EventStatus\":\"Scheduled\",\
         \"EventType\":\"Reboot\"},{\"EventId\":\"aa-bb\",\"EventStatus\":\"Scheduled\",\
         \"EventType\":\"Melt\",\"ResourceType\":\"VirtualMachine\",\"Resources\":[\"WEB-0\"],\
         \"NotBefore\":\"Mon, 11 Apr 2026 10:00:00 GMT\"}]}",
    ),
];

/// Serves for as long as the test runs: the VM's name, the polls above, and approvals that are refused.
fn troubled() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut polls = POLLS.iter().peekable();
        for stream in listener.incoming() {
            answer(&mut stream.unwrap(), |line| {
                if line.starts_with("GET /metadata/instance/compute/name") {
                    return ("200 OK", "web-0");
                }
                if line.starts_with("POST") {
                    return ("400 Bad Request", "{\"error\":\"Bad request\"}");
                }
                let now = polls.peek().copied().copied().unwrap();
                if polls.len() > 1 {
                    polls.next();
                }
                now
            });
        }
    });
    address
}

fn answer(stream: &mut TcpStream, judge: impl FnOnce(&str) -> (&'static str, &'static str)) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    for line in lines.take_while(|line| !line.is_empty()) {
        // mono sends the body only when it is told to.
        if line.eq_ignore_ascii_case("expect: 100-continue") {
            let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }
    let (status, body) = judge(&first);
    if !status.is_empty() {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        let _ = stream.write_all((head + body).as_bytes());
    }
}

/// It goes on through all of it, and never says that nothing is planned; a refused approval is not sent for ever.
fn gets_through(sample: Command) {
    let mut client = Program::start(at(sample, troubled(), &["--yes"]));
    assert_eq!(client.says(&[]), "7 cc-dd Scheduled Reboot  - others", "the first thing that it says");
    assert_eq!(client.says(&[]), "7 aa-bb Scheduled Melt WEB-0 2026-04-11T10:00:00Z mine");
}

/// In a script, what cannot be read is a failure.
fn fails_once(sample: Command) {
    let complaint = Program::start(at(sample, troubled(), &["--once", "--yes"])).fails();
    assert!(complaint.contains("no document from"), "{complaint}");
}

#[test]
fn bash_gets_through() {
    gets_through(bash());
    fails_once(bash());
}

#[test]
fn python3_gets_through() {
    gets_through(python3());
    fails_once(python3());
}

#[test]
fn csharp_gets_through() {
    gets_through(csharp());
    fails_once(csharp());
}

/// The crate rests ever longer after failures, and has tests of its own for what it gets through.
#[test]
fn rust_fails_once() {
    fails_once(rust());
}
