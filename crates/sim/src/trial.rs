//! Checks every commit when the store applies it, and every answer when it is given.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use notbefore_core::{JointStart, Operation, VmId};
use notbefore_engine::records::{self, prefix};
use notbefore_engine::{Answer, Command, Failure, FailureCause, OperationCommand, TargetSelector};
use notbefore_store::{Outcome, Revision, Txn};

use crate::conformance::{self, Flight, SentRequest, Violation, Written};
use crate::host_command;
use crate::invariants::{self, Check, Transition};
use crate::ledger::FirstSeen;
use crate::model::At;
use crate::predict;
use crate::view::Record;
use crate::world::{NOTHING_TO_DO, World, broken};

impl World {
    pub(crate) fn commit(&mut self, flight: &Flight) -> Result<Outcome, Violation> {
        if let Some(no) = self.store.compare(&flight.txn) {
            if let Outcome::Refused(refusal) = &no {
                return Err(broken("every transaction is within the store's limits", refusal.to_string()));
            }
            return Ok(no);
        }
        self.check_fence(flight)?;
        let written = conformance::written(&flight.txn)?;
        if self.setup.split_at.is_some() && flight.txn.writes() && written.is_sent_ahead() {
            return Ok(self.commit_ahead(flight, written));
        }
        self.commit_decision(flight, written)
    }

    /// A job writes a part of its change ahead of the rest. Whether it was right is judged with the rest.
    fn commit_ahead(&mut self, flight: &Flight, written: Written) -> Outcome {
        let before = self.store.revision();
        let outcome = self.store.commit(&flight.txn);
        let revision = self.store.revision();
        if revision > before {
            self.stats.commits += 1;
            self.stats.sent_ahead +=
                u64::from(!written.records.iter().all(|record| matches!(record, Record::Other)));
            self.committed_now();
            for record in written.records {
                match &record {
                    Record::Vm(vm, _) => drop(self.ledger.leaving.insert(*vm)),
                    Record::Claim(key, _) => self.ledger.leaving.extend(self.view.claims.get(key)),
                    // An event has ended when its scope says so.
                    Record::Past(..) => continue,
                    Record::Scope(..) | Record::Operation(..) | Record::Host(..) | Record::Other => {}
                }
                self.view.take(revision, record);
            }
        }
        outcome
    }

    /// A transaction that changes something by itself, and completes what its job has sent ahead.
    fn commit_decision(&mut self, flight: &Flight, mut written: Written) -> Result<Outcome, Violation> {
        let flight = &flight.clone().as_planned(&self.view, &written);
        written.records.splice(0..0, flight.ahead.past.iter().cloned());
        for (id, after) in &written.scopes {
            let change = Transition {
                id,
                before: self.view.scopes.get(id).map(|(_, scope)| &**scope),
                after: after.as_deref(),
                flight,
                view: &self.view,
            };
            invariants::of_transition(&change, &self.ledger)?;
            self.check_enabled(&change)?;
        }
        for record in &written.records {
            if let Record::Past(_, Some(past)) = record {
                let after = written.scopes.get(&past.scope).and_then(|scope| scope.as_deref());
                invariants::ends_when_done(past, flight, &self.view, after)?;
            }
        }
        invariants::hosts_have_records(&written, &self.view)?;
        invariants::host_states_follow_operations(&written, &self.view)?;
        for after in written.operations.values() {
            invariants::hosts_start_as_a_whole(after, &self.view)?;
            let is_released = |one: &Operation| matches!(one.joint_start, Some(JointStart::Released { .. }));
            let was_released = self.view.operations.get(&after.id).is_some_and(|before| is_released(before));
            self.stats.host_starts += u64::from(is_released(after) && !was_released);
        }
        self.check_not_refused(flight, &written)?;
        let carries = conformance::explain(&self.view, flight, &written)?;
        invariants::at_most_once(&carries.requests, &written, &mut self.ledger)?;
        let before = self.store.revision();
        let outcome = self.store.commit(&flight.txn);
        let revision = self.store.revision();
        if revision > before {
            self.stats.commits += 1;
            self.committed_now();
            self.note(&written, revision, &carries)?;
            for record in written.records {
                self.view.take(revision, record);
            }
            let members: BTreeSet<VmId> = self
                .view
                .scopes
                .values()
                .flat_map(|(_, scope)| scope.members.iter().map(|one| one.vm))
                .collect();
            self.ledger.leaving.retain(|vm| members.contains(vm));
            invariants::addresses_are_unambiguous(&self.view, &self.ledger.leaving)?;
        }
        Ok(outcome)
    }

    /// Records a commit in the ledger, and checks that events that leave a scope go into the history.
    fn note(&mut self, written: &Written, revision: Revision, carries: &conformance::Carries) -> Check {
        for sent in &carries.requests {
            self.ledger.effects.entry(sent.id).or_default().push(revision);
            if carries.sure {
                self.ledger.carried_out.insert(sent.id);
            }
        }
        self.ledger
            .operations
            .extend(written.operations.keys().filter(|id| !self.view.operations.contains_key(*id)));
        let mut ended = BTreeSet::new();
        for record in &written.records {
            let Record::Past(id, Some(past)) = record else { continue };
            ended.insert(*id);
            // An event that starts and ends in the same commit is seen only here.
            self.ledger.first.entry(*id).or_insert_with(|| {
                self.stats.events += 1;
                self.ledger.events.push(*id);
                FirstSeen { scope: past.scope.clone(), resources: past.event.resources.clone(), revision }
            });
        }
        self.ledger.attempts.extend(written.operations.values().filter_map(|one| host_command::running(one)));
        for (id, after) in &written.scopes {
            let events = after.iter().flat_map(|scope| &scope.events);
            for event in events {
                self.ledger.attempts.extend(invariants::running(event));
                self.ledger.first.entry(event.id).or_insert_with(|| {
                    self.stats.events += 1;
                    self.ledger.events.push(event.id);
                    FirstSeen { scope: id.clone(), resources: event.resources.clone(), revision }
                });
            }
            let before = self.view.scopes.get(id).map(|(_, scope)| Rc::clone(scope));
            for member in after.iter().flat_map(|scope| &scope.members) {
                if !self.ledger.vms.contains(&member.vm) {
                    self.ledger.vms.push(member.vm);
                }
            }
            for gone in before.iter().flat_map(|scope| &scope.events) {
                if after.as_ref().is_some_and(|scope| scope.event(gone.id).is_some()) {
                    continue;
                }
                if !ended.contains(&gone.id) {
                    return Err(broken("an ended event is in history", format!("{} is not", gone.id)));
                }
            }
        }
        self.ledger.ended.extend(ended);
        Ok(())
    }

    pub(crate) fn planned(
        &self,
        txn: &Txn,
        open_requests: &[Rc<SentRequest>],
        at: &At,
    ) -> BTreeMap<u64, predict::Writes> {
        let touches = |prefix| txn.put.iter().any(|(key, _)| key.starts_with(prefix));
        // A commit that only compares scopes precedes an operation's start.
        let goes_ahead = !txn.writes() && txn.expect.iter().any(|one| one.key.starts_with(prefix::SCOPE));
        if !touches(prefix::OPERATION) && !goes_ahead {
            return BTreeMap::new();
        }
        let in_one_scope = touches(prefix::SCOPE);
        // The VMs on a host are not compared: a VM that arrives while the operation is in flight is not part of it.
        let by_what_was_known = |one: &&Rc<SentRequest>| match &one.request.command {
            Command::Operation(OperationCommand::Schedule(new)) => {
                !goes_ahead && (!in_one_scope || matches!(new.selector, TargetSelector::Host(_)))
            }
            // Their result depends on scopes that they do not write.
            Command::Operation(OperationCommand::Start(_) | OperationCommand::Complete(_)) => true,
            Command::Operation(OperationCommand::Cancel(_) | OperationCommand::Retry(_))
            | Command::Guest(_)
            | Command::Event(_)
            | Command::Inventory(_)
            | Command::Token(_)
            | Command::Clock(_)
            | Command::Cluster(_) => false,
        };
        let predicted = open_requests.iter().filter(by_what_was_known).filter_map(|one| {
            let writes = predict::request(self.node.engine.state(), &one.request, at).ok()?;
            Some((one.id, writes)).filter(|(_, writes)| writes.scopes.is_empty() != in_one_scope)
        });
        predicted.collect()
    }

    pub(crate) fn answered(&mut self, id: u64, result: &Result<Answer, Failure>, at: &At) -> Check {
        let sent = self.node.open.remove(&id).ok_or_else(|| Violation {
            number: Some(12),
            words: "every request is answered exactly once",
            detail: format!("request {id} was answered once more, with {result:?}"),
        })?;
        let predicted = predict::request(self.node.engine.state(), &sent.request, at);
        let noted = self.node.predicted.remove(&id).unwrap_or_default();
        let record = conformance::command_key(&sent.request).and_then(|key| self.command_record(&key));
        let hash = sent.request.idempotency.as_ref().map(|one| one.hash.clone());
        let wrong = |why: &'static str| {
            let detail = format!("{:?} at {}: {result:?}, predicted {predicted:?}", sent.request, at.now);
            Err(broken(why, detail))
        };
        invariants::foreign_is_unknown(&sent, result, &self.ledger)?;
        let effects = self.ledger.effects.contains_key(&id);
        match result {
            Ok(answer) => {
                self.stats.granted += 1;
                let replayed = record
                    .as_ref()
                    .is_some_and(|record| Some(&record.hash) == hash.as_ref() && record.answer == *answer);
                // A caller that cancels or completes an operation a second time waits until that is done, and finds it
                // closed.
                let operation = |id| self.view.operations.get(id);
                let requested_before = match &sent.request.command {
                    Command::Operation(OperationCommand::Cancel(id)) => {
                        operation(id).is_some_and(|one| one.cancelled_by.is_some())
                    }
                    Command::Operation(OperationCommand::Complete(id)) => {
                        operation(id).is_some_and(|one| one.completed_by.is_some())
                    }
                    Command::Operation(
                        OperationCommand::Schedule(_)
                        | OperationCommand::Start(_)
                        | OperationCommand::Retry(_),
                    )
                    | Command::Guest(_)
                    | Command::Event(_)
                    | Command::Inventory(_)
                    | Command::Token(_)
                    | Command::Clock(_)
                    | Command::Cluster(_) => false,
                };
                let nothing_to_do = requested_before
                    || noted.contains(NOTHING_TO_DO)
                    || predicted.as_ref().is_ok_and(predict::Writes::is_empty);
                if !effects && !replayed && !nothing_to_do {
                    return wrong("invariant 1 (acknowledged is durable): nothing was committed for it");
                }
                if effects || !nothing_to_do {
                    invariants::acknowledged_is_durable(
                        &sent,
                        answer,
                        &self.view,
                        &self.store,
                        &self.ledger,
                        &self.node.shown,
                    )?;
                }
            }
            Err(Failure::Refused(refusal)) => {
                self.stats.refused += 1;
                let now = predicted.as_ref().err().is_some_and(|codes| codes.contains(refusal.code()));
                if !now && !noted.contains(refusal.code()) {
                    return wrong("a command is refused only where the model refuses it");
                }
                if self.ledger.carried_out.contains(&id) {
                    return wrong("a refused command changes nothing");
                }
                self.check_known(&sent, refusal)?;
                if let (Some(key), Some(hash)) = (conformance::command_key(&sent.request), hash) {
                    self.ledger.refused.insert((key, hash), id);
                }
            }
            Err(Failure::KeyReused) => {
                if record.is_none_or(|record| Some(&record.hash) == hash.as_ref()) {
                    return wrong("a key is reused only where another request has it");
                }
            }
            // Any node may be asked, and tells at once that it does not lead.
            Err(Failure::Unavailable(FailureCause::NotLeader)) if !self.ledger.carried_out.contains(&id) => {}
            Err(Failure::Unavailable(_)) => {
                if self.faults == sent.faults {
                    return wrong("nothing is unavailable without a fault");
                }
                if self.ledger.carried_out.contains(&id) {
                    return wrong("an unavailable command changes nothing");
                }
            }
            Err(Failure::OutcomeUnknown(_)) => {
                if self.faults == sent.faults {
                    return wrong("no outcome is unknown without a fault");
                }
            }
        }
        Ok(())
    }

    fn command_record(&self, key: &str) -> Option<records::CommandRecord> {
        let record = self.store.records().get(key)?;
        records::decode(key, &record.value).ok()
    }
}
