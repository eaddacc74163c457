//! Facts of the service as they happen (`/v1/stream`). A lost connection is opened again where it ended, with
//! exponential back-off; notes about that go to standard error.

use std::io::{self, BufReader};
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};
use hyper::{Request, StatusCode};
use jiff::Timestamp;
use notbefore_settings::span;
use notbefore_wire::operator::Fact;

use super::sse::{Message, Messages};
use super::{Client, Refused, shown};
use crate::http::Reader;
use crate::pause::pause;
use crate::{output, time};

/// First and longest pause before a connection is opened again; the pause doubles in between.
const BACKOFF: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// The code of a position that the stream no longer has.
const GONE: &str = "stream_position_gone";

/// An endless iterator of facts. An error is final: the service was never reached, refuses the token, or sends
/// something that this version does not understand.
pub struct Facts<'a> {
    client: &'a Client,
    messages: Option<Messages<BufReader<Reader<'a>>>>,
    /// The `Last-Event-ID` of the next connection.
    position: Option<String>,
    /// Time of the last message, or of the position; none if there was neither.
    heard_at: Option<Timestamp>,
    /// Lost connections since the last message that was not a greeting.
    losses: u32,
    /// The last note, so that it is not repeated.
    note: String,
    /// Time limit of [`Facts::next_within`].
    limit: Option<Duration>,
}

/// What comes next in the stream, within a time limit.
pub enum Next {
    Fact(Box<Fact>),
    /// The time is over, or something came that is not a fact.
    Nothing,
    /// Facts are missing: the service no longer holds them for the stream.
    Gap,
}

impl Client {
    /// Facts from now on, or after a position: the revision of a list, or the id of a fact.
    pub fn facts(&self, after: Option<String>) -> Facts<'_> {
        // A position comes from a response of the service.
        let (heard_at, note) = (after.is_some().then(time::now), String::new());
        Facts { client: self, messages: None, position: after, heard_at, losses: 0, note, limit: None }
    }
}

impl Iterator for Facts<'_> {
    type Item = Result<Fact>;

    fn next(&mut self) -> Option<Result<Fact>> {
        loop {
            match self.message() {
                Ok(message) if message.event == "fact" => return Some(parse(&message.data)),
                Ok(_) => {}
                Err(error) => {
                    if let Err(error) = self.recover(error) {
                        return Some(Err(error));
                    }
                }
            }
        }
    }
}

impl<'a> Facts<'a> {
    /// The next fact, if one comes within the limit. For a caller that can read a list again: a gap gets no note.
    pub fn next_within(&mut self, limit: Option<Duration>) -> Result<Next> {
        self.limit = limit;
        match self.message() {
            Ok(message) if message.event == "fact" => {
                parse(&message.data).map(|fact| Next::Fact(Box::new(fact)))
            }
            Ok(_) => Ok(Next::Nothing),
            Err(error) if error.downcast_ref::<Refused>().is_some_and(|refused| refused.code == GONE) => {
                Ok(Next::Gap)
            }
            Err(error) if is_of(&error, io::ErrorKind::WouldBlock) => Ok(Next::Nothing),
            Err(error) => self.recover(error).map(|()| Next::Nothing),
        }
    }

    /// The next message, on a new connection if there is none.
    fn message(&mut self) -> Result<Message> {
        let is_greeting = self.messages.is_none();
        let messages = match self.messages.take() {
            Some(messages) => messages,
            None => self.connect()?,
        };
        let messages = self.messages.insert(messages);
        messages.from.get_mut().limit = self.limit;
        let Some(message) = messages.next() else { bail!("the service has closed the stream") };
        let message = message.context("the stream was interrupted")?;
        if !is_greeting {
            self.losses = 0;
        } else if !self.note.is_empty() {
            self.say("connected again; the stream continues".to_owned());
            self.note.clear();
        }
        self.heard_at = Some(time::now());
        if !message.id.is_empty() {
            self.position = Some(message.id.clone());
        }
        Ok(message)
    }

    fn connect(&self) -> Result<Messages<BufReader<Reader<'a>>>> {
        let mut request = Request::get(self.client.at("/v1/stream"));
        if let Some(position) = &self.position {
            request = request.header("Last-Event-ID", position);
        }
        Ok(Messages::new(BufReader::new(self.client.open_request(request)?)))
    }

    /// Prepares the next connection after an error; returns the error if there is no use in one.
    fn recover(&mut self, error: Error) -> Result<()> {
        self.messages = None;
        let Some(heard_at) = self.heard_at else { return Err(error) };
        match error.downcast_ref::<Refused>() {
            Some(refused) if refused.code == GONE => {
                self.position = None;
                let seconds = time::now().duration_since(heard_at).as_secs().unsigned_abs();
                let since = span::show(seconds + 1);
                self.say(format!(
                    "facts since {heard_at:.0} may be missing: the service no longer holds them for the stream; \
                     see 'notbefore audit --since {since}', or 'notbefore event history --since {since}' and 'notbefore event list'"
                ));
                return Ok(());
            }
            Some(Refused { status, .. })
                if status.is_client_error()
                    && !matches!(*status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS) =>
            {
                return Err(error);
            }
            // The same message would come again.
            None if is_of(&error, io::ErrorKind::InvalidData) => return Err(error),
            Some(_) | None => {}
        }
        self.say(format!("{error:#}; connecting again"));
        let wait = backoff(self.losses);
        pause(self.limit.map_or(wait, |limit| limit.min(wait)), "the service may be restarting");
        self.losses = self.losses.saturating_add(1);
        Ok(())
    }

    /// Prints a note, unless it is the last one again.
    fn say(&mut self, note: String) {
        if note != self.note {
            output::eprint(&format!("notbefore: {note}"));
            self.note = note;
        }
    }
}

fn parse(data: &str) -> Result<Fact> {
    let unknown = || format!("this version does not understand the service's fact: {}", shown(data));
    serde_json::from_slice(data.as_bytes()).with_context(unknown)
}

fn is_of(error: &Error, kind: io::ErrorKind) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == kind)
}

fn backoff(losses: u32) -> Duration {
    BACKOFF.saturating_mul(2_u32.saturating_pow(losses)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_its_limit() {
        let seconds = [0, 1, 2, 4, 5, u32::MAX].map(|losses| backoff(losses).as_secs());
        assert_eq!(seconds, [1, 2, 4, 16, 30, 30]);
    }
}
