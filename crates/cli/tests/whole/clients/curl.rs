//! Commands from the documentation, run with `sh` as printed.

use serde_json::Value;
use tempfile::TempDir;

use crate::support::in_namespace::{ADDRESS, Service};
use crate::support::namespace::{failure_text, require_file};

/// Read command of the 2017 documentation.
const GET_2017: &str =
    "curl -H Metadata:true http://169.254.169.254/metadata/scheduledevents?api-version=2017-03-01";
/// The same at the release of that year.
const GET_2017_RELEASE: &str =
    "curl -H Metadata:true http://169.254.169.254/metadata/scheduledevents?api-version=2017-08-01";
/// Read command of the 2020 documentation.
const GET_2020: &str =
    "curl -H Metadata:true http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01";
/// Approve command of the 2017 documentation, with an incarnation that is an outdated string.
const POST_2017: &str = r#"curl -H Metadata:true -X POST -d '{"DocumentIncarnation":"5", "StartRequests": [{"EventId": "f020ba2e-3bc0-4c40-a10b-86575a9eabd5"}]}' http://169.254.169.254/metadata/scheduledevents?api-version=2017-03-01"#;
/// Approve command of the 2020 documentation.
const POST_2020: &str = r#"curl -H Metadata:true -X POST -d '{"StartRequests": [{"EventId": "f020ba2e-3bc0-4c40-a10b-86575a9eabd5"}]}' http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01"#;
/// The event id in the documentation.
const PRINTED_ID: &str = "f020ba2e-3bc0-4c40-a10b-86575a9eabd5";

/// Runs commands in the service's namespace. curl's configuration file makes it quiet and adds the status, so that the
/// commands stay unchanged.
struct Shell<'a> {
    service: &'a Service,
    curl_home: TempDir,
}

impl<'a> Shell<'a> {
    fn new(service: &'a Service) -> Self {
        require_file("/usr/bin/curl", "curl");
        let curl_home = tempfile::tempdir().unwrap();
        std::fs::write(curl_home.path().join(".curlrc"), "silent\nwrite-out = \"\\n%{http_code}\"\n")
            .unwrap();
        Self { service, curl_home }
    }

    /// Runs one line: status and body.
    fn run(&self, line: &str) -> (u16, String) {
        let mut sh = self.service.namespace.bounded("sh");
        let output = sh.args(["-c", line]).env("CURL_HOME", self.curl_home.path()).output().unwrap();
        assert!(output.status.success(), "{line}: {}", failure_text(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let (body, status) = text.rsplit_once('\n').unwrap();
        (status.parse().unwrap(), body.to_owned())
    }

    /// Runs a line that reads; returns the document's events.
    fn events(&self, line: &str) -> Vec<Value> {
        let (status, body) = self.run(line);
        assert_eq!(status, 200, "{line}: {body}");
        let document: Value = serde_json::from_str(&body).unwrap();
        document["Events"].as_array().unwrap().clone()
    }
}

/// The documented EventId is replaced with that of a live event, in lower case like the original. As printed, the
/// approval names an unknown event: 400, and nothing starts.
#[test]
fn documented_curl_commands_work() {
    let service = Service::start(&[]);
    let vm = service.first_run_vm();
    let shell = Shell::new(&service);
    for (get, post, name, time_ends_in) in [
        (GET_2017, POST_2017, format!("_{vm}"), "Z"),
        (GET_2017_RELEASE, POST_2017, vm.clone(), " GMT"),
        (GET_2020, POST_2020, vm.clone(), " GMT"),
    ] {
        assert!(shell.events(get).is_empty(), "{get}");
        let event = service.user_operation("restart", &vm);

        let seen = shell.events(get);
        assert_eq!(seen.len(), 1, "{get}: {seen:?}");
        assert_eq!(
            (&seen[0]["EventId"], &seen[0]["EventStatus"]),
            (&event.as_str().into(), &"Scheduled".into())
        );
        assert_eq!(seen[0]["Resources"], serde_json::json!([name]), "{get}");
        assert!(seen[0]["NotBefore"].as_str().unwrap().ends_with(time_ends_in), "{get}: {seen:?}");

        let (status, body) = shell.run(post);
        assert_eq!(status, 400, "{post}: {body}");
        assert_eq!(service.status(&event), "Scheduled", "{post}");

        let ours = post.replace(PRINTED_ID, &event.to_lowercase());
        assert_eq!(shell.run(&ours), (200, String::new()), "{ours}");
        let started = shell.events(get);
        assert_eq!((&started[0]["EventStatus"], &started[0]["NotBefore"]), (&"Started".into(), &"".into()));

        service.complete(&event);
        assert!(shell.events(get).is_empty(), "{get}");
        service.assert_approved_by(&event, &vm, ADDRESS);
    }
}
