//! Which rule an event is for.

use std::time::Duration;

use notbefore_client::document::{EventKind, EventSource};

use super::{DurationMatch, DurationRange, Match, ResourceMatch, Rule};

/// What rules look at in an event.
#[derive(Clone, Copy, Debug)]
pub struct MatchInput<'a> {
    /// What it does.
    pub kind: &'a EventKind,
    /// Who asked for it, if the platform says.
    pub source: Option<&'a EventSource>,
    /// Whether this VM is among its resources.
    pub mine: bool,
    /// How long it is expected to last, if anybody knows.
    pub duration: Option<Duration>,
    /// How long it is until NotBefore.
    pub time_left: Duration,
}

/// The first rule that matches.
pub fn first<'r>(rules: &'r [Rule], match_input: &MatchInput<'_>) -> Option<&'r Rule> {
    rules.iter().find(|rule| rule.matches.covers(match_input))
}

impl Match {
    /// Whether this is an event that the rule is for.
    pub fn covers(&self, match_input: &MatchInput<'_>) -> bool {
        self.covers_ignoring_time(match_input) && self.time_left.holds(match_input.time_left)
    }

    /// Whether it is, or will be when its time has come.
    pub fn covers_ignoring_time(&self, match_input: &MatchInput<'_>) -> bool {
        let kind = self.kinds.is_empty() || self.kinds.contains(match_input.kind);
        let source =
            self.sources.is_empty() || match_input.source.is_some_and(|source| self.sources.contains(source));
        let whose = match self.resources {
            ResourceMatch::Mine => match_input.mine,
            ResourceMatch::Others => !match_input.mine,
            ResourceMatch::Any => true,
        };
        kind && source && whose && self.duration.holds(match_input.duration)
    }
}

impl DurationRange {
    /// Whether this lies within the bounds.
    pub fn holds(&self, length: Duration) -> bool {
        self.at_least.is_none_or(|least| length >= least) && self.at_most.is_none_or(|most| length <= most)
    }
}

impl DurationMatch {
    /// Whether an expected duration is what the rule wants.
    pub fn holds(&self, duration: Option<Duration>) -> bool {
        duration.map_or(self.unknown, |duration| self.within.holds(duration))
    }
}
