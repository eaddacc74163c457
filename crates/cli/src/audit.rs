//! `notbefore audit`

use anyhow::Result;
use jiff::Timestamp;
use notbefore_wire::operator::AuditOutcome;
use notbefore_wire::operator::audit::AuditEntry;

use crate::args::{self, Output};
use crate::client::Client;
use crate::output::{self, Table, or_dash};
use crate::{fact, time};

pub fn run(client: &Client, audit: args::Audit, output: Output) -> Result<()> {
    let args::Audit { since, until, actor, refused, changed } = audit;
    let ago = |span| time::now().checked_sub(span).unwrap_or(Timestamp::UNIX_EPOCH).to_string();
    let outcome = match (refused, changed) {
        (true, _) => Some(AuditOutcome::Refused.to_string()),
        (false, true) => Some(AuditOutcome::Changed.to_string()),
        (false, false) => None,
    };
    let query =
        [("since", Some(ago(since))), ("until", until.map(ago)), ("actor", actor), ("outcome", outcome)];
    let entries: Vec<AuditEntry> = client.list("/v1/audit", &query)?;
    if output == Output::Json {
        return output::json(&entries);
    }
    let mut table = Table::new(&["TIME", "OUTCOME", "ACTOR", "FROM", "WHAT", "DETAIL"]);
    for entry in &entries {
        let AuditEntry { outcome, from, fact, .. } = entry;
        table.row([
            format!("{:.3}", fact.at),
            outcome.to_string(),
            fact.by.to_string(),
            or_dash(from.map(|from| from.to_string()).as_deref()),
            fact::code(fact),
            fact::in_audit(fact, *from),
        ]);
    }
    table.print("nothing was changed or refused in that time")
}
