//! Decides which service may receive a token: a URL that the caller gave, the URL in a data directory that the caller
//! named, or a service on this machine. URLs are checked as the HTTP client parses them, never by prefix.

use std::net::IpAddr;

use anyhow::{Result, bail};
use hyper::Uri;

use crate::exit::UsageError;

/// Default operator listener of a service.
const DEFAULT_URL: &str = "http://127.0.0.1:9255";

/// A URL that requests may be sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Without a trailing slash.
    pub url: String,
    pub is_loopback: bool,
    pub is_encrypted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// `NOTBEFORE_TOKEN` or `NOTBEFORE_TOKEN_FILE`.
    Environment,
    /// `operator.token` of the data directory.
    Directory,
}

/// How far the URL in a data directory is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directory {
    /// The caller named the directory.
    Named,
    /// It is `./notbefore-data`, and only the caller or root can have written the URL.
    #[cfg_attr(not(unix), allow(dead_code, reason = "file owners are checked on Unix only"))]
    Own,
    /// It is `./notbefore-data`, and another user may have written the URL; with the reason.
    Foreign(String),
}

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlSource {
    Given,
    Directory,
    /// With the reason why the URL of `./notbefore-data` was not used, if it has one.
    BuiltIn(Option<String>),
}

/// The service to send the token to, or an error if the token must not be sent.
pub fn choose(input: &DestinationInput<'_>) -> Result<(Target, UrlSource)> {
    let (target, from) = match (input.given, input.beside) {
        (Some(given), beside) => {
            let given = target(given)?;
            let is_beside = || beside.and_then(|beside| target(beside).ok()).is_some_and(|one| one == given);
            match (input.token, &input.directory) {
                (TokenSource::Environment, _) | (TokenSource::Directory, Directory::Named) => {}
                (TokenSource::Directory, Directory::Own | Directory::Foreign(_)) if is_beside() => {}
                // The token of an unnamed directory may be used only with the URL beside it.
                (TokenSource::Directory, Directory::Own | Directory::Foreign(_)) => {
                    bail!(
                        "nothing was sent: no token for {}; set NOTBEFORE_TOKEN, NOTBEFORE_TOKEN_FILE, or --data to the directory with its token",
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
            // Another process may listen on the default address.
            (TokenSource::Directory, _) | (TokenSource::Environment, Directory::Named) => {
                bail!(
                    "nothing was sent: no service runs on this data directory (it has no operator.url); start one, or name another with --data or --operator-url"
                );
            }
        },
    };
    if !target.is_loopback && !target.is_encrypted && !input.without_tls {
        let why = format!(
            "nothing was sent: {} is remote and not encrypted, so others on the network could read the token and use it; \
             use an https:// URL, or --operator-without-tls if you trust the network",
            target.url
        );
        return Err(UsageError(why).into());
    }
    Ok((target, from))
}

/// The reason not to use the URL of a data directory, if the token must not be sent there.
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
            "invalid URL {text:?}: {why}; write https://ops.example.com:9255 or http://127.0.0.1:9255"
        ))
    };
    let uri: Uri = text.parse().map_err(|error: hyper::http::uri::InvalidUri| wrong(&error.to_string()))?;
    let is_encrypted = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        Some(_) => return Err(wrong("the scheme must be https or http")),
        None => return Err(wrong("no https:// or http://")),
    };
    let authority = uri.authority().ok_or_else(|| wrong("no host"))?;
    if authority.as_str().contains('@') {
        return Err(wrong("a user name or password (before @) is not supported"));
    }
    if uri.query().is_some() || text.contains('#') {
        return Err(wrong("a query or fragment is not allowed"));
    }
    let host = authority.host();
    let has_port = authority.as_str().len() > host.len();
    if host.is_empty() {
        return Err(wrong("no host"));
    }
    if has_port && authority.port_u16().is_none_or(|port| port == 0) {
        return Err(wrong("the port must be a number from 1 to 65535"));
    }
    let scheme = if is_encrypted { "https" } else { "http" };
    // The service prints its address with `/v1`; accept it.
    let path = uri.path().trim_end_matches('/').trim_end_matches("/v1");
    Ok(Target { url: format!("{scheme}://{authority}{path}"), is_loopback: is_loopback(host), is_encrypted })
}

/// Whether a host is certainly this machine. Short or hexadecimal addresses (`127.1`, `0x7f000001`) count as names, and
/// so does `localhost.`: it is not in the hosts file, so DNS would resolve it.
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

    /// The last column is the URL, or `-` if nothing is sent.
    #[test]
    fn token_is_sent_only_to_allowed_destination() {
        use TokenSource::{Directory as OfDirectory, Environment};
        let (near, far, clear) = ("http://127.0.0.1:7", "https://far.example", "http://far.example");
        let foreign = || Directory::Foreign("it is not yours".to_owned());
        for (token, given, directory, beside, without_tls, goes_to) in [
            // A given URL takes precedence.
            (Environment, Some(far), foreign(), Some(near), false, far),
            (Environment, Some(near), Directory::Named, Some(far), false, near),
            (Environment, Some(clear), Directory::Named, Some(near), false, "-"),
            (Environment, Some(clear), Directory::Named, Some(near), true, clear),
            (Environment, Some("http://localhost:80@far.example"), Directory::Own, None, true, "-"),
            // A named directory, of any owner.
            (Environment, None, Directory::Named, Some(far), false, far),
            (Environment, None, Directory::Named, Some(near), false, near),
            (Environment, None, Directory::Named, Some(clear), false, "-"),
            (Environment, None, Directory::Named, Some(clear), true, clear),
            (Environment, None, Directory::Named, Some("nonsense"), false, "-"),
            (Environment, None, Directory::Named, None, false, "-"),
            // ./notbefore-data: only if the caller owns it and the URL is loopback.
            (Environment, None, Directory::Own, Some(near), false, near),
            (Environment, None, Directory::Own, Some(far), false, DEFAULT_URL),
            (Environment, None, Directory::Own, Some(clear), true, DEFAULT_URL),
            (Environment, None, Directory::Own, Some("http://127.0.0.1.far.example"), true, DEFAULT_URL),
            (Environment, None, Directory::Own, Some("nonsense"), false, DEFAULT_URL),
            (Environment, None, foreign(), Some(near), true, DEFAULT_URL),
            (Environment, None, foreign(), Some(far), true, DEFAULT_URL),
            (Environment, None, foreign(), None, false, DEFAULT_URL),
            // A directory's token goes to the URL beside it.
            (OfDirectory, None, foreign(), Some(near), false, near),
            (OfDirectory, None, Directory::Own, Some(far), false, far),
            (OfDirectory, None, Directory::Named, Some(clear), false, "-"),
            (OfDirectory, None, Directory::Named, Some(clear), true, clear),
            (OfDirectory, None, Directory::Named, None, false, "-"),
            (OfDirectory, None, Directory::Own, None, false, "-"),
            // It goes to a given URL only if the directory is named, or if both URLs are the same.
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
