//! Files that another user may have written: the agent trusts only its own and root's.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Output};

use rustix::process::Signal;

use super::vm::{BOUNDED, Vm, stderr_text};
use crate::support::agent::AgentDir;
use crate::support::binary;
use crate::support::mounts::Mounts;

/// A user that is neither root nor the agent's.
const OTHER_USER: u32 = 1000;
/// The agent's private directory inside a writable one.
const OWN: &str = "state/notbefore-agent";

fn rules() -> String {
    let (before, after) = (AgentDir::traced("out", ""), AgentDir::traced("back", ""));
    format!("[[rule]]\nname = \"all\"\n[[rule.before]]\n{before}[[rule.after]]\n{after}")
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A VM that an agent has drained for an event; the agent is dead, and the event has ended.
fn left_out_of_service() -> Vm {
    let vm = Vm::new();
    vm.configure(&rules());
    let agent = vm.start_ready();
    let event = vm.announce("reboot");
    vm.wait_for_status(&event, "Started");
    agent.kill();
    vm.complete(&event);
    vm
}

/// Asserts the exit code of a refused command, and that its message contains all words.
fn refuses(output: &Output, code: i32, texts: &[&str]) {
    let stderr = stderr_text(output);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    for text in texts {
        assert!(stderr.contains(text), "{text:?} is not in {stderr}");
    }
}

#[test]
fn journal_with_wrong_owner_or_mode_is_not_used() {
    let vm = left_out_of_service();
    let journal = vm.dir.path("state/journal.json");
    let shown = journal.to_str().unwrap();
    let refused = |texts: &[&str]| {
        refuses(&vm.agent_cli(&["run"]), 1, texts);
        refuses(&vm.agent_cli(&["check", "--offline"]), 1, texts);
        refuses(&vm.agent_cli(&["status"]), 10, texts);
        assert_eq!(vm.dir.trace(), ["before out Reboot"]);
    };
    chown(&journal, Some(OTHER_USER), None).unwrap();
    refused(&[shown, "belongs to uid 1000, not to root", "mode 0600", &format!("'chown 0 {shown}'")]);
    set_mode(&journal, 0o666);
    refused(&["(owner uid 1000, mode 0666)", &format!("'chown 0 {shown} && chmod go-w {shown}'")]);
    chown(&journal, Some(0), None).unwrap();
    set_mode(&journal, 0o620);
    refused(&["can be written by its group (", &format!("'chmod g-w {shown}'")]);
    // A symbolic link is never followed.
    let elsewhere = vm.dir.path("elsewhere");
    set_mode(&journal, 0o600);
    fs::rename(&journal, &elsewhere).unwrap();
    symlink(&elsewhere, &journal).unwrap();
    refused(&[&format!("{shown} is a symbolic link"), &format!("'rm {shown}'")]);

    fs::rename(&elsewhere, &journal).unwrap();
    let _agent = vm.start_ready();
    assert_eq!(vm.dir.wait_for_trace(2), ["before out Reboot", "after back Reboot"]);
}

#[test]
fn files_beside_journal_are_checked_like_it() {
    let vm = left_out_of_service();
    for name in ["vm", "lock", "name", "endpoint"] {
        let path = vm.dir.path("state").join(name);
        fs::File::options().create(true).append(true).open(&path).unwrap();
        let before = mode(&path);
        chown(&path, Some(OTHER_USER), None).unwrap();
        refuses(&vm.agent_cli(&["run"]), 1, &[path.to_str().unwrap(), "belongs to uid 1000"]);
        chown(&path, Some(0), None).unwrap();
        set_mode(&path, before);
    }
    fs::remove_file(vm.dir.path("state/name")).unwrap();
    fs::remove_file(vm.dir.path("state/endpoint")).unwrap();
    let _agent = vm.start_ready();
    assert_eq!(vm.dir.wait_for_trace(2), ["before out Reboot", "after back Reboot"]);
}

#[test]
fn commands_name_the_mode_of_a_writable_state_directory() {
    let vm = Vm::new();
    vm.configure(&rules());
    let agent = vm.start_ready();
    let state = vm.dir.path("state");
    set_mode(&state, 0o777);
    let cure = format!("'chmod go-w {}'", state.display());
    for words in [&["reload"][..], &["retry", "a"], &["history"]] {
        let output = vm.agent_cli(words);
        refuses(&output, 1, &["mode 0777", &cure]);
        assert!(!stderr_text(&output).contains("run this as root"), "{}", stderr_text(&output));
    }
    set_mode(&state, 0o700);
    assert!(vm.agent_cli(&["reload"]).status.success());
    drop(agent);
}

/// The default state directory may be that of another agent.
#[test]
fn commands_need_the_configuration_that_names_the_state_directory() {
    let vm = Vm::new();
    vm.configure(&rules());
    let _agent = vm.start_ready();
    let (file, state) = (vm.dir.path("agent.toml"), vm.dir.path("state"));
    let shown = file.to_str().unwrap();
    let commands = [&["reload"][..], &["retry", "a"], &["history"]];
    set_mode(&file, 0o666);
    for words in commands {
        refuses(&vm.agent_cli(words), 2, &[&format!("'chmod go-w {shown}'"), "with --state"]);
    }
    fs::rename(&file, vm.dir.path("aside")).unwrap();
    for words in commands {
        refuses(&vm.agent_cli(words), 2, &[&format!("cannot read {shown}: No such file"), "with --state"]);
    }
    assert!(vm.agent_cli(&["history", "--state", state.to_str().unwrap()]).status.success());
}

#[test]
fn writable_state_directory_gets_private_subdirectory() {
    let vm = left_out_of_service();
    let (state, own) = (vm.dir.path("state"), vm.dir.path(OWN));
    chown(state.join("journal.json"), Some(OTHER_USER), None).unwrap();
    for (owner, open) in [(0, 0o1777), (0, 0o775), (OTHER_USER, 0o755)] {
        chown(&state, Some(owner), None).unwrap();
        set_mode(&state, open);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "umask 0; exec \"$0\" \"$@\"", binary()]);
        let agent = vm.start_with(command);
        vm.wait_for_answer("/readyz", 200, "ready");
        let event = vm.announce("freeze");
        vm.wait_for_status(&event, "Started");
        assert!(!vm.dir.log().contains("back"), "the journal outside is not believed: {}", vm.dir.log());
        assert_eq!((mode(&own), mode(&own.join("journal.json"))), (0o700, 0o600));
        assert!(vm.dir.log().contains("other users can write to "), "{}", vm.dir.log());
        agent.kill();
        // The next agent finds the journal of the last one.
        vm.complete(&event);
        let agent = vm.start_ready();
        vm.wait_for_log("after the Freeze is done");
        assert!(agent.terminate().success());
        fs::remove_file(vm.dir.path("log")).unwrap();
        fs::remove_dir_all(&own).unwrap();
    }
    // A directory of another user is not trusted.
    let shown = own.to_str().unwrap();
    fs::create_dir(&own).unwrap();
    fs::copy(state.join("journal.json"), own.join("journal.json")).unwrap();
    chown(&own, Some(OTHER_USER), None).unwrap();
    refuses(&vm.agent_cli(&["run"]), 1, &[shown, "belongs to uid 1000", &format!("'chown 0 {shown}'")]);
    refuses(&vm.agent_cli(&["check", "--offline"]), 1, &[shown, "belongs to uid 1000"]);
    fs::remove_dir_all(&own).unwrap();
    symlink(vm.dir.path("elsewhere"), &own).unwrap();
    refuses(&vm.agent_cli(&["run"]), 1, &[&format!("{shown} is a symbolic link")]);
    assert!(!vm.dir.path("elsewhere").exists());
}

/// If the journal were not read, the VM would stay drained forever.
#[test]
fn journal_moves_when_directory_mode_changes() {
    let vm = left_out_of_service();
    let state = vm.dir.path("state");
    set_mode(&state, 0o777);
    let cure = format!("'chmod go-w {}'", state.display());
    refuses(&vm.agent_cli(&["run"]), 1, &["can be written by its group and everybody", &cure]);
    assert!(!vm.dir.path(OWN).exists());
    set_mode(&state, 0o700);
    let agent = vm.start_ready();
    assert_eq!(vm.dir.wait_for_trace(2), ["before out Reboot", "after back Reboot"]);
    assert!(agent.terminate().success());

    fs::remove_dir_all(&state).unwrap();
    fs::create_dir(&state).unwrap();
    set_mode(&state, 0o777);
    let agent = vm.start_ready();
    let event = vm.announce("freeze");
    vm.wait_for_status(&event, "Started");
    agent.kill();
    vm.complete(&event);
    set_mode(&state, 0o700);
    let _agent = vm.start_ready();
    vm.wait_for_log("after the Freeze is done");
}

#[test]
fn unreadable_file_is_named_with_owner() {
    let vm = left_out_of_service();
    let state = vm.dir.path("state");
    let journal = state.join("journal.json");
    chown(&journal, Some(OTHER_USER), None).unwrap();
    // Root without CAP_DAC_OVERRIDE has the rights of an ordinary user.
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-dac_override,-dac_read_search", binary(), "agent", "status"]);
    let output = command.args(["--state", state.to_str().unwrap(), "--listen", "none"]).output().unwrap();
    let cure = format!("'chown 0 {}'", journal.display());
    refuses(&output, 1, &["belongs to uid 1000 (mode 0600)", "(uid 0) may not open it", &cure]);
}

#[test]
fn state_directory_is_private_for_any_umask_and_links_are_not_followed() {
    let vm = Vm::new();
    vm.configure(&rules());
    for umask in ["0", "0277"] {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\""), binary()]);
        command.env("NOTBEFORE_AGENT_STATE", vm.dir.path(umask).join("below"));
        let agent = vm.start_with(command);
        vm.wait_for_answer("/readyz", 200, "ready");
        let modes = ["", "below", "below/journal.json"].map(|name| mode(&vm.dir.path(umask).join(name)));
        assert_eq!(modes, [0o700, 0o700, 0o600], "umask {umask}");
        assert!(agent.terminate().success());
    }
    let link = vm.dir.path("link");
    symlink(vm.dir.path("0/below"), &link).unwrap();
    for spelled in [link.display().to_string(), format!("{}/", link.display())] {
        let output = vm.agent_cli(&["run", "--state", &spelled]);
        refuses(&output, 1, &[&format!("{} is a symbolic link", link.display())]);
    }
}

#[test]
fn writable_configuration_is_refused_unless_named() {
    let vm = Vm::new();
    vm.configure(&rules());
    let file = vm.dir.path("agent.toml");
    let shown = file.to_str().unwrap();
    for (open, letters) in [(0o666, "go"), (0o664, "g"), (0o646, "o")] {
        set_mode(&file, open);
        let cure = format!("'chmod {letters}-w {shown}'");
        for args in [&["run"][..], &["check", "--offline"]] {
            refuses(&vm.agent_cli(args), 2, &[shown, &format!("mode {open:04o}"), &cure]);
        }
        let status = vm.agent_cli(&["status"]);
        assert!(stderr_text(&status).contains(&cure), "{}", stderr_text(&status));
    }
    // Links to the configuration are followed, and the target file is checked.
    let link = vm.dir.path("link.toml");
    symlink(&file, &link).unwrap();
    let by_link = || {
        let args = ["agent", "check", "--offline", "--config"];
        Command::new(binary()).args(args).arg(&link).output().unwrap()
    };
    refuses(&by_link(), 2, &["mode 0646"]);
    set_mode(&file, 0o644);
    chown(&file, Some(OTHER_USER), None).unwrap();
    assert!(by_link().status.success(), "{}", stderr_text(&by_link()));

    // At the default path it must belong to root or to the agent's user.
    let mounts = Mounts::new();
    mounts.run(&format!(
        "mkdir -p etc/notbefore; cp --preserve=all {shown} etc/notbefore; mount --bind etc /etc"
    ));
    let by_default = || {
        let mut command = mounts.command("timeout");
        command.args(BOUNDED).arg(binary()).args(["agent", "check", "--offline"]).output().unwrap()
    };
    refuses(
        &by_default(),
        2,
        &["/etc/notbefore/agent.toml belongs to uid 1000", "'chown 0 /etc/notbefore/agent.toml'"],
    );
    mounts.run("chown 0 etc/notbefore/agent.toml");
    assert!(by_default().status.success(), "{}", stderr_text(&by_default()));
}

#[test]
fn configuration_is_checked_again_on_reload() {
    let vm = Vm::new();
    vm.configure(&rules());
    let agent = vm.start_ready();
    let file = vm.dir.path("agent.toml");
    vm.configure(&rules().replace("out", "planted"));
    set_mode(&file, 0o666);
    agent.signal(Signal::HUP);
    vm.wait_for_answer("/readyz", 503, "is not applied");
    vm.wait_for_log("chmod go-w");
    vm.wait_for_log("the previous rules stay in effect");
    let event = vm.announce("freeze");
    vm.wait_for_status(&event, "Started");
    assert_eq!(vm.dir.trace(), ["before out Freeze"]);
    set_mode(&file, 0o644);
    agent.signal(Signal::HUP);
    vm.wait_for_answer("/readyz", 200, "ready");
}
