//! Differential fuzzing of the guest listener's request parser against hyper's.
//!
//! Invariant: the server may reject more than hyper, but every request that it serves must equal hyper's: same order,
//! method, target, headers and body. Parsers that split a stream differently allow request smuggling.
//!
//! The server's files are included by path, because building the whole service would take minutes. An input is what a
//! guest sends, so the corpus can be edited as text.

mod guest;
mod hyper_reads;

use crate::planted_bug;

/// A parsed request.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The target, without a fragment.
    pub target: String,
    /// Whether it is HTTP/1.0.
    pub is_http10: bool,
    /// The headers that matter to the server, sorted by name and value.
    pub headers: Vec<(&'static str, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
}

pub fn check(bytes: &[u8]) -> bool {
    let ours = guest::read_all(bytes);
    if ours.iter().all(|read| !read.is_served) {
        return !ours.is_empty();
    }
    let theirs = hyper_reads::read_all(bytes);
    let mut theirs = theirs.iter();
    for read in &ours {
        match theirs.next() {
            Some(request) => assert_eq!(read.request, *request, "read in two ways"),
            // hyper rejects targets that are not strict URIs; the server ignores parts that it does not need.
            None if !read.is_served || read.request.target.parse::<hyper::Uri>().is_err() => return true,
            None => panic!("served, and refused by hyper: {:?}", read.request),
        }
    }
    planted_bug(
        ours.iter().any(|read| read.is_served && read.request.is_http10 && read.request.method == "POST"),
    );
    true
}
