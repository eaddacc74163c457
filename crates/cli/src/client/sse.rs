//! Server-sent events: splits a stream into messages, as the HTML standard defines them. The known crates
//! (`eventsource-stream`, `sse-stream`) parse asynchronous streams, and this client blocks; so the parser is our own.

use std::io::{self, BufRead};

/// Limit of a message, comments included. A fact about a thousand VMs has about 100 KiB.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

/// A message; empty fields were not sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The position in the stream after this message.
    pub id: String,
    pub event: String,
    /// Lines are joined with a line feed.
    pub data: String,
}

/// The messages of a stream. Comments, unknown fields and an unfinished last message are skipped.
pub struct Messages<R> {
    pub from: R,
    /// Whether the last line ended with a carriage return, so that a line feed belongs to it.
    after_cr: bool,
}

impl<R: BufRead> Messages<R> {
    pub fn new(from: R) -> Self {
        Self { from, after_cr: false }
    }

    /// The next line without its end (LF, CR or CRLF), of at most `most` bytes; none at the end of the stream.
    fn line(&mut self, most: usize) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        loop {
            let buffer = self.from.fill_buf()?;
            let Some(first) = buffer.first() else { return Ok(None) };
            let skipped = usize::from(std::mem::take(&mut self.after_cr) && *first == b'\n');
            let rest = &buffer[skipped..];
            let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let part = &rest[..end.unwrap_or(rest.len())];
            if line.len() + part.len() > most {
                let wrong = format!("a message is longer than {MESSAGE_BYTES_MAX} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, wrong));
            }
            line.extend(part);
            self.after_cr = end.is_some_and(|end| rest[end] == b'\r');
            let used = skipped + part.len() + usize::from(end.is_some());
            self.from.consume(used);
            if end.is_some() {
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
        }
    }

    fn message(&mut self) -> io::Result<Option<Message>> {
        let (mut message, mut left) = (Message::default(), MESSAGE_BYTES_MAX);
        while let Some(line) = self.line(left)? {
            left -= line.len().min(left);
            if line.is_empty() && message == Message::default() {
                left = MESSAGE_BYTES_MAX;
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "" if line.is_empty() => {
                    message.data.pop();
                    return Ok(Some(message));
                }
                "id" if !value.contains('\0') => message.id = value.to_owned(),
                "event" => message.event = value.to_owned(),
                "data" => message.data.extend([value, "\n"]),
                _ => {}
            }
        }
        Ok(None)
    }
}

impl<R: BufRead> Iterator for Messages<R> {
    type Item = io::Result<Message>;

    fn next(&mut self) -> Option<io::Result<Message>> {
        self.message().transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    /// Reads the same text in pieces of every size.
    fn read(text: &str) -> io::Result<Vec<(String, String, String)>> {
        let parsed = |size: usize| {
            let messages = Messages::new(BufReader::with_capacity(size, text.as_bytes()));
            let fields = |Message { id, event, data }| (id, event, data);
            messages.map(|one| one.map(fields)).collect::<io::Result<Vec<_>>>()
        };
        let whole = parsed(text.len().max(1))?;
        for size in 1..text.len().min(20) {
            assert_eq!(parsed(size)?, whole, "{size}");
        }
        Ok(whole)
    }

    #[test]
    fn messages_are_parsed() {
        let one = |id: &str, event: &str, data: &str| (id.to_owned(), event.to_owned(), data.to_owned());
        for (text, expected) in [
            ("id: 4.0\nevent: fact\ndata: {}\n\n", vec![one("4.0", "fact", "{}")]),
            ("data: a\n\ndata: b\n\n", vec![one("", "", "a"), one("", "", "b")]),
            ("data:a\r\ndata:  b\r\ndata\r\n\r\n", vec![one("", "", "a\n b\n")]),
            ("data: a\r\rdata: b\r\n\r\n", vec![one("", "", "a"), one("", "", "b")]),
            (": connected\nid: 7\n\n", vec![one("7", "", "")]),
            (": alive\n\n: alive\n\n\n", vec![]),
            ("retry: 5\nother: x\ndatax: y\ndata: a:b\n\n", vec![one("", "", "a:b")]),
            ("id: a\0b\ndata: a\n\n", vec![one("", "", "a")]),
            ("data: whole\n\ndata: unfinished\n", vec![one("", "", "whole")]),
        ] {
            assert_eq!(read(text).unwrap(), expected, "{text:?}");
        }
        let invalid = Messages::new(&b"data: \xff\n\n"[..]).next().unwrap().unwrap();
        assert_eq!(invalid.data, "\u{fffd}");
    }

    #[test]
    fn message_size_is_limited() {
        let line = |length: usize| format!("data: {}\n", "x".repeat(length - 6));
        let longest = format!("{}\n", line(MESSAGE_BYTES_MAX));
        let twice = longest.repeat(2);
        assert_eq!(Messages::new(twice.as_bytes()).filter_map(Result::ok).count(), 2);
        for long in [line(MESSAGE_BYTES_MAX + 1), line(MESSAGE_BYTES_MAX / 2 + 1).repeat(2)] {
            let error = Messages::new(long.as_bytes()).next().unwrap().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        }
        // Comments between messages do not add up.
        let comments = format!(":{}\n\n", "x".repeat(MESSAGE_BYTES_MAX / 2)).repeat(3) + "data: a\n\n";
        assert_eq!(Messages::new(comments.as_bytes()).next().unwrap().unwrap().data, "a");
    }
}
