//! The request target: path and query, taken apart.
//!
//! A path is compared without regard to case and may end in one slash. Query parameters may come in any
//! order and be percent-encoded; those that nobody asks for are passed over, but none may be there twice.

use std::borrow::Cow;

/// A target, split and decoded.
#[derive(Debug)]
pub(super) struct Target<'a> {
    /// The path's segments; one empty segment at the end is left out.
    pub path: Vec<Cow<'a, str>>,
    query: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Target<'a> {
    pub(super) fn parse(target: &'a str) -> Target<'a> {
        let (path, query) = match origin_form(target).split_once('?') {
            Some((path, query)) => (path, query),
            None => (origin_form(target), ""),
        };
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = path.strip_suffix('/').unwrap_or(path);
        Target {
            path: path.split('/').map(|segment| decode(segment, false)).collect(),
            query: query.split('&').filter(|parameter| !parameter.is_empty()).map(parameter).collect(),
        }
    }

    /// The value of a parameter; the first one, where a request that is about to be refused has several.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }

    /// Whether a parameter is there more than once.
    pub(super) fn has_duplicates(&self) -> bool {
        if self.query.len() < 2 {
            return false;
        }
        let mut names: Vec<String> = self.query.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        names.sort_unstable();
        names.windows(2).any(|pair| pair[0] == pair[1])
    }
}

/// A target that names the server too, as one sent to a proxy does, without that part.
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

fn parameter(text: &str) -> (Cow<'_, str>, Cow<'_, str>) {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    (decode(name, true), decode(value, true))
}

/// Percent-encoding undone, and `+` for a space where that is meant. What is no valid escape stays as it is.
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
            assert_eq!(Target::parse(target).path, expected, "{target}");
        }
    }

    #[test]
    fn parameters_are_decoded_and_found_by_name() {
        let target = Target::parse("/x?&format=json&api%2Dversion=2020%2D07-01&a+b=%zz%4&flag&");
        assert_eq!(target.parameter("api-version"), Some("2020-07-01"));
        assert_eq!(target.parameter("API-Version"), Some("2020-07-01"));
        assert_eq!(target.parameter("a b"), Some("%zz%4"));
        assert_eq!(target.parameter("flag"), Some(""));
        assert_eq!(target.parameter("none"), None);
        assert!(!target.has_duplicates());
        assert_eq!(Target::parse("/x?a=%ff%fe").parameter("a"), Some("\u{fffd}\u{fffd}"));
    }

    #[test]
    fn a_parameter_is_there_twice_however_it_is_spelled() {
        for query in ["a=1&a=1", "a&b&A", "a=1&%61=2", "x&&x="] {
            assert!(Target::parse(&format!("/p?{query}")).has_duplicates(), "{query}");
        }
        assert!(!Target::parse("/p?a=b&b=a").has_duplicates());
    }
}
