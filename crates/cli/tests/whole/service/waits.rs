//! `event wait` and `operation wait`: one list and one stream, every stage, and the exit codes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::{Service, binary, free_address, write_program};

/// A TCP proxy in front of the operator listener that keeps what clients send.
struct Recorder {
    url: String,
    sent: Arc<Mutex<Vec<u8>>>,
}

impl Recorder {
    fn before(service: &Service) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (operator, sent) = (service.operator, Arc::<Mutex<Vec<u8>>>::default());
        let kept = Arc::clone(&sent);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                forward(&client.unwrap(), operator, &kept);
            }
        });
        Self { url, sent }
    }

    fn sent(&self) -> String {
        String::from_utf8(self.sent.lock().unwrap().clone()).unwrap()
    }

    /// The paths of all requests so far.
    fn requests(&self) -> Vec<String> {
        let sent = self.sent();
        let lines = sent.lines().filter(|line| line.ends_with(" HTTP/1.1"));
        lines.map(|line| line.split(['?', ' ']).nth(1).unwrap().to_owned()).collect()
    }
}

fn forward(client: &TcpStream, to: SocketAddr, kept: &Arc<Mutex<Vec<u8>>>) {
    let service = TcpStream::connect(to).unwrap();
    let [mut from_client, mut to_client] = [client.try_clone().unwrap(), client.try_clone().unwrap()];
    let [mut from_service, mut to_service] = [service.try_clone().unwrap(), service];
    let kept = Arc::clone(kept);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = from_client.read(&mut buffer) {
            kept.lock().unwrap().extend(&buffer[..length]);
            if to_service.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = to_service.shutdown(Shutdown::Both);
    });
    std::thread::spawn(move || {
        let _ = io::copy(&mut from_service, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
}

/// A wait that runs in the background.
struct Waiting {
    child: Child,
    progress: BufReader<ChildStderr>,
    printed: String,
}

impl Waiting {
    /// Starts a wait and returns when it has printed its first progress: it has its list.
    fn start(service: &Service, url: Option<&str>, words: &[&str]) -> Self {
        let mut command = Command::new(binary());
        command.args(words).env("NOTBEFORE_DATA", service.data());
        command.args(url.iter().flat_map(|url| ["--operator-url", url]));
        command.args(["--timeout", "60s"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut progress = BufReader::new(child.stderr.take().unwrap());
        let mut printed = String::new();
        progress.read_line(&mut printed).unwrap();
        assert!(printed.contains(" is "), "{printed}");
        Self { child, progress, printed }
    }

    /// The exit code, and what was printed on standard output and standard error.
    fn end(mut self) -> (i32, String, String) {
        self.progress.read_to_string(&mut self.printed).unwrap();
        let output = self.child.wait_with_output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        (output.status.code().unwrap(), shown, self.printed)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn scheduled(service: &Service, vm: &str) -> (String, String) {
    let made = service.cli_json(&["event", "schedule", "--type", "reboot", "--in", "1h", vm]);
    (text(&made["id"]), text(&made["targets"][0]["event"]))
}

#[test]
fn maintenance_of_several_hosts_and_one_command_that_fails() {
    let service_dir = tempfile::tempdir().unwrap();
    let program = service_dir.path().join("carry-out");
    let script =
        "#!/bin/sh\n[ \"$NOTBEFORE_HOST\" != hv02 ] || { echo 'hv02 does not answer' >&2; exit 1; }\n";
    write_program(&program, script);
    let exec = program.to_str().unwrap();
    let service = Service::start(&["--driver", "exec", "--exec", exec, "--exec-attempts", "1"]);
    for (vm, host) in [("a", "hv01"), ("b", "hv02"), ("c", "hv03")] {
        service.cli(&["vm", "add", vm, "--host", host]);
    }
    let made = service
        .cli_json(&["host", "maintain", "hv01", "hv02", "hv03", "--type", "reboot", "--in", "1h", "--yes"]);
    let made = made.as_array().unwrap();
    let operations: Vec<String> = made.iter().map(|one| text(&one["id"])).collect();
    let events: Vec<String> = made.iter().map(|one| text(&one["targets"][0]["event"])).collect();

    let recorder = Recorder::before(&service);
    let one = Waiting::start(&service, Some(&recorder.url), &["operation", "wait", &operations[1]]);
    let words = ["event", "approve", &events[0], &events[1], &events[2]];
    assert_eq!(service.cli(&words).matches("event ").count(), 3);
    let (code, _, progress) = one.end();
    assert_eq!(code, 1, "{progress}");
    let why =
        format!("operation {}, event {}: the command for b failed at attempt 1: ", operations[1], events[1]);
    assert!(progress.contains(&why) && progress.contains("hv02 does not answer"), "{progress}");
    assert!(progress.contains("notbefore event retry"), "{progress}");
    assert_eq!(recorder.requests(), ["/v1/operations", "/v1/stream"]);

    let others = service.cli(&["operation", "wait", &operations[0], &operations[2], "--timeout", "60s"]);
    assert_eq!(others.matches("is closed: completed").count(), 2, "{others}");
    let again = service.run(&["event", "wait", &events[1], "--timeout", "60s"]);
    let error = String::from_utf8_lossy(&again.stderr);
    assert_eq!(again.status.code(), Some(1), "{error}");
    assert!(error.contains("the command for b failed at attempt 1: "), "{error}");
    assert!(error.contains("hv02 does not answer"), "{error}");
    service.cli(&["event", "wait", &events[1], "--for", "started", "--timeout", "60s"]);
}

#[test]
fn wait_follows_each_stage() {
    let service = Service::start(&["--driver", "manual"]);
    service.cli(&["vm", "add", "web-0", "--address", "127.0.0.1"]);
    let (operation, event) = scheduled(&service, "web-0");
    let actions: [(&str, &dyn Fn()); 4] = [
        ("read", &|| drop(service.poll(Ipv4Addr::LOCALHOST, "2020-07-01"))),
        ("approved", &|| assert_eq!(service.approve(Ipv4Addr::LOCALHOST, &event).status, 200)),
        ("started", &|| drop(service.cli(&["event", "start", &event]))),
        ("ended", &|| drop(service.cli(&["event", "complete", &event]))),
    ];
    for (stage, act) in actions {
        let recorder = Recorder::before(&service);
        let of_event =
            Waiting::start(&service, Some(&recorder.url), &["event", "wait", &event[..8], "--for", stage]);
        let words = ["operation", "wait", &operation, "--for", stage];
        let of_operation = Waiting::start(&service, None, &words);
        act();
        for waiting in [of_event, of_operation] {
            let (code, shown, progress) = waiting.end();
            assert_eq!(code, 0, "{stage}: {progress}");
            assert_eq!(shown.lines().count(), 1, "{stage}: {shown}");
        }
        assert_eq!(recorder.requests(), ["/v1/events", "/v1/stream"], "{stage}");
        assert!(recorder.sent().to_lowercase().contains("\r\nlast-event-id: "), "{}", recorder.sent());
        // It has been reached, so it is not waited for again.
        service.cli(&["event", "wait", &event, "--for", stage]);
        service.cli(&["operation", "wait", &operation, "--for", stage]);
    }
    let shown = service.cli_json(&["operation", "wait", &operation]);
    assert_eq!((&shown[0]["state"], &shown[0]["progress"]["ended"]), (&"closed".into(), &1.into()));
}

#[test]
fn wait_ends_when_stage_can_no_longer_be_reached() {
    let service = Service::start(&["--driver", "manual"]);
    for vm in ["a", "b"] {
        service.cli(&["vm", "add", vm]);
    }
    let ((_, a), (_, b)) = (scheduled(&service, "a"), scheduled(&service, "b"));
    let cancelled = Waiting::start(&service, None, &["event", "wait", &a, &b, "--for", "started"]);
    service.cli(&["event", "start", &a]);
    service.cli(&["event", "cancel", &b]);
    let (code, shown, progress) = cancelled.end();
    assert_eq!((code, shown), (1, format!("event {a} has started\n")), "{progress}");
    assert!(progress.contains(&format!("event {b} was cancelled before it started")), "{progress}");

    let unapproved = service.run(&["event", "wait", &a, "--for", "approved"]);
    let error = String::from_utf8_lossy(&unapproved.stderr);
    assert_eq!(unapproved.status.code(), Some(1), "{error}");
    assert!(error.contains(&format!("event {a} started without an approval")), "{error}");
    let ended = service.cli_json(&["event", "wait", &b]);
    assert_eq!((&ended[0]["id"], &ended[0]["status"]), (&b.into(), &"Cancelled".into()));
}

#[test]
fn wait_continues_after_restart_of_the_service() {
    let operator = free_address().to_string();
    let mut service = Service::start(&["--driver", "manual", "--operator", &operator]);
    service.cli(&["vm", "add", "a"]);
    let (operation, event) = scheduled(&service, "a");
    let waiting = Waiting::start(&service, None, &["operation", "wait", &operation]);
    service.kill();
    let service = service.restart();
    service.cli(&["event", "cancel", &event]);
    let (code, shown, progress) = waiting.end();
    assert_eq!((code, shown), (0, format!("operation {operation} is closed: cancelled\n")), "{progress}");
}
