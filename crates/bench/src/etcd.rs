//! etcd on loopback, with its files next to those of the service, and bare clients of it: the etcd store of the service
//! without the service.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use notbefore_etcd::{EtcdConfig, EtcdStore, MemberState};
use tokio::runtime::Runtime;

use crate::http::Client;
use crate::process::{CoreSet, End, Owned, pinned, tail};
use crate::{clock, usage};

/// Most time until a member answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// etcd's largest recommended quota, so that a fleet of a million fits.
const QUOTA_BYTES: &str = "8589934592";

/// Members of one etcd. They end with the value.
pub struct Etcd {
    members: Vec<Owned>,
    urls: Vec<String>,
}

impl Etcd {
    /// Starts members on all cores and waits until all are healthy. Their syncs are real.
    pub fn start(dir: &Path, members: usize) -> anyhow::Result<Self> {
        let listen = |_| anyhow::Ok([free_address()?, free_address()?]);
        let addresses: Vec<[SocketAddr; 2]> = (0..members).map(listen).collect::<anyhow::Result<_>>()?;
        let named = addresses.iter().enumerate().map(|(n, [_, peer])| format!("m{n}=http://{peer}"));
        let all = named.collect::<Vec<_>>().join(",");
        let mut etcd = Self { members: Vec::new(), urls: Vec::new() };
        for (n, [client, peer]) in addresses.iter().enumerate() {
            let log = dir.join(format!("m{n}.log"));
            let (client, peer) = (format!("http://{client}"), format!("http://{peer}"));
            let mut command = pinned(CoreSet::Anywhere, End::Kill, "etcd");
            command.args(["--name", &format!("m{n}"), "--logger", "zap", "--log-level", "error"]);
            command.arg("--data-dir").arg(dir.join(format!("m{n}")));
            command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
            command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
            command.args(["--initial-cluster", &all, "--quota-backend-bytes", QUOTA_BYTES]);
            let file = File::create(&log)?;
            command.stdout(file.try_clone()?).stderr(file);
            etcd.members.push(Owned::spawn(&mut command, End::Kill)?);
            etcd.urls.push(client);
        }
        for (n, [client, _]) in addresses.iter().enumerate() {
            wait_until_healthy(*client).with_context(|| tail(&dir.join(format!("m{n}.log"))))?;
        }
        Ok(etcd)
    }

    /// Client URLs, separated by commas.
    pub fn urls(&self) -> String {
        self.urls.join(",")
    }

    /// CPU time of all members so far.
    pub fn cpu(&self) -> anyhow::Result<Duration> {
        self.members.iter().map(|member| usage::cpu(member.pid())).sum()
    }

    /// Memory of the largest member, in bytes.
    pub fn memory(&self) -> anyhow::Result<u64> {
        let each = self.members.iter().map(|member| usage::memory(member.pid()));
        Ok(each.collect::<anyhow::Result<Vec<_>>>()?.into_iter().max().unwrap_or_default())
    }

    /// Connects a bare client to records below a prefix.
    pub fn connect(&self, runtime: &Runtime, prefix: &str) -> anyhow::Result<EtcdStore> {
        let config = EtcdConfig::new(self.urls.clone(), prefix);
        runtime.block_on(async {
            let store = EtcdStore::connect(&config).await?;
            store.claim("bench").await?;
            Ok(store)
        })
    }
}

/// Release, and bytes of the largest database of a member.
pub fn release_and_bytes(runtime: &Runtime, store: &EtcdStore) -> anyhow::Result<(String, u64)> {
    let status = runtime.block_on(store.status());
    let answered = status.members.into_iter().filter_map(|member| match member.state {
        MemberState::Answered(status) => Some((status.version, status.database_bytes)),
        MemberState::Denied | MemberState::Silent { .. } | MemberState::NotAsked => None,
    });
    answered.max_by_key(|(_, bytes)| *bytes).context("no member of etcd tells its status")
}

/// The runtime of bare clients: one thread, as the load generator has.
pub fn runtime() -> anyhow::Result<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?)
}

/// An address whose port is free now.
fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

fn wait_until_healthy(address: SocketAddr) -> anyhow::Result<()> {
    let health =
        || Client::connect(Ipv4Addr::LOCALHOST, address, String::new())?.request("GET", "/health", "");
    let begun = clock::now();
    while !health().is_ok_and(|answer| answer.status == 200) {
        anyhow::ensure!(
            begun.elapsed() < PATIENCE,
            "etcd is not healthy after {PATIENCE:?}; is it installed?"
        );
        clock::pause(Duration::from_millis(20));
    }
    Ok(())
}
