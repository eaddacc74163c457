//! The agent as a service: installed, taken away, and run by the service control manager.
//!
//! The manager starts `notbefore.exe agent service` with the arguments that were given when it was installed, expects the
//! process to report to it ([`run`]), and then tells it to stop: because somebody says so, or because the machine
//! goes down. Each of these ends the agent in order, as SIGTERM does elsewhere; `sc.exe control notbefore-agent
//! paramchange` has it read its rules anew, as SIGHUP does. An agent that fails is started again.

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

/// What `sc` and `net` call it.
pub const NAME: &str = "notbefore-agent";
const DISPLAY_NAME: &str = "notbefore agent";
const DESCRIPTION: &str =
    "Prepares this VM for Scheduled Events, approves them, and puts everything back afterwards.";
/// How long after each failure in a row it is started again; the last goes for all that follow.
const RESTART_AFTER: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(10), Duration::from_secs(60)];
/// After so long without one, failures are counted anew.
const FAILURES_FORGOTTEN: Duration = Duration::from_secs(3600);
/// How long a stop may take: hooks have two seconds to end, and then there is the journal to write, on a slow disk.
const STOP_MAX: Duration = Duration::from_secs(30);
/// How often it is looked at whether it has stopped.
const POLL_EVERY: Duration = Duration::from_millis(100);
/// What this system answers where it has no such setting: ERROR_INVALID_LEVEL.
const NO_SUCH_SETTING: i32 = 124;

/// How it is installed.
#[derive(Debug)]
pub struct Installation {
    /// What follows `agent service` on its command line.
    pub arguments: Vec<OsString>,
    /// Whether Windows starts it some minutes after the others.
    pub delayed: bool,
}

/// Installs the service, or brings the one that is there up to date.
pub fn install(installation: Installation) -> Result<()> {
    let dir = directory::place()?;
    if let Some(aside) = directory::make_private(&dir)? {
        output::line(&format!("{} was there, and no installation has made it: it is now", dir.display()))?;
        output::line(&format!("{}; read what you copy from there", aside.display()))?;
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
        executable_path: std::env::current_exe().context("cannot tell where this program is")?,
        launch_arguments: ["agent".into(), "service".into()]
            .into_iter()
            .chain(installation.arguments)
            .collect(),
        dependencies: Vec::new(),
        // The system itself: hooks stop services and move disks.
        account_name: None,
        account_password: None,
    };
    let (service, done) = match open(&manager, ServiceAccess::all())? {
        Some(service) => {
            service.change_config(&info).context("cannot change the service")?;
            (service, "brought up to date")
        }
        None => {
            let made = manager.create_service(&info, ServiceAccess::all());
            (made.context("cannot make the service")?, "installed")
        }
    };
    service.set_description(DESCRIPTION).context("cannot describe the service")?;
    recover(&service)?;
    ignore_unsupported(service.set_delayed_auto_start(installation.delayed), "delayed start")?;
    ignore_unsupported(service.set_preshutdown_timeout(STOP_MAX), "time before a shutdown")?;
    output::line(&format!("the service {NAME} is {done}; it starts with the machine"))?;
    output::line(&format!("its configuration is {}", dir.join("agent.toml").display()))?;
    output::line("look that over with 'notbefore agent check': its steps run as the system")?;
    output::line(&format!("then start the service with 'net start {NAME}'"))
}

/// Stops the service and takes it away; its configuration and journal stay.
pub fn uninstall() -> Result<()> {
    let manager = manager(ServiceManagerAccess::CONNECT)?;
    let access = ServiceAccess::QUERY_STATUS | ServiceAccess::STOP | ServiceAccess::DELETE;
    let Some(service) = open(&manager, access)? else {
        bail!("there is no service {NAME} on this machine; 'notbefore agent install' makes it");
    };
    stop(&service)?;
    service.delete().context("cannot take the service away")?;
    event_log::unregister()?;
    output::line(&format!(
        "the service {NAME} is gone; what it has written is in {}",
        directory::place()?.display()
    ))
}

fn manager(access: ServiceManagerAccess) -> Result<ServiceManager> {
    ServiceManager::local_computer(None::<&str>, access)
        .context("the service control manager refuses; run this as an administrator")
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
    service.update_failure_actions(actions).context("cannot say what shall follow a failure")?;
    // An agent that reports that it has ended has failed too, if it says so.
    ignore_unsupported(service.set_failure_actions_on_non_crash_failures(true), "restart after an error")
}

/// Lets a setting be missing that an older system, or one that only looks like it, does not know.
fn ignore_unsupported(set: windows_service::Result<()>, what: &str) -> Result<()> {
    match set {
        Err(windows_service::Error::Winapi(error)) if error.raw_os_error() == Some(NO_SUCH_SETTING) => {
            output::line(&format!("this system has no {what} for services"))
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
    // One that is stopping already was told by somebody else.
    if now != ServiceState::StopPending {
        service.stop().context("cannot stop the service")?;
    }
    let looks = STOP_MAX.as_millis() / POLL_EVERY.as_millis();
    for _ in 0..looks {
        if state()? == ServiceState::Stopped {
            return Ok(());
        }
        pause(POLL_EVERY, "the service manager tells nobody when a service has stopped");
    }
    bail!("the service {NAME} has not stopped within {} s", STOP_MAX.as_secs())
}

/// What a service does until it is told to stop.
type Job = Box<dyn FnOnce(mpsc::Receiver<Order>) -> Result<()> + Send>;

/// The manager calls a bare function, which finds here what it is to do.
static JOB: Mutex<Option<Job>> = Mutex::new(None);
/// How to report to the manager, once that is known.
static REPORTS: OnceLock<ServiceStatusHandle> = OnceLock::new();

/// Runs as a service that the manager has started; returns when it has stopped.
pub fn run(job: impl FnOnce(mpsc::Receiver<Order>) -> Result<()> + Send + 'static) -> Result<()> {
    *JOB.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(job));
    service_dispatcher::start(NAME, service_main).with_context(|| {
        format!(
            "only Windows itself starts this; say 'net start {NAME}', or 'notbefore agent run' at a terminal"
        )
    })
}

/// What the manager calls. The arguments that it has for us are those of `net start`, of which we have none.
extern "system" fn service_main(_count: u32, _words: *mut *mut u16) {
    let Some(job) = JOB.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    let (orders, received) = mpsc::channel(ORDERS_MAX);
    let hear = move |control| {
        let ends = [ServiceControl::Stop, ServiceControl::Shutdown, ServiceControl::Preshutdown];
        if ends.contains(&control) {
            report_state(ServiceState::StopPending, ServiceExitCode::NO_ERROR);
            let _ = orders.try_send(Order::Stop);
        } else if control == ServiceControl::ParamChange {
            // However often it is told to, the order to stop has a place, and one to reload that waits is for all.
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
        Err(error) => return event_log::report(tracing::Level::ERROR, &format!("no service: {error}")),
    }
    report_state(ServiceState::Running, ServiceExitCode::NO_ERROR);
    let code = match job(received) {
        Ok(()) => ServiceExitCode::NO_ERROR,
        Err(error) => {
            event_log::report(tracing::Level::ERROR, &format!("{error:#}"));
            // The exit codes that it has elsewhere.
            ServiceExitCode::ServiceSpecific(Exit::of(&error).code().into())
        }
    };
    report_state(ServiceState::Stopped, code);
}

/// Tells the manager how the service is.
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
            &format!("the service control manager does not listen: {error}"),
        );
    }
}
