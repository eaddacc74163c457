//! A server for an administrator's webhook.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use serde_json::Value;

/// The webhook server; received requests, with their heads, come out of the channel.
pub fn administrator() -> (String, mpsc::Receiver<(String, Value)>) {
    busy_administrator(mpsc::channel().1)
}

/// The same, but each request is answered only when the test sends a token or drops the sender.
pub fn busy_administrator(may_answer: mpsc::Receiver<()>) -> (String, mpsc::Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut text, mut chunk) = (String::new(), [0; 4_096]);
            let body = loop {
                let length = stream.read(&mut chunk).unwrap();
                text.push_str(&String::from_utf8_lossy(&chunk[..length]));
                let body = text.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok());
                if let Some(body) = body {
                    break body;
                }
            };
            if sender.send((text, body)).is_err() {
                return;
            }
            let _ = may_answer.recv();
            stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").unwrap();
        }
    });
    (url, receiver)
}
