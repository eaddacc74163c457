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
    let sum = |of_scopes: &str| format!("{scopes} scopes: {of_scopes}");
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
        let names: Vec<&str> = stdout.lines().take(40).map(|line| line.split(':').next().unwrap()).collect();
        let expected: Vec<String> = (0..40).map(|n| format!("default/default/s{n}")).collect();
        assert_eq!(names, expected);
        assert_eq!(service.cli_json(&["vm", "show", "x"])["scope"], format!("default/default/s{with}"));
    }
}

/// A VM is renamed and keeps its address: one apply removes the old name and adds the new one, in one step.
#[test]
fn renamed_vm_keeps_its_address() {
    let service = Service::start(&[]);
    let file = service.data().join("fleet.yaml");
    let apply = |names: [&str; 2]| {
        let vm = |name: &str, address: u8| format!("{{ name: {name}, addresses: [127.1.61.{address}] }}");
        let yaml = format!(
            "scopes:\n  - {{ name: web, kind: availability-set, vms: [ {}, {} ] }}\n  - {{ name: db, kind: standalone, vms: [ {} ] }}\n",
            vm(names[0], 1),
            vm("stays", 2),
            vm(names[1], 3)
        );
        std::fs::write(&file, yaml).unwrap();
        let file = file.to_str().unwrap();
        let plan = service.cli(&["fleet", "diff", file, "--prune"]);
        (plan, service.cli(&["fleet", "apply", file, "--prune", "--yes"]))
    };
    apply(["old", "old-db"]);
    service.cli(&["event", "schedule", "--type", "reboot", "--in", "1h", "old", "stays"]);
    let (plan, applied) = apply(["new", "new-db"]);
    assert!(plan.contains("    - old\n    + new\n") && !plan.contains("refused"), "{plan}");
    assert!(applied.ends_with("2 scopes: 2 changed; VMs: 2 added, 2 removed\n"), "{applied}");
    for (name, address) in [("new", 1), ("stays", 2), ("new-db", 3)] {
        let vm = service.cli_json(&["vm", "show", name]);
        assert_eq!(vm["addresses"][0], format!("127.1.61.{address}"));
        let answer = service.poll([127, 1, 61, address].into(), "2020-07-01");
        assert_eq!(answer.status, 200, "{name}");
    }
    assert_eq!(apply(["new", "new-db"]).0, "no differences in 2 scopes\n");
    // The new owner's address belongs to a VM that stays.
    std::fs::write(
        &file,
        "scopes:\n  - { name: web, kind: availability-set, vms: [ { name: new, addresses: [127.1.61.2] }, { name: stays, addresses: [127.1.61.1] } ] }\n",
    )
    .unwrap();
    let refused = service.cli_refused(&["fleet", "diff", file.to_str().unwrap(), "--prune"]);
    assert!(refused.contains("1 of 1 scope would be refused"), "{refused}");
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
    assert!(stderr.contains("of 600 scopes applied; apply the file again for the rest"), "{stderr}");

    let service = service.restart();
    let stdout = service.cli(&["fleet", "apply", file.to_str().unwrap()]);
    assert!(stdout.starts_with("600 scopes: ") && stdout.contains(" unchanged"), "{stdout}");
    assert_eq!(service.cli_json(&["fleet", "show"]).as_array().unwrap().len(), 600);
}

const WEB: &str = "scopes:
  - name: web
    kind: availability-set
    vms:
      - { name: web-0, addresses: [127.1.31.1] }
      - { name: web-1, addresses: [127.1.31.2] }
  - { name: db, kind: standalone, vms: [ { name: db } ] }
";

#[test]
fn fleet_file_of_serve_is_applied_before_the_service_is_ready() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("fleet.yaml");
    std::fs::write(&file, WEB).unwrap();
    let path = file.to_str().unwrap();
    let flags = ["--fleet", path, "--guest-vm", "web-1=127.0.0.1:0"];
    let mut service = Service::start_with(&[("NOTBEFORE_LOG", "info")], &flags);
    assert_eq!(service.poll(Ipv4Addr::new(127, 1, 31, 1), "2020-07-01").status, 200);
    let vms = || -> Vec<String> {
        let vms = service.cli_json(&["vm", "list"]);
        vms.as_array().unwrap().iter().map(|vm| vm["path"].as_str().unwrap().to_owned()).collect()
    };
    // The listener of one VM is that of the file's VM, and there is no first-run VM.
    assert_eq!(vms(), ["default/default/db/db", "default/default/web/web-0", "default/default/web/web-1"]);
    let all = "scopes: 2 created, 0 changed, 0 unchanged, 0 refused; VMs: 3 added, 0 changed";
    assert!(service.log().contains(&format!("fleet file {path}: {all}")), "{}", service.log());
    assert!(!service.log().contains("--prune"), "{}", service.log());

    // A smaller file removes nothing, and the log has the command that does.
    let smaller =
        "scopes:\n  - name: web\n    kind: availability-set\n    vms: [ { name: web-0, host: h1 } ]\n";
    std::fs::write(&file, smaller).unwrap();
    service.kill();
    let mut service = service.restart();
    assert_eq!(service.cli_json(&["vm", "list"]).as_array().unwrap().len(), 3);
    assert_eq!(service.cli_json(&["vm", "show", "web-0"])["host"], "h1");
    let log = service.log();
    assert!(
        log.contains("scopes: 0 created, 1 changed, 0 unchanged, 0 refused; VMs: 0 added, 1 changed"),
        "{log}"
    );
    let says = format!(
        "2 VMs and 1 scope of earlier files are not in it and stay; to remove them, run 'notbefore fleet apply {path} --prune'"
    );
    assert!(log.contains(&says), "{log}");
    service.cli(&["fleet", "apply", path, "--prune", "--yes"]);
    assert_eq!(service.cli_json(&["vm", "list"]).as_array().unwrap().len(), 1);

    // A refused scope does not keep the service from serving the others.
    let other = "scopes:\n  - { name: web, kind: scale-set }\n  - { name: new, kind: standalone, vms: [ { name: new } ] }\n";
    std::fs::write(&file, other).unwrap();
    service.kill();
    let service = service.restart();
    let log = service.log();
    assert!(
        log.contains("scope default/default/web was refused: scope default/default/web is of kind"),
        "{log}"
    );
    service.cli(&["vm", "show", "new"]);
}

#[test]
fn vm_moves_between_scopes_of_the_fleet_file_of_serve() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("fleet.yaml");
    let scopes = |address: [&str; 2]| {
        let vm = |n: usize| format!("{{ name: v{n}, addresses: [{}] }}", address[n]);
        format!(
            "scopes:\n  - {{ name: a, kind: standalone, vms: [ {} ] }}\n  - {{ name: b, kind: standalone, vms: [ {} ] }}\n",
            vm(0),
            vm(1)
        )
    };
    std::fs::write(&file, scopes(["10.0.0.1", "10.0.0.2"])).unwrap();
    let service = Service::start(&["--fleet", file.to_str().unwrap()]);
    // The first scope gets the address that the second one gives up.
    std::fs::write(&file, scopes(["10.0.0.2", "10.0.0.3"])).unwrap();
    let service = service.restart();
    assert_eq!(service.cli_json(&["vm", "show", "v0"])["addresses"][0], "10.0.0.2");
    assert_eq!(service.cli_json(&["vm", "show", "v1"])["addresses"][0], "10.0.0.3");
}

#[test]
fn mistakes_in_the_fleet_file_of_serve_stop_the_start() {
    let place = tempfile::tempdir().unwrap();
    let (file, data) = (place.path().join("fleet.yaml"), place.path().join("data"));
    std::fs::write(&file, "scopes:\n  - { name: a, kind: nothing, vmss: [] }\n").unwrap();
    let mut command = std::process::Command::new(support::binary());
    let output = command.args(["serve", "--fleet"]).arg(&file).arg("--data").arg(&data).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("fleet.yaml has 2 mistakes:") && said.contains("did you mean vms?"), "{said}");
    assert!(!data.exists(), "{said}");
}
