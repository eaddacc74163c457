//! HTTP client for webhooks: steps of rules and the administrator's notifications. Unlike requests to the platform,
//! they use the proxy of the environment. URLs and headers may be secret, so messages name only the host.

mod connect;

use std::collections::BTreeMap;
use std::error::Error;
use std::future::pending;
use std::time::Duration;

use bytes::Bytes;
use data_encoding::BASE64;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::{Request, StatusCode, Uri, header};
use hyper_util::rt::TokioIo;
use notbefore_wire::text::{printable, shorten};
use tokio::time::timeout;

use super::HookError;
use connect::{Network, userinfo};

const AGENT: &str = concat!("notbefore-agent/", env!("CARGO_PKG_VERSION"));
/// Largest response head.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a response read for its first words.
const ANSWER_BYTES_MAX: usize = 16 * 1024;
/// Time for the first words of a failure, once its status is known.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);
/// Characters of a response shown.
const ANSWER_CHARS_MAX: usize = 200;

#[derive(Clone)]
pub struct Call {
    pub url: String,
    pub method: String,
    /// Extra headers.
    pub headers: BTreeMap<String, String>,
    pub body: String,
    /// For the whole request.
    pub timeout: Duration,
}

/// Sends the request; any status but 2xx is a failure. Redirects are not followed, because they would drop the body.
/// Dropping the future closes the connection: unsent data is never sent.
pub async fn send(call: Call) -> Result<(), HookError> {
    send_over(&Network::of_environment(), call).await
}

async fn send_over(network: &Network, call: Call) -> Result<(), HookError> {
    let (host, within) = (host(&call.url), call.timeout);
    let invalid = |error: hyper::http::Error| HookError(error.to_string());
    let server: Uri = call.url.parse().map_err(|error| invalid(hyper::http::Error::from(error)))?;
    let request = request(&server, call).map_err(invalid)?;
    let (status, words) = match timeout(within, exchange(network, &server, request, within)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => {
            // hyper's own messages say little.
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            return Err(HookError(format!("{host} cannot be reached: {why}")));
        }
        Err(_) => return Err(HookError(format!("no answer within {} s", within.as_secs()))),
    };
    if status.is_success() {
        return Ok(());
    }
    let words = printable(&shorten(words.trim(), ANSWER_CHARS_MAX));
    let words = if words.is_empty() { words } else { format!(": {words}") };
    Err(HookError(format!("{host} answered {}{words}", status.as_u16())))
}

/// The request as it is sent; headers of the call replace the usual ones.
fn request(server: &Uri, call: Call) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let body = match call.method.as_str() {
        "GET" | "HEAD" => None,
        _ => Some(call.body),
    };
    let usual_port = if server.scheme_str() == Some("https") { 443 } else { 80 };
    let host = server.host().unwrap_or_default();
    let host = match server.port_u16().filter(|port| *port != usual_port) {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let userinfo = server.authority().and_then(|authority| userinfo(authority.as_str()));
    let authorization = userinfo.map(|userinfo| format!("Basic {}", BASE64.encode(userinfo.as_bytes())));
    let usual = [
        (header::HOST, Some(host)),
        (header::USER_AGENT, Some(AGENT.to_owned())),
        (header::ACCEPT, Some("*/*".to_owned())),
        (header::AUTHORIZATION, authorization),
        (header::CONTENT_TYPE, Some("application/json".to_owned())),
        (header::CONTENT_LENGTH, body.as_ref().map(|body| body.len().to_string())),
    ];
    let target = server.path_and_query().map_or("/", |target| target.as_str());
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    let mut request = Request::builder().method(call.method.as_str()).uri(target);
    for (name, value) in &call.headers {
        request = request.header(name, value);
    }
    for (name, value) in usual {
        let is_set = request.headers_ref().is_some_and(|headers| headers.contains_key(&name));
        if let Some(value) = value.filter(|_| !is_set) {
            request = request.header(name, value);
        }
    }
    request.body(Full::from(body.unwrap_or_default()))
}

/// Sends the request. The status, and of a failure the beginning of the body.
async fn exchange(
    network: &Network,
    server: &Uri,
    request: Request<Full<Bytes>>,
    within: Duration,
) -> Result<(StatusCode, String), Box<dyn Error + Send + Sync>> {
    let stream = TokioIo::new(network.connect(server, within).await?);
    let (mut sender, connection) =
        http1::Builder::new().max_buf_size(HEAD_BYTES_MAX).handshake(stream).await?;
    let answer = async {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        if status.is_success() {
            return Ok((status, String::new()));
        }
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect();
        let words = match timeout(ANSWER_TIME_MAX, body).await {
            Ok(Ok(body)) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
            Ok(Err(_)) | Err(_) => String::new(),
        };
        Ok((status, words))
    };
    // Not in a task of its own, which would outlive this future. Errors reach the waiting side.
    let driver = async {
        let _ = connection.await;
        pending().await
    };
    tokio::select! {
        answer = answer => answer,
        never = driver => never,
    }
}

/// The content type that the headers set.
fn content_type(headers: &BTreeMap<String, String>) -> Option<&str> {
    let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    found.map(|(_, value)| value.as_str())
}

/// Whether a body is JSON, by its content type or else by its first character.
pub fn is_json(headers: &BTreeMap<String, String>, body: &str) -> bool {
    match content_type(headers) {
        Some(said) => said.to_ascii_lowercase().contains("json"),
        None => body.trim_start().starts_with(['{', '[', '"']),
    }
}

/// The host of a URL; safe to log.
pub fn host(url: &str) -> String {
    let uri = url.parse::<Uri>().ok();
    uri.and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_else(|| "the server".to_owned())
}

#[cfg(test)]
mod tests;
