//! Bodies of operator requests. The first line names the type, the rest is the body.
//!
//! Invariants: an accepted body round-trips, and an unknown field is rejected.

use std::fmt::Debug;

use crate::planted_bug;
use notbefore_wire::operator::hosts::{HostAction, HostsAction};
use notbefore_wire::operator::tokens::CreateToken;
use notbefore_wire::operator::{AddVm, CompleteEvent, ScheduleEvents, ScopeSpec, VmAction};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub fn check(bytes: &[u8]) -> bool {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return false };
    let body = &bytes[end + 1..];
    match &bytes[..end] {
        b"AddVm" => read::<AddVm>(body).is_some(),
        b"CompleteEvent" => read::<CompleteEvent>(body).is_some(),
        b"CreateToken" => read::<CreateToken>(body).is_some(),
        b"HostAction" => read::<HostAction>(body).is_some(),
        b"HostsAction" => read::<HostsAction>(body).is_some(),
        b"ScheduleEvents" => read::<ScheduleEvents>(body)
            .inspect(|read| planted_bug(read.vms.len() == 3 && read.in_seconds == Some(0)))
            .is_some(),
        b"ScopeSpec" => read::<ScopeSpec>(body).is_some(),
        b"VmAction" => read::<VmAction>(body).is_some(),
        _ => false,
    }
}

fn read<T: Serialize + DeserializeOwned + PartialEq + Debug>(body: &[u8]) -> Option<T> {
    let read: T = serde_json::from_slice(body).ok()?;
    let mut written = serde_json::to_value(&read).expect("it can be written");
    let again: T = serde_json::from_value(written.clone()).expect("what was written is read");
    assert_eq!(read, again);
    // serde reads a list as struct fields in order; the output is an object.
    let Value::Object(fields) = &mut written else { panic!("not an object: {written}") };
    fields.insert("nobody_knows_this".to_owned(), Value::Null);
    assert!(serde_json::from_value::<T>(written).is_err(), "an unknown field is accepted");
    Some(read)
}
