//! The body of an approval.
//!
//! Invariants: an accepted body names between one event and the limit, each once; the same events in plain form parse
//! to the same value.

use std::collections::HashSet;

use crate::planted_bug;
use notbefore_wire::guest::start_requests::{START_REQUESTS_MAX, parse};
use serde_json::json;

pub fn check(body: &[u8]) -> bool {
    let Ok(ids) = parse(body) else { return false };
    assert!((1..=START_REQUESTS_MAX).contains(&ids.len()), "{} events", ids.len());
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "an event twice");
    let requests: Vec<_> = ids.iter().map(|id| json!({ "EventId": id })).collect();
    let plain = json!({ "StartRequests": requests }).to_string();
    assert_eq!(parse(plain.as_bytes()).as_ref(), Ok(&ids), "{plain}");
    planted_bug(ids.len() == 3);
    true
}
