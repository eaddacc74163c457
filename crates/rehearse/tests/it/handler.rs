//! Handlers as processes: what they report, and that no process of them stays.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use notbefore_rehearse::handler::{Handler, HandlerEvent};
use notbefore_rehearse::recording::Marker;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{
    ENDPOINT, exited, is_running, line, shell, spec, start, try_start, until, with_marker, write_program,
};

/// Ignores SIGTERM, as does its child in the group, and its child in a session of its own. Prints the ids of all three.
const STUBBORN: &str = "trap '' TERM
sleep 1000 & a=$!
setsid sleep 1000 & b=$!
until [ \"$(cut -d' ' -f6 /proc/$b/stat)\" = $b ]; do :; done
echo $$ $a $b
while :; do sleep 1000; done";

fn assert_none_runs(pids: &[Pid]) {
    for pid in pids {
        assert!(!is_running(*pid), "process {pid} still runs");
    }
}

#[tokio::test]
async fn handler_gets_its_environment() {
    let script =
        "cat; echo $NOTBEFORE_ENDPOINT $NOTBEFORE_VM ${http_proxy-none} ${HTTPS_PROXY-none} ${PATH:+path}
        echo $NOTBEFORE_HOOK; cut -d' ' -f5 /proc/$$/stat; echo $$; exit 3";
    let mut running = start(&shell(script), None).await;
    assert_eq!(running.line().await, format!("{ENDPOINT} web-0 none none path"));
    assert!(running.line().await.starts_with("http://127.0.0.1:"));
    assert_eq!(running.line().await, running.line().await, "it leads a process group");
    assert_eq!(running.next().await, exited(3));
    running.handler.stop().await;
    running.handler.stop().await;
    assert_eq!(running.rest(), []);
}

#[test]
fn proxy_variables_do_not_reach_the_handler() {
    let repeated = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "handler::handler_gets_its_environment"])
        .envs(["http_proxy", "HTTPS_PROXY"].map(|name| (name, "http://127.0.0.1:1")))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&repeated.stdout);
    assert!(repeated.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test]
async fn both_streams_are_reported_before_the_exit() {
    let mut running = start(&shell("echo out; echo err >&2; printf 'unfinished \\377'; exit 0"), None).await;
    let mut news = Vec::new();
    while !matches!(news.last(), Some(HandlerEvent::Exited { .. })) {
        news.push(running.next().await);
    }
    for text in ["out", "err", "unfinished \u{fffd}"] {
        assert!(news.contains(&line(text)), "{news:?}");
    }
    assert_eq!((news.len(), news.last()), (4, Some(&exited(0))));
}

#[tokio::test]
async fn signal_that_ends_a_handler_is_reported() {
    let mut running = start(&shell("kill -9 $$"), None).await;
    assert_eq!(running.next().await, HandlerEvent::Exited { code: None, signal: Some(9) });
}

#[tokio::test]
async fn wrong_command_is_refused_with_cure() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str, mode| {
        let path = dir.path().join(name);
        write_program(&path, content, mode);
        path.to_str().unwrap().to_owned()
    };
    for (command, said) in [
        (vec![], "there is no handler to run; give its command after --"),
        (vec!["no-such-handler"], "\"no-such-handler\" was not found; check its spelling"),
        (vec![&*file("interpreter", "#!/no/such/program\\n", "755")], "check the program in its first line"),
        (vec![&*file("mode", "#!/bin/sh\\n", "644")], "mode\" is not executable; chmod +x it"),
        (vec![&*file("text", "\\0", "755")], "text\" is not a program; a script begins with"),
        (vec!["/proc/self/environ/x"], "correct this, and retry"),
    ] {
        let error = try_start(&spec(&command), None).err().unwrap().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[tokio::test]
async fn stop_lets_the_handler_clean_up() {
    let mut running =
        start(&shell("trap 'echo bye; exit 7' TERM; echo ready; while :; do :; done"), None).await;
    assert_eq!(running.line().await, "ready");
    running.handler.stop().await;
    assert_eq!(running.rest(), [line("bye")], "its exit is not its own");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_process_survives_stop() {
    let mut running = start(&shell(STUBBORN), None).await;
    let pids = running.pids().await;
    assert!(pids.len() == 3 && pids.iter().all(|pid| is_running(*pid)));
    // Time passes by itself while all tasks wait.
    running.handler.stop().await;
    assert_none_runs(&pids);
    assert_eq!(running.rest(), []);
}

#[tokio::test]
async fn kill_and_drop_end_all_processes_at_once() {
    let mut running = start(&shell(STUBBORN), None).await;
    let pids = running.pids().await;
    running.handler.kill().await;
    assert_none_runs(&pids);

    let mut running = start(&shell(STUBBORN), None).await;
    let pids = running.pids().await;
    drop(running.handler);
    assert_none_runs(&pids);
    let leader = format!("/proc/{}", pids[0]);
    assert!(!std::path::Path::new(&leader).exists(), "it is reaped");
}

#[tokio::test]
async fn kill_overtakes_stop() {
    let mut running = start(&shell(STUBBORN), None).await;
    let pids = running.pids().await;
    {
        let stop = running.handler.stop();
        tokio::pin!(stop);
        // The supervisor has received the order when the first process with the default action is gone.
        assert!(tokio::time::timeout(Duration::ZERO, &mut stop).await.is_err());
    }
    running.handler.kill().await;
    assert_none_runs(&pids);
}

#[tokio::test]
async fn child_that_keeps_the_output_open_delays_nothing() {
    let script =
        "(trap '' TERM; echo $$; while read -r line <$0; do echo $line; done; sleep 1000) & echo started";
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut running = start(&spec(&["sh", "-c", script, fifo.to_str().unwrap()]), None).await;
    let mut news = Vec::new();
    while !news.contains(&exited(0)) {
        news.push(running.next().await);
    }
    assert!(news.contains(&line("started")), "{news:?}");
    // The child is still followed.
    let write = tokio::task::spawn_blocking(move || std::fs::write(fifo, "from the child\n"));
    while running.next().await != line("from the child") {}
    write.await.unwrap().unwrap();
    running.handler.kill().await;
}

#[tokio::test]
async fn flood_of_output_is_bounded_and_stopped() {
    let flood = with_marker(spec(&["yes", "flood"]), Marker::Drained, "line:^fl");
    let mut running = start(&flood, None).await;
    let (mut lines, mut markers) = (0, 0);
    loop {
        match running.next().await {
            HandlerEvent::Line(line) if line.starts_with("further output is not recorded") => break,
            HandlerEvent::Line(_) => lines += 1,
            HandlerEvent::Marker(_) => markers += 1,
            other @ (HandlerEvent::Started | HandlerEvent::Exited { .. }) => panic!("{other:?}"),
        }
    }
    assert_eq!((lines, markers), (2_000, 2_000), "lines end at their limit");
    running.handler.stop().await;
    let rest = running.rest();
    assert!(
        rest.iter().all(|news| *news == HandlerEvent::Marker(Marker::Drained)),
        "markers go on: {rest:?}"
    );
}

#[tokio::test]
async fn observe_reports_what_came_before() {
    let dir = tempfile::tempdir().unwrap();
    let flag = dir.path().join("web-0");
    let source = format!("file:{}/{{vm}}", dir.path().display());
    let script = format!("echo drained; : >{}; exec sleep 1000", flag.display());
    let spec = with_marker(shell(&script), Marker::Drained, "line:^drained$");
    let spec = with_marker(spec, Marker::Restored, &source);
    let mut running = try_start(&spec, None).unwrap();
    // No task of the handler runs here: this thread is the only one, and does not wait.
    while !flag.exists() {
        std::thread::yield_now();
    }
    running.handler.observation().observe();
    let markers = Marker::ALL.map(HandlerEvent::Marker);
    let expected: Vec<_> = [HandlerEvent::Started, line("drained")].into_iter().chain(markers).collect();
    assert_eq!(running.rest(), expected);
}

#[tokio::test]
async fn file_is_noticed_without_being_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let flag = dir.path().join("flag");
    let spec = with_marker(spec(&["sleep", "1000"]), Marker::Drained, &format!("file:{}", flag.display()));
    let mut running = start(&spec, None).await;
    std::fs::write(&flag, "").unwrap();
    assert_eq!(running.next().await, HandlerEvent::Marker(Marker::Drained));
}

/// Sends bytes to the hook and returns the status line.
fn call(hook: &str, request: &str) -> String {
    let (address, path) = hook.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.replace("HOOK", &format!("/{path}")).as_bytes()).unwrap();
    let mut answer = String::new();
    // A refused body may end in a reset after the answer.
    let _ = stream.read_to_string(&mut answer);
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn call_is_reported_before_it_is_answered() {
    let script = "import os, sys, urllib.error, urllib.request as r
hook = os.environ['NOTBEFORE_HOOK']
print(r.urlopen(hook + '/drained').status, flush=True)
print(r.urlopen(r.Request(hook + '/drained', data=b'x' * 1000, method='PUT')).status, flush=True)
for path in ['/restored', '/', '']:
    try: r.urlopen(hook + path)
    except urllib.error.HTTPError as error: print(error.code, error.read().decode(), flush=True)
";
    let spec = with_marker(spec(&["python3", "-c", script]), Marker::Drained, "call");
    let spec = with_marker(spec, Marker::Restored, "line:^never$");
    let mut running = start(&spec, None).await;
    for _ in 0..2 {
        assert_eq!(running.next().await, HandlerEvent::Marker(Marker::Drained));
        assert_eq!(running.line().await, "204");
    }
    assert_eq!(
        running.line().await,
        "404 the rehearsal takes \"restored\" from another source; give it --restored call"
    );
    for _ in 0..2 {
        assert_eq!(running.line().await, "404 call $NOTBEFORE_HOOK/drained or $NOTBEFORE_HOOK/restored");
    }
    assert_eq!(running.next().await, exited(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hook_survives_bad_callers() {
    let spec = with_marker(shell("echo $NOTBEFORE_HOOK; exec sleep 1000"), Marker::Drained, "call");
    let mut running = start(&spec, None).await;
    let hook = running.line().await;
    for (request, status) in [
        ("GET /drained HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "404"),
        ("nonsense\r\n\r\n".to_owned(), "400"),
        (format!("GET HOOK/drained HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(20_000)), "431"),
    ] {
        let answer = call(&hook, &request);
        assert!(answer.contains(status), "{request}: {answer}");
    }
    // Connections that send nothing take all slots, for a limited time.
    let address = hook.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    let silent: Vec<_> = (0..16).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let answer = tokio::task::spawn_blocking(move || call(&hook, "POST HOOK/drained HTTP/1.0\r\n\r\n"));
    assert!(answer.await.unwrap().contains("204"));
    assert_eq!(running.rest(), [HandlerEvent::Marker(Marker::Drained)]);
    drop(silent);
    running.handler.stop().await;
    assert!(TcpStream::connect(address).is_err(), "the hook ends with the handler");
}

#[tokio::test]
async fn repeated_handler_reports_failures_only() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "cd {}; n=$(cat n 2>/dev/null || echo 0); echo run $n; echo $((n + 1)) >n; [ $n != 1 ] || exit 4",
        dir.path().display()
    );
    let mut spec = shell(&script);
    spec.repeat = Some(Duration::ZERO);
    let mut running = start(&spec, None).await;
    for expected in [line("run 0"), line("run 1"), exited(4), line("run 2"), line("run 3")] {
        assert_eq!(running.next().await, expected);
    }
    running.handler.stop().await;
    running.rest();
    let runs = std::fs::read(dir.path().join("n")).unwrap();
    tokio::task::yield_now().await;
    assert_eq!(std::fs::read(dir.path().join("n")).unwrap(), runs, "no run starts after the stop");
}

#[tokio::test]
async fn repeated_handler_that_vanishes_fails_like_in_a_shell() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("once");
    write_program(&path, "#!/bin/sh\\nrm $0\\n", "755");
    let mut spec = spec(&[path.to_str().unwrap()]);
    spec.repeat = Some(Duration::from_millis(1));
    let mut running = start(&spec, None).await;
    assert!(running.line().await.contains("was not found; check its spelling"));
    assert_eq!(running.next().await, exited(127));
}

#[tokio::test]
async fn process_of_an_earlier_run_is_ended_too() {
    let mut spec = shell("sleep 1000 >/dev/null 2>&1 & echo $!");
    spec.repeat = Some(Duration::ZERO);
    let mut running = start(&spec, None).await;
    let (mut pids, second) = (running.pids().await, running.pids().await);
    pids.extend(second);
    running.handler.kill().await;
    assert_none_runs(&pids);
}

#[tokio::test]
async fn handlers_do_not_end_each_other() {
    let mut first = start(&shell("echo $$; exec sleep 1000"), None).await;
    let mut second = start(&shell("echo $$; exec sleep 1000"), None).await;
    let (first_pids, second_pids) = (first.pids().await, second.pids().await);
    first.handler.stop().await;
    assert_none_runs(&first_pids);
    assert!(is_running(second_pids[0]));
    // By its own signal, it ends by itself.
    // Not SIGINT: a test in the background of a shell starts with it ignored.
    kill_process(second_pids[0], Signal::USR1).unwrap();
    assert_eq!(second.next().await, HandlerEvent::Exited { code: None, signal: Some(10) });
    until("the first handler's process is reaped", || !is_running(first_pids[0])).await;
}

#[test]
fn handler_can_be_sent_to_other_threads() {
    fn is_send<T: Send>() {}
    is_send::<Handler>();
}
