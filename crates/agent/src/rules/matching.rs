//! Which rule an event is for.

use std::time::Duration;

use notbefore_client::document::{EventKind, EventSource};

use super::{DurationMatch, Match, Rule, Whose, Within};

/// What rules look at in an event.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
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
pub fn first<'r>(rules: &'r [Rule], sight: &Sight<'_>) -> Option<&'r Rule> {
    rules.iter().find(|rule| rule.matches.covers(sight))
}

impl Match {
    /// Whether this is an event that the rule is for.
    pub fn covers(&self, sight: &Sight<'_>) -> bool {
        self.covers_but_for_time(sight) && self.time_left.holds(sight.time_left)
    }

    /// Whether it is, or will be when its time has come.
    pub fn covers_but_for_time(&self, sight: &Sight<'_>) -> bool {
        let kind = self.kinds.is_empty() || self.kinds.contains(sight.kind);
        let source =
            self.sources.is_empty() || sight.source.is_some_and(|source| self.sources.contains(source));
        let whose = match self.resources {
            Whose::Mine => sight.mine,
            Whose::Others => !sight.mine,
            Whose::Any => true,
        };
        kind && source && whose && self.duration.holds(sight.duration)
    }
}

impl Within {
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
