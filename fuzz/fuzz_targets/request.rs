//! The request path of the guest listener against hyper's.
//!
//! Whatever bytes come, the server may refuse more than hyper does, but what it serves hyper must have read in the same
//! way: the same requests in the same order, each with the same method, target, headers and body. Two readers that
//! cut a stream into requests differently are how requests are smuggled past the one in front.
//!
//! The server's files are taken in by their paths: they are private to the service, and the whole of that would take
//! minutes to build for a run of seconds. An input is what a guest would send, so the corpus can be read and added
//! to with an editor.

#![no_main]

#[path = "guest.rs"]
mod guest;
#[path = "hyper_reads.rs"]
mod hyper_reads;

use libfuzzer_sys::{Corpus, fuzz_target};
use notbefore_fuzz::target::{self, planted_bug};

/// A request as it was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The target, without a fragment.
    pub target: String,
    /// Whether it is HTTP/1.0.
    pub is_http10: bool,
    /// The headers that mean something to the server, in order of these names and of their values.
    pub headers: Vec<(&'static str, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
}

fuzz_target!(init: target::begin(), |bytes: &[u8]| -> Corpus { target::run(bytes, check) });

fn check(bytes: &[u8]) -> bool {
    let ours = guest::read_all(bytes);
    if ours.iter().all(|read| !read.is_served) {
        return !ours.is_empty();
    }
    let theirs = hyper_reads::read_all(bytes);
    let mut theirs = theirs.iter();
    for read in &ours {
        match theirs.next() {
            Some(request) => assert_eq!(read.request, *request, "read in two ways"),
            // hyper takes no target that is not a URI to the letter; the server passes over what it does not ask for.
            None if !read.is_served || read.request.target.parse::<hyper::Uri>().is_err() => return true,
            None => panic!("served, and refused by hyper: {:?}", read.request),
        }
    }
    planted_bug(
        ours.iter().any(|read| read.is_served && read.request.is_http10 && read.request.method == "POST"),
    );
    true
}
