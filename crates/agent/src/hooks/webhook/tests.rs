use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::connect::{Proxy, Stream, connect_one};
use super::*;

const LONG: Duration = Duration::from_secs(60);

fn call(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Call {
    let headers = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    Call { url: url.to_owned(), method: method.to_owned(), headers, body: body.to_owned(), timeout: LONG }
}

/// Answers one connection; the request comes out of the task. Its URL ends with the port.
async fn server(answer: Vec<u8>) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = read_request(&mut stream).await;
        // The client may have what it needs before the end of the answer.
        let _ = stream.write_all(&answer).await;
        request
    });
    (url, task)
}

/// A head, and a body of the length that it says.
async fn read_request(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut seen = String::new();
    while !seen.ends_with("\r\n\r\n") {
        seen.push(char::from(stream.read_u8().await.unwrap()));
    }
    let length = seen.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.unwrap();
    seen + std::str::from_utf8(&body).unwrap()
}

const NO_CONTENT: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// What a call sends to `{}`, its header lines sorted.
async fn sent(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> String {
    let (server, request) = server(NO_CONTENT.to_vec()).await;
    let address = server.strip_prefix("http://").unwrap();
    send(call(method, &url.replace("{}", address), headers, body)).await.unwrap();
    let request = request.await.unwrap().replace(address, "SERVER");
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<&str> = head.split("\r\n").collect();
    lines[1..].sort_unstable();
    format!("{}\n\n{body}", lines.join("\n")).trim().to_owned()
}

#[tokio::test]
async fn request_has_usual_headers() {
    let agent = concat!("user-agent: notbefore-agent/", env!("CARGO_PKG_VERSION"));
    let usual =
        |length: &str| format!("accept: */*\n{length}content-type: application/json\nhost: SERVER\n{agent}");
    for (method, url, body, expected) in [
        (
            "POST",
            "http://{}/a/b?c=%20d#e",
            "{}",
            format!("POST /a/b?c=%20d HTTP/1.1\n{}\n\n{{}}", usual("content-length: 2\n")),
        ),
        ("PUT", "http://{}", "ä", format!("PUT / HTTP/1.1\n{}\n\nä", usual("content-length: 2\n"))),
        ("PATCH", "http://{}?c", "", format!("PATCH /?c HTTP/1.1\n{}", usual("content-length: 0\n"))),
        (
            "DELETE",
            "http://{}/",
            "{}",
            format!("DELETE / HTTP/1.1\n{}\n\n{{}}", usual("content-length: 2\n")),
        ),
        ("GET", "http://{}/", "unsent", format!("GET / HTTP/1.1\n{}", usual(""))),
        ("HEAD", "http://{}/", "unsent", format!("HEAD / HTTP/1.1\n{}", usual(""))),
    ] {
        assert_eq!(sent(method, url, &[], body).await, expected, "{method}");
    }
}

#[tokio::test]
async fn headers_of_the_configuration_replace_the_usual_ones() {
    let headers = [
        ("Accept", "text/plain"),
        ("CONTENT-TYPE", "text/plain"),
        ("Host", "other.example"),
        ("User-Agent", "me"),
        ("X-Token", "s3cret"),
    ];
    let expected = "POST / HTTP/1.1\naccept: text/plain\ncontent-length: 2\ncontent-type: text/plain\n\
                    host: other.example\nuser-agent: me\nx-token: s3cret\n\nhi";
    assert_eq!(sent("POST", "http://{}/", &headers, "hi").await, expected);
}

#[tokio::test]
async fn credentials_of_the_url_are_sent_as_they_are() {
    for (user, headers, expected) in [
        ("me:p%40ss", &[] as &[_], "\nauthorization: Basic bWU6cCU0MHNz\n"),
        ("me", &[], "\nauthorization: Basic bWU6\n"),
        ("me:pass", &[("Authorization", "Bearer x")], "\nauthorization: Bearer x\n"),
    ] {
        let request = sent("GET", &format!("http://{user}@{{}}/"), headers, "").await;
        assert!(request.contains(expected) && request.contains("\nhost: SERVER\n"), "{request}");
        assert_eq!(request.matches("authorization").count(), 1, "{request}");
    }
}

/// Why a call of a server with this answer fails.
async fn failure(answer: impl Into<Vec<u8>>) -> String {
    let (url, _request) = server(answer.into()).await;
    send(call("POST", &url, &[], "{}")).await.unwrap_err().0
}

fn answer(status: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    [format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

#[tokio::test]
async fn failures_name_status_and_first_words_of_the_answer() {
    let long = "x".repeat(ANSWER_CHARS_MAX + 1);
    for (answer, expected) in [
        (answer("500 Oh", " no\nway\u{1b}[1m "), r"500: no\nway\u{1b}[1m"),
        (answer("400 Bad Request", b"na\xefve"), "400: na\u{fffd}ve"),
        (answer("404 Not Found", ""), "404"),
        (answer("302 Found\r\nLocation: http://127.0.0.1:1/", "elsewhere"), "302: elsewhere"),
        (b"HTTP/1.0 503 Busy\r\n\r\nuntil the end".to_vec(), "503: until the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 Oh\r\nContent-Length: 1\r\n\r\nx".to_vec(), "500: x"),
        // What is too long, or breaks off, is not shown.
        (answer("500 Oh", "x".repeat(16 * 1024 + 1)), "500"),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 9\r\n\r\nx".to_vec(), "500"),
    ] {
        assert_eq!(failure(answer).await, format!("127.0.0.1 answered {expected}"));
    }
    let shown = failure(answer("500 Oh", &long)).await;
    assert_eq!(shown, format!("127.0.0.1 answered 500: {}", shorten(&long, ANSWER_CHARS_MAX)));
}

#[tokio::test]
async fn broken_answer_is_a_failure() {
    for answer in ["", "HTTP/1.1 2", "SSH-2.0-OpenSSH\r\n"] {
        let shown = failure(answer).await;
        assert!(shown.starts_with("127.0.0.1 cannot be reached: "), "{shown}");
    }
}

#[tokio::test]
async fn success_is_known_before_the_body() {
    let (url, _request) = server(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n".to_vec()).await;
    assert_eq!(send(call("POST", &url, &[], "{}")).await, Ok(()));
}

#[tokio::test]
async fn failure_is_known_before_a_body_that_never_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let _server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 500 Oh\r\nContent-Length: 9\r\n\r\nx").await.unwrap();
        std::future::pending::<()>().await
    });
    assert_eq!(send(call("POST", &url, &[], "{}")).await.unwrap_err().0, "127.0.0.1 answered 500");
}

#[tokio::test]
async fn silent_server_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let call = Call { timeout: Duration::from_millis(1_200), ..call("POST", &url, &[], "{}") };
    let shown = send(call).await.unwrap_err().0;
    assert_eq!(shown, "no answer within 1 s");
}

/// A server of `localhost`, and what trusts its certificate.
fn certificate() -> (TlsAcceptor, RootCertStore) {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(own.signing_key.serialize_der().into());
    let mut roots = RootCertStore::empty();
    roots.add(own.cert.der().clone()).unwrap();
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let server = server.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let server = server.with_single_cert(vec![own.cert.der().clone()], key).unwrap();
    (TlsAcceptor::from(Arc::new(server)), roots)
}

/// Accepts one connection, with TLS if there is an acceptor.
async fn accept(listener: &TcpListener, tls: Option<TlsAcceptor>) -> Box<dyn Stream> {
    let (stream, _) = listener.accept().await.unwrap();
    match tls {
        Some(tls) => Box::new(tls.accept(stream).await.unwrap()),
        None => Box::new(stream),
    }
}

/// Sends a webhook through a proxy; `[proxy, server]` says which of them have TLS. What each of them was asked.
async fn through_proxy(has_tls: [bool; 2]) -> [String; 2] {
    let (tls, roots) = certificate();
    let [proxy_tls, server_tls] = has_tls.map(|has_tls| has_tls.then(|| tls.clone()));
    let [proxy_scheme, scheme] = has_tls.map(|has_tls| if has_tls { "https" } else { "http" });
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy_url = format!("{proxy_scheme}://m%65:p%20w@{}", proxy.local_addr().unwrap());
    let serving = async {
        let mut stream = accept(&proxy, proxy_tls).await;
        let asked = read_request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 Connected\r\nX: y\r\n\r\n").await.unwrap();
        let mut stream = match server_tls {
            Some(tls) => Box::new(tls.accept(stream).await.unwrap()),
            None => stream,
        };
        let request = read_request(&mut stream).await;
        stream.write_all(NO_CONTENT).await.unwrap();
        stream.flush().await.unwrap();
        [asked, request]
    };
    let network =
        Network { proxy: Proxy::find(|name| (name == "https_proxy").then(|| proxy_url.clone())), roots };
    // Only the proxy knows the name, unless the certificate has to match it.
    let host = if has_tls[1] { "localhost" } else { "no-such-host.invalid" };
    let call = call("POST", &format!("{scheme}://{host}/hook"), &[], "{}");
    let (sent, asked) = tokio::join!(send_over(&network, call), serving);
    sent.unwrap();
    asked
}

#[tokio::test]
async fn proxy_opens_a_tunnel_to_the_server() {
    for has_tls in [[false, false], [false, true], [true, false], [true, true]] {
        let [asked, request] = through_proxy(has_tls).await;
        let place = if has_tls[1] { "localhost:443" } else { "no-such-host.invalid:80" };
        let expected = format!(
            "CONNECT {place} HTTP/1.1\r\nHost: {place}\r\nUser-Agent: {AGENT}\r\n\
             Proxy-Connection: Keep-Alive\r\nProxy-Authorization: Basic bWU6cCB3\r\n\r\n"
        );
        assert_eq!(asked, expected, "{has_tls:?}");
        assert!(request.starts_with("POST /hook HTTP/1.1\r\n") && request.ends_with("{}"), "{request}");
    }
}

#[tokio::test]
async fn refusal_of_the_proxy_is_a_failure() {
    for (answer, expected) in [
        ("HTTP/1.1 407 Who are you\r\n\r\n", "the proxy answered 407"),
        ("SSH-2.0-OpenSSH\r\n\r\n", "the proxy does not answer in HTTP"),
        ("HTTP/1.1 200", "the proxy closed the connection"),
    ] {
        let (url, _request) = server(answer.into()).await;
        let proxy = Proxy::find(|name| (name == "ALL_PROXY").then(|| url.clone()));
        let network = Network { proxy, roots: RootCertStore::empty() };
        let shown =
            send_over(&network, call("POST", "http://s3cret@hooks.example/x", &[], "")).await.unwrap_err().0;
        assert_eq!(shown, format!("hooks.example cannot be reached: {expected}"));
    }
}

#[tokio::test]
async fn only_certificates_of_known_authorities_are_accepted() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let (tls, roots) = certificate();
    let serving = tokio::spawn(async move {
        for _ in 0..2 {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(mut stream) = tls.accept(stream).await {
                read_request(&mut stream).await;
                stream.write_all(NO_CONTENT).await.unwrap();
                stream.flush().await.unwrap();
            }
        }
    });
    let mozilla = Network { proxy: None, ..Network::of_environment() };
    let shown = send_over(&mozilla, call("POST", &url, &[], "")).await.unwrap_err().0;
    assert_eq!(shown, "127.0.0.1 cannot be reached: invalid peer certificate: UnknownIssuer");
    let own = Network { proxy: None, roots };
    assert_eq!(send_over(&own, call("POST", &url, &[], "")).await, Ok(()));
    serving.await.unwrap();
}

#[test]
fn proxy_is_the_first_valid_one_of_the_environment() {
    let find = |variables: &[(&str, &str)]| {
        let proxy = Proxy::find(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        });
        proxy.map(|proxy| (proxy.url.to_string(), proxy.credentials.unwrap_or_default()))
    };
    for (variables, url, credentials) in [
        (
            &[("HTTP_PROXY", "http://c:1"), ("https_proxy", "http://b:1"), ("ALL_PROXY", "http://a:1")]
                as &[_],
            "http://a:1/",
            "",
        ),
        (&[("http_proxy", "http://c:1"), ("HTTPS_PROXY", "http://b:1")], "http://b:1/", ""),
        (&[("HTTPS_PROXY", ""), ("HTTP_PROXY", "proxy:3128")], "http://proxy:3128/", ""),
        (&[("HTTPS_PROXY", "ftp://a"), ("HTTP_PROXY", "HTTPS://b/x?y")], "https://b/", ""),
        (
            &[("HTTPS_PROXY", "http://%ff@a"), ("HTTP_PROXY", "http://me@[::1]:8")],
            "http://me@[::1]:8/",
            "bWU6",
        ),
        (&[("HTTP_PROXY", "http://m%3Ae:a:b@c")], "http://m%3Ae:a:b@c/", "bTplOmE6Yg=="),
    ] {
        assert_eq!(find(variables), Some((url.to_owned(), credentials.to_owned())), "{variables:?}");
    }
    assert_eq!(find(&[("PROXY", "http://a")]), None);
    // SOCKS is not supported.
    assert_eq!(find(&[("ALL_PROXY", "socks5://a"), ("HTTPS_PROXY", "http://b")]), None);
}

#[test]
fn hosts_in_no_proxy_are_reached_directly() {
    for (exceptions, excepted, proxied) in [
        ("*", &["a.example", "[::1]"] as &[_], &[] as &[&str]),
        ("a.example,10.0.0.1", &["a.example", "A.Example", "10.0.0.1"], &["b.a.example", "10.0.0.11"]),
        (".example", &["a.example", "a.b.EXAMPLE"], &["example", "a.example.org"]),
        ("*example", &["a.example", "myexample"], &["example.org"]),
        ("10.*", &["10.0.0.1"], &["110.0.0.1"]),
        ("10.", &["10.0.0.1"], &["110.0.0.1"]),
        ("[::1]", &["[::1]"], &["[::2]"]),
        ("", &[], &["a.example"]),
    ] {
        let proxy = Proxy::find(|name| match name {
            "HTTPS_PROXY" => Some("http://proxy".to_owned()),
            "no_proxy" => Some(exceptions.to_owned()),
            _ => None,
        });
        let proxy = proxy.unwrap();
        let is_excepted =
            |host: &&&str| proxy.is_excepted(&format!("https://{host}:8443/x").parse().unwrap());
        assert!(excepted.iter().all(|host| is_excepted(&host)), "{exceptions}: {excepted:?}");
        assert!(!proxied.iter().any(|host| is_excepted(&host)), "{exceptions}: {proxied:?}");
    }
}

#[tokio::test]
async fn server_in_no_proxy_gets_the_request_itself() {
    let (url, request) = server(NO_CONTENT.into()).await;
    // No proxy listens at this port, and the exception is not its host.
    let proxy = Proxy::find(|name| match name {
        "HTTP_PROXY" => Some("http://127.0.0.2:1".to_owned()),
        "NO_PROXY" => Some("127.0.0.1".to_owned()),
        _ => None,
    });
    let network = Network { proxy: Some(proxy.unwrap()), roots: RootCertStore::empty() };
    send_over(&network, call("POST", &format!("{url}/hook"), &[], "{}")).await.unwrap();
    assert!(request.await.unwrap().starts_with("POST /hook HTTP/1.1\r\n"));
}

#[tokio::test]
async fn next_address_is_tried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let open = listener.local_addr().unwrap();
    let refused = "127.0.0.1:1".parse().unwrap();
    // TEST-NET-1: no machine answers, or the network is unreachable.
    let silent = "192.0.2.1:9".parse().unwrap();
    let within = Duration::from_secs(2);
    assert_eq!(connect_one(&[refused, silent, open], within).await.unwrap().peer_addr().unwrap(), open);
    let failure = connect_one(&[refused], within).await.unwrap_err();
    assert_eq!(failure.kind(), std::io::ErrorKind::ConnectionRefused);
}
