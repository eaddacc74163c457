//! Three VMs of one event, each with an agent that discovers its endpoint and name: all prepare, the first one approves
//! when it is ready, and all restore themselves.

use super::callers::linked;
use crate::support::agent::{Agent, AgentDir};
use crate::support::in_namespace::Service;
use crate::support::namespace::Namespace;
use crate::support::{binary, wait_for};

const FLEET: &str = "scopes:
  - name: web
    kind: availability-set
    vms:
      - { name: web-0, update_domain: 0, addresses: [10.77.1.2] }
      - { name: web-1, update_domain: 0, addresses: [10.77.2.2] }
      - { name: web-2, update_domain: 0, addresses: [10.77.3.2] }
";

#[test]
fn leader_of_three_vms_approves() {
    let namespace = Namespace::new();
    let homes = [1, 2, 3].map(|number| linked(&namespace, number));
    let service = Service::start_in(namespace, &["--strict"]);
    service.apply_fleet(FLEET);
    let made = service.cli(&["event", "schedule", "--type", "reboot", "web-0", "web-1", "web-2"]);
    let event = made["targets"][0]["event"].as_str().unwrap().to_uppercase();
    let resources = &service.cli(&["event", "show", &event])["resources"];
    let leader = resources[0].as_str().or(resources[0]["name"].as_str()).unwrap();
    let leader: usize = leader.rsplit('-').next().unwrap().parse().unwrap();

    let places = [(); 3].map(|()| AgentDir::new());
    let go = places[leader].path("go");
    let agents: Vec<Agent> = places
        .iter()
        .zip(&homes)
        .map(|(dir, home)| {
            // Only the leader's step waits, so the leader is the last to be ready.
            let wait = if *dir.path("go") == *go {
                format!("; while [ ! -e {} ]; do sleep 0.05; done", go.display())
            } else {
                String::new()
            };
            let before = format!("[[rule.before]]\n{}", AgentDir::traced("drain", &wait));
            let after = format!("[[rule.after]]\n{}", AgentDir::traced("start", ""));
            dir.configure(None, &format!("[[rule]]\nname = \"all\"\napprove = \"leader\"\n{before}{after}"));
            dir.start_with(home.command(binary()), "boot 1")
        })
        .collect();

    for dir in &places {
        assert_eq!(dir.wait_for_trace(1), ["before drain Reboot"], "{}", dir.log());
    }
    for (number, dir) in places.iter().enumerate().filter(|(number, _)| *number != leader) {
        let line = format!("web-{leader} is first of the event's VMs");
        wait_for(&format!("web-{number} to leave it to the leader"), || {
            dir.log().contains(&line).then_some(())
        });
    }
    assert_eq!(service.status(&event), "Scheduled", "the leader is not ready");
    std::fs::write(&go, "").unwrap();
    wait_for("the event to start", || (service.status(&event) == "Started").then_some(()));
    service.complete(&event);
    for dir in &places {
        assert_eq!(dir.wait_for_trace(2)[1], "after start Reboot");
    }
    service.assert_approved_by(&event, &format!("web-{leader}"), &format!("10.77.{}.2", leader + 1));
    drop(agents);
}
