//! Reconciliation loop for operations over several scopes. Each step is a separate job. After the last one, the
//! operation is compared with its scopes again, until nothing is left to do.

use jiff::Timestamp;
use notbefore_core::time::after;
use notbefore_core::{Actor, Command as ScopeCommand, DriverKind, JointStart, OperationId};

use super::{Effect, Engine, RETRY_AFTER, Work};
use crate::operations::{Remaining, remaining};
use crate::request::Answer;

impl Engine {
    /// Computes what an operation still needs and starts it.
    pub(super) fn reconcile(&mut self, operation: OperationId, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(held) = self.state.operation(operation).cloned() else {
            return self.operation_closed(operation, effects);
        };
        let fan = self.fan_outs.entry(operation).or_default();
        if fan.pending > 0 {
            // It is reconciled again when the last of these is done.
            return;
        }
        let mut remaining = remaining(&held.value, &self.state, &fan.tried);
        // A scope that just refused a step would refuse it again: it is retried after a delay.
        let steps = |remaining: &Remaining| {
            remaining.cancel.len()
                + remaining.complete.len()
                + remaining.release.len()
                + remaining.host_done.len()
        };
        let wanted = steps(&remaining);
        remaining.cancel.retain(|(scope, _)| !fan.refused.contains_key(scope));
        remaining.complete.retain(|(scope, _)| !fan.refused.contains_key(scope));
        remaining.release.retain(|scope| !fan.refused.contains_key(scope));
        remaining.host_done.retain(|scope| !fan.refused.contains_key(scope));
        if steps(&remaining) < wanted && !remaining.has_scope_work() {
            if let Some(why) = fan.refused.values().next() {
                let answers = fan.waiting.drain(..).map(|request| Effect::Answer(request, Err(why.clone())));
                effects.extend(answers);
            }
            self.stalled.insert((after(now, RETRY_AFTER), operation));
            return;
        }
        let mut works = Vec::new();
        if remaining.has_scope_work() {
            works.extend(
                remaining.open.into_iter().map(|target| (Work::Open(operation, target), Actor::Service)),
            );
            let step = |scope, command, by: &Actor| (Work::Step(operation, scope, command), by.clone());
            let by = held.value.cancelled_by.as_ref().unwrap_or(&Actor::Service);
            let cancel = remaining.cancel.into_iter();
            works.extend(cancel.map(|(scope, event)| step(scope, ScopeCommand::Cancel(event), by)));
            let by = held.value.completed_by.as_ref().unwrap_or(&Actor::Service);
            works.extend(
                remaining.complete.into_iter().map(|(scope, event)| {
                    step(scope, ScopeCommand::Complete { event, hosts: Vec::new() }, by)
                }),
            );
            let (command, by) = match &held.value.joint_start {
                Some(JointStart::Released { why, by }) => {
                    (ScopeCommand::StartParts { operation, why: *why }, by)
                }
                Some(JointStart::Ready { why }) => {
                    (ScopeCommand::ReadyParts { operation, why: *why }, &Actor::Timer)
                }
                Some(JointStart::Waiting) | None => (ScopeCommand::Release(operation), &Actor::Service),
            };
            let release = remaining.release.into_iter();
            works.extend(release.map(|scope| step(scope, command.clone(), by)));
            let host_done = remaining.host_done.into_iter();
            let driver = Actor::Driver(DriverKind::Exec.to_string());
            works.extend(host_done.map(|scope| step(scope, ScopeCommand::HostDone(operation), &driver)));
        } else {
            // Every scope is up to date, so callers can be answered before the record is.
            let waiting = std::mem::take(&mut fan.waiting);
            effects
                .extend(waiting.into_iter().map(|one| Effect::Answer(one, Ok(Answer::Operation(operation)))));
            if remaining.record.is_some() {
                works.push((Work::Record(operation), Actor::Service));
            } else if self.needs_host_command(&held.value, remaining.are_parts_ready, now) {
                works.push((Work::HostCommand(operation), Actor::Service));
            } else {
                self.fan_outs.remove(&operation);
                return;
            }
        }
        if let Some(fan) = self.fan_outs.get_mut(&operation) {
            fan.pending = works.len();
        }
        for (work, by) in works {
            self.spawn(work, by, now, effects);
        }
    }

    pub(super) fn on_step_done(&mut self, operation: OperationId, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(fan) = self.fan_outs.get_mut(&operation) else { return };
        fan.pending = fan.pending.saturating_sub(1);
        if fan.pending == 0 {
            self.reconcile(operation, now, effects);
        }
    }

    /// Answers the callers that wait for a closed operation.
    pub(super) fn operation_closed(&mut self, operation: OperationId, effects: &mut Vec<Effect>) {
        if let Some(fan) = self.fan_outs.remove(&operation) {
            let answer = || Ok(Answer::Operation(operation));
            effects.extend(fan.waiting.into_iter().map(|one| Effect::Answer(one, answer())));
        }
    }
}
