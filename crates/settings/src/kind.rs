//! Kinds of values: parse a value from the file, a variable or a flag, and print it.
//!
//! A kind is itself a value, so that limits and allowed words are its fields: `Span { min: 1, max: 60 }`,
//! `List(Switch)`.

mod log_filter;

use std::borrow::Cow;
use std::fmt::Display;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use toml::Value as Toml;

use crate::span;
pub use log_filter::LogFilter;

/// The text for an unset value. TOML has no null, and a flag must be able to unset a value from the file.
const NONE: &str = "none";

/// A value as written.
#[derive(Clone, Debug)]
pub enum RawValue {
    /// From a flag or a variable.
    Text(String),
    /// From the file.
    Toml(Toml),
}

/// The TOML form of a single value. Flags and variables are always text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Quoted.
    Text,
    Integer,
    /// Integer or float.
    Number,
    /// `true` or `false`.
    Switch,
}

impl RawValue {
    /// The text of a single value, if it has this form.
    pub fn text(&self, form: Form) -> Option<Cow<'_, str>> {
        match (form, self) {
            (_, RawValue::Text(text)) => Some(text.trim().into()),
            (Form::Text, RawValue::Toml(Toml::String(text))) => Some(text.into()),
            (Form::Integer | Form::Number, RawValue::Toml(Toml::Integer(number))) => {
                Some(number.to_string().into())
            }
            (Form::Number, RawValue::Toml(Toml::Float(number))) => Some(number.to_string().into()),
            (Form::Switch, RawValue::Toml(Toml::Boolean(on))) => Some(on.to_string().into()),
            (Form::Text | Form::Integer | Form::Number | Form::Switch, RawValue::Toml(_)) => None,
        }
    }

    fn shown(&self) -> String {
        match self {
            RawValue::Text(text) => format!("{text:?}"),
            RawValue::Toml(Toml::Table(_)) => "a table".to_owned(),
            RawValue::Toml(value) => value.to_string(),
        }
    }

    /// The type of the value, for messages that must not show it.
    fn type_name(&self) -> &'static str {
        match self {
            RawValue::Text(text) | RawValue::Toml(Toml::String(text)) if text.is_empty() => "empty text",
            RawValue::Text(_) | RawValue::Toml(Toml::String(_)) => "this text",
            RawValue::Toml(Toml::Integer(_) | Toml::Float(_)) => "a number",
            RawValue::Toml(Toml::Boolean(_)) => "true or false",
            RawValue::Toml(Toml::Datetime(_)) => "a time",
            RawValue::Toml(Toml::Array(_)) => "this list",
            RawValue::Toml(Toml::Table(_)) => "this table",
        }
    }
}

/// A parser for values of one kind.
pub trait Kind {
    type Value;

    /// What to write, with an example.
    fn expected(&self) -> String;

    fn read(&self, raw: &RawValue) -> Option<Self::Value>;

    /// Whether a value may contain a secret. Messages then name its type and do not show it.
    fn is_private(&self) -> bool {
        false
    }

    /// A more specific error than [`Kind::expected`].
    fn rejection(&self, _: &RawValue) -> Option<String> {
        None
    }

    /// Reads a value, or returns what is wrong with it.
    fn check(&self, raw: &RawValue) -> Result<Self::Value, String> {
        let shown = || if self.is_private() { raw.type_name().to_owned() } else { raw.shown() };
        let expected = || format!("expected {}, not {}", self.expected(), shown());
        self.read(raw).ok_or_else(|| self.rejection(raw).unwrap_or_else(expected))
    }
}

/// Prints values of one kind so that [`Kind::read`] restores them.
pub trait ToToml: Kind {
    fn show(&self, value: &Self::Value) -> Toml;
}

/// Text with a parse function.
#[derive(Clone, Copy, Debug)]
pub struct Text<T> {
    expected: &'static str,
    parse: fn(&str) -> Option<T>,
    is_private: bool,
}

impl<T> Text<T> {
    /// Text that messages may show.
    pub const fn new(expected: &'static str, parse: fn(&str) -> Option<T>) -> Self {
        Text { expected, parse, is_private: false }
    }

    /// Text that may be a secret.
    pub const fn private(expected: &'static str, parse: fn(&str) -> Option<T>) -> Self {
        Text { expected, parse, is_private: true }
    }
}

impl<T: FromStr> Text<T> {
    /// Text that is parsed with `FromStr`.
    pub const fn parsed(expected: &'static str) -> Self {
        Text::new(expected, |text| text.parse().ok())
    }
}

impl<T> Kind for Text<T> {
    type Value = T;

    fn expected(&self) -> String {
        self.expected.to_owned()
    }

    fn read(&self, raw: &RawValue) -> Option<T> {
        (self.parse)(&raw.text(Form::Text)?)
    }

    fn is_private(&self) -> bool {
        self.is_private
    }
}

impl<T: Display> ToToml for Text<T> {
    fn show(&self, value: &T) -> Toml {
        Toml::String(value.to_string())
    }
}

/// A path: not empty, and without zero bytes, which no system accepts.
#[derive(Clone, Copy, Debug)]
pub struct FileName;

impl Kind for FileName {
    type Value = PathBuf;

    fn expected(&self) -> String {
        "the name of a file or directory".to_owned()
    }

    fn read(&self, raw: &RawValue) -> Option<PathBuf> {
        let text = raw.text(Form::Text)?;
        (!text.is_empty() && !text.contains('\0')).then(|| PathBuf::from(text.as_ref()))
    }
}

impl ToToml for FileName {
    fn show(&self, value: &PathBuf) -> Toml {
        Toml::String(value.display().to_string())
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Switch;

impl Kind for Switch {
    type Value = bool;

    fn expected(&self) -> String {
        "true or false".to_owned()
    }

    fn read(&self, raw: &RawValue) -> Option<bool> {
        raw.text(Form::Switch)?.parse().ok()
    }
}

impl ToToml for Switch {
    fn show(&self, value: &bool) -> Toml {
        Toml::Boolean(*value)
    }
}

/// A whole number within limits.
#[derive(Clone, Copy, Debug)]
pub struct Integer<T> {
    min: i64,
    max: i64,
    number: PhantomData<T>,
}

impl<T> Integer<T> {
    /// From `min` to `max`, inclusive; `i64::MAX`, the largest in TOML, means no limit.
    pub const fn between(min: i64, max: i64) -> Self {
        Integer { min, max, number: PhantomData }
    }
}

impl<T: FromStr> Kind for Integer<T> {
    type Value = T;

    fn expected(&self) -> String {
        match (self.min, self.max) {
            (min, i64::MAX) => format!("a whole number from {min} on"),
            (min, max) => format!("a whole number from {min} to {max}"),
        }
    }

    fn read(&self, raw: &RawValue) -> Option<T> {
        let text = raw.text(Form::Integer)?;
        let fits = text.parse().is_ok_and(|number| (self.min..=self.max).contains(&number));
        text.parse().ok().filter(|_| fits)
    }
}

impl<T: FromStr + Display> ToToml for Integer<T> {
    fn show(&self, value: &T) -> Toml {
        let text = value.to_string();
        text.parse().map_or(Toml::String(text), Toml::Integer)
    }
}

/// A time span in seconds from `min` to `max`, inclusive.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub min: u64,
    /// `u64::MAX` means no limit except that of [`span::parse`].
    pub max: u64,
}

impl Kind for Span {
    type Value = Duration;

    fn expected(&self) -> String {
        match (span::show(self.min), self.max) {
            (_, u64::MAX) if self.min == 0 => "a span, as \"30s\", \"20m\" or \"1h30m\"".to_owned(),
            (min, u64::MAX) => format!("a span from {min} on, as \"20m\""),
            (min, max) => format!("a span from {min} to {}, as \"20m\"", span::show(max)),
        }
    }

    fn read(&self, raw: &RawValue) -> Option<Duration> {
        let span = span::parse(&raw.text(Form::Text)?).ok()?;
        (self.min..=self.max).contains(&span.as_secs()).then_some(span)
    }
}

impl ToToml for Span {
    fn show(&self, value: &Duration) -> Toml {
        Toml::String(span::show(value.as_secs()))
    }
}

/// One of a few words, each with its value.
#[derive(Clone, Copy, Debug)]
pub struct OneOf<T: 'static>(pub &'static [(&'static str, T)]);

impl<T: Copy> Kind for OneOf<T> {
    type Value = T;

    fn expected(&self) -> String {
        let words: Vec<String> = self.0.iter().map(|(word, _)| format!("{word:?}")).collect();
        match words.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            Some(_) | None => words.concat(),
        }
    }

    fn read(&self, raw: &RawValue) -> Option<T> {
        let text = raw.text(Form::Text)?;
        self.0.iter().find(|(word, _)| *word == text).map(|(_, value)| *value)
    }
}

impl<T: Copy + PartialEq> ToToml for OneOf<T> {
    fn show(&self, value: &T) -> Toml {
        let word = self.0.iter().find(|(_, known)| known == value).map_or(NONE, |(word, _)| *word);
        Toml::String(word.to_owned())
    }
}

/// The format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines of text.
    Text,
    /// One JSON object per line.
    Json,
}

/// The format of a log, for the service and the agent.
pub const LOG_FORMAT: OneOf<LogFormat> = OneOf(&[("text", LogFormat::Text), ("json", LogFormat::Json)]);

/// A list: an array in the file, separated by commas elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct List<K>(pub K);

impl<K: Kind> List<K> {
    fn parts(raw: &RawValue) -> Option<Vec<RawValue>> {
        match raw {
            RawValue::Text(text) => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                Some(parts.map(|part| RawValue::Text(part.to_owned())).collect())
            }
            RawValue::Toml(value) => Some(value.as_array()?.iter().cloned().map(RawValue::Toml).collect()),
        }
    }
}

impl<K: Kind> Kind for List<K> {
    type Value = Vec<K::Value>;

    fn expected(&self) -> String {
        format!("a list, each {}", self.0.expected())
    }

    fn read(&self, raw: &RawValue) -> Option<Self::Value> {
        Self::parts(raw)?.iter().map(|part| self.0.read(part)).collect()
    }

    fn is_private(&self) -> bool {
        self.0.is_private()
    }

    fn rejection(&self, raw: &RawValue) -> Option<String> {
        Self::parts(raw)?.iter().find_map(|part| self.0.check(part).err())
    }
}

impl<K: ToToml> ToToml for List<K> {
    fn show(&self, value: &Self::Value) -> Toml {
        Toml::Array(value.iter().map(|one| self.0.show(one)).collect())
    }
}

/// A value, or `none`.
#[derive(Clone, Copy, Debug)]
pub struct OrNone<K>(pub K);

impl<K: Kind> Kind for OrNone<K> {
    type Value = Option<K::Value>;

    fn expected(&self) -> String {
        format!("{}, or {NONE:?}", self.0.expected())
    }

    fn read(&self, raw: &RawValue) -> Option<Self::Value> {
        match raw.text(Form::Text).as_deref() {
            Some(NONE) => Some(None),
            Some(_) | None => self.0.read(raw).map(Some),
        }
    }

    fn is_private(&self) -> bool {
        self.0.is_private()
    }
}

impl<K: ToToml> ToToml for OrNone<K> {
    fn show(&self, value: &Self::Value) -> Toml {
        value.as_ref().map_or_else(|| Toml::String(NONE.to_owned()), |value| self.0.show(value))
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    const ADDRESS: Text<SocketAddr> = Text::parsed("an address");

    fn round<K: ToToml>(kind: K, text: &str, written: &str) {
        let value = kind.read(&RawValue::Text(text.to_owned())).unwrap();
        assert_eq!(kind.show(&value).to_string(), written);
        let table: toml::Table = toml::from_str(&format!("x = {written}")).unwrap();
        let again = kind.read(&RawValue::Toml(table["x"].clone())).unwrap();
        assert_eq!(kind.show(&again).to_string(), written);
    }

    #[test]
    fn values_round_trip() {
        round(Span { min: 1, max: 1_000_000 }, "1h30m", "\"90m\"");
        round(Span { min: 0, max: 10 }, "0", "\"0s\"");
        round(Integer::<usize>::between(0, 100), "7", "7");
        round(Switch, " true ", "true");
        round(OrNone(Integer::<u32>::between(1, i64::MAX)), "none", "\"none\"");
        round(OrNone(Integer::<u32>::between(1, i64::MAX)), "5", "5");
        round(List(ADDRESS), "127.0.0.1:1, [::1]:2", r#"["127.0.0.1:1", "[::1]:2"]"#);
        round(List(ADDRESS), "", "[]");
        round(OneOf(&[("gone", 1), ("booted", 2)]), "booted", "\"booted\"");
        round(FileName, "a \"b\"", "'a \"b\"'");
    }

    #[test]
    fn wrong_value_error_names_expected() {
        let number = Integer::<u32>::between(1, 10);
        let toml = |value: &str| {
            RawValue::Toml(toml::from_str::<toml::Table>(&format!("x = {value}")).unwrap()["x"].clone())
        };
        let wrong = |raw: &RawValue| number.check(raw).unwrap_err();
        assert_eq!(wrong(&toml("11")), "expected a whole number from 1 to 10, not 11");
        assert_eq!(wrong(&toml("\"5\"")), "expected a whole number from 1 to 10, not \"5\"");
        assert_eq!(wrong(&toml("{ y = 1 }")), "expected a whole number from 1 to 10, not a table");
        let or_none = OrNone(Integer::<u32>::between(1, i64::MAX)).check(&toml("0")).unwrap_err();
        assert_eq!(or_none, "expected a whole number from 1 on, or \"none\", not 0");
        assert!(Integer::<u8>::between(0, i64::MAX).check(&toml("256")).is_err());
        let span = Span { min: 1, max: 3_600 }.check(&RawValue::Text("2h".to_owned())).unwrap_err();
        assert_eq!(span, "expected a span from 1s to 1h, as \"20m\", not \"2h\"");
        assert_eq!(Span { min: 1, max: u64::MAX }.expected(), "a span from 1s on, as \"20m\"");
        let word = OneOf(&[("a", 1), ("b", 2), ("c", 3)]).check(&toml("'d'")).unwrap_err();
        assert_eq!(word, "expected \"a\", \"b\" or \"c\", not \"d\"");
        let list = List(ADDRESS);
        assert_eq!(list.check(&toml("'1:1'")).unwrap_err(), "expected a list, each an address, not \"1:1\"");
        assert_eq!(
            list.check(&toml("['127.0.0.1:1', 2]")).unwrap_err(),
            "expected an address, not 2",
            "only the wrong element is shown"
        );
        let secret = Text::<u8>::private("a number", |_| None);
        assert_eq!(secret.check(&toml("'s3cret'")).unwrap_err(), "expected a number, not this text");
        assert_eq!(
            secret.check(&RawValue::Text("s3cret".to_owned())).unwrap_err(),
            "expected a number, not this text"
        );
    }
}
