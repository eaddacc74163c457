//! Cursors: where the next page of a list begins.
//!
//! A cursor is the name of the last item that was shown, in hexadecimal, so that nobody builds one by hand and the form can
//! change. What a name is depends on the list:
//!
//! | list | name |
//! |---|---|
//! | scopes, operations, hosts, tokens | the item's path, id or name |
//! | VMs, events | `scope\|name` |
//! | audit trail | `key\|index`: a [`CursorPosition`] |
//! | history | the key of an ended event, or how such keys begin |

use data_encoding::HEXLOWER_PERMISSIVE;

/// The cursor for the page after an item.
pub fn encode(name: &str) -> String {
    HEXLOWER_PERMISSIVE.encode(name.as_bytes())
}

/// The name of the last item of the page before; none if no list made this cursor.
pub fn decode(cursor: &str) -> Option<String> {
    String::from_utf8(HEXLOWER_PERMISSIVE.decode(cursor.as_bytes()).ok()?).ok()
}

/// The scope and the name in the cursor of a list of VMs or events.
pub fn in_scope(name: &str) -> Option<(&str, &str)> {
    name.split_once('|')
}

/// Where an entry of the audit trail stands: the end of its record's key, which begins with the time, and which of the
/// record's it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CursorPosition {
    /// The end of the key.
    pub key: String,
    /// Counted from 0.
    pub index: usize,
}

impl CursorPosition {
    /// The cursor for the page after the entry.
    pub fn encode(&self) -> String {
        encode(&format!("{}|{}", self.key, self.index))
    }

    /// The place that a cursor names.
    pub fn parse(name: &str) -> Option<Self> {
        let (key, index) = name.rsplit_once('|')?;
        Some(Self { key: key.to_owned(), index: index.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_round_trips() {
        assert_eq!(decode(&encode("default/default/web|web-0")).unwrap(), "default/default/web|web-0");
        for bad in ["x", "zz", "ff", "+1", "é"] {
            assert!(decode(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn cursor_position_round_trips() {
        let place = CursorPosition { key: "0001474309787000-ab12-7".into(), index: 3 };
        assert_eq!(CursorPosition::parse(&decode(&place.encode()).unwrap()), Some(place.clone()));
        assert_eq!(CursorPosition::parse("0001474309787000-ab12-7"), None);
        assert!(place < CursorPosition { index: 4, ..place.clone() });
    }
}
