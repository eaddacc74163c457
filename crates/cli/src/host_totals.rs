//! Text of the plan for many hosts: totals, and what needs a look. `--output wide` shows the plan of each host.

use notbefore_wire::operator::hosts::{HostsPlan, ScopeImpact};
use notbefore_wire::operator::plan::Plan;
use notbefore_wire::text::counted;

use crate::args::Output;
use crate::table::Column;
use crate::{many, time};

/// Limit of the scopes that are shown: those that lose most at once.
const SCOPES_SHOWN_MAX: usize = 10;
/// Limit of names in a line.
const NAMES_MAX: usize = 6;

/// Lines for many hosts; none for few.
pub fn lines(plan: &HostsPlan, output: Output) -> Option<Vec<String>> {
    let first = plan.hosts.first().filter(|_| many::shows_totals(plan.hosts.len(), output))?;
    let sum = |of: fn(&Plan) -> usize| plan.hosts.iter().map(of).sum::<usize>();
    let (hit, vms) = plan.scopes.iter().fold((0, 0), |(hit, vms), one| (hit + one.hit, vms + one.vms));
    let mut lines = vec![format!(
        "{}: {} ({}) of {hit} of {} in {}, {}",
        counted(plan.hosts.len(), "host"),
        first.event_type,
        first.cause,
        counted(vms, "VM"),
        counted(plan.scopes.len(), "scope"),
        counted(sum(|host| host.events.len()), "event")
    )];
    let mut fact = |name: &str, value: String| lines.push(format!("  {name:<13}{value}"));
    match first.not_before {
        None => fact("starts", "at once, without notice".to_owned()),
        Some(at) => fact("not before", time::and_from_now(at)),
    }
    let (told, listening, unknown) =
        (sum(|host| host.vms), sum(|host| host.listening), sum(|host| host.listening_unknown));
    let unknown_shown = if unknown == 0 { String::new() } else { format!("; {unknown} unknown") };
    fact("listening", format!("{listening} of {}{unknown_shown}", counted(told, "VM")));
    let silent: Vec<&str> = plan.hosts.iter().flat_map(|host| &host.silent).map(String::as_str).collect();
    if let silent_count @ 1.. = told.saturating_sub(listening + unknown) {
        fact("silent", format!("{silent_count}: {}", named(&silent, silent_count)));
    }
    if let skipped @ 1.. = sum(|host| host.deallocated) {
        fact("skipped", counted(skipped, "deallocated VM"));
    }
    let refused = |host: &Plan| host.events.iter().filter(|event| event.refused.is_some()).count();
    if let refused_count @ 1.. = plan.hosts.iter().map(refused).sum::<usize>() {
        let on = plan.hosts.iter().filter(|host| refused(host) > 0).filter_map(|host| host.host.as_deref());
        fact("refused", format!("{} on {}", counted(refused_count, "event"), all_named(on)));
    }
    let open = plan.hosts.iter().filter(|host| !host.operations.is_empty());
    let open: Vec<&str> = open.filter_map(|host| host.host.as_deref()).collect();
    if !open.is_empty() {
        fact("note", format!("operations are still open on {}", all_named(open.into_iter())));
    }
    if !plan.waits.is_empty() {
        let waiting = plan.waits.iter().map(|wait| wait.host.as_str());
        fact("take turns", format!("{} for others: {}", waits(plan.waits.len()), all_named(waiting)));
    }
    let is_whole = |one: &&ScopeImpact| one.at_once == one.vms;
    let whole: Vec<&str> = plan.scopes.iter().filter(is_whole).map(|one| one.scope.as_str()).collect();
    if !whole.is_empty() {
        let scopes = counted(whole.len(), "scope");
        fact("all at once", format!("{scopes} with all of their VMs: {}", named(&whole, whole.len())));
    }
    lines.extend(scopes(&plan.scopes, output));
    lines.push("  --output wide shows the plan of each host, --dry-run --output json all".to_owned());
    Some(lines)
}

/// The scopes that lose the largest part at once.
fn scopes(scopes: &[ScopeImpact], output: Output) -> Vec<String> {
    let mut worst: Vec<&ScopeImpact> = scopes.iter().collect();
    // By the part that is left, in whole VMs: no scope is empty.
    worst.sort_by(|one, two| (two.at_once * one.vms.max(1)).cmp(&(one.at_once * two.vms.max(1))));
    let more = worst.len().saturating_sub(SCOPES_SHOWN_MAX);
    worst.truncate(SCOPES_SHOWN_MAX);
    let columns = [
        Column::path("SCOPE", &|one: &&ScopeImpact| one.scope.clone()),
        Column::new("VMS", &|one| one.vms.to_string()),
        Column::new("AFFECTED", &|one| one.hit.to_string()),
        Column::new("AT ONCE", &|one| one.at_once.to_string()),
        Column::optional("HOSTS", &|one| one.hosts.to_string()),
    ];
    let mut lines = output.indented_table_lines(&worst, &columns);
    if more > 0 {
        lines.push(format!("  and {}, which lose no larger part at once", counted(more, "more scope")));
    }
    lines
}

fn waits(count: usize) -> String {
    format!("{} {}", counted(count, "host"), if count == 1 { "waits" } else { "wait" })
}

/// The first names, and how many there are more of all.
fn named(names: &[&str], all: usize) -> String {
    let shown = names.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    match all.saturating_sub(names.len().min(NAMES_MAX)) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn all_named<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    named(&names, names.len())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A plan for hosts with ten VMs each: one VM of each scope.
    fn plan(hosts: usize) -> HostsPlan {
        let event = |scope: usize| {
            let resources = [json!({ "vm": uuid::Uuid::nil(), "name": "a" })];
            json!({ "scope": format!("d/d/s{scope}"), "update_domain": 0, "resources": resources, "listening": 1 })
        };
        let host = |n: usize| {
            json!({
                "host": format!("h{n}"), "type": "Reboot", "cause": "host-reboot", "release": "together",
                "not_before": null, "notice_seconds": null, "vms": 10, "scopes": 10, "deallocated": 0,
                "listening": 9, "listening_unknown": 0, "silent": [format!("d/d/s0/vm-{n}")],
                "events": (0..10).map(event).collect::<Vec<Value>>(), "operations": [],
            })
        };
        let scope = |n: usize| {
            let at_once = if n == 3 { hosts } else { 1 };
            json!({ "scope": format!("d/d/s{n}"), "vms": hosts, "hit": hosts, "at_once": at_once, "hosts": hosts })
        };
        let wait = |n: usize| json!({ "host": format!("h{n}"), "waits_for": ["h0"], "scopes": ["d/d/s0"] });
        let plan = json!({
            "hosts": (0..hosts).map(host).collect::<Vec<_>>(),
            "scopes": (0..12).map(scope).collect::<Vec<_>>(),
            "waits": (1..hosts).map(wait).collect::<Vec<_>>(),
        });
        serde_json::from_value(plan).unwrap()
    }

    #[test]
    fn plan_of_many_hosts_has_totals_first() {
        let lines = lines(&plan(40), Output::Table).unwrap();
        let text = lines.join("\n");
        assert_eq!(lines[0], "40 hosts: Reboot (host-reboot) of 480 of 480 VMs in 12 scopes, 400 events");
        assert!(lines.len() < 24, "{text}");
        for said in [
            "listening    360 of 400 VMs",
            "silent       40: d/d/s0/vm-0, ",
            "d/d/s0/vm-5 and 34 more",
            "take turns   39 hosts wait for others: h1, h2, h3, h4, h5, h6 and 33 more",
            "all at once  1 scope with all of their VMs: d/d/s3",
            "and 2 more scopes",
            "--output wide shows the plan of each host",
        ] {
            assert!(text.contains(said), "{said} is missing:\n{text}");
        }
        let table = lines.iter().position(|line| line.contains("AT ONCE")).unwrap();
        assert!(lines[table + 1].contains("s3"), "the scope that loses most is first:\n{text}");
    }

    #[test]
    fn few_hosts_and_wide_output_show_each_host() {
        assert_eq!(super::lines(&plan(3), Output::Table), None);
        assert_eq!(super::lines(&plan(40), Output::Wide), None);
    }
}
