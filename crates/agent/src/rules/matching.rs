//! Rule matching: the first rule whose conditions hold.

use std::time::Duration;

use notbefore_client::document::{EventKind, EventSource};

use super::{DurationMatch, DurationRange, Match, ResourceMatch, Rule};

/// The properties of an event that rules match on.
#[derive(Clone, Copy, Debug)]
pub struct MatchInput<'a> {
    pub kind: &'a EventKind,
    /// Whether it never happens by itself.
    pub advisory: bool,
    /// None if the platform does not report it.
    pub source: Option<&'a EventSource>,
    /// Whether this VM is among its resources.
    pub mine: bool,
    /// None if unknown.
    pub duration: Option<Duration>,
    /// Until NotBefore.
    pub time_left: Duration,
}

pub fn first<'r>(rules: &'r [Rule], match_input: &MatchInput<'_>) -> Option<&'r Rule> {
    rules.iter().find(|rule| rule.matches.covers(match_input))
}

/// Whether some rule matches the event, now or as NotBefore comes closer.
pub fn may_match(rules: &[Rule], match_input: &MatchInput<'_>) -> bool {
    let is_in_time =
        |rule: &Rule| rule.matches.time_left.at_least.is_none_or(|least| match_input.time_left >= least);
    rules.iter().any(|rule| rule.matches.covers_ignoring_time(match_input) && is_in_time(rule))
}

impl Match {
    /// Whether the rule matches the event.
    pub fn covers(&self, match_input: &MatchInput<'_>) -> bool {
        self.covers_ignoring_time(match_input) && self.time_left.holds(match_input.time_left)
    }

    /// Like [`Match::covers`], but without `time_left`: whether the rule matches now or may later.
    pub fn covers_ignoring_time(&self, match_input: &MatchInput<'_>) -> bool {
        let kind = self.kinds.is_empty() || self.kinds.contains(match_input.kind);
        let may_happen = self.advisory || !match_input.advisory;
        let source =
            self.sources.is_empty() || match_input.source.is_some_and(|source| self.sources.contains(source));
        let whose = match self.resources {
            ResourceMatch::Mine => match_input.mine,
            ResourceMatch::Others => !match_input.mine,
            ResourceMatch::Any => true,
        };
        kind && may_happen && source && whose && self.duration.holds(match_input.duration)
    }
}

impl DurationRange {
    pub fn holds(&self, length: Duration) -> bool {
        self.at_least.is_none_or(|least| length >= least) && self.at_most.is_none_or(|most| length <= most)
    }
}

impl DurationMatch {
    /// Whether an expected duration, or an unknown one, matches.
    pub fn holds(&self, duration: Option<Duration>) -> bool {
        duration.map_or(self.unknown, |duration| self.within.holds(duration))
    }
}
