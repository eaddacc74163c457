//! Rules that can never match: those that contradict themselves, and those behind others that take everything first.
//!
//! What a rule looks at is few words and two lengths of time, and lengths only matter on either side of a bound that
//! some rule names. So there is a handful of events that stand for all that a rule is for; each of them is shown to
//! the rules before it, and a rule of which none is left can never match. The search ends with the first that is left.

use std::collections::BTreeSet;
use std::time::Duration;

use notbefore_client::document::{EventKind, EventSource};

use super::matching::MatchInput;
use super::{DurationRange, Rule};

/// The finest step that a bound can make a difference at.
const GRAIN: Duration = Duration::from_nanos(1);

/// Why a rule can never match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// No event could.
    #[error("the rule `{rule}` can never match: no event is all that it asks for ({why})")]
    Contradiction { rule: String, why: &'static str },
    /// Other rules come first: those that take its events, in their order.
    #[error(
        "the rule `{rule}` can never match: the first that matches counts, and everything it is for is taken by {before}; \
         put it before them, or narrow them"
    )]
    Shadowed { rule: String, before: String },
}

/// How many events are looked at for one rule. Only rules that are made for it need more; they are believed.
const MATCH_INPUTS_MAX: usize = 20_000;

/// The rules that can never match, in their order.
pub fn unreachable(rules: &[Rule]) -> Vec<Unreachable> {
    let reached = rules.iter().enumerate().map(|(place, rule)| reach(rule, &rules[..place]));
    reached.filter_map(Result::err).collect()
}

/// Whether there is an event that this rule is the first to match.
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
    } else {
        "duration.at_least is more than duration.at_most, and duration.unknown is not true"
    }
}

/// Shows one event of every sort that a rule is for and that it and those before it can tell apart, until one is `wanted`.
fn any_match_input(rule: &Rule, before: &[Rule], mut wanted: impl FnMut(MatchInput<'_>) -> bool) -> bool {
    let rules = || before.iter().chain([rule]);
    // What no rule names stands for all that nobody knows yet.
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
    kinds.iter().any(|kind| {
        sources.iter().any(|source| {
            [true, false].into_iter().any(|mine| {
                lengths.iter().any(|&(time_left, duration)| {
                    let match_input = MatchInput { kind, source: *source, mine, duration, time_left };
                    rule.matches.covers(&match_input) && wanted(match_input)
                })
            })
        })
    })
}

/// A length on every bound, and on either side of it.
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
        // The other way round every one but the first is taken by the first, and every event has to be looked at.
        let all = Match { resources: ResourceMatch::Any, ..Match::default() };
        let rules: Vec<Rule> = [rule("all", all)].into_iter().chain(rules).take(most as usize).collect();
        assert!(unreachable(&rules).len() < rules.len());
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
