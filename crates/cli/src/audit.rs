//! `notbefore audit`

use anyhow::Result;
use notbefore_wire::operator::audit::AuditEntry;
use notbefore_wire::operator::{AuditOutcome, Order};

use crate::args::{self, Output};
use crate::client::Client;
use crate::fact;
use crate::output::{self, or_dash};
use crate::table::{Colour, Column};
use crate::time::{self, Ago};

pub fn run(client: &Client, audit: args::Audit, output: Output) -> Result<()> {
    let args::Audit { since, until, actor, refused, changed, newest, limit } = audit;
    let ago = |since: Ago| since.at(time::now()).to_string();
    let outcome = match (refused, changed) {
        (true, _) => Some(AuditOutcome::Refused.to_string()),
        (false, true) => Some(AuditOutcome::Changed.to_string()),
        (false, false) => None,
    };
    let query = [
        ("since", Some(ago(since))),
        ("until", until.map(ago)),
        ("actor", actor),
        ("outcome", outcome),
        ("order", newest.then(|| Order::Newest.to_string())),
    ];
    let entries: Vec<AuditEntry> = client.list_first("/v1/audit", &query, limit.unwrap_or(usize::MAX))?;
    output::text(&output.list(&entries, &columns(), "no changes or refusals in that time")?)
}

fn columns() -> [Column<'static, AuditEntry>; 6] {
    type Of = Column<'static, AuditEntry>;
    [
        Of::new("TIME", &|entry| time::milliseconds(entry.fact.at)),
        Of::new("OUTCOME", &|entry| entry.outcome.to_string())
            .coloured(&|entry| (entry.outcome == AuditOutcome::Refused).then_some(Colour::Yellow)),
        Of::text("ACTOR", &|entry| entry.fact.by.to_string()),
        Of::optional("FROM", &|entry| or_dash(entry.from.map(|from| from.to_string()).as_deref())),
        Of::new("FACT", &|entry| fact::code(&entry.fact)),
        Of::text("DETAIL", &|entry| fact::in_audit(&entry.fact, entry.from)),
    ]
}
