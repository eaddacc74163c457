//! Which api-version to ask for, as the clones of one client have learnt it. Pure: times are ticks, and come in.
//!
//! An older version is used only because newer ones were refused, one after the other: the versions that a refusal names
//! are those of the instance metadata, and a version too old does not speak of evictions at all. One that has answered
//! before is tried again after [`RETRY_INTERVAL`], and then twice that, up to an hour: a platform that was being updated does not
//! leave this VM with an older one for longer than need be. The newest of all is tried every hour, because a platform may
//! have learnt it. If that is refused, what worked before comes next, and not every version in between.

use std::time::Duration;

use crate::document::EventsVersion;

/// How often a newer api-version is tried where an older one is in use.
pub const RAISE_INTERVAL: Duration = Duration::from_secs(3_600);
/// When a version that has answered before is tried again for the first time.
pub const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Which api-version to ask for.
#[derive(Clone, Copy, Debug)]
pub struct Versions {
    newest: EventsVersion,
    /// The one that was answered last; before that, the newest.
    used: EventsVersion,
    /// The newest that was ever answered.
    best: Option<EventsVersion>,
    raise_at: Duration,
    again_at: Duration,
    /// From one try of the best to the next.
    again: Duration,
}

impl Versions {
    /// Nothing was refused yet.
    pub fn new(newest: EventsVersion) -> Self {
        let (raise_at, again_at) = (Duration::ZERO, Duration::ZERO);
        Versions { newest, used: newest, best: None, raise_at, again_at, again: RETRY_INTERVAL }
    }

    /// The one that was answered last, or the newest.
    pub fn used(&self) -> EventsVersion {
        self.used
    }

    /// The one to begin with now.
    pub fn first_version(&mut self, now: Duration) -> EventsVersion {
        if self.used < self.newest && now >= self.raise_at {
            // Whatever comes of it, once an hour is enough.
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

    /// The one to ask for after this one was refused; none where there is no older one, and then it begins anew.
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

    /// The platform has answered at this one.
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

/// The newest version that Microsoft's documentation lists. A platform that has events serves it, so its 404 may mean
/// that there are none here; a 404 of a newer one only says that the platform does not have that version yet.
const DOCUMENTED: EventsVersion = EventsVersion::V2020_07_01;

/// Whether an answer refuses the api-version it was asked at.
pub fn is_refused(version: EventsVersion, status: u16, body: &[u8]) -> bool {
    refuses(version > DOCUMENTED, status, body)
}

/// Pages of servers in between hold the word version, too, so that at a documented version more is looked for, in the
/// words that were seen of each status.
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
        assert_eq!(versions.after(NEWEST), Some(EventsVersion::V2019_08_01));
        versions.uses(OLD, begun);
        let hour = begun + RAISE_INTERVAL;
        assert_eq!(versions.first_version(hour - seconds(1)), OLD);
        assert_eq!(versions.first_version(hour), NEWEST);
        assert_eq!(versions.after(NEWEST), Some(OLD), "no walk through those that were refused before");
        // Refused, or not answered at all: not again before the next hour.
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
            // It answers again, and the next time begins anew.
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
            assert_eq!(is_refused(NEWEST, status, body.as_bytes()), expected, "{status} {body}");
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
                .all(|version| version <= DOCUMENTED || is_refused(version, 404, b""))
        );
    }
}
