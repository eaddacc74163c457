//! Check of `Host` on loopback listeners, against DNS rebinding.
//!
//! A web page can make its own name resolve to 127.0.0.1 and then read from a listener there what the browser's
//! same-origin policy would hide. The request still has the page's name as `Host`. A listener on loopback therefore
//! accepts only names that an attacker cannot own: IP addresses, `localhost`, the machine's name, and configured names.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// Longest DNS name.
const NAME_BYTES_MAX: usize = 253;

/// A host name in lower case, without a final dot; no address and no port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

impl FromStr for HostName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let name = text.strip_suffix('.').unwrap_or(text);
        let is_label = |label: &str| {
            !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        };
        if name.len() > NAME_BYTES_MAX || !name.split('.').all(is_label) || name.parse::<IpAddr>().is_ok() {
            return Err(());
        }
        Ok(Self(name.to_ascii_lowercase()))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Accepted names besides addresses and `localhost`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedHosts {
    names: Vec<HostName>,
}

impl AllowedHosts {
    /// The machine's name, with and without its domain, and further names.
    pub fn new(machine: &str, further: &[HostName]) -> Self {
        let short = machine.split('.').next().unwrap_or(machine);
        // A machine name that is no host name cannot be requested either.
        let own = [machine, short].into_iter().filter_map(|name| name.parse().ok());
        Self { names: own.chain(further.iter().cloned()).collect() }
    }

    /// Whether a `Host` header, or the authority of a request target, is accepted. `is_certified`: whether a name is in
    /// the certificate.
    pub fn is_allowed(&self, authority: &str, is_certified: impl Fn(&str) -> bool) -> bool {
        let Some(host) = without_port(authority) else { return false };
        if is_address(host) {
            return true;
        }
        let Ok(name) = host.parse::<HostName>() else { return false };
        name.0 == "localhost" || self.names.contains(&name) || is_certified(&name.0)
    }
}

/// The host of `host[:port]`; none if the port is invalid.
fn without_port(authority: &str) -> Option<&str> {
    let end = match authority.starts_with('[') {
        true => authority.find(']')? + 1,
        false => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at_checked(end)?;
    let is_port = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit());
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(host)
}

fn is_address(host: &str) -> bool {
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inside) => inside.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<std::net::Ipv4Addr>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_host_names_and_addresses_are_allowed() {
        let hosts = AllowedHosts::new("Web-0.example.org", &["ops.example".parse().unwrap()]);
        for (authority, expected) in [
            ("127.0.0.1:9255", true),
            ("127.0.0.1", true),
            ("10.1.2.3:80", true),
            ("[::1]:9255", true),
            ("[fd00::7]", true),
            ("localhost", true),
            ("LOCALHOST.:9255", true),
            ("web-0", true),
            ("WEB-0.Example.org:1", true),
            ("ops.example:443", true),
            ("certified.example", true),
            ("certified.example.evil", false),
            ("evil.example", false),
            ("web-0.evil.example", false),
            ("localhost.evil.example", false),
            ("ops.example.evil", false),
            ("127.0.0.1.evil.example", false),
            ("localhost:80@evil.example", false),
            ("localhost:x", false),
            ("[::1", false),
            ("[::1]x", false),
            ("::1", false),
            ("", false),
            (":80", false),
            ("a b", false),
            (".", false),
        ] {
            assert_eq!(
                hosts.is_allowed(authority, |name| name == "certified.example"),
                expected,
                "{authority}"
            );
        }
    }

    #[test]
    fn invalid_machine_name_allows_nothing() {
        assert_eq!(AllowedHosts::new("", &[]), AllowedHosts::default());
        assert!(!AllowedHosts::new("(none)", &[]).is_allowed("(none)", |_| false));
    }

    #[test]
    fn host_names_parse_and_display() {
        for (text, written) in [("Ops.Example.", "ops.example"), ("a_b-c", "a_b-c")] {
            assert_eq!(text.parse::<HostName>().unwrap().to_string(), written);
        }
        for text in ["", ".", "a..b", "a:80", "https://a", "127.0.0.1", "::1", "*.a", "a/b", "ä"] {
            assert!(text.parse::<HostName>().is_err(), "{text}");
        }
    }
}
