//! A platform that answers what a test wants it to, for what the real service never does.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};

/// A platform that answers as the test says, by a request's first line: with a status and a body, or not at all. It serves
/// for as long as the test runs; the answer is its URL.
pub fn scripted_platform<Body: Into<String>>(
    answer: impl Fn(&str) -> Option<(&'static str, Body)> + Send + 'static,
) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let Some(line) = lines.next() else { continue };
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let Some((status, body)) = answer(&line) else {
                // Who is not answered waits for as long as it is not hung up on.
                kept.push(stream);
                continue;
            };
            let body = body.into();
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            // Whoever has gone away is no concern of ours.
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    endpoint
}
