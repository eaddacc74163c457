//! Micro-benchmarks of the two central pure functions: `apply`, which computes a scope's next value, and `render`,
//! which writes a document.
//!
//! They run in the benchmark's process, without network or store.

use std::hint::black_box;
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use notbefore_core::{
    Actor, ApplyContext, Cause, Command, DriverKind, EventId, NewEvent, NoFreeHosts, OperationId, Release,
    Resource, Scope, Settings,
};
use notbefore_engine::records;
use notbefore_wire::guest::document::{Document, Event, EventType, RenderStyle, Source, Status};
use notbefore_wire::guest::start_requests;
use notbefore_wire::guest::version::EventsVersion;
use uuid::Uuid;

use super::Bench;
use super::schedule::years_from_now;
use crate::clock;
use crate::fleet::{Callers, Fleet};

/// Duration of a round.
const ROUND: Duration = Duration::from_millis(50);

/// Iterations between two reads of the clock.
const BATCH: u32 = 32;

/// Runs all of them.
pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    for vms in [10, 1_000] {
        apply(bench, vms)?;
    }
    for events in [1, 10, 100] {
        render(bench, events);
    }
    let body = format!("{{\"StartRequests\":[{{\"EventId\":\"{}\"}}]}}", Uuid::from_u128(7));
    measure(bench, "read an approval", || start_requests::parse(black_box(body.as_bytes())).is_ok());
    Ok(())
}

fn apply(bench: &mut Bench, vms: usize) -> anyhow::Result<()> {
    let scope = Fleet { scopes: 1, per_scope: vms, callers: Callers::All }.scope(0);
    let settings = Settings::default();
    let by = Actor::Token("root".to_owned());
    let now = Timestamp::UNIX_EPOCH;
    let context = ApplyContext {
        now,
        by: &by,
        enabled: true,
        settings: &settings,
        runner: "bench",
        host_parts: &[],
        clock_hold: None,
        free_hosts: &NoFreeHosts,
    };
    let member = scope.members.first().context("a scope without VMs")?;
    let event = EventId(Uuid::from_u128(7));
    let new = NewEvent {
        id: event,
        operation: OperationId(Uuid::from_u128(8)),
        cause: Cause::HostReboot,
        update_domain: member.update_domain,
        resources: vec![Resource { vm: member.vm, name: member.name.clone(), host: None }],
        not_before: Some(years_from_now()),
        duration_s: -1,
        description: "Host server is undergoing maintenance.".to_owned(),
        driver: DriverKind::Simulated,
        release: Release::Each,
        time_given: false,
        joint_start: false,
        waits_for_host: false,
        released: false,
    };
    let open = |scope: &Scope| scope.apply(Command::Open(vec![new.clone()]), context);
    let announced = open(&scope)?.scope;
    let approve = |scope: &Scope| scope.apply(Command::Approve(vec![event]), context);
    approve(&announced)?;
    let (key, bytes) = (records::scope(&announced.id()), records::encode(&announced));
    let of = format!("a scope of {vms} VMs");
    measure(bench, &format!("apply an announcement to {of}"), || open(black_box(&scope)).is_ok());
    measure(bench, &format!("apply an approval to {of}"), || approve(black_box(&announced)).is_ok());
    measure(bench, &format!("write {of} as a record"), || records::encode(black_box(&announced)));
    measure(bench, &format!("read {of} from its record"), || {
        records::decode::<Scope>(&key, black_box(&bytes)).is_ok()
    });
    Ok(())
}

fn render(bench: &mut Bench, events: usize) {
    let event = |n: usize| Event {
        id: Uuid::from_u128(n as u128),
        status: Status::Scheduled { not_before: years_from_now() },
        event_type: EventType::Reboot,
        resources: vec![format!("web-{n:06}-0001")],
        description: "Host server is undergoing maintenance.".to_owned(),
        source: Source::Platform,
        duration_in_seconds: -1,
    };
    let document = Document { incarnation: 7, events: (0..events).map(event).collect() };
    let style = RenderStyle::default();
    measure(bench, &format!("render a document of {events} events"), || {
        black_box(&document).render(EventsVersion::V2020_07_01, &style)
    });
}

/// Records the duration of one call, in microseconds.
fn measure<T>(bench: &mut Bench, what: &str, mut work: impl FnMut() -> T) {
    let mut round = || {
        let (begin, mut done) = (clock::now(), 0_u32);
        while begin.elapsed() < ROUND {
            for _ in 0..BATCH {
                black_box(work());
            }
            done += BATCH;
        }
        begin.elapsed().as_secs_f64() * 1e6 / f64::from(done)
    };
    round();
    let rounds: Vec<f64> = (0..bench.rounds()).map(|_| round()).collect();
    bench.measured(what, "µs", &rounds, None);
}
