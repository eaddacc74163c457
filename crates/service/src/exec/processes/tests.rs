use rustix::process::getpid;

use super::*;

pub(in super::super) fn process(pid: i32, parent: i32, group: i32, started: u64) -> Process {
    Process { pid: Pid::from_raw(pid).unwrap(), parent: Pid::from_raw(parent), group, started }
}

/// A line of `/proc/PID/stat` with all 52 fields.
fn line(name: &str, state: &str, threads: u32) -> Vec<u8> {
    let zeros = |count| "0 ".repeat(count);
    format!("412 ({name}) {state} 7 400 399 {}{threads} 0 987654 {}\n", zeros(13), zeros(30)).into()
}

#[test]
fn stat_parses_any_process_name() {
    let expected = Some(process(412, 7, 400, 987_654));
    for name in ["sleep", "", "a b", ") R 1 2 3", "((x)) Z (", "a\nb", "999 (init) S 1"] {
        assert_eq!(Process::parse(&line(name, "S", 1)), expected, "{name:?}");
    }
    let mut not_utf8 = line("xx", "D", 1);
    not_utf8[5..7].copy_from_slice(&[0xff, 0xfe]);
    assert_eq!(Process::parse(&not_utf8), expected);
}

#[test]
fn zombie_has_ended_unless_other_threads_run() {
    assert_eq!(Process::parse(&line("a", "Z", 1)), None);
    assert_eq!(Process::parse(&line("a", "X", 0)), None);
    assert!(Process::parse(&line("a", "Z", 3)).is_some());
}

#[test]
fn malformed_stat_line_is_no_process() {
    let whole = line("a", "S", 1);
    for length in 0..whole.windows(6).position(|word| word == b"987654").unwrap() {
        assert_eq!(Process::parse(&whole[..length]), None, "{length} bytes");
    }
    for garbage in ["", ")", "(", ") (", "x (a) S 1 1 1", "0 (a) S", "-1 (a) S"] {
        assert_eq!(Process::parse(garbage.as_bytes()), None, "{garbage:?}");
    }
}

#[test]
fn descendants_are_found_by_parent() {
    let own = getpid();
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let pid = Pid::from_child(&child);
    let is_below = || descendants(own, &Process::all()).iter().any(|found| found.pid == pid);
    assert!(is_below());
    Process { started: 1, ..Process::find(pid).unwrap() }.signal(Signal::KILL).unwrap();
    assert!(is_below(), "a process with another start time is not signalled");
    Process::find(pid).unwrap().signal(Signal::KILL).unwrap();
    child.wait().unwrap();
    assert!(!is_below());
}
