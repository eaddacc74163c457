//! Tests of step execution: well-behaved and misbehaving hooks.

#[path = "../../../cli/src/pause.rs"]
mod pause;

use std::future::pending;
use std::sync::Mutex;
use std::time::Duration;

use pause::pause;
use tracing::Metadata;
use tracing::field::Field;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;

use super::*;
use crate::hooks::variables::tests::run_of;
use crate::rules::Webhook;

const LONG: Duration = Duration::from_secs(20);

async fn outcome(does: StepAction, budget: Duration) -> StepOutcome {
    let variables = HookVariables::new(&run_of(does.clone(), budget), "web-0", false);
    let (_stopper, mut stop) = stop::pair();
    timeout(LONG, run_action(&does, &variables, budget, &mut stop)).await.expect("it hangs")
}

fn shell(line: &str) -> StepAction {
    StepAction::Shell { line: line.to_owned() }
}

fn command(argv: &[&str]) -> StepAction {
    StepAction::Command { argv: argv.iter().map(|&word| word.to_owned()).collect() }
}

fn reason(outcome: StepOutcome) -> String {
    match outcome {
        StepOutcome::Failed { reason } => reason,
        StepOutcome::Done | StepOutcome::TimedOut | StepOutcome::Stopped => panic!("{outcome:?}"),
    }
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    (dir, file)
}

#[tokio::test]
async fn a_program_sees_the_event_in_its_environment_and_on_stdin() {
    let (_dir, file) = place();
    let line = format!(
        "cat > {f}; echo \" $NOTBEFORE_EVENT_ID $NOTBEFORE_BUDGET $(pwd)\" >> {f}",
        f = file.display()
    );
    assert_eq!(outcome(shell(&line), LONG).await, StepOutcome::Done);
    let said = std::fs::read_to_string(&file).unwrap();
    assert!(said.starts_with("{\"vm\":\"web-0\"") && said.ends_with("}} A123 20 /\n"), "{said}");
    assert_eq!(outcome(shell("exec <&-"), LONG).await, StepOutcome::Done, "a hook need not read stdin");
}

#[tokio::test]
async fn failed_program_reports_exit_code_and_output() {
    assert_eq!(
        reason(outcome(shell("echo out; echo first >&2; echo last >&2; exit 3"), LONG).await),
        "exit code 3: last"
    );
    assert_eq!(reason(outcome(shell("echo only; exit 1"), LONG).await), "exit code 1: only");
    assert_eq!(reason(outcome(shell("kill -9 $$"), LONG).await), "killed by signal 9");
}

/// Collects the log of hooks at this level.
struct HookLog {
    level: tracing::Level,
    lines: Arc<Mutex<Vec<String>>>,
}

impl tracing::Subscriber for HookLog {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        about.target() == "notbefore_agent::hook" && *about.level() <= self.level
    }

    fn register_callsite(&self, _about: &'static Metadata<'static>) -> Interest {
        // Other levels follow.
        Interest::sometimes()
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut |field: &Field, value: &dyn std::fmt::Debug| {
            if field.name() == "message" {
                self.lines.lock().unwrap().push(format!("{value:?}"));
            }
        });
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

#[tokio::test]
async fn output_of_a_failed_program_is_logged_once() {
    // The last line on standard error is in the reason, which the log of the event has.
    let line = "echo out; echo first >&2; echo last >&2; exit 3";
    for (level, expected) in
        [(tracing::Level::WARN, &["out", "first"][..]), (tracing::Level::DEBUG, &["first", "last", "out"])]
    {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let log = tracing::subscriber::set_default(HookLog { level, lines: Arc::clone(&lines) });
        assert_eq!(reason(outcome(shell(line), LONG).await), "exit code 3: last");
        drop(log);
        let mut logged = lines.lock().unwrap().clone();
        if level == tracing::Level::DEBUG {
            // Two tasks read the streams.
            logged.sort();
        }
        assert_eq!(logged, expected, "{level}");
    }
}

#[tokio::test]
async fn start_failure_reports_reason() {
    let (_dir, file) = place();
    let name = file.to_str().unwrap();
    assert!(reason(outcome(command(&[name]), LONG).await).contains("the file, or the interpreter"));
    std::fs::write(&file, "x").unwrap();
    assert!(reason(outcome(command(&[name]), LONG).await).contains("it is not executable"));
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert!(reason(outcome(command(&[name]), LONG).await).contains("it is not a program"));
}

/// Polls in real time until a value appears, while tokio's clock is paused.
async fn found<T: Send + 'static>(what: &'static str, look: impl Fn() -> Option<T> + Send + 'static) -> T {
    let wait = move || {
        let looks = (0..2_000).map(|_| pause(Duration::from_millis(10), what));
        looks.into_iter().find_map(|()| look()).unwrap_or_else(|| panic!("{what}"))
    };
    tokio::task::spawn_blocking(wait).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn timed_out_program_is_killed_with_its_group() {
    let (_dir, file) = place();
    let line = format!(
        "trap '' TERM; sh -c \"trap '' TERM; echo \\$\\$ > {f}; sleep 60; true\" & wait; sleep 60; true",
        f = file.display()
    );
    let run = tokio::spawn(async move { outcome(shell(&line), LONG / 2).await });
    let pid: i32 = found("the child was never started", move || {
        std::fs::read_to_string(&file).unwrap_or_default().trim().parse().ok()
    })
    .await;
    assert_eq!(run.await.unwrap(), StepOutcome::TimedOut);
    found("a child of a killed hook is still running", move || {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        (state.is_empty() || state.contains(") Z ")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn stopped_program_gets_grace_period() {
    let (_dir, file) = place();
    let does = shell(&format!(
        "trap 'echo clean > {f}; exit 0' TERM; echo up > {f}; while :; do sleep 0.05; done",
        f = file.display()
    ));
    let run = run_of(does, LONG);
    let (mut runner, mut ends) = Runner::new(false);
    runner.start(run.clone(), "web-0");
    timeout(LONG, async {
        while !file.exists() {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("it never started");
    runner.stop(run.id);
    let ended = timeout(LONG, ends.recv()).await.unwrap().unwrap();
    assert_eq!((ended.run, ended.outcome), (run.id, StepOutcome::Stopped));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "clean\n");
}

#[tokio::test]
async fn daemonising_program_is_done_on_exit() {
    // The child keeps both pipes; waiting for them would take a minute.
    assert_eq!(
        timeout(Duration::from_secs(10), outcome(shell("sleep 60 & exit 0"), LONG)).await.unwrap(),
        StepOutcome::Done
    );
}

#[tokio::test]
async fn background_output_does_not_delay_end() {
    let (_dir, file) = place();
    // If the pipe were closed, the next write would kill the child (SIGPIPE).
    let line = format!(
        "{{ while [ ! -e {f}.go ]; do sleep 0.05; done; echo on; echo on >&2; echo alive > {f}; }} & exit 0",
        f = file.display()
    );
    assert_eq!(outcome(shell(&line), LONG).await, StepOutcome::Done);
    std::fs::write(file.with_extension("go"), "").unwrap();
    timeout(LONG, async {
        while !file.exists() {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("killed by SIGPIPE");
}

#[tokio::test]
async fn flooding_program_is_read_to_its_end() {
    let line = "head -c 8000000 /dev/zero | tr '\\0' 'x'; echo; echo enough >&2; exit 9";
    assert_eq!(reason(outcome(shell(line), LONG).await), "exit code 9: enough");
}

#[tokio::test]
async fn files_are_written_whole_and_removed() {
    let (_dir, file) = place();
    let write = |content: &str| StepAction::WriteFile { path: file.clone(), content: content.to_owned() };
    assert_eq!(outcome(write("{EVENT_ID} of {RULE}\n"), LONG).await, StepOutcome::Done);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "A123 of drain\n");
    let remove = StepAction::RemoveFile { path: file.clone() };
    assert_eq!(outcome(remove.clone(), LONG).await, StepOutcome::Done);
    assert_eq!(outcome(remove, LONG).await, StepOutcome::Done, "a missing file is no failure");
    let nowhere = StepAction::WriteFile { path: "/nowhere/at/all".into(), content: String::new() };
    assert!(reason(outcome(nowhere, LONG).await).starts_with("cannot write /nowhere/at/all: "));
}

#[tokio::test]
async fn control_characters_of_an_event_reach_no_file_and_no_body() {
    let (_dir, file) = place();
    let text = "{DESCRIPTION}\n{RESOURCES}\n{\"}";
    let (url, seen) = server("204 No Content").await;
    let headers = [("Content-Type".to_owned(), "text/plain".to_owned())].into();
    let body = Some(text.to_owned());
    let write = StepAction::WriteFile { path: file.clone(), content: text.to_owned() };
    let send = StepAction::Webhook(Webhook { url, method: "POST".to_owned(), headers, body });
    for does in [write, send] {
        let mut run = run_of(does.clone(), LONG);
        run.event.description = "Host\n[admin]\r\tyes\0\u{1b}[2J\u{7f}\u{85}\u{202e}".to_owned();
        run.event.resources = vec!["web-0\nroot".to_owned()];
        let variables = HookVariables::new(&run, "web-0", false);
        let (_stopper, mut stop) = stop::pair();
        let outcome = timeout(LONG, run_action(&does, &variables, LONG, &mut stop)).await.unwrap();
        assert_eq!(outcome, StepOutcome::Done);
    }
    let expected = "Host\\n[admin]\\r\\tyes\u{fffd}\\u{1b}[2J\\u{7f}\\u{85}\\u{202e}\nweb-0\\nroot\n{\"}";
    assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    let seen = seen.await.unwrap();
    assert!(seen.ends_with(&format!("\r\n\r\n{expected}")), "{seen}");
}

#[tokio::test]
async fn wait_for_repeats_until_success() {
    let (_dir, file) = place();
    // Succeeds on the third run.
    let look = format!("echo x >> {f}; test $(wc -l < {f}) -ge 3", f = file.display());
    let argv = ["sh", "-c", &look].map(str::to_owned).to_vec();
    let every = Duration::from_millis(10);
    assert_eq!(outcome(StepAction::WaitFor { argv, every }, LONG).await, StepOutcome::Done);
    let never = StepAction::WaitFor { argv: vec!["false".to_owned()], every };
    assert_eq!(outcome(never, Duration::from_millis(200)).await, StepOutcome::TimedOut);
    let missing = StepAction::WaitFor { argv: vec!["/nowhere/look".to_owned()], every };
    assert!(reason(outcome(missing, LONG).await).starts_with("cannot start /nowhere/look"));
}

#[tokio::test(start_paused = true)]
async fn wait_is_limited_by_budget() {
    let minute = Duration::from_secs(60);
    let (_stopper, mut stop) = stop::pair();
    let wait = StepAction::Wait { time: minute };
    let variables = HookVariables::new(&run_of(wait.clone(), minute), "web-0", false);
    assert_eq!(run_action(&wait, &variables, minute * 2, &mut stop).await, StepOutcome::Done);
    assert_eq!(run_action(&wait, &variables, minute / 2, &mut stop).await, StepOutcome::TimedOut);
}

/// Serves one request with `status`, and returns the request.
async fn server(status: &'static str) -> (String, JoinHandle<String>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/secret-path", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut seen = String::new();
        let mut chunk = [0; 4_096];
        while !seen.ends_with('}') {
            let length = stream.read(&mut chunk).await.unwrap();
            seen.push_str(&String::from_utf8_lossy(&chunk[..length]));
        }
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 8\r\nConnection: close\r\n\r\nno way\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
        seen
    });
    (url, task)
}

#[tokio::test]
async fn webhook_sends_request_and_hides_secrets() {
    let hook = |url: &str| Webhook {
        url: url.to_owned(),
        method: "PUT".to_owned(),
        headers: [("Authorization".to_owned(), "Bearer s3cret".to_owned())].into(),
        body: Some("{\"id\":\"{EVENT_ID}\",\"text\":\"{DESCRIPTION}\"}".to_owned()),
    };
    let (url, seen) = server("204 No Content").await;
    assert_eq!(outcome(StepAction::Webhook(hook(&url)), LONG).await, StepOutcome::Done);
    let seen = seen.await.unwrap().to_lowercase();
    assert!(
        seen.starts_with("put /secret-path")
            && seen.ends_with(r#"{"id":"a123","text":"host \"maintenance\""}"#),
        "{seen}"
    );
    assert!(seen.contains("authorization: bearer s3cret"), "{seen}");
    let (url, _seen) = server("418 I'm a teapot").await;
    assert_eq!(
        reason(outcome(StepAction::Webhook(hook(&url)), LONG).await),
        "127.0.0.1 answered 418: no way"
    );
    let refused = reason(outcome(StepAction::Webhook(hook("http://127.0.0.1:1/secret-path")), LONG).await);
    assert!(refused.starts_with("127.0.0.1 cannot be reached") && !refused.contains("secret"), "{refused}");
}

/// Accepts a request and responds when `go` ends. Returns whether the client still waited.
async fn slow_server(go: JoinHandle<()>) -> (String, JoinHandle<()>, JoinHandle<bool>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (received, has_received) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut chunk = [0; 4_096];
        let mut seen = String::new();
        while !seen.ends_with('}') {
            let length = stream.read(&mut chunk).await.unwrap();
            seen.push_str(&String::from_utf8_lossy(&chunk[..length]));
        }
        received.send(()).unwrap();
        tokio::select! {
            _ = go => stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.is_ok(),
            // The client closed the connection.
            _ = stream.read(&mut chunk) => false,
        }
    });
    (url, tokio::spawn(async move { has_received.await.unwrap() }), task)
}

fn to(url: String) -> StepAction {
    StepAction::Webhook(Webhook { url, method: "POST".to_owned(), headers: [].into(), body: None })
}

#[tokio::test]
async fn stopped_webhook_finishes_within_grace() {
    // The server is slow; reporting the end at once would let the undo overtake the request.
    let (url, received, server) = slow_server(tokio::spawn(sleep(Duration::from_millis(700)))).await;
    let run = run_of(to(url), LONG);
    let (mut runner, mut ends) = Runner::new(false);
    runner.start(run.clone(), "web-0");
    timeout(LONG, received).await.unwrap().unwrap();
    runner.stop(run.id);
    assert_eq!(timeout(LONG, ends.recv()).await.unwrap().unwrap().outcome, StepOutcome::Stopped);
    assert!(server.is_finished(), "reported as ended while the server still works");
    assert!(server.await.unwrap(), "it had time to end");
}

#[tokio::test]
async fn hanging_webhook_is_aborted() {
    let (url, received, server) = slow_server(tokio::spawn(pending())).await;
    let (stopper, mut stop) = stop::pair();
    let does = to(url);
    let variables = HookVariables::new(&run_of(does.clone(), LONG), "web-0", false);
    let told = async {
        received.await.unwrap();
        stopper.stop(Duration::from_millis(100));
    };
    let (outcome, ()) = tokio::join!(run_action(&does, &variables, LONG, &mut stop), told);
    assert_eq!(outcome, StepOutcome::Stopped);
    assert!(!timeout(Duration::from_secs(5), server).await.expect("the connection is still open").unwrap());
}

#[tokio::test]
async fn step_without_budget_is_not_started() {
    let (_dir, file) = place();
    let (mut runner, mut ends) = Runner::new(false);
    runner.start(run_of(shell(&format!("touch {}", file.display())), Duration::ZERO), "web-0");
    assert_eq!(ends.recv().await.unwrap().outcome, StepOutcome::TimedOut);
    assert!(!file.exists());
}

#[tokio::test]
async fn a_dry_run_does_nothing() {
    let (_dir, file) = place();
    let (mut runner, mut ends) = Runner::new(true);
    runner.start(run_of(shell(&format!("touch {}", file.display())), LONG), "web-0");
    assert_eq!(ends.recv().await.unwrap().outcome, StepOutcome::Done);
    assert!(!file.exists());
}
