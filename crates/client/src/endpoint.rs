//! Address of the platform's endpoint: plain HTTP at a host and a port.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// Ports of platforms, tried in this order if none is given.
pub const PORTS: [u16; 2] = [80, 8080];
/// Path of the document. A full URL with this path is accepted as an endpoint.
const PATH: &str = "/metadata/scheduledevents";
/// Longest DNS name.
const HOST_BYTES_MAX: usize = 253;

/// Address of the platform's endpoint.
///
/// ```
/// use notbefore_client::endpoint::Endpoint;
///
/// let endpoint: Endpoint = "http://169.254.169.254".parse()?;
/// assert_eq!((endpoint.host(), endpoint.port()), ("169.254.169.254", 80));
/// assert_eq!("127.0.0.1:9254".parse::<Endpoint>()?.to_string(), "http://127.0.0.1:9254");
/// # Ok::<(), notbefore_client::endpoint::EndpointError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// A name or an address, without brackets.
    host: String,
    port: Option<u16>,
}

/// Why a text is not an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no endpoint: {reason}; write http://169.254.169.254, or host:port")]
pub struct EndpointError {
    text: String,
    reason: &'static str,
}

impl Endpoint {
    /// The link-local address that Azure uses.
    pub fn azure_default() -> Self {
        Endpoint { host: "169.254.169.254".to_owned(), port: None }
    }

    /// Name or address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; the first of [`PORTS`] if none was given.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(PORTS[0])
    }

    /// The endpoint at each candidate port: the given one, or all of [`PORTS`].
    pub fn at_each_port(&self) -> Vec<Endpoint> {
        let ports = self.port.map_or(PORTS.to_vec(), |port| vec![port]);
        ports.into_iter().map(|port| Endpoint { host: self.host.clone(), port: Some(port) }).collect()
    }

    /// For the `Host` header: with the port unless it is 80.
    pub(crate) fn authority(&self) -> String {
        let host = match self.host.parse::<Ipv6Addr>() {
            Ok(address) => format!("[{address}]"),
            Err(_) => self.host.clone(),
        };
        if self.port() == PORTS[0] { host } else { format!("{host}:{}", self.port()) }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority())
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let wrong = |reason| EndpointError { text: text.to_owned(), reason };
        let rest = match text.trim().split_once("://") {
            None => text.trim(),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some(_) => return Err(wrong("platforms answer in plain HTTP only")),
        };
        let rest = match rest.split_once('/') {
            None => rest,
            Some((host, "")) => host,
            Some((host, _)) if is_events_path(&rest[host.len()..]) => host,
            Some(_) => return Err(wrong("it has a path, which is not that of scheduled events")),
        };
        let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, port)) => {
                (host, Some(port.strip_prefix(':').ok_or_else(|| wrong("the port is unclear"))?))
            }
            None if rest.parse::<Ipv6Addr>().is_ok() => (rest, None),
            None => rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port))),
        };
        if host.is_empty() || host.len() > HOST_BYTES_MAX {
            return Err(wrong("the host is missing, or too long"));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if !host.chars().all(plain) && host.parse::<Ipv6Addr>().is_err() {
            return Err(wrong("there is more to it than a host and a port"));
        }
        let port =
            port.map(|port| port.parse().map_err(|_| wrong("the port is not a number from 1 to 65535")));
        match port.transpose()? {
            Some(0) => Err(wrong("the port is not a number from 1 to 65535")),
            port => Ok(Endpoint { host: host.to_owned(), port }),
        }
    }
}

/// Whether a path is that of the document, with any query.
fn is_events_path(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or(path);
    path.strip_suffix('/').unwrap_or(path).eq_ignore_ascii_case(PATH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_forms_are_parsed() {
        for (text, shown) in [
            ("169.254.169.254", "http://169.254.169.254"),
            ("http://169.254.169.254/", "http://169.254.169.254"),
            ("HTTP://metadata.example:80", "http://metadata.example"),
            ("127.0.0.1:9254", "http://127.0.0.1:9254"),
            (" http://[fd00::1]:8080 ", "http://[fd00::1]:8080"),
            (
                "http://127.0.0.1:9254/metadata/scheduledevents?api-version=2020-07-01",
                "http://127.0.0.1:9254",
            ),
            ("169.254.169.254/metadata/scheduledevents/", "http://169.254.169.254"),
            ("fd00::1", "http://[fd00::1]"),
            ("[fd00::1]", "http://[fd00::1]"),
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn invalid_endpoint_error_names_fix() {
        for text in [
            "",
            "http://",
            "https://169.254.169.254",
            "http://a/metadata",
            "http://a//",
            "http://a/metadata/scheduledeventsx",
            "http:///metadata/scheduledevents",
            "host?api-version=1",
            "http://user@host",
            "host:0",
            "host:65536",
            "host:",
            "a b",
            "[fd00::1]8080",
            "a?b",
        ] {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.contains("write http://169.254.169.254"), "{text}: {error}");
        }
    }

    #[test]
    fn missing_port_tries_80_and_8080() {
        let shown = |text: &str| {
            let endpoint: Endpoint = text.parse().unwrap();
            endpoint.at_each_port().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(shown("10.0.0.1"), ["http://10.0.0.1", "http://10.0.0.1:8080"]);
        assert_eq!(shown("10.0.0.1:80"), ["http://10.0.0.1"]);
    }
}
