//! Pages under `docs/reference` list every command of `--help` and every metric.

use std::collections::BTreeSet;
use std::process::Command;

use crate::support::http::get;
use crate::support::pages::root;
use crate::support::{Service, binary};

/// Metrics that exist only with a certificate or several nodes, which this test's service does not have.
const OTHER_SETTINGS_ONLY: [&str; 19] = [
    "notbefore_operator_certificate_not_after_seconds gauge",
    "notbefore_forwarded_requests counter",
    "notbefore_node_messages_refused counter",
    "notbefore_cluster_leads gauge",
    "notbefore_cluster_nodes gauge",
    "notbefore_cluster_format_level gauge",
    "notbefore_cluster_watch_age_seconds gauge",
    "notbefore_cluster_watch_lag_revisions gauge",
    "notbefore_cluster_clock_offset_seconds gauge",
    "notbefore_cluster_fence_conflicts counter",
    "notbefore_cluster_unreadable_records gauge",
    "notbefore_cluster_step_downs counter",
    "notbefore_cluster_resyncs counter",
    "notbefore_cluster_resync_differences counter",
    "notbefore_etcd_endpoints_answering gauge",
    "notbefore_etcd_database_bytes gauge",
    "notbefore_etcd_database_in_use_bytes gauge",
    "notbefore_etcd_quota_bytes gauge",
    "notbefore_etcd_alarms gauge",
];

/// The rows of a table between `<!-- NAME -->` and `<!-- end of NAME -->`, as cells without backticks.
fn rows(page: &str, name: &str) -> Vec<Vec<String>> {
    let path = root().join(page);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
    let (_, rest) = text.split_once(&format!("<!-- {name} -->\n")).unwrap();
    let (table, _) = rest.split_once(&format!("<!-- end of {name} -->")).unwrap();
    let cells = |row: &str| {
        let cells = row.trim_matches('|').split(" | ");
        cells.map(|cell| cell.trim().replace('`', "")).collect()
    };
    // The first two lines are the head and the line below it.
    table.lines().skip(2).map(cells).collect()
}

/// The commands that `--help` of a command lists, or the command itself if it lists none.
fn commands(args: &[String]) -> Vec<String> {
    let help = Command::new(binary()).args(args).arg("--help").output().unwrap();
    assert!(help.status.success(), "{args:?}: {help:?}");
    let help = String::from_utf8(help.stdout).unwrap();
    let Some((_, list)) = help.split_once("\nCommands:\n") else {
        return vec![format!("notbefore {}", args.join(" "))];
    };
    // A line that continues a description is indented further.
    let names = list.lines().take_while(|line| !line.is_empty()).filter_map(|line| {
        let line = line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?;
        line.split(' ').next()
    });
    let below = names.filter(|name| *name != "help");
    let below = below.flat_map(|name| commands(&[args, &[name.to_owned()]].concat()));
    // A command that also runs without one of these, such as rehearse, has a usage of its own.
    let usage = help.lines().find(|line| line.starts_with("Usage:")).unwrap_or_default();
    let own = (!usage.contains("<COMMAND>")).then(|| format!("notbefore {}", args.join(" ")));
    own.into_iter().chain(below).collect()
}

#[test]
fn cli_page_lists_every_command_of_the_help() {
    let listed = rows("docs/reference/cli.md", "commands").into_iter().map(|mut row| row.swap_remove(0));
    let listed: Vec<String> = listed.collect();
    let real = commands(&[]);
    assert!(real.len() > 40, "{real:?}");
    assert_eq!(listed, real, "docs/reference/cli.md lists other commands, or in another order, than --help");
}

/// Name and type of each metric in a table, named as on the metrics page.
fn documented(table: &str) -> BTreeSet<String> {
    let row = |row: Vec<String>| {
        let [name, kind, ..] = &row[..] else { panic!("{row:?}") };
        let name = match kind.as_str() {
            "counter" => name.strip_suffix("_total").unwrap_or_else(|| panic!("{name} is a counter")),
            _ => name,
        };
        format!("{name} {kind}")
    };
    rows("docs/reference/metrics.md", table).into_iter().map(row).collect()
}

/// Name and type of each metric of a page.
fn served(page: &str) -> BTreeSet<String> {
    page.lines().filter_map(|line| line.strip_prefix("# TYPE ")).map(str::to_owned).collect()
}

#[test]
fn metrics_page_lists_every_metric_of_the_service() {
    let service = Service::start(&["--faults"]);
    // Refusals are on the page from the first one on.
    assert_eq!(get(service.operator, "/v1/vms").status, 401);
    let mut real = served(&service.operator_request("GET", "/metrics", "", "").body);
    assert!(real.len() > 15, "{real:?}");
    real.extend(OTHER_SETTINGS_ONLY.map(str::to_owned));
    assert_eq!(documented("service metrics"), real);
}

/// `agent/signals.rs` compares the fixture with the page of a real agent.
#[test]
fn metrics_page_lists_every_metric_of_the_agent() {
    let real = served(include_str!("../../fixtures/metrics/agent.txt"));
    assert_eq!(documented("agent metrics"), real);
}
