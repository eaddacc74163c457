//! The api-versions of instance metadata.
//!
//! The list is the published list of the whole metadata service. Its first entry is older than instance metadata:
//! `/metadata/versions` lists it and `/metadata/instance` refuses it.

/// An api-version of `/metadata/instance`. Older versions sort first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceVersion(&'static str);

/// In the published list, but older than instance metadata.
const BEFORE_INSTANCE: &str = "2017-03-01";

/// A version for the field tables, which say since when a field exists.
pub(super) const fn since(date: &'static str) -> InstanceVersion {
    InstanceVersion(date)
}

impl InstanceVersion {
    /// Every version, oldest first.
    pub const ALL: [InstanceVersion; 34] = [
        InstanceVersion("2017-04-02"),
        InstanceVersion("2017-08-01"),
        InstanceVersion("2017-10-01"),
        InstanceVersion("2017-12-01"),
        InstanceVersion("2018-02-01"),
        InstanceVersion("2018-04-02"),
        InstanceVersion("2018-10-01"),
        InstanceVersion("2019-02-01"),
        InstanceVersion("2019-03-11"),
        InstanceVersion("2019-04-30"),
        InstanceVersion("2019-06-01"),
        InstanceVersion("2019-06-04"),
        InstanceVersion("2019-08-01"),
        InstanceVersion("2019-08-15"),
        InstanceVersion("2019-11-01"),
        InstanceVersion("2020-06-01"),
        InstanceVersion("2020-07-15"),
        InstanceVersion("2020-09-01"),
        InstanceVersion("2020-10-01"),
        InstanceVersion("2020-12-01"),
        InstanceVersion("2021-01-01"),
        InstanceVersion("2021-02-01"),
        InstanceVersion("2021-03-01"),
        InstanceVersion("2021-05-01"),
        InstanceVersion("2021-08-01"),
        InstanceVersion("2021-10-01"),
        InstanceVersion("2021-11-01"),
        InstanceVersion("2021-11-15"),
        InstanceVersion("2021-12-13"),
        InstanceVersion("2023-07-01"),
        InstanceVersion("2023-11-15"),
        InstanceVersion("2024-03-15"),
        InstanceVersion("2024-07-17"),
        InstanceVersion("2025-04-07"),
    ];

    /// The version of exactly this date, if there is one.
    pub fn parse(text: &str) -> Option<InstanceVersion> {
        InstanceVersion::ALL.into_iter().find(|version| version.0 == text)
    }

    /// The date, as in the query.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

/// The body of `/metadata/versions`.
pub fn versions_body() -> String {
    let dates: Vec<&str> =
        [BEFORE_INSTANCE].into_iter().chain(InstanceVersion::ALL.map(|one| one.0)).collect();
    format!(r#"{{"apiVersions":["{}"]}}"#, dates.join(r#"",""#))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_sorted_and_parsed_by_exact_date() {
        assert!(InstanceVersion::ALL.is_sorted_by(|a, b| a < b));
        for version in InstanceVersion::ALL {
            assert_eq!(InstanceVersion::parse(version.as_str()), Some(version));
        }
        assert_eq!(InstanceVersion::parse(BEFORE_INSTANCE), None);
        assert_eq!(InstanceVersion::parse("latest"), None);
    }

    #[test]
    fn versions_body_is_json_oldest_first() {
        let body = versions_body();
        assert!(body.starts_with(r#"{"apiVersions":["2017-03-01","2017-04-02","#), "{body}");
        let value: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(value["apiVersions"].as_array().unwrap().len(), InstanceVersion::ALL.len() + 1);
    }
}
