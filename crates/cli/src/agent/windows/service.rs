//! The Windows service: installation, removal, and its entry point for the service control manager (SCM).
//!
//! The SCM starts `notbefore.exe agent service` with the arguments of the installation and expects status reports
//! ([`run`]). On a stop command or shutdown the agent stops in order, like on SIGTERM. `sc.exe control notbefore-agent
//! paramchange` reloads the rules, like SIGHUP. The SCM restarts an agent that fails.

use std::ffi::OsString;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use notbefore_agent::run::Order;
use tokio::sync::mpsc;
use windows_service::service::{
    Service, ServiceAccess, ServiceAction, ServiceActionType, ServiceControl, ServiceControlAccept,
    ServiceErrorControl, ServiceExitCode, ServiceFailureActions, ServiceFailureResetPeriod, ServiceInfo,
    ServiceStartType, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{self, ServiceControlHandlerResult, ServiceStatusHandle};
use windows_service::service_dispatcher;
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};

use super::super::ORDERS_MAX;
use super::{directory, event_log};
use crate::exit::Exit;
use crate::output;
use crate::pause::pause;

/// Service name for `sc` and `net`.
pub const NAME: &str = "notbefore-agent";
const DISPLAY_NAME: &str = "notbefore agent";
const DESCRIPTION: &str =
    "Prepares this VM for Scheduled Events, approves them, and undoes the preparation afterwards.";
/// Restart delays after consecutive failures; the last repeats.
const RESTART_AFTER: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(10), Duration::from_secs(60)];
/// The failure count is reset after this long without a failure.
const FAILURES_FORGOTTEN: Duration = Duration::from_secs(3600);
/// Limit of a stop: 2 seconds for hooks, then a journal write on a slow disk.
const STOP_MAX: Duration = Duration::from_secs(30);
/// Poll interval while the service stops.
const POLL_EVERY: Duration = Duration::from_millis(100);
/// ERROR_INVALID_LEVEL: this Windows version does not have the setting.
const NO_SUCH_SETTING: i32 = 124;

#[derive(Debug)]
pub struct Installation {
    /// Arguments after `agent service`.
    pub arguments: Vec<OsString>,
    /// Delayed automatic start.
    pub delayed: bool,
}

/// Installs the service, or updates an existing one.
pub fn install(installation: Installation) -> Result<()> {
    let dir = directory::place()?;
    if let Some(aside) = directory::make_private(&dir)? {
        output::line(&format!(
            "{} existed, but no installation created it: it was renamed to",
            dir.display()
        ))?;
        output::line(&format!("{}; check files before you copy them back", aside.display()))?;
    }
    event_log::register()?;
    let access = ServiceManagerAccess::CONNECT | ServiceManagerAccess::CREATE_SERVICE;
    let manager = manager(access)?;
    let info = ServiceInfo {
        name: NAME.into(),
        display_name: DISPLAY_NAME.into(),
        service_type: ServiceType::OWN_PROCESS,
        start_type: ServiceStartType::AutoStart,
        error_control: ServiceErrorControl::Normal,
        executable_path: std::env::current_exe().context("cannot determine this program's path")?,
        launch_arguments: ["agent".into(), "service".into()]
            .into_iter()
            .chain(installation.arguments)
            .collect(),
        dependencies: Vec::new(),
        // LocalSystem: hooks stop services and move disks.
        account_name: None,
        account_password: None,
    };
    let (service, done) = match open(&manager, ServiceAccess::all())? {
        Some(service) => {
            service.change_config(&info).context("cannot change the service")?;
            (service, "updated")
        }
        None => {
            let made = manager.create_service(&info, ServiceAccess::all());
            (made.context("cannot create the service")?, "installed")
        }
    };
    service.set_description(DESCRIPTION).context("cannot set the service's description")?;
    recover(&service)?;
    ignore_unsupported(service.set_delayed_auto_start(installation.delayed), "delayed start")?;
    ignore_unsupported(service.set_preshutdown_timeout(STOP_MAX), "preshutdown timeout")?;
    output::line(&format!("service {NAME} {done}; it starts with the machine"))?;
    output::line(&format!("configuration: {}", dir.join("agent.toml").display()))?;
    output::line("check it with 'notbefore agent check': its steps run as LocalSystem")?;
    output::line(&format!("then start the service with 'net start {NAME}'"))
}

/// Stops and removes the service; configuration and journal stay.
pub fn uninstall() -> Result<()> {
    let manager = manager(ServiceManagerAccess::CONNECT)?;
    let access = ServiceAccess::QUERY_STATUS | ServiceAccess::STOP | ServiceAccess::DELETE;
    let Some(service) = open(&manager, access)? else {
        bail!("no service {NAME} on this machine; install it with 'notbefore agent install'");
    };
    stop(&service)?;
    service.delete().context("cannot remove the service")?;
    event_log::unregister()?;
    output::line(&format!("service {NAME} removed; its files stay in {}", directory::place()?.display()))
}

fn manager(access: ServiceManagerAccess) -> Result<ServiceManager> {
    ServiceManager::local_computer(None::<&str>, access)
        .context("cannot open the service control manager; run this as an administrator")
}

fn open(manager: &ServiceManager, access: ServiceAccess) -> Result<Option<Service>> {
    const DOES_NOT_EXIST: i32 = 1060;
    match manager.open_service(NAME, access) {
        Ok(service) => Ok(Some(service)),
        Err(windows_service::Error::Winapi(error)) if error.raw_os_error() == Some(DOES_NOT_EXIST) => {
            Ok(None)
        }
        Err(error) => {
            Err(error).context(format!("cannot open the service {NAME}; run this as an administrator"))
        }
    }
}

fn recover(service: &Service) -> Result<()> {
    let restart = |delay| ServiceAction { action_type: ServiceActionType::Restart, delay };
    let actions = ServiceFailureActions {
        reset_period: ServiceFailureResetPeriod::After(FAILURES_FORGOTTEN),
        reboot_msg: None,
        command: None,
        actions: Some(RESTART_AFTER.map(restart).into()),
    };
    service.update_failure_actions(actions).context("cannot set the failure actions")?;
    // Also restart an agent that reports an error and stops, not only after a crash.
    ignore_unsupported(service.set_failure_actions_on_non_crash_failures(true), "restart after an error")
}

/// Ignores a setting that an older Windows, or Wine, does not support.
fn ignore_unsupported(set: windows_service::Result<()>, what: &str) -> Result<()> {
    match set {
        Err(windows_service::Error::Winapi(error)) if error.raw_os_error() == Some(NO_SUCH_SETTING) => {
            output::line(&format!("this system does not support {what} for services"))
        }
        set => set.with_context(|| format!("cannot set the {what}")),
    }
}

fn stop(service: &Service) -> Result<()> {
    let state = || Ok::<_, windows_service::Error>(service.query_status()?.current_state);
    let now = state()?;
    if now == ServiceState::Stopped {
        return Ok(());
    }
    // It may already be stopping.
    if now != ServiceState::StopPending {
        service.stop().context("cannot stop the service")?;
    }
    let looks = STOP_MAX.as_millis() / POLL_EVERY.as_millis();
    for _ in 0..looks {
        if state()? == ServiceState::Stopped {
            return Ok(());
        }
        pause(POLL_EVERY, "the SCM has no event for a stopped service");
    }
    bail!("the service {NAME} has not stopped within {} s", STOP_MAX.as_secs())
}

/// The service's work, until the order to stop.
type Job = Box<dyn FnOnce(mpsc::Receiver<Order>) -> Result<()> + Send>;

/// The SCM calls a plain function, which takes its work from here.
static JOB: Mutex<Option<Job>> = Mutex::new(None);
/// Handle for status reports, once registered.
static REPORTS: OnceLock<ServiceStatusHandle> = OnceLock::new();

/// Runs as the service; returns when it has stopped.
pub fn run(job: impl FnOnce(mpsc::Receiver<Order>) -> Result<()> + Send + 'static) -> Result<()> {
    *JOB.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(job));
    service_dispatcher::start(NAME, service_main).with_context(|| {
        format!(
            "only Windows starts this command; use 'net start {NAME}', or 'notbefore agent run' at a terminal"
        )
    })
}

/// Entry point for the SCM. Its arguments are those of `net start`, which are not used.
extern "system" fn service_main(_count: u32, _words: *mut *mut u16) {
    let Some(job) = JOB.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    let (orders, received) = mpsc::channel(ORDERS_MAX);
    let hear = move |control| {
        let ends = [ServiceControl::Stop, ServiceControl::Shutdown, ServiceControl::Preshutdown];
        if ends.contains(&control) {
            report_state(ServiceState::StopPending, ServiceExitCode::NO_ERROR);
            let _ = orders.try_send(Order::Stop);
        } else if control == ServiceControl::ParamChange {
            // The queue always has room for a stop; one waiting reload stands for all.
            if orders.capacity() > 1 {
                let _ = orders.try_send(Order::Reload);
            }
        } else if control != ServiceControl::Interrogate {
            return ServiceControlHandlerResult::NotImplemented;
        }
        ServiceControlHandlerResult::NoError
    };
    match service_control_handler::register(NAME, hear) {
        Ok(reports) => drop(REPORTS.set(reports)),
        Err(error) => {
            return event_log::report(
                tracing::Level::ERROR,
                &format!("cannot register the service: {error}"),
            );
        }
    }
    report_state(ServiceState::Running, ServiceExitCode::NO_ERROR);
    let code = match job(received) {
        Ok(()) => ServiceExitCode::NO_ERROR,
        Err(error) => {
            event_log::report(tracing::Level::ERROR, &format!("{error:#}"));
            // Same exit codes as on other platforms.
            ServiceExitCode::ServiceSpecific(Exit::of(&error).code().into())
        }
    };
    report_state(ServiceState::Stopped, code);
}

/// Reports the service's status to the SCM.
fn report_state(state: ServiceState, exit_code: ServiceExitCode) {
    let running = state == ServiceState::Running;
    let controls = ServiceControlAccept::STOP
        | ServiceControlAccept::SHUTDOWN
        | ServiceControlAccept::PRESHUTDOWN
        | ServiceControlAccept::PARAM_CHANGE;
    let status = ServiceStatus {
        service_type: ServiceType::OWN_PROCESS,
        current_state: state,
        controls_accepted: if running { controls } else { ServiceControlAccept::empty() },
        exit_code,
        checkpoint: 0,
        wait_hint: if state == ServiceState::StopPending { STOP_MAX } else { Duration::ZERO },
        process_id: None,
    };
    if let Some(Err(error)) = REPORTS.get().map(|reports| reports.set_service_status(status)) {
        event_log::report(
            tracing::Level::WARN,
            &format!("cannot report to the service control manager: {error}"),
        );
    }
}
