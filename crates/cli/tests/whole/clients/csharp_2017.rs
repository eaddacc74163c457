//! A C# client after the documentation of 2017, compiled with mono during the test.
//!
//! It approves without the Metadata header, as the documented sample does. That is accepted at 2017-03-01, refused with
//! `--strict` and at newer versions, and accepted at every version with `--lenient`.

use tempfile::TempDir;

use crate::support::in_namespace::{ADDRESS, Service};
use crate::support::namespace::{Namespace, failure_text, require_file};
use crate::support::program::{Program, source};

/// Debian's path of the assembly that the client links.
const NEWTONSOFT: &str = "/usr/lib/cli/Newtonsoft.Json-5.0/Newtonsoft.Json.dll";

/// The compiled client, removed with the test.
struct Compiled {
    dir: TempDir,
}

impl Compiled {
    fn new(namespace: &Namespace) -> Self {
        require_file("/usr/bin/mcs", "mono-mcs");
        require_file("/usr/bin/mono", "mono-runtime");
        require_file(NEWTONSOFT, "libnewtonsoft-json5.0-cil");
        let dir = tempfile::tempdir().unwrap();
        let mut mcs = namespace.bounded("/usr/bin/mcs");
        mcs.arg(format!("-out:{}", dir.path().join("client.exe").display())).arg(format!("-r:{NEWTONSOFT}"));
        let done = mcs.arg(source("csharp_2017.cs")).output().unwrap();
        assert!(done.status.success(), "mcs: {}", failure_text(&done));
        // Beside the program, the assembly is found without a global cache.
        std::fs::copy(NEWTONSOFT, dir.path().join("Newtonsoft.Json.dll")).unwrap();
        Self { dir }
    }

    fn run(&self, service: &Service, version: &str) -> Program {
        let mut mono = service.namespace.bounded("/usr/bin/mono");
        mono.arg(self.dir.path().join("client.exe")).arg(version);
        Program::start(mono)
    }
}

/// `csharp_2017.cs` lists the differences from the documented sample: mainly, it compiles, and approves without waiting
/// for Enter. Two events are listed, so that both are approved in one POST, and again after they have started.
#[test]
fn csharp_2017() {
    let service = Service::start(&[]);
    let vm = service.first_run_vm();
    let compiled = Compiled::new(&service.namespace);
    let events = [service.user_operation("restart", &vm), service.user_operation("redeploy", &vm)];
    let mut client = compiled.run(&service, "2017-03-01");

    let named = format!("_{vm}");
    for (event, kind) in events.iter().zip(["Reboot", "Redeploy"]) {
        let not_before = service.cli(&["event", "show", event])["trail"][0]["detail"]["not_before"].clone();
        client.wait_for_line(&["3", event, "Scheduled", kind, &named, not_before.as_str().unwrap()]);
    }
    client.wait_for_line(&["approved", "2"]);
    // One POST for both is one change of the document.
    client.wait_for_line(&["4", &events[0], "Started", "now"]);
    client.wait_for_line(&["4", &events[1], "Started", "now"]);
    client.wait_for_line(&["approved", "2"]);

    for event in &events {
        service.complete(event);
    }
    // This is the client's last line. The test does not wait for its exit: mono sometimes hangs on shutdown.
    client.wait_for_line(&["6", "nothing"]);
    for event in &events {
        service.assert_approved_by(event, &vm, ADDRESS);
    }
}

/// With `--strict` the client crashes on a 400 that it does not catch, and the event keeps waiting.
#[test]
fn csharp_2017_is_refused_by_strict() {
    refused(&["--strict"], "2017-03-01");
}

/// The same at a version that requires the header.
#[test]
fn csharp_2017_is_refused_at_2020() {
    refused(&[], "2020-07-01");
}

/// At the newest version with `--lenient`: a whole event, and names without `_`.
#[test]
fn csharp_2017_at_2020_with_lenient() {
    let service = Service::start(&["--lenient"]);
    let vm = service.first_run_vm();
    let compiled = Compiled::new(&service.namespace);
    let event = service.user_operation("restart", &vm);
    let mut client = compiled.run(&service, "2020-07-01");
    client.wait_for_line(&["2", &event, "Scheduled", "Reboot", &vm]);
    client.wait_for_line(&["approved", "1"]);
    client.wait_for_line(&["3", &event, "Started", "now"]);
    // Complete the event only after the second approval, so that the trail has both.
    client.wait_for_line(&["approved", "1"]);
    service.complete(&event);
    client.wait_for_line(&["4", "nothing"]);
    service.assert_approved_by(&event, &vm, ADDRESS);
}

fn refused(flags: &[&str], version: &str) {
    let service = Service::start(flags);
    let vm = service.first_run_vm();
    let compiled = Compiled::new(&service.namespace);
    let event = service.user_operation("restart", &vm);
    let mut client = compiled.run(&service, version);
    client.wait_for_line(&["2", &event, "Scheduled"]);
    let failure_text = client.fails();
    assert!(failure_text.contains("(400)"), "{failure_text}");
    let trail = service.trail(&event);
    assert_eq!((trail.len(), trail[0].0.as_str()), (1, "EventScheduled"), "{trail:?}");
}
