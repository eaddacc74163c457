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
        .map(|(place, home)| {
            // Only the leader has to wait for something, so that it is the last to be ready.
            let wait = if *place.path("go") == *go {
                format!("; while [ ! -e {} ]; do sleep 0.05; done", go.display())
            } else {
                String::new()
            };
            let before = format!("[[rule.before]]\n{}", AgentDir::traced("drain", &wait));
            let after = format!("[[rule.after]]\n{}", AgentDir::traced("start", ""));
            place
                .configure(None, &format!("[[rule]]\nname = \"all\"\napprove = \"leader\"\n{before}{after}"));
            place.start_with(home.command(binary()), "boot 1")
        })
        .collect();

    for place in &places {
        assert_eq!(place.wait_for_trace(1), ["before drain Reboot"], "{}", place.log());
    }
    for (number, place) in places.iter().enumerate().filter(|(number, _)| *number != leader) {
        let told = format!("web-{leader} is first of the event's VMs");
        wait_for(&format!("web-{number} to leave it to the leader"), || {
            place.log().contains(&told).then_some(())
        });
    }
    assert_eq!(service.status(&event), "Scheduled", "the leader is not ready");
    std::fs::write(&go, "").unwrap();
    wait_for("the event to start", || (service.status(&event) == "Started").then_some(()));
    service.complete(&event);
    for place in &places {
        assert_eq!(place.wait_for_trace(2)[1], "after start Reboot");
    }
    service.assert_approved_by(&event, &format!("web-{leader}"), &format!("10.77.{}.2", leader + 1));
    drop(agents);
}
