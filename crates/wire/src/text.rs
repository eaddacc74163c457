//! Text for logs and terminals: escapes untrusted text (output of commands, responses of servers), and counts things.

use std::fmt;

/// Whether a character can move a terminal's cursor, reverse text or hide in it: control characters (C0 and C1),
/// direction marks, zero-width characters, line separators and tags.
pub fn is_unprintable(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Escapes all unprintable characters, including line ends.
pub fn printable(text: &str) -> String {
    escape(text, is_unprintable)
}

/// Escapes the characters for which `should_escape` is true.
pub fn escape(text: &str, should_escape: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match should_escape(char) {
            true => shown.extend(char.escape_default()),
            false => shown.push(char),
        }
    }
    shown
}

/// Escapes unprintable characters in JSON text, except line ends; the value stays the same. Valid JSON has such
/// characters only in strings, where `\u` escapes are allowed.
pub fn printable_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for char in json.chars() {
        if is_unprintable(char) && char != '\n' {
            for unit in char.encode_utf16(&mut [0; 2]) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(char);
        }
    }
    shown
}

/// The first `chars_max` characters, with `…` if the text was longer.
pub fn shorten(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A number with its noun, which takes an `s` unless there is one: `1 VM`, `2 VMs`.
pub fn counted<N: fmt::Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let s = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{s}")
}

/// A size in the largest unit of which there is at least one.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut unit) = (bytes as f64 / 1024.0, 0);
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    format!("{size:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noun_has_a_plural() {
        assert_eq!([0, 1, 2].map(|number: usize| counted(number, "VM")), ["0 VMs", "1 VM", "2 VMs"]);
    }

    #[test]
    fn control_and_direction_marks_are_escaped() {
        assert_eq!(printable("a\tb\u{202e}c\rd é"), "a\\tb\\u{202e}c\\rd é");
        for ranges in [
            '\u{0}'..='\u{1f}',
            '\u{7f}'..='\u{9f}',
            '\u{61c}'..='\u{61c}',
            '\u{200b}'..='\u{200f}',
            '\u{2028}'..='\u{202e}',
            '\u{2060}'..='\u{206f}',
            '\u{feff}'..='\u{feff}',
            '\u{e0001}'..='\u{e007f}',
        ] {
            for char in ranges {
                let shown = printable(&char.to_string());
                assert!(shown.starts_with('\\') && shown.is_ascii(), "{:x}: {shown}", u32::from(char));
            }
        }
    }

    #[test]
    fn printable_json_keeps_the_value() {
        let json = "{\n  \"a\u{202e}b\": \"\u{9b}é\u{e0041}\u{feff}\"\n}\n";
        let shown = "{\n  \"a\\u202eb\": \"\\u009bé\\udb40\\udc41\\ufeff\"\n}\n";
        assert_eq!(printable_json(json), shown);
        let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
        assert_eq!(value(shown), value(json));
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!((shorten("äöü", 3), shorten("äöü", 2)), ("äöü".to_owned(), "äö…".to_owned()));
    }
}
