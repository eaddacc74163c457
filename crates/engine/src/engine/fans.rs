//! Operations that reach several scopes: each step is a job of its own, and when the last one is done the
//! operation is compared with its scopes again, until nothing is left to do.

use jiff::Timestamp;
use notbefore_core::time::after;
use notbefore_core::{Actor, Command as ScopeCommand, OperationId};

use super::{Effect, Engine, RETRY_AFTER, Work};
use crate::operations::remaining;
use crate::request::Answer;

impl Engine {
    /// Works out what an operation still needs and sets it going.
    pub(super) fn reconcile(&mut self, operation: OperationId, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(held) = self.state.operation(operation).cloned() else {
            return self.settled(operation, effects);
        };
        let fan = self.fans.entry(operation).or_default();
        if fan.pending > 0 {
            // It is looked at again when the last of these is done.
            return;
        }
        let mut remaining = remaining(&held.value, &self.state, &fan.tried);
        // A scope that has just refused a step would refuse it again: it is asked once more in a while.
        let wanted = remaining.cancel.len() + remaining.release.len();
        remaining.cancel.retain(|(scope, _)| !fan.refused.contains_key(scope));
        remaining.release.retain(|scope| !fan.refused.contains_key(scope));
        if remaining.cancel.len() + remaining.release.len() < wanted && !remaining.wants_scopes() {
            if let Some(why) = fan.refused.values().next() {
                let told = fan.waiting.drain(..).map(|request| Effect::Answer(request, Err(why.clone())));
                effects.extend(told);
            }
            self.stalled.insert((after(now, RETRY_AFTER), operation));
            return;
        }
        let mut works = Vec::new();
        let by_whom = held.value.cancelled_by.clone().unwrap_or(Actor::Service);
        if remaining.wants_scopes() {
            works.extend(remaining.open.into_iter().map(|target| Work::Open(operation, target)));
            works.extend(
                remaining
                    .cancel
                    .into_iter()
                    .map(|(scope, event)| Work::Step(operation, scope, ScopeCommand::Cancel(event))),
            );
            works.extend(
                remaining
                    .release
                    .into_iter()
                    .map(|scope| Work::Step(operation, scope, ScopeCommand::Release(operation))),
            );
        } else {
            // Every scope is as it should be, so whoever asked can be told before the record says so too.
            let waiting = std::mem::take(&mut fan.waiting);
            effects
                .extend(waiting.into_iter().map(|one| Effect::Answer(one, Ok(Answer::Operation(operation)))));
            if remaining.record.is_some() {
                works.push(Work::Record(operation));
            } else {
                self.fans.remove(&operation);
                return;
            }
        }
        if let Some(fan) = self.fans.get_mut(&operation) {
            fan.pending = works.len();
        }
        for work in works {
            self.spawn(work, by_whom.clone(), now, effects);
        }
    }

    pub(super) fn step_done(&mut self, operation: OperationId, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(fan) = self.fans.get_mut(&operation) else { return };
        fan.pending = fan.pending.saturating_sub(1);
        if fan.pending == 0 {
            self.reconcile(operation, now, effects);
        }
    }

    /// An operation that is closed: nobody need wait for it any more.
    pub(super) fn settled(&mut self, operation: OperationId, effects: &mut Vec<Effect>) {
        if let Some(fan) = self.fans.remove(&operation) {
            let answer = || Ok(Answer::Operation(operation));
            effects.extend(fan.waiting.into_iter().map(|one| Effect::Answer(one, answer())));
        }
    }
}
