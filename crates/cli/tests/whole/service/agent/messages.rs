//! Messages of `check`, `status` and `sample`, and configuration errors.

use std::process::Command;

use super::vm::{Vm, complaint, free_address, printed};
use crate::support::agent::AgentDir;
use crate::support::binary;

#[test]
fn config_errors_name_their_lines() {
    let vm = Vm::new();
    let file = vm.place.path("agent.toml");
    let text = "endpont = \"http://x\"\n[[rule]]\nname = \"all\"\n[[rule.before]]\ncomand = [\"x\"]\n[[rule]]\nname = \"all\"\napprove = \"maybe\"\n";
    std::fs::write(&file, text).unwrap();
    let at = |line: usize| format!("{}:{line}", file.display());
    let expected = format!(
        "notbefore: the configuration has 5 mistakes:\n  \
         {}: unknown key endpont; did you mean endpoint?\n  \
         {}: a step has no action; give it one of command, shell, webhook, stop_unit, start_unit, write_file, remove_file, wait, wait_for\n  \
         {}: unknown key rule.before.comand; did you mean rule.before.command?\n  \
         {}: rule.name: there are two rules \"all\"; rename one\n  \
         {}: rule.approve: expected \"when-done\", \"leader\" or \"never\", not \"maybe\"\n",
        at(1),
        at(4),
        at(5),
        at(7),
        at(8)
    );
    for verb in ["run", "check"] {
        let output = vm.agent_cli(&[verb]);
        assert_eq!(output.status.code(), Some(2), "{verb}");
        assert_eq!(complaint(&output), expected, "{verb}");
    }
    std::fs::write(&file, "log = \"info,x=loud\"\n[[rule]]\nname = \"all\"\n").unwrap();
    for verb in ["run", "check"] {
        let output = vm.agent_cli(&[verb]);
        assert_eq!(output.status.code(), Some(2), "{verb}");
        assert!(complaint(&output).contains("log: expected a level"), "{verb}: {}", complaint(&output));
    }
    std::fs::write(&file, "[[rule]]\nname = \"all\"\n[[rule]]\nname = \"late\"\n").unwrap();
    let never = vm.agent_cli(&["run"]);
    assert_eq!(never.status.code(), Some(2));
    assert!(
        complaint(&never).contains(&format!("{}: the rule `late` can never match", at(3))),
        "{}",
        complaint(&never)
    );
}

#[test]
fn missing_config_error_shows_how_to_create_it() {
    let place = AgentDir::new();
    let file = place.path("agent.toml");
    let run = |words: &[&str]| {
        Command::new(binary()).arg("agent").args(words).arg("--config").arg(&file).output().unwrap()
    };
    let output = run(&["check", "--offline"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        complaint(&output).contains("create one with 'notbefore agent sample > "),
        "{}",
        complaint(&output)
    );
    let nowhere = file.with_file_name("no-such-directory").join("agent.toml");
    let output = Command::new(binary()).args(["agent", "run", "--config"]).arg(nowhere).output().unwrap();
    assert!(complaint(&output).contains("create its directory, then run"), "{}", complaint(&output));
    let sample = Command::new(binary()).args(["agent", "sample"]).output().unwrap();
    std::fs::write(&file, &sample.stdout).unwrap();
    let output = run(&["check", "--offline", "--state", place.path("state").to_str().unwrap()]);
    assert!(output.status.success(), "{}", complaint(&output));
    assert!(printed(&output).contains("drain: any event of this VM"), "{}", printed(&output));
}

#[test]
fn check_finds_platform_and_problems() {
    let vm = Vm::new();
    vm.configure("[[rule]]\nname = \"all\"\n[[rule.before]]\nwait = \"1s\"\n");
    let output = vm.agent_cli(&["check"]);
    assert!(output.status.success(), "{}", complaint(&output));
    let expected = format!("platform: http://{}, VM: {}", vm.service.guest, vm.name);
    assert!(printed(&output).contains(&expected), "{}", printed(&output));

    vm.configure("[[rule]]\nname = \"all\"\n[[rule.before]]\ncommand = [\"/nowhere/drain\"]\n[[rule.after]]\nshell = \"if true\"\n");
    let output = vm.agent_cli(&["check", "--output", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let problems: Vec<&str> =
        report["problems"].as_array().unwrap().iter().filter_map(|one| one.as_str()).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert_eq!(problems[0], "rule all, step 1 before: no program /nowhere/drain found");
    assert!(problems[1].contains("shell syntax error"), "{problems:?}");
    // Beside an agent that runs, its address is taken by the right one.
    vm.configure("[[rule]]\nname = \"all\"\n");
    let agent = vm.start_ready();
    let output = vm.agent_cli(&["check"]);
    assert!(output.status.success(), "{}", complaint(&output));
    agent.kill();
    let _somebody_else = std::net::TcpListener::bind(vm.signals).unwrap();
    vm.configure("[notify]\nurl = \"http://no-such-host.invalid/s3cret\"\n");
    let in_a_file = vm.place.path("agent.toml").join("state");
    let output = vm.agent_cli(&["check", "--offline", "--state", in_a_file.to_str().unwrap()]);
    let said = complaint(&output);
    assert!(said.contains("3 problems:") && !said.contains("s3cret"), "{said}");
    assert!(said.contains("notify: no-such-host.invalid cannot be resolved"), "{said}");
    assert!(said.contains(&format!("cannot use {}", in_a_file.display())), "{said}");
    assert!(said.contains(&format!("cannot listen at {}", vm.signals)), "{said}");
    let nobody = format!("http://{}", free_address());
    let output = vm.agent_cli(&["check", "--endpoint", &nobody]);
    assert!(
        complaint(&output).contains(&format!("{nobody} (as set): cannot connect")),
        "{}",
        complaint(&output)
    );
}

#[test]
fn status_reports_problems() {
    let vm = Vm::new();
    let file = vm.place.path("agent.toml");
    let status = |words: &[&str]| {
        let words = [&["agent", "status", "--config", file.to_str().unwrap()], words].concat();
        Command::new(binary()).args(words).output().unwrap()
    };
    vm.configure("[[rule]]\nname = \"all\"\n");
    let agent = vm.start_ready();
    let listen = format!("listen = \"{}\"\n", vm.signals);
    for broken in ["tipes = 1\n[[rule", "[[rule]]\nname = \"all\"\ntypes = 7\n"] {
        std::fs::write(&file, format!("{listen}{broken}")).unwrap();
        agent.signal(rustix::process::Signal::HUP);
        vm.wait_for_answer("/readyz", 503, "is not applied");
        let output = status(&[]);
        assert!(printed(&output).contains("configuration is not applied: 1 mistake"), "{output:?}");
    }
    // An unreadable or missing file does not matter while the agent answers.
    std::fs::remove_file(&file).unwrap();
    let output = status(&["--listen", &vm.signals.to_string()]);
    assert!(printed(&output).contains(": in service, platform at "), "{output:?}");
    agent.kill();
    let nothing = vm.place.path("nothing");
    let output = status(&["--listen", &vm.signals.to_string(), "--state", nothing.to_str().unwrap()]);
    let said = complaint(&output);
    assert!(said.contains(&format!("no agent answers at {}", vm.signals)), "{said}");
    assert!(said.contains("agent.toml: No such file") && said.contains("cannot read a journal in"), "{said}");
}

/// The text of an error with all its sources.
#[test]
fn errors_are_printed_once() {
    let vm = Vm::new();
    vm.configure("[[rule]]\nname = \"all\"\n");
    let somebody_else = std::net::TcpListener::bind(vm.signals).unwrap();
    let taken = vm.agent_cli(&["run"]);
    drop(somebody_else);
    let file = vm.place.path("agent.toml");
    let no_directory = vm.agent_cli(&["run", "--state", file.to_str().unwrap()]);
    let (directory, lock) = (vm.place.path("other"), vm.place.path("other/lock"));
    std::fs::create_dir_all(&lock).unwrap();
    let no_lock = vm.agent_cli(&["run", "--state", directory.to_str().unwrap()]);
    for (output, cause, thing) in [
        (taken, "Address already in use", format!("cannot listen at {}", vm.signals)),
        (no_directory, "Not a directory", format!("cannot use {} (", file.display())),
        (no_lock, "Is a directory", format!("cannot use {} (", lock.display())),
    ] {
        let said = complaint(&output);
        assert_eq!((output.status.code(), said.matches(cause).count()), (Some(1), 1), "{said}");
        assert!(said.contains(&thing), "{said}");
    }
}

#[test]
fn check_changes_nothing() {
    let vm = Vm::new();
    vm.configure("[[rule]]\nname = \"all\"\n");
    let files = || {
        let entries = std::fs::read_dir(vm.place.path(".")).unwrap().map(|entry| entry.unwrap().file_name());
        entries.collect::<std::collections::BTreeSet<_>>()
    };
    let before = files();
    let output = vm.agent_cli(&["check"]);
    assert!(output.status.success(), "{}", complaint(&output));
    assert_eq!(files(), before);
}
