//! Clock hold: the set of events that ignore the wall clock for a while after it has jumped.
//!
//! A clock that is wrong for two seconds must not start an event a day early. During the hold, events from before
//! the jump do not start at their NotBefore, and simulated ones do not end. Requests by operators and guests, and
//! events announced since, proceed as usual. `notbefore_engine::ClockWatch` decides when a hold starts and ends.

use std::collections::HashSet;

use crate::ids::EventId;

/// The events that wait for the end of the hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockHold {
    events: HashSet<EventId>,
}

impl ClockHold {
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// An empty hold is still a hold: the clock is not trusted.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether time alone must not start or end this event.
    pub fn holds(&self, event: EventId) -> bool {
        self.events.contains(&event)
    }
}

impl Extend<EventId> for ClockHold {
    fn extend<I: IntoIterator<Item = EventId>>(&mut self, events: I) {
        self.events.extend(events);
    }
}

impl FromIterator<EventId> for ClockHold {
    fn from_iter<I: IntoIterator<Item = EventId>>(events: I) -> Self {
        Self { events: events.into_iter().collect() }
    }
}
