//! `notbefore import`

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result};
use notbefore_service::cluster::joined::Claimant;
use notbefore_service::transfer::import::{self, Imported};
use notbefore_wire::text::counted;

use crate::args::{self, ConnectionArgs, Output};
use crate::check;
use crate::progress::Progress;
use crate::{output, time};

pub fn run(reach: &ConnectionArgs, verb: args::Import, output: Output) -> Result<()> {
    let args::Import { file, check, etcd } = verb;
    let name = if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() };
    let input: Box<dyn BufRead> = match file == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => {
            let file = File::open(&file).with_context(|| format!("cannot read {name}"))?;
            Box::new(BufReader::with_capacity(256 * 1024, file))
        }
    };
    let dir = reach.data_dir();
    let shared = match check {
        true => None,
        false => etcd.connect(Claimant::Import)?,
    };
    let progress = Progress::counting("records");
    let report_progress = |records| progress.set(records);
    let imported = match (check, &shared) {
        (true, _) => import::check(input, report_progress),
        (false, None) => import::import(&dir, input, report_progress),
        (false, Some((runtime, store))) => {
            import::import_shared(&**store, runtime.handle(), input, report_progress)
        }
    };
    drop(progress);
    let imported = imported.with_context(|| match check {
        true => name.clone(),
        false => format!("nothing was imported from {name}"),
    })?;
    let target = match &shared {
        Some(_) => None,
        None => Some(&*dir),
    };
    report(&name, target, check, &imported, output)
}

/// `dir` is none for etcd.
fn report(name: &str, dir: Option<&Path>, check: bool, imported: &Imported, output: Output) -> Result<()> {
    let Imported { header, records, counts } = imported;
    let result = serde_json::json!({
        "imported": !check,
        "revision": header.revision,
        "exported_at": header.exported_at,
        "records": records,
        "scopes": counts.scopes,
        "vms": counts.vms,
        "events": counts.events,
        "history": counts.history,
        "tokens": counts.tokens,
    });
    output.answer(&result, |_| {
        let (at, revision) = (time::absolute(header.exported_at), header.revision);
        let (records, counts) = (counted(*records, "record"), check::in_words(counts));
        output::line(&format!("{name}: {records} of {at} at revision {revision}: {counts}"))?;
        match (check, dir) {
            (true, _) => output::line("it is complete and can be imported"),
            (false, None) => output::line(
                "imported into etcd; start nodes with 'notbefore serve --etcd', and do not start the old service again",
            ),
            (false, Some(dir)) => {
                let dir = dir.display();
                output::line(&format!(
                    "imported into {dir}; start it with 'notbefore serve --data {dir}', and do not start the old service again"
                ))
            }
        }
    })
}
