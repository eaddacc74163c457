//! Golden transcripts: exact output and exit codes of the main commands.
//!
//! Each file in `transcripts/` is a shell session. A line that begins with `$ ` is a command, with variables before it
//! if it needs any. Its output follows:
//! standard output unchanged, standard error with `2> ` before each line, and the exit code if it is not 0. Lines that
//! begin with `#: ` are comments. A test runs the commands and compares. To accept the current output, and then review
//! the diff:
//!
//! ```sh
//! NOTBEFORE_WRITE=1 cargo test --workspace --test whole transcripts::
//! ```
//!
//! Values that differ between runs are replaced: `<id 1>` is the first id of the session, and a command may use it;
//! `<id 1…>` is its first eight digits; times, ages, revisions, ports, secrets and directories have a placeholder each.

mod session;

use crate::support;
use crate::support::agent::AgentDir;
use crate::support::{Service, wait_for};
use session::Session;

/// A service with the manual driver, so that events change only by commands.
fn service() -> Service {
    Service::start(&["--driver", "manual"])
}

#[test]
fn help_of_every_command() {
    Session::new().check("help");
}

#[test]
fn inventory() {
    Session::with_service(&service()).check("inventory");
}

#[test]
fn events_from_schedule_to_completion() {
    Session::with_service(&service()).check("events");
}

#[test]
fn hosts_and_operations() {
    Session::with_service(&service()).check("hosts");
}

#[test]
fn status_of_service() {
    Session::with_service(&service()).check("status");
}

#[test]
fn faults_of_guest_listener() {
    Session::with_service(&Service::start(&["--driver", "manual", "--faults"])).check("faults");
}

#[test]
fn lists() {
    Session::with_service(&service()).check("lists");
}

#[test]
fn plans_of_removal_and_cancellation() {
    Session::with_service(&service()).check("plans");
}

#[test]
fn tokens_and_audit_trail() {
    Session::with_service(&service()).check("tokens");
}

#[test]
fn errors_with_next_step() {
    Session::with_service(&service()).check("errors");
}

#[test]
fn words_as_typed() {
    Session::with_service(&service()).check("typed");
}

#[test]
fn fleet_files_with_mistakes_and_tokens_without_rights() {
    let service = service();
    let tenant = service.cli_json(&["token", "create", "shop", "--role", "tenant", "--on", "default/shop"]);
    let session =
        Session::with_service(&service).with_placeholder("tenant", tenant["secret"].as_str().unwrap());
    session.check("fleet");
}

#[test]
fn commands_without_service() {
    Session::new().check("no_service");
}

#[test]
fn commands_for_scripts() {
    Session::with_service(&service()).check("scripts");
}

#[test]
fn store_of_stopped_service() {
    let mut service = service();
    service.cli(&["vm", "add", "db-0", "--address", "127.0.1.9"]);
    assert!(service.terminate().success());
    Session::with_service(&service).check("store");
}

#[test]
fn guest_commands() {
    let service = service();
    service.cli(&["vm", "add", "web-0", "--address", "127.0.0.1"]);
    let endpoint = format!("http://{}", service.guest);
    Session::with_service(&service).with_placeholder("endpoint", &endpoint).check("guest");
}

#[test]
fn log_of_a_vm() {
    let service = service();
    service.cli(&["vm", "add", "web-0", "--address", "127.0.0.1"]);
    let here = std::net::Ipv4Addr::LOCALHOST;
    let session = Session::with_service(&service);
    assert!(session.run("notbefore vm log web-0").ends_with("no poll\n"));
    assert_eq!(service.poll(here, "2020-07-01").status, 200);
    assert_eq!(service.poll(here, "2019-08-01").status, 200);
    for _ in 0..2 {
        assert_eq!(service.poll(here, "latest").status, 400);
    }
    let unknown = "00000000-0000-0000-0000-000000000001";
    assert_eq!(service.approve(here, unknown).status, 400);
    session.check("vm_log");
}

#[test]
fn agent_check() {
    // Without a platform the VM's name is the machine's.
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    Session::new()
        .with_placeholder("came for HOST", &format!("came for {}", host.trim()))
        .check("agent_check");
}

#[test]
fn agent_status() {
    let service = service();
    service.cli(&["vm", "add", "web-0", "--address", "127.0.0.1"]);
    let (dir, listen) = (AgentDir::new(), support::free_address());
    let configure = |step: &str| {
        let rule = "[[rule]]\nname = \"drain\"\n[[rule.before]]\nname = \"stop-work\"\ntimeout = \"5s\"\n";
        dir.configure(Some(&format!("http://{}", service.guest)), &format!("{rule}{step}\n"));
        let config = std::fs::read_to_string(dir.path("agent.toml")).unwrap();
        let config = config.replace("listen = \"none\"", &format!("listen = \"{listen}\""));
        std::fs::write(dir.path("agent.toml"), config).unwrap();
    };
    configure("shell = \"exit 1\"");
    let _agent = dir.start("boot-1");
    let session = Session::with_service(&service)
        .with_placeholder("endpoint", &format!("http://{}", service.guest))
        .with_placeholder("listen", &listen.to_string())
        .with_placeholder("state", &dir.path("state").display().to_string())
        .with_placeholder("config", &dir.path("agent.toml").display().to_string());
    let shows = |text: &str| {
        wait_for(text, || {
            session.run("notbefore agent status --listen <listen>").contains(text).then_some(())
        });
    };
    shows("platform at <endpoint>\nno events");
    session.check("agent_idle");
    service.cli(&["event", "schedule", "--type", "reboot", "web-0"]);
    shows("none: ");
    // The history is written beside the agent's work.
    wait_for("the history", || {
        session.run("notbefore agent history --state <state>").contains("withheld").then_some(())
    });
    session.check("agent_withholds");
    // The last command has retried the step.
    shows("none: ");
    configure("comand = \"true\"");
    session.check("agent_mistaken");
    configure("shell = \"true\"");
    session.check("agent_mended");
}
