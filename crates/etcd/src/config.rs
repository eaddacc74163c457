//! Settings of the connection to etcd, as written and as checked.

use std::fmt;
use std::path::PathBuf;

use http::Uri;
use rustls::pki_types::ServerName;

/// Default of [`EtcdConfig::prefix`].
pub const DEFAULT_PREFIX: &str = "/notbefore/";

/// Default of [`EtcdConfig::quota_bytes`]: that of etcd without `--quota-backend-bytes`.
pub const DEFAULT_QUOTA_BYTES: u64 = 2 << 30;

/// Limit on endpoints. An etcd cluster has at most seven members.
pub const ENDPOINTS_MAX: usize = 16;

/// Limit on the prefix. It is part of every key of a transaction, and etcd limits the bytes of a request.
pub const PREFIX_BYTES_MAX: usize = 128;

/// The port of an endpoint that names none.
const DEFAULT_PORT: u16 = 2379;

/// Settings as written; [`Self::check`] says what is wrong with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdConfig {
    /// `http://HOST:PORT` or `https://HOST:PORT` of each member; all with the same scheme.
    pub endpoints: Vec<String>,
    /// All records are below this key. It ends with a slash.
    pub prefix: String,
    /// For `https` endpoints, and only for them.
    pub tls: Option<EtcdTlsFiles>,
    /// None if etcd has no authentication, or if the client certificate names the user.
    pub user: Option<EtcdUser>,
    /// Quota of members that do not report theirs. None if they have no quota.
    pub quota_bytes: Option<u64>,
}

/// PEM files. They are read again for each new connection, so that renewed certificates need no restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdTlsFiles {
    /// Certificates of the authorities that sign etcd's server certificates.
    pub authority: PathBuf,
    /// None if etcd does not ask for client certificates.
    pub client: Option<ClientCertificateFiles>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificateFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdUser {
    pub name: String,
    pub password: Password,
}

/// The password of the user of etcd. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// Read again each time the node authenticates. A newline at the end does not belong to the password.
    File(PathBuf),
    Text(String),
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Text(_) => f.write_str("Text(..)"),
        }
    }
}

/// Why settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("no endpoint of etcd is given; name at least one, such as http://127.0.0.1:2379")]
    NoEndpoint,
    #[error("{count} endpoints of etcd are given, the limit is {ENDPOINTS_MAX}")]
    TooManyEndpoints { count: usize },
    #[error(
        "{endpoint:?} is not an endpoint of etcd: {reason}; write it as http://HOST:2379 or https://HOST:2379"
    )]
    Endpoint { endpoint: String, reason: &'static str },
    #[error("endpoint {endpoint} of etcd is given twice; leave one out")]
    EndpointTwice { endpoint: String },
    #[error("endpoints {one} and {other} of etcd have different schemes; use https for all, or http for all")]
    MixedSchemes { one: String, other: String },
    #[error(
        "endpoint {endpoint} of etcd is https, and no authority is given; set --etcd-ca FILE (etcd.ca) to the authority of etcd's certificates"
    )]
    NoAuthority { endpoint: String },
    #[error(
        "endpoint {endpoint} of etcd is http, and certificates are given; write https, or leave the certificates out"
    )]
    UnusedCertificates { endpoint: String },
    #[error("{prefix:?} is not a prefix for keys in etcd: {reason}; write it like {DEFAULT_PREFIX}")]
    Prefix { prefix: String, reason: &'static str },
    #[error("the name of the user of etcd is empty; name the user, or leave the password out")]
    NoUserName,
}

impl EtcdConfig {
    /// Settings without TLS and without a user, with etcd's default quota.
    pub fn new<E: Into<String>>(endpoints: impl IntoIterator<Item = E>, prefix: impl Into<String>) -> Self {
        let endpoints = endpoints.into_iter().map(Into::into).collect();
        let quota_bytes = Some(DEFAULT_QUOTA_BYTES);
        Self { endpoints, prefix: prefix.into(), tls: None, user: None, quota_bytes }
    }

    /// Checks everything that needs neither files nor the network.
    pub fn check(&self) -> Result<(), ConfigError> {
        Checked::new(self).map(|_| ())
    }
}

/// Settings that can be used.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    /// Not empty.
    pub endpoints: Vec<Endpoint>,
    pub prefix: String,
    pub tls: Option<EtcdTlsFiles>,
    pub user: Option<EtcdUser>,
    pub quota_bytes: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// As written, for messages.
    pub text: String,
    pub origin: Uri,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    /// For `https`: the name that the server's certificate must have.
    pub tls_name: Option<ServerName<'static>>,
}

impl Checked {
    pub(crate) fn new(config: &EtcdConfig) -> Result<Self, ConfigError> {
        let EtcdConfig { endpoints, prefix, tls, user, quota_bytes } = config;
        if endpoints.len() > ENDPOINTS_MAX {
            return Err(ConfigError::TooManyEndpoints { count: endpoints.len() });
        }
        let checked = endpoints.iter().map(|text| Endpoint::parse(text)).collect::<Result<Vec<_>, _>>()?;
        let first = checked.first().ok_or(ConfigError::NoEndpoint)?;
        for (number, endpoint) in checked.iter().enumerate() {
            if endpoint.tls_name.is_some() != first.tls_name.is_some() {
                let (one, other) = (first.text.clone(), endpoint.text.clone());
                return Err(ConfigError::MixedSchemes { one, other });
            }
            if checked[..number].iter().any(|one| (&one.host, one.port) == (&endpoint.host, endpoint.port)) {
                return Err(ConfigError::EndpointTwice { endpoint: endpoint.text.clone() });
            }
        }
        match (&first.tls_name, tls) {
            (Some(_), None) => return Err(ConfigError::NoAuthority { endpoint: first.text.clone() }),
            (None, Some(_)) => return Err(ConfigError::UnusedCertificates { endpoint: first.text.clone() }),
            (Some(_), Some(_)) | (None, None) => {}
        }
        check_prefix(prefix)?;
        if user.as_ref().is_some_and(|user| user.name.is_empty()) {
            return Err(ConfigError::NoUserName);
        }
        let (prefix, tls, user) = (prefix.clone(), tls.clone(), user.clone());
        Ok(Self { endpoints: checked, prefix, tls, user, quota_bytes: *quota_bytes })
    }
}

impl Endpoint {
    fn parse(text: &str) -> Result<Self, ConfigError> {
        // What stands before an '@' may be a password.
        let shown = text.rsplit('@').next().unwrap_or(text);
        let wrong = |reason| ConfigError::Endpoint { endpoint: shown.to_owned(), reason };
        let uri: Uri = text.parse().map_err(|_| wrong("it is not a URL"))?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) => return Err(wrong("its scheme is neither http nor https")),
            None => return Err(wrong("it has no scheme")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("it contains a user; the user has a setting of its own"));
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(wrong("it has a path"));
        }
        let host = authority.host();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        let has_port = !authority.as_str().ends_with(authority.host());
        let port = match authority.port_u16() {
            Some(0) => return Err(wrong("its port is not a number from 1 to 65535")),
            Some(port) => port,
            None if has_port => return Err(wrong("its port is not a number from 1 to 65535")),
            None => DEFAULT_PORT,
        };
        let tls_name = match is_tls {
            true => {
                let name = ServerName::try_from(host.to_owned());
                Some(name.map_err(|_| wrong("its host is neither a DNS name nor an IP address"))?)
            }
            false => None,
        };
        let shown_host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let scheme = if is_tls { "https" } else { "http" };
        let origin = format!("{scheme}://{shown_host}:{port}").parse();
        let origin = origin.map_err(|_| wrong("it is not a URL"))?;
        Ok(Self { text: text.to_owned(), origin, host: host.to_owned(), port, tls_name })
    }
}

fn check_prefix(prefix: &str) -> Result<(), ConfigError> {
    let wrong = |reason| Err(ConfigError::Prefix { prefix: prefix.to_owned(), reason });
    if prefix.len() > PREFIX_BYTES_MAX {
        return wrong("it has more than 128 bytes");
    }
    if !prefix.ends_with('/') {
        return wrong("it does not end with a slash");
    }
    if prefix.chars().all(|character| character == '/') {
        return wrong("it has no name");
    }
    if !prefix.chars().all(|character| character.is_ascii_graphic()) {
        return wrong("it has other characters than ASCII letters, digits and punctuation");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(endpoints: &[&str]) -> EtcdConfig {
        EtcdConfig::new(endpoints.iter().copied(), DEFAULT_PREFIX)
    }

    fn with_tls(endpoints: &[&str]) -> EtcdConfig {
        let tls = EtcdTlsFiles { authority: "ca.pem".into(), client: None };
        EtcdConfig { tls: Some(tls), ..config(endpoints) }
    }

    #[test]
    fn endpoints_are_parsed() {
        for (text, host, port) in [
            ("http://127.0.0.1:2379", "127.0.0.1", 2379),
            ("http://etcd-1.example", "etcd-1.example", 2379),
            ("http://[::1]:4001/", "::1", 4001),
            ("http://[fd00::1]", "fd00::1", 2379),
        ] {
            let checked = Checked::new(&config(&[text])).unwrap();
            let endpoint = &checked.endpoints[0];
            assert_eq!((&*endpoint.host, endpoint.port), (host, port), "{text}");
            assert_eq!(endpoint.origin.port_u16(), Some(port), "{text}");
        }
        for (text, part) in [
            ("127.0.0.1:2379", "scheme"),
            ("ftp://host", "scheme"),
            ("http://user:secret@host:2379", "user"),
            ("http://host:2379/v3", "path"),
            ("http://host:2379?x=1", "path"),
            ("http://host:99999", "port"),
            ("http://host:0", "port"),
            ("http:// ", "URL"),
            ("", "URL"),
        ] {
            let error = config(&[text]).check().unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("secret"), "{text}: {error}");
        }
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        let none: [&str; 0] = [];
        let many: Vec<String> = (0..17).map(|number| format!("http://h{number}:1")).collect();
        let cases = [
            (config(&none), "at least one"),
            (EtcdConfig::new(many, "/a/"), "the limit is 16"),
            (config(&["http://a:1", "http://a:1/"]), "twice"),
            (with_tls(&["https://a:1", "http://b:1"]), "different schemes"),
            (config(&["https://a:1"]), "authority"),
            (with_tls(&["http://a:1"]), "leave the certificates out"),
            (EtcdConfig { prefix: "/a".into(), ..config(&["http://a:1"]) }, "slash"),
            (EtcdConfig { prefix: "/".into(), ..config(&["http://a:1"]) }, "no name"),
            (EtcdConfig { prefix: "".into(), ..config(&["http://a:1"]) }, "slash"),
            (EtcdConfig { prefix: "/é/".into(), ..config(&["http://a:1"]) }, "ASCII"),
            (
                EtcdConfig {
                    user: Some(EtcdUser { name: String::new(), password: Password::Text("x".into()) }),
                    ..config(&["http://a:1"])
                },
                "name the user",
            ),
        ];
        for (config, part) in cases {
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(with_tls(&["https://a:1", "https://[::1]:1"]).check(), Ok(()));
    }

    #[test]
    fn debug_does_not_show_the_password() {
        let user = EtcdUser { name: "nb".into(), password: Password::Text("hunter2".into()) };
        let config = EtcdConfig { user: Some(user), ..config(&["http://a:1"]) };
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
