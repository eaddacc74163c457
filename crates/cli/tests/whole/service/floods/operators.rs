//! Connection floods against the operator listener.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use super::{Flood, REQUESTS, SOURCES, lines_with, local, source};
use crate::support::{Service, connect, exchange, wait_for};

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
/// More than the connection limit.
const MANY: usize = 600;
const CLOSED: &str = "too many connections of operators";

/// A self-signed certificate for `localhost`.
struct Certificate {
    dir: TempDir,
    client: Arc<ClientConfig>,
}

impl Certificate {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned()];
        let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        fs::write(dir.path().join("cert.pem"), certificate.pem()).unwrap();
        fs::write(dir.path().join("key.pem"), key.serialize_pem()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(certificate.pem().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let client = builder.unwrap().with_root_certificates(roots).with_no_client_auth();
        Self { dir, client: Arc::new(client) }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A connection whose TLS handshake runs at the first write.
    fn encrypt(&self, stream: TcpStream) -> StreamOwned<ClientConnection, TcpStream> {
        let name = "localhost".try_into().unwrap();
        StreamOwned::new(ClientConnection::new(Arc::clone(&self.client), name).unwrap(), stream)
    }

    /// Sends a request; returns the status of the response, or 0.
    fn request(&self, service: &Service, request: &[u8]) -> u16 {
        let mut stream = self.encrypt(connect(local(), service.operator).unwrap());
        let mut text = Vec::new();
        let _ = stream.write_all(request);
        let _ = stream.read_to_end(&mut text);
        String::from_utf8_lossy(&text).split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }
}

fn served(certificate: Option<&Certificate>) -> Service {
    let path = |name: &str| certificate.map(|one| one.file(name).to_str().unwrap().to_owned());
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let flags = match (&cert, &key) {
        (Some(cert), Some(key)) => vec!["--operator-cert", cert.as_str(), "--operator-key", key.as_str()],
        _ => Vec::new(),
    };
    Service::start_with(&[("NOTBEFORE_LOG", "warn")], &flags)
}

#[test]
fn health_and_root_token_are_answered_during_connection_flood() {
    for sources in SOURCES {
        let service = served(None);
        let payloads: [&[u8]; 3] =
            [b"", b"GET /healthz HTTP/1.1\r\nHost:", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"];
        let mut flood = Flood::new(service.operator, sources, &payloads);
        flood.open(MANY);
        let answered = flood.answered(|| exchange(local(), service.operator, HEALTH).status);
        assert_eq!(answered, REQUESTS, "from {sources} sources");
        service.cli(&["vm", "list"]);
        let (lines, apart) = lines_with(&service.log(), CLOSED);
        assert!(lines >= 1 && apart, "{}", service.log());
    }
}

#[test]
fn health_and_root_token_are_answered_during_handshake_flood() {
    let certificate = Certificate::new();
    for sources in SOURCES {
        let service = served(Some(&certificate));
        let payloads: [&[u8]; 2] = [b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"];
        let mut flood = Flood::new(service.operator, sources, &payloads);
        // Some clients finish the handshake, send a request, and do not read.
        let mut asking = Vec::new();
        for _ in 0..60 {
            let mut stream = certificate.encrypt(connect([127, 0, 9, 1].into(), service.operator).unwrap());
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            asking.push(stream);
        }
        flood.open(MANY);
        let answered = flood.answered(|| certificate.request(&service, HEALTH));
        assert_eq!(answered, REQUESTS, "from {sources} sources");
        service.cli(&["vm", "list"]);
        let (lines, apart) = lines_with(&service.log(), CLOSED);
        assert!(lines >= 1 && apart, "{}", service.log());
    }
}

/// A token's stream: response status and lines.
struct Stream {
    status: u16,
    lines: std::io::Lines<BufReader<Box<dyn Read>>>,
}

impl Stream {
    fn open(service: &Service, token: &str) -> Self {
        Self::open_from(local(), service, None, token)
    }

    fn open_from(source: IpAddr, service: &Service, certificate: Option<&Certificate>, token: &str) -> Self {
        let request = with_token(token, "/v1/stream");
        let mut stream = connect(source, service.operator).unwrap();
        let stream: Box<dyn Read> = match certificate {
            None => {
                stream.write_all(request.as_bytes()).unwrap();
                Box::new(stream)
            }
            Some(certificate) => {
                let mut stream = certificate.encrypt(stream);
                stream.write_all(request.as_bytes()).unwrap();
                Box::new(stream)
            }
        };
        let mut lines = BufReader::new(stream).lines();
        let first = lines.next().and_then(Result::ok).unwrap_or_default();
        Self { status: first.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0), lines }
    }

    /// Whether a line with this text comes before the stream ends.
    fn has_line(&mut self, text: &str) -> bool {
        self.lines.by_ref().map_while(Result::ok).any(|line| line.contains(text))
    }
}

fn with_token(token: &str, target: &str) -> String {
    let token = token.trim();
    format!(
        "GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )
}

fn token(service: &Service, name: &str) -> String {
    let made = service.cli_json(&["token", "create", name, "--role", "viewer", "--on", "no/where"]);
    made["secret"].as_str().unwrap().to_owned()
}

fn root(service: &Service) -> String {
    fs::read_to_string(service.data().join("operator.token")).unwrap()
}

#[test]
fn token_without_rights_cannot_lock_out_others() {
    let certificate = Certificate::new();
    for (sources, certificate) in SOURCES.into_iter().flat_map(|n| [(n, None), (n, Some(&certificate))]) {
        let service = served(certificate);
        let (viewer, root) = (token(&service, "viewer"), root(&service));
        let mut following = Stream::open_from(local(), &service, certificate, &root);
        let open = |n: usize| Stream::open_from(source(n, sources), &service, certificate, &viewer);
        let streams: Vec<Stream> = (0..80).map(open).collect();
        let statuses: Vec<u16> = streams.iter().map(|stream| stream.status).collect();
        assert_eq!(statuses, [vec![200; 64], vec![429; 16]].concat());

        let mut flood = Flood::new(service.operator, sources, &[b""]);
        flood.open(MANY);
        let request = with_token(&root, "/v1/vms");
        let answered = flood.answered(|| match certificate {
            None => exchange(local(), service.operator, request.as_bytes()).status,
            Some(certificate) => certificate.request(&service, request.as_bytes()),
        });
        assert_eq!(answered, REQUESTS, "{sources} sources, encrypted: {}", certificate.is_some());
        // A connection with a token is not closed in favour of connections without one.
        service.cli(&["token", "create", "told", "--role", "viewer", "--on", "/"]);
        assert!(following.has_line("TokenCreated"), "root's stream was closed");
    }
}

#[test]
fn connections_above_token_limit_are_refused() {
    let service = served(None);
    let viewer = token(&service, "viewer");
    let _streams: Vec<Stream> = (0..64).map(|_| Stream::open(&service, &viewer)).collect();
    let refused = service.request_with(&viewer, "GET", "/v1/vms", "", "");
    assert_eq!((refused.status, refused.json()["code"].as_str()), (429, Some("too_many_connections")));
    assert!(refused.json()["detail"].as_str().unwrap().contains("64 of one token"), "{refused:?}");
    assert!(refused.head.to_ascii_lowercase().contains("retry-after: 1"), "{refused:?}");
    assert_eq!(service.operator_request("GET", "/v1/vms", "", "").status, 200);
}

#[test]
fn stream_limit_is_shared_fairly_between_tokens() {
    let limits = [
        ("NOTBEFORE_LOG", "warn"),
        ("NOTBEFORE_OPERATOR_LIMITS_STREAMS_MAX", "8"),
        ("NOTBEFORE_OPERATOR_LIMITS_STREAMS_PER_TOKEN_MAX", "4"),
        ("NOTBEFORE_OPERATOR_LIMITS_CONNECTIONS_PER_TOKEN_MAX", "5"),
    ];
    let service = Service::start_with(&limits, &[]);
    let [a, b, c] = ["a", "b", "c"].map(|name| token(&service, name));
    let mut of_a: Vec<Stream> = (0..4).map(|_| Stream::open(&service, &a)).collect();
    let of_b: Vec<Stream> = (0..4).map(|_| Stream::open(&service, &b)).collect();
    assert!(of_a.iter().chain(&of_b).all(|stream| stream.status == 200));
    let fifth = Stream::open(&service, &a);
    assert_eq!(fifth.status, 429);
    // A token without a stream gets one: the oldest stream of the token with most is closed.
    let of_c = Stream::open(&service, &c);
    assert_eq!(of_c.status, 200);
    assert!(!of_a[0].has_line("no such line"), "it ends");
    drop(fifth);
    // Five connections: the four open streams (or three and the refused one), and this one.
    assert_eq!(service.request_with(&b, "GET", "/v1/vms", "", "").status, 200);
}

/// A client that pipelines requests and reads no response.
#[test]
fn client_that_reads_nothing_for_10_seconds_is_closed() {
    let service = served(None);
    let mut stream = connect(local(), service.operator).unwrap();
    stream.set_nonblocking(true).unwrap();
    let requests = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(200_000);
    let mut rest = requests.as_slice();
    // The service closes the connection with requests unread, which resets it.
    wait_for("the service to close the connection", || {
        loop {
            match stream.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return None,
                Err(error) => return Some(error),
            }
        }
    });
}

#[test]
fn reverse_proxy_is_exempt_from_source_limit() {
    let limits = [("NOTBEFORE_LOG", "warn"), ("NOTBEFORE_OPERATOR_PROXIES", "127.0.9.0/24")];
    let service = Service::start_with(&limits, &[]);
    let mut proxied = Flood::new(service.operator, 1, &[b""]);
    proxied.open(300);
    // A flood from another source loses its own connections, although the proxy has more.
    let mut others: Vec<TcpStream> = Vec::new();
    for _ in 0..300 {
        others.push(connect([127, 0, 8, 1].into(), service.operator).unwrap());
    }
    assert_eq!(exchange(local(), service.operator, HEALTH).status, 200);
    for stream in &mut proxied.open {
        stream.write_all(HEALTH).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
}
