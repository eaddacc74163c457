//! The service in a namespace that owns 169.254.169.254, with the command line and plain requests.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use notbefore_wire::operator::Fact;
use serde_json::Value;
use tempfile::TempDir;

use super::binary;
use super::namespace::{Namespace, failure_text, require_file};

/// The address that every published client calls.
pub const ADDRESS: &str = "169.254.169.254";

/// A service that is stopped on drop, with its namespace.
pub struct Service {
    child: Child,
    data: TempDir,
    /// Its namespace. Dropped last, after the service has ended.
    pub namespace: Namespace,
}

impl Service {
    /// Starts a service on 169.254.169.254:80. Events stay Started until the test completes them, so a slow client also
    /// sees them.
    pub fn start(flags: &[&str]) -> Self {
        Self::start_in(Namespace::new(), flags)
    }

    /// Starts a service in a namespace of the test.
    pub fn start_in(namespace: Namespace, flags: &[&str]) -> Self {
        namespace.add_address(ADDRESS);
        let data = tempfile::tempdir().unwrap();
        let mut command = namespace.command(binary());
        command.arg("serve").arg("--data").arg(data.path()).args(["--guest", &format!("{ADDRESS}:80")]);
        command.args(["--operator", "127.0.0.1:9255", "--simulated-duration", "1h"]).args(flags);
        let mut child = command.stdout(Stdio::piped()).env("NOTBEFORE_LOG", "warn").spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let service = Self { child, data, namespace };
        let ready =
            lines.by_ref().any(|line| line.is_ok_and(|line| line.trim_start().starts_with("operators")));
        assert!(ready, "the service ended before it was ready");
        // Drain later output, so that the pipe does not fill up.
        std::thread::spawn(move || for _ in lines.by_ref() {});
        service
    }

    /// Runs the command line in the service's namespace; returns its JSON output.
    pub fn cli(&self, args: &[&str]) -> Value {
        let mut command = self.namespace.bounded(binary());
        let output =
            command.args(args).args(["--output", "json"]).env("NOTBEFORE_DATA", self.data.path()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "notbefore {args:?}: {}", failure_text(&output));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {output:?}"))
    }

    /// Name of the first-run VM.
    pub fn first_run_vm(&self) -> String {
        self.cli(&["vm", "list"])[0]["name"].as_str().unwrap().to_owned()
    }

    /// Requests a user operation on a VM; returns its event's id as guests read it.
    pub fn user_operation(&self, verb: &str, vm: &str) -> String {
        let operation = self.cli(&["vm", verb, vm]);
        operation["targets"][0]["event"].as_str().unwrap().to_uppercase()
    }

    /// Applies a fleet file.
    pub fn apply_fleet(&self, yaml: &str) {
        let file = self.data.path().join("fleet.yaml");
        std::fs::write(&file, yaml).unwrap();
        self.cli(&["fleet", "apply", file.to_str().unwrap()]);
    }

    /// Completes an event.
    pub fn complete(&self, event: &str) {
        self.cli(&["event", "complete", event]);
    }

    /// An event's status.
    pub fn status(&self, event: &str) -> String {
        self.cli(&["event", "show", event])["status"].as_str().unwrap().to_owned()
    }

    /// Facts of an event with their actors.
    pub fn trail(&self, event: &str) -> Vec<(String, String)> {
        let shown = self.cli(&["event", "show", event]);
        let trail: Vec<Fact> = serde_json::from_value(shown["trail"].clone()).unwrap();
        trail.iter().map(|fact| (fact.what.kind(), fact.by.to_string())).collect()
    }

    /// Asserts that an event has ended, that only this VM approved it, and that the approval started it.
    pub fn assert_approved_by(&self, event: &str, vm: &str, address: &str) {
        let trail = self.trail(event);
        let facts: Vec<&str> = trail.iter().map(|(fact, _)| fact.as_str()).collect();
        assert_eq!(facts, ["EventScheduled", "EventApproved", "EventStarted", "EventCompleted"], "{trail:?}");
        let guest = format!("vm {vm} at {address}");
        assert_eq!((&trail[1].1, &trail[2].1), (&guest, &guest));
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Plain requests of a guest, from any source address.
pub struct Guest<'a> {
    /// The guest's namespace.
    pub namespace: &'a Namespace,
    /// The source address; by default the kernel chooses it.
    pub source: Option<&'a str>,
    /// The address that it calls.
    pub address: &'a str,
}

impl Guest<'_> {
    /// Reads the document at the newest version: status and body.
    pub fn poll(&self) -> (u16, String) {
        self.request(&[])
    }

    /// Reads the document; returns its events.
    pub fn events(&self) -> Vec<Value> {
        let (status, body) = self.poll();
        assert_eq!(status, 200, "{body}");
        let document: Value = serde_json::from_str(&body).unwrap();
        document["Events"].as_array().unwrap().clone()
    }

    /// Approves an event: status and body.
    pub fn approve(&self, event: &str) -> (u16, String) {
        self.request(&["-d", &format!("{{\"StartRequests\":[{{\"EventId\":\"{event}\"}}]}}")])
    }

    fn request(&self, args: &[&str]) -> (u16, String) {
        require_file("/usr/bin/curl", "curl");
        let url = format!("http://{}/metadata/scheduledevents?api-version=2020-07-01", self.address);
        let mut curl = self.namespace.bounded("curl");
        curl.args(["-q", "-s", "-w", "\n%{http_code}", "-H", "Metadata: true"]).args(args);
        if let Some(source) = self.source {
            curl.args(["--interface", source]);
        }
        let output = curl.arg(url).output().unwrap();
        assert!(output.status.success(), "curl from {}: {}", self.namespace.name(), failure_text(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let (body, status) = text.rsplit_once('\n').unwrap();
        (status.parse().unwrap(), body.to_owned())
    }
}
