//! Untrusted text in XML and HTML.

use notbefore_wire::text;

/// Text for contents and for attributes in quotes, of XML and of HTML. Unprintable characters are shown escaped: XML has no
/// way to write most control characters.
pub fn escape(untrusted: &str) -> String {
    let printable =
        text::escape(untrusted, |char| text::is_unprintable(char) || matches!(char, '\u{fffe}' | '\u{ffff}'));
    let mut escaped = String::with_capacity(printable.len());
    for char in printable.chars() {
        match char {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            other => escaped.push(other),
        }
    }
    escaped
}
