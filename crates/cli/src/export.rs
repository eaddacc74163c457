//! `notbefore export`

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, IsTerminal, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use notbefore_service::transfer::lines::Lines;
use notbefore_wire::operator::export::ExportHeader;

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
            "an export is not for reading at a terminal; say a file, as in 'notbefore export backup.jsonl'";
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
    match output {
        Output::Json => output::json(&serde_json::json!({
            "file": file.to_string(),
            "revision": revision,
            "exported_at": header.exported_at,
            "records": records,
        })),
        Output::Table => {
            output::line(&format!("{file}: {records} records at revision {revision}, whole and checked"))
        }
    }
}

/// Writes what is left of a damaged store.
fn save(store: &DataStore, file: Option<&Path>, tokens: bool, output: Output) -> Result<()> {
    let Some(file) = file else {
        let saved = store.save(tokens, &mut io::stdout().lock())?;
        check::print_findings(&saved.left_out);
        return Ok(());
    };
    let saved = to_file(file, |out| store.save(tokens, out))?;
    let (file, records, revision) = (file.display(), saved.records, saved.revision);
    match output {
        Output::Json => output::json(&serde_json::json!({
            "file": file.to_string(),
            "revision": revision,
            "records": records,
            "left_out": saved.left_out,
        })),
        Output::Table => {
            check::print_findings(&saved.left_out);
            output::line(&format!(
                "{file}: {records} records at revision {revision}; {} problems, each with what was left out",
                saved.left_out.len()
            ))
        }
    }
}

/// Writes the export under another name, readable only by its owner, and renames it when it is whole and
/// durable: an older export of the same name is replaced by a whole one or not at all.
fn to_file<T>(file: &Path, write: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
    let cannot = |what: &str, path: &Path| format!("cannot {what} {}", path.display());
    let name = file.file_name().with_context(|| format!("{} is no file name", file.display()))?;
    if fs::metadata(file).is_ok_and(|found| !found.is_file()) {
        bail!(
            "{} is there and no file, and would be replaced; name a file, or - for standard output",
            file.display()
        );
    }
    let mut new = name.to_owned();
    new.push(".new");
    let new = Temporary(file.with_file_name(new));
    // Whatever an interrupted export left is in nobody's way.
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
        bail!("another export is being written to {}; do one after the other", file.display());
    }
    fs::rename(&new.0, file).with_context(|| cannot("write", file))?;
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory).and_then(|dir| dir.sync_all()).with_context(|| cannot("sync", directory))?;
    Ok(exported)
}

/// Not an error of its own type: a reader of ours that goes away must not make a cut-off export a success.
fn unwritten(error: io::Error) -> anyhow::Error {
    anyhow!("cannot write the export: {error}")
}

/// A file that is gone when it has not been renamed.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Copies the lines as they come, and checks that they are all there.
fn copy(client: &Client, path: &str, out: &mut dyn Write) -> Result<(ExportHeader, u64)> {
    let mut progress = Progress::counting("records");
    let mut lines = Lines::new(BufReader::with_capacity(256 * 1024, client.open(path)?));
    let mut out = io::BufWriter::with_capacity(256 * 1024, out);
    let broken = "the export is not whole; try again (the service's log says why it ended; if a record is damaged, stop the service and use --skip-damaged)";
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
