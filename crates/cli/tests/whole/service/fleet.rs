//! A large fleet: applied, applied again, loaded after a restart, and removed. Here it has some thousands of VMs, to
//! take seconds; `./dev bench-fleet` uses a hundred thousand and prints the time of each step.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::time::Instant;

use crate::support;
use crate::support::Service;

/// Default number of VMs.
fn vms(usually: usize) -> usize {
    std::env::var("FLEET_TEST_VMS").map_or(usually, |text| text.parse().unwrap())
}

/// A fleet file of scopes of the given size. The first VM has an address that can call from here.
fn fleet(vms: usize, per_scope: usize) -> String {
    let mut yaml = "scopes:\n".to_owned();
    for scope in 0..vms / per_scope {
        let kind = if per_scope == 1 { "standalone" } else { "availability-set" };
        writeln!(yaml, "  - name: set-{scope}\n    kind: {kind}\n    group: g{}\n    vms:", scope % 10)
            .unwrap();
        for one in 0..per_scope {
            let n = scope * per_scope + one;
            let address = match n == 0 {
                true => "127.1.30.1".to_owned(),
                false => format!("10.{}.{}.{}", n >> 16, (n >> 8) & 255, n & 255),
            };
            let (domain, host) = (one % 5, n % 1_000);
            writeln!(
                yaml,
                "      - {{ name: vm-{n}, update_domain: {domain}, addresses: [{address}], host: h{host} }}"
            )
            .unwrap();
        }
    }
    yaml
}

/// Runs a step and prints its duration, for `./dev bench-fleet`.
fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    #[allow(clippy::disallowed_methods, reason = "this measures, and decides nothing")]
    let begun = Instant::now();
    let done = work();
    println!("{what}: {:.1} s", begun.elapsed().as_secs_f64());
    done
}

/// Resident memory of the service.
fn resident_mib(service: &Service) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

fn a_fleet_comes_and_goes(vms: usize, per_scope: usize) {
    let scopes = vms / per_scope;
    println!("{vms} VMs in {scopes} scopes");
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("fleet.yaml");
    std::fs::write(&file, fleet(vms, per_scope)).unwrap();
    let file = file.to_str().unwrap();
    let mut service = Service::start(&[]);

    let checked = timed("  check", || service.cli(&["fleet", "apply", "--check", file]));
    assert!(checked.contains(&format!("{scopes} scopes and {vms} VMs, no errors")), "{checked}");
    let applied = timed("  apply", || service.cli(&["fleet", "apply", file]));
    let sum =
        |of_scopes: &str| if scopes > 200 { format!("{scopes} scopes: {of_scopes}") } else { String::new() };
    assert!(applied.contains(&sum(&format!("{scopes} created; VMs: {vms} added"))), "{applied}");
    println!("  resident: {} MiB", resident_mib(&service));
    let again = timed("  apply again", || service.cli(&["fleet", "apply", file]));
    assert!(again.contains(&sum(&format!("{scopes} unchanged"))), "{again}");
    let listed = timed("  list", || service.cli_json(&["vm", "list"]));
    assert_eq!(listed.as_array().unwrap().len(), vms);
    timed("  export", || service.cli(&["export", temp.path().join("export.jsonl").to_str().unwrap()]));

    service.kill();
    let service = timed("  restart after kill -9", || service.restart());
    println!("  resident: {} MiB", resident_mib(&service));
    assert_eq!(service.poll(Ipv4Addr::new(127, 1, 30, 1), "2020-07-01").status, 200);
    let shown = service.cli_json(&["vm", "show", "vm-7"]);
    assert_eq!(shown["host"], "h7");

    let little = temp.path().join("little.yaml");
    std::fs::write(&little, fleet(per_scope * 2, per_scope)).unwrap();
    timed("  prune", || service.cli(&["fleet", "apply", "--prune", "--yes", little.to_str().unwrap()]));
    assert_eq!(service.cli_json(&["fleet", "show"]).as_array().unwrap().len(), 2);
}

#[test]
fn fleet_of_scopes_of_100_vms_is_applied() {
    a_fleet_comes_and_goes(vms(5_000), 100);
}

#[test]
fn fleet_of_standalone_vms_is_applied() {
    a_fleet_comes_and_goes(vms(1_000), 1);
}

/// A VM moves to another scope of the file with its address, whichever scope is applied first.
#[test]
fn vm_can_move_between_scopes_of_the_file() {
    let service = Service::start(&[]);
    let scopes = |with: usize| {
        let vm = |n: usize| if n == with { "{ name: x, addresses: [10.0.0.1] }" } else { "" };
        let scope = |n: usize| format!("  - {{ name: s{n}, kind: availability-set, vms: [ {} ] }}\n", vm(n));
        format!("scopes:\n{}", (0..40).map(scope).collect::<String>())
    };
    service.apply_fleet(&scopes(39));
    let file = service.data().join("fleet.yaml");
    for with in [0, 20, 39, 1] {
        std::fs::write(&file, scopes(with)).unwrap();
        let stdout = service.cli(&["fleet", "apply", "--prune", "--yes", file.to_str().unwrap()]);
        // The report is in the order of the file.
        let names: Vec<&str> = stdout.lines().map(|line| line.split(':').next().unwrap()).collect();
        let expected: Vec<String> = (0..40).map(|n| format!("default/default/s{n}")).collect();
        assert_eq!(names, expected);
        assert_eq!(service.cli_json(&["vm", "show", "x"])["scope"], format!("default/default/s{with}"));
    }
}

/// If the service stops, the apply ends at once; applying again finishes it.
#[test]
fn interrupted_apply_is_finished_by_next() {
    let mut service = Service::start(&[]);
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("fleet.yaml");
    std::fs::write(&file, fleet(600, 1)).unwrap();
    let apply = |data: &std::path::Path| {
        let mut command = std::process::Command::new(support::binary());
        command.args(["fleet", "apply", file.to_str().unwrap()]).env("NOTBEFORE_DATA", data);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    let cut_short = apply(service.data());
    support::wait_for("the first scopes", || {
        let scopes = service.cli_json(&["fleet", "show"]).as_array().unwrap().len();
        (scopes > 5).then_some(())
    });
    service.kill();
    let output = cut_short.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("of 600 scopes are applied; apply the file again for the rest"), "{stderr}");

    let service = service.restart();
    let stdout = service.cli(&["fleet", "apply", file.to_str().unwrap()]);
    assert!(stdout.starts_with("600 scopes: ") && stdout.contains(" unchanged"), "{stdout}");
    assert_eq!(service.cli_json(&["fleet", "show"]).as_array().unwrap().len(), 600);
}
