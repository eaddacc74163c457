//! Taking in a document: which events are new, which have changed, which are gone, and when each may begin.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_client::clock::Moment;
use notbefore_client::document::{Document, Event, EventKind, EventStatus, EventsVersion};

use super::handled::{Approval, Boot, End, Handled, Next, Phase, Presence, Start};
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
            let Some(deadline) = self.deadline(&handled.event, served_at).filter(|_| handled.is_listed())
            else {
                continue;
            };
            // How long ago an event was due makes no difference, and is not worth a write to the journal.
            let now = self.now.tick;
            let differs =
                |before: Duration| before.abs_diff(deadline) > ANCHOR_SLACK && before.max(deadline) > now;
            if handled.deadline().is_none_or(differs) {
                self.state.events[place].presence = Presence::Waiting { deadline: Some(deadline) };
            }
        }
    }

    /// The platform has said what this VM is called: whose every event is, is asked again.
    pub(super) fn named(&mut self) {
        for place in 0..self.state.events.len() {
            let handled = &self.state.events[place];
            let mine = self.mine(&handled.event);
            if handled.is_listed() && self.belongs(place, mine) {
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

    /// Where an event is that is new, or there again: it may be one that has to say when, and does not.
    fn first_presence(&self, event: &Event, served_at: Timestamp) -> Presence {
        let unsaid = || leaves_its_notice_unsaid(event).then(|| self.now.tick.saturating_add(PREEMPT_NOTICE));
        match event.status {
            EventStatus::Started => Presence::Started(Start::Said),
            EventStatus::Scheduled | EventStatus::Other(_) => {
                Presence::Waiting { deadline: self.deadline(event, served_at).or_else(unsaid) }
            }
        }
    }

    /// Takes in an event that is new. One that has started when this VM, just booted, first hears of it is most likely what
    /// it booted for: there is nothing to prepare any more.
    fn appeared(&mut self, event: Event, served_at: Timestamp, booted: bool) {
        let mine = self.mine(&event);
        let presence = self.first_presence(&event, served_at);
        let boot = if booted && event.status == EventStatus::Started { Boot::Heard } else { Boot::None };
        self.state.events.push(Handled { event, mine, seen_at: self.now.wall, presence, boot, course: None });
        self.tell_appeared(self.state.events.len() - 1);
    }

    fn tell_appeared(&mut self, place: usize) {
        let handled = &self.state.events[place];
        let (deadline, mine) = (handled.deadline(), handled.mine);
        let time_left = deadline.map(|deadline| deadline.saturating_sub(self.now.tick));
        self.tell(place, What::Appeared { time_left, mine });
    }

    fn mine(&self, event: &Event) -> bool {
        event.resources.iter().any(|resource| self.setup.me.is(resource))
    }

    fn gone(&mut self, place: usize) {
        let now = self.now.tick;
        let handled = &mut self.state.events[place];
        let may_have_been_booted_for = handled.boot.may_be_for_it();
        handled.boot = handled.boot.heard(handled.started());
        if !handled.is_listed() {
            return;
        }
        // Documents may be missed: what was approved, or was due, has most likely happened meanwhile.
        let approved = matches!(handled.approval(), Approval::Given | Approval::Moot);
        let due = handled.deadline().is_some_and(|deadline| deadline <= now);
        let (end, what) = match handled.started() || approved || due || may_have_been_booted_for {
            true => (End::Happened, What::Ended),
            false => (End::Cancelled, What::Cancelled),
        };
        handled.presence = Presence::Gone(end);
        self.tell(place, what);
    }

    /// Takes in an event that is known already.
    fn seen_again(&mut self, place: usize, mut event: Event, served_at: Timestamp) {
        let mine = self.mine(&event);
        let (deadline, presence) = (self.deadline(&event, served_at), self.first_presence(&event, served_at));
        let handled = &mut self.state.events[place];
        let was_started = handled.started();
        let starts = !was_started && event.status == EventStatus::Started;
        handled.boot = handled.boot.heard(was_started || starts);
        if !handled.is_listed() {
            // It was gone, and is there again: what is being put back is prepared again, by the same rule.
            handled.begin_again();
            (handled.event, handled.presence) = (event, presence);
            self.belongs(place, mine);
            return self.tell_appeared(place);
        }
        let takes_back = was_started && event.status != EventStatus::Started;
        if takes_back {
            // Phases never go back; whatever it means, the VM stays as it is until the event is gone.
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
            Presence::Waiting { deadline: before } => Presence::Waiting { deadline: deadline.or(before) },
            Presence::Gone(end) => Presence::Gone(end),
        };
        if let (Presence::Waiting { .. }, Some(course)) = (handled.presence, &mut handled.course)
            && course.approval == Approval::Moot
        {
            // It was thought to have started, or to be gone.
            course.approval = Approval::Wanted { failures: 0, due: self.now.tick };
        }
        if self.belongs(place, mine) {
            self.tell_appeared(place);
        }
        if starts {
            let prepared = self.state.events[place].is_prepared();
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
        let was_mine = std::mem::replace(&mut self.state.events[place].mine, mine);
        let handled = &self.state.events[place];
        let to_approve = self.reason_not_to_approve(handled).is_none();
        let fits = first(&self.setup.rules, &settle::sight(handled, self.now.tick));
        let same = handled.rule() == fits;
        let has_become_mine = mine && !was_mine;
        let handled = &mut self.state.events[place];
        let Some(course) = &mut handled.course else { return has_become_mine };
        if matches!(course.approval, Approval::NotMine { .. }) && to_approve {
            // Somebody else was to approve, and is not any more.
            course.approval = Approval::Wanted { failures: 0, due: self.now.tick };
        }
        if !has_become_mine {
            return false;
        }
        match (course.rule.matches.resources, course.phase) {
            // Nothing was done yet about its being somebody else's.
            (Whose::Mine, Phase::Preparing { .. } | Phase::Ready { .. } | Phase::Withheld { .. }) => false,
            (Whose::Mine, Phase::Over { .. } | Phase::Restoring { .. } | Phase::Done) => {
                handled.begin_again();
                true
            }
            (Whose::Others | Whose::Any, _) if same => false,
            (Whose::Others | Whose::Any, phase) => {
                self.replace_rule(place, phase);
                true
            }
        }
    }

    /// Another rule is for the event: what was begun by the one it has is undone before that.
    fn replace_rule(&mut self, place: usize, phase: Phase) {
        let next = Next::AnotherRule;
        match phase {
            Phase::Preparing { .. } | Phase::Ready { .. } | Phase::Withheld { .. } => self.lapse(place, next),
            Phase::Over { waits, .. } => self.set(place, Phase::Over { waits, next }),
            Phase::Restoring { progress, .. } => self.set(place, Phase::Restoring { progress, next }),
            Phase::Done => {}
        }
    }
}
