//! `serve --demo`: a service in memory with a small fleet, guests that poll and approve, and an hour of events that
//! repeats. For a first look at the console; nothing is kept.
//!
//! The guests are real clients of the guest listener: each calls from its own loopback address. The operator is a real
//! client of the operator API. One VM, `legacy`, never polls.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use notbefore_client::document::{Document, EventId, EventStatus, EventsVersion};
use notbefore_settings::Sources;
use notbefore_wire::operator::hosts::HostAction;
use notbefore_wire::operator::{Cause, HostVerb, Maintenance, ScheduleEvents, VmVerb};
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::args::ConnectionArgs;
use crate::client::Client;
use crate::exit::UsageError;

const FLEET: &str = include_str!("demo/fleet.yaml");
/// Interval of a guest's polls.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of the operator's steps.
const STEP_INTERVAL: Duration = Duration::from_secs(30);
/// The guests: address, name, and polls until they approve an event; none of them for one that never approves.
const GUESTS: [(u8, &str, Option<u32>); 11] = [
    (10, "web-0", Some(4)),
    (11, "web-1", Some(6)),
    (12, "web-2", Some(2)),
    (13, "web-3", None),
    (20, "orders-db", Some(9)),
    (30, "cache-0", Some(3)),
    (31, "cache-1", None),
    (40, "render_0", Some(2)),
    (41, "render_1", Some(1)),
    (42, "render_2", Some(3)),
    (43, "render_3", None),
];

/// Settings that a demo takes. All others have their defaults: on a machine with a service, its configuration names a
/// driver, a root token and files that a demo must not use.
const SETTINGS: [&str; 5] = ["guest.listen", "operator.listen", "ready_file", "log", "log_format"];
/// Variables that a demo reads.
const VARIABLES: [&str; 2] = ["NOTBEFORE_LOG", "NOTBEFORE_LOG_FORMAT"];

/// The sources of a demo's settings: some flags, and the variables of the log. Refuses other flags, a configuration
/// file and a data directory; ignores other variables.
pub fn sources(mut sources: Sources, reach: &ConnectionArgs) -> Result<Sources> {
    let flag = sources.flags.iter().find(|flag| !SETTINGS.contains(&flag.key.as_str()));
    let flag = flag.map(|flag| format!("--{}", flag.flag));
    let config = || sources.file.is_some().then(|| "--config".to_owned());
    let variable = |name: &str, is_set: bool| is_set.then(|| name.to_owned());
    let refused = flag
        .or_else(config)
        .or_else(|| variable("NOTBEFORE_CONFIG", sources.variable("NOTBEFORE_CONFIG").is_some()))
        .or_else(|| variable("NOTBEFORE_DATA", reach.data.is_some()));
    if let Some(refused) = refused {
        let why = "it runs in memory with settings of its own; leave it out. A demo takes --guest, --operator, --ready-file and --log-format";
        return Err(UsageError(format!("--demo takes no {refused}: {why}")).into());
    }
    sources.environment.retain(|(name, _)| VARIABLES.contains(&name.as_str()));
    sources.not_text.retain(|name| VARIABLES.contains(&name.as_str()));
    Ok(sources)
}

/// The files of a demo, in a directory that is removed at the end.
pub struct Files {
    pub directory: PathBuf,
    pub fleet: PathBuf,
}

impl Files {
    /// Creates the directory, readable by its owner only.
    pub fn create() -> Result<Self> {
        let name = format!("notbefore-demo-{}-{}", std::process::id(), crate::time::now().as_millisecond());
        let directory = std::env::temp_dir().join(name);
        let failed = || format!("cannot create {}", directory.display());
        // It gets a token. A directory that exists may belong to someone else, and is not used.
        std::fs::DirBuilder::new().mode(0o700).create(&directory).with_context(failed)?;
        let fleet = directory.join("fleet.yaml");
        std::fs::write(&fleet, FLEET).with_context(failed)?;
        Ok(Self { directory, fleet })
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The address, or a free port of it if another program listens there.
pub fn free(address: SocketAddr) -> SocketAddr {
    match TcpListener::bind(address) {
        Ok(_) => address,
        Err(_) => SocketAddr::new(address.ip(), 0),
    }
}

/// Starts the guests and the operator.
pub fn start(directory: &Path, guest: SocketAddr) {
    for (host, name, polls) in GUESTS {
        let from = SocketAddr::from((Ipv4Addr::new(127, 0, 91, host), 0));
        tokio::spawn(async move {
            loop {
                if let Err(error) = poll_forever(from, guest, name, polls).await {
                    tracing::debug!(name, %error, "a guest of the demo lost its connection");
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        });
    }
    let directory = directory.to_owned();
    std::thread::spawn(move || {
        let Ok(client) = Client::of_directory(&directory) else { return };
        // A step is refused if its VM is busy; the next round comes.
        for step in 0.. {
            if let Err(error) = operate(&client, step) {
                tracing::debug!(step, %error, "a step of the demo was refused");
            }
            crate::pause::pause(STEP_INTERVAL, "the next step of the demo");
        }
    });
}

/// One guest: polls, and approves its events after some polls.
async fn poll_forever(from: SocketAddr, guest: SocketAddr, name: &str, polls: Option<u32>) -> Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(from)?;
    let stream = TokioIo::new(socket.connect(guest).await?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake::<_, Full<Bytes>>(stream).await?;
    tokio::spawn(connection);
    let mut seen: Vec<(EventId, u32)> = Vec::new();
    let target = "/metadata/scheduledevents?api-version=2020-07-01";
    let request =
        || Request::builder().uri(target).header("Host", "169.254.169.254").header("Metadata", "true");
    loop {
        let agent = "notbefore-demo/1.0";
        let response =
            sender.send_request(request().header("User-Agent", agent).body(Full::default())?).await?;
        let body = response.into_body().collect().await?.to_bytes();
        let document = Document::read(&body, EventsVersion::NEWEST)?;
        let own = document.events.iter().filter(|event| {
            event.status == EventStatus::Scheduled && event.resources.iter().any(|one| one == name)
        });
        let ids: Vec<EventId> = own.map(|event| event.id.clone()).collect();
        seen.retain(|(id, _)| ids.contains(id));
        for id in ids {
            match seen.iter_mut().find(|(known, _)| *known == id) {
                Some((_, count)) => *count += 1,
                None => seen.push((id, 0)),
            }
        }
        for (id, count) in &seen {
            if polls == Some(*count) {
                let body = json!({ "StartRequests": [{ "EventId": id }] }).to_string();
                let approval = request().method("POST").body(Full::from(body))?;
                let response = sender.send_request(approval).await?;
                response.into_body().collect().await?;
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// One step of the operator.
fn operate(client: &Client, step: u64) -> Result<()> {
    let vms = |cause: Cause, name: &str, minutes: Option<u64>| -> Result<()> {
        let request = ScheduleEvents {
            cause: Some(cause),
            vms: vec![name.to_owned()],
            in_seconds: minutes.map(|minutes| minutes * 60),
            ..ScheduleEvents::default()
        };
        client.post::<Value>("/v1/events", &request).map(drop)
    };
    let host = |host: &str, maintenance: Maintenance, minutes: u64| -> Result<()> {
        let action = HostAction {
            maintenance: Some(maintenance),
            in_seconds: Some(minutes * 60),
            ..HostAction::default()
        };
        client.post::<Value>(&format!("/v1/hosts/{host}/{}", HostVerb::Maintain), &action).map(drop)
    };
    let is_first = step == 0;
    if is_first {
        host("rack2-a", Maintenance::Reboot, 25)?;
        host("rack1-a", Maintenance::Freeze, 42)?;
        vms(Cause::PredictedFailure, "cache-1", None)?;
        vms(Cause::HostFreeze, "legacy", Some(20))?;
        vms(Cause::UserRestart, "web-3", None)?;
        return vms(Cause::UserRestart, "web-0", None);
    }
    match step % 10 {
        1 => vms(Cause::Eviction, "render_1", None),
        2 => vms(Cause::UserRestart, "orders-db", None),
        3 => client.post::<Value>(&format!("/v1/vms/render_1/{}", VmVerb::Start), &json!({})).map(drop),
        4 => vms(Cause::LiveMigration, "web-1", Some(18)),
        5 => vms(Cause::UserRedeploy, "cache-0", None),
        6 => vms(Cause::Eviction, "render_2", None),
        7 => vms(Cause::UserRestart, "web-2", None),
        8 => client.post::<Value>(&format!("/v1/vms/render_2/{}", VmVerb::Start), &json!({})).map(drop),
        9 => vms(Cause::HostFreeze, "render_0", Some(16)),
        _ => vms(Cause::UserRestart, "web-0", None),
    }
}
