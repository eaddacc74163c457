//! Alert rules and dashboard in `dist/`: valid, and of metrics that exist.

use std::collections::BTreeSet;
use std::process::Command;

use regex::Regex;
use serde_json::Value;

use crate::support::pages::root;

const RULES: &str = "dist/prometheus/notbefore.rules.yml";
const DASHBOARD: &str = "dist/grafana/notbefore.json";

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// The names of metrics in a text.
fn metrics(text: &str) -> BTreeSet<String> {
    let name = Regex::new(r"\bnotbefore_[a-z_]+").unwrap();
    name.find_iter(text).map(|found| found.as_str().to_owned()).collect()
}

#[test]
fn rules_are_valid_and_all_metrics_exist() {
    let checked = Command::new("promtool").args(["check", "rules"]).arg(root().join(RULES)).output();
    let checked = checked.expect("Debian's prometheus, with promtool, is installed");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let known = metrics(&read("docs/reference/metrics.md"));
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap().iter());
    let queries: String = targets.map(|target| format!("{}\n", target["expr"].as_str().unwrap())).collect();
    let (in_rules, in_panels) = (metrics(&read(RULES)), metrics(&queries));
    assert!(in_rules.len() > 10 && in_panels.len() > 10, "{in_rules:?} {in_panels:?}");
    for name in in_rules.union(&in_panels) {
        assert!(known.contains(name), "docs/reference/metrics.md does not list {name}");
    }
}
