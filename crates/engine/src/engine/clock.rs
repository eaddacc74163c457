//! Clock hold: starts when the clock jumped or contradicts the store, and ends when it is trusted again. See
//! [`notbefore_core::clock_hold`] for what waits, and [`crate::ClockWatch`] for how long.

use jiff::{SignedDuration, Timestamp};
use notbefore_core::{ClockHold, Event, EventId, Scope, ScopeId};

use super::Engine;
use crate::state::{OwnRecord, PublishedChange, Revisioned};

/// How far the clock may be behind the last time at which the service ran.
const BEHIND_MAX: SignedDuration = SignedDuration::from_secs(60);
/// How far the clock may be ahead of that time if an event is due by it.
const AHEAD_MAX: SignedDuration = SignedDuration::from_hours(24);

impl Engine {
    pub fn is_clock_held(&self) -> bool {
        self.state.clock_hold().is_some()
    }

    /// Number of held events; none if there is no hold.
    pub fn events_held(&self) -> Option<usize> {
        self.state.clock_hold().map(ClockHold::len)
    }

    /// Whether the clock is more than a day ahead of the last time at which the service ran: after a long stop, or
    /// because it is wrong.
    pub fn is_clock_far_ahead(&self, now: Timestamp) -> bool {
        self.state.alive().is_some_and(|alive| now.duration_since(alive) > AHEAD_MAX)
    }

    /// Records the boot time by the current clock; ignored during a hold.
    pub fn note_booted_at(&mut self, at: Timestamp) {
        if !self.is_clock_held() {
            self.state.set_booted_at(at);
        }
    }

    /// Checks the clock at the start against the store. If the service last ran in this boot, the boot time shows
    /// whether the clock was set since, also during a hold that a restart interrupted.
    pub(super) fn check_clock_at_start(&mut self, now: Timestamp) {
        let behind = self.state.alive().is_some_and(|alive| alive.duration_since(now) > BEHIND_MAX);
        let was_set = self.state.clock_set_by().is_some_and(|by| by.abs() > BEHIND_MAX);
        if was_set || behind || (self.is_clock_far_ahead(now) && self.is_anything_due(now)) {
            self.hold_clock(SignedDuration::ZERO);
        }
    }

    fn is_anything_due(&self, now: Timestamp) -> bool {
        let hosts = self.state.host_operations();
        let host_is_due = |id| hosts.due(id).is_some_and(|due| due.at <= now);
        self.state.scopes_with_events().any(|(id, held)| {
            held.value.next_due(hosts.parts_in(id), None, now).is_some_and(|due| due <= now)
        }) || hosts.ids().any(host_is_due)
    }

    /// Holds all events, including those whose commit is in flight.
    pub(super) fn hold_clock(&mut self, jumped_by: SignedDuration) {
        self.clock_jumped_by = self.clock_jumped_by.saturating_add(jumped_by);
        let ids = |scope: &Scope| scope.events.iter().map(|event| event.id).collect::<Vec<EventId>>();
        let scopes = self.state.scopes_with_events();
        let mut events: Vec<EventId> = scopes.flat_map(|(_, held)| ids(&held.value)).collect();
        for (_, made) in self.jobs.values().flat_map(|job| &job.own_records) {
            if let OwnRecord::Scope(scope) = made {
                events.extend(ids(scope));
            }
        }
        self.state.hold_clock(Some(ClockHold::from_iter(events)));
    }

    /// Holds events that the watch shows for the first time during a hold: their commit had an unknown outcome, so they
    /// may have been announced before the jump.
    pub(super) fn hold_new_events(
        &mut self,
        change: Option<&PublishedChange>,
        before: Option<&Revisioned<Scope>>,
    ) {
        let (Some(hold), Some(PublishedChange::Scope(_, _, Some(after)))) = (self.state.clock_hold(), change)
        else {
            return;
        };
        let is_new = |event: &&Event| before.is_none_or(|before| before.value.event(event.id).is_none());
        let new: Vec<EventId> = after.value.events.iter().filter(is_new).map(|event| event.id).collect();
        if !new.is_empty() {
            let mut hold = hold.clone();
            hold.extend(new);
            self.state.hold_clock(Some(hold));
        }
    }

    /// Ends the hold: due events proceed.
    pub(super) fn trust_clock(&mut self, now: Timestamp) {
        self.clock_jumped_by = SignedDuration::ZERO;
        self.state.hold_clock(None);
        // Times from a clock that was set back lie in the future, and would count too long.
        self.last_polls.values_mut().for_each(|heard| heard.at = heard.at.min(now));
        self.store_alive_at = now;
        if !self.polls_to_store.is_empty() {
            self.store_polls_at = Some(now);
        }
        self.renew_all_deadlines(now);
    }

    /// Recomputes all deadlines, after a hold has started or ended.
    pub(super) fn renew_all_deadlines(&mut self, now: Timestamp) {
        if !self.role.leads() {
            return;
        }
        let scopes: Vec<ScopeId> = self.state.scopes_with_events().map(|(id, _)| id.clone()).collect();
        for scope in scopes {
            self.renew_deadline(&scope, now);
        }
        self.recheck_all_hosts();
    }
}
