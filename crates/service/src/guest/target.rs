//! Parser for the request target: path and query.
//!
//! Paths are case-insensitive and may end with one slash. Query parameters may come in any order and be
//! percent-encoded. Unknown parameters are ignored, but no parameter may be repeated. Parts are decoded when they are
//! read, and copied only if there is something to decode.

use std::borrow::Cow;

/// Up to this many parameters are compared pairwise; more are sorted first.
const COMPARED_MAX: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'a> {
    /// Without the first slash and without one last slash.
    path: &'a str,
    query: &'a str,
    /// Contains nothing to decode.
    is_plain: bool,
}

impl<'a> Target<'a> {
    pub(super) fn parse(target: &'a str) -> Target<'a> {
        let target = origin_form(target);
        let (path, query) = split_once(target, b'?').unwrap_or((target, ""));
        let path = path.strip_prefix('/').unwrap_or(path);
        // No early exit, so that the compiler vectorizes the loop.
        let is_plain = !target.bytes().fold(false, |found, byte| found | (byte == b'%') | (byte == b'+'));
        Target { path: path.strip_suffix('/').unwrap_or(path), query, is_plain }
    }

    /// Whether this is the path, without percent-encoding.
    pub(super) fn is(&self, path: &str) -> bool {
        self.is_plain && self.path.eq_ignore_ascii_case(path)
    }

    /// The path's segments, without one empty segment at the end.
    pub(super) fn path(&self) -> impl Iterator<Item = Cow<'a, str>> + use<'a> {
        self.path.split('/').map(|segment| decode(segment, false))
    }

    /// The value of a parameter; the first one if it is repeated (such a request is refused later).
    pub(super) fn parameter(&self, name: &str) -> Option<Cow<'a, str>> {
        self.parameters().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Whether a parameter is repeated.
    pub(super) fn has_duplicates(&self) -> bool {
        if !self.query.bytes().any(|byte| byte == b'&') {
            return false;
        }
        let names = || self.parameters().map(|(name, _)| name);
        if names().nth(COMPARED_MAX).is_none() {
            return names()
                .enumerate()
                .any(|(at, name)| names().take(at).any(|before| before.eq_ignore_ascii_case(&name)));
        }
        let mut names: Vec<String> = names().map(|name| name.to_ascii_lowercase()).collect();
        names.sort_unstable();
        names.windows(2).any(|pair| pair[0] == pair[1])
    }

    fn parameters(&self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
        let (mut rest, is_plain) = (self.query, self.is_plain);
        std::iter::from_fn(move || {
            while !rest.is_empty() {
                let (parameter, after) = split_once(rest, b'&').unwrap_or((rest, ""));
                rest = after;
                if !parameter.is_empty() {
                    let (name, value) = split_once(parameter, b'=').unwrap_or((parameter, ""));
                    return Some(match is_plain {
                        true => (Cow::Borrowed(name), Cow::Borrowed(value)),
                        false => (decode(name, true), decode(value, true)),
                    });
                }
            }
            None
        })
    }
}

/// Splits at the first separator. Targets are short: the library's search has a higher start-up cost than this loop.
fn split_once(text: &str, separator: u8) -> Option<(&str, &str)> {
    let at = text.bytes().position(|byte| byte == separator)?;
    text.split_at_checked(at).map(|(before, after)| (before, &after[1..]))
}

/// Removes scheme and authority from a target in absolute form, as sent to a proxy.
fn origin_form(target: &str) -> &str {
    const SCHEME: &str = "http://";
    match target.get(..SCHEME.len()) {
        Some(scheme) if scheme.eq_ignore_ascii_case(SCHEME) => {
            let rest = &target[SCHEME.len()..];
            rest.find(['/', '?']).map_or("/", |at| &rest[at..])
        }
        Some(_) | None => target,
    }
}

/// Decodes percent-encoding, and `+` as space if `plus_is_space`. Invalid escapes stay unchanged.
fn decode(text: &str, plus_is_space: bool) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte == b'%' || (plus_is_space && byte == b'+')) {
        return Cow::Borrowed(text);
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'%', [high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    decoded.push(high * 16 + low);
                    rest = after;
                }
                (Some(_) | None, Some(_) | None) => decoded.push(b'%'),
            },
            (b'+', _) if plus_is_space => decoded.push(b' '),
            (other, _) => decoded.push(*other),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_and_decoded() {
        for (target, expected) in [
            ("/", vec![""]),
            ("*", vec!["*"]),
            ("/metadata/x", vec!["metadata", "x"]),
            ("/metadata/x/?y=/z", vec!["metadata", "x"]),
            ("/metadata/x//", vec!["metadata", "x", ""]),
            ("//metadata/x", vec!["", "metadata", "x"]),
            ("/meta%64ata/a%2fb", vec!["metadata", "a/b"]),
            ("/a+b%", vec!["a+b%"]),
            ("HTTP://169.254.169.254/metadata?x", vec!["metadata"]),
            ("http://169.254.169.254?x", vec![""]),
            ("http://169.254.169.254", vec![""]),
        ] {
            assert_eq!(Target::parse(target).path().collect::<Vec<_>>(), expected, "{target}");
        }
    }

    #[test]
    fn parameters_are_decoded_and_found_by_name() {
        let target = Target::parse("/x?&format=json&api%2Dversion=2020%2D07-01&a+b=%zz%4&flag&");
        let found = |name| target.parameter(name).map(Cow::into_owned);
        assert_eq!(found("api-version").as_deref(), Some("2020-07-01"));
        assert_eq!(found("API-Version").as_deref(), Some("2020-07-01"));
        assert_eq!(found("a b").as_deref(), Some("%zz%4"));
        assert_eq!(found("flag").as_deref(), Some(""));
        assert_eq!(found("none"), None);
        assert!(!target.has_duplicates());
        assert_eq!(Target::parse("/x?a=%ff%fe").parameter("a").as_deref(), Some("\u{fffd}\u{fffd}"));
    }

    #[test]
    fn duplicate_parameter_is_detected_in_any_spelling() {
        let many = |last: &str| (0..COMPARED_MAX * 2).map(|n| format!("p{n}&")).collect::<String>() + last;
        for query in ["a=1&a=1", "a&b&A", "a=1&%61=2", "x&&x=", &many("P%33")] {
            assert!(Target::parse(&format!("/p?{query}")).has_duplicates(), "{query}");
        }
        for query in ["", "a=b&b=a", &many("")] {
            assert!(!Target::parse(&format!("/p?{query}")).has_duplicates(), "{query}");
        }
    }
}
