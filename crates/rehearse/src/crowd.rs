//! VMs that the rehearsal polls itself, once a second each: a scope is as large as in production, with one handler in
//! it. Each VM calls from its own loopback address.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use notbefore_service::clock::Stopwatch;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use crate::recording::CrowdSummary;

const POLL_INTERVAL: Duration = Duration::from_secs(1);
const TARGET: &str = "/metadata/scheduledevents?api-version=2020-07-01";

/// Polling VMs.
pub struct Crowd {
    tally: Arc<Tally>,
    /// Ends the polls when it is dropped.
    _tasks: JoinSet<()>,
    vms: usize,
    started: Stopwatch,
}

#[derive(Default)]
struct Tally {
    answers: AtomicU64,
    failures: AtomicU64,
    slowest_ms: AtomicU64,
}

impl Crowd {
    /// The loopback address of the VM with this index in the scenario.
    pub fn address(index: usize) -> IpAddr {
        let [.., high, low] = u32::try_from(index).unwrap_or(u32::MAX).to_be_bytes();
        Ipv4Addr::new(127, 91, high, low).into()
    }

    /// Starts to poll the listener from these addresses, spread over a second.
    pub fn start(listener: SocketAddr, from: Vec<IpAddr>) -> Self {
        let tally = Arc::new(Tally::default());
        let (mut tasks, vms) = (JoinSet::new(), from.len());
        for (index, address) in from.into_iter().enumerate() {
            let tally = Arc::clone(&tally);
            let part = u32::try_from(index).unwrap_or(u32::MAX);
            let offset = POLL_INTERVAL * part / u32::try_from(vms).unwrap_or(u32::MAX);
            tasks.spawn(async move {
                tokio::time::sleep(offset).await;
                let mut ticks = tokio::time::interval(POLL_INTERVAL);
                let mut connection = None;
                loop {
                    ticks.tick().await;
                    let begun = Stopwatch::start();
                    match poll(&mut connection, address, listener).await {
                        Ok(()) => {
                            tally.answers.fetch_add(1, Relaxed);
                            tally.slowest_ms.fetch_max(begun.elapsed_ms(), Relaxed);
                        }
                        Err(_) => {
                            connection = None;
                            tally.failures.fetch_add(1, Relaxed);
                        }
                    }
                }
            });
        }
        Self { tally, _tasks: tasks, vms, started: Stopwatch::start() }
    }

    /// Ends the polls and counts them.
    pub fn stop(self) -> CrowdSummary {
        CrowdSummary {
            vms: self.vms,
            answers: self.tally.answers.load(Relaxed),
            failures: self.tally.failures.load(Relaxed),
            slowest: Duration::from_millis(self.tally.slowest_ms.load(Relaxed)),
            polled_for: self.started.elapsed(),
        }
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One poll, on the connection or a new one.
async fn poll(
    connection: &mut Option<SendRequest<Empty<Bytes>>>,
    from: IpAddr,
    listener: SocketAddr,
) -> Result<(), Failure> {
    let sender = match connection {
        Some(sender) => sender,
        None => {
            let socket = TcpSocket::new_v4()?;
            socket.bind(SocketAddr::new(from, 0))?;
            let (sender, driver) = handshake(TokioIo::new(socket.connect(listener).await?)).await?;
            tokio::spawn(driver);
            connection.insert(sender)
        }
    };
    let request = Request::builder().uri(TARGET).header("Host", "169.254.169.254").header("Metadata", "true");
    let response = sender.send_request(request.body(Empty::new())?).await?;
    let is_ok = response.status().is_success();
    response.into_body().collect().await?;
    if is_ok { Ok(()) } else { Err("refused".into()) }
}
