//! An entry of the recording as one line of printable text.

use std::time::Duration;

use notbefore_wire::text::{printable, shorten};
use uuid::Uuid;

use crate::recording::{Entry, Recording, Request, State, What};

/// Longest body, target or line of output that is shown, in characters: two lines of a wide terminal.
const QUOTE_CHARS_MAX: usize = 300;

/// VMs and events that a line names; it counts the others.
const NAMES_MAX: usize = 4;

/// Answers that take longer are remarkable. A handler's own time limit is rarely shorter.
const SLOW_ANSWER: Duration = Duration::from_secs(1);

/// How much of a request is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What it means: `poll: 200, incarnation 2, shows restart`.
    Short,
    /// With its target, headers and body.
    Full,
}

/// An instant of the rehearsal.
pub fn instant(at: Duration) -> String {
    format!("{:.2} s", at.as_secs_f64())
}

/// A length of time.
pub fn span(length: Duration) -> String {
    match length < Duration::from_secs(1) {
        true => format!("{:.0} ms", length.as_secs_f64() * 1_000.0),
        false => format!("{:.1} s", length.as_secs_f64()),
    }
}

pub fn quoted(text: &str) -> String {
    printable(&shorten(text, QUOTE_CHARS_MAX))
}

/// The first few names; the others are counted.
pub fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter().map(quoted);
    let mut text = names.by_ref().take(NAMES_MAX).collect::<Vec<_>>().join(", ");
    match names.count() {
        0 => {}
        more => text += &format!(" and {more} more"),
    }
    text
}

pub fn entry(recording: &Recording, entry: &Entry, detail: Detail) -> String {
    match &entry.what {
        What::Request(one) => request(recording, entry.at, one, detail),
        What::Marker { marker } => format!("reports {}", marker.as_str()),
        What::Output { line } => format!("prints: {}", quoted(line)),
        What::HandlerStarted => "handler starts".to_owned(),
        What::HandlerExited { code: Some(code), .. } => format!("handler exits with code {code}"),
        What::HandlerExited { code: None, signal: Some(signal) } => {
            format!("handler is ended by signal {signal}")
        }
        What::HandlerExited { code: None, signal: None } => "handler ends".to_owned(),
        What::HandlerStopped => "rehearsal stops the handler".to_owned(),
        What::Step { text } => quoted(text),
        What::Event { event, state } => event_state(recording, event, *state),
    }
}

fn event_state(recording: &Recording, name: &str, state: State) -> String {
    let event = recording.events.get(name);
    let shown = quoted(name);
    match state {
        State::Read => format!("{shown} was read"),
        State::Scheduled => {
            let mut text = format!("{shown} is Scheduled");
            if let Some(event) = event {
                text += &format!(
                    ": {} of {}",
                    quoted(event.event_type.as_str()),
                    names(resources(&event.resources))
                );
                if let Some(not_before) = event.not_before {
                    text +=
                        &format!(", NotBefore in {}", span(not_before.saturating_sub(event.scheduled_at)));
                }
            }
            text
        }
        State::Approved => format!("{shown} is approved"),
        State::Started => format!("{shown} is Started"),
        State::Gone if event.is_some_and(|event| event.is_cancelled) => format!("{shown} is cancelled"),
        State::Gone => format!("{shown} is gone"),
    }
}

fn resources(resources: &[String]) -> impl Iterator<Item = &str> {
    resources.iter().map(String::as_str)
}

fn events(recording: &Recording, ids: &[Uuid]) -> String {
    let all: Vec<String> = ids
        .iter()
        .map(|id| recording.event_name(*id).map_or_else(|| id.to_string(), str::to_owned))
        .collect();
    names(resources(&all))
}

fn request(recording: &Recording, at: Duration, request: &Request, detail: Detail) -> String {
    let approved = || match request.approves.as_slice() {
        [] => "approves nothing".to_owned(),
        ids => format!("approves {}", events(recording, ids)),
    };
    let mut text = match detail {
        Detail::Short if request.is_poll() => "poll".to_owned(),
        Detail::Short if request.is_approval() => approved(),
        Detail::Short | Detail::Full => {
            format!("{} {}", quoted(&request.method), quoted(&request.target))
        }
    };
    text += &match request.status {
        Some(status) => format!(": {status}"),
        None => ": connection reset".to_owned(),
    };
    let took = request.answered_at.saturating_sub(at);
    if took >= SLOW_ANSWER {
        text += &format!(" after {}", span(took));
    }
    if detail == Detail::Full && request.is_approval() {
        text += &format!(", {}", approved());
    }
    if let Some(incarnation) = request.incarnation {
        text += &format!(", incarnation {incarnation}");
    }
    match request.shows.as_deref() {
        None if request.is_poll() && request.status == Some(200) => text += ", no readable document",
        None => {}
        Some([]) => text += ", no events",
        Some(ids) => text += &format!(", shows {}", events(recording, ids)),
    }
    match request.metadata.as_deref() {
        None => text += ", without header Metadata",
        Some(value) if value.eq_ignore_ascii_case("true") => {}
        Some(value) => text += &format!(", header Metadata: {}", quoted(value)),
    }
    if !request.faults.is_empty() {
        text += &format!(" (fault: {})", names(resources(&request.faults)));
    }
    if detail == Detail::Full {
        // A body that approves something says no more than that.
        if request.approves.is_empty() && !request.body.is_empty() {
            text += &format!(", body {}", quoted(&request.body));
        }
        if let Some(agent) = &request.user_agent {
            text += &format!(", from {}", quoted(agent));
        }
    }
    text
}
