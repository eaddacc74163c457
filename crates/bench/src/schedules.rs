//! Bulk scheduling of events through the operator listener, with 64 requests in flight unless told otherwise.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use crate::http::{self, Answer};
use crate::load::generator::Generator;
use crate::load::{Arrivals, Outcome, Traffic, Use};
use crate::random::Random;
use crate::service::Service;

/// Requests in flight.
const IN_FLIGHT: usize = 64;

/// Timeout of the whole run.
const PATIENCE: Duration = Duration::from_secs(300);

/// An event to schedule.
#[derive(Clone, Copy, Debug)]
pub struct Announcement {
    /// The VM to reboot.
    pub vm: Uuid,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its NotBefore.
    pub not_before: Timestamp,
}

/// Requests in progress.
struct Schedules<'a> {
    service: &'a Service,
    headers: String,
    announcements: &'a [Announcement],
    next: usize,
    /// The last request of each connection.
    sent: Vec<usize>,
    /// Interval of acknowledgements after which a poll verifies the event.
    verify_every: Option<usize>,
    acknowledged: usize,
    verified: usize,
}

impl Traffic for Schedules<'_> {
    fn pick(&mut self, random: &mut Random, connections: usize) -> Option<usize> {
        (self.next < self.announcements.len()).then(|| random.below(connections))
    }

    fn request(&mut self, connection: usize, out: &mut Vec<u8>) {
        let announcement = &self.announcements[self.next];
        self.sent[connection] = self.next;
        self.next += 1;
        let body =
            json!({ "type": "Reboot", "vms": [announcement.vm], "not_before": announcement.not_before });
        out.extend_from_slice(
            http::request("POST", "/v1/events", &self.headers, &body.to_string()).as_bytes(),
        );
    }

    fn answered(&mut self, connection: usize, answer: &Answer<'_>, _at: Instant) -> anyhow::Result<()> {
        anyhow::ensure!(
            answer.status < 300,
            "an event was refused: {}",
            String::from_utf8_lossy(answer.body)
        );
        self.acknowledged += 1;
        if self.verify_every.is_some_and(|every| self.acknowledged.is_multiple_of(every)) {
            let announcement = &self.announcements[self.sent[connection]];
            let document = self.service.poll(announcement.address)?.json()?;
            let events = document["Events"].as_array().context("a document without events")?;
            anyhow::ensure!(
                !events.is_empty(),
                "acknowledged, and not seen by a poll right after: {document}"
            );
            self.verified += 1;
        }
        Ok(())
    }
}

/// Schedules all events; returns the result and the number of successful verifications.
pub fn announce(
    service: &Service,
    announcements: &[Announcement],
    verify_every: Option<usize>,
) -> anyhow::Result<(Outcome, usize)> {
    announce_with(IN_FLIGHT, service, announcements, verify_every)
}

/// The same with another number of clients, each with one request in flight.
pub fn announce_with(
    clients: usize,
    service: &Service,
    announcements: &[Announcement],
    verify_every: Option<usize>,
) -> anyhow::Result<(Outcome, usize)> {
    let mut generator = Generator::new(service.operator, Use::KeepAlive)?;
    generator.add(0..clients)?;
    let mut schedules = Schedules {
        service,
        headers: service.authorization(),
        announcements,
        next: 0,
        sent: vec![0; clients],
        verify_every,
        acknowledged: 0,
        verified: 0,
    };
    let outcome = generator.run(Arrivals::Closed { in_flight: clients }, PATIENCE, &mut schedules)?;
    anyhow::ensure!(
        outcome.answers() == announcements.len() as u64 && outcome.unanswered == 0,
        "of {} events {} were acknowledged",
        announcements.len(),
        outcome.answers()
    );
    Ok((outcome, schedules.verified))
}
