//! Alert rules and dashboard in `dist/`: valid, and of metrics that exist.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use regex_lite::Regex;
use serde_json::Value;

use crate::support::pages::{blocks, root};

const RULES: &str = "dist/prometheus/notbefore.rules.yml";
const DASHBOARD: &str = "dist/grafana/notbefore.json";

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// The names of metrics in a text. A histogram is one metric with several series.
fn metrics(text: &str) -> BTreeSet<String> {
    let name = Regex::new(r"\bnotbefore_[a-z_]+").unwrap();
    name.find_iter(text).map(|found| found.as_str().trim_end_matches("_bucket").to_owned()).collect()
}

/// Runs promtool, which must succeed.
fn promtool(command: [&str; 2], file: &Path) {
    let done = Command::new("promtool").args(command).arg(file).output();
    let done = done.expect("Debian's prometheus, with promtool, is installed");
    assert!(done.status.success(), "{command:?}: {done:?}");
}

#[test]
fn rules_are_valid_and_all_metrics_exist() {
    promtool(["check", "rules"], &root().join(RULES));
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

/// Two cells, and etcd of one of them at 80 % of its quota.
const NEARLY_FULL: &str = r#"
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - { series: 'notbefore_etcd_database_bytes{job="east",instance="a"}', values: '1717986919x20' }
      - { series: 'notbefore_etcd_quota_bytes{job="east",instance="a"}', values: '2147483648x20' }
      - { series: 'notbefore_etcd_database_bytes{job="west",instance="b"}', values: '1717986919x20' }
      - { series: 'notbefore_etcd_quota_bytes{job="west",instance="b"}', values: '8589934592x20' }
    alert_rule_test:
      - eval_time: 15m
        alertname: NotbeforeEtcdNearlyFull
        exp_alerts:
          - exp_labels: { severity: warning, job: east }
            exp_annotations:
              summary: "the database of etcd has reached 80 % of its quota"
              description: "Defragment the members, if their disks have room for a second copy, lower events.keep_history_bytes, or raise the quota of the members and etcd.quota."
"#;

#[test]
fn nearly_full_etcd_of_one_cell_raises_an_alert_of_that_cell() {
    let dir = tempfile::tempdir().unwrap();
    let (rules, test) = (dir.path().join("rules.yml"), dir.path().join("test.yml"));
    std::fs::copy(root().join(RULES), &rules).unwrap();
    std::fs::write(&test, format!("rule_files: [rules.yml]\n{NEARLY_FULL}")).unwrap();
    promtool(["test", "rules"], &test);
}

#[test]
fn scrape_jobs_of_the_cluster_guide_are_valid() {
    let jobs = blocks(&read("docs/guide/cluster.md"), "yaml prometheus");
    let [jobs] = &jobs[..] else { panic!("{jobs:?}") };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("prometheus.yml");
    std::fs::write(&file, jobs).unwrap();
    promtool(["check", "config"], &file);
}
