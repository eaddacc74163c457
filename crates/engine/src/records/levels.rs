//! Writing at an older format level: during a rolling upgrade the nodes of the older release read everything.
//!
//! A node of a cluster writes at the cluster's level until an operator finishes the upgrade. What a newer level added is
//! left out, so it does not take effect before. The leader's state is what it has written: without that, too.
//!
//! When a level is added, leave its fields out here.

use bytes::Bytes;
use notbefore_core::Operation;
use notbefore_store::{Txn, check};

use super::{DecodeError, FORMAT_LEVEL, decode, encode, level_and_json};
use crate::cluster::{FORMAT, FormatRecord};
use crate::keys::RecordKey;

/// A value at an older level, without what newer levels added. A value that is not newer is returned as it is.
pub fn downgrade(key: &str, value: &Bytes, level: u32) -> Bytes {
    let Some((written, _)) = level_and_json(value).filter(|(written, _)| *written > level) else {
        return value.clone();
    };
    check(|| (written, level) == (2, 1), "each older level needs its own function");
    downgrade_to_1(key, value).unwrap_or_else(|error| {
        // A reader of the older level refuses it; it never misreads it.
        check(|| false, &format!("a record of this release cannot be read: {error}"));
        value.clone()
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
    for (key, value) in &mut txn.put {
        let older = downgrade(key, value, level);
        has_changed |= older != *value;
        *value = older;
    }
    has_changed
}

fn downgrade_to_1(key: &str, value: &Bytes) -> Result<Bytes, DecodeError> {
    Ok(match RecordKey::parse(key) {
        Ok(RecordKey::Operation(_)) => {
            let mut operation: Operation = decode(key, value)?;
            operation.targets.iter_mut().for_each(|target| target.outcome = None);
            relabel(&encode(&operation))
        }
        Ok(
            RecordKey::Scope(_)
            | RecordKey::Vm(_)
            | RecordKey::Claim { .. }
            | RecordKey::Host(_)
            | RecordKey::Command { .. }
            | RecordKey::Fact(_)
            | RecordKey::Refused(_)
            | RecordKey::Past(_)
            | RecordKey::Ended { .. }
            | RecordKey::Seen { .. }
            | RecordKey::Heard(_)
            | RecordKey::Alive
            | RecordKey::Swept
            | RecordKey::Token(_)
            | RecordKey::Secret(_)
            | RecordKey::ClusterFormat
            | RecordKey::Leader
            | RecordKey::ClusterNode(_),
        )
        | Err(_) => relabel(value),
    })
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
    use notbefore_core::{Cause, Outcome, Target, samples};
    use notbefore_store::Key;

    use super::*;
    use crate::records;

    #[test]
    fn what_level_2_added_is_left_out() {
        let operation = |outcome| {
            let part = samples::target("web", 0, 1, &[samples::vm(1)]);
            let parts = vec![Target { outcome, ..part }];
            encode(&samples::operation(1, Cause::HostReboot, parts))
        };
        let key = records::operation(samples::operation_id(1));
        let newer = operation(Some(Outcome::Completed));
        let older = downgrade(&key, &newer, 1);
        assert_eq!(older, relabel(&operation(None)));
        assert!(older.starts_with(b"1 "), "{older:?}");
        assert_eq!(decode::<Operation>(&key, &older), decode(&key, &operation(None)));
        assert_eq!(downgrade(&key, &older, 1), older);
        assert_eq!(downgrade(&key, &newer, 2), newer);
    }

    #[test]
    fn other_records_keep_their_content() {
        let scope = samples::scope("web", &[samples::vm(1)]);
        let value = encode(&scope);
        let older = downgrade(&records::scope(&scope.id()), &value, 1);
        assert_eq!(older, relabel(&value));
        assert_eq!(downgrade("later/kind", &value, 1), older);
    }

    #[test]
    fn transaction_that_raises_the_level_is_written_at_it() {
        let alive: (Key, Bytes) =
            (records::ALIVE.into(), encode(&records::Alive { at: samples::at(0), boot: None }));
        let level = |level| (Key::from(FORMAT), encode(&FormatRecord { level }));
        let mut raising = Txn { put: vec![alive.clone(), level(2)], ..Txn::default() };
        let before = raising.clone();
        assert!(!downgrade_txn(&mut raising, 1));
        assert_eq!(raising, before);
        let mut other = Txn { put: vec![alive.clone(), level(1)], ..Txn::default() };
        assert!(downgrade_txn(&mut other, 1));
        let relabelled = |(key, value): (Key, Bytes)| (key, relabel(&value));
        assert_eq!(other.put, [relabelled(alive), relabelled(level(1))]);
        assert!(!downgrade_txn(&mut before.clone(), 2));
    }
}
