//! The page and its named blocks: a fence that begins with `sh NAME` is the block of that name.

use std::collections::BTreeSet;
use std::process::Command;

use crate::support::binary;
use crate::support::namespace::failure_text;

const PAGE: &str = include_str!("../../../../../docs/guide/hypervisor.md");
const FENCE: &str = "```sh ";

/// The block of a name.
pub fn block(name: &str) -> &'static str {
    let begin = format!("{FENCE}{name}\n");
    let (_, rest) = PAGE.split_once(&begin).unwrap_or_else(|| panic!("the page has no block {name}"));
    rest.split_once("\n```").unwrap().0
}

/// The page's settings are valid.
#[test]
fn page_configuration_is_valid() {
    let text = PAGE.split_once("```toml\n").unwrap().1.split_once("```").unwrap().0;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("notbefore.toml");
    // Checking the settings reads the secret, which exists only on a reader's machine.
    let secret = dir.path().join("proxy.secret");
    std::fs::write(&secret, "a secret that is long enough\n").unwrap();
    assert!(text.contains("/etc/notbefore/proxy.secret"), "{text}");
    std::fs::write(&file, text.replace("/etc/notbefore/proxy.secret", secret.to_str().unwrap())).unwrap();
    let mut serve = Command::new(binary());
    let checked = serve.args(["serve", "--check-config", "--config"]).arg(&file).output().unwrap();
    assert!(checked.status.success(), "{}", failure_text(&checked));
}

/// Incomplete proxy settings, a missing device and a missing secret: each error names its fix.
#[test]
fn invalid_network_setup_error_names_fix() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty");
    std::fs::write(&empty, "\n").unwrap();
    let file = empty.to_str().unwrap();
    for (args, error) in [
        (&["--proxy", "10.9.0.2"] as &[&str], "--proxy is given without --proxy-secret-file"),
        (&["--proxy-secret-file", file], "--proxy-secret-file is given without --proxy"),
        (
            &["--proxy", "10.9.0.2", "--proxy-secret-file", "/nowhere"],
            "cannot read the proxies' secret from /nowhere",
        ),
        (
            &["--proxy", "10.9.0.2", "--proxy-secret-file", file],
            "is empty: write the secret that the proxies sign with",
        ),
        (&["--proxy", "10.9.0.2/24"], "a prefix without host bits"),
        (&["--proxy", "0.0.0.0/0"], "a prefix without host bits"),
        (&["--guest", "127.0.0.1:0%nowhere"], "create the device first (ip link show nowhere"),
        (&["--guest", "127.0.0.1:0+proxy"], "127.0.0.1:9254+tproxy"),
    ] {
        let mut serve = Command::new(binary());
        serve.args(["serve", "--operator", "127.0.0.1:0", "--data"]).arg(dir.path().join("data"));
        if args[0] != "--guest" {
            serve.args(["--guest", "127.0.0.1:0"]);
        }
        let refused = serve.args(args).output().unwrap();
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && stderr.contains(error), "{args:?}: {stderr}");
    }
}

/// A block that no test runs would be unverified.
#[test]
fn every_block_of_the_page_has_a_test() {
    let tests = [
        include_str!("machine.rs"),
        include_str!("guard.rs"),
        include_str!("proxy.rs"),
        include_str!("tenants.rs"),
        include_str!("routes.rs"),
    ];
    let names: Vec<&str> = PAGE.split(FENCE).skip(1).map(|rest| rest.split_once('\n').unwrap().0).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "a name twice: {names:?}");
    for name in &names {
        assert!(tests.iter().any(|test| test.contains(&format!("\"{name}\""))), "no test runs {name}");
    }
    assert_eq!(PAGE.matches("\n```sh").count(), names.len(), "a block without a name");
}
