//! Taking in a document: which events are new, which have changed, which are gone, and when each may begin.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_client::clock::Moment;
use notbefore_client::document::{Document, Event, EventKind, EventStatus, EventsVersion};

use super::handled::{Approval, Handled, Phase};
use super::io::What;
use super::{Turn, settle};
use crate::rules::Whose;
use crate::rules::matching::first;

/// The notice of an eviction, where the platform does not say it.
pub const PREEMPT_NOTICE: Duration = Duration::from_secs(30);

/// How far NotBefore may be from where it was thought to be before that is taken for news: the platform's clock tells whole
/// seconds, and an answer takes some time. Ticks stand still while a VM is frozen.
const ANCHOR_SLACK: Duration = Duration::from_secs(2);

/// What time it is for the platform. Its own clock tells whole seconds: the moment lies in the second that it names. This
/// VM's clock says where, if it agrees with that; if it does not, it is taken to be as late as it may be.
pub(super) fn platform_time(served_at: Option<Timestamp>, now: Moment) -> Timestamp {
    let Some(earliest) = served_at else { return now.wall };
    let latest = earliest.saturating_add(SignedDuration::from_secs(1)).unwrap_or(earliest);
    if (earliest..=latest).contains(&now.wall) { now.wall } else { latest }
}

/// Whether an event has to say when it begins and does not: an eviction, which then has half a minute, as every other has.
pub(super) fn leaves_its_notice_unsaid(event: &Event) -> bool {
    event.kind == EventKind::Preempt && event.not_before.is_none() && event.status != EventStatus::Started
}

impl Turn<'_> {
    /// Takes in a document, of a version that may not have words for every event.
    pub(super) fn read(&mut self, document: Document, served_at: Timestamp, version: EventsVersion) {
        self.state.resting_until = None;
        for place in 0..self.state.events.len() {
            let Event { id, kind, .. } = &self.state.events[place].event;
            if !document.events.iter().any(|listed| listed.id == *id) && kind.is_shown_at(version) {
                self.gone(place);
            }
        }
        let booted = std::mem::take(&mut self.state.unheard_boot);
        for event in document.events {
            match self.state.events.iter().position(|handled| handled.event.id == event.id) {
                Some(place) => self.seen_again(place, event, served_at),
                None => self.appeared(event, served_at, booted),
            }
        }
    }

    /// Time has passed by the platform's clock and, if the VM stood still, not by this one's.
    pub(super) fn anchor(&mut self, served_at: Timestamp) {
        for place in 0..self.state.events.len() {
            let handled = &self.state.events[place];
            let Some(deadline) = self.deadline(&handled.event, served_at).filter(|_| handled.listed) else {
                continue;
            };
            // How long ago an event was due makes no difference, and is not worth a write to the journal.
            let now = self.now.tick;
            let differs =
                |before: Duration| before.abs_diff(deadline) > ANCHOR_SLACK && before.max(deadline) > now;
            if handled.deadline.is_none_or(differs) {
                self.state.events[place].deadline = Some(deadline);
            }
        }
    }

    /// The platform has said what this VM is called: whose every event is, is asked anew.
    pub(super) fn named(&mut self) {
        for place in 0..self.state.events.len() {
            let handled = &self.state.events[place];
            let mine = self.mine(&handled.event);
            if handled.listed && self.belongs(place, mine) {
                self.tell_appeared(place);
            }
        }
    }

    /// The tick of an event's NotBefore. The platform's times are compared with the platform's clock.
    fn deadline(&self, event: &Event, served_at: Timestamp) -> Option<Duration> {
        let scheduled = event.status != EventStatus::Started;
        let not_before = event.not_before.filter(|_| scheduled)?;
        let left = Duration::try_from(not_before.duration_since(served_at)).unwrap_or(Duration::ZERO);
        Some(self.now.tick.saturating_add(left))
    }

    /// The same for an event that is new, or there again: it may be one that has to say when, and does not.
    fn first_deadline(&self, event: &Event, served_at: Timestamp) -> Option<Duration> {
        let unsaid = || leaves_its_notice_unsaid(event).then(|| self.now.tick.saturating_add(PREEMPT_NOTICE));
        self.deadline(event, served_at).or_else(unsaid)
    }

    /// Takes in an event that is new. One that has started when this VM, just booted, first hears of it is most likely what
    /// it booted for: there is nothing to prepare any more.
    fn appeared(&mut self, event: Event, served_at: Timestamp, booted: bool) {
        let mine = self.mine(&event);
        let deadline = self.first_deadline(&event, served_at);
        let booted = booted && event.status == EventStatus::Started;
        self.state.events.push(Handled {
            event,
            mine,
            seen_at: self.now.wall,
            rule: None,
            phase: Phase::Unmatched,
            approval: Approval::Undecided,
            prepared: false,
            begun: false,
            booted,
            heard: true,
            listed: true,
            cancelled: false,
            went_back: false,
            held: false,
            replaced: false,
            deadline,
        });
        self.tell_appeared(self.state.events.len() - 1);
    }

    fn tell_appeared(&mut self, place: usize) {
        let Handled { deadline, mine, .. } = self.state.events[place];
        let time_left = deadline.map(|deadline| deadline.saturating_sub(self.now.tick));
        self.tell(place, What::Appeared { time_left, mine });
    }

    fn mine(&self, event: &Event) -> bool {
        event.resources.iter().any(|resource| self.setup.me.is(resource))
    }

    fn gone(&mut self, place: usize) {
        let now = self.now.tick;
        let handled = &mut self.state.events[place];
        handled.heard = true;
        if !handled.listed {
            return;
        }
        handled.listed = false;
        // Documents may be missed: what was approved, or was due, has most likely happened meanwhile.
        let approved = matches!(handled.approval, Approval::Given | Approval::Moot);
        let due = handled.deadline.is_some_and(|deadline| deadline <= now);
        handled.cancelled = !handled.started() && !approved && !due && !handled.booted;
        handled.deadline = None;
        let what = if handled.cancelled { What::Cancelled } else { What::Ended };
        self.tell(place, what);
    }

    /// Takes in an event that is known already.
    fn seen_again(&mut self, place: usize, mut event: Event, served_at: Timestamp) {
        let mine = self.mine(&event);
        let (deadline, first_deadline) =
            (self.deadline(&event, served_at), self.first_deadline(&event, served_at));
        let handled = &mut self.state.events[place];
        handled.heard = true;
        let back = !handled.listed;
        if back {
            // It was gone, and is there again: what is being put back is prepared anew, by the same rule.
            handled.begin_anew();
            handled.listed = true;
            handled.event = event;
            handled.deadline = first_deadline;
            self.belongs(place, mine);
            return self.tell_appeared(place);
        }
        let was_started = handled.started();
        let takes_back = was_started && event.status != EventStatus::Started;
        if takes_back {
            // Phases never go back; whatever it means, the VM stays as it is until the event is gone.
            event.status = EventStatus::Started;
            event.not_before = None;
        }
        let starts = !was_started && event.status == EventStatus::Started;
        let changed = handled.event != event && !starts && !takes_back;
        handled.event = event;
        handled.deadline = if handled.started() { None } else { deadline.or(handled.deadline) };
        if handled.approval == Approval::Moot && !handled.started() {
            // It was thought to have started, or to be gone.
            handled.approval = Approval::Wanted { failures: 0, due: self.now.tick };
        }
        if self.belongs(place, mine) {
            self.tell_appeared(place);
        }
        let handled = &mut self.state.events[place];
        // An event that still waits is not what the VM booted for.
        handled.booted &= handled.started();
        let tell_back = takes_back && !handled.went_back;
        handled.went_back |= takes_back;
        let prepared = handled.prepared;
        if starts {
            self.tell(place, What::Started { prepared });
        }
        if tell_back {
            self.tell(place, What::WentBack);
        }
        if changed {
            self.tell(place, What::Changed);
        }
    }

    /// Notes whose an event is. Answers whether that makes it a new one: it was for other VMs only and is for this one, too, and
    /// what has been done about it until now was not for that.
    fn belongs(&mut self, place: usize, mine: bool) -> bool {
        let handled = &mut self.state.events[place];
        let was_mine = std::mem::replace(&mut handled.mine, mine);
        handled.cancelled |= was_mine && handled.is_lost();
        let handled = &self.state.events[place];
        let to_approve = self.reason_not_to_approve(handled).is_none();
        let fits = first(&self.setup.rules, &settle::sight(handled, self.now.tick));
        let same = handled.rule.as_ref() == fits;
        let handled = &mut self.state.events[place];
        if matches!(handled.approval, Approval::NotMine { .. }) && to_approve {
            // Somebody else was to approve, and is not any more.
            handled.approval = Approval::Wanted { failures: 0, due: self.now.tick };
        }
        if was_mine || !mine {
            return false;
        }
        match handled.rule.as_ref().map(|rule| rule.matches.resources) {
            Some(Whose::Mine) if matches!(handled.phase, Phase::Preparing(_) | Phase::Ready) => {
                // Nothing was done yet about its being somebody else's.
                handled.cancelled = false;
                return false;
            }
            Some(Whose::Mine) => handled.begin_anew(),
            Some(Whose::Others | Whose::Any) if same => return false,
            Some(Whose::Others | Whose::Any) => handled.replaced = true,
            None => {}
        }
        true
    }
}
