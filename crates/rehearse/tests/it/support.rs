//! A handler under test, and what it reported.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use notbefore_rehearse::handler::{HandledVm, Handler, HandlerError, HandlerEvent, HandlerSpec, News};
use notbefore_rehearse::namespace::Namespace;
use notbefore_rehearse::recording::Marker;
use notbefore_service::clock::Stopwatch;
use rustix::process::{Pid, test_kill_process};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::PATIENCE;

pub const ENDPOINT: &str = "http://127.0.0.1:4711";

/// A handler without markers.
pub fn spec(command: &[&str]) -> HandlerSpec {
    let command = command.iter().map(OsString::from).collect();
    HandlerSpec { command, repeat: None, markers: BTreeMap::new(), keeper: None }
}

/// A handler in shell.
pub fn shell(script: &str) -> HandlerSpec {
    spec(&["sh", "-c", script])
}

pub fn with_marker(mut spec: HandlerSpec, marker: Marker, source: &str) -> HandlerSpec {
    spec.markers.insert(marker, source.parse().unwrap());
    spec
}

pub struct Running {
    pub handler: Handler,
    pub news: UnboundedReceiver<News>,
    _state: TempDir,
}

pub fn try_start(spec: &HandlerSpec, namespace: Option<&Namespace>) -> Result<Running, HandlerError> {
    let (sender, news) = unbounded_channel();
    let state = tempfile::tempdir().unwrap();
    let vm = HandledVm { name: "web-0", endpoint: ENDPOINT, state: state.path(), namespace, time_zone: None };
    let handler = Handler::start(spec, vm, Stopwatch::start(), sender)?;
    Ok(Running { handler, news, _state: state })
}

/// Starts a handler and expects the news of it.
pub async fn start(spec: &HandlerSpec, namespace: Option<&Namespace>) -> Running {
    let mut running = try_start(spec, namespace).unwrap();
    assert_eq!(running.next().await, HandlerEvent::Started);
    running
}

impl Running {
    pub async fn next(&mut self) -> HandlerEvent {
        let news = timeout(PATIENCE, self.news.recv()).await.expect("no news in time").unwrap();
        assert_eq!(news.vm, "web-0");
        news.what
    }

    pub async fn line(&mut self) -> String {
        match self.next().await {
            HandlerEvent::Line(line) => line,
            other @ (HandlerEvent::Started | HandlerEvent::Marker(_) | HandlerEvent::Exited { .. }) => {
                panic!("{other:?} instead of a line")
            }
        }
    }

    /// Process ids that the handler prints in a line.
    pub async fn pids(&mut self) -> Vec<Pid> {
        let line = self.line().await;
        line.split(' ').map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect()
    }

    /// What is already there.
    pub fn rest(&mut self) -> Vec<HandlerEvent> {
        std::iter::from_fn(|| self.news.try_recv().ok()).map(|news| news.what).collect()
    }
}

pub fn exited(code: i32) -> HandlerEvent {
    HandlerEvent::Exited { code: Some(code), signal: None }
}

pub fn line(text: &str) -> HandlerEvent {
    HandlerEvent::Line(text.to_owned())
}

/// Whether a process runs. A zombie does not: it may wait for a process 1 that does not reap.
pub fn is_running(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    test_kill_process(pid).is_ok() && !state.starts_with(['Z', 'X'])
}

/// Waits for something that has no news.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("not in time: {what}"));
}

/// Writes a file that can be executed. Another process writes it: while a file is open for writing, also in a child
/// that another test is just starting, it cannot be executed.
pub fn write_program(path: &Path, content: &str, mode: &str) {
    let script = "printf %b \"$1\" >\"$2\" && chmod $3 \"$2\"";
    let written = Command::new("sh").args(["-c", script, "sh", content]).arg(path).arg(mode).status();
    assert!(written.unwrap().success());
}
