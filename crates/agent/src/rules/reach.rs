//! Unreachable rules: those that contradict themselves, and those shadowed by earlier rules.
//!
//! Algorithm: enumerate representative events (boundary values). Rules test a few words and two durations, and a
//! duration matters only at, just below or just above a bound that some rule names. A rule is reachable if one
//! representative of its events matches no earlier rule. The search stops at the first such event.

use std::collections::BTreeSet;
use std::time::Duration;

use notbefore_client::document::{EventKind, EventSource};

use super::matching::MatchInput;
use super::{DurationRange, Rule};

/// Smallest difference between two durations.
const GRAIN: Duration = Duration::from_nanos(1);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// No event satisfies all conditions.
    #[error("the rule `{rule}` can never match: its conditions contradict each other ({why})")]
    Contradiction { rule: String, why: &'static str },
    /// Earlier rules match all its events; `before` lists them.
    #[error(
        "the rule `{rule}` can never match: the first match applies, and all its events are taken by {before}; \
         put it before them, or narrow them"
    )]
    Shadowed { rule: String, before: String },
}

/// Most representatives tried for one rule. Only contrived rules need more; they count as reachable.
const MATCH_INPUTS_MAX: usize = 20_000;

/// The rules that can never match, in order.
pub fn unreachable(rules: &[Rule]) -> Vec<Unreachable> {
    let reached = rules.iter().enumerate().map(|(place, rule)| reach(rule, &rules[..place]));
    reached.filter_map(Result::err).collect()
}

/// Whether some event matches this rule and no earlier one.
fn reach(rule: &Rule, before: &[Rule]) -> Result<(), Unreachable> {
    let mut takers = BTreeSet::new();
    let mut looked_at = 0;
    let left = any_match_input(rule, before, |match_input| {
        looked_at += 1;
        match before.iter().position(|earlier| earlier.matches.covers(&match_input)) {
            Some(taker) => {
                takers.insert(taker);
                looked_at > MATCH_INPUTS_MAX
            }
            None => true,
        }
    });
    if left {
        return Ok(());
    }
    let rule_name = rule.name.clone();
    if takers.is_empty() {
        return Err(Unreachable::Contradiction { rule: rule_name, why: contradiction(rule) });
    }
    let names: Vec<String> = takers.iter().map(|place| format!("`{}`", before[*place].name)).collect();
    Err(Unreachable::Shadowed { rule: rule_name, before: names.join(", ") })
}

fn contradiction(rule: &Rule) -> &'static str {
    let empty = |within: &DurationRange| {
        within.at_least.zip(within.at_most).is_some_and(|(least, most)| least > most)
    };
    if empty(&rule.matches.time_left) {
        "time_left.at_least is more than time_left.at_most"
    } else if !rule.matches.advisory
        && rule.matches.kinds.iter().all(|kind| *kind == EventKind::SpotRebalanceRecommendation)
        && !rule.matches.kinds.is_empty()
    {
        "all its types are advisories, and advisory is false"
    } else {
        "duration.at_least is more than duration.at_most, and duration.unknown is not true"
    }
}

/// Enumerates one representative of every class of events that these rules distinguish, until `wanted` accepts one.
fn any_match_input(rule: &Rule, before: &[Rule], mut wanted: impl FnMut(MatchInput<'_>) -> bool) -> bool {
    let rules = || before.iter().chain([rule]);
    // A type that no rule names represents all unknown types.
    let other = EventKind::Other(String::new());
    let kinds: BTreeSet<&EventKind> = match rule.matches.kinds.is_empty() {
        true => {
            rules().flat_map(|rule| &rule.matches.kinds).chain(&EventKind::KNOWN).chain([&other]).collect()
        }
        false => rule.matches.kinds.iter().collect(),
    };
    let sources: BTreeSet<Option<&EventSource>> = match rule.matches.sources.is_empty() {
        true => rules().flat_map(|rule| &rule.matches.sources).map(Some).chain([None]).collect(),
        false => rule.matches.sources.iter().map(Some).collect(),
    };
    let times = either_side(rules().map(|rule| &rule.matches.time_left));
    let durations = either_side(rules().map(|rule| &rule.matches.duration.within));
    let durations: Vec<Option<Duration>> = durations.into_iter().map(Some).chain([None]).collect();
    let lengths =
        times.iter().flat_map(|time_left| durations.iter().map(move |duration| (*time_left, *duration)));
    let lengths: Vec<_> = lengths.collect();
    let is_possible =
        |(kind, advisory): &(&EventKind, bool)| *advisory || **kind != EventKind::SpotRebalanceRecommendation;
    let mut classes = kinds.iter().flat_map(|kind| [(*kind, false), (*kind, true)]).filter(is_possible);
    classes.any(|(kind, advisory)| {
        sources.iter().any(|source| {
            [true, false].into_iter().any(|mine| {
                lengths.iter().any(|&(time_left, duration)| {
                    let match_input =
                        MatchInput { kind, advisory, source: *source, mine, duration, time_left };
                    rule.matches.covers(&match_input) && wanted(match_input)
                })
            })
        })
    })
}

/// Each bound, and the values just below and above it.
fn either_side<'a>(withins: impl Iterator<Item = &'a DurationRange>) -> BTreeSet<Duration> {
    let bounds = withins.flat_map(|within| [within.at_least, within.at_most]).flatten();
    bounds
        .flat_map(|bound| [bound.saturating_sub(GRAIN), bound, bound.saturating_add(GRAIN)])
        .chain([Duration::ZERO])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Approve, DurationMatch, Match, ResourceMatch, Restore};

    fn rule(name: &str, matches: Match) -> Rule {
        let (before, after) = (Vec::new(), Vec::new());
        Rule {
            name: name.into(),
            matches,
            before,
            approve: Approve::Never,
            after,
            restore: Restore::Gone,
            drain: false,
        }
    }

    fn kinds(kinds: &[EventKind]) -> Match {
        Match { kinds: kinds.to_vec(), ..Match::default() }
    }

    fn seconds(least: Option<u64>, most: Option<u64>) -> DurationRange {
        DurationRange { at_least: least.map(Duration::from_secs), at_most: most.map(Duration::from_secs) }
    }

    #[test]
    fn disjoint_rules_are_reachable() {
        let rules = [
            rule(
                "short freeze",
                Match {
                    duration: DurationMatch { within: seconds(None, Some(10)), unknown: false },
                    ..kinds(&[EventKind::Freeze])
                },
            ),
            rule("freeze", kinds(&[EventKind::Freeze])),
            rule("late", Match { time_left: seconds(None, Some(60)), ..Match::default() }),
            rule("others", Match { resources: ResourceMatch::Others, ..Match::default() }),
            rule("rest", Match { resources: ResourceMatch::Any, ..Match::default() }),
        ];
        assert_eq!(unreachable(&rules), []);
    }

    #[test]
    fn rule_after_catch_all_is_unreachable() {
        let rules = [rule("all", Match::default()), rule("freeze", kinds(&[EventKind::Freeze]))];
        let found = unreachable(&rules);
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().contains("`freeze` can never match"), "{}", found[0]);
        assert!(found[0].to_string().contains("taken by `all`"), "{}", found[0]);
    }

    #[test]
    fn rule_after_covering_rules_is_unreachable() {
        let half = |least, most| Match { time_left: seconds(least, most), ..kinds(&[EventKind::Reboot]) };
        let rules = [
            rule("early", half(Some(60), None)),
            rule("late", half(None, Some(60))),
            rule("never", kinds(&[EventKind::Reboot])),
        ];
        let found = unreachable(&rules);
        assert_eq!(found, [Unreachable::Shadowed { rule: "never".into(), before: "`early`, `late`".into() }]);
    }

    #[test]
    fn nanosecond_gap_makes_rule_reachable() {
        let half = |least, most| Match { time_left: seconds(least, most), ..Match::default() };
        let rules = [
            rule("early", half(Some(61), None)),
            rule("late", half(None, Some(60))),
            rule("between", Match::default()),
        ];
        assert_eq!(unreachable(&rules), []);
    }

    #[test]
    fn maximum_rule_count_is_checked_quickly() {
        let most = crate::rules::RULES_MAX as u64;
        let rules: Vec<Rule> = (0..most)
            .map(|number| {
                let kinds = (0..8).map(|kind| EventKind::Other(format!("{number}-{kind}"))).collect();
                let duration =
                    DurationMatch { within: seconds(Some(number), Some(2 * most - number)), unknown: false };
                rule(
                    "r",
                    Match {
                        kinds,
                        duration,
                        time_left: seconds(Some(number), Some(3 * most)),
                        ..Match::default()
                    },
                )
            })
            .collect();
        assert_eq!(unreachable(&rules), []);
        // In reverse, the first rule shadows all others, and every representative is tried.
        let all = Match { resources: ResourceMatch::Any, ..Match::default() };
        let rules: Vec<Rule> = [rule("all", all)].into_iter().chain(rules).take(most as usize).collect();
        assert!(unreachable(&rules).len() < rules.len());
    }

    #[test]
    fn advisories_match_only_rules_that_ask_for_them() {
        let advisory = kinds(&[EventKind::SpotRebalanceRecommendation]);
        let asks = Match { advisory: true, ..advisory.clone() };
        assert_eq!(unreachable(&[rule("all", Match::default()), rule("advisory", asks)]), []);
        let found = unreachable(&[rule("never", advisory)]);
        assert!(matches!(&found[0], Unreachable::Contradiction { why, .. } if why.contains("advisory")));
    }

    #[test]
    fn bounds_that_cross_are_a_contradiction() {
        let time = rule("time", Match { time_left: seconds(Some(2), Some(1)), ..Match::default() });
        let duration = DurationMatch { within: seconds(Some(2), Some(1)), unknown: false };
        let duration = rule("duration", Match { duration, ..Match::default() });
        let found = unreachable(&[time, duration]);
        assert!(matches!(&found[0], Unreachable::Contradiction { why, .. } if why.contains("time_left")));
        assert!(matches!(&found[1], Unreachable::Contradiction { why, .. } if why.contains("duration")));
    }
}
