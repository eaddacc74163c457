//! Which service a token goes to. A token is worth what it may do, so it goes only where its owner sent it: to a URL that
//! was given, to the URL in a data directory that was named, or to a service on this machine. URLs are judged as the HTTP
//! client parses them, never by how they begin.

use std::net::IpAddr;

use anyhow::{Result, bail};
use hyper::Uri;

use crate::exit::UsageError;

/// Where a service listens unless it is told otherwise.
const DEFAULT_URL: &str = "http://127.0.0.1:9255";

/// A URL that requests may be sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Without a slash at its end.
    pub url: String,
    pub is_loopback: bool,
    pub is_encrypted: bool,
}

/// Whose token is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// `NOTBEFORE_TOKEN` or `NOTBEFORE_TOKEN_FILE`.
    Environment,
    /// `operator.token` of the data directory.
    Directory,
}

/// Who vouches for the URL in a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directory {
    /// The caller, who has named it.
    Named,
    /// It is `./notbefore-data`, and only the caller or root can have written the URL.
    #[cfg_attr(not(unix), allow(dead_code, reason = "whose files are is judged on Unix only"))]
    Own,
    /// It is `./notbefore-data`, and another user may have written the URL: why.
    Foreign(String),
}

/// All that the choice depends on.
#[derive(Clone, Debug)]
pub struct DestinationInput<'a> {
    pub token: TokenSource,
    /// `--operator-url` or `NOTBEFORE_OPERATOR`.
    pub given: Option<&'a str>,
    pub directory: Directory,
    /// `operator.url` of the data directory.
    pub beside: Option<&'a str>,
    /// `--operator-without-tls`.
    pub without_tls: bool,
}

/// Where the URL came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlSource {
    Given,
    Directory,
    /// With the reason why the URL of `./notbefore-data` was passed over, if there is one.
    BuiltIn(Option<String>),
}

/// The service that a token goes to.
pub fn choose(input: &DestinationInput<'_>) -> Result<(Target, UrlSource)> {
    let (target, from) = match (input.given, input.beside) {
        (Some(given), beside) => {
            let given = target(given)?;
            let is_beside = || beside.and_then(|beside| target(beside).ok()).is_some_and(|one| one == given);
            match (input.token, &input.directory) {
                (TokenSource::Environment, _) | (TokenSource::Directory, Directory::Named) => {}
                (TokenSource::Directory, Directory::Own | Directory::Foreign(_)) if is_beside() => {}
                // A directory that nobody has named says nothing about who answers there.
                (TokenSource::Directory, Directory::Own | Directory::Foreign(_)) => {
                    bail!(
                        "nothing was sent: {} was given, and no token for it; set NOTBEFORE_TOKEN to its token, NOTBEFORE_TOKEN_FILE to a file that holds it, or --data to where it is kept",
                        given.url
                    );
                }
            }
            (given, UrlSource::Given)
        }
        (None, Some(beside)) => {
            let beside = target(beside);
            match directory_target(input, &beside) {
                None => (beside?, UrlSource::Directory),
                Some(why) => (target(DEFAULT_URL)?, UrlSource::BuiltIn(Some(why))),
            }
        }
        (None, None) => match (input.token, &input.directory) {
            (TokenSource::Environment, Directory::Own | Directory::Foreign(_)) => {
                (target(DEFAULT_URL)?, UrlSource::BuiltIn(None))
            }
            // Another process may listen at the built-in address.
            (TokenSource::Directory, _) | (TokenSource::Environment, Directory::Named) => {
                bail!(
                    "nothing was sent: no service runs on this data directory, it has no operator.url; start one there, or say --data or --operator-url for another"
                );
            }
        },
    };
    if !target.is_loopback && !target.is_encrypted && !input.without_tls {
        let why = format!(
            "nothing was sent: {} is not on this machine and not encrypted, so anyone on the network path could read the token \
             and use it; use an https:// URL, or say --operator-without-tls if you trust that network",
            target.url
        );
        return Err(UsageError(why).into());
    }
    Ok((target, from))
}

/// Why the URL of a data directory is passed over, if the token may not go there.
fn directory_target(input: &DestinationInput<'_>, target: &Result<Target, UsageError>) -> Option<String> {
    match (input.token, &input.directory) {
        (TokenSource::Directory, _) | (TokenSource::Environment, Directory::Named) => None,
        (TokenSource::Environment, Directory::Foreign(why)) => Some(why.clone()),
        (TokenSource::Environment, Directory::Own) => match target {
            Ok(target) if target.is_loopback => None,
            Ok(target) => Some(format!("{} is not on this machine", target.url)),
            Err(error) => Some(error.to_string()),
        },
    }
}

/// Parses a URL as the HTTP client does.
pub fn target(text: &str) -> Result<Target, UsageError> {
    let wrong = |why: &str| {
        UsageError(format!(
            "{text:?} is no URL of a service: {why}; write it as https://ops.example.com:9255, or http://127.0.0.1:9255"
        ))
    };
    let uri: Uri = text.parse().map_err(|error: hyper::http::uri::InvalidUri| wrong(&error.to_string()))?;
    let is_encrypted = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        Some(_) => return Err(wrong("only https and http are spoken")),
        None => return Err(wrong("https:// or http:// is missing")),
    };
    let authority = uri.authority().ok_or_else(|| wrong("the host is missing"))?;
    if authority.as_str().contains('@') {
        return Err(wrong("what stands before @ is a name or a password, which is sent to nobody"));
    }
    if uri.query().is_some() || text.contains('#') {
        return Err(wrong("it has a query or a fragment"));
    }
    let host = authority.host();
    let has_port = authority.as_str().len() > host.len();
    if host.is_empty() {
        return Err(wrong("the host is missing"));
    }
    if has_port && authority.port_u16().is_none_or(|port| port == 0) {
        return Err(wrong("a port is a number from 1 to 65535"));
    }
    let scheme = if is_encrypted { "https" } else { "http" };
    // The service shows its API's address, which ends in the version.
    let path = uri.path().trim_end_matches('/').trim_end_matches("/v1");
    Ok(Target { url: format!("{scheme}://{authority}{path}"), is_loopback: is_loopback(host), is_encrypted })
}

/// Whether a host can only be this machine. Numbers that some resolvers take for an address (`127.1`, `0x7f000001`) count
/// as names, and so does `localhost.`, which files of hosts do not have: DNS would be asked.
fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let ip = bare.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_detected_by_parsed_host() {
        for (url, is_loopback) in [
            ("http://127.0.0.1:9255", true),
            ("http://127.9.8.7", true),
            ("HTTP://LocalHost:1/", true),
            ("http://localhost.:9255/", false),
            ("http://[::1]", true),
            ("https://[::1]:9255", true),
            ("http://[::ffff:127.0.0.1]:9255", true),
            ("http://127.0.0.1/behind/a/proxy/", true),
            ("http://127.0.0.1.evil.example", false),
            ("http://localhost.evil.example", false),
            ("http://evil.example/localhost", false),
            ("http://evil.localhost", false),
            ("http://127.1", false),
            ("http://2130706433", false),
            ("http://0x7f.0.0.1", false),
            ("http://0.0.0.0:9255", false),
            ("http://[::]:9255", false),
            ("http://[::ffff:10.0.0.1]", false),
            ("https://10.0.0.5", false),
        ] {
            assert_eq!(target(url).unwrap().is_loopback, is_loopback, "{url}");
        }
        for url in ["HTTPS://Ops.Example:9255/a/", "https://Ops.Example:9255/a/v1"] {
            assert_eq!(target(url).unwrap().url, "https://Ops.Example:9255/a");
        }
    }

    #[test]
    fn urls_with_userinfo_other_schemes_or_odd_parts_are_refused() {
        for url in [
            "",
            "/v1",
            "localhost",
            "127.0.0.1:9255",
            "//127.0.0.1",
            "ftp://127.0.0.1",
            "unix://127.0.0.1",
            "http:127.0.0.1",
            "http://",
            "http:///v1",
            "http://:9255",
            "http://127.0.0.1:",
            "http://127.0.0.1:0",
            "http://127.0.0.1:65536",
            "http://127.0.0.1:9255x",
            "http://localhost:80@elsewhere",
            "http://localhost@elsewhere",
            "http://@127.0.0.1",
            "http://elsewhere\\@127.0.0.1",
            "http://127.0.0.1 .elsewhere",
            "http://127.0.0.1\n.elsewhere",
            "http://[::1",
            "http://127.0.0.1?elsewhere",
            "http://127.0.0.1#elsewhere",
        ] {
            let refused = target(url);
            assert!(refused.is_err(), "{url:?}: {refused:?}");
        }
    }

    /// Where a token goes: the answer is the URL, or `-` where nothing is sent.
    #[test]
    fn token_is_sent_only_to_allowed_destination() {
        use TokenSource::{Directory as OfDirectory, Environment};
        let (near, far, clear) = ("http://127.0.0.1:7", "https://far.example", "http://far.example");
        let foreign = || Directory::Foreign("it is not yours".to_owned());
        for (token, given, directory, beside, without_tls, goes_to) in [
            // What is given goes before all else.
            (Environment, Some(far), foreign(), Some(near), false, far),
            (Environment, Some(near), Directory::Named, Some(far), false, near),
            (Environment, Some(clear), Directory::Named, Some(near), false, "-"),
            (Environment, Some(clear), Directory::Named, Some(near), true, clear),
            (Environment, Some("http://localhost:80@far.example"), Directory::Own, None, true, "-"),
            // A directory that was named, of any owner.
            (Environment, None, Directory::Named, Some(far), false, far),
            (Environment, None, Directory::Named, Some(near), false, near),
            (Environment, None, Directory::Named, Some(clear), false, "-"),
            (Environment, None, Directory::Named, Some(clear), true, clear),
            (Environment, None, Directory::Named, Some("nonsense"), false, "-"),
            (Environment, None, Directory::Named, None, false, "-"),
            // ./notbefore-data, if it is the caller's, and for this machine only.
            (Environment, None, Directory::Own, Some(near), false, near),
            (Environment, None, Directory::Own, Some(far), false, DEFAULT_URL),
            (Environment, None, Directory::Own, Some(clear), true, DEFAULT_URL),
            (Environment, None, Directory::Own, Some("http://127.0.0.1.far.example"), true, DEFAULT_URL),
            (Environment, None, Directory::Own, Some("nonsense"), false, DEFAULT_URL),
            (Environment, None, foreign(), Some(near), true, DEFAULT_URL),
            (Environment, None, foreign(), Some(far), true, DEFAULT_URL),
            (Environment, None, foreign(), None, false, DEFAULT_URL),
            // A directory's own token goes to the URL beside it.
            (OfDirectory, None, foreign(), Some(near), false, near),
            (OfDirectory, None, Directory::Own, Some(far), false, far),
            (OfDirectory, None, Directory::Named, Some(clear), false, "-"),
            (OfDirectory, None, Directory::Named, Some(clear), true, clear),
            (OfDirectory, None, Directory::Named, None, false, "-"),
            (OfDirectory, None, Directory::Own, None, false, "-"),
            // And to one that is given only if the directory was named, or is the one beside it.
            (OfDirectory, Some(near), Directory::Named, None, false, near),
            (OfDirectory, Some("http://127.0.0.1:7/v1"), Directory::Own, Some(near), false, near),
            (OfDirectory, Some("http://127.0.0.1:8"), Directory::Own, Some(near), false, "-"),
            (OfDirectory, Some(near), Directory::Own, None, false, "-"),
            (OfDirectory, Some(far), foreign(), Some(near), false, "-"),
        ] {
            let input = DestinationInput { token, given, directory, beside, without_tls };
            let chosen = choose(&input);
            let sent = chosen.as_ref().map_or("-", |(target, _)| target.url.as_str());
            assert_eq!(sent, goes_to, "{input:?}: {chosen:?}");
        }
    }
}
