//! The lines of an export: a header, one record a line, a trailer.
//!
//! ```text
//! {"notbefore_export":1,"format_level":2,"revision":42,"exported_at":"…","version":"0.1.0","tokens":true}
//! {"key":"scope/default/default/web","revision":17,"value":{"path":…}}
//! …
//! {"notbefore_export_end":1,"records":1234,"sha256":"…"}
//! ```
//!
//! Every line ends with a line feed. Records come in the order of their keys, each key once. `value` is the
//! record as it is stored, readable, less its format level, which the header says once for all; a record
//! that an earlier release wrote at an earlier level says so itself (`"level":1`). A record without content
//! has no `value`. The trailer's SHA-256 is that of all bytes before it, so that a file which was cut
//! off, or changed, is known as such.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The form of the lines; another form would have another number.
pub const EXPORT_FORMAT: u32 = 1;

/// The longest line: a record's value may have 512 KiB, and its key and the words around it take little.
pub const EXPORT_LINE_BYTES_MAX: usize = 1024 * 1024;

/// How the trailer begins, which tells it from a record.
pub const EXPORT_END: &str = "{\"notbefore_export_end\":";

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportHeader {
    /// [`EXPORT_FORMAT`].
    pub notbefore_export: u32,
    /// The format level of all records that name none themselves.
    pub format_level: u32,
    /// The store's revision that the records show.
    pub revision: u64,
    /// When it was made.
    pub exported_at: Timestamp,
    /// The release that made it.
    pub version: String,
    /// Whether the operators' tokens are among the records.
    pub tokens: bool,
}

/// A line of one record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportRecord<'a> {
    /// Its key.
    pub key: String,
    /// The revision that wrote it.
    pub revision: u64,
    /// Its format level, where that is not the header's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// Its content, as JSON; none where it has none.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub value: Option<&'a RawValue>,
}

/// The last line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportTrailer {
    /// [`EXPORT_FORMAT`].
    pub notbefore_export_end: u32,
    /// How many records there are.
    pub records: u64,
    /// The SHA-256 of all bytes before this line, in hexadecimal.
    pub sha256: String,
}
