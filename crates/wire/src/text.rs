//! Text that somebody else wrote, made fit for a log line: what commands and servers say.

/// A text with what could move a terminal's cursor, or turn its words around, spelled out.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        let invisible = matches!(char,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if char.is_control() || invisible {
            shown.extend(char.escape_default());
        } else {
            shown.push(char);
        }
    }
    shown
}

/// The beginning of a text.
pub fn shorten(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_direction_marks_are_spelled_out() {
        assert_eq!(printable("a\tb\u{202e}c\rd é"), "a\\tb\\u{202e}c\\rd é");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!((shorten("äöü", 3), shorten("äöü", 2)), ("äöü".to_owned(), "äö…".to_owned()));
    }
}
