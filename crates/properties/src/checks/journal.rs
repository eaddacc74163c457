//! The agent's journal.
//!
//! Invariants: an accepted journal round-trips, and an agent resumes from it without a panic: after a restart, after
//! a boot, with a document and with time.

use std::time::Duration;

use crate::journal;
use crate::machine::io::Input;
use crate::machine::tracked_event::Phase;
use crate::machine::{Setup, State};
use crate::planted_bug;
use notbefore_client::clock::Moment;
use notbefore_client::document::{Document, EventId, EventsVersion};
use notbefore_client::identity::Identity;

pub fn check(bytes: &[u8]) -> bool {
    let Ok(state) = journal::read(bytes) else { return false };
    let written = journal::write(&state).expect("a state can be written");
    let again = journal::read(&written).expect("what was written is read");
    assert_eq!(again, state);
    assert_eq!(journal::write(&again).expect("a state can be written"), written);
    for boot in [Some("this"), None] {
        go_on(state.clone(), boot.map(str::to_owned));
    }
    let is_bug = |phase: Phase| match phase {
        Phase::Preparing { progress, .. } | Phase::Restoring { progress, .. } => progress.attempt > 100,
        Phase::Ready { .. } | Phase::Withheld { .. } | Phase::Over { .. } | Phase::Done => false,
    };
    planted_bug(state.events().iter().any(|handled| handled.phase().is_some_and(is_bug)));
    true
}

fn go_on(state: State, boot: Option<String>) {
    let rules = state.events().iter().filter_map(|handled| handled.rule().cloned()).collect();
    let listed: Vec<_> = state.events().iter().map(|handled| handled.event.clone()).collect();
    let asked = listed.first().map_or_else(|| EventId::new("A"), |event| event.id.clone());
    let me = listed.iter().find_map(|event| event.leader()).unwrap_or("web-0").to_owned();
    let setup = Setup { rules, me: Identity::named(me), sure: true };
    let moment = |seconds: u64| Moment {
        tick: Duration::from_secs(seconds),
        wall: jiff::Timestamp::from_second(1_474_309_787 + seconds as i64).expect("a time"),
    };
    let (mut state, _) = state.resume(&setup, boot, moment(1));
    let document = |events| Input::Document {
        document: Document { incarnation: "2".to_owned(), events },
        served_at: None,
        version: EventsVersion::NEWEST,
    };
    let inputs = [
        Input::Tick,
        document(listed),
        Input::Back,
        Input::Retry,
        Input::RetryEvent { event: asked },
        Input::Tick,
        document(Vec::new()),
        Input::Tick,
    ];
    for (input, seconds) in inputs.into_iter().zip([2, 10, 11, 12, 13, 1_000, 1_001, 10_000]) {
        (state, _) = state.handle(&setup, input, moment(seconds));
        let _ = state.next_due(&setup, moment(seconds));
    }
}
