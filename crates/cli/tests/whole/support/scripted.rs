//! A fake platform with scripted responses, for cases that the real service never produces.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};

/// Starts a platform that maps a request line to a status and a body, or to no response. It serves during the test;
/// returns its URL.
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
                // Keep the connection of an unanswered client open.
                kept.push(stream);
                continue;
            };
            let body = body.into();
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            // Ignore clients that have disconnected.
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    endpoint
}
