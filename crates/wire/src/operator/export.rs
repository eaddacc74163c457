//! The lines of an export: a header, one record a line, a trailer.
//!
//! ```text
//! {"notbefore_export":1,"format_level":2,"revision":42,"exported_at":"…","version":"0.1.0","tokens":true}
//! {"key":"scope/default/default/web","revision":17,"value":{"path":…}}
//! …
//! {"notbefore_export_end":1,"records":1234,"sha256":"…"}
//! ```
//!
//! Every line ends with a line feed. Records are sorted by key, and keys are unique. `value` is the stored record as
//! JSON, without its format level, which is in the header. A record that an earlier release wrote at an earlier level
//! has its own (`"level":1`). A record without content has no `value`. The trailer has the SHA-256 of all bytes before
//! it, so that import detects a truncated or changed file.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The version of the line format.
pub const EXPORT_FORMAT: u32 = 1;

/// The longest line. A record's value has at most 512 KiB; key and field names add little.
pub const EXPORT_LINE_BYTES_MAX: usize = 1024 * 1024;

/// The start of the trailer, which distinguishes it from a record.
pub const EXPORT_END: &str = "{\"notbefore_export_end\":";

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportHeader {
    /// [`EXPORT_FORMAT`].
    pub notbefore_export: u32,
    /// The format level of all records without `level`.
    pub format_level: u32,
    /// The revision of the store at the export.
    pub revision: u64,
    /// When the export was made.
    pub exported_at: Timestamp,
    /// The release that made it.
    pub version: String,
    /// Whether the export contains the operator tokens.
    pub tokens: bool,
}

/// The line of one record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportRecord<'a> {
    /// Its key.
    pub key: String,
    /// The revision that wrote it.
    pub revision: u64,
    /// Its format level, if not the header's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// Its content as JSON, if any.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub value: Option<&'a RawValue>,
}

/// The last line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportTrailer {
    /// [`EXPORT_FORMAT`].
    pub notbefore_export_end: u32,
    /// The number of records.
    pub records: u64,
    /// The SHA-256 of all bytes before this line, in hexadecimal.
    pub sha256: String,
}
