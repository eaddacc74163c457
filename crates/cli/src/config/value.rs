//! Types that a setting can have: how each is read from the file, from the environment and from a flag, and
//! how it is written.
//!
//! A new type implements [`Scalar`]: one parser from text, whatever the source, and the form that the file
//! writes it in. Lists and optional values of it come by themselves.

use std::fmt::Display;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use notbefore_core::DriverKind;
use notbefore_service::guest::settings::Mode;
use notbefore_service::operator::door::HostName;
use notbefore_service::{AddressPrefix, GuestListener, GuestVm, ProxyAddress};
use toml::Value as Toml;
use tracing_subscriber::EnvFilter;

use notbefore_settings::span::show as show_span;

use crate::time::parse_duration;

/// What is written where an optional setting is not set. TOML has no word for it, and a flag must be able to
/// take back what the file says.
pub const NONE: &str = "none";

/// How the file writes a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In quotes.
    Text,
    /// Digits.
    Integer,
    /// Digits, with or without a point.
    Number,
    /// `true` or `false`.
    Switch,
}

/// A single value.
pub trait Scalar: Sized {
    /// How the file writes it.
    const FORM: Form;
    /// What a reader should write, with an example.
    fn expected() -> String;
    /// Reads it; the error says what is wrong if [`Scalar::expected`] would not.
    fn parse(text: &str) -> Option<Self>;
    /// Writes it so that [`Scalar::parse`] gives it back.
    fn show(&self) -> String;
}

/// What a setting holds: a single value, a list of them, or one that may be missing.
pub trait Value: Sized {
    /// Whether a flag may be repeated.
    const MANY: bool = false;
    /// What a reader should write.
    fn expected() -> String;
    /// Reads an environment variable or a flag.
    fn from_text(text: &str) -> Result<Self, String>;
    /// Reads what a file says.
    fn from_toml(value: &Toml) -> Result<Self, String>;
    /// Writes it as a file would.
    fn to_toml(&self) -> Toml;
}

impl<T: Scalar> Value for T {
    fn expected() -> String {
        <T as Scalar>::expected()
    }

    fn from_text(text: &str) -> Result<Self, String> {
        let text = text.trim();
        T::parse(text).ok_or_else(|| format!("expected {}, not {text:?}", <T as Scalar>::expected()))
    }

    fn from_toml(value: &Toml) -> Result<Self, String> {
        let text = match (T::FORM, value) {
            (Form::Text, Toml::String(text)) => Some(text.clone()),
            (Form::Integer | Form::Number, Toml::Integer(number)) => Some(number.to_string()),
            (Form::Number, Toml::Float(number)) => Some(number.to_string()),
            (Form::Switch, Toml::Boolean(on)) => Some(on.to_string()),
            (Form::Text | Form::Integer | Form::Number | Form::Switch, _) => None,
        };
        let parsed = text.as_deref().and_then(T::parse);
        parsed.ok_or_else(|| format!("expected {}, not {value}", <T as Scalar>::expected()))
    }

    fn to_toml(&self) -> Toml {
        let text = self.show();
        let written = match T::FORM {
            Form::Text => None,
            Form::Integer => text.parse().ok().map(Toml::Integer),
            Form::Number => text.parse().ok().map(Toml::Float),
            Form::Switch => text.parse().ok().map(Toml::Boolean),
        };
        written.unwrap_or(Toml::String(text))
    }
}

impl<T: Scalar> Value for Vec<T> {
    const MANY: bool = true;

    fn expected() -> String {
        format!("a list, each {}", <T as Scalar>::expected())
    }

    fn from_text(text: &str) -> Result<Self, String> {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(T::from_text).collect()
    }

    fn from_toml(value: &Toml) -> Result<Self, String> {
        let list = value.as_array().ok_or_else(|| format!("expected {}, not {value}", Self::expected()))?;
        list.iter().map(T::from_toml).collect()
    }

    fn to_toml(&self) -> Toml {
        Toml::Array(self.iter().map(Value::to_toml).collect())
    }
}

impl<T: Scalar> Value for Option<T> {
    fn expected() -> String {
        format!("{}, or {NONE:?}", <T as Scalar>::expected())
    }

    fn from_text(text: &str) -> Result<Self, String> {
        if text.trim() == NONE {
            return Ok(None);
        }
        T::parse(text.trim()).map(Some).ok_or_else(|| format!("expected {}, not {text:?}", Self::expected()))
    }

    fn from_toml(value: &Toml) -> Result<Self, String> {
        if value.as_str() == Some(NONE) {
            return Ok(None);
        }
        T::from_toml(value).map(Some).map_err(|_| format!("expected {}, not {value}", Self::expected()))
    }

    fn to_toml(&self) -> Toml {
        self.as_ref().map_or_else(|| Toml::String(NONE.to_owned()), Value::to_toml)
    }
}

/// A span of time from `MIN` to `MAX` seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span<const MIN: u64, const MAX: u64>(pub Duration);

impl<const MIN: u64, const MAX: u64> Scalar for Span<MIN, MAX> {
    const FORM: Form = Form::Text;

    fn expected() -> String {
        format!("a span from {} to {}, as \"20m\"", show_span(MIN), show_span(MAX))
    }

    fn parse(text: &str) -> Option<Self> {
        parse_duration(text).ok().filter(|span| (MIN..=MAX).contains(&span.as_secs())).map(Self)
    }

    fn show(&self) -> String {
        show_span(self.0.as_secs())
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count<const MIN: usize, const MAX: usize>(pub usize);

impl<const MIN: usize, const MAX: usize> Scalar for Count<MIN, MAX> {
    const FORM: Form = Form::Integer;

    fn expected() -> String {
        format!("a whole number from {MIN} to {MAX}")
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number| (MIN..=MAX).contains(number)).map(Self)
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// What every notice is multiplied by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor(pub f64);

impl Scalar for Factor {
    const FORM: Form = Form::Number;

    fn expected() -> String {
        "a number from 0 to 1000, as 0.01".to_owned()
    }

    fn parse(text: &str) -> Option<Self> {
        let factor = text.parse::<f64>().ok()?;
        (0.0..=1_000.0).contains(&factor).then_some(Self(factor))
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// Which messages are logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter(pub String);

impl Scalar for LogFilter {
    const FORM: Form = Form::Text;

    fn expected() -> String {
        "a level (error, warn, info, debug, trace), or levels by module, as \"info,notbefore_service=debug\""
            .to_owned()
    }

    fn parse(text: &str) -> Option<Self> {
        EnvFilter::try_new(text).ok().map(|_| Self(text.to_owned()))
    }

    fn show(&self) -> String {
        self.0.clone()
    }
}

/// Values that are one of a few words.
macro_rules! words {
    ($type:ty { $($word:literal => $value:path),+ $(,)? }) => {
        impl Scalar for $type {
            const FORM: Form = Form::Text;

            fn expected() -> String {
                [$(concat!("\"", $word, "\"")),+].join(" or ")
            }

            fn parse(text: &str) -> Option<Self> {
                match text {
                    $($word => Some($value),)+
                    _ => None,
                }
            }

            fn show(&self) -> String {
                match self { $($value => $word.to_owned()),+ }
            }
        }
    };
}

words!(DriverKind {
    "simulated" => DriverKind::Simulated,
    "manual" => DriverKind::Manual,
    "exec" => DriverKind::Exec,
});
words!(Mode { "normal" => Mode::Normal, "strict" => Mode::Strict, "lenient" => Mode::Lenient });

/// Values that know themselves how they are read and written.
macro_rules! standard {
    ($($type:ty: $form:path, $expected:literal;)+) => {$(
        impl Scalar for $type {
            const FORM: Form = $form;

            fn expected() -> String {
                $expected.to_owned()
            }

            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn show(&self) -> String {
                ToString::to_string(self)
            }
        }
    )+};
}

standard! {
    bool: Form::Switch, "true or false";
    NonZeroU32: Form::Integer, "a whole number from 1 on";
    SocketAddr: Form::Text, "an address with its port, as \"127.0.0.1:9255\"";
    File: Form::Text, "the name of a file or directory";
    GuestListener: Form::Text, "an address with its port, as \"127.0.0.1:9254\", perhaps with its network, device or TPROXY, as \"blue=169.254.169.254:80%br-blue\" or \"127.0.0.1:9254+tproxy\"";
    GuestVm: Form::Text, "a VM and an address with its port, as \"web-0=127.0.0.1:9301\"";
    ProxyAddress: Form::Text, "an address, as \"10.9.0.2\" or \"blue=10.9.0.2\", or a prefix with zeros after its bits, as \"10.9.0.0/24\"";
    AddressPrefix: Form::Text, "an address, as \"10.9.0.2\", or a prefix with zeros after its bits, as \"10.9.0.0/24\"";
    HostName: Form::Text, "the name of a host without a port, as \"ops.example.com\"";
    Variable: Form::Text, "the name of a variable, as \"LIBVIRT_DEFAULT_URI\", that is none of the service's own";
}

/// The name of a file or directory. One that is not UTF-8 could not be written into the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File(pub PathBuf);

impl std::str::FromStr for File {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if text.is_empty() { Err(()) } else { Ok(Self(text.into())) }
    }
}

impl Display for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.display().fmt(f)
    }
}

/// The name of an environment variable. Those of the service are for itself: it sets what its commands get, and one
/// of them is a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable(pub String);

impl std::str::FromStr for Variable {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let ours = text.to_ascii_uppercase().starts_with("NOTBEFORE_");
        if text.is_empty() || ours || !text.chars().all(fits) { Err(()) } else { Ok(Self(text.to_owned())) }
    }
}

impl Display for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round<T: Value + PartialEq + std::fmt::Debug>(text: &str, written: &str) {
        let value = T::from_text(text).unwrap();
        assert_eq!(value.to_toml().to_string(), written);
        let Toml::Table(table) = toml::from_str(&format!("x = {written}")).unwrap() else { panic!() };
        assert_eq!(T::from_toml(&table["x"]).unwrap(), value, "{written}");
    }

    #[test]
    fn what_is_written_is_read_back() {
        round::<Span<1, 1_000_000>>("1h30m", "\"90m\"");
        round::<Span<0, 10>>("0", "\"0s\"");
        round::<Count<0, 100>>("7", "7");
        round::<Factor>("0.01", "0.01");
        round::<Factor>("1", "1.0");
        round::<bool>("true", "true");
        round::<Option<NonZeroU32>>("none", "\"none\"");
        round::<Option<NonZeroU32>>("5", "5");
        round::<Vec<GuestListener>>("127.0.0.1:1, blue=[::1]:2", r#"["127.0.0.1:1", "blue=[::1]:2"]"#);
        round::<GuestListener>("blue=10.0.0.1:80%br-blue+tproxy", r#""blue=10.0.0.1:80%br-blue+tproxy""#);
        round::<Vec<ProxyAddress>>("10.9.0.2,blue=fd00::/64", r#"["10.9.0.2", "blue=fd00::/64"]"#);
        round::<Vec<AddressPrefix>>("10.9.0.2,fd00::/64", r#"["10.9.0.2", "fd00::/64"]"#);
        round::<Vec<HostName>>("Ops.example", r#"["ops.example"]"#);
        round::<Vec<GuestVm>>("", "[]");
        round::<Vec<GuestVm>>("web-0=127.0.0.1:1", r#"["web-0=127.0.0.1:1"]"#);
        round::<Mode>("lenient", "\"lenient\"");
        round::<LogFilter>("info,hyper=debug", "\"info,hyper=debug\"");
        round::<File>("a \"b\"", "'a \"b\"'");
        round::<Vec<Variable>>("TZ,LIBVIRT_DEFAULT_URI", r#"["TZ", "LIBVIRT_DEFAULT_URI"]"#);
    }

    #[test]
    fn what_is_wrong_says_what_is_expected() {
        let number = Count::<1, 10>::from_toml(&Toml::Integer(11)).unwrap_err();
        assert_eq!(number, "expected a whole number from 1 to 10, not 11");
        let text = Count::<1, 10>::from_toml(&Toml::String("5".to_owned())).unwrap_err();
        assert_eq!(text, "expected a whole number from 1 to 10, not \"5\"");
        let list = Vec::<SocketAddr>::from_toml(&Toml::String("127.0.0.1:1".to_owned())).unwrap_err();
        assert!(list.starts_with("expected a list, each an address with its port"), "{list}");
        let span = Span::<1, 3_600>::from_text("2h").unwrap_err();
        assert_eq!(span, "expected a span from 1s to 1h, as \"20m\", not \"2h\"");
        assert_eq!(
            Mode::from_text("mild").unwrap_err(),
            "expected \"normal\" or \"strict\" or \"lenient\", not \"mild\""
        );
        assert!(
            Option::<NonZeroU32>::from_toml(&Toml::Integer(0))
                .unwrap_err()
                .contains("from 1 on, or \"none\"")
        );
        assert!(LogFilter::from_text("loud=very").is_err());
        assert!(Variable::from_text("NOTBEFORE_TOKEN").is_err() && Variable::from_text("A=b").is_err());
        assert!(Factor::from_text("NaN").is_err() && Factor::from_text("-1").is_err());
    }
}
