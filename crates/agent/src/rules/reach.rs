//! Rules that can never match: those that contradict themselves, and those behind others that take everything first.
//!
//! What a rule looks at is few words and two lengths of time, and lengths only matter on either side of a bound that
//! some rule names. So there is a handful of events that stand for all there could ever be; each of them is shown
//! to the rules, and a rule that is nobody's first can never match.

use std::collections::BTreeSet;
use std::time::Duration;

use notbefore_client::document::{EventKind, EventSource};

use super::matching::Sight;
use super::{Rule, Within};

/// The finest step that a bound can make a difference at.
const GRAIN: Duration = Duration::from_nanos(1);

/// Why a rule can never match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// No event could.
    #[error("the rule `{rule}` can never match: no event is all that it asks for ({why})")]
    Contradiction {
        /// The rule.
        rule: String,
        /// What contradicts itself.
        why: &'static str,
    },
    /// Other rules come first.
    #[error(
        "the rule `{rule}` can never match: the first that matches counts, and everything it is for is taken by {before}; \
         put it before them, or narrow them"
    )]
    Shadowed {
        /// The rule.
        rule: String,
        /// The rules before it that take its events, in their order.
        before: String,
    },
}

/// The rules that can never match, in their order.
pub fn unreachable(rules: &[Rule]) -> Vec<Unreachable> {
    let mut first_of = vec![false; rules.len()];
    let mut behind = vec![BTreeSet::new(); rules.len()];
    for_each_sight(rules, |sight| {
        let mut taker = None;
        for (place, rule) in rules.iter().enumerate() {
            if !rule.matches.covers(&sight) {
                continue;
            }
            match taker {
                None => {
                    taker = Some(place);
                    first_of[place] = true;
                }
                Some(taker) => {
                    behind[place].insert(taker);
                }
            }
        }
    });
    let named = |places: &BTreeSet<usize>| {
        let names: Vec<String> = places.iter().map(|place| format!("`{}`", rules[*place].name)).collect();
        names.join(", ")
    };
    rules
        .iter()
        .enumerate()
        .filter(|(place, _)| !first_of[*place])
        .map(|(place, rule)| match behind[place].is_empty() {
            true => Unreachable::Contradiction { rule: rule.name.clone(), why: contradiction(rule) },
            false => Unreachable::Shadowed { rule: rule.name.clone(), before: named(&behind[place]) },
        })
        .collect()
}

fn contradiction(rule: &Rule) -> &'static str {
    let empty =
        |within: &Within| within.at_least.zip(within.at_most).is_some_and(|(least, most)| least > most);
    if empty(&rule.matches.time_left) {
        "time_left.at_least is more than time_left.at_most"
    } else {
        "duration.at_least is more than duration.at_most, and duration.unknown is false"
    }
}

/// Shows one event of every sort that the rules can tell apart.
fn for_each_sight(rules: &[Rule], mut show: impl FnMut(Sight<'_>)) {
    let mut kinds: Vec<EventKind> = EventKind::KNOWN.to_vec();
    let mut sources = vec![EventSource::Platform, EventSource::User];
    for rule in rules {
        kinds.extend(rule.matches.kinds.iter().cloned());
        sources.extend(rule.matches.sources.iter().cloned());
    }
    // What no rule names stands for all that nobody knows yet.
    kinds.push(EventKind::Other(String::new()));
    kinds.sort();
    kinds.dedup();
    let mut sources: Vec<Option<EventSource>> = sources.into_iter().map(Some).collect();
    sources.push(None);
    sources.sort();
    sources.dedup();
    let times = either_side(rules.iter().map(|rule| &rule.matches.time_left));
    let durations = either_side(rules.iter().map(|rule| &rule.matches.duration.within));
    let durations: Vec<Option<Duration>> = durations.into_iter().map(Some).chain([None]).collect();
    for kind in &kinds {
        for source in &sources {
            for mine in [true, false] {
                for &duration in &durations {
                    for &time_left in &times {
                        show(Sight { kind, source: source.as_ref(), mine, duration, time_left });
                    }
                }
            }
        }
    }
}

/// A length on every bound, and on either side of it.
fn either_side<'a>(withins: impl Iterator<Item = &'a Within>) -> BTreeSet<Duration> {
    let bounds = withins.flat_map(|within| [within.at_least, within.at_most]).flatten();
    bounds
        .flat_map(|bound| [bound.saturating_sub(GRAIN), bound, bound.saturating_add(GRAIN)])
        .chain([Duration::ZERO])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Approve, DurationMatch, Match, Restore, Whose};

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

    fn seconds(least: Option<u64>, most: Option<u64>) -> Within {
        Within { at_least: least.map(Duration::from_secs), at_most: most.map(Duration::from_secs) }
    }

    #[test]
    fn rules_that_share_the_events_are_all_reached() {
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
            rule("others", Match { resources: Whose::Others, ..Match::default() }),
            rule("rest", Match { resources: Whose::Any, ..Match::default() }),
        ];
        assert_eq!(unreachable(&rules), []);
    }

    #[test]
    fn a_rule_behind_one_that_takes_all_is_named_with_it() {
        let rules = [rule("all", Match::default()), rule("freeze", kinds(&[EventKind::Freeze]))];
        let found = unreachable(&rules);
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().contains("`freeze` can never match"), "{}", found[0]);
        assert!(found[0].to_string().contains("taken by `all`"), "{}", found[0]);
    }

    #[test]
    fn several_rules_that_take_all_between_them_are_seen() {
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
    fn a_nanosecond_between_two_rules_is_enough() {
        let half = |least, most| Match { time_left: seconds(least, most), ..Match::default() };
        let rules = [
            rule("early", half(Some(61), None)),
            rule("late", half(None, Some(60))),
            rule("between", Match::default()),
        ];
        assert_eq!(unreachable(&rules), []);
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
