//! Applies a document: finds new, changed and vanished events, and converts NotBefore into deadlines.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_client::clock::Moment;
use notbefore_client::document::{Document, Event, EventKind, EventStatus, EventsVersion};

use super::io::FactKind;
use super::tracked_event::{AfterRestore, Approval, Boot, End, Phase, Presence, Start, TrackedEvent};
use super::{Turn, settle};
use crate::rules::ResourceMatch;
use crate::rules::matching::first;

/// Assumed notice of a Preempt event without NotBefore.
pub const PREEMPT_NOTICE: Duration = Duration::from_secs(30);

/// Tolerance before a moved deadline counts as a change: the platform's clock has whole seconds, and responses take
/// time. Larger differences occur because ticks stop while a VM is frozen.
const ANCHOR_SLACK: Duration = Duration::from_secs(2);

/// The platform's current time. Its clock has whole seconds, so the true time lies within the second it names. This
/// VM's clock supplies the fraction if it agrees with that second; otherwise the latest possible time is assumed.
pub(super) fn platform_time(served_at: Option<Timestamp>, now: Moment) -> Timestamp {
    let Some(earliest) = served_at else { return now.wall };
    let latest = earliest.saturating_add(SignedDuration::from_secs(1)).unwrap_or(earliest);
    if (earliest..=latest).contains(&now.wall) { now.wall } else { latest }
}

/// Whether a Preempt event lacks NotBefore; it then gets [`PREEMPT_NOTICE`].
pub(super) fn has_implicit_notice(event: &Event) -> bool {
    event.kind == EventKind::Preempt && event.not_before.is_none() && event.status != EventStatus::Started
}

impl Turn<'_> {
    /// Applies a document. Older api-versions do not list every type of event, so absence there is no evidence.
    pub(super) fn read(&mut self, document: Document, served_at: Timestamp, version: EventsVersion) {
        self.state.resting_until = None;
        for index in 0..self.state.events.len() {
            let Event { id, kind, .. } = &self.state.events[index].event;
            if !document.events.iter().any(|listed| listed.id == *id) && kind.is_shown_at(version) {
                self.on_gone(index);
            }
        }
        let booted = std::mem::take(&mut self.state.unheard_boot);
        for mut event in document.events {
            if event.is_advisory() {
                // An advisory never starts, whatever the document says.
                event.status = EventStatus::Advisory;
            }
            match self.state.events.iter().position(|handled| handled.event.id == event.id) {
                Some(index) => self.on_seen_again(index, event, served_at),
                None => self.on_appeared(event, served_at, booted),
            }
        }
    }

    /// Recomputes deadlines from the platform's time: after a freeze, this VM's ticks lag behind.
    pub(super) fn anchor(&mut self, served_at: Timestamp) {
        for index in 0..self.state.events.len() {
            let handled = &self.state.events[index];
            let Some(deadline) = self.deadline(&handled.event, served_at).filter(|_| handled.is_listed())
            else {
                continue;
            };
            // How long a deadline is overdue makes no difference and is not worth a journal write.
            let now = self.now.tick;
            let differs =
                |before: Duration| before.abs_diff(deadline) > ANCHOR_SLACK && before.max(deadline) > now;
            if handled.deadline().is_none_or(differs) {
                self.state.events[index].presence = Presence::Waiting { deadline: Some(deadline) };
            }
        }
    }

    /// Re-evaluates the ownership of all events after this VM's name changed.
    pub(super) fn on_renamed(&mut self) {
        for index in 0..self.state.events.len() {
            let handled = &self.state.events[index];
            let mine = self.is_mine(&handled.event);
            if handled.is_listed() && self.update_ownership(index, mine) {
                self.report_appeared(index);
            }
        }
    }

    /// The tick of NotBefore, relative to the platform's clock. An advisory has none.
    fn deadline(&self, event: &Event, served_at: Timestamp) -> Option<Duration> {
        let scheduled = event.status != EventStatus::Started && !event.is_advisory();
        let not_before = event.not_before.filter(|_| scheduled)?;
        let left = Duration::try_from(not_before.duration_since(served_at)).unwrap_or(Duration::ZERO);
        Some(self.now.tick.saturating_add(left))
    }

    /// Presence of a new or returned event; applies [`PREEMPT_NOTICE`].
    fn first_presence(&self, event: &Event, served_at: Timestamp) -> Presence {
        let unsaid = || has_implicit_notice(event).then(|| self.now.tick.saturating_add(PREEMPT_NOTICE));
        match event.status {
            EventStatus::Started => Presence::Started(Start::Said),
            EventStatus::Scheduled | EventStatus::Advisory | EventStatus::Other(_) => {
                Presence::Waiting { deadline: self.deadline(event, served_at).or_else(unsaid) }
            }
        }
    }

    /// Adds a new event. If it has started when the VM first sees it after a boot, it most likely caused the boot:
    /// nothing is left to prepare.
    fn on_appeared(&mut self, event: Event, served_at: Timestamp, booted: bool) {
        let mine = self.is_mine(&event);
        let presence = self.first_presence(&event, served_at);
        let boot = if booted && event.status == EventStatus::Started { Boot::Heard } else { Boot::None };
        self.state.events.push(TrackedEvent {
            event,
            mine,
            seen_at: self.now.wall,
            presence,
            boot,
            course: None,
            is_unmatched_told: false,
        });
        self.report_appeared(self.state.events.len() - 1);
    }

    fn report_appeared(&mut self, index: usize) {
        let handled = &self.state.events[index];
        let (deadline, mine) = (handled.deadline(), handled.mine);
        let time_left = deadline.map(|deadline| deadline.saturating_sub(self.now.tick));
        self.report(index, FactKind::Appeared { time_left, mine });
    }

    fn is_mine(&self, event: &Event) -> bool {
        event.resources.iter().any(|resource| self.setup.me.is(resource))
    }

    fn on_gone(&mut self, index: usize) {
        let now = self.now.tick;
        let handled = &mut self.state.events[index];
        let may_have_been_booted_for = handled.boot.may_be_caused_by_event();
        handled.boot = handled.boot.confirmed(handled.is_started());
        if !handled.is_listed() {
            return;
        }
        // Documents may be missed: an event that was approved or due has most likely happened meanwhile.
        let approved = matches!(handled.approval(), Approval::Given | Approval::Moot);
        let due = handled.deadline().is_some_and(|deadline| deadline <= now);
        let may_happen = !handled.event.is_advisory();
        let has_happened = may_happen && (approved || due || may_have_been_booted_for);
        let (end, what) = match has_happened || handled.is_started() {
            true => (End::Happened, FactKind::Ended),
            false => (End::Cancelled, FactKind::Cancelled),
        };
        handled.presence = Presence::Gone(end);
        self.report(index, what);
    }

    /// Updates a known event.
    fn on_seen_again(&mut self, index: usize, mut event: Event, served_at: Timestamp) {
        let mine = self.is_mine(&event);
        let (deadline, presence) = (self.deadline(&event, served_at), self.first_presence(&event, served_at));
        let handled = &mut self.state.events[index];
        let was_started = handled.is_started();
        let starts = !was_started && event.status == EventStatus::Started;
        handled.boot = handled.boot.confirmed(was_started || starts);
        if !handled.is_listed() {
            // The event is back: prepare again, by the same rule.
            handled.begin_again();
            (handled.event, handled.presence) = (event, presence);
            self.update_ownership(index, mine);
            return self.report_appeared(index);
        }
        let takes_back = was_started && event.status != EventStatus::Started;
        if takes_back {
            // Status never goes back; the VM stays prepared until the event is gone.
            event.status = EventStatus::Started;
            event.not_before = None;
        }
        let tell_back = takes_back && handled.presence == Presence::Started(Start::Said);
        let changed = handled.event != event && !starts && !takes_back;
        handled.event = event;
        handled.presence = match handled.presence {
            Presence::Started(_) if takes_back => Presence::Started(Start::TakenBack),
            Presence::Started(start) => Presence::Started(start),
            Presence::Waiting { .. } if starts => Presence::Started(Start::Said),
            Presence::Waiting { .. } if handled.event.is_advisory() => Presence::Waiting { deadline: None },
            Presence::Waiting { deadline: before } => Presence::Waiting { deadline: deadline.or(before) },
            Presence::Gone(end) => Presence::Gone(end),
        };
        if let (Presence::Waiting { .. }, Some(course)) = (handled.presence, &mut handled.course)
            && course.approval == Approval::Moot
        {
            // The event counted as started or gone, but still waits.
            course.approval = Approval::Wanted { failures: 0, due: self.now.tick };
        }
        if self.update_ownership(index, mine) {
            self.report_appeared(index);
        }
        if starts {
            let prepared = self.state.events[index].is_prepared();
            self.report(index, FactKind::Started { prepared });
        }
        if tell_back {
            self.report(index, FactKind::WentBack);
        }
        if changed {
            self.report(index, FactKind::Changed);
        }
    }

    /// Updates ownership. Returns whether the event starts over: it was for other VMs only and is now for this one,
    /// so its previous rule no longer applies.
    fn update_ownership(&mut self, index: usize, mine: bool) -> bool {
        let was_mine = std::mem::replace(&mut self.state.events[index].mine, mine);
        let handled = &self.state.events[index];
        let to_approve = self.reason_not_to_approve(handled).is_none();
        let fits = first(&self.setup.rules, &settle::match_input(handled, self.now.tick));
        let same = handled.rule() == fits;
        let has_become_mine = mine && !was_mine;
        let handled = &mut self.state.events[index];
        let Some(course) = &mut handled.course else { return has_become_mine };
        if matches!(course.approval, Approval::NotMine { .. }) && to_approve {
            // Another VM was to approve, and is no longer listed.
            course.approval = Approval::Wanted { failures: 0, due: self.now.tick };
        }
        if !has_become_mine {
            return false;
        }
        match (course.rule.matches.resources, course.phase) {
            // The change of ownership has had no effect yet.
            (ResourceMatch::Mine, Phase::Preparing { .. } | Phase::Ready { .. } | Phase::Withheld { .. }) => {
                false
            }
            (ResourceMatch::Mine, Phase::Over { .. } | Phase::Restoring { .. } | Phase::Done) => {
                handled.begin_again();
                true
            }
            (ResourceMatch::Others | ResourceMatch::Any, _) if same => false,
            (ResourceMatch::Others | ResourceMatch::Any, phase) => {
                self.replace_rule(index, phase);
                true
            }
        }
    }

    /// Another rule applies: undo the work of the current one first.
    fn replace_rule(&mut self, index: usize, phase: Phase) {
        let next = AfterRestore::AnotherRule;
        match phase {
            Phase::Preparing { .. } | Phase::Ready { .. } | Phase::Withheld { .. } => self.lapse(index, next),
            Phase::Over { waits, .. } => self.set(index, Phase::Over { waits, next }),
            Phase::Restoring { progress, .. } => self.set(index, Phase::Restoring { progress, next }),
            Phase::Done => {}
        }
    }
}
