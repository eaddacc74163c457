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
    /// What user operations do where no guest has asked for a day.
    pub when_not_enabled: WhenNotEnabled,
    /// Who carries out the events that are scheduled from now on.
    pub driver: DriverKind,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            notice_scale: 1.0,
            simulated_duration: Duration::from_secs(60),
            user_operations_max: 100,
            when_not_enabled: WhenNotEnabled::RunAtOnce,
            driver: DriverKind::Simulated,
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
