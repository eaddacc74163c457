//! The body of an approval: `{"StartRequests":[{"EventId":"…"}]}`.
//!
//! Published clients send it with any Content-Type, with or without a byte order mark, indented or not. Some add a
//! `DocumentIncarnation` as a number or a string. So the parser reads only the event ids and ignores other fields.
//! It does not check whether an event exists. Text that is not a GUID cannot name an event; it gets an error of its
//! own, so that the server can answer it like an unknown id.

use serde_json::Value;
use uuid::Uuid;

/// Most entries in one body: the most live events of a scope, so that a guest can approve all of them at once.
pub const START_REQUESTS_MAX: usize = 1_000;

/// Why a body is not an approval. Entries are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartRequestsError {
    /// Not JSON, or JSON followed by other bytes.
    #[error("the body is not JSON (line {line}, column {column})")]
    NotJson {
        /// The line, from 1.
        line: usize,
        /// The column, from 1; 0 before the first.
        column: usize,
    },
    /// JSON, but not an object.
    #[error("the body is not a JSON object")]
    NotAnObject,
    /// No `StartRequests`.
    #[error("the body has no StartRequests")]
    Missing,
    /// `StartRequests` is not a list.
    #[error("StartRequests is not a list")]
    NotAList,
    /// The list has no entries.
    #[error("StartRequests is empty")]
    Empty,
    /// The list has more than [`START_REQUESTS_MAX`] entries.
    #[error("StartRequests has {entries} entries, more than the limit of {START_REQUESTS_MAX}")]
    TooMany {
        /// The number of entries.
        entries: usize,
    },
    /// An entry is not an object.
    #[error("StartRequests[{index}] is not an object")]
    EntryNotAnObject {
        /// Which entry.
        index: usize,
    },
    /// An entry has no EventId.
    #[error("StartRequests[{index}] has no EventId")]
    EventIdMissing {
        /// Which entry.
        index: usize,
    },
    /// An entry's EventId is not a string.
    #[error("StartRequests[{index}].EventId is not a string")]
    EventIdNotText {
        /// Which entry.
        index: usize,
    },
    /// The body is well-formed, but an EventId is not a GUID. Answered like an unknown event.
    #[error("an EventId is not a GUID")]
    NotAGuid,
}

/// The events that a body approves, without duplicates, in order of first mention.
pub fn parse(body: &[u8]) -> Result<Vec<Uuid>, StartRequestsError> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| StartRequestsError::NotJson { line: error.line(), column: error.column() })?;
    let Value::Object(fields) = value else { return Err(StartRequestsError::NotAnObject) };
    let list = fields.get("StartRequests").ok_or(StartRequestsError::Missing)?;
    let Value::Array(entries) = list else { return Err(StartRequestsError::NotAList) };
    if entries.is_empty() {
        return Err(StartRequestsError::Empty);
    }
    if entries.len() > START_REQUESTS_MAX {
        return Err(StartRequestsError::TooMany { entries: entries.len() });
    }
    let mut ids = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let Value::Object(fields) = entry else { return Err(StartRequestsError::EntryNotAnObject { index }) };
        let id = fields.get("EventId").ok_or(StartRequestsError::EventIdMissing { index })?;
        let Value::String(id) = id else { return Err(StartRequestsError::EventIdNotText { index }) };
        ids.push(event_id(id));
    }
    // Checked last, so that a body with another error gets that error whether or not all ids are GUIDs.
    let ids: Vec<Uuid> = ids.into_iter().collect::<Option<_>>().ok_or(StartRequestsError::NotAGuid)?;
    Ok(without_duplicates(ids))
}

/// Accepts the hyphenated form only, in any case; no braces or other spellings.
fn event_id(text: &str) -> Option<Uuid> {
    const HYPHENATED_LENGTH: usize = 36;
    if text.len() == HYPHENATED_LENGTH { Uuid::try_parse(text).ok() } else { None }
}

fn without_duplicates(ids: Vec<Uuid>) -> Vec<Uuid> {
    let mut seen = std::collections::HashSet::with_capacity(ids.len());
    ids.into_iter().filter(|id| seen.insert(*id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "602D9444-D2CD-49C7-8624-8643E7171297";

    fn ids(texts: &[&str]) -> Vec<Uuid> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn published_client_bodies_are_accepted() {
        let b = "f020ba2e-3bc0-4c40-a10b-86575a9eabd5";
        let indented = "{\r\n    \"DocumentIncarnation\":  5,\r\n    \"StartRequests\":  [\r\n  {\r\n\
                        \"EventId\":  \"602d9444-d2cd-49c7-8624-8643e7171297\"\r\n }\r\n ]\r\n}\r\n";
        for (body, expected) in [
            (format!(r#"{{"StartRequests":[{{"EventId":"{A}"}}]}}"#), ids(&[A])),
            (format!(r#"{{"StartRequests":[{{"EventId":"{}"}}]}}"#, A.to_lowercase()), ids(&[A])),
            (format!("\u{feff}{{\"StartRequests\":[{{\"EventId\":\"{A}\"}}]}}"), ids(&[A])),
            (format!(r#"{{"DocumentIncarnation":"5","StartRequests":[{{"EventId":"{b}"}}]}}"#), ids(&[b])),
            (
                format!(
                    r#"{{"DocumentIncarnation":{{"x":[null]}},"StartRequests":[{{"EventId":"{b}","Why":1}}],"More":[]}}"#
                ),
                ids(&[b]),
            ),
            (indented.to_owned(), ids(&[A])),
            (
                format!(
                    r#"{{"StartRequests":[{{"EventId":"{b}"}},{{"EventId":"{A}"}},{{"EventId":"{}"}}]}}"#,
                    b.to_uppercase()
                ),
                ids(&[b, A]),
            ),
        ] {
            assert_eq!(parse(body.as_bytes()), Ok(expected), "{body}");
        }
    }

    #[test]
    fn malformed_bodies_have_specific_errors() {
        use StartRequestsError::*;
        let good = format!(r#"{{"EventId":"{A}"}}"#);
        for (body, expected) in [
            (String::new(), NotJson { line: 1, column: 0 }),
            ("StartRequests=1".to_owned(), NotJson { line: 1, column: 1 }),
            ("{\n\"StartRequests\":[}".to_owned(), NotJson { line: 2, column: 18 }),
            (format!(r#"{{"StartRequests":[{good}]}} x"#), NotJson { line: 1, column: 72 }),
            ("[]".to_owned(), NotAnObject),
            ("null".to_owned(), NotAnObject),
            ("{}".to_owned(), Missing),
            (r#"{"startrequests":[]}"#.to_owned(), Missing),
            (r#"{"StartRequests":null}"#.to_owned(), NotAList),
            (format!(r#"{{"StartRequests":{good}}}"#), NotAList),
            (r#"{"StartRequests":[]}"#.to_owned(), Empty),
            (format!(r#"{{"StartRequests":[{good},"{A}"]}}"#), EntryNotAnObject { index: 1 }),
            (r#"{"StartRequests":[{}]}"#.to_owned(), EventIdMissing { index: 0 }),
            (format!(r#"{{"StartRequests":[{{"eventid":"{A}"}}]}}"#), EventIdMissing { index: 0 }),
            (r#"{"StartRequests":[{"EventId":7}]}"#.to_owned(), EventIdNotText { index: 0 }),
            (
                r#"{"StartRequests":[{"EventId":"x"},{"EventId":null}]}"#.to_owned(),
                EventIdNotText { index: 1 },
            ),
            (r#"{"StartRequests":[{"EventId":""}]}"#.to_owned(), NotAGuid),
            (format!(r#"{{"StartRequests":[{good},{{"EventId":"{{{A}}}"}}]}}"#), NotAGuid),
            (format!(r#"{{"StartRequests":[{{"EventId":"{}"}}]}}"#, A.replace('-', "")), NotAGuid),
        ] {
            assert_eq!(parse(body.as_bytes()), Err(expected), "{body}");
        }
        assert!(matches!(parse(b"{\"StartRequests\":[{\"EventId\":\"\xff\"}]}"), Err(NotJson { .. })));
        assert!(matches!(parse("[".repeat(60_000).as_bytes()), Err(NotJson { .. })));
    }

    #[test]
    fn the_limit_counts_entries_and_is_named() {
        let of = |entries: usize| {
            let list = vec![format!(r#"{{"EventId":"{A}"}}"#); entries].join(",");
            parse(format!(r#"{{"StartRequests":[{list}]}}"#).as_bytes())
        };
        assert_eq!(of(START_REQUESTS_MAX), Ok(ids(&[A])));
        let refused = of(10_000).unwrap_err();
        assert_eq!(refused, StartRequestsError::TooMany { entries: 10_000 });
        assert_eq!(refused.to_string(), "StartRequests has 10000 entries, more than the limit of 1000");
    }
}
