//! Pages under `docs/reference` list every command of `--help` and every metric.

use std::collections::BTreeSet;
use std::process::Command;

use regex_lite::Regex;

use super::etcd::Etcd;
use crate::support::http::get;
use crate::support::pages::root;
use crate::support::{Service, binary, wait_for};

/// Metrics that exist only with a certificate, which this test's services do not have.
const WITH_TLS_ONLY: &str = "notbefore_operator_certificate_not_after_seconds gauge";

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

/// Name and type of the metric in a row, named as on the metrics page.
fn metric(row: &[String]) -> String {
    let [name, kind, ..] = row else { panic!("{row:?}") };
    let name = match kind.as_str() {
        "counter" => name.strip_suffix("_total").unwrap_or_else(|| panic!("{name} is a counter")),
        _ => name,
    };
    format!("{name} {kind}")
}

/// Name and type of each metric in a table.
fn documented(table: &str) -> BTreeSet<String> {
    rows("docs/reference/metrics.md", table).iter().map(|row| metric(row)).collect()
}

/// Name and type of each metric of a page.
fn served(page: &str) -> BTreeSet<String> {
    page.lines().filter_map(|line| line.strip_prefix("# TYPE ")).map(str::to_owned).collect()
}

/// The page of a node that leads on a real etcd, and has asked it for its status.
fn page_of_a_node() -> String {
    let etcd = Etcd::start();
    let node = Service::start(&["--etcd", &etcd.url, "--node", "n1"]);
    assert_eq!(get(node.operator, "/v1/vms").status, 401);
    wait_for("the node to lead and to know etcd's size", || {
        let page = node.operator_request("GET", "/metrics", "", "").body;
        let has = |line: &str| page.contains(line);
        (has("\nnotbefore_cluster_leads 1\n") && has("\nnotbefore_etcd_database_bytes ")).then_some(page)
    })
}

#[test]
fn metrics_page_lists_every_metric_of_the_service() {
    let service = Service::start(&["--faults"]);
    // Refusals are on the page from the first one on.
    assert_eq!(get(service.operator, "/v1/vms").status, 401);
    let single = served(&service.operator_request("GET", "/metrics", "", "").body);
    assert!(single.len() > 15, "{single:?}");
    let page = page_of_a_node();
    let node = served(&page);
    let mut real: BTreeSet<String> = single.union(&node).cloned().collect();
    real.insert(WITH_TLS_ONLY.to_owned());
    assert_eq!(documented("service metrics"), real);

    let of_nodes = rows("docs/reference/metrics.md", "service metrics");
    let of_nodes = of_nodes.iter().filter(|row| row.last().unwrap().ends_with("Only with several nodes"));
    let names: BTreeSet<String> = of_nodes.clone().map(|row| metric(row)).collect();
    assert_eq!(names, node.difference(&single).cloned().collect(), "metrics of several nodes only");
    for row in of_nodes {
        // A row without labels has three cells.
        let [name, _, labels, _] = &row[..] else { continue };
        let (label, values) = labels.split_once(": ").unwrap();
        let sample = Regex::new(&format!(r#"(?m)^{name}\{{{label}="([^"]+)"\}}"#)).unwrap();
        let real: BTreeSet<&str> =
            sample.captures_iter(&page).map(|one| one.get(1).unwrap().as_str()).collect();
        assert_eq!(values.split(", ").collect::<BTreeSet<_>>(), real, "{label} of {name}");
    }
}

/// `agent/signals.rs` compares the fixture with the page of a real agent.
#[test]
fn metrics_page_lists_every_metric_of_the_agent() {
    let real = served(include_str!("../../fixtures/metrics/agent.txt"));
    assert_eq!(documented("agent metrics"), real);
}
