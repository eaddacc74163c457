//! The operator's settings that the domain rules depend on.

use std::time::Duration;

use crate::event::DriverKind;

/// Service-wide settings used by [`crate::Scope::apply`].
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Factor on every notice: 1 in production, 0.01 to test a day's maintenance in minutes.
    pub notice_scale: f64,
    /// How long the simulated driver keeps an event Started if its duration is unknown.
    pub simulated_duration: Duration,
    /// Whether the simulated driver keeps every event Started for `simulated_duration`, also if it announces a duration.
    /// A rehearsal ends its events itself.
    pub ignores_announced_duration: bool,
    /// Limit on live user operations in one scope. Azure had 10 in the preview, then 100.
    pub user_operations_max: usize,
    /// Limit on stored user operations of one scope, ended ones included. It keeps callers from filling the
    /// store; a token that is operator on `/` is exempt.
    pub stored_user_operations_max: usize,
    /// What user operations do in a scope that is not enabled.
    pub when_not_enabled: WhenNotEnabled,
    /// The driver of events that are announced from now on.
    pub driver: DriverKind,
    /// Retries of the exec driver.
    pub exec: ExecSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            notice_scale: 1.0,
            simulated_duration: Duration::from_secs(60),
            ignores_announced_duration: false,
            user_operations_max: 100,
            stored_user_operations_max: 10_000,
            when_not_enabled: WhenNotEnabled::RunAtOnce,
            driver: DriverKind::Simulated,
            exec: ExecSettings::default(),
        }
    }
}

impl Settings {
    /// The notice multiplied by `notice_scale`.
    pub fn scaled(&self, notice: Duration) -> Duration {
        Duration::try_from_secs_f64(notice.as_secs_f64() * self.notice_scale).unwrap_or(notice)
    }
}

/// What user operations do in a scope that is not enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNotEnabled {
    /// Start without notice, since no guest would read it.
    RunAtOnce,
    /// Give notice as usual.
    GiveNotice,
}

/// Retry limit and exponential back-off of the exec driver's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecSettings {
    /// Attempts per command, until an operator retries the event.
    pub attempts_max: u32,
    /// The wait after the first failure; it doubles with each further failure.
    pub backoff_first: Duration,
    pub backoff_max: Duration,
    /// Whether there is a command for the hosts of operations that are scheduled from now on.
    pub has_host_command: bool,
}

impl Default for ExecSettings {
    fn default() -> Self {
        Self {
            attempts_max: 5,
            backoff_first: Duration::from_secs(5),
            backoff_max: Duration::from_secs(5 * 60),
            has_host_command: false,
        }
    }
}

impl ExecSettings {
    /// Attempts per command, at least one.
    pub fn attempts(&self) -> u32 {
        self.attempts_max.max(1)
    }

    /// The wait after this many consecutive failures.
    pub fn backoff(&self, failures: u32) -> Duration {
        let doubled = 2u32.saturating_pow(failures.saturating_sub(1));
        self.backoff_first.saturating_mul(doubled).min(self.backoff_max)
    }
}
