//! The lines of an export, as read by an import.
//!
//! Invariant: an accepted export is written as bytes that are accepted again, with the same records and the same
//! bytes.

use crate::kinds::RecordChecker;
use crate::lines::{LineWriter, Lines, value_of};
use crate::mutate::{Rng, change, change_text};
use crate::planted_bug;
use data_encoding::HEXLOWER;
use notbefore_store::{Revision, Versioned};
use notbefore_wire::operator::export::{EXPORT_END, EXPORT_FORMAT, ExportHeader};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub fn check(bytes: &[u8]) -> bool {
    let Some((header, records)) = import(bytes) else { return false };
    let first = export(&header, &records);
    let (again, same) = import(&first).expect("what was exported is imported");
    let told =
        |header: &ExportHeader| (header.format_level, header.revision, header.exported_at, header.tokens);
    assert_eq!(told(&again), told(&header));
    assert_eq!(same, records);
    assert_eq!(export(&again, &same), first, "another export");
    planted_bug(
        records.iter().any(|(key, record)| key.starts_with("fact/") && record.revision.0 > header.revision),
    );
    true
}

type Records = Vec<(String, Versioned)>;

/// The records that an import accepts.
fn import(bytes: &[u8]) -> Option<(ExportHeader, Records)> {
    let mut lines = Lines::new(bytes);
    let header = lines.header().ok()?;
    let mut checker = RecordChecker::default();
    let mut records = Vec::new();
    while let Some(record) = lines.next_record().ok()? {
        let value = value_of(&record, &header);
        let (key, revision) = (record.key.clone(), Revision(record.revision));
        checker.check(lines.number(), &key, &value).ok()?;
        records.push((key, Versioned { revision, value }));
    }
    // Consistency checks must not panic; a rejected import has still parsed the lines.
    let _ = checker.finish();
    Some((header, records))
}

fn export(header: &ExportHeader, records: &Records) -> Vec<u8> {
    let ExportHeader { format_level, revision, exported_at, tokens, .. } = header;
    let mut writer = LineWriter::of_level(*format_level, Revision(*revision), *exported_at, *tokens);
    for (key, record) in records {
        writer.record(key, record).expect("what was imported is exported");
    }
    writer.finish();
    writer.take().to_vec()
}

/// Mutates the records and updates the last line to match.
pub fn records(bytes: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines: Vec<Value> = text
        .lines()
        .filter(|line| !line.starts_with(EXPORT_END))
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .ok()?;
    let at = rng.below(lines.len());
    let line = lines.get_mut(at).filter(|line| line.is_object())?;
    match rng.below(8) {
        0 if at > 0 => drop(lines.remove(at)),
        1 => {
            let mut twin = line.clone();
            twin["key"] = change_text(line["key"].as_str().unwrap_or_default(), rng).into();
            lines.push(twin);
        }
        2..5 => line["revision"] = (rng.number() >> rng.below(64)).into(),
        5 => change(line, rng),
        _ => change(line.get_mut("value")?, rng),
    }
    lines[1..].sort_by_key(|line| line["key"].as_str().unwrap_or_default().to_owned());
    let mut out = Vec::new();
    for line in &lines {
        // Header fields come in any order; only the trailer is recognised by its start.
        out.extend(line.to_string().into_bytes());
        out.push(b'\n');
    }
    let sha256 = HEXLOWER.encode(&Sha256::digest(&out));
    let trailer =
        json!({ "notbefore_export_end": EXPORT_FORMAT, "records": lines.len() - 1, "sha256": sha256 });
    out.extend(trailer.to_string().into_bytes());
    out.push(b'\n');
    Some(out)
}
