//! The api-versions of scheduled events, and what each one shows.
//!
//! Scheduled events and instance metadata have different versions; some dates are valid for one only. The renderer
//! asks the methods here what a version shows, and compares no dates itself.

use std::fmt;

use jiff::civil::Date;

use super::document::EventType;

/// An api-version of scheduled events. Older versions sort first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventsVersion {
    /// Preview: `_` before names, ISO 8601 times, no `Metadata` header required for POST.
    V2017_03_01,
    /// General availability: plain names, RFC 1123 times.
    V2017_08_01,
    /// Adds the type Preempt.
    V2017_11_01,
    /// Adds the type Terminate.
    V2019_01_01,
    /// Adds the field Description.
    V2019_04_01,
    /// Adds the field EventSource.
    V2019_08_01,
    /// Adds the field DurationInSeconds. The newest version in Microsoft's documentation.
    V2020_07_01,
    /// Adds the type SpotRebalanceRecommendation, with the status Advisory. Known from clients, not documented.
    V2024_07_09,
}

impl EventsVersion {
    /// Every version, oldest first.
    pub const ALL: [EventsVersion; 8] = [
        EventsVersion::V2017_03_01,
        EventsVersion::V2017_08_01,
        EventsVersion::V2017_11_01,
        EventsVersion::V2019_01_01,
        EventsVersion::V2019_04_01,
        EventsVersion::V2019_08_01,
        EventsVersion::V2020_07_01,
        EventsVersion::V2024_07_09,
    ];

    /// The version that shows all events; the incarnation counts changes of its document.
    pub const NEWEST: EventsVersion = EventsVersion::V2024_07_09;

    /// The newest version in Microsoft's documentation.
    pub const DOCUMENTED: EventsVersion = EventsVersion::V2020_07_01;

    /// The version of exactly this date, if there is one. `latest` is not a version.
    pub fn parse(text: &str) -> Option<EventsVersion> {
        EventsVersion::ALL.into_iter().find(|version| version.as_str() == text)
    }

    /// Whether the text is a valid calendar date `YYYY-MM-DD`, as api-versions of all services are. Other text
    /// (`2024-13-45`) can never become a version, so it is an error of the request.
    pub fn is_well_formed(text: &str) -> bool {
        let number = |range: std::ops::Range<usize>| {
            let digits = text.get(range).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
            digits.parse::<i16>().ok()
        };
        let day = |number: i16| i8::try_from(number).ok();
        let dashes = text.len() == 10 && text.as_bytes()[4] == b'-' && text.as_bytes()[7] == b'-';
        let date = || Date::new(number(0..4)?, day(number(5..7)?)?, day(number(8..10)?)?).ok();
        dashes && date().is_some()
    }

    /// The date, as in the query.
    pub const fn as_str(self) -> &'static str {
        match self {
            EventsVersion::V2017_03_01 => "2017-03-01",
            EventsVersion::V2017_08_01 => "2017-08-01",
            EventsVersion::V2017_11_01 => "2017-11-01",
            EventsVersion::V2019_01_01 => "2019-01-01",
            EventsVersion::V2019_04_01 => "2019-04-01",
            EventsVersion::V2019_08_01 => "2019-08-01",
            EventsVersion::V2020_07_01 => "2020-07-01",
            EventsVersion::V2024_07_09 => "2024-07-09",
        }
    }

    /// Index below `ALL.len()`, for arrays with one entry per version.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether the version's documents contain events of this type.
    pub fn knows(self, event_type: EventType) -> bool {
        match event_type {
            EventType::Freeze | EventType::Reboot | EventType::Redeploy => true,
            EventType::Preempt => self >= EventsVersion::V2017_11_01,
            EventType::Terminate => self >= EventsVersion::V2019_01_01,
            EventType::SpotRebalanceRecommendation => self >= EventsVersion::V2024_07_09,
        }
    }

    /// Whether events carry Description.
    pub fn has_description(self) -> bool {
        self >= EventsVersion::V2019_04_01
    }

    /// Whether events carry EventSource.
    pub fn has_source(self) -> bool {
        self >= EventsVersion::V2019_08_01
    }

    /// Whether events carry DurationInSeconds.
    pub fn has_duration(self) -> bool {
        self >= EventsVersion::V2020_07_01
    }

    /// Whether names of VMs outside cloud services begin with `_`.
    pub fn has_underscore_names(self) -> bool {
        self == EventsVersion::V2017_03_01
    }

    /// Whether NotBefore is ISO 8601 (`2016-09-19T18:29:47Z`) by default.
    pub fn has_iso_times(self) -> bool {
        self == EventsVersion::V2017_03_01
    }

    /// Whether a POST without the `Metadata` header is accepted by default.
    pub fn allows_post_without_metadata(self) -> bool {
        self == EventsVersion::V2017_03_01
    }
}

impl fmt::Display for EventsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_their_dates_and_found_by_them_alone() {
        for (index, version) in EventsVersion::ALL.into_iter().enumerate() {
            assert_eq!(version.index(), index);
            assert_eq!(EventsVersion::parse(version.as_str()), Some(version));
        }
        assert!(EventsVersion::ALL.is_sorted_by(|a, b| a < b && a.as_str() < b.as_str()));
        assert_eq!(EventsVersion::ALL.last(), Some(&EventsVersion::NEWEST));
        for unknown in ["", "latest", "2020-07-15", "2020-7-1", " 2020-07-01", "2020-07-01 "] {
            assert_eq!(EventsVersion::parse(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn well_formed_versions_are_days_of_the_calendar() {
        for version in ["2024-07-10", "2021-02-01", "2024-02-29", "0001-01-01", "9999-12-31", "2020-07-01"] {
            assert!(EventsVersion::is_well_formed(version), "{version}");
        }
        let malformed = [
            "",
            "latest",
            "1",
            "2024-13-45",
            "2023-02-29",
            "2024-00-01",
            "2024-7-9",
            "20240709",
            "2024-07-091",
            "2024/07/09",
            "09-07-2024",
            " 2024-07-0",
            "+024-07-09",
            "2024-+7-09",
            "2024-07-09-preview",
            "202\u{e9}-07-09",
            "\u{661}\u{662}\u{663}\u{664}-7",
        ];
        for version in malformed {
            assert!(!EventsVersion::is_well_formed(version), "{version}");
        }
    }
}
