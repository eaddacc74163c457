//! Pacemaker's agent for this endpoint, unmodified from Debian, with fake cluster tools.
//!
//! The agent stores its state in cluster attributes. The fake tools keep those as files: a test reads the agent's
//! decisions from them, and sets the state of the node's resources through `operations`.

use std::fs;

use tempfile::TempDir;

use crate::support::in_namespace::{ADDRESS, Service};
use crate::support::namespace::{failure_text, require_file};
use crate::support::program::source;

const AGENT: &str = "/usr/lib/ocf/resource.d/heartbeat/azure-events-az";
/// Pacemaker's listing of a stopped resource and of one in transition.
const AT_REST: &str =
    "database (ocf:heartbeat:pgsql): Started: database_start_0 (node=here, call=1, rc=0): complete";
const UNDER_WAY: &str =
    "database (ocf:heartbeat:pgsql): Started: database_stop_0 (node=here, call=-1, rc=193): pending";
/// A node without resources.
const NONE: &str = "";
/// The score that keeps every resource off a node.
const OUT_OF_SERVICE: &str = "-1000000";

/// A node of a two-node cluster; the other node can take over.
struct Node<'a> {
    service: &'a Service,
    name: String,
    cluster: TempDir,
}

impl<'a> Node<'a> {
    fn new(service: &'a Service) -> Self {
        require_file(AGENT, "resource-agents");
        // The agent uses the host name as the node's name; the first-run VM has the same name.
        let name = service.first_run_vm();
        let cluster = tempfile::tempdir().unwrap();
        fs::write(cluster.path().join("nodes"), format!("1 {name} member\n2 {name}-other member\n")).unwrap();
        let node = Self { service, name, cluster };
        node.resources_are(AT_REST);
        node
    }

    /// Sets the state of the node's resources.
    fn resources_are(&self, operation: &str) {
        fs::write(self.cluster.path().join("operations"), format!("{operation}\n")).unwrap();
    }

    /// Runs the agent's `monitor` once, as the cluster does every ten seconds.
    fn monitor(&self) {
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", source("crm_standins").display());
        let log = self.cluster.path().join("agent.log");
        let mut agent = self.service.namespace.bounded(AGENT);
        agent.arg("monitor").env("PATH", path).env("CRM_STANDINS", self.cluster.path());
        agent.env("OCF_ROOT", "/usr/lib/ocf").env("OCF_RESOURCE_INSTANCE", "events");
        agent.env("OCF_RESKEY_eventTypes", "Reboot,Redeploy").env("OCF_RESKEY_CRM_meta_interval", "10000");
        agent.env("HA_LOGFILE", &log).env("HA_debug", "1").env("PYTHONDONTWRITEBYTECODE", "1");
        let done = agent.output().unwrap();
        let log = || fs::read_to_string(&log).unwrap_or_default();
        assert!(done.status.success(), "{AGENT} monitor: {}\n{}", failure_text(&done), log());
        // The agent ignores a refused request or a failed tool, and only logs it.
        assert!(!log().contains("WARNING") && !log().contains("ERROR"), "{}", log());
    }

    /// An attribute of this node.
    fn attribute(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.cluster.path().join(&self.name).join(name)).ok()?;
        Some(text.trim_end().to_owned())
    }

    /// The node's state as the agent stores it, the events it waits for, and the node's weight.
    fn state(&self) -> (Option<String>, Option<String>, Option<String>) {
        let own = |name: &str| self.attribute(&format!("azure-events-az_{name}"));
        (own("curNodeState"), own("pendingEventIDs"), self.attribute("#health-azure"))
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// The agent is unmodified. The cluster is fake, because with Debian's Pacemaker this version of the agent crashes
/// before it approves. `monitor` runs on the test's request instead of every ten seconds, so that each step can be
/// observed.
#[test]
fn azure_events_az() {
    let service = Service::start(&[]);
    let node = Node::new(&service);

    node.monitor();
    assert_eq!(node.attribute("azName"), some(&node.name), "from /metadata/instance");
    assert_eq!(node.state(), (None, None, None), "nothing is announced, nothing is done");

    // Announced: the agent takes the node out of service when no resource is in transition.
    let event = service.user_operation("restart", &node.name);
    node.resources_are(UNDER_WAY);
    node.monitor();
    assert_eq!(node.state(), (some("STOPPING"), some(&event), None));
    node.resources_are(AT_REST);
    node.monitor();
    assert_eq!(node.state(), (some("STOPPING"), some(&event), some(OUT_OF_SERVICE)));

    // The agent approves only after the resources have moved away.
    node.resources_are(UNDER_WAY);
    node.monitor();
    assert_eq!(node.state(), (some("STOPPING"), some(&event), some(OUT_OF_SERVICE)));
    assert_eq!(service.status(&event), "Scheduled");
    node.resources_are(NONE);
    node.monitor();
    assert_eq!(node.state(), (some("IN_EVENT"), some(&event), some(OUT_OF_SERVICE)));
    assert_eq!(service.status(&event), "Started", "the agent approved it");
    assert_eq!(node.attribute("azure-events-az_lastDocVersion"), some("2"));

    // Started is a new incarnation, so the agent reads the document again and waits.
    node.monitor();
    assert_eq!(node.state(), (some("IN_EVENT"), some(&event), some(OUT_OF_SERVICE)));

    // The end of the event is another new incarnation. Without it, the node would stay out of service.
    service.complete(&event);
    node.monitor();
    assert_eq!(node.state(), (some("AVAILABLE"), None, some("0")));
    assert_eq!(node.attribute("azure-events-az_lastDocVersion"), None);
    service.assert_approved_by(&event, &node.name, ADDRESS);
}
