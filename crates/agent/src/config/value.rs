//! Types that a key can have: how each is read from the file, and from a flag or a variable.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use notbefore_client::document::EventsVersion;
use notbefore_client::endpoint::Endpoint;
use toml::Value as Toml;

use super::Happening;
use crate::rules::{Approve, OnFailure, OnInterrupt, Restore, Whose};
use notbefore_settings::span;

/// What a key can hold.
pub trait Value: Sized {
    /// What a person should write, with an example.
    const EXPECTED: &'static str;
    /// Whether what was written may be a secret, or hold one: messages then name what it is, and do not repeat it.
    const PRIVATE: bool = false;

    /// Where in a private value the mistake is, if that can be said without giving it away.
    fn culprit(_: &Toml) -> Option<String> {
        None
    }

    /// Reads what the file says.
    fn from_toml(value: &Toml) -> Option<Self> {
        value.as_str().and_then(Self::from_text)
    }

    /// Reads a flag or a variable.
    fn from_text(text: &str) -> Option<Self>;

    /// What is wrong with a text, and the cure, where the type can say more than what it expects.
    fn why_not(_: &str) -> Option<String> {
        None
    }
}

/// A value as somebody wrote it.
#[derive(Clone, Copy, Debug)]
pub enum Said<'a> {
    /// In the file.
    Toml(&'a Toml),
    /// In a flag or a variable.
    Text(&'a str),
}

impl Said<'_> {
    /// It, as what it should be.
    pub fn read<T: Value>(self) -> Result<T, String> {
        match self {
            Said::Toml(value) => {
                let private = || T::culprit(value).unwrap_or_else(|| sort(value).to_owned());
                let shown = || if T::PRIVATE { private() } else { value.to_string() };
                let expected = || format!("expected {}, not {}", T::EXPECTED, shown());
                let why_not = || value.as_str().and_then(T::why_not);
                T::from_toml(value).ok_or_else(|| why_not().unwrap_or_else(expected))
            }
            Said::Text(text) => {
                let expected = || format!("expected {}, not {text:?}", T::EXPECTED);
                T::from_text(text.trim()).ok_or_else(|| T::why_not(text).unwrap_or_else(expected))
            }
        }
    }
}

/// What sort of value was written.
fn sort(value: &Toml) -> &'static str {
    match value {
        Toml::String(text) if text.is_empty() => "empty text",
        Toml::String(_) => "this text",
        Toml::Integer(_) | Toml::Float(_) => "a number",
        Toml::Boolean(_) => "true or false",
        Toml::Datetime(_) => "a time",
        Toml::Array(_) => "this list",
        Toml::Table(_) => "this table",
    }
}

/// Text that is not empty and has no zero byte, which no program could be given.
impl Value for String {
    const EXPECTED: &'static str = "text that is not empty";
    const PRIVATE: bool = true;

    fn from_text(text: &str) -> Option<Self> {
        (!text.is_empty() && !text.contains('\0')).then(|| text.to_owned())
    }
}

/// Text that may be empty: a body, the content of a file.
#[derive(Debug)]
pub struct Content(pub String);

impl Value for Content {
    const EXPECTED: &'static str = "text";
    const PRIVATE: bool = true;

    fn from_text(text: &str) -> Option<Self> {
        Some(Content(text.to_owned()))
    }
}

impl Value for PathBuf {
    const EXPECTED: &'static str = "the name of a file or directory";

    fn from_text(text: &str) -> Option<Self> {
        String::from_text(text).map(PathBuf::from)
    }
}

/// A name that does not depend on where the agent was started.
#[derive(Debug)]
pub struct FullPath(pub PathBuf);

impl Value for FullPath {
    const EXPECTED: &'static str = "the name of a file from the root on, as \"/run/drained\"";

    fn from_text(text: &str) -> Option<Self> {
        PathBuf::from_text(text).filter(|path| path.is_absolute()).map(FullPath)
    }
}

impl Value for bool {
    const EXPECTED: &'static str = "true or false";

    fn from_toml(value: &Toml) -> Option<Self> {
        value.as_bool()
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for Duration {
    const EXPECTED: &'static str = "a span, as \"30s\", \"20m\" or \"1h30m\"";

    fn from_text(text: &str) -> Option<Self> {
        span::parse(text).ok()
    }
}

/// How often something is tried again: more than a hundred times is a loop.
#[derive(Debug)]
pub struct Retries(pub u32);

impl Value for Retries {
    const EXPECTED: &'static str = "a whole number from 0 to 100";

    fn from_toml(value: &Toml) -> Option<Self> {
        value.as_integer().and_then(|number| Self::from_text(&number.to_string()))
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number| *number <= 100).map(Retries)
    }
}

/// Where to listen, or nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen(pub Option<SocketAddr>);

impl Value for Listen {
    const EXPECTED: &'static str = "an address with its port, as \"127.0.0.1:9256\", or \"none\"";

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Listen(None)),
            text => text.parse().ok().map(|address| Listen(Some(address))),
        }
    }
}

impl Value for EventsVersion {
    const EXPECTED: &'static str = "an api-version of scheduled events, as \"2020-07-01\"";

    fn from_text(text: &str) -> Option<Self> {
        EventsVersion::parse(text)
    }
}

impl Value for Endpoint {
    const EXPECTED: &'static str = "where the platform answers, as \"http://169.254.169.254\"";

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn why_not(text: &str) -> Option<String> {
        text.parse::<Endpoint>().err().map(|why| why.to_string())
    }
}

/// A plain `http` or `https` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url(pub String);

impl Value for Url {
    const EXPECTED: &'static str = "a URL, as \"https://hooks.example/drain\"";
    const PRIVATE: bool = true;

    fn from_text(text: &str) -> Option<Self> {
        let uri: ureq::http::Uri = text.parse().ok()?;
        let known = matches!(uri.scheme_str(), Some("http" | "https"));
        (known && uri.host().is_some_and(|host| !host.is_empty())).then(|| Url(text.to_owned()))
    }
}

/// The verb of a request.
#[derive(Debug)]
pub struct Method(pub String);

impl Value for Method {
    const EXPECTED: &'static str = "GET, HEAD, POST, PUT, PATCH or DELETE";

    fn from_text(text: &str) -> Option<Self> {
        let upper = text.to_ascii_uppercase();
        let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"].contains(&upper.as_str());
        known.then_some(Method(upper))
    }
}

/// Names and values that can stand in a request's head.
#[derive(Debug)]
pub struct Headers(pub BTreeMap<String, String>);

impl Value for Headers {
    const EXPECTED: &'static str = "headers, as { Authorization = \"Bearer …\" }";
    const PRIVATE: bool = true;

    fn culprit(value: &Toml) -> Option<String> {
        let (name, _) = value.as_table()?.iter().find(|(name, value)| header(name, value).is_none())?;
        Some(format!("what {name:?} is"))
    }

    fn from_toml(value: &Toml) -> Option<Self> {
        let headers = value.as_table()?.iter().map(|(name, value)| header(name, value));
        headers.collect::<Option<_>>().map(Headers)
    }

    fn from_text(_: &str) -> Option<Self> {
        None
    }
}

/// A header, if it can stand in a request.
fn header(name: &str, value: &Toml) -> Option<(String, String)> {
    let value = value.as_str()?;
    ureq::http::HeaderName::try_from(name).ok()?;
    ureq::http::HeaderValue::try_from(value).ok()?;
    Some((name.to_owned(), value.to_owned()))
}

/// Several of something, written as a list.
#[derive(Debug)]
pub struct List<T>(pub Vec<T>);

impl Value for List<String> {
    const EXPECTED: &'static str = "a list of words, as [\"Reboot\", \"Redeploy\"]";

    fn from_toml(value: &Toml) -> Option<Self> {
        value.as_array()?.iter().map(String::from_toml).collect::<Option<_>>().map(List)
    }

    fn from_text(_: &str) -> Option<Self> {
        None
    }
}

impl Value for List<Happening> {
    const EXPECTED: &'static str = "a list of \"appeared\", \"failed\", \"withheld\", \"approved\", \"started\", \"cancelled\", \"ended\" and \"restored\"";

    fn from_toml(value: &Toml) -> Option<Self> {
        value.as_array()?.iter().map(Happening::from_toml).collect::<Option<_>>().map(List)
    }

    fn from_text(_: &str) -> Option<Self> {
        None
    }
}

/// A program and its arguments. Arguments may be empty, the program may not.
#[derive(Debug)]
pub struct Argv(pub Vec<String>);

impl Value for Argv {
    const EXPECTED: &'static str = "a program and its arguments, as [\"/usr/local/bin/drain\", \"--now\"]";
    const PRIVATE: bool = true;

    fn from_toml(value: &Toml) -> Option<Self> {
        let text = |word: &Toml| word.as_str().filter(|word| !word.contains('\0')).map(str::to_owned);
        let words = value.as_array()?.iter().map(text).collect::<Option<Vec<_>>>()?;
        words.first().is_some_and(|program| !program.is_empty()).then_some(Argv(words))
    }

    fn from_text(_: &str) -> Option<Self> {
        None
    }
}

/// Values that are one of a few words.
macro_rules! words {
    ($type:ty, $expected:literal { $($word:literal => $value:path),+ $(,)? }) => {
        impl Value for $type {
            const EXPECTED: &'static str = $expected;

            fn from_text(text: &str) -> Option<Self> {
                match text {
                    $($word => Some($value),)+
                    _ => None,
                }
            }
        }
    };
}

words!(Whose, "\"mine\", \"others\" or \"any\"" {
    "mine" => Whose::Mine,
    "others" => Whose::Others,
    "any" => Whose::Any,
});
words!(Approve, "\"when-done\", \"leader\" or \"never\"" {
    "when-done" => Approve::WhenDone,
    "leader" => Approve::Leader,
    "never" => Approve::Never,
});
words!(Restore, "\"gone\" or \"booted\"" { "gone" => Restore::Gone, "booted" => Restore::Booted });
words!(OnFailure, "\"withhold\" or \"go-on\"" {
    "withhold" => OnFailure::Withhold,
    "go-on" => OnFailure::GoOn,
});
words!(OnInterrupt, "\"rerun\" or \"skip\"" { "rerun" => OnInterrupt::Rerun, "skip" => OnInterrupt::Skip });
words!(Happening, "one of the words of notify.on" {
    "appeared" => Happening::Appeared,
    "failed" => Happening::Failed,
    "withheld" => Happening::Withheld,
    "approved" => Happening::Approved,
    "started" => Happening::Started,
    "cancelled" => Happening::Cancelled,
    "ended" => Happening::Ended,
    "restored" => Happening::Restored,
});
