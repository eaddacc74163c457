//! All connections of a load, and who asks next.
//!
//! It has a core of its own, so it looks for answers without sleeping while it sends at a rate: a timer of the
//! kernel would be up to a millisecond late, which is more than an answer takes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context;
use hdrhistogram::Histogram;
use mio::{Events, Poll, Token};

use super::connection::{Connection, Progress};
use super::guests;
use super::{Arrivals, Outcome, Traffic, Use};
use crate::clock;
use crate::random::Random;

/// How long answers are waited for when no more is sent.
const GRACE: Duration = Duration::from_secs(5);

/// How many connections are made at once; more would overflow the server's queue of new ones.
const CONNECTING_MAX: usize = 128;

/// Guests that are connected, or connect for each request.
pub struct Generator {
    to: SocketAddr,
    use_: Use,
    poll: Poll,
    connections: Vec<Connection>,
    shared: Vec<u8>,
    random: Random,
}

/// One run's account.
struct Run {
    in_flight: usize,
    statuses: BTreeMap<u16, u64>,
    unanswered: u64,
    latency: Histogram<u64>,
}

impl Generator {
    /// No guests yet.
    pub fn new(to: SocketAddr, use_: Use) -> anyhow::Result<Self> {
        Ok(Self {
            to,
            use_,
            poll: Poll::new().context("epoll")?,
            connections: Vec::new(),
            shared: vec![0; 256 * 1024],
            random: Random::new(7),
        })
    }

    /// Adds the guests of these numbers. If they keep their connections, they make them now.
    pub fn add(&mut self, numbers: impl IntoIterator<Item = usize>) -> anyhow::Result<()> {
        self.connections.extend(numbers.into_iter().map(|n| Connection::new(guests::address(n))));
        if self.use_ == Use::KeepAlive { self.connect() } else { Ok(()) }
    }

    /// How many guests there are.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Connects whoever is not, some at a time.
    fn connect(&mut self) -> anyhow::Result<()> {
        let mut events = Events::with_capacity(1024);
        let all: Vec<usize> =
            (0..self.connections.len()).filter(|&at| !self.connections[at].is_open()).collect();
        for some in all.chunks(CONNECTING_MAX) {
            for &at in some {
                self.connections[at].open(self.to, self.poll.registry(), Token(at))?;
            }
            let mut connected = 0;
            while connected < some.len() {
                self.poll.poll(&mut events, Some(GRACE))?;
                anyhow::ensure!(!events.is_empty(), "{} did not accept {} connections", self.to, self.len());
                connected += events.iter().filter(|event| event.is_writable()).count();
            }
        }
        Ok(())
    }

    /// Sends until a time, or until nobody has anything to ask and all is answered.
    pub fn run(
        &mut self,
        arrivals: Arrivals,
        span: Duration,
        traffic: &mut dyn Traffic,
    ) -> anyhow::Result<Outcome> {
        let mut run = Run {
            in_flight: 0,
            statuses: BTreeMap::new(),
            unanswered: 0,
            latency: Histogram::new_with_max(600_000_000_000, 3)?,
        };
        let mut events = Events::with_capacity(4096);
        let begin = clock::now();
        let end = begin + span;
        let mut arrived: u64 = 0;
        let mut stopped_at = None;
        loop {
            let now = clock::now();
            let mut more = now < end;
            if more {
                match arrivals {
                    Arrivals::Open { rate } => {
                        while begin + Duration::from_secs_f64(arrived as f64 / rate) <= now {
                            let due = begin + Duration::from_secs_f64(arrived as f64 / rate);
                            arrived += 1;
                            if let Some(at) = traffic.pick(&mut self.random, self.connections.len()) {
                                self.arrive(at, due, traffic, &mut run)?;
                            }
                        }
                    }
                    Arrivals::Closed { in_flight } => {
                        while run.in_flight < in_flight {
                            let Some(mut at) = traffic.pick(&mut self.random, self.connections.len()) else {
                                more = false;
                                break;
                            };
                            // Whoever is drawn and busy lets the next one go first.
                            while self.connections[at].asked_at.is_some() {
                                at = (at + 1) % self.connections.len();
                            }
                            self.arrive(at, now, traffic, &mut run)?;
                        }
                    }
                }
            }
            if !more {
                let stopped = *stopped_at.get_or_insert(now.min(end));
                if run.in_flight == 0 || now > end + GRACE {
                    run.unanswered += run.in_flight as u64;
                    return Ok(run.outcome(stopped.duration_since(begin)));
                }
            }
            let patience = match arrivals {
                Arrivals::Open { .. } if more => Duration::ZERO,
                Arrivals::Open { .. } | Arrivals::Closed { .. } => Duration::from_millis(20),
            };
            match self.poll.poll(&mut events, Some(patience)) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => other.context("waiting for answers")?,
            }
            for event in &events {
                self.progress(event.token().0, event.is_writable(), traffic, &mut run)?;
            }
            traffic.meanwhile();
        }
    }

    /// A request is due at a connection.
    fn arrive(
        &mut self,
        at: usize,
        due: Instant,
        traffic: &mut dyn Traffic,
        run: &mut Run,
    ) -> anyhow::Result<()> {
        let connection = &mut self.connections[at];
        run.in_flight += 1;
        if connection.asked_at.is_some() {
            connection.waiting.push_back(due);
            return Ok(());
        }
        connection.asked_at = Some(due);
        traffic.request(at, connection.output());
        if !connection.is_open() {
            connection.open(self.to, self.poll.registry(), Token(at))?;
        }
        if !connection.send() {
            self.ended(at, traffic, run)?;
        }
        Ok(())
    }

    fn progress(
        &mut self,
        at: usize,
        writable: bool,
        traffic: &mut dyn Traffic,
        run: &mut Run,
    ) -> anyhow::Result<()> {
        let connection = &mut self.connections[at];
        if writable && connection.asked_at.is_some() && !connection.send() {
            return self.ended(at, traffic, run);
        }
        let asked_at = connection.asked_at;
        let received = connection.receive(&mut self.shared, |answer| {
            let now = clock::now();
            let asked_at = asked_at.context("an answer that nobody asked for")?;
            run.latency.saturating_record(now.duration_since(asked_at).as_nanos() as u64);
            *run.statuses.entry(answer.status).or_default() += 1;
            traffic.answered(at, answer, now)
        })?;
        match received {
            Progress::Nothing => Ok(()),
            Progress::Answered => {
                run.in_flight -= 1;
                connection.asked_at = None;
                if self.use_ == Use::ConnectionEach {
                    connection.close(self.poll.registry());
                }
                self.next_of(at, traffic, run)
            }
            Progress::Ended => self.ended(at, traffic, run),
        }
    }

    /// A connection has ended, with or without a request on it.
    fn ended(&mut self, at: usize, traffic: &mut dyn Traffic, run: &mut Run) -> anyhow::Result<()> {
        let connection = &mut self.connections[at];
        connection.close(self.poll.registry());
        if connection.asked_at.take().is_some() {
            run.in_flight -= 1;
            run.unanswered += 1;
        }
        self.next_of(at, traffic, run)
    }

    /// Sends what has waited for the connection to be free.
    fn next_of(&mut self, at: usize, traffic: &mut dyn Traffic, run: &mut Run) -> anyhow::Result<()> {
        let Some(due) = self.connections[at].waiting.pop_front() else { return Ok(()) };
        run.in_flight -= 1;
        self.arrive(at, due, traffic, run)
    }
}

impl Run {
    fn outcome(self, sent_for: Duration) -> Outcome {
        Outcome {
            statuses: self.statuses,
            unanswered: self.unanswered,
            latency: self.latency,
            seconds: sent_for.as_secs_f64(),
        }
    }
}
