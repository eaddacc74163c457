//! Requests as parsed by the guest listener.

#[path = "../../../../service/src/guest/body.rs"]
mod body;
#[allow(dead_code)]
#[path = "../../../../service/src/guest/client.rs"]
mod client;
#[allow(dead_code)]
#[path = "../../../../service/src/guest/conditional.rs"]
mod conditional;
#[allow(dead_code)]
#[path = "../../../../service/src/guest/head.rs"]
mod head;
#[allow(dead_code)]
#[path = "../../../../service/src/guest/head_cache.rs"]
mod head_cache;
#[path = "../../../../service/src/guest/prefer.rs"]
mod prefer;
#[allow(dead_code)]
#[path = "../../../../service/src/guest/rules.rs"]
mod rules;
#[allow(dead_code)]
#[path = "../../../../service/src/guest/settings.rs"]
mod settings;
#[path = "../../../../service/src/guest/target.rs"]
mod target;

/// Stub of the response writer, for the files above.
mod response {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Persistence {
        Open,
        KeptAlive,
        Closing,
    }
}

use notbefore_wire::guest::start_requests;
use notbefore_wire::guest::version::EventsVersion;

use self::body::Chunked;
use self::head::{Framing, Head, Name};
use self::head_cache::{HeadCache, PlainPoll};
use self::response::Persistence;
use self::rules::RequestKind;
use self::settings::{BODY_BYTES_MAX, Mode};
use super::Request;

/// The compared headers. Host is not, because hyper ignores it, nor are framing headers, because bodies are compared.
pub const COMPARED: [&str; 8] = [
    "Metadata",
    "Connection",
    "If-None-Match",
    "Expect",
    "X-Forwarded-For",
    "X-Instance-ID",
    "X-Instance-ID-Signature",
    "Prefer",
];

const NAMES: [Name; COMPARED.len()] = [
    Name::Metadata,
    Name::Connection,
    Name::IfNoneMatch,
    Name::Expect,
    Name::XForwardedFor,
    Name::XInstanceId,
    Name::XInstanceIdSignature,
    Name::Prefer,
];

/// A request, and whether the server would serve it.
#[derive(Debug)]
pub struct Read {
    pub request: Request,
    pub is_served: bool,
}

/// The requests that the server parses until it would close the connection or wait for more bytes.
pub fn read_all(mut bytes: &[u8]) -> Vec<Read> {
    let mut all = Vec::new();
    while let Some((read, used, goes_on)) = read_one(bytes) {
        all.push(read);
        bytes = &bytes[used..];
        if !goes_on {
            break;
        }
    }
    all
}

fn read_one(bytes: &[u8]) -> Option<(Read, usize, bool)> {
    check_prefixes(bytes);
    let mut room = head::header_slots();
    let (head, length) = head::parse(bytes, &mut room).ok()??;
    let (body, of_body) = read_body(&head, &bytes[length..])?;
    let asked = [Mode::Normal, Mode::Strict, Mode::Lenient]
        .map(|mode| rules::decide(&head, mode, EventsVersion::NEWEST, false));
    // None of these may panic.
    let _ = (head.expects_continue(), start_requests::parse(&body), prefer::wait(head.all(Name::Prefer)));
    let _ = conditional::matches_etag(head.all(Name::IfNoneMatch), 7);
    for asked in asked.iter().flatten() {
        if let RequestKind::Document(version) = asked
            && matches!(head.framing(), Ok(Framing::Empty))
            && !head.has(Name::Prefer)
        {
            let persistence = match (head.keeps_alive(), head.is_http10) {
                (true, false) => Persistence::Open,
                (true, true) => Persistence::KeptAlive,
                (false, _) => Persistence::Closing,
            };
            check_head_cache(bytes, &head, length, PlainPoll { version: *version, persistence });
        }
    }
    let headers = COMPARED.iter().zip(NAMES);
    let headers = headers.flat_map(|(name, this)| head.all(this).map(|value| (*name, value.to_vec())));
    let request = Request {
        method: head.method.to_owned(),
        target: written(head.target),
        is_http10: head.is_http10,
        headers: headers.collect(),
        body,
    };
    let is_served = asked.iter().any(Result::is_ok);
    Some((Read { request, is_served }, length + of_body, head.keeps_alive()))
}

fn read_body(head: &Head<'_, '_>, rest: &[u8]) -> Option<(Vec<u8>, usize)> {
    match head.framing().ok()? {
        Framing::Empty => Some((Vec::new(), 0)),
        Framing::Length(length) => {
            let length = usize::try_from(length).ok().filter(|length| *length <= BODY_BYTES_MAX)?;
            Some((rest.get(..length)?.to_vec(), length))
        }
        Framing::Chunked => {
            let mut chunked = Chunked::new();
            let used = chunked.feed(rest).ok()?;
            chunked.is_done().then(|| (chunked.into_data(), used))
        }
    }
}

/// A target in hyper's form, if it is a URI: with a path and without a fragment.
fn written(target: &str) -> String {
    target.parse::<hyper::Uri>().map_or_else(|_| target.to_owned(), |uri| uri.to_string())
}

/// A cached poll head parses as it did before, whatever follows it, and never before it is complete.
fn check_head_cache(bytes: &[u8], head: &Head<'_, '_>, length: usize, poll: PlainPoll) {
    let mut head_cache = HeadCache::default();
    for _ in 0..2 {
        assert!(head_cache.find(bytes).is_none(), "known at the first sight");
        head_cache.observe(&bytes[..length], head, poll);
    }
    assert!(head_cache.find(&bytes[..length - 1]).is_none(), "known before it is whole");
    let Some(found) = head_cache.find(bytes) else {
        assert!(length > head_cache::HEAD_BYTES_MAX, "not known again");
        return;
    };
    assert_eq!((found.head_length(), found.poll), (length, poll));
    assert_eq!(found.tags().is_some(), head.has(Name::IfNoneMatch));
    assert_eq!(found.client().version, poll.version);
    for incarnation in [0, 1, 7, 12] {
        assert_eq!(
            conditional::matches_etag(found.tags().into_iter(), incarnation),
            conditional::matches_etag(head.all(Name::IfNoneMatch), incarnation),
            "the tags are others"
        );
    }
}

/// A truncated head is incomplete or rejected, never complete.
fn check_prefixes(bytes: &[u8]) {
    let mut room = head::header_slots();
    let Ok(Some((_, length))) = head::parse(bytes, &mut room) else { return };
    let step = length.div_ceil(64).max(1);
    for cut in (0..length).step_by(step) {
        let mut room = head::header_slots();
        if let Ok(Some((head, shorter))) = head::parse(&bytes[..cut], &mut room) {
            panic!("{:?} is whole at {shorter}, and {length} long", head.target);
        }
    }
}
