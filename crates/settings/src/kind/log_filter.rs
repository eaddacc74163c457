//! Log filters in the syntax of `tracing`. `tracing` itself takes an unknown word for the name of a module: a misspelt
//! level would silence the log. So levels and names are checked here.

use toml::Value as Toml;

use super::{Form, Kind, RawValue, ToToml};
use crate::suggest::nearest;

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// A level, or levels per module: `info,notbefore_service=debug`.
#[derive(Clone, Copy, Debug)]
pub struct LogFilter;

impl Kind for LogFilter {
    type Value = String;

    fn expected(&self) -> String {
        let levels = LEVELS.join(", ");
        format!("a level ({levels}), or levels per module, for example \"info,notbefore=debug\"")
    }

    fn read(&self, raw: &RawValue) -> Option<String> {
        let text = raw.text(Form::Text)?;
        text.split(',').all(is_directive).then(|| text.into_owned())
    }

    fn rejection(&self, raw: &RawValue) -> Option<String> {
        let text = raw.text(Form::Text)?;
        let wrong = text.split(',').find(|part| !is_directive(part))?;
        let meant = meant(wrong.rsplit('=').next()?.trim())?;
        Some(format!("expected {}, not {text:?}; did you mean {meant}?", self.expected()))
    }
}

impl ToToml for LogFilter {
    fn show(&self, value: &String) -> Toml {
        Toml::String(value.clone())
    }
}

/// Whether this is `LEVEL` or `MODULE=LEVEL`.
fn is_directive(text: &str) -> bool {
    match text.trim().split_once('=') {
        None => is_level(text.trim()),
        Some((module, level)) => is_module(module) && is_level(level),
    }
}

/// `tracing` has numbers for levels, too.
fn is_level(text: &str) -> bool {
    LEVELS.iter().any(|level| level.eq_ignore_ascii_case(text)) || matches!(text.as_bytes(), [b'0'..=b'5'])
}

fn is_module(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    text.split("::").all(|name| !name.is_empty() && name.chars().all(fits))
}

/// The level that was probably meant: the most similar, or one that the word extends (`warning`) or shortens (`err`).
fn meant(word: &str) -> Option<String> {
    let word = word.to_lowercase();
    let is_form = |level: &&&str| word.starts_with(**level) || (word.len() > 2 && level.starts_with(&word));
    let form = LEVELS.iter().find(is_form).map(|level| (*level).to_owned());
    form.or_else(|| nearest(&word, LEVELS)).filter(|level| *level != word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_levels_and_modules_with_levels() {
        let check = |text: &str| LogFilter.check(&RawValue::Text(text.to_owned()));
        for right in ["info", "WARN", "off", "3", "notbefore=debug,info", "info, hyper_util::client=trace"] {
            assert_eq!(check(right).as_deref(), Ok(right));
        }
        for (wrong, meant) in [
            ("inof", Some("info")),
            ("warning", Some("warn")),
            ("err", Some("error")),
            ("info,notbefore=dbug", Some("debug")),
            ("!!", None),
            ("", None),
            ("info,", None),
            ("6", None),
            ("notbefore_service", None),
            ("=info", None),
            ("a b=info", None),
            ("a::=info", None),
            ("a=b=info", None),
            ("a[span]=info", None),
            ("loud=very", None),
        ] {
            let said = check(wrong).unwrap_err();
            assert!(said.starts_with("expected a level (error, warn, info, debug, trace, off)"), "{said}");
            assert!(said.contains(&format!("not {wrong:?}")), "{said}");
            let suggestion = said.split_once("did you mean ").map(|(_, meant)| meant.trim_end_matches('?'));
            assert_eq!(suggestion, meant, "{wrong}: {said}");
        }
        let number = LogFilter.check(&RawValue::Toml(Toml::Integer(3))).unwrap_err();
        assert!(number.ends_with("not 3"), "{number}");
    }
}
