//! Golden transcripts: what the commands that people use most print, word for word, and how they end.
//!
//! Each file in `transcripts/` is a shell session. A line that begins with `$ ` is a command; what follows is what it
//! printed: standard output as it is, standard error with `2> ` before each line, and the exit code unless it is 0. Lines
//! that begin with `#: ` explain. A test runs the commands and compares. To take over what they print now, and then read the
//! diff:
//!
//! ```sh
//! NOTBEFORE_WRITE=1 cargo test --workspace --test whole transcripts::
//! ```
//!
//! Only what differs from run to run is replaced: `<id 1>` is the first id of the session, and a command may use it;
//! `<id 1…>` stands for its first eight digits; times, ages, revisions, ports, secrets and directories have a word each.

mod session;

use crate::support;
use crate::support::agent::AgentDir;
use crate::support::{Service, wait_for};
use session::Session;

/// A service whose events nobody carries out, so that they stay as a command left them.
fn service() -> Service {
    Service::start(&["--driver", "manual"])
}

#[test]
fn help_of_every_command() {
    Session::new().check("help");
}

#[test]
fn the_inventory() {
    Session::with_service(&service()).check("inventory");
}

#[test]
fn events_from_the_announcement_to_the_end() {
    Session::with_service(&service()).check("events");
}

#[test]
fn hosts_and_operations() {
    Session::with_service(&service()).check("hosts");
}

#[test]
fn plans_of_what_removes_or_calls_off() {
    Session::with_service(&service()).check("plans");
}

#[test]
fn tokens_and_the_audit_trail() {
    Session::with_service(&service()).check("tokens");
}

#[test]
fn mistakes_and_what_to_do_about_them() {
    Session::with_service(&service()).check("errors");
}

#[test]
fn commands_without_a_service() {
    Session::new().check("no_service");
}

#[test]
fn the_store_of_a_stopped_service() {
    let mut service = service();
    service.cli(&["vm", "add", "db-0", "--address", "127.0.1.9"]);
    assert!(service.terminate().success());
    Session::with_service(&service).check("store");
}

#[test]
fn inside_of_a_vm() {
    let service = service();
    service.cli(&["vm", "add", "web-0", "--address", "127.0.0.1"]);
    let endpoint = format!("http://{}", service.guest);
    Session::with_service(&service).with_word("endpoint", &endpoint).check("guest");
}

#[test]
fn the_agent_checks_its_configuration() {
    // Without a platform the VM's name is the machine's.
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    Session::new().with_word("came for HOST", &format!("came for {}", host.trim())).check("agent_check");
}

#[test]
fn the_agent_shows_how_it_stands() {
    let service = service();
    service.cli(&["vm", "add", "web-0", "--address", "127.0.0.1"]);
    let (place, listen) = (AgentDir::new(), support::free_address());
    let rule = "[[rule]]\nname = \"drain\"\n[[rule.before]]\nname = \"stop-work\"\nshell = \"exit 1\"\n";
    place.configure(Some(&format!("http://{}", service.guest)), rule);
    let config = std::fs::read_to_string(place.path("agent.toml")).unwrap();
    let config = config.replace("listen = \"none\"", &format!("listen = \"{listen}\""));
    std::fs::write(place.path("agent.toml"), config).unwrap();
    let _agent = place.start("boot-1");
    let session = Session::with_service(&service)
        .with_word("endpoint", &format!("http://{}", service.guest))
        .with_word("listen", &listen.to_string())
        .with_word("state", &place.path("state").display().to_string());
    let shows = |text: &str| {
        wait_for(text, || {
            session.run("notbefore agent status --listen <listen>").contains(text).then_some(())
        });
    };
    shows("platform at <endpoint>\nthere are no events");
    session.check("agent_idle");
    service.cli(&["event", "schedule", "--type", "reboot", "web-0"]);
    shows("none: ");
    session.check("agent_withholds");
}
