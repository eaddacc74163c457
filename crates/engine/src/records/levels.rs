//! Writing at an older format level: during a rolling upgrade the nodes of the older release read everything.
//!
//! A node of a cluster writes at the cluster's level until an operator finishes the upgrade. What a newer level added is
//! left out, so it does not take effect before. The leader's state is what it has written: without that, too.
//!
//! When a level is added, add its fields here, and its variants to [`level_of`].

use bytes::Bytes;
use notbefore_core::{Cause, Event, Fact, Operation, Past, Recorded, Scope};
use notbefore_store::{Key, Txn, check};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Alive, DecodeError, FORMAT_LEVEL, FactBatch, Seen, decode, encode, level_and_json};
use crate::cluster::{FORMAT, FormatRecord};
use crate::keys::RecordKey;

/// A value at an older level, without what newer levels added. None if nothing is left of it. A value that is not newer is
/// returned as it is.
pub fn downgrade(key: &str, value: &Bytes, level: u32) -> Option<Bytes> {
    let Some((written, _)) = level_and_json(value).filter(|(written, _)| *written > level) else {
        return Some(value.clone());
    };
    check(|| (written, level) == (2, 1), "each older level needs its own function");
    downgrade_to_1(key, value).unwrap_or_else(|error| {
        // A reader of the older level refuses it; it never misreads it.
        check(|| false, &format!("a record of this release cannot be read: {error}"));
        Some(value.clone())
    })
}

/// Downgrades the values of a transaction. Returns whether one has changed. A transaction that raises the cluster's level
/// is written at the new one: all nodes read it.
pub fn downgrade_txn(txn: &mut Txn, level: u32) -> bool {
    if level >= FORMAT_LEVEL || txn.put.is_empty() {
        return false;
    }
    let raised = txn.put.iter().find(|(key, _)| **key == *FORMAT);
    let raised = raised.and_then(|(key, value)| decode::<FormatRecord>(key, value).ok());
    let level = raised.map_or(level, |record| record.level.max(level));
    let mut has_changed = false;
    txn.put = std::mem::take(&mut txn.put)
        .into_iter()
        .filter_map(|(key, value): (Key, Bytes)| {
            let older = downgrade(&key, &value, level);
            has_changed |= older.as_ref() != Some(&value);
            Some((key, older?))
        })
        .collect();
    has_changed
}

fn downgrade_to_1(key: &str, value: &Bytes) -> Result<Option<Bytes>, DecodeError> {
    let kind = RecordKey::parse(key);
    Ok(Some(match kind {
        Ok(RecordKey::Scope(_)) => changed(key, value, |scope: &mut Scope| {
            scope.events.retain(|event| level_of_cause(event.cause) <= 1);
            scope.events.iter_mut().for_each(event_to_1);
        })?,
        Ok(RecordKey::Past(_)) => {
            let mut past: Past = decode(key, value)?;
            if level_of_cause(past.event.cause) > 1 {
                return Ok(None);
            }
            event_to_1(&mut past.event);
            relabel(&encode(&past))
        }
        Ok(RecordKey::Operation(_)) => {
            let mut operation: Operation = decode(key, value)?;
            if level_of_cause(operation.cause) > 1 {
                return Ok(None);
            }
            operation.time_given = false;
            operation.joint_start = None;
            operation.host_command = None;
            operation.completed_by = None;
            operation.targets.iter_mut().for_each(|target| target.outcome = None);
            relabel(&encode(&operation))
        }
        Ok(RecordKey::Seen { .. }) => changed(key, value, |seen: &mut Seen| seen.added.clear())?,
        Ok(RecordKey::Alive) => changed(key, value, |alive: &mut Alive| alive.boot = None)?,
        Ok(RecordKey::Fact(_)) => {
            let mut batch: FactBatch = decode(key, value)?;
            batch.first = 0;
            batch.facts.retain(|recorded| level_of(&recorded.fact) <= 1);
            if batch.facts.is_empty() {
                return Ok(None);
            }
            batch.facts.iter_mut().for_each(fact_to_1);
            relabel(&encode(&batch))
        }
        Ok(
            RecordKey::Vm(_)
            | RecordKey::Claim { .. }
            | RecordKey::Command { .. }
            | RecordKey::Refused(_)
            | RecordKey::Ended { .. }
            | RecordKey::Heard(_)
            | RecordKey::Swept
            | RecordKey::Token(_)
            | RecordKey::Secret(_)
            | RecordKey::ClusterFormat
            | RecordKey::Leader
            | RecordKey::ClusterNode(_),
        )
        | Err(_) => relabel(value),
    }))
}

fn event_to_1(event: &mut Event) {
    event.time_given = false;
    event.joint_start = false;
    event.waits_for_host = false;
}

fn fact_to_1(recorded: &mut Recorded<Fact>) {
    if let Fact::Event { operation, .. } = &mut recorded.fact {
        *operation = None;
    }
}

/// The level that added a cause. An operator's request for a newer one is refused until the upgrade is finished.
pub fn level_of_cause(cause: Cause) -> u32 {
    match cause {
        Cause::HostFreeze
        | Cause::HostReboot
        | Cause::HostRedeploy
        | Cause::LiveMigration
        | Cause::PredictedFailure
        | Cause::HostFailure
        | Cause::Eviction
        | Cause::Deletion
        | Cause::UserRestart
        | Cause::UserRedeploy => 1,
        Cause::Rebalance => 2,
    }
}

/// The level that added a kind of fact.
fn level_of(fact: &Fact) -> u32 {
    match fact {
        Fact::Event { cause, .. } | Fact::OperationRequested { cause, .. } => level_of_cause(*cause),
        Fact::OperationCancelled { .. }
        | Fact::ScopeCreated { .. }
        | Fact::PolicyChanged
        | Fact::ScopeRemoved { .. }
        | Fact::VmAdded { .. }
        | Fact::VmChanged { .. }
        | Fact::VmRemoved { .. }
        | Fact::VmMoved { .. }
        | Fact::VmDeallocated { .. }
        | Fact::VmStarted { .. }
        | Fact::TokenCreated { .. }
        | Fact::TokenRevoked { .. } => 1,
        Fact::OperationStarted { .. }
        | Fact::OperationCompleted { .. }
        | Fact::HostCommand { .. }
        | Fact::ClockAccepted
        | Fact::SignedIn { .. }
        | Fact::SignInLinkCreated
        | Fact::HandOverRequested { .. }
        | Fact::UpgradeFinished { .. }
        | Fact::NodeForgotten { .. } => 2,
    }
}

fn changed<T: Serialize + DeserializeOwned>(
    key: &str,
    value: &Bytes,
    change: impl FnOnce(&mut T),
) -> Result<Bytes, DecodeError> {
    let mut record: T = decode(key, value)?;
    change(&mut record);
    Ok(relabel(&encode(&record)))
}

/// The same JSON as level 1.
fn relabel(value: &Bytes) -> Bytes {
    match level_and_json(value) {
        Some((_, json)) => [b"1 ", json].concat().into(),
        None => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use notbefore_core::samples;
    use serde_json::Value;

    use super::*;

    const LEVEL_1: &str = include_str!("../../../cli/tests/fixtures/level-1/export.jsonl");

    /// The records of the last release that wrote level 1.
    fn level_1() -> Vec<(String, Value)> {
        let lines = LEVEL_1.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let record = |line: Value| Some((line.get("key")?.as_str()?.to_owned(), line.get("value")?.clone()));
        lines.filter_map(record).collect()
    }

    fn json(value: &Bytes) -> (u32, Value) {
        let (level, json) = level_and_json(value).unwrap();
        (level, serde_json::from_slice(json).unwrap())
    }

    /// A record as this release writes it after having read it.
    fn rewritten(key: &str, value: &Value) -> Bytes {
        let old: Bytes = format!("1 {value}").into();
        let rewrite = |encoded: Result<Bytes, DecodeError>| encoded.unwrap();
        match RecordKey::parse(key).unwrap() {
            RecordKey::Scope(_) => rewrite(decode::<Scope>(key, &old).map(|one| encode(&one))),
            RecordKey::Past(_) => rewrite(decode::<Past>(key, &old).map(|one| encode(&one))),
            RecordKey::Operation(_) => rewrite(decode::<Operation>(key, &old).map(|one| encode(&one))),
            RecordKey::Fact(_) => rewrite(decode::<FactBatch>(key, &old).map(|one| encode(&one))),
            RecordKey::Seen { .. } => rewrite(decode::<Seen>(key, &old).map(|one| encode(&one))),
            RecordKey::Alive => rewrite(decode::<Alive>(key, &old).map(|one| encode(&one))),
            RecordKey::Vm(_)
            | RecordKey::Claim { .. }
            | RecordKey::Command { .. }
            | RecordKey::Refused(_)
            | RecordKey::Ended { .. }
            | RecordKey::Heard(_)
            | RecordKey::Swept
            | RecordKey::Token(_)
            | RecordKey::Secret(_)
            | RecordKey::ClusterFormat
            | RecordKey::Leader
            | RecordKey::ClusterNode(_) => encode(value),
        }
    }

    #[test]
    fn records_of_level_1_are_the_same_after_a_rewrite_and_a_downgrade() {
        let records = level_1();
        assert!(records.len() > 100);
        for (key, value) in records {
            let newer = rewritten(&key, &value);
            assert_eq!(json(&newer).0, 2);
            let older = downgrade(&key, &newer, 1).unwrap();
            assert_eq!(json(&older), (1, value), "{key}");
            assert_eq!(downgrade(&key, &older, 1), Some(older), "{key}");
            assert_eq!(downgrade(&key, &newer, 2), Some(newer), "{key}");
        }
    }

    /// Sets everything that level 2 added to records of the fixture.
    #[test]
    fn what_level_2_added_is_left_out() {
        let mut kinds = std::collections::BTreeSet::new();
        for (key, value) in level_1() {
            let mut newer = value.clone();
            let added_to_event = |event: &mut Value| {
                for field in ["time_given", "joint_start", "waits_for_host"] {
                    event[field] = true.into();
                }
            };
            let kind = key.split('/').next().unwrap().to_owned();
            match kind.as_str() {
                "scope" => newer["events"].as_array_mut().unwrap().iter_mut().for_each(added_to_event),
                "past" => added_to_event(&mut newer["event"]),
                "operation" => {
                    newer["time_given"] = true.into();
                    newer["joint_start"] = "waiting".into();
                    newer["host_command"] = "pending".into();
                    newer["completed_by"] = newer["by"].clone();
                    newer["targets"].as_array_mut().unwrap().iter_mut().for_each(|target| {
                        target["outcome"] = "completed".into();
                    });
                }
                "seen" => {
                    let read = serde_json::json!({"vm": newer["reads"][0]["vm"], "name": "web-0"});
                    newer["added"] = vec![read].into();
                }
                "alive" => newer["boot"] = serde_json::json!({"id": "b", "at": "2026-11-16T00:00:00Z"}),
                "fact" => newer["first"] = 7.into(),
                _ => continue,
            }
            if newer != value {
                kinds.insert(kind);
            }
            let older = downgrade(&key, &encode(&newer), 1).unwrap();
            assert_eq!(json(&older), (1, value), "{key}");
        }
        let expected = ["alive", "fact", "operation", "past", "scope", "seen"].map(str::to_owned);
        assert_eq!(kinds, expected.into(), "the fixture has all kinds");
    }

    fn facts(facts: Vec<Fact>) -> Bytes {
        let recorded = |fact| Recorded { at: samples::at(0), by: notbefore_core::Actor::Service, fact };
        let facts = facts.into_iter().map(recorded).collect();
        encode(&FactBatch { scope: None, from: None, first: 0, facts })
    }

    #[test]
    fn facts_of_level_2_are_left_out() {
        let key = "fact/1794844057097-9ed1ee00-0";
        let removed = Fact::PolicyChanged;
        let mixed = facts(vec![Fact::ClockAccepted, removed.clone(), Fact::UpgradeFinished { level: 2 }]);
        assert_eq!(downgrade(key, &mixed, 1), Some(relabel(&facts(vec![removed]))));
        assert_eq!(downgrade(key, &facts(vec![Fact::ClockAccepted]), 1), None);
    }

    #[test]
    fn advisories_are_left_out() {
        let advisory = samples::advisory(1, samples::vm(1));
        let reboot = samples::event(2, Cause::HostReboot, &[samples::vm(1)]);
        let scope = |events: &[&Event]| {
            let events = events.iter().copied().cloned().collect();
            encode(&Scope { events, ..samples::scope("web", &[samples::vm(1)]) })
        };
        let key = "scope/default/default/web";
        let older = downgrade(key, &scope(&[&advisory, &reboot]), 1);
        assert_eq!(older, downgrade(key, &scope(&[&reboot]), 1));
        let cause = Cause::Rebalance;
        let operation = encode(&samples::operation(1, cause, Vec::new()));
        let id = samples::operation_id(1);
        assert_eq!(downgrade(&format!("operation/{}", id.0), &operation, 1), None);
        let requested = Fact::OperationRequested { operation: id, cause, targets: 1 };
        assert_eq!(downgrade("fact/1794844057097-9ed1ee00-0", &facts(vec![requested]), 1), None);
    }

    #[test]
    fn transaction_that_raises_the_level_is_written_at_it() {
        let fact: (Key, Bytes) =
            ("fact/1794844057097-9ed1ee00-0".into(), facts(vec![Fact::UpgradeFinished { level: 2 }]));
        let level = |level| (Key::from(FORMAT), encode(&FormatRecord { level }));
        let mut raising = Txn { put: vec![fact.clone(), level(2)], ..Txn::default() };
        let before = raising.clone();
        assert!(!downgrade_txn(&mut raising, 1));
        assert_eq!(raising, before);
        let mut other = Txn { put: vec![fact, level(1)], ..Txn::default() };
        assert!(downgrade_txn(&mut other, 1));
        assert_eq!(other.put, [(Key::from(FORMAT), relabel(&level(1).1))]);
        assert!(!downgrade_txn(&mut before.clone(), 2));
    }
}
