//! Which api-version to ask for, as the clones of one client have learnt it. Pure: times are ticks, and come in.
//!
//! An older version is used only because newer ones were refused, and the newest is tried again every hour: a platform
//! may have been updated. If that is refused, what worked before comes next, and not every version in between.

use std::time::Duration;

use crate::document::EventsVersion;
use crate::poll::{RAISE, older_than};

#[derive(Clone, Copy, Debug)]
pub struct Versions {
    newest: EventsVersion,
    used: EventsVersion,
    raise_at: Duration,
}

impl Versions {
    /// Nothing was refused yet.
    pub fn new(newest: EventsVersion) -> Self {
        Versions { newest, used: newest, raise_at: Duration::ZERO }
    }

    /// The one that was answered last, or the newest.
    pub fn used(&self) -> EventsVersion {
        self.used
    }

    /// When the newest is tried again, if it is not what is used.
    pub fn raise_at(&self) -> Duration {
        self.raise_at
    }

    /// The one to begin with now.
    pub fn begin_with(&mut self, now: Duration) -> EventsVersion {
        if self.used == self.newest || now < self.raise_at {
            return self.used;
        }
        // Whatever comes of it, once an hour is enough.
        self.raise_at = now.saturating_add(RAISE);
        self.newest
    }

    /// The one to ask for after this one was refused in these words; none where there is no older one.
    pub fn after(&self, refused: EventsVersion, body: &[u8]) -> Option<EventsVersion> {
        match self.used < refused {
            true => Some(self.used),
            false => older_than(refused, body),
        }
    }

    /// The platform has answered at this one.
    pub fn uses(&mut self, version: EventsVersion, now: Duration) {
        if version < self.used {
            self.raise_at = now.saturating_add(RAISE);
        }
        self.used = version;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEWEST: EventsVersion = EventsVersion::NEWEST;
    const OLD: EventsVersion = EventsVersion::V2017_11_01;

    #[test]
    fn the_newest_is_tried_once_an_hour_and_what_worked_comes_after_it() {
        let mut versions = Versions::new(NEWEST);
        let begun = Duration::from_secs(7);
        assert_eq!(versions.begin_with(begun), NEWEST);
        assert_eq!(versions.after(NEWEST, b""), Some(EventsVersion::V2019_08_01));
        versions.uses(OLD, begun);
        let hour = begun + RAISE;
        assert_eq!(versions.begin_with(hour - Duration::from_secs(1)), OLD);
        assert_eq!(versions.begin_with(hour), NEWEST);
        assert_eq!(versions.after(NEWEST, b""), Some(OLD), "no walk through those that were refused before");
        // Refused, or not answered at all: not again before the next hour.
        assert_eq!(versions.begin_with(hour + RAISE - Duration::from_secs(1)), OLD);
        assert_eq!(versions.begin_with(hour + RAISE), NEWEST);
        versions.uses(NEWEST, hour + RAISE);
        assert_eq!(versions.begin_with(hour + RAISE + RAISE), NEWEST);
    }

    #[test]
    fn what_worked_and_is_refused_now_is_followed_by_an_older_one() {
        let mut versions = Versions::new(NEWEST);
        versions.uses(OLD, Duration::ZERO);
        assert_eq!(versions.after(OLD, b""), Some(EventsVersion::V2017_08_01));
        assert_eq!(versions.after(EventsVersion::ALL[0], b""), None);
    }
}
