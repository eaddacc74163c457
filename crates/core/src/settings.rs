//! What whoever runs the service can set, as far as the rules of the domain depend on it.

use std::time::Duration;

use crate::event::DriverKind;

/// Settings of the whole service that [`crate::Scope::apply`] goes by.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Every notice is multiplied by this: 1 in production, 0.01 to see a day's maintenance in minutes.
    pub notice_scale: f64,
    /// How long the simulated driver keeps an event Started when its duration is unknown.
    pub simulated_duration: Duration,
    /// How many operations of users may be live in one scope. Azure had 10 in the preview, then 100.
    pub user_operations_max: usize,
    /// How many operations of users may be stored for one scope, those that have ended included, before users other than
    /// operators of everywhere get no more. A store is not filled up from outside.
    pub stored_user_operations_max: usize,
    /// What user operations do where no guest has asked for a day.
    pub when_not_enabled: WhenNotEnabled,
    /// Who carries out the events that are scheduled from now on.
    pub driver: DriverKind,
    /// How often and when the exec driver tries again.
    pub exec: ExecSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            notice_scale: 1.0,
            simulated_duration: Duration::from_secs(60),
            user_operations_max: 100,
            stored_user_operations_max: 10_000,
            when_not_enabled: WhenNotEnabled::RunAtOnce,
            driver: DriverKind::Simulated,
            exec: ExecSettings::default(),
        }
    }
}

impl Settings {
    /// A notice, scaled.
    pub fn scaled(&self, notice: Duration) -> Duration {
        Duration::try_from_secs_f64(notice.as_secs_f64() * self.notice_scale).unwrap_or(notice)
    }
}

/// What user operations do in a scope whose guests do not listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNotEnabled {
    /// They run without notice, as nobody would read it.
    RunAtOnce,
    /// They give notice all the same.
    GiveNotice,
}

/// How often a command of the exec driver is tried, and how long it waits in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecSettings {
    /// How many attempts a command has, until somebody retries the event.
    pub attempts_max: u32,
    /// The wait after the first failure; each further one is twice as long.
    pub backoff_first: Duration,
    /// The longest wait.
    pub backoff_max: Duration,
}

impl Default for ExecSettings {
    fn default() -> Self {
        Self {
            attempts_max: 5,
            backoff_first: Duration::from_secs(5),
            backoff_max: Duration::from_secs(5 * 60),
        }
    }
}

impl ExecSettings {
    /// How many attempts a command has: one at least.
    pub fn attempts(&self) -> u32 {
        self.attempts_max.max(1)
    }

    /// How long a command waits after so many failures in a row.
    pub fn backoff(&self, failures: u32) -> Duration {
        let doubled = 2u32.saturating_pow(failures.saturating_sub(1));
        self.backoff_first.saturating_mul(doubled).min(self.backoff_max)
    }
}
