//! `notbefore fleet …`

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use notbefore_wire::operator::Scope;
use notbefore_wire::text::counted;

use crate::args::{self, Apply, ConnectionArgs, Output};
use crate::client::Client;
use crate::confirm::{self, Question};
use crate::exit::UsageError;
use crate::fleet_apply::{self, ApplyOptions};
use crate::fleet_file::{self, FileScope};
use crate::fleet_plan::{self, FleetPlan};
use crate::output;
use crate::table::Column;

const NOTHING: &str = "nothing was applied";
const QUESTION: Question = Question::needed("Apply this?", NOTHING);

pub fn run(reach: &ConnectionArgs, verb: args::Fleet, output: Output) -> Result<()> {
    match verb {
        args::Fleet::Apply(apply) => run_apply(reach, &apply, output),
        args::Fleet::Diff { file, prune, progress } => {
            let scopes = described(&file)?;
            let options = ApplyOptions { prune, report_progress: progress, output };
            let plan = fleet_plan::make(&Client::find(reach)?, &scopes, options)?;
            output.answer(&plan.shown(&scopes), |_| output::lines(&plan.lines(&scopes)))?;
            refused(&plan, &scopes)
        }
        args::Fleet::Show => {
            let scopes: Vec<Scope> = Client::find(reach)?.list("/v1/scopes", &[])?;
            let none = "no scopes; describe them in a file and run 'notbefore fleet apply FILE'";
            output::text(&output.list(&scopes, &columns(), none)?)
        }
    }
}

fn run_apply(reach: &ConnectionArgs, apply: &Apply, output: Output) -> Result<()> {
    let Apply { file, prune, check, progress, allow_empty, confirmation } = apply;
    let name = output::file_name(file);
    if *check && *prune {
        let detail = format!(
            "--check reads only the file and cannot show what --prune removes; use 'notbefore fleet diff {name} --prune'"
        );
        return Err(UsageError(detail).into());
    }
    let scopes = described(file)?;
    let needs_flag = scopes.is_empty() && !allow_empty;
    if *check {
        let vms: usize = scopes.iter().map(|scope| scope.spec.vms.len()).sum();
        let empty = if needs_flag { "; applying it requires --allow-empty" } else { "" };
        let (scopes, vms) = (counted(scopes.len(), "scope"), counted(vms, "VM"));
        return output::line(&format!("{name}: {scopes} and {vms}, no errors{empty}"));
    }
    let options = ApplyOptions { prune: *prune, report_progress: *progress, output };
    if confirmation.dry_run {
        let plan = fleet_plan::make(&Client::find(reach)?, &scopes, options)?;
        confirm::show_only(output, QUESTION, &plan.shown(&scopes), |_| plan.lines(&scopes))?;
        return refused(&plan, &scopes);
    }
    if needs_flag {
        let detail = format!(
            "{NOTHING}: {name} has no scopes, so --prune would remove everything that earlier files created; check with 'notbefore fleet diff {name} --prune', then use --allow-empty"
        );
        return Err(UsageError(detail).into());
    }
    let client = Client::find(reach)?;
    // Only pruning removes anything, so only pruning needs a plan.
    let plan = prune.then(|| fleet_plan::make(&client, &scopes, options)).transpose()?;
    if let Some(plan) = plan.as_ref().filter(|plan| plan.removes() && !confirmation.yes) {
        confirm::show(output, &plan.lines(&scopes))?;
        confirm::ask(confirmation.yes, QUESTION)?;
    }
    let applied = fleet_apply::apply(&client, &scopes, plan.unwrap_or_default(), options)?;
    output.answer_change(&applied, |_| Ok(()))
}

/// Reads the scopes of a file. Errors in it are usage errors.
pub fn described(file: &Path) -> Result<Vec<FileScope>> {
    Ok(fleet_file::parse(file, &read(file)?).map_err(|error| UsageError::because(&error))?)
}

/// Fails if the plan has scopes that would be refused.
fn refused(plan: &FleetPlan, scopes: &[FileScope]) -> Result<()> {
    match plan.refused.len() {
        0 => Ok(()),
        some => bail!("{some} of {} would be refused", counted(scopes.len(), "scope")),
    }
}

fn columns() -> [Column<'static, Scope>; 6] {
    type Of = Column<'static, Scope>;
    [
        Of::path("SCOPE", &|scope| scope.path.clone()),
        Of::new("KIND", &|scope| scope.kind.to_string()),
        Of::new("VMS", &|scope| scope.vms.to_string()),
        Of::new("EVENTS", &|scope| scope.events.to_string()),
        Of::optional("INCARNATION", &|scope| scope.incarnation.to_string()),
        Of::optional("FROM", &|scope| if scope.from_fleet { "file" } else { "API" }.to_owned()),
    ]
}

fn read(file: &Path) -> Result<String> {
    // Reading one byte past the limit detects a file that is too long.
    let most = fleet_file::FILE_BYTES_MAX as u64 + 1;
    let mut text = String::new();
    let read = match file == Path::new("-") {
        true => std::io::stdin().take(most).read_to_string(&mut text),
        false => std::fs::File::open(file).and_then(|file| file.take(most).read_to_string(&mut text)),
    };
    read.with_context(|| format!("cannot read {}", output::file_name(file)))?;
    Ok(text)
}
