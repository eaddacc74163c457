//! Writes and reads the lines of an export; the format is in `notbefore_wire::operator::export`.

use std::io::{self, BufRead, Read};

use bytes::Bytes;
use data_encoding::HEXLOWER;
use jiff::Timestamp;
use notbefore_engine::records::{FORMAT_LEVEL, FORMAT_LEVELS_READ, level_and_json, levels_read};
use notbefore_store::{Revision, Versioned, check};
use notbefore_wire::operator::export::{
    EXPORT_END, EXPORT_FORMAT, EXPORT_LINE_BYTES_MAX, ExportHeader, ExportRecord, ExportTrailer,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// A record that cannot be exported, because its bytes are malformed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {key} cannot be exported: {why}")]
pub struct ExportRecordError {
    pub key: String,
    pub why: String,
}

/// Writes lines to memory, and counts and hashes them.
pub struct LineWriter {
    lines: Vec<u8>,
    hashed: usize,
    hash: Sha256,
    records: u64,
    level: u32,
}

impl LineWriter {
    /// Starts with the header.
    pub fn new(revision: Revision, exported_at: Timestamp, tokens: bool) -> Self {
        Self::of_level(FORMAT_LEVEL, revision, exported_at, tokens)
    }

    /// Like [`new`](Self::new), with another format level in the header.
    pub fn of_level(level: u32, revision: Revision, exported_at: Timestamp, tokens: bool) -> Self {
        let mut writer = Self { lines: Vec::new(), hashed: 0, hash: Sha256::new(), records: 0, level };
        writer.line(&ExportHeader {
            notbefore_export: EXPORT_FORMAT,
            format_level: level,
            revision: revision.0,
            exported_at,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            tokens,
        });
        writer
    }

    pub fn record(&mut self, key: &str, record: &Versioned) -> Result<(), ExportRecordError> {
        let wrong = |why: String| ExportRecordError { key: key.to_owned(), why };
        let (level, value) = match record.value.is_empty() {
            true => (None, None),
            false => {
                let (level, json) = level_and_json(&record.value)
                    .ok_or_else(|| wrong(format!("it is not of format level {}", levels_read())))?;
                let json =
                    serde_json::from_slice::<&RawValue>(json).map_err(|error| wrong(error.to_string()))?;
                (Some(level).filter(|level| *level != self.level), Some(json))
            }
        };
        self.line(&ExportRecord { key: key.to_owned(), revision: record.revision.0, level, value });
        self.records += 1;
        Ok(())
    }

    pub fn finish(&mut self) {
        self.update_hash();
        let sha256 = HEXLOWER.encode(&self.hash.clone().finalize());
        self.line(&ExportTrailer { notbefore_export_end: EXPORT_FORMAT, records: self.records, sha256 });
    }

    /// Number of bytes that [`take`](Self::take) would return.
    pub fn waiting(&self) -> usize {
        self.lines.len()
    }

    pub fn records(&self) -> u64 {
        self.records
    }

    /// The bytes written since the last call.
    pub fn take(&mut self) -> Bytes {
        self.update_hash();
        self.hashed = 0;
        std::mem::take(&mut self.lines).into()
    }

    fn line<T: Serialize>(&mut self, line: &T) {
        // Writing to memory cannot fail, and none of these types has a map with keys that are not strings.
        if serde_json::to_writer(&mut self.lines, line).is_err() {
            check(|| false, "a line cannot be written as JSON");
        }
        self.lines.push(b'\n');
    }

    fn update_hash(&mut self) {
        self.hash.update(&self.lines[self.hashed..]);
        self.hashed = self.lines.len();
    }
}

/// A record's stored bytes, with the format level at which it was written.
pub fn value_of(record: &ExportRecord<'_>, header: &ExportHeader) -> Bytes {
    match record.value {
        Some(json) => format!("{} {json}", record.level.unwrap_or(header.format_level)).into(),
        None => Bytes::new(),
    }
}

/// A defect of an export, and its line.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct LineError {
    /// Counted from 1.
    pub line: u64,
    pub fault: LineFault,
}

#[derive(Debug, thiserror::Error)]
pub enum LineFault {
    #[error("cannot be read: {0}")]
    Read(io::Error),
    #[error(
        "is longer than {EXPORT_LINE_BYTES_MAX} bytes, the longest line of an export; is this the right file?"
    )]
    TooLong,
    #[error("is not the header of an export; is this the right file? ({0})")]
    NoHeader(serde_json::Error),
    #[error(
        "the export has format {0}, this release reads format {EXPORT_FORMAT}; use the release that wrote it"
    )]
    OtherForm(u32),
    #[error(
        "the records have format level {0}, this release reads levels {levels}; use the release that wrote them",
        levels = levels_read()
    )]
    OtherLevel(u32),
    #[error("is not a record: {0}")]
    MalformedRecord(serde_json::Error),
    #[error("the export ends here, without its last line: it was cut off; use a whole one")]
    CutOff,
    #[error("record {key} must not come after {before}; records are sorted by key, and keys are unique")]
    Order { key: String, before: String },
    #[error(
        "there are {found} records, the last line says {said}: lines were added or removed; use an unchanged export"
    )]
    Count { found: u64, said: u64 },
    #[error("the lines have been changed since the export (SHA-256 differs); use an unchanged export")]
    Hash,
    #[error("there is text after the last line of the export; use an unchanged export")]
    Trailing,
    #[error("{0}")]
    Record(String),
}

/// Reads lines and checks their format, without the content of records.
pub struct Lines<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
    hash: Sha256,
    records: u64,
    last_key: String,
}

/// The part of the header that has the format; other formats may have other fields.
#[derive(Deserialize)]
struct FormatProbe {
    notbefore_export: u32,
}

impl<R: BufRead> Lines<R> {
    pub fn new(input: R) -> Self {
        Self { input, line: Vec::new(), number: 0, hash: Sha256::new(), records: 0, last_key: String::new() }
    }

    /// The number of the last line read.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The last line read, with its line feed.
    pub fn raw(&self) -> &[u8] {
        &self.line
    }

    pub fn header(&mut self) -> Result<ExportHeader, LineError> {
        self.read()?;
        let form: FormatProbe =
            serde_json::from_slice(&self.line).map_err(|error| self.wrong(LineFault::NoHeader(error)))?;
        if form.notbefore_export != EXPORT_FORMAT {
            return Err(self.wrong(LineFault::OtherForm(form.notbefore_export)));
        }
        let header: ExportHeader =
            serde_json::from_slice(&self.line).map_err(|error| self.wrong(LineFault::NoHeader(error)))?;
        if !FORMAT_LEVELS_READ.contains(&header.format_level) {
            return Err(self.wrong(LineFault::OtherLevel(header.format_level)));
        }
        self.hash.update(&self.line);
        Ok(header)
    }

    /// Reads the next record; none at the end, after checking count and hash.
    pub fn next_record(&mut self) -> Result<Option<ExportRecord<'_>>, LineError> {
        self.read()?;
        if self.line.starts_with(EXPORT_END.as_bytes()) {
            return self.end().map(|()| None);
        }
        self.hash.update(&self.line);
        self.records += 1;
        let number = self.number;
        let wrong = |fault| LineError { line: number, fault };
        let record: ExportRecord<'_> =
            serde_json::from_slice(&self.line).map_err(|error| wrong(LineFault::MalformedRecord(error)))?;
        if record.key <= self.last_key {
            let before = std::mem::take(&mut self.last_key);
            return Err(wrong(LineFault::Order { key: record.key, before }));
        }
        self.last_key.clone_from(&record.key);
        Ok(Some(record))
    }

    pub fn records(&self) -> u64 {
        self.records
    }

    fn end(&mut self) -> Result<(), LineError> {
        let trailer: ExportTrailer = serde_json::from_slice(&self.line)
            .map_err(|error| self.wrong(LineFault::MalformedRecord(error)))?;
        if trailer.records != self.records {
            let fault = LineFault::Count { found: self.records, said: trailer.records };
            return Err(self.wrong(fault));
        }
        if trailer.sha256 != HEXLOWER.encode(&self.hash.clone().finalize()) {
            return Err(self.wrong(LineFault::Hash));
        }
        match self.input.fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) => Err(LineError { line: self.number + 1, fault: LineFault::Trailing }),
            Err(error) => Err(self.wrong(LineFault::Read(error))),
        }
    }

    /// Reads one line, up to the length limit.
    fn read(&mut self) -> Result<(), LineError> {
        self.number += 1;
        self.line.clear();
        let most = EXPORT_LINE_BYTES_MAX as u64;
        let read = self.input.by_ref().take(most).read_until(b'\n', &mut self.line);
        read.map_err(|error| self.wrong(LineFault::Read(error)))?;
        match self.line.last() {
            Some(b'\n') => Ok(()),
            Some(_) if self.line.len() >= EXPORT_LINE_BYTES_MAX => Err(self.wrong(LineFault::TooLong)),
            Some(_) | None => Err(self.wrong(LineFault::CutOff)),
        }
    }

    fn wrong(&self, fault: LineFault) -> LineError {
        LineError { line: self.number, fault }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exported() -> String {
        let mut writer = LineWriter::new(Revision(7), "2026-11-15T12:00:00Z".parse().unwrap(), true);
        let record = |value: &'static str| Versioned { revision: Revision(3), value: value.into() };
        writer.record("alive", &record("2 {\"at\":\"2026-11-15T12:00:00Z\"}")).unwrap();
        writer.record("ended/1/x", &record("")).unwrap();
        writer.record("heard/a/b/c", &record("1 {\"at\":\"2026-11-15T11:00:00Z\"}")).unwrap();
        writer.finish();
        String::from_utf8(writer.take().to_vec()).unwrap()
    }

    fn read(text: &str) -> Result<Vec<(String, Bytes)>, LineError> {
        let mut lines = Lines::new(text.as_bytes());
        let header = lines.header()?;
        let mut records = Vec::new();
        while let Some(record) = lines.next_record()? {
            records.push((record.key.clone(), value_of(&record, &header)));
        }
        Ok(records)
    }

    fn refusal(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn lines_round_trip() {
        let text = exported();
        let lines: Vec<&str> = text.lines().collect();
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            lines[..4],
            [
                &format!(
                    "{{\"notbefore_export\":1,\"format_level\":2,\"revision\":7,\"exported_at\":\"2026-11-15T12:00:00Z\",\"version\":\"{version}\",\"tokens\":true}}"
                ),
                "{\"key\":\"alive\",\"revision\":3,\"value\":{\"at\":\"2026-11-15T12:00:00Z\"}}",
                "{\"key\":\"ended/1/x\",\"revision\":3}",
                "{\"key\":\"heard/a/b/c\",\"revision\":3,\"level\":1,\"value\":{\"at\":\"2026-11-15T11:00:00Z\"}}",
            ]
        );
        assert!(lines[4].starts_with("{\"notbefore_export_end\":1,\"records\":3,\"sha256\":\""));
        let records = read(&text).unwrap();
        assert_eq!(records[0].1, "2 {\"at\":\"2026-11-15T12:00:00Z\"}");
        assert_eq!(records[1], ("ended/1/x".to_owned(), Bytes::new()));
        assert_eq!(records[2].1, "1 {\"at\":\"2026-11-15T11:00:00Z\"}", "it keeps its level");
    }

    #[test]
    fn bytes_do_not_depend_on_chunking() {
        let mut writer = LineWriter::new(Revision(7), "2026-11-15T12:00:00Z".parse().unwrap(), true);
        let mut all = writer.take().to_vec();
        for (key, value) in [
            ("alive", "2 {\"at\":\"2026-11-15T12:00:00Z\"}"),
            ("ended/1/x", ""),
            ("heard/a/b/c", "1 {\"at\":\"2026-11-15T11:00:00Z\"}"),
        ] {
            writer.record(key, &Versioned { revision: Revision(3), value: value.into() }).unwrap();
            all.extend(writer.take());
        }
        writer.finish();
        all.extend(writer.take());
        assert_eq!(String::from_utf8(all).unwrap(), exported());
    }

    #[test]
    fn truncated_export_is_detected() {
        let text = exported();
        for length in 0..text.len() {
            assert!(read(&text[..length]).is_err(), "cut off after {length} bytes");
        }
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let cut = refusal(&lines[..2].concat());
        assert_eq!(
            cut,
            "line 3: the export ends here, without its last line: it was cut off; use a whole one"
        );
    }

    #[test]
    fn modified_line_is_reported_with_its_number() {
        let text = exported();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let [header, alive, ended, heard, end] = lines[..] else { panic!("{text}") };
        for (changed, expected) in [
            (text.replace("12:00:00", "12:00:01"), "line 5: the lines have been changed"),
            ([header, alive, end].concat(), "line 3: there are 1 records, the last line says 3"),
            ([header, alive, alive, end].concat(), "line 3: record alive must not come after alive"),
            ([header, ended, alive, end].concat(), "line 3: record alive must not come after ended/1/x"),
            ([header, alive, "nonsense\n"].concat(), "line 3: is not a record: expected"),
            (
                [header, alive, "{\"key\":\"b\"}\n"].concat(),
                "line 3: is not a record: missing field `revision`",
            ),
            ([header, alive, ended, heard, end, "\n"].concat(), "line 6: there is text after the last line"),
            (text.replace("export\":1", "export\":2"), "line 1: the export has format 2"),
            (text.replace("level\":2", "level\":9"), "line 1: the records have format level 9"),
            ("scopes: []\n".to_owned(), "line 1: is not the header of an export"),
            (String::new(), "line 1: the export ends here"),
            ([header, &"x".repeat(EXPORT_LINE_BYTES_MAX)].concat(), "line 2: is longer than 1048576 bytes"),
        ] {
            let refused = refusal(&changed);
            assert!(refused.starts_with(expected), "{refused}");
        }
    }

    #[test]
    fn malformed_record_is_not_exported() {
        let mut writer = LineWriter::new(Revision(7), Timestamp::UNIX_EPOCH, true);
        for value in ["3 {}", "1 {", "1{}", "x"] {
            let record = Versioned { revision: Revision(1), value: value.into() };
            assert!(writer.record("alive", &record).is_err(), "{value}");
        }
    }
}
