//! A load generator of our own: many guests, each from an address of its own, on one thread.
//!
//! wrk calls from one address and asks again only when it is answered, so a server that stalls is asked less and
//! looks better than it is. Here arrivals may come at a fixed rate whatever the answers do (*open loop*), and
//! latency counts from the moment at which a request should have gone out. A fixed number of requests in flight
//! (*closed loop*) is there as well, for measuring what one costs.
//!
//! | file | what is in it |
//! |---|---|
//! | [`guests`] | the addresses that they call from |
//! | [`connection`] | one connection: what it has still to send, what it has read |
//! | [`generator`] | all of them, and who asks next |
//! | [`command`] | the generator by itself: `./dev bench load` |

pub mod command;
pub mod connection;
pub mod generator;
pub mod guests;

use std::collections::BTreeMap;
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::http::Answer;
use crate::random::Random;

/// When requests go out.
#[derive(Clone, Copy, Debug)]
pub enum Arrivals {
    /// So many a second, whatever the answers do.
    Open {
        /// Requests a second.
        rate: f64,
    },
    /// So many at a time; the next goes out when one is answered.
    Closed {
        /// Requests in flight.
        in_flight: usize,
    },
}

/// How connections are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Kept open.
    KeepAlive,
    /// One for each request.
    ConnectionEach,
}

/// What is asked, and what becomes of the answers.
pub trait Traffic {
    /// Who asks next, of so many connections; none if nobody has anything to ask for now.
    fn pick(&mut self, random: &mut Random, connections: usize) -> Option<usize> {
        Some(random.below(connections))
    }

    /// Writes the next request of a connection.
    fn request(&mut self, connection: usize, out: &mut Vec<u8>);

    /// Sees an answer whose last byte has come just now.
    fn answered(&mut self, _connection: usize, _answer: &Answer<'_>, _at: Instant) -> anyhow::Result<()> {
        Ok(())
    }

    /// Does something else between requests; it must be short.
    fn meanwhile(&mut self) {}
}

/// The same request from everybody.
pub struct Same(pub Vec<u8>);

impl Traffic for Same {
    fn request(&mut self, _connection: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests that were not answered: the connection ended, or time was up.
    pub unanswered: u64,
    /// How long answers took, in nanoseconds from when the request should have gone out.
    pub latency: Histogram<u64>,
    /// How long it took, in seconds, at most as long as was asked for.
    pub seconds: f64,
}

impl Outcome {
    /// How many answers there were.
    pub fn answers(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// Complains of every answer but those of one status.
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
