//! Clock hold: after the wall clock has jumped, it is not trusted for a while.
//!
//! A clock that is wrong for two seconds must not start an event a day early. While the hold lasts, the passing of
//! time alone does nothing to the events that were there before the jump: they do not start at their NotBefore, and
//! simulated ones do not end. What a person or a guest asks for, and events that were announced since, go on.
//! When a hold begins and ends is decided by `notbefore_engine::ClockWatch`.

use std::collections::HashSet;

use crate::ids::EventId;

/// The events that wait for the end of the hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockHold {
    events: HashSet<EventId>,
}

impl ClockHold {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are none; the clock may not be trusted all the same.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether the clock alone does nothing to an event.
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
