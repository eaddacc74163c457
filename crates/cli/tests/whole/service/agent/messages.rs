//! Messages of `check`, `status` and `sample`, and configuration errors.

use std::process::Command;

use super::vm::{Vm, free_address, stderr_text, stdout_text};
use crate::support::agent::AgentDir;
use crate::support::binary;

#[test]
fn config_errors_name_their_lines() {
    let vm = Vm::new();
    let file = vm.dir.path("agent.toml");
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
        assert_eq!(stderr_text(&output), expected, "{verb}");
    }
    std::fs::write(&file, "log = \"info,x=loud\"\n[[rule]]\nname = \"all\"\n").unwrap();
    for verb in ["run", "check"] {
        let output = vm.agent_cli(&[verb]);
        assert_eq!(output.status.code(), Some(2), "{verb}");
        assert!(stderr_text(&output).contains("log: expected a level"), "{verb}: {}", stderr_text(&output));
    }
    std::fs::write(&file, "[[rule]]\nname = \"all\"\n[[rule]]\nname = \"late\"\n").unwrap();
    let never = vm.agent_cli(&["run"]);
    assert_eq!(never.status.code(), Some(2));
    assert!(
        stderr_text(&never).contains(&format!("{}: the rule `late` can never match", at(3))),
        "{}",
        stderr_text(&never)
    );
}

#[test]
fn missing_config_error_shows_how_to_create_it() {
    let dir = AgentDir::new();
    let file = dir.path("agent.toml");
    let run = |args: &[&str]| {
        Command::new(binary()).arg("agent").args(args).arg("--config").arg(&file).output().unwrap()
    };
    let output = run(&["check", "--offline"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr_text(&output).contains("create one with 'notbefore agent sample > "),
        "{}",
        stderr_text(&output)
    );
    let nowhere = file.with_file_name("no-such-directory").join("agent.toml");
    let output = Command::new(binary()).args(["agent", "run", "--config"]).arg(nowhere).output().unwrap();
    assert!(stderr_text(&output).contains("create its directory, then run"), "{}", stderr_text(&output));
    let sample = Command::new(binary()).args(["agent", "sample"]).output().unwrap();
    std::fs::write(&file, &sample.stdout).unwrap();
    let output = run(&["check", "--offline", "--state", dir.path("state").to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    assert!(stdout_text(&output).contains("drain: any event of this VM"), "{}", stdout_text(&output));
}

#[test]
fn check_finds_platform_and_problems() {
    let vm = Vm::new();
    vm.configure("[[rule]]\nname = \"all\"\n[[rule.before]]\nwait = \"1s\"\n");
    let output = vm.agent_cli(&["check"]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    let expected = format!("platform: http://{}, VM: {}", vm.service.guest, vm.name);
    assert!(stdout_text(&output).contains(&expected), "{}", stdout_text(&output));

    vm.configure("[[rule]]\nname = \"all\"\n[[rule.before]]\ncommand = [\"/nowhere/drain\"]\n[[rule.after]]\nshell = \"if true\"\n");
    let output = vm.agent_cli(&["check", "--output", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let problems: Vec<&str> =
        report["problems"].as_array().unwrap().iter().filter_map(|one| one.as_str()).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert_eq!(problems[0], "rule all, step 1 before: no program /nowhere/drain found");
    assert!(problems[1].contains("shell syntax error"), "{problems:?}");
    // An address in use by the running agent itself is not an error.
    vm.configure("[[rule]]\nname = \"all\"\n");
    let agent = vm.start_ready();
    let output = vm.agent_cli(&["check"]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    agent.kill();
    let _somebody_else = std::net::TcpListener::bind(vm.signals).unwrap();
    vm.configure("[notify]\nurl = \"http://no-such-host.invalid/s3cret\"\n");
    let in_a_file = vm.dir.path("agent.toml").join("state");
    let output = vm.agent_cli(&["check", "--offline", "--state", in_a_file.to_str().unwrap()]);
    let stderr = stderr_text(&output);
    assert!(stderr.contains("3 problems:") && !stderr.contains("s3cret"), "{stderr}");
    assert!(stderr.contains("notify: no-such-host.invalid cannot be resolved"), "{stderr}");
    assert!(stderr.contains(&format!("cannot use {}", in_a_file.display())), "{stderr}");
    assert!(stderr.contains(&format!("cannot listen at {}", vm.signals)), "{stderr}");
    let closed = format!("http://{}", free_address());
    let output = vm.agent_cli(&["check", "--endpoint", &closed]);
    assert!(
        stderr_text(&output).contains(&format!("{closed} (as set): cannot connect")),
        "{}",
        stderr_text(&output)
    );
}

#[test]
fn agent_without_rules_says_that_it_approves_nothing() {
    let vm = Vm::new();
    vm.configure("[notify]\nurl = \"http://127.0.0.1:1/\"\n");
    let warning = "no [[rule]]: the agent notifies and approves nothing";
    let _agent = vm.start_ready();
    vm.wait_for_log(warning);
    for words in [&["check"][..], &["reload"]] {
        let output = vm.agent_cli(words);
        let stderr = stderr_text(&output);
        assert!(output.status.success() && stderr.contains(&format!("warning: {warning}")), "{stderr}");
    }
    assert_eq!(vm.dir.log().matches(warning).count(), 2, "at its start and at the reload");
}

#[test]
fn status_reports_problems() {
    let vm = Vm::new();
    let file = vm.dir.path("agent.toml");
    let status = |args: &[&str]| {
        let args = [&["agent", "status", "--config", file.to_str().unwrap()], args].concat();
        Command::new(binary()).args(args).output().unwrap()
    };
    vm.configure("[[rule]]\nname = \"all\"\n");
    let agent = vm.start_ready();
    let listen = format!("listen = \"{}\"\n", vm.signals);
    for broken in ["tipes = 1\n[[rule", "[[rule]]\nname = \"all\"\ntypes = 7\n"] {
        std::fs::write(&file, format!("{listen}{broken}")).unwrap();
        agent.signal(rustix::process::Signal::HUP);
        vm.wait_for_answer("/readyz", 503, "is not applied");
        let output = status(&[]);
        assert!(stdout_text(&output).contains("configuration is not applied: 1 mistake"), "{output:?}");
    }
    // An unreadable or missing file does not matter while the agent answers.
    std::fs::remove_file(&file).unwrap();
    let output = status(&["--listen", &vm.signals.to_string()]);
    assert!(stdout_text(&output).contains(": in service, platform at "), "{output:?}");
    agent.kill();
    let nothing = vm.dir.path("nothing");
    let output = status(&["--listen", &vm.signals.to_string(), "--state", nothing.to_str().unwrap()]);
    let stderr = stderr_text(&output);
    assert!(stderr.contains(&format!("no agent answers at {}", vm.signals)), "{stderr}");
    assert!(
        stderr.contains("agent.toml: No such file") && stderr.contains("cannot read a journal in"),
        "{stderr}"
    );
}

/// The text of an error with all its sources.
#[test]
fn errors_are_printed_once() {
    let vm = Vm::new();
    vm.configure("[[rule]]\nname = \"all\"\n");
    let somebody_else = std::net::TcpListener::bind(vm.signals).unwrap();
    let taken = vm.agent_cli(&["run"]);
    drop(somebody_else);
    let file = vm.dir.path("agent.toml");
    let no_directory = vm.agent_cli(&["run", "--state", file.to_str().unwrap()]);
    let (directory, lock) = (vm.dir.path("other"), vm.dir.path("other/lock"));
    std::fs::create_dir_all(&lock).unwrap();
    let no_lock = vm.agent_cli(&["run", "--state", directory.to_str().unwrap()]);
    for (output, cause, thing) in [
        (taken, "Address already in use", format!("cannot listen at {}", vm.signals)),
        (no_directory, "Not a directory", format!("cannot use {} (", file.display())),
        (no_lock, "Is a directory", format!("cannot use {} (", lock.display())),
    ] {
        let stderr = stderr_text(&output);
        assert_eq!((output.status.code(), stderr.matches(cause).count()), (Some(1), 1), "{stderr}");
        assert!(stderr.contains(&thing), "{stderr}");
    }
}

#[test]
fn check_changes_nothing() {
    let vm = Vm::new();
    vm.configure("[[rule]]\nname = \"all\"\n");
    let files = || {
        let entries = std::fs::read_dir(vm.dir.path(".")).unwrap().map(|entry| entry.unwrap().file_name());
        entries.collect::<std::collections::BTreeSet<_>>()
    };
    let before = files();
    let output = vm.agent_cli(&["check"]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    assert_eq!(files(), before);
}
