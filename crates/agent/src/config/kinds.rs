//! Value kinds of the agent's settings.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use notbefore_client::document::EventsVersion;
use notbefore_client::endpoint::Endpoint;
use notbefore_settings::kind::{Form, Integer, Kind, OneOf, OrNone, RawValue, Span, Text};
use toml::Value as Toml;

use super::NotifyOn;
use crate::rules::{Approve, OnFailure, OnInterrupt, ResourceMatch, Restore};

/// Not empty, and no NUL byte, which an argument or variable cannot contain.
pub const TEXT: Text<String> = Text::private("text that is not empty", not_empty);
/// Name of a rule or step in logs and metric labels.
pub const NAME: Text<String> = Text::private("one line of 1 to 100 characters", |text| {
    not_empty(text).filter(|name| name.chars().count() <= 100 && !name.contains(char::is_control))
});
/// A systemd unit; a leading dash would be an option of `systemctl`.
pub const UNIT: Text<String> = Text::new("the name of a unit, as \"nginx.service\"", |text| {
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    not_empty(text).filter(|unit| !unit.starts_with('-') && !unit.contains(is_odd))
});
/// One line that is not secret.
pub const WORD: Text<String> = Text::new("a word, as \"Reboot\"", not_empty);
/// Text that may be empty: a request body, the content of a file.
pub const CONTENT: Text<String> = Text::private("text", |text| Some(text.to_owned()));
/// An absolute path, independent of the agent's working directory.
pub const FULL_PATH: Text<PathBuf> = Text::new("an absolute path, as \"/run/drained\"", |text| {
    not_empty(text).map(PathBuf::from).filter(|path| path.is_absolute())
});
pub const URL: Text<String> = Text::private("a URL, as \"https://hooks.example/drain\"", |text| {
    let uri: hyper::Uri = text.parse().ok()?;
    let known = matches!(uri.scheme_str(), Some("http" | "https"));
    (known && uri.host().is_some_and(|host| !host.is_empty())).then(|| text.to_owned())
});
/// HTTP method.
pub const METHOD: Text<String> = Text::new("GET, HEAD, POST, PUT, PATCH or DELETE", |text| {
    let upper = text.to_ascii_uppercase();
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"].contains(&upper.as_str()).then_some(upper)
});
/// Newest api-version to request.
pub const API_VERSION: Text<EventsVersion> =
    Text::new("an api-version of scheduled events, as \"2020-07-01\"", EventsVersion::parse);
/// Listen address, or none.
pub const LISTEN: OrNone<Text<SocketAddr>> =
    OrNone(Text::parsed("an address with its port, as \"127.0.0.1:9256\""));
pub const SPAN: Span = Span { min: 0, max: u64::MAX };
/// A positive duration: zero would mean a busy loop or no attempt at all.
pub const SOME_TIME: Span = Span { min: 1, max: u64::MAX };
/// Number of retries; more than a hundred is a loop.
pub const RETRIES: Integer<u32> = Integer::between(0, 100);
pub const RESOURCES: OneOf<ResourceMatch> =
    OneOf(&[("mine", ResourceMatch::Mine), ("others", ResourceMatch::Others), ("any", ResourceMatch::Any)]);
pub const APPROVE: OneOf<Approve> =
    OneOf(&[("when-done", Approve::WhenDone), ("leader", Approve::Leader), ("never", Approve::Never)]);
pub const RESTORE: OneOf<Restore> = OneOf(&[("gone", Restore::Gone), ("booted", Restore::Booted)]);
pub const ON_FAILURE: OneOf<OnFailure> =
    OneOf(&[("withhold", OnFailure::Withhold), ("go-on", OnFailure::GoOn)]);
pub const ON_INTERRUPT: OneOf<OnInterrupt> =
    OneOf(&[("rerun", OnInterrupt::Rerun), ("skip", OnInterrupt::Skip)]);
pub const NOTIFY_ON: OneOf<NotifyOn> = OneOf(&[
    ("appeared", NotifyOn::Appeared),
    ("unmatched", NotifyOn::Unmatched),
    ("failed", NotifyOn::Failed),
    ("withheld", NotifyOn::Withheld),
    ("stranded", NotifyOn::Stranded),
    ("approved", NotifyOn::Approved),
    ("started", NotifyOn::Started),
    ("cancelled", NotifyOn::Cancelled),
    ("ended", NotifyOn::Ended),
    ("restored", NotifyOn::Restored),
]);

fn not_empty(text: &str) -> Option<String> {
    (!text.is_empty() && !text.contains('\0')).then(|| text.to_owned())
}

/// The platform's URL; the parser explains what is wrong with it.
pub struct EndpointUrl;

impl Kind for EndpointUrl {
    type Value = Endpoint;

    fn expected(&self) -> String {
        "the platform's URL, as \"http://169.254.169.254\"".to_owned()
    }

    fn read(&self, raw: &RawValue) -> Option<Endpoint> {
        raw.text(Form::Text)?.parse().ok()
    }

    fn rejection(&self, raw: &RawValue) -> Option<String> {
        raw.text(Form::Text)?.parse::<Endpoint>().err().map(|why| why.to_string())
    }
}

/// A program and its arguments. The program must not be empty, and a path must be absolute, because hooks start in
/// `/`. Arguments may be empty.
pub struct Argv;

impl Argv {
    fn words(raw: &RawValue) -> Option<Vec<String>> {
        let RawValue::Toml(Toml::Array(words)) = raw else { return None };
        let text = |word: &Toml| word.as_str().filter(|word| !word.contains('\0')).map(str::to_owned);
        words.iter().map(text).collect()
    }

    /// Whether a program is a relative path.
    fn is_elsewhere(program: &str) -> bool {
        Path::new(program).components().count() > 1 && !Path::new(program).has_root()
    }
}

impl Kind for Argv {
    type Value = Vec<String>;

    fn expected(&self) -> String {
        "a program and its arguments, as [\"/usr/local/bin/drain\", \"--now\"]".to_owned()
    }

    fn read(&self, raw: &RawValue) -> Option<Vec<String>> {
        Self::words(raw).filter(|words| {
            words.first().is_some_and(|program| !program.is_empty() && !Self::is_elsewhere(program))
        })
    }

    fn is_private(&self) -> bool {
        true
    }

    fn rejection(&self, raw: &RawValue) -> Option<String> {
        let words = Self::words(raw)?;
        let program = words.first().filter(|program| Self::is_elsewhere(program))?;
        let cure = "write its absolute path";
        Some(format!("hooks start in /, so {program:?} is not found; {cure}"))
    }
}

/// HTTP header names and values.
pub struct Headers;

impl Kind for Headers {
    type Value = BTreeMap<String, String>;

    fn expected(&self) -> String {
        "headers, as { Authorization = \"Bearer …\" }".to_owned()
    }

    fn read(&self, raw: &RawValue) -> Option<Self::Value> {
        let RawValue::Toml(Toml::Table(headers)) = raw else { return None };
        headers.iter().map(|(name, value)| header(name, value)).collect()
    }

    fn is_private(&self) -> bool {
        true
    }

    fn rejection(&self, raw: &RawValue) -> Option<String> {
        let RawValue::Toml(Toml::Table(headers)) = raw else { return None };
        let (name, _) = headers.iter().find(|(name, value)| header(name, value).is_none())?;
        Some(format!("expected {}, but {name:?} is none", self.expected()))
    }
}

/// A header, if name and value are valid.
fn header(name: &str, value: &Toml) -> Option<(String, String)> {
    let value = value.as_str()?;
    hyper::header::HeaderName::try_from(name).ok()?;
    hyper::header::HeaderValue::try_from(value).ok()?;
    Some((name.to_owned(), value.to_owned()))
}
