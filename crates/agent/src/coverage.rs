//! Coverage of the rules: which events of this VM no rule matches, for `notbefore agent check`.
//!
//! Algorithm: boundary values, as in `rules/reach.rs`. For every event type, it tries one event of each class of source
//! and duration that the rules distinguish. Time needs no classes: NotBefore only comes closer, so an event that no
//! rule matches with all the time in the world is never matched, and one that is matched without any time always is.
//! Advisories need no rule.

use std::time::Duration;

use notbefore_client::document::{EventKind, EventSource};
use notbefore_settings::span;
use serde::Serialize;

use crate::rules::matching::{MatchInput, may_match};
use crate::rules::{DurationMatch, Rule};

/// In [`Gap::type`]: the types that this release does not know.
const OTHER: &str = "other";

/// Events of this VM that no rule matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// The event type, or `other` for types that this release does not know.
    pub r#type: String,
    /// One such event, in words. None if no event of the type is matched.
    pub example: Option<String>,
}

type Class<'a> = (Option<&'a EventSource>, Option<Duration>);

/// The gaps of the rules, one per event type at most.
pub fn gaps(rules: &[Rule]) -> Vec<Gap> {
    let usual = [EventSource::Platform, EventSource::User];
    let named = rules.iter().flat_map(|rule| &rule.matches.sources).filter(|named| !usual.contains(named));
    let sources = usual.iter().chain(named).map(Some).chain([None]);
    // Durations of events are whole seconds.
    let ranges = rules.iter().map(|rule| &rule.matches.duration.within);
    let bounds = ranges.flat_map(|within| [within.at_least, within.at_most]).flatten();
    let step = Duration::from_secs(1);
    let lengths = bounds.flat_map(|bound| [bound.saturating_sub(step), bound, bound.saturating_add(step)]);
    let mut durations: Vec<Option<Duration>> =
        lengths.chain([Duration::ZERO]).map(Some).chain([None]).collect();
    durations.sort_unstable();
    durations.dedup();
    let classes: Vec<Class<'_>> =
        sources.flat_map(|source| durations.iter().map(move |duration| (source, *duration))).collect();
    let other = EventKind::Other(String::new());
    let happens = |kind: &&EventKind| **kind != EventKind::SpotRebalanceRecommendation;
    EventKind::KNOWN
        .iter()
        .filter(happens)
        .chain([&other])
        .filter_map(|kind| gap(rules, kind, &classes))
        .collect()
}

fn input<'a>(kind: &'a EventKind, (source, duration): Class<'a>, time_left: Duration) -> MatchInput<'a> {
    MatchInput { kind, advisory: false, source, mine: true, duration, time_left }
}

fn gap(rules: &[Rule], kind: &EventKind, classes: &[Class<'_>]) -> Option<Gap> {
    let open_at = |time_left| {
        classes.iter().copied().filter(move |class| !may_match(rules, &input(kind, *class, time_left)))
    };
    let r#type = match kind {
        EventKind::Other(_) => OTHER.to_owned(),
        EventKind::Freeze
        | EventKind::Reboot
        | EventKind::Redeploy
        | EventKind::Preempt
        | EventKind::Terminate
        | EventKind::SpotRebalanceRecommendation => kind.to_string(),
    };
    let never: Vec<Class<'_>> = open_at(Duration::MAX).collect();
    if never.len() == classes.len() {
        return Some(Gap { r#type, example: None });
    }
    let example = match never.first() {
        Some(class) => words(rules, class),
        None => {
            let late = open_at(Duration::ZERO).next()?;
            let input = input(kind, late, Duration::ZERO);
            let fitting = rules.iter().filter(|rule| rule.matches.covers_ignoring_time(&input));
            let least = fitting.filter_map(|rule| rule.matches.time_left.at_least).min()?;
            format!("first seen less than {} before NotBefore", span::show(least.as_secs()))
        }
    };
    Some(Gap { r#type, example: Some(example) })
}

/// The class in words; only what rules distinguish.
fn words(rules: &[Rule], (source, duration): &Class<'_>) -> String {
    let by_source = rules.iter().any(|rule| !rule.matches.sources.is_empty()).then(|| match source {
        Some(source) => format!("requested by {}", source.as_str()),
        None => "of unknown source".to_owned(),
    });
    let distinguishes = |rule: &Rule| rule.matches.duration != DurationMatch::default();
    let by_duration = rules.iter().any(distinguishes).then(|| match duration {
        Some(duration) => format!("lasting {}", span::show(duration.as_secs())),
        None => "of unknown duration".to_owned(),
    });
    by_source.into_iter().chain(by_duration).collect::<Vec<_>>().join(" and ")
}

/// The gaps in sentences; none if there are no gaps.
pub fn describe(gaps: &[Gap]) -> Vec<String> {
    let name = |gap: &Gap| match gap.r#type.as_str() {
        OTHER => "types that this release does not know".to_owned(),
        known => known.to_owned(),
    };
    let whole: Vec<String> = gaps.iter().filter(|gap| gap.example.is_none()).map(name).collect();
    let mut lines = Vec::new();
    if !whole.is_empty() {
        lines.push(format!("no rule matches these events of this VM: {}", whole.join(", ")));
    }
    for gap in gaps {
        if let Some(example) = &gap.example {
            lines.push(format!(
                "no rule matches some events of this VM: {}, for example {example}",
                name(gap)
            ));
        }
    }
    if !lines.is_empty() {
        lines.push(
            "  the agent neither prepares for them nor approves them; they start at NotBefore".to_owned(),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{self, Sources};

    fn found(text: &str) -> Vec<(String, String)> {
        let config = config::read(Path::new("a.toml"), text, &Sources::default()).unwrap();
        let gap = |gap: Gap| (gap.r#type, gap.example.unwrap_or_default());
        gaps(&config.rules).into_iter().map(gap).collect()
    }

    fn gap(kind: &str, example: &str) -> (String, String) {
        (kind.to_owned(), example.to_owned())
    }

    #[test]
    fn catch_all_rule_has_no_gaps() {
        assert_eq!(found("[[rule]]\nname = 'all'\n"), []);
        assert_eq!(found(config::SAMPLE), []);
        assert_eq!(
            found("[[rule]]\nname = 'late'\ntime_left = { at_most = '1h' }\n"),
            [],
            "it matches later"
        );
    }

    #[test]
    fn types_without_a_rule_are_gaps() {
        let found = found("[[rule]]\nname = 'a'\ntypes = ['reboot', 'redeploy', 'preempt']\n");
        assert_eq!(found, [gap("Freeze", ""), gap("Terminate", ""), gap("other", "")]);
    }

    #[test]
    fn rule_for_other_vms_covers_nothing_of_this_vm() {
        let found = found("[[rule]]\nname = 'a'\nresources = 'others'\n");
        assert_eq!(found.len(), 6, "{found:?}");
    }

    #[test]
    fn partly_covered_type_has_an_example() {
        let of = |condition: &str| {
            let found = found(&format!("[[rule]]\nname = 'a'\n{condition}\n"));
            assert!(found.iter().all(|(_, example)| *example == found[0].1), "{found:?}");
            found[0].1.clone()
        };
        assert_eq!(of("sources = ['Platform']"), "requested by User");
        assert_eq!(of("sources = ['Platform', 'User']"), "of unknown source");
        assert_eq!(of("duration = { at_most = '10s' }"), "of unknown duration");
        assert_eq!(of("duration = { at_least = '1m' }"), "lasting 0s");
        assert_eq!(of("time_left = { at_least = '10s' }"), "first seen less than 10s before NotBefore");
        let halves = "duration = { at_most = '10s', unknown = true }\n[[rule]]\nname = 'b'\nduration = { at_least = '11s' }";
        assert_eq!(
            found(&format!("[[rule]]\nname = 'a'\n{halves}\n")),
            [],
            "there are no fractions of a second"
        );
    }

    #[test]
    fn gaps_are_sentences() {
        let gap = |kind: &str, example: Option<&str>| Gap {
            r#type: kind.to_owned(),
            example: example.map(str::to_owned),
        };
        assert_eq!(describe(&[]), [""; 0]);
        assert_eq!(
            describe(&[gap("Freeze", None), gap("Reboot", Some("requested by User")), gap("other", None)]),
            [
                "no rule matches these events of this VM: Freeze, types that this release does not know",
                "no rule matches some events of this VM: Reboot, for example requested by User",
                "  the agent neither prepares for them nor approves them; they start at NotBefore",
            ]
        );
    }
}
