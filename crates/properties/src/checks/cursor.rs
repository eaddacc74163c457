//! Cursors of the operator API's lists.
//!
//! Invariant: a decoded cursor encodes to the same cursor, except for the case of its digits. The same holds for
//! positions in the audit trail.

use crate::cursor::{self, CursorPosition};
use crate::mutate::{Rng, change_text};
use crate::planted_bug;
use notbefore_core::ScopePath;

pub fn check(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Some(name) = cursor::decode(text) else { return false };
    assert_eq!(cursor::encode(&name), text.to_ascii_lowercase());
    if let Some(position) = CursorPosition::parse(&name) {
        let again = cursor::decode(&position.encode()).and_then(|name| CursorPosition::parse(&name));
        assert_eq!(again.as_ref(), Some(&position));
        planted_bug(position.index > 1_000 && position.key.contains('|'));
    }
    if let Some((scope, _)) = cursor::in_scope(&name)
        && let Ok(path) = scope.parse::<ScopePath>()
    {
        assert_eq!(path.to_string().parse::<ScopePath>().map(|again| again.id()), Ok(path.id()));
    }
    true
}

/// Mutates the name inside a cursor.
pub fn name(bytes: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let mut name = cursor::decode(std::str::from_utf8(bytes).ok()?)?;
    for _ in 0..=rng.below(3) {
        name = change_text(&name, rng);
    }
    Some(cursor::encode(&name).into_bytes())
}
