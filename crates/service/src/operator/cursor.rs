//! Cursors of lists.
//!
//! A cursor is the name of the last item shown, hex-encoded, so that clients treat it as opaque and the form can
//! change. The name depends on the list:
//!
//! | list | name |
//! |---|---|
//! | scopes, hosts, tokens | the item's path or name |
//! | VMs, events | `scope\|name` |
//! | operations, events in order of time | the item's place: an `OperationTime` or `EventTime` |
//! | audit trail | `key\|index`: a [`CursorPosition`] |
//! | history | the key of an ended event, or a prefix of such keys |

use data_encoding::HEXLOWER_PERMISSIVE;

pub fn encode(name: &str) -> String {
    HEXLOWER_PERMISSIVE.encode(name.as_bytes())
}

/// The name in a cursor; none if the cursor is not valid.
pub fn decode(cursor: &str) -> Option<String> {
    String::from_utf8(HEXLOWER_PERMISSIVE.decode(cursor.as_bytes()).ok()?).ok()
}

/// Splits the name of a list of VMs or events into scope and name.
pub fn in_scope(name: &str) -> Option<(&str, &str)> {
    name.split_once('|')
}

/// The position of an entry in the audit trail: the end of its record's key, which begins with the time, and the
/// entry's index in the record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CursorPosition {
    pub key: String,
    pub index: usize,
}

impl CursorPosition {
    pub fn encode(&self) -> String {
        encode(&format!("{}|{}", self.key, self.index))
    }

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
