//! Connections to the servers of webhooks: TCP, a tunnel through the proxy of the environment, and TLS.
//!
//! The first of [`VARIABLES`] with a valid URL is the proxy, for http and https alike. It sees only the server's name
//! (CONNECT). Hosts in `NO_PROXY` are reached directly. SOCKS is not supported: if it is
//! the proxy, servers are reached directly.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64;
use hyper::Uri;
use percent_encoding::percent_decode_str;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::AGENT;

const VARIABLES: [&str; 6] =
    ["ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// Largest response of a proxy to CONNECT.
const PROXY_ANSWER_BYTES_MAX: usize = 64 * 1024;

/// A connection, encrypted or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// How servers are reached.
pub(super) struct Network {
    pub proxy: Option<Proxy>,
    pub roots: RootCertStore,
}

impl Network {
    /// With the proxy of the environment, and Mozilla's CAs.
    pub fn of_environment() -> Self {
        let roots = webpki_roots::TLS_SERVER_ROOTS.iter().cloned();
        let proxy = Proxy::find(|name| std::env::var(name).ok());
        Self { proxy, roots: RootCertStore::from_iter(roots) }
    }

    /// Connects to the server of a URL, with TLS for https.
    pub async fn connect(&self, server: &Uri, within: Duration) -> io::Result<Box<dyn Stream>> {
        match self.proxy.as_ref().filter(|proxy| !proxy.is_excepted(server)) {
            None => self.open(server, within).await,
            Some(proxy) => {
                let mut stream = self.open(&proxy.url, within).await?;
                proxy.tunnel(&mut stream, server).await?;
                self.encrypt(stream, server).await
            }
        }
    }

    async fn open(&self, server: &Uri, within: Duration) -> io::Result<Box<dyn Stream>> {
        let addresses: Vec<SocketAddr> = lookup_host((bare_host(server), port(server))).await?.collect();
        let stream = connect_one(&addresses, within).await?;
        stream.set_nodelay(true)?;
        self.encrypt(Box::new(stream), server).await
    }

    async fn encrypt(&self, stream: Box<dyn Stream>, server: &Uri) -> io::Result<Box<dyn Stream>> {
        if server.scheme_str() != Some("https") {
            return Ok(stream);
        }
        let name = ServerName::try_from(bare_host(server).to_owned()).map_err(io::Error::other)?;
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let tls = tls.with_safe_default_protocol_versions().map_err(io::Error::other)?;
        let tls = tls.with_root_certificates(self.roots.clone()).with_no_client_auth();
        Ok(Box::new(TlsConnector::from(Arc::new(tls)).connect(name, stream).await?))
    }
}

/// Connects to the first address that accepts. One may not answer at all, so the first has half of the time, the next a
/// quarter, and so on.
pub(super) async fn connect_one(addresses: &[SocketAddr], within: Duration) -> io::Result<TcpStream> {
    let mut share = within;
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for (index, address) in addresses.iter().enumerate() {
        if index + 1 < addresses.len() {
            share /= 2;
        }
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failure = error,
            Err(_) => failure = io::Error::new(io::ErrorKind::TimedOut, "no connection in time"),
        }
    }
    Err(failure)
}

pub(super) struct Proxy {
    pub url: Uri,
    /// `user:password`, in Base64.
    pub credentials: Option<String>,
    /// Patterns of hosts that are reached directly, in lower case, with commas.
    exceptions: String,
}

impl Proxy {
    /// The proxy that the variables of an environment name.
    pub fn find(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let mut proxy = VARIABLES.iter().find_map(|name| Self::parse(&variable(name)?))?;
        let exceptions = EXCEPTIONS.iter().find_map(|name| variable(name));
        proxy.exceptions = exceptions.unwrap_or_default().to_ascii_lowercase();
        matches!(proxy.url.scheme_str(), Some("http" | "https")).then_some(proxy)
    }

    /// A URL without a scheme is one of http.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.parse::<Uri>().ok()?.into_parts();
        let authority = parts.authority.as_ref()?;
        let credentials = match userinfo(authority.as_str()) {
            Some(raw) => Some(BASE64.encode(percent_decode_str(&raw).decode_utf8().ok()?.as_bytes())),
            None => None,
        };
        let scheme = parts.scheme.as_ref().map_or("http", |scheme| scheme.as_str()).to_ascii_lowercase();
        let known = ["http", "https", "socks", "socks4", "socks4a", "socks5", "socks5h"];
        parts.scheme = Some(known.contains(&&*scheme).then(|| scheme.parse().ok())??);
        parts.path_and_query = Some("/".parse().ok()?);
        Some(Self { url: Uri::from_parts(parts).ok()?, credentials, exceptions: String::new() })
    }

    /// Whether the server is reached directly.
    pub fn is_excepted(&self, server: &Uri) -> bool {
        let host = server.host().unwrap_or_default().to_ascii_lowercase();
        self.exceptions.split(',').any(|pattern| {
            if let Some(end) = pattern.strip_prefix('*') {
                host.ends_with(end)
            } else if pattern.starts_with('.') {
                host.ends_with(pattern)
            } else if let Some(start) = pattern.strip_suffix('*') {
                host.starts_with(start)
            } else {
                host == pattern || pattern.ends_with('.') && host.starts_with(pattern)
            }
        })
    }

    /// Asks the proxy to connect the stream with the server.
    async fn tunnel(&self, stream: &mut Box<dyn Stream>, server: &Uri) -> io::Result<()> {
        let place = format!("{}:{}", server.host().unwrap_or_default(), port(server));
        let mut request = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\nUser-Agent: {AGENT}\r\n");
        request.push_str("Proxy-Connection: Keep-Alive\r\n");
        if let Some(credentials) = &self.credentials {
            request.push_str(&format!("Proxy-Authorization: Basic {credentials}\r\n"));
        }
        stream.write_all((request + "\r\n").as_bytes()).await?;
        stream.flush().await?;
        // What follows the head is from the server.
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") && answer.len() < PROXY_ANSWER_BYTES_MAX {
            answer.push(
                stream.read_u8().await.map_err(|_| io::Error::other("the proxy closed the connection"))?,
            );
        }
        let answer = String::from_utf8_lossy(&answer);
        match answer.split_ascii_whitespace().nth(1).and_then(|status| status.parse::<u16>().ok()) {
            Some(200) => Ok(()),
            Some(status) => Err(io::Error::other(format!("the proxy answered {status}"))),
            None => Err(io::Error::other("the proxy does not answer in HTTP")),
        }
    }
}

/// `user:password` of an authority, as it is written there.
pub(super) fn userinfo(authority: &str) -> Option<String> {
    let (userinfo, _) = authority.rsplit_once('@')?;
    Some(if userinfo.contains(':') { userinfo.to_owned() } else { format!("{userinfo}:") })
}

/// The host of a URL, without the brackets of an IPv6 address.
fn bare_host(url: &Uri) -> &str {
    url.host().unwrap_or_default().trim_matches(['[', ']'])
}

fn port(url: &Uri) -> u16 {
    url.port_u16().unwrap_or(if url.scheme_str() == Some("https") { 443 } else { 80 })
}
