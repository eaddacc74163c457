//! Load generator: many guests, each with its own source address, on one thread.
//!
//! wrk uses one address and sends the next request only after a response (closed loop), so a server that stalls gets
//! less load and looks better (coordinated omission). Here arrivals have a fixed rate (*open loop*), and latency
//! counts from the intended send time. A *closed loop* with a fixed number of requests in flight is available too, to
//! measure the cost of one request.
//!
//! | file | what is in it |
//! |---|---|
//! | [`guests`] | source addresses of guests |
//! | [`connection`] | one connection: pending output, received input |
//! | [`generator`] | all connections, and which sends next |
//! | [`command`] | the generator as a command: `./dev bench load` |

pub mod command;
pub mod connection;
pub mod generator;
pub mod guests;

use std::collections::BTreeMap;
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::http::Answer;
use crate::random::Random;

/// Arrival of requests.
#[derive(Clone, Copy, Debug)]
pub enum Arrivals {
    /// Open loop: a fixed rate, independent of responses.
    Open {
        /// Requests a second.
        rate: f64,
    },
    /// Closed loop: the next request follows a response.
    Closed {
        /// Requests in flight.
        in_flight: usize,
    },
}

/// Use of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Kept open.
    KeepAlive,
    /// One per request.
    ConnectionEach,
}

/// The requests to send, and the handler of responses.
pub trait Traffic {
    /// The connection that sends next; None if there is nothing to send now.
    fn pick(&mut self, random: &mut Random, connections: usize) -> Option<usize> {
        Some(random.below(connections))
    }

    /// Writes the next request of a connection.
    fn request(&mut self, connection: usize, out: &mut Vec<u8>);

    /// Handles a response whose last byte has just arrived.
    fn answered(&mut self, _connection: usize, _answer: &Answer<'_>, _at: Instant) -> anyhow::Result<()> {
        Ok(())
    }

    /// Runs other work between requests; must be short.
    fn between_requests(&mut self) {}
}

/// The same request on all connections.
pub struct Same(pub Vec<u8>);

impl Traffic for Same {
    fn request(&mut self, _connection: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without a response: connection closed, or timeout.
    pub unanswered: u64,
    /// Latency in nanoseconds from the intended send time.
    pub latency: Histogram<u64>,
    /// Duration in seconds, at most the requested one.
    pub seconds: f64,
}

impl Outcome {
    /// Number of responses.
    pub fn answers(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// Fails unless all responses have this status.
    pub fn only(&self, status: u16) -> anyhow::Result<()> {
        let good = self.statuses.get(&status).copied().unwrap_or_default();
        anyhow::ensure!(
            good == self.answers() && self.unanswered == 0 && good > 0,
            "expected answers {status} only, got {:?} and {} without an answer",
            self.statuses,
            self.unanswered
        );
        Ok(())
    }

    /// A percentile of the latency in milliseconds.
    pub fn milliseconds(&self, percentile: f64) -> f64 {
        self.latency.value_at_percentile(percentile) as f64 / 1e6
    }
}
