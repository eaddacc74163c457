//! Floods of connections against every listener: the operator listener with and without TLS, the agent's listener, the
//! guest listener. Each comes from one source and from 200, is there before the first request that counts, and goes on
//! between requests. Every request that counts is answered.

mod agent;
mod guests;
mod operators;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};

use crate::support::connect;

/// How many requests count in each flood.
const REQUESTS: usize = 40;
/// How many connections of the flood come between two of them.
const BETWEEN: usize = 8;

/// One source for all connections of a flood, or 200 that take turns. None of them is 127.0.0.1.
const SOURCES: [u8; 2] = [1, 200];

/// Connections that say one thing each, and read nothing.
struct Flood<'a> {
    to: SocketAddr,
    sources: u8,
    words: &'a [&'a [u8]],
    open: Vec<TcpStream>,
}

impl<'a> Flood<'a> {
    fn new(to: SocketAddr, sources: u8, words: &'a [&'a [u8]]) -> Self {
        Self { to, sources, words, open: Vec::new() }
    }

    /// Opens so many more connections.
    fn rise(&mut self, count: usize) {
        for _ in 0..count {
            let number = self.open.len();
            let mut stream = connect(source(number, self.sources), self.to).unwrap();
            // It may be closed for another already.
            let _ = stream.write_all(self.words[number % self.words.len()]);
            self.open.push(stream);
        }
    }

    /// Makes requests while the flood goes on, and gives how many were answered 200.
    fn answered(&mut self, mut request: impl FnMut() -> u16) -> usize {
        let answers = (0..REQUESTS).map(|_| {
            self.rise(BETWEEN);
            request()
        });
        answers.filter(|status| *status == 200).count()
    }
}

/// Where the connection of this number comes from.
fn source(number: usize, sources: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 9, (number % usize::from(sources)) as u8 + 1).into()
}

fn local() -> IpAddr {
    Ipv4Addr::LOCALHOST.into()
}

/// How many log lines hold these words, and whether no two of them are within half a second.
fn lines_with(log: &str, words: &str) -> (usize, bool) {
    let times: Vec<jiff::Timestamp> = log
        .lines()
        .filter(|line| line.contains(words))
        .map(|line| line.split_whitespace().next().unwrap().parse().unwrap())
        .collect();
    // A line may be written late on a busy machine, so two of them may be nearer than the second that is kept.
    let half_a_second = jiff::SignedDuration::from_millis(500);
    let apart = times.windows(2).all(|pair| pair[1].duration_since(pair[0]) >= half_a_second);
    (times.len(), apart)
}
