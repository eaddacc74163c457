//! `notbefore export`

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, IsTerminal, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use notbefore_service::transfer::lines::Lines;
use notbefore_wire::operator::export::ExportHeader;
use notbefore_wire::text::counted;

use crate::args::{self, ConnectionArgs, Output};
use crate::check::{self, DataStore};
use crate::client::Client;
use crate::exit::UsageError;
use crate::output;
use crate::progress::Progress;

pub fn run(reach: &ConnectionArgs, verb: args::Export, output: Output) -> Result<()> {
    let args::Export { file, without_tokens, skip_damaged } = verb;
    let file = file.filter(|file| file != Path::new("-"));
    if file.is_none() && io::stdout().is_terminal() {
        let detail =
            "cannot write an export to a terminal; name a file, for example 'notbefore export backup.jsonl'";
        return Err(UsageError(detail.to_owned()).into());
    }
    if skip_damaged {
        let store = DataStore::find(reach)?;
        return save(&store, file.as_deref(), !without_tokens, output);
    }
    let client = Client::find(reach)?;
    let path = format!("/v1/export?tokens={}", !without_tokens);
    let Some(file) = file else { return copy(&client, &path, &mut io::stdout().lock()).map(drop) };
    let (header, records) = to_file(&file, |out| copy(&client, &path, out))?;
    let (file, revision) = (file.display(), header.revision);
    let result = serde_json::json!({
        "file": file.to_string(),
        "revision": revision,
        "exported_at": header.exported_at,
        "records": records,
    });
    output.answer(&result, |_| {
        let records = counted(records, "record");
        output::line(&format!("{file}: {records} at revision {revision}, complete and verified"))
    })
}

/// Exports a damaged store without its damaged records.
fn save(store: &DataStore, file: Option<&Path>, tokens: bool, output: Output) -> Result<()> {
    let Some(file) = file else {
        let saved = store.save(tokens, &mut io::stdout().lock())?;
        check::print_findings(&saved.left_out);
        return Ok(());
    };
    let saved = to_file(file, |out| store.save(tokens, out))?;
    let (file, records, revision) = (file.display(), saved.records, saved.revision);
    let result = serde_json::json!({
        "file": file.to_string(),
        "revision": revision,
        "records": records,
        "left_out": saved.left_out,
    });
    output.answer(&result, |_| {
        check::print_findings(&saved.left_out);
        output::line(&format!(
            "{file}: {} at revision {revision}; {}, skipped records listed above",
            counted(records, "record"),
            counted(saved.left_out.len(), "problem")
        ))
    })
}

/// Atomic replace: writes to a temporary file with mode 0600, syncs it, and renames it. An older export of the same
/// name is replaced only by a complete one. What a killed export leaves behind is called `FILE.partial`.
fn to_file<T>(file: &Path, write: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
    let cannot = |what: &str, path: &Path| format!("cannot {what} {}", path.display());
    let name = file.file_name().with_context(|| format!("invalid file name {}", file.display()))?;
    if fs::metadata(file).is_ok_and(|found| !found.is_file()) {
        bail!("{} exists and is not a regular file; name a file, or - for standard output", file.display());
    }
    let mut new = name.to_owned();
    new.push(".partial");
    let new = Temporary(file.with_file_name(new));
    // Remove the leftover of an interrupted export.
    let _ = fs::remove_file(&new.0);
    let mut out = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new.0)
        .with_context(|| cannot("write", &new.0))?;
    out.set_permissions(fs::Permissions::from_mode(0o600)).with_context(|| cannot("write", &new.0))?;
    let exported = write(&mut out)?;
    out.sync_all().with_context(|| cannot("write", &new.0))?;
    let ours = out.metadata().with_context(|| cannot("write", &new.0))?;
    if !fs::symlink_metadata(&new.0).is_ok_and(|found| found.ino() == ours.ino()) {
        bail!("another export is being written to {}; run one at a time", file.display());
    }
    fs::rename(&new.0, file).with_context(|| cannot("write", file))?;
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory).and_then(|dir| dir.sync_all()).with_context(|| cannot("sync", directory))?;
    Ok(exported)
}

/// Converts to a message, so that a broken pipe does not count as success: the export is incomplete.
fn unwritten(error: io::Error) -> anyhow::Error {
    anyhow!("cannot write the export: {error}")
}

/// A temporary file, removed on drop if it was not renamed.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Streams the lines and checks that they are complete.
fn copy(client: &Client, path: &str, out: &mut dyn Write) -> Result<(ExportHeader, u64)> {
    let progress = Progress::counting("records");
    let mut lines = Lines::new(BufReader::with_capacity(256 * 1024, client.open(path)?));
    let mut out = io::BufWriter::with_capacity(256 * 1024, out);
    let broken = "the export is incomplete; try again (see the service's log for the reason; if a record is damaged, stop the service and use --skip-damaged)";
    let header = lines.header().context(broken)?;
    out.write_all(lines.raw()).map_err(unwritten)?;
    while lines.next_record().context(broken)?.is_some() {
        out.write_all(lines.raw()).map_err(unwritten)?;
        progress.set(lines.records());
    }
    out.write_all(lines.raw()).map_err(unwritten)?;
    out.flush().map_err(unwritten)?;
    Ok((header, lines.records()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_export_has_a_name_of_its_own_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("backup.jsonl");
        let names = || {
            let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
            names.sort();
            names
        };
        let write = |text: &'static str, beside: &'static [&'static str], is_complete: bool| {
            to_file(&file, |out| {
                out.write_all(text.as_bytes())?;
                assert_eq!(names(), beside, "while it is written");
                if is_complete { Ok(()) } else { bail!("the reader has disconnected") }
            })
        };
        // The first is the leftover of a killed export.
        fs::write(dir.path().join("backup.jsonl.partial"), "killed").unwrap();
        write("first", &["backup.jsonl.partial"], true).unwrap();
        assert_eq!(
            (names(), fs::read_to_string(&file).unwrap()),
            (vec!["backup.jsonl".into()], "first".into())
        );
        let both = &["backup.jsonl", "backup.jsonl.partial"];
        write("second", both, false).unwrap_err();
        assert_eq!(
            (names(), fs::read_to_string(&file).unwrap()),
            (vec!["backup.jsonl".into()], "first".into())
        );
        write("third", both, true).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "third");
    }
}
