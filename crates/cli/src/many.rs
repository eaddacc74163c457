//! Totals and exceptions, in place of a page for each, when a command names many operations or hosts. `--output wide`
//! shows each of them.

use notbefore_wire::operator::{Operation, OperationProgress, OperationState};
use notbefore_wire::text::counted;

use crate::args::Output;
use crate::operation::events;

/// From so many on, totals replace what is said of each: fewer fit a screen.
const MANY: usize = 6;
/// Limit of exceptions in a text.
pub const SHOWN_MAX: usize = 20;

/// Whether there are more than fit a screen.
pub fn are_many(count: usize) -> bool {
    count >= MANY
}

/// Whether to show totals. Programs get everything.
pub fn shows_totals(count: usize, output: Output) -> bool {
    are_many(count) && output == Output::Table
}

/// The first lines, and how many there are more.
pub fn first_lines(mut lines: Vec<String>, rest: &str) -> Vec<String> {
    let more = lines.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        lines.truncate(SHOWN_MAX);
        lines.push(format!("  and {more} more; {rest}"));
    }
    lines
}

/// What operations have in common, and those that need a look.
pub fn totals(operations: &[Operation]) -> Vec<String> {
    let is_open = |one: &&Operation| one.state != OperationState::Closed;
    let open = operations.iter().filter(is_open).count();
    let states = match (open, operations.len() - open) {
        (0, _) => "all closed".to_owned(),
        (open, 0) => format!("{open} open"),
        (open, closed) => format!("{open} open, {closed} closed"),
    };
    let mut lines = vec![
        format!("{}: {states}", counted(operations.len(), "operation")),
        format!("  {}", events(&sum(operations))),
    ];
    lines.extend(first_lines(
        operations.iter().filter_map(exception).collect(),
        "'notbefore operation list' shows those that are open",
    ));
    lines
}

/// What is wrong with an operation.
fn exception(operation: &Operation) -> Option<String> {
    let OperationProgress { failed, refused, .. } = operation.progress;
    let wrong = [(failed, "failed"), (refused, "refused")].into_iter().filter(|(count, _)| *count > 0);
    let wrong: Vec<String> =
        wrong.map(|(count, what)| format!("{} {what}", counted(count, "event"))).collect();
    (!wrong.is_empty()).then(|| format!("  {}: {}", named(operation), wrong.join(", ")))
}

/// An operation with its host, for people.
pub fn named(operation: &Operation) -> String {
    let host = operation.host.as_ref().map(|host| format!(" ({host})")).unwrap_or_default();
    format!("operation {}{host}", operation.id)
}

/// The progress of all. Not of scopes: one of several operations would count for each of them.
fn sum(operations: &[Operation]) -> OperationProgress {
    operations.iter().map(|one| &one.progress).fold(OperationProgress::default(), |mut sum, one| {
        let OperationProgress {
            scopes: _,
            scopes_told: _,
            events,
            waiting,
            approved,
            started,
            failed,
            advisory,
            refused,
            ended,
            cancelled,
        } = one;
        for (all, one) in [
            (&mut sum.events, events),
            (&mut sum.waiting, waiting),
            (&mut sum.approved, approved),
            (&mut sum.started, started),
            (&mut sum.failed, failed),
            (&mut sum.advisory, advisory),
            (&mut sum.refused, refused),
            (&mut sum.ended, ended),
            (&mut sum.cancelled, cancelled),
        ] {
            *all += one;
        }
        sum
    })
}
