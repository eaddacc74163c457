//! `notbefore check`, and access to the store of a stopped service for `export --skip-damaged`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use notbefore_service::clock::{Clock, SystemClock};
use notbefore_service::data_dir::DataDir;
use notbefore_service::integrity::RECOVERY_HINT;
use notbefore_service::transfer::damaged::{self, Checked, DamagedError, Finding, Saved};
use notbefore_service::transfer::kinds::Counts;
use notbefore_wire::text::counted;

use crate::args::{ConnectionArgs, Output};
use crate::exit::UsageError;
use crate::output;

/// The store of a stopped service, read-only.
pub struct DataStore {
    path: PathBuf,
}

impl DataStore {
    /// The store in the data directory.
    pub fn find(reach: &ConnectionArgs) -> Result<Self> {
        let dir = DataDir::existing(&reach.data_dir()).map_err(|error| UsageError::because(&error.into()))?;
        let path = dir.store_path();
        // A service starts there with an empty fleet.
        if fs::metadata(&path).is_ok_and(|found| found.len() == 0) || !path.exists() {
            let cure = "there is nothing to read; name another directory with --data, or restore the file";
            return Err(UsageError(format!("{} is missing or empty: {cure}", path.display())).into());
        }
        Ok(Self { path })
    }

    /// Fails with a usage error if it cannot be said whether the store is damaged.
    fn check(&self) -> Result<Checked> {
        self.run(damaged::check).map_err(|error| match error.downcast_ref::<DamagedError>() {
            Some(known) if known.is_no_damage() => UsageError::because(&error).into(),
            Some(_) | None => error,
        })
    }

    /// Exports all records that are not damaged.
    pub fn save(&self, tokens: bool, out: &mut dyn Write) -> Result<Saved> {
        let now: Timestamp = SystemClock.now();
        self.run(|path| damaged::save(path, tokens, now, out))
    }

    fn run<T>(&self, work: impl FnOnce(&Path) -> Result<T, DamagedError>) -> Result<T> {
        let what = || format!("cannot read {}", self.path.display());
        match work(&self.path) {
            Err(error) if error.is_newer_format() => Err(UsageError(error.to_string()).into()),
            // These name the path.
            Err(error @ (DamagedError::Open(_) | DamagedError::Stalled { .. })) => Err(error.into()),
            Err(error) => Err(error).with_context(what),
            Ok(done) => Ok(done),
        }
    }
}

pub fn run(reach: &ConnectionArgs, output: Output) -> Result<()> {
    let store = DataStore::find(reach)?;
    let checked = store.check()?;
    let Checked { revision, records, counts, findings } = &checked;
    let is_whole = findings.is_empty();
    let path = store.path.display();
    let result = serde_json::json!({
        "whole": is_whole,
        "revision": revision,
        "records": records,
        "scopes": counts.scopes,
        "vms": counts.vms,
        "events": counts.events,
        "history": counts.history,
        "tokens": counts.tokens,
        "findings": findings,
    });
    output.answer(&result, |_| {
        for finding in findings {
            output::line(&line(finding))?;
        }
        let counts = in_words(counts);
        let records = counted(*records, "record");
        output::line(&format!("{path}: {records} at revision {revision}: {counts}"))
    })?;
    match is_whole {
        true if output.is_text() => output::line("no damage found"),
        true => Ok(()),
        false => bail!("{path} is damaged ({}); {RECOVERY_HINT}", counted(findings.len(), "problem")),
    }
}

pub fn in_words(counts: &Counts) -> String {
    let Counts { scopes, vms, events, history, tokens } = *counts;
    let [scopes, vms] = [counted(scopes, "scope"), counted(vms, "VM")];
    let [events, tokens] = [counted(events, "live event"), counted(tokens, "token")];
    format!("{scopes}, {vms}, {events}, {history} ended, {tokens}")
}

/// Prints the skipped records on standard error.
pub fn print_findings(findings: &[Finding]) {
    findings.iter().for_each(|finding| output::eprint(&line(finding)));
}

fn line(Finding { key, problem }: &Finding) -> String {
    match key {
        Some(key) => format!("{key}: {problem}"),
        None => problem.clone(),
    }
}
