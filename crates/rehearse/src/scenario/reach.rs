//! Which steps of a scenario can come: a fixpoint over moments and steps.
//!
//! A step comes at its time, or when a moment of an event comes. A moment comes if the step that schedules the event
//! does, and then by itself or by another step: an advisory never starts and ends only with a cancel or an eviction, an
//! event that runs `until-completed` ends only with a step.

use notbefore_wire::operator::Cause;

use super::{Action, Announcement, Moment, Scenario, When};

/// Steps that can never come, or that would keep the rehearsal from its end: their numbers, with why and cure.
pub(super) fn mistakes(scenario: &Scenario) -> Vec<(usize, String)> {
    let reach = Reach::of(scenario);
    let mut mistakes = Vec::new();
    let mut has_cycle = Vec::new();
    for (index, step) in scenario.steps.iter().enumerate() {
        match &step.when {
            When::After { moment, event, .. } if !reach.comes[index] => {
                match reach.why_never(*moment, event) {
                    Some(why) => mistakes
                        .push((index, format!("at: '{} {event}' never comes: {why}", moment.as_str()))),
                    None => has_cycle.push((index, *moment, event)),
                }
            }
            When::After { moment: moment @ (Moment::Approved | Moment::Started), event, .. }
                if scenario.announcement(event).is_some_and(Announcement::is_advice) =>
            {
                let cure = "wait for scheduled, read or gone";
                mistakes.push((
                    index,
                    format!(
                        "at: '{} {event}' never comes: advice is not approved and does not start; {cure}",
                        moment.as_str()
                    ),
                ));
            }
            When::After { .. } | When::At(_) => {}
        }
        let acts_on = match &step.action {
            Action::Approve(event)
            | Action::Start(event)
            | Action::Complete(event)
            | Action::Cancel(event) => Some(event),
            Action::Schedule(_)
            | Action::AddFault(_)
            | Action::ClearFaults
            | Action::AdvanceClock(_)
            | Action::StopHandlers
            | Action::StartHandlers => None,
        };
        if let Some(event) = acts_on
            && let When::At(at) = step.when
            && let Some((announced, When::At(announced_at))) = reach.announced(event)
            && (at, index) < (*announced_at, announced)
        {
            let cure = format!("write at: 'scheduled {event} + 30s', or move the step");
            mistakes.push((index, format!("at: {event} is scheduled after this step; {cure}")));
        }
        if let (Action::Cancel(event), When::After { moment: Moment::Started, event: started, .. }) =
            (&step.action, &step.when)
            && event == started
        {
            let cure = format!("write at: 'read {event}', or complete: {event}");
            mistakes.push((index, format!("cancel: {event} has started by then and goes on; {cure}")));
        }
        if let Action::Schedule(one) = &step.action
            && one.runs.is_none()
            && !one.is_advice()
            && reach.comes[index]
            && !reach.ends(&one.event)
        {
            let event = &one.event;
            let cure =
                format!("add a step {{ at: started {event} + 5m, complete: {event} }}, or give runs a time");
            mistakes.push((
                index,
                format!("event {event} runs until-completed, and no step completes it; {cure}"),
            ));
        }
    }
    if mistakes.is_empty() {
        // What waits for such a step does not come either; the first one is enough.
        mistakes.extend(has_cycle.first().map(|(index, moment, event)| {
            let why = "it waits for a step that waits for this one";
            (*index, format!("at: '{} {event}' never comes: {why}; give one of them a time", moment.as_str()))
        }));
    }
    mistakes
}

struct Reach<'s> {
    scenario: &'s Scenario,
    /// By step.
    comes: Vec<bool>,
}

impl<'s> Reach<'s> {
    fn of(scenario: &'s Scenario) -> Self {
        let mut reach = Self { scenario, comes: vec![false; scenario.steps.len()] };
        loop {
            let comes = |(index, step): (usize, &super::Step)| {
                reach.comes[index]
                    || match &step.when {
                        When::At(_) => true,
                        When::After { moment, event, .. } => reach.has(*moment, event),
                    }
            };
            let next: Vec<bool> = scenario.steps.iter().enumerate().map(comes).collect();
            // Steps only become reachable, so this ends.
            if next == reach.comes {
                return reach;
            }
            reach.comes = next;
        }
    }

    /// The step that schedules an event, and its time.
    fn announced(&self, event: &str) -> Option<(usize, &'s When)> {
        self.scenario.steps.iter().enumerate().find_map(|(index, step)| match &step.action {
            Action::Schedule(one) if one.event == event => Some((index, &step.when)),
            Action::Schedule(_)
            | Action::Approve(_)
            | Action::Start(_)
            | Action::Complete(_)
            | Action::Cancel(_)
            | Action::AddFault(_)
            | Action::ClearFaults
            | Action::AdvanceClock(_)
            | Action::StopHandlers
            | Action::StartHandlers => None,
        })
    }

    /// Whether a moment can come.
    fn has(&self, moment: Moment, event: &str) -> bool {
        let is_scheduled = self.announced(event).is_some_and(|(index, _)| self.comes[index]);
        // An event that is gone has had all its moments.
        is_scheduled
            && (self.ends(event)
                || match moment {
                    Moment::Scheduled => true,
                    Moment::Read => self.is_shown(event),
                    Moment::Approved | Moment::Started => !self.is_advice(event),
                    Moment::Gone => false,
                })
    }

    /// Whether an event ends, by itself or by a step.
    fn ends(&self, event: &str) -> bool {
        let Some(own) = self.scenario.announcement(event) else { return false };
        let ends_it = |action: &Action| match action {
            Action::Complete(other) | Action::Cancel(other) => other == event,
            // An eviction takes the place of advice for the same VM.
            Action::Schedule(other) => {
                own.is_advice()
                    && other.cause == Cause::Eviction
                    && other.vms.iter().any(|vm| own.vms.iter().any(|own| own.eq_ignore_ascii_case(vm)))
            }
            Action::Approve(_)
            | Action::Start(_)
            | Action::AddFault(_)
            | Action::ClearFaults
            | Action::AdvanceClock(_)
            | Action::StopHandlers
            | Action::StartHandlers => false,
        };
        let mut steps = self.scenario.steps.iter().zip(&self.comes);
        (!own.is_advice() && own.runs.is_some()) || steps.any(|(step, comes)| *comes && ends_it(&step.action))
    }

    fn is_advice(&self, event: &str) -> bool {
        self.scenario.announcement(event).is_some_and(Announcement::is_advice)
    }

    /// Whether a handler can be sent the event.
    fn is_shown(&self, event: &str) -> bool {
        self.scenario.handled_vms().next().is_some()
            && (self.scenario.serves_advice || !self.is_advice(event))
    }

    /// Why a moment of a scheduled event never comes, with the cure; none if the step that schedules the event does not
    /// come, or if the reason is another step.
    fn why_never(&self, moment: Moment, event: &str) -> Option<String> {
        let (index, _) = self.announced(event)?;
        if !self.comes[index] {
            return None;
        }
        let is_ended_by = |step: &super::Step| match &step.action {
            Action::Complete(other) | Action::Cancel(other) => other == event,
            Action::Schedule(_)
            | Action::Approve(_)
            | Action::Start(_)
            | Action::AddFault(_)
            | Action::ClearFaults
            | Action::AdvanceClock(_)
            | Action::StopHandlers
            | Action::StartHandlers => false,
        };
        let has_end = self.scenario.steps.iter().any(is_ended_by);
        match moment {
            Moment::Scheduled => None,
            Moment::Read if self.scenario.handled_vms().next().is_none() => {
                Some("no VM has a handler; leave handler: false out of one".to_owned())
            }
            Moment::Read if !self.is_shown(event) => Some(
                "a platform with newest_version 2020-07-01 does not show advice; leave newest_version out"
                    .to_owned(),
            ),
            Moment::Approved | Moment::Started if self.is_advice(event) => {
                Some("advice is not approved and does not start; wait for scheduled, read or gone".to_owned())
            }
            Moment::Gone if self.is_advice(event) && !has_end => {
                Some(format!("advice stays until it is cancelled; add a step with cancel: {event}"))
            }
            Moment::Gone if !has_end => Some(format!(
                "it runs until-completed; add a step with complete: {event}, or give runs a time"
            )),
            Moment::Read | Moment::Approved | Moment::Started | Moment::Gone => None,
        }
    }
}
