//! Kinds of values that only the agent has.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use notbefore_client::document::EventsVersion;
use notbefore_client::endpoint::Endpoint;
use notbefore_settings::kind::{Form, Integer, Kind, OneOf, OrNone, RawValue, Span, Text};
use toml::Value as Toml;

use super::NotifyOn;
use crate::rules::{Approve, OnFailure, OnInterrupt, ResourceMatch, Restore};

/// Text that is not empty and has no zero byte, which no program could be given.
pub const TEXT: Text<String> = Text::private("text that is not empty", not_empty);
/// What a rule or step is called in logs and in metrics' labels.
pub const NAME: Text<String> = Text::private("one line of 1 to 100 characters", |text| {
    not_empty(text).filter(|name| name.chars().count() <= 100 && !name.contains(char::is_control))
});
/// A systemd unit: `systemctl` takes what begins with a dash for an option.
pub const UNIT: Text<String> = Text::new("the name of a unit, as \"nginx.service\"", |text| {
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    not_empty(text).filter(|unit| !unit.starts_with('-') && !unit.contains(is_odd))
});
/// Text of one line, where nobody would write a secret.
pub const WORD: Text<String> = Text::new("a word, as \"Reboot\"", not_empty);
/// Text that may be empty: a body, the content of a file.
pub const CONTENT: Text<String> = Text::private("text", |text| Some(text.to_owned()));
/// A name that does not depend on where the agent was started.
pub const FULL_PATH: Text<PathBuf> =
    Text::new("the name of a file from the root on, as \"/run/drained\"", |text| {
        not_empty(text).map(PathBuf::from).filter(|path| path.is_absolute())
    });
/// A plain `http` or `https` URL.
pub const URL: Text<String> = Text::private("a URL, as \"https://hooks.example/drain\"", |text| {
    let uri: ureq::http::Uri = text.parse().ok()?;
    let known = matches!(uri.scheme_str(), Some("http" | "https"));
    (known && uri.host().is_some_and(|host| !host.is_empty())).then(|| text.to_owned())
});
/// The verb of a request.
pub const METHOD: Text<String> = Text::new("GET, HEAD, POST, PUT, PATCH or DELETE", |text| {
    let upper = text.to_ascii_uppercase();
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"].contains(&upper.as_str()).then_some(upper)
});
/// The newest version to ask for.
pub const API_VERSION: Text<EventsVersion> =
    Text::new("an api-version of scheduled events, as \"2020-07-01\"", EventsVersion::parse);
/// Where to listen, or nowhere.
pub const LISTEN: OrNone<Text<SocketAddr>> =
    OrNone(Text::parsed("an address with its port, as \"127.0.0.1:9256\""));
/// How long something takes.
pub const SPAN: Span = Span { min: 0, max: u64::MAX };
/// The same, where none at all would do something as fast as it can, or never.
pub const SOME_TIME: Span = Span { min: 1, max: u64::MAX };
/// How often something is tried again: more than a hundred times is a loop.
pub const RETRIES: Integer<u32> = Integer::between(0, 100);
/// VMs an event is for.
pub const RESOURCES: OneOf<ResourceMatch> =
    OneOf(&[("mine", ResourceMatch::Mine), ("others", ResourceMatch::Others), ("any", ResourceMatch::Any)]);
/// Who approves.
pub const APPROVE: OneOf<Approve> =
    OneOf(&[("when-done", Approve::WhenDone), ("leader", Approve::Leader), ("never", Approve::Never)]);
/// When the VM is put back.
pub const RESTORE: OneOf<Restore> = OneOf(&[("gone", Restore::Gone), ("booted", Restore::Booted)]);
/// What a failed step means.
pub const ON_FAILURE: OneOf<OnFailure> =
    OneOf(&[("withhold", OnFailure::Withhold), ("go-on", OnFailure::GoOn)]);
/// What an interrupted step means.
pub const ON_INTERRUPT: OneOf<OnInterrupt> =
    OneOf(&[("rerun", OnInterrupt::Rerun), ("skip", OnInterrupt::Skip)]);
/// What an administrator is told of.
pub const NOTIFY_ON: OneOf<NotifyOn> = OneOf(&[
    ("appeared", NotifyOn::Appeared),
    ("failed", NotifyOn::Failed),
    ("withheld", NotifyOn::Withheld),
    ("approved", NotifyOn::Approved),
    ("started", NotifyOn::Started),
    ("cancelled", NotifyOn::Cancelled),
    ("ended", NotifyOn::Ended),
    ("restored", NotifyOn::Restored),
]);

fn not_empty(text: &str) -> Option<String> {
    (!text.is_empty() && !text.contains('\0')).then(|| text.to_owned())
}

/// The platform's URL, which says itself what is wrong with it.
pub struct EndpointUrl;

impl Kind for EndpointUrl {
    type Value = Endpoint;

    fn expected(&self) -> String {
        "where the platform answers, as \"http://169.254.169.254\"".to_owned()
    }

    fn read(&self, raw: &RawValue) -> Option<Endpoint> {
        raw.text(Form::Text)?.parse().ok()
    }

    fn rejection(&self, raw: &RawValue) -> Option<String> {
        raw.text(Form::Text)?.parse::<Endpoint>().err().map(|why| why.to_string())
    }
}

/// A program and its arguments. Arguments may be empty, the program may not. One that is named by where it is, is named
/// from the root on: hooks start there, and not where somebody has tried them.
pub struct Argv;

impl Argv {
    fn words(raw: &RawValue) -> Option<Vec<String>> {
        let RawValue::Toml(Toml::Array(words)) = raw else { return None };
        let text = |word: &Toml| word.as_str().filter(|word| !word.contains('\0')).map(str::to_owned);
        words.iter().map(text).collect()
    }

    /// Whether a program is not found from the root.
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
        let cure = "write its name from the root on";
        Some(format!("hooks start in /, so {program:?} is not found; {cure}"))
    }
}

/// Names and values that can stand in a request's head.
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
        Some(format!("expected {}, not what {name:?} is", self.expected()))
    }
}

/// A header, if it can stand in a request.
fn header(name: &str, value: &Toml) -> Option<(String, String)> {
    let value = value.as_str()?;
    ureq::http::HeaderName::try_from(name).ok()?;
    ureq::http::HeaderValue::try_from(value).ok()?;
    Some((name.to_owned(), value.to_owned()))
}
