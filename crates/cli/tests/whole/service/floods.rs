//! Connection floods against every listener: operator listener with and without TLS, agent, guest listener. Each flood
//! comes from one source and from 200, starts before the first measured request, and continues between requests. Every
//! measured request must be answered.

mod agent;
mod guests;
mod operators;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};

use crate::support::connect;

/// Measured requests per flood.
const REQUESTS: usize = 40;
/// Flood connections between two measured requests.
const BETWEEN: usize = 8;

/// One source for all flood connections, or 200 in turn. None is 127.0.0.1.
const SOURCES: [u8; 2] = [1, 200];

/// Connections that send one message each and read nothing.
struct Flood<'a> {
    to: SocketAddr,
    sources: u8,
    payloads: &'a [&'a [u8]],
    open: Vec<TcpStream>,
}

impl<'a> Flood<'a> {
    fn new(to: SocketAddr, sources: u8, payloads: &'a [&'a [u8]]) -> Self {
        Self { to, sources, payloads, open: Vec::new() }
    }

    /// Opens this many more connections.
    fn open(&mut self, count: usize) {
        for _ in 0..count {
            let number = self.open.len();
            let mut stream = connect(source(number, self.sources), self.to).unwrap();
            // The service may already have closed it for a newer connection.
            let _ = stream.write_all(self.payloads[number % self.payloads.len()]);
            self.open.push(stream);
        }
    }

    /// Sends requests during the flood; returns how many were answered 200.
    fn answered(&mut self, mut request: impl FnMut() -> u16) -> usize {
        let answers = (0..REQUESTS).map(|_| {
            self.open(BETWEEN);
            request()
        });
        answers.filter(|status| *status == 200).count()
    }
}

/// Source address of the n-th connection.
fn source(number: usize, sources: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 9, (number % usize::from(sources)) as u8 + 1).into()
}

fn local() -> IpAddr {
    Ipv4Addr::LOCALHOST.into()
}

/// Number of log lines with this text, and whether they are at least half a second apart.
fn lines_with(log: &str, payloads: &str) -> (usize, bool) {
    let times: Vec<jiff::Timestamp> = log
        .lines()
        .filter(|line| line.contains(payloads))
        .map(|line| line.split_whitespace().next().unwrap().parse().unwrap())
        .collect();
    // On a busy machine a line may be written late, so two lines may be less than the enforced second apart.
    let half_a_second = jiff::SignedDuration::from_millis(500);
    let apart = times.windows(2).all(|pair| pair[1].duration_since(pair[0]) >= half_a_second);
    (times.len(), apart)
}
