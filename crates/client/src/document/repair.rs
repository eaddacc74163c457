//! Repair of almost valid JSON.
//!
//! Platforms have sent raw newlines inside strings, which JSON forbids. Rejecting them could lose an event, so a body
//! that does not parse is parsed again with control characters escaped. Invalid UTF-8 becomes U+FFFD, and a byte
//! order mark is skipped.

use std::borrow::Cow;

use serde_json::Value;

/// UTF-8 byte order mark; some servers send it.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Parses a body as JSON; returns whether it was repaired.
pub fn parse(body: &[u8]) -> Result<(Value, bool), serde_json::Error> {
    let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
    serde_json::from_slice(body).map(|value| (value, false)).or_else(|error| {
        let text = String::from_utf8_lossy(body);
        let mended = escape_controls(&text);
        // Report the error of the original body.
        serde_json::from_str(&mended).map(|value| (value, true)).map_err(|_| error)
    })
}

/// Escapes control characters inside strings.
fn escape_controls(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte < 0x20) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 64);
    let (mut inside, mut escaped) = (false, false);
    for c in text.chars() {
        match c {
            '"' if !escaped => inside = !inside,
            control if inside && control < ' ' => {
                // The preceding backslash is already written; together they would be no valid escape.
                if escaped {
                    out.push('\\');
                }
                out.push_str(&format!("\\u{:04x}", u32::from(control)));
                escaped = false;
                continue;
            }
            _ => {}
        }
        escaped = inside && c == '\\' && !escaped;
        out.push(c);
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn raw_newlines_in_strings_are_accepted() {
        let (value, mended) = parse(b"{\r\n \"a\\\"b\": \"one\r\ntwo\\\\\",\t\"c\": \"x\\\ny\"}").unwrap();
        assert_eq!(value, json!({"a\"b": "one\r\ntwo\\", "c": "x\\\ny"}));
        assert!(mended);
    }

    #[test]
    fn valid_json_is_unchanged_and_invalid_refused() {
        assert_eq!(parse(b"\xef\xbb\xbf{\n\"a\": 1}").unwrap(), (json!({"a": 1}), false));
        assert_eq!(parse(b"\"\xff\"").unwrap(), (json!("\u{fffd}"), true));
        for body in ["", "<html>", "{\"a\": \"", "{} {}", "{\"a\": 1,}"] {
            assert!(parse(body.as_bytes()).is_err(), "{body}");
        }
    }

    proptest! {
        #[test]
        fn any_text_with_its_line_ends_left_raw_comes_back(text in "[a\"\\\\\r\n\t\u{0}é]{0,12}") {
            let raw = text.replace('\\', "\\\\").replace('"', "\\\"");
            let body = format!("{{\"text\": \"{raw}\"}}");
            prop_assert_eq!(&parse(body.as_bytes()).unwrap().0["text"], &json!(text));
        }
    }
}
