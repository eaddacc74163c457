//! Event loop of the load generator: all connections, and which sends next.
//!
//! At a fixed rate it busy-polls on its own core: a kernel timer may be a millisecond late, which is more than a
//! response takes.

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

/// How long to wait for responses after the last request.
const GRACE: Duration = Duration::from_secs(5);

/// Concurrent connection attempts; more would overflow the server's accept queue.
const CONNECTING_MAX: usize = 128;

/// Guests with kept connections, or one per request.
pub struct Generator {
    to: SocketAddr,
    use_: Use,
    poll: Poll,
    connections: Vec<Connection>,
    shared: Vec<u8>,
    random: Random,
}

/// Counters of one run.
struct Run {
    in_flight: usize,
    statuses: BTreeMap<u16, u64>,
    unanswered: u64,
    latency: Histogram<u64>,
}

impl Generator {
    /// A generator without guests.
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

    /// Adds guests by index. Guests with kept connections connect now.
    pub fn add(&mut self, numbers: impl IntoIterator<Item = usize>) -> anyhow::Result<()> {
        self.connections.extend(numbers.into_iter().map(|n| Connection::new(guests::address(n))));
        if self.use_ == Use::KeepAlive { self.connect() } else { Ok(()) }
    }

    /// Number of guests.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Connects all unconnected guests, in batches.
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

    /// Sends until a time, or until no request is left and all are answered.
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
        loop {
            let now = clock::now();
            let more = match arrivals {
                Arrivals::Open { rate } => {
                    // Send everything that is due, even if this thread was delayed.
                    let mut due = begin + Duration::from_secs_f64(arrived as f64 / rate);
                    while due <= now && due < end {
                        if let Some(at) = traffic.pick(&mut self.random, self.connections.len()) {
                            self.arrive(at, due, traffic, &mut run)?;
                        }
                        arrived += 1;
                        due = begin + Duration::from_secs_f64(arrived as f64 / rate);
                    }
                    due < end
                }
                Arrivals::Closed { in_flight } => {
                    now < end && self.fill(in_flight, now, traffic, &mut run)?
                }
            };
            if !more && (run.in_flight == 0 || now > end + GRACE) {
                run.unanswered += run.in_flight as u64;
                self.abandon();
                return Ok(run.outcome(now.min(end).duration_since(begin)));
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
            traffic.between_requests();
        }
    }

    /// Closes connections with a response outstanding, so that it cannot reach the next run.
    fn abandon(&mut self) {
        for connection in self.connections.iter_mut().filter(|connection| connection.asked_at.is_some()) {
            connection.close(self.poll.registry());
            connection.asked_at = None;
            connection.waiting.clear();
        }
    }

    /// Sends until the number in flight is reached; false if no request is left.
    fn fill(
        &mut self,
        in_flight: usize,
        now: Instant,
        traffic: &mut dyn Traffic,
        run: &mut Run,
    ) -> anyhow::Result<bool> {
        while run.in_flight < in_flight {
            let Some(mut at) = traffic.pick(&mut self.random, self.connections.len()) else {
                return Ok(false);
            };
            // A busy guest is skipped.
            while self.connections[at].asked_at.is_some() {
                at = (at + 1) % self.connections.len();
            }
            self.arrive(at, now, traffic, run)?;
        }
        Ok(true)
    }

    /// A request is due on a connection.
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
            let asked_at = asked_at.context("a response without a request")?;
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

    /// A connection closed, with or without a request in flight.
    fn ended(&mut self, at: usize, traffic: &mut dyn Traffic, run: &mut Run) -> anyhow::Result<()> {
        let connection = &mut self.connections[at];
        connection.close(self.poll.registry());
        if connection.asked_at.take().is_some() {
            run.in_flight -= 1;
            run.unanswered += 1;
        }
        self.next_of(at, traffic, run)
    }

    /// Sends a queued request on a free connection.
    fn next_of(&mut self, at: usize, traffic: &mut dyn Traffic, run: &mut Run) -> anyhow::Result<()> {
        let Some(due) = self.connections[at].waiting.pop_front() else { return Ok(()) };
        run.in_flight -= 1;
        self.arrive(at, due, traffic, run)
    }
}

impl Run {
    fn outcome(self, span: Duration) -> Outcome {
        Outcome {
            statuses: self.statuses,
            unanswered: self.unanswered,
            latency: self.latency,
            seconds: span.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener};

    use super::super::Same;
    use super::*;
    use crate::http::request;

    /// A server that answers every request, the first one late.
    fn server(stall: Duration) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for (at, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let mut first = at == 0;
                    while matches!(stream.read(&mut [0; 1024]), Ok(1..)) {
                        if std::mem::take(&mut first) {
                            clock::pause(stall);
                        }
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                    }
                });
            }
        });
        to
    }

    fn run(use_: Use, guests: usize, arrivals: Arrivals, stall: Duration) -> Outcome {
        let mut generator = Generator::new(server(stall), use_).unwrap();
        generator.add(0..guests).unwrap();
        let mut same = Same(request("GET", "/", "", "").into_bytes());
        generator.run(arrivals, Duration::from_millis(500), &mut same).unwrap()
    }

    #[test]
    fn at_a_rate_whoever_waits_behind_a_stall_counts_too() {
        let stall = Duration::from_millis(200);
        let outcome = run(Use::KeepAlive, 1, Arrivals::Open { rate: 100.0 }, stall);
        outcome.only(200).unwrap();
        assert_eq!(outcome.answers(), 50);
        // Twenty requests were due during the stall; half of them waited for half of it or longer.
        let slow = outcome.latency.count_between(90_000_000, 600_000_000_000);
        assert!(slow >= 10, "{slow} slow answers");
    }

    #[test]
    fn in_a_closed_loop_a_stall_is_one_slow_answer() {
        let stall = Duration::from_millis(200);
        let outcome = run(Use::KeepAlive, 1, Arrivals::Closed { in_flight: 1 }, stall);
        outcome.only(200).unwrap();
        assert!(outcome.latency.max() >= 200_000_000, "{outcome:?}");
        assert!(outcome.answers() > 10, "{outcome:?}");
    }

    #[test]
    fn connection_each() {
        let outcome = run(Use::ConnectionEach, 20, Arrivals::Closed { in_flight: 4 }, Duration::ZERO);
        outcome.only(200).unwrap();
        assert!(outcome.answers() > 20, "{outcome:?}");
    }
}
