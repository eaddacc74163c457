//! Connection floods against the agent's listener.

use super::{Flood, REQUESTS, SOURCES, local};
use crate::support::agent::AgentDir;
use crate::support::{Service, exchange, free_address, wait_for};

const DRAINZ: &[u8] = b"GET /drainz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

#[test]
fn load_balancer_is_answered_during_connection_flood() {
    let service = Service::start(&[]);
    for sources in SOURCES {
        let dir = AgentDir::new();
        let rules = format!("[[rule]]\nname = \"all\"\n[[rule.before]]\n{}", AgentDir::traced("step", ""));
        dir.configure(Some(&format!("http://{}", service.guest)), &rules);
        let signals = free_address();
        let mut command = std::process::Command::new(crate::support::binary());
        command.env("NOTBEFORE_AGENT_LISTEN", signals.to_string());
        let _agent = dir.start_with(command, "boot 1");
        wait_for("the agent to listen", || std::net::TcpStream::connect(signals).ok());
        wait_for("the agent to be ready", || {
            (exchange(local(), signals, DRAINZ).status == 200).then_some(())
        });
        let payloads: [&[u8]; 2] = [b"", b"GET /drainz HTTP/1.1\r\nHost:"];
        let mut flood = Flood::new(signals, sources, &payloads);
        // If requests waited for one another, the last would exceed this test's timeout.
        flood.open(320);
        assert_eq!(
            flood.answered(|| exchange(local(), signals, DRAINZ).status),
            REQUESTS,
            "{sources} sources"
        );
        assert!(dir.log().contains("too many connections to the status server"), "{}", dir.log());
    }
}
