//! `notbefore serve`

use std::io::IsTerminal;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use jiff::SignedDuration;
use notbefore_core::{DriverKind, ExecSettings, Name, Settings, WhenNotEnabled};
use notbefore_service::clock::SharedClock;
use notbefore_service::cluster::join::{ClusterConfig, SharedStore};
use notbefore_service::exec::{ExecConfig, check_command};
use notbefore_service::fleet::{FleetFile, FleetScope};
use notbefore_service::guest::settings::{GuestSettings, Limits};
use notbefore_service::integrity::STALL_MAX;
use notbefore_service::janitor::HistoryLimits;
use notbefore_service::nodes::NodesConfig;
use notbefore_service::nodes::tls::NodeTlsFiles;
use notbefore_service::operator::change_rate::ChangeRateLimit;
use notbefore_service::operator::server::OperatorServerLimits;
use notbefore_service::operator::tls::CertificateFiles;
use notbefore_service::proxy::TrustedProxies;
use notbefore_service::running::{Addresses, Running};
use notbefore_service::tokens::read_given;
use notbefore_service::{GuestListener, OperatorServerConfig, ProxyConfig, ServeConfig};
use notbefore_settings::{ConfigErrors, Source, Sources};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::args::{ConnectionArgs, Output, Serve};
use crate::config::print::{self, Effective};
use crate::fleet_file::FileScope;
use crate::{config, demo, etcd, fleet, logs, output, systemd};

/// How long an event of a demo stays Started.
const DEMO_DURATION: Duration = Duration::from_secs(40);

pub fn run(serve: Serve, reach: &ConnectionArgs, output: Output) -> Result<()> {
    let mut sources = Sources::of_process(serve.config, serve.settings.0);
    if serve.demo {
        sources = demo::sources(sources, reach)?;
    }
    let is_start = !serve.print_config && !serve.check_config;
    if is_start {
        logs::expect_format(&sources, "NOTBEFORE_LOG_FORMAT");
    }
    let mut loaded = if serve.demo { config::load_without_file(&sources)? } else { config::load(&sources)? };
    if is_start {
        logs::set_format(loaded.settings.general.log_format);
    }
    let demo = serve.demo.then(demo::Files::create).transpose()?;
    if let Some(files) = &demo {
        for_demo(&mut loaded.settings, files);
    }
    let is_default =
        |key: &str| loaded.entries.iter().any(|one| one.key == key && one.source == Source::Default);
    if !loaded.settings.etcd.endpoints.is_empty() && is_default("events.keep_history_bytes") {
        // etcd holds its database in memory, with a quota of 2 GiB by default.
        loaded.settings.events.keep_history_bytes = Some(HistoryLimits::BYTES_MAX_IN_ETCD);
    }
    let is_given = |key: &str| {
        let source = loaded.entries.iter().find(|one| one.key == key).map(|one| &one.source);
        matches!(source, Some(Source::Flag(_) | Source::Environment(_)))
    };
    let mut mistakes = cluster_mistakes(&loaded.settings, is_default, is_given);
    let config = match validated(loaded.settings.clone()) {
        Ok(config) if mistakes.is_empty() => Ok(config),
        Ok(_) => Err(ConfigErrors(mistakes)),
        Err(error) => {
            mistakes.push(format!("{error:#}"));
            Err(ConfigErrors(mistakes))
        }
    };
    if serve.print_config {
        // Print contradicting settings too: their sources show where to fix them.
        output.answer(&Effective::new(&loaded), |_| output::data(print::toml(&loaded).as_bytes()))?;
        config?;
        return Ok(());
    }
    let mut config = config?;
    config.in_memory = demo.is_some();
    config.sign_in_link = output == Output::Table && std::io::stdout().is_terminal();
    if serve.check_config {
        // Only this check needs the secrets now; at startup they are read later, when the files may exist.
        TrustedProxies::load(&config.proxy).map_err(|error| ConfigErrors::one(error.to_string()))?;
        let given = config.root_token_file.as_deref().map(read_given).transpose();
        given.map_err(|error| ConfigErrors::one(error.to_string()))?;
        let file = loaded.file.as_ref().map(|file| format!("{}: ", file.display())).unwrap_or_default();
        return output::line(&format!("{file}no errors"));
    }
    logs::start(&loaded.settings.general.log, loaded.settings.general.log_format)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(run_until_stopped(limit_to_open_files(config), demo.as_ref(), output));
    // A read of a damaged file may never end; the start has given it up.
    runtime.shutdown_timeout(STALL_MAX);
    ended
}

/// Adapts the settings to a demo: its fleet, short events, and free ports.
fn for_demo(settings: &mut config::Settings, files: &demo::Files) {
    settings.general.data.clone_from(&files.directory);
    settings.general.fleet_file = Some(files.fleet.clone());
    settings.driver.simulated_duration = DEMO_DURATION;
    settings.operator.listen = demo::free(settings.operator.listen);
    for guest in &mut settings.guest.listen {
        guest.at.address = demo::free(guest.at.address);
    }
}

async fn run_until_stopped(config: ServeConfig, demo: Option<&demo::Files>, output: Output) -> Result<()> {
    let (stop, stopped) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // Handle SIGHUP early, so that it does not kill a service that is still starting.
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: finishing acknowledged requests");
        systemd::stopping();
        let _ = stop.send(true);
    });
    let ready = Box::new(|running: &Running| {
        // Ignore errors: the service runs even if standard output is closed.
        let _ = output.item(&running.addresses.listeners, |_| announce(&running.addresses));
        if let (Some(files), [guest, ..]) = (demo, running.addresses.guest.as_slice()) {
            demo::start(&files.directory, guest.at.address);
        }
        running.leak_view();
        systemd::ready(running);
        tokio::spawn(systemd::keep_notified(running.clone()));
        let running = running.clone();
        tokio::spawn(async move {
            while hang_up.recv().await.is_some() {
                systemd::reload(&running).await;
            }
        });
    });
    let served = notbefore_service::serve(config, stopped, ready).await;
    served.map_err(|error| match error.is_setting() {
        true => ConfigErrors::one(error.to_string()).into(),
        false => error.into(),
    })
}

/// Converts settings to the service's configuration; refuses contradictions.
fn validated(settings: config::Settings) -> Result<ServeConfig> {
    let operator_certificate = match (settings.operator.cert, settings.operator.key) {
        (Some(cert), Some(key)) => Some(CertificateFiles { cert, key }),
        (None, None) => None,
        (Some(_), None) => {
            bail!("operator.cert (--operator-cert) is set but operator.key (--operator-key) is not; set both")
        }
        (None, Some(_)) => {
            bail!("operator.key (--operator-key) is set but operator.cert (--operator-cert) is not; set both")
        }
    };
    let node_tls = match (settings.node.cert, settings.node.key, settings.node.ca) {
        (Some(cert), Some(key), Some(authority)) => {
            Some(NodeTlsFiles { pair: CertificateFiles { cert, key }, authority })
        }
        (None, None, None) => None,
        (Some(_) | None, Some(_) | None, Some(_) | None) => {
            bail!(
                "node.cert, node.key and node.ca (--node-cert, --node-key, --node-ca) belong together; set all three, or none"
            )
        }
    };
    let config = ServeConfig {
        nodes: NodesConfig { listen: settings.node.listen, tls: node_tls },
        data: settings.general.data,
        in_memory: false,
        cluster: cluster_config(
            settings.etcd,
            settings.node.trust_addresses_for,
            settings.node.format_level,
        )?,
        sign_in_link: false,
        root_token_file: settings.general.root_token_file,
        ready_file: settings.general.ready_file,
        fleet: settings.general.fleet_file.map(read_fleet).transpose()?,
        guest: settings.guest.listen,
        guest_vms: settings.guest.vms,
        guest_sockets: Vec::new(),
        recorder: None,
        faults_allowed: settings.guest.faults,
        clock: SharedClock::default(),
        proxy: ProxyConfig { addresses: settings.proxy.addresses, secret_file: settings.proxy.secret_file },
        operator: settings.operator.listen,
        operator_without_tls: settings.operator.without_tls,
        operator_certificate,
        change_rate_limit: ChangeRateLimit {
            burst: counted(settings.operator.changes_at_once)?,
            per_second: counted(settings.operator.changes_per_second)?,
        },
        hosts_shown: settings.operator.hosts_shown,
        operator_server: OperatorServerConfig {
            proxies: settings.operator.proxies,
            hosts: settings.operator.hosts,
            limits: OperatorServerLimits {
                connections_per_token_max: settings.operator_limits.connections_per_token_max,
                streams_per_token_max: settings.operator_limits.streams_per_token_max,
                streams_max: settings.operator_limits.streams_max,
            },
        },
        guest_settings: GuestSettings {
            mode: settings.guest.mode,
            newest_version: settings.guest.newest_version,
            rate_limit: settings.guest.rate_limit,
            threads: settings.guest.threads.and_then(NonZeroUsize::new),
            limits: Limits {
                connections_max: settings.guest_limits.connections_max,
                connections_per_source_max: settings.guest_limits.connections_per_source_max,
                head_timeout: settings.guest_limits.head_timeout,
                body_timeout: settings.guest_limits.body_timeout,
                idle_timeout: settings.guest_limits.idle_timeout,
                write_timeout: settings.guest_limits.write_timeout,
                shutdown_grace: settings.guest_limits.shutdown_grace,
            },
        },
        rfc1123_everywhere: settings.guest.rfc1123_everywhere,
        domain: Settings {
            notice_scale: settings.events.notice,
            simulated_duration: settings.driver.simulated_duration,
            ignores_announced_duration: false,
            user_operations_max: settings.events.user_operations_max,
            stored_user_operations_max: settings.events.stored_user_operations_max,
            when_not_enabled: match settings.events.always_give_notice {
                true => WhenNotEnabled::GiveNotice,
                false => WhenNotEnabled::RunAtOnce,
            },
            driver: settings.driver.kind,
            exec: ExecSettings {
                attempts_max: u32::try_from(settings.exec.attempts)?,
                backoff_first: settings.exec.backoff,
                has_host_command: settings.exec.host_command.is_some(),
                ..ExecSettings::default()
            },
        },
        exec: exec_config(settings.driver.kind, &settings.exec)?,
        history: HistoryLimits {
            retention: SignedDuration::try_from(settings.events.keep_history)?,
            bytes_max: settings.events.keep_history_bytes,
        },
        host_name: host_name()?,
    };
    config.check()?;
    Ok(config)
}

/// Settings that would start another service than the one that was meant.
fn cluster_mistakes(
    settings: &config::Settings,
    is_default: impl Fn(&str) -> bool,
    is_given: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut mistakes = Vec::new();
    let endpoints = &settings.etcd.endpoints;
    if endpoints.is_empty() && is_given("etcd.endpoints") {
        let empty = "--etcd (etcd.endpoints) is set, but names no URL of etcd; name etcd's members, or leave it out to run a single node";
        mistakes.push(empty.to_owned());
    }
    let is_remote =
        |url: &String| !["127.", "[::1]", "localhost"].iter().any(|here| url.contains(&format!("://{here}")));
    if endpoints.iter().any(is_remote) && is_default("node.listen") {
        let unreachable = "etcd is on other machines, and other nodes would not reach this node at its default --node-listen, which is a loopback address; set --node-listen ADDR to this machine's address, with --node-cert, --node-key and --node-ca. For several nodes on this machine only, set --node-listen 127.0.0.1:0";
        mistakes.push(unreachable.to_owned());
    }
    mistakes
}

/// The cluster of which this service is a node, if etcd is given.
fn cluster_config(
    settings: config::Etcd,
    trust_addresses_for: Duration,
    format_level: u32,
) -> Result<Option<ClusterConfig>> {
    let (node, compacts) = (settings.node.clone(), settings.compact);
    let Some(etcd) = etcd::checked(settings)? else { return Ok(None) };
    let name = node.map_or_else(host_name, Ok)?;
    if name.parse::<Name>().is_err() {
        bail!("the host name {name:?} cannot be the name of a node; set one with --node NAME (etcd.node)");
    }
    let cluster = ClusterConfig::new(name, SharedStore::Etcd(etcd));
    let compact_every = cluster.compact_every.filter(|_| compacts);
    Ok(Some(ClusterConfig { compact_every, trust_addresses_for, format_level, ..cluster }))
}

/// Reads a fleet file; its mistakes are errors of the configuration.
fn read_fleet(name: PathBuf) -> Result<FleetFile> {
    let scopes = fleet::described(&name)?;
    let scopes = scopes.into_iter().map(|FileScope { path, spec }| FleetScope { path, spec });
    Ok(FleetFile { scopes: scopes.collect(), name })
}

/// Converts a count; its setting allows 1 or more.
fn counted(count: usize) -> Result<NonZeroU32> {
    Ok(NonZeroU32::try_from(u32::try_from(count)?)?)
}

/// Configuration of the exec driver, if it is selected.
fn exec_config(driver: DriverKind, exec: &config::Exec) -> Result<Option<ExecConfig>> {
    let command = match (driver, &exec.command) {
        (DriverKind::Exec, Some(command)) => check_command("--exec", command)?,
        (DriverKind::Exec, None) => {
            bail!("the exec driver needs a command: set it with --exec FILE (driver.exec.command)")
        }
        (DriverKind::Simulated | DriverKind::Manual, Some(command)) => bail!(
            "{} is set as the exec driver's command, but the driver is {driver}; use --driver exec (driver.kind)",
            command.display()
        ),
        (DriverKind::Simulated | DriverKind::Manual, None) => match &exec.host_command {
            Some(command) => bail!(
                "{} is set as the exec driver's command for hosts, but the driver is {driver}; use --driver exec (driver.kind)",
                command.display()
            ),
            None => return Ok(None),
        },
    };
    let host_command = exec.host_command.as_deref();
    let passed_on = |name: &String| {
        let value = std::env::var_os(name).with_context(|| {
            format!(
                "--exec-env {name}: the variable is not set in the service's environment; set it, or remove the flag"
            )
        })?;
        Ok((name.into(), value))
    };
    Ok(Some(ExecConfig {
        host_command: host_command.map(|command| check_command("--exec-host", command)).transpose()?,
        timeout: exec.timeout,
        host_timeout: exec.host_timeout,
        concurrency: exec.concurrency,
        extra_environment: exec.environment.iter().map(passed_on).collect::<Result<_>>()?,
        ..ExecConfig::new(command)
    }))
}

/// Raises the soft limit of open files to the hard limit, and limits guest connections to it, less a reserve for the
/// operator listener and the store.
fn limit_to_open_files(mut config: ServeConfig) -> ServeConfig {
    const RESERVED: u64 = 768;
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    let raised = setrlimit(Resource::Nofile, files);
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if raised.is_err() {
        tracing::warn!(files, "cannot raise the open file limit");
    }
    let most = usize::try_from(files.saturating_sub(RESERVED).max(files / 2)).unwrap_or(usize::MAX);
    let limits = &mut config.guest_settings.limits;
    limits.connections_max = limits.connections_max.min(most);
    config
}

/// The machine's name from gethostname(), unchanged.
fn host_name() -> Result<String> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Some(name).filter(|name| !name.is_empty()).context("this machine has no host name")
}

/// Prints the listeners, and commands to try next.
fn announce(addresses: &Addresses) -> Result<()> {
    let path = "/metadata/scheduledevents?api-version=2020-07-01";
    let mut lines = vec![format!("notbefore {} is ready", env!("CARGO_PKG_VERSION"))];
    let guests = |guest: &GuestListener| {
        let network = Some(&guest.network).filter(|network| *network != "default");
        let network = network.map(|network| format!("network {network}"));
        let device = guest.at.device.as_ref().map(|device| format!("device {device}"));
        let tproxy = guest.at.tproxy.then(|| "by TPROXY".to_owned());
        let ways: Vec<String> = [network, device, tproxy].into_iter().flatten().collect();
        let ways = if ways.is_empty() { String::new() } else { format!(" ({})", ways.join(", ")) };
        format!("  guests     http://{}{path}{ways}", guest.at.address)
    };
    lines.extend(addresses.guest.iter().map(guests));
    lines.extend(addresses.guest_vms.iter().map(|(vm, guest)| format!("  guest {vm}  http://{guest}{path}")));
    let operator = addresses.operator;
    let token = match addresses.token.exists() {
        true => format!("token in {}", addresses.token.display()),
        false => "the first token is on the node that led first".to_owned(),
    };
    let scheme = if addresses.operator_encrypted { "https" } else { "http" };
    lines.push(format!("  operators  {scheme}://{operator}/v1 ({token})"));
    if let Some(code) = &addresses.sign_in_code {
        lines.push(format!(
            "  console    {scheme}://{operator}/#code={code} (works once, within five minutes)"
        ));
    }
    if let Some(vm) = &addresses.first_run {
        lines.push(format!("There is no fleet yet: this machine is the VM {vm}. Try in another terminal:"));
        let try_guest =
            |guest: &GuestListener| format!("  curl -H Metadata:true \"http://{}{path}\"", guest.at.address);
        // Listeners bound to a device or TPROXY cannot be reached from this machine.
        let near = addresses.guest.iter().find(|guest| guest.at.device.is_none() && !guest.at.tproxy);
        lines.extend(near.map(try_guest));
        lines.push(format!("  notbefore vm restart {vm}"));
    }
    output::lines(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use notbefore_etcd::DEFAULT_PREFIX;

    #[test]
    fn node_compacts_unless_the_setting_says_otherwise() {
        let settings = |compact| config::Etcd {
            endpoints: vec!["http://127.0.0.1:2379".to_owned()],
            node: Some("a".to_owned()),
            prefix: DEFAULT_PREFIX.to_owned(),
            ca: None,
            cert: None,
            key: None,
            user: None,
            password_file: None,
            quota: None,
            compact,
        };
        for compacts in [true, false] {
            let config = cluster_config(settings(compacts), ClusterConfig::TRUST_ADDRESSES_FOR, 2);
            assert_eq!(config.unwrap().unwrap().compact_every.is_some(), compacts);
        }
    }
}
