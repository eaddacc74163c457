//! `serve` as a rehearsal uses it: a clock that the test moves, sockets that it has bound, faults and a recorder.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::SignedDuration;
use notbefore_core::Settings;
use notbefore_service::clock::{Clock, MovableClock, SharedClock};
use notbefore_service::guest::interception::{RecordedRequest, Recorder, RequestSink};
use notbefore_service::guest::settings::GuestSettings;
use notbefore_service::janitor::HistoryLimits;
use notbefore_service::nodes::NodesConfig;
use notbefore_service::operator::change_rate::ChangeRateLimit;
use notbefore_service::running::Running;
use notbefore_service::{BoundSocket, OperatorServerConfig, ProxyConfig, ServeConfig, serve_in_background};
use notbefore_wire::operator::FaultKind;
use notbefore_wire::operator::faults::NewFault;
use serde_json::Value;
use tokio::sync::{oneshot, watch};

#[derive(Default)]
struct Sink(Mutex<Vec<RecordedRequest>>);

impl RequestSink for Sink {
    fn record(&self, request: RecordedRequest) {
        self.0.lock().unwrap().push(request);
    }
}

fn config(data: &Path, clock: &Arc<MovableClock>, sink: &Arc<Sink>, socket: TcpListener) -> ServeConfig {
    ServeConfig {
        data: data.to_owned(),
        in_memory: true,
        cluster: None,
        sign_in_link: false,
        root_token_file: None,
        ready_file: None,
        fleet: None,
        guest: Vec::new(),
        guest_vms: Vec::new(),
        guest_sockets: vec![BoundSocket { vm: "web-0".to_owned(), listener: Arc::new(socket) }],
        recorder: Some(Recorder(Arc::clone(sink) as _)),
        faults_allowed: false,
        clock: SharedClock(Arc::clone(clock) as _),
        proxy: ProxyConfig::default(),
        operator: "127.0.0.1:0".parse().unwrap(),
        operator_without_tls: false,
        operator_certificate: None,
        change_rate_limit: ChangeRateLimit {
            burst: 1_000.try_into().unwrap(),
            per_second: 1_000.try_into().unwrap(),
        },
        hosts_shown: false,
        nodes: NodesConfig::default(),
        operator_server: OperatorServerConfig::default(),
        // The clock stands still between moves.
        guest_settings: GuestSettings { rate_limit: None, ..GuestSettings::default() },
        rfc1123_everywhere: false,
        domain: Settings::default(),
        exec: None,
        history: HistoryLimits { retention: SignedDuration::from_hours(24), bytes_max: None },
        host_name: "localhost".to_owned(),
    }
}

/// Sends a request on a new connection; returns the status and the body.
async fn request(to: SocketAddr, request: String) -> (u16, Value) {
    let exchange = move || {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap_or_default())
    };
    tokio::task::spawn_blocking(exchange).await.unwrap()
}

async fn poll(vm: SocketAddr) -> Value {
    let target = "/metadata/scheduledevents?api-version=2020-07-01";
    let get = format!("GET {target} HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nConnection: close\r\n\r\n");
    let (status, document) = request(vm, get).await;
    assert_eq!(status, 200);
    document
}

#[tokio::test]
async fn event_starts_when_the_clock_is_moved_to_its_not_before() {
    let data = tempfile::tempdir().unwrap();
    let clock = Arc::new(MovableClock::standing_at("2026-03-04T05:06:07Z".parse().unwrap()));
    let sink = Arc::new(Sink::default());
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let vm = socket.local_addr().unwrap();
    let (shutdown, closing) = watch::channel(false);
    let (send, ready) = oneshot::channel();
    let config = config(data.path(), &clock, &sink, socket);
    let started = Box::new(move |running: &Running| drop(send.send(running.clone())));
    let serving = serve_in_background(config, closing, started);
    let running = ready.await.unwrap();
    assert_eq!(running.addresses.guest_vms, [("default/default/web-0/web-0".to_owned(), vm)]);

    let token = std::fs::read_to_string(&running.addresses.token).unwrap();
    let body = r#"{"type":"Reboot","vms":["web-0"],"in_seconds":3600}"#;
    let post = format!(
        "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        token.trim(),
        body.len()
    );
    assert_eq!(request(running.addresses.operator, post).await.0, 201);
    assert_eq!(poll(vm).await["Events"][0]["NotBefore"], "Wed, 04 Mar 2026 06:06:07 GMT");

    // An hour passes: the next poll shows it, without a wait.
    clock.advance(Duration::from_secs(3_599));
    running.engine.settle().await;
    assert_eq!(poll(vm).await["Events"][0]["EventStatus"], "Scheduled");
    running
        .faults
        .add(NewFault { vm: Some("web-0".to_owned()), ..NewFault::new(FaultKind::MissingEvents) })
        .unwrap();
    assert_eq!(poll(vm).await["Events"], Value::Null);
    assert_eq!(running.faults.clear(None), 1);
    clock.advance(Duration::from_secs(1));
    running.engine.settle().await;
    assert_eq!(poll(vm).await["Events"][0]["EventStatus"], "Started");

    shutdown.send_replace(true);
    serving.await.unwrap().unwrap();
    let records = std::mem::take(&mut *sink.0.lock().unwrap());
    let faults: Vec<usize> = records.iter().map(|record| record.faults.len()).collect();
    assert_eq!(faults, [0, 0, 1, 0]);
    assert_eq!(records[3].received_at, clock.now());
    assert_eq!(records[3].vm.as_ref().unwrap().path, "default/default/web-0/web-0");
}
