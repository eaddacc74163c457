//! `notbefore serve`

use std::io::Write;

use anyhow::{Context, Result};
use jiff::{SignedDuration, Timestamp};
use notbefore_core::{DriverKind, ExecSettings, Settings, WhenNotEnabled};
use notbefore_service::ServeConfig;
use notbefore_service::clock::{Clock, SystemClock};
use notbefore_service::guest::settings::{GuestSettings, Limits, Mode};
use notbefore_service::serve::Addresses;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

use crate::args::{Driver, Serve};

/// What time it is, for showing how far away things are.
pub fn now() -> Timestamp {
    SystemClock.now()
}

pub fn run(serve: Box<Serve>) -> Result<()> {
    let filter = EnvFilter::try_from_env("NOTBEFORE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (stop, stopped) = watch::channel(false);
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("stopping: finishing what was acknowledged");
            let _ = stop.send(true);
        });
        notbefore_service::serve(config(&serve)?, stopped, announce).await?;
        Ok(())
    })
}

fn config(serve: &Serve) -> Result<ServeConfig> {
    let mode = match (serve.strict, serve.lenient) {
        (true, _) => Mode::Strict,
        (false, true) => Mode::Lenient,
        (false, false) => Mode::Normal,
    };
    Ok(ServeConfig {
        data: serve.reach.data_dir(),
        guest: serve.guest.clone(),
        guest_vms: serve.guest_vm.clone(),
        operator: serve.operator,
        operator_without_tls: serve.operator_without_tls,
        guest_settings: GuestSettings { mode, rate_limit: serve.rate_limit, limits: limits() },
        rfc1123_everywhere: serve.rfc1123_everywhere,
        domain: Settings {
            notice_scale: serve.notice,
            simulated_duration: serve.simulated_duration,
            user_operations_max: serve.user_operations_max,
            when_not_enabled: match serve.always_give_notice {
                true => WhenNotEnabled::GiveNotice,
                false => WhenNotEnabled::RunAtOnce,
            },
            driver: match serve.driver {
                Driver::Simulated => DriverKind::Simulated,
                Driver::Manual => DriverKind::Manual,
                Driver::Exec => DriverKind::Exec,
            },
            exec: ExecSettings::default(),
        },
        history_kept: SignedDuration::try_from(serve.keep_history)?,
        host_name: host_name()?,
    })
}

/// As many connections as there are files, less some that the operators and the store shall have. The soft limit
/// of files is raised to the hard one first: every guest that keeps its connection open takes one.
fn limits() -> Limits {
    const RESERVED: u64 = 768;
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    let raised = setrlimit(Resource::Nofile, files);
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if raised.is_err() {
        tracing::warn!(files, "cannot raise the limit of open files");
    }
    let most = usize::try_from(files.saturating_sub(RESERVED).max(files / 2)).unwrap_or(usize::MAX);
    let usual = Limits::default();
    Limits { connections_max: usual.connections_max.min(most), ..usual }
}

/// The machine's name, exactly as gethostname() gives it.
fn host_name() -> Result<String> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Some(name).filter(|name| !name.is_empty()).context("this machine has no name")
}

/// Tells whoever has started the service what to try next.
fn announce(addresses: &Addresses) {
    let path = "/metadata/scheduledevents?api-version=2020-07-01";
    let mut lines = vec![format!("notbefore {} is ready", env!("CARGO_PKG_VERSION"))];
    lines.extend(addresses.guest.iter().map(|guest| format!("  guests     http://{guest}{path}")));
    lines.extend(addresses.guest_vms.iter().map(|(vm, guest)| format!("  guest {vm}  http://{guest}{path}")));
    let (operator, token) = (addresses.operator, addresses.token.display());
    lines.push(format!("  operators  http://{operator}/v1 (token in {token})"));
    if let Some(vm) = &addresses.first_run {
        lines.push(format!(
            "There is no fleet yet, so this machine is the VM {vm}. Try, in another terminal:"
        ));
        let try_guest = |guest| format!("  curl -H Metadata:true \"http://{guest}{path}\"");
        lines.extend(addresses.guest.first().map(try_guest));
        lines.push(format!("  notbefore vm restart {vm}"));
    }
    // Nobody may be reading any more; the service runs all the same.
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}", lines.join("\n")).and_then(|()| out.flush());
}
