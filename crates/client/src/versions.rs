//! Api-version negotiation, shared by the clones of a client. Pure: times are ticks passed in.
//!
//! - After a refusal, the next older version is requested. The version list in a refusal is ignored: it is that of
//!   the instance metadata, and a version too old does not list Preempt events.
//! - A version that worked before is retried after [`RETRY_INTERVAL`], with exponential backoff up to an hour, so
//!   that an update of the platform has no lasting effect.
//! - The newest version is tried every hour, because the platform may support it by now. If it is refused, the
//!   version that worked is next, without the ones in between.

use std::fmt::Display;
use std::time::Duration;

use crate::document::EventsVersion;

/// Interval for trying a newer api-version while an older one is in use.
pub const RAISE_INTERVAL: Duration = Duration::from_secs(3_600);
/// First delay before a version that worked is retried.
pub const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Negotiation state.
#[derive(Clone, Copy, Debug)]
pub struct Versions {
    newest: EventsVersion,
    /// Last version answered; at first, the newest.
    used: EventsVersion,
    /// Newest version ever answered.
    best: Option<EventsVersion>,
    raise_at: Duration,
    again_at: Duration,
    /// Current interval between retries of `best`.
    again: Duration,
}

impl Versions {
    /// Initial state: nothing refused.
    pub fn new(newest: EventsVersion) -> Self {
        let (raise_at, again_at) = (Duration::ZERO, Duration::ZERO);
        Versions { newest, used: newest, best: None, raise_at, again_at, again: RETRY_INTERVAL }
    }

    /// Last version answered, or the newest.
    pub fn used(&self) -> EventsVersion {
        self.used
    }

    /// The version for the next request.
    pub fn first_version(&mut self, now: Duration) -> EventsVersion {
        if self.used < self.newest && now >= self.raise_at {
            // Once an hour, whatever the outcome.
            self.raise_at = now.saturating_add(RAISE_INTERVAL);
            return self.newest;
        }
        match self.best.filter(|best| self.used < *best && now >= self.again_at) {
            Some(best) => {
                self.again = (self.again * 2).min(RAISE_INTERVAL);
                self.again_at = now.saturating_add(self.again);
                best
            }
            None => self.used,
        }
    }

    /// The version after a refused one; None if there is no older one, and the negotiation starts over.
    pub fn after(&mut self, refused: EventsVersion) -> Option<EventsVersion> {
        if self.used < refused {
            return Some(self.used);
        }
        let older = EventsVersion::ALL.into_iter().rfind(|older| *older < refused);
        if older.is_none() {
            self.used = self.newest;
        }
        older
    }

    /// Records a version that the platform answered.
    pub fn uses(&mut self, version: EventsVersion, now: Duration) {
        if version < self.used {
            self.raise_at = now.saturating_add(RAISE_INTERVAL);
            self.again = RETRY_INTERVAL;
            self.again_at = now.saturating_add(RETRY_INTERVAL);
        }
        self.used = version;
        self.best = self.best.max(Some(version));
    }
}

/// Whether a response refuses the requested api-version. Platforms with events serve the documented versions, so a 404
/// of these may mean that there are none; a 404 of a newer one only means an unsupported version.
pub fn is_refused(version: EventsVersion, status: u16, body: &[u8]) -> bool {
    refuses(version > EventsVersion::DOCUMENTED, status, body)
}

/// Logs that a version is refused. That of a version without documentation is normal.
pub fn log_refusal(endpoint: &impl Display, refused: EventsVersion, next: EventsVersion) {
    match refused > EventsVersion::DOCUMENTED {
        true => {
            tracing::debug!(%endpoint, "the platform does not serve api-version {refused}: requesting {next}");
        }
        false => {
            tracing::warn!(%endpoint, "the platform refuses api-version {refused}: requesting {next}");
        }
    }
}

/// Error pages of intermediate servers may contain "version" too, so at documented versions only known messages
/// count.
fn refuses(is_undocumented: bool, status: u16, body: &[u8]) -> bool {
    let words: &[&str] = match status {
        404 if is_undocumented => return true,
        400 => &["api-version", "newest-versions"],
        404 => &["invalid version"],
        _ => return false,
    };
    let text = String::from_utf8_lossy(body).to_ascii_lowercase();
    words.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEWEST: EventsVersion = EventsVersion::NEWEST;
    const OLD: EventsVersion = EventsVersion::V2017_11_01;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn newest_version_is_retried_hourly() {
        let mut versions = Versions::new(NEWEST);
        let begun = seconds(7);
        assert_eq!(versions.first_version(begun), NEWEST);
        assert_eq!(versions.after(NEWEST), Some(EventsVersion::DOCUMENTED));
        versions.uses(OLD, begun);
        let hour = begun + RAISE_INTERVAL;
        assert_eq!(versions.first_version(hour - seconds(1)), OLD);
        assert_eq!(versions.first_version(hour), NEWEST);
        assert_eq!(versions.after(NEWEST), Some(OLD), "no walk through those that were refused before");
        // Refused or not answered: not again within the hour.
        assert_eq!(versions.first_version(hour + RAISE_INTERVAL - seconds(1)), OLD);
        assert_eq!(versions.first_version(hour + RAISE_INTERVAL), NEWEST);
        versions.uses(NEWEST, hour + RAISE_INTERVAL);
        assert_eq!(versions.first_version(hour + RAISE_INTERVAL + RAISE_INTERVAL), NEWEST);
    }

    #[test]
    fn refused_version_falls_back_to_older() {
        let mut versions = Versions::new(NEWEST);
        versions.uses(OLD, Duration::ZERO);
        assert_eq!(versions.after(OLD), Some(EventsVersion::V2017_08_01));
    }

    #[test]
    fn all_versions_refused_starts_over() {
        let mut versions = Versions::new(NEWEST);
        versions.uses(EventsVersion::ALL[0], Duration::ZERO);
        assert_eq!(versions.after(EventsVersion::ALL[0]), None);
        assert_eq!(versions.first_version(seconds(1)), NEWEST);
    }

    #[test]
    fn working_version_is_retried_with_backoff() {
        for best in [NEWEST, EventsVersion::V2019_08_01] {
            let mut versions = Versions::new(NEWEST);
            versions.uses(best, Duration::ZERO);
            let refused_at = seconds(100);
            versions.uses(EventsVersion::ALL[0], refused_at);
            let mut tried = Vec::new();
            for second in 100..20_000 {
                match versions.first_version(seconds(second)) {
                    version if version == best => tried.push(second - 100),
                    version => assert!(version == EventsVersion::ALL[0] || version == NEWEST, "{version}"),
                }
            }
            tried.retain(|tried| tried % 3_600 != 0);
            assert_eq!(tried[..6], [5, 15, 35, 75, 155, 315], "{best}");
            assert!(tried.windows(2).all(|pair| pair[1] - pair[0] <= 3_600), "{tried:?}");
            // It answers again; the backoff restarts.
            versions.uses(best, seconds(20_000));
            versions.uses(EventsVersion::ALL[0], seconds(20_010));
            assert_eq!(versions.first_version(seconds(20_014)), EventsVersion::ALL[0]);
            assert_eq!(versions.first_version(seconds(20_015)), best);
        }
    }

    #[test]
    fn only_known_messages_count_as_version_refusal() {
        for (status, body, expected) in [
            (400, "{\"error\":\"Bad request. api-version is invalid or was not specified\"}", true),
            (400, "{\"newest-versions\":[\"2018-02-01\"]}", true),
            (404, "{ \"error\": \"Not found. Invalid version requested\" }", true),
            (404, "{\"error\":\"Bad request. api-version is invalid\"}", false),
            (404, "{\"error\":\"Not found\"}", false),
            (404, "", false),
            (500, "api-version", false),
            (400, "Your browser's version", false),
            (400, "Bad request. Required metadata header not specified", false),
        ] {
            let documented = EventsVersion::DOCUMENTED;
            assert_eq!(is_refused(documented, status, body.as_bytes()), expected, "{status} {body}");
        }
    }

    #[test]
    fn any_404_of_a_version_above_the_documented_ones_refuses_it() {
        for body in ["", "<html>not here</html>", "{\"error\":\"Not found\"}"] {
            assert!(refuses(true, 404, body.as_bytes()), "{body}");
            assert!(!refuses(false, 404, body.as_bytes()), "{body}");
        }
        assert!(refuses(true, 400, b"newest-versions"));
        assert!(!refuses(true, 400, b"Bad request"));
        assert!(!refuses(true, 503, b""));
        assert!(
            EventsVersion::ALL
                .into_iter()
                .all(|version| version <= EventsVersion::DOCUMENTED || is_refused(version, 404, b""))
        );
    }
}
