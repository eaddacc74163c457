//! HTTP client for webhooks: steps of rules and the administrator's notifications. Unlike requests to the platform,
//! they use the proxy of the environment. URLs and headers may be secret, so messages name only the host.

use std::collections::BTreeMap;
use std::time::Duration;

use notbefore_wire::text::{printable, shorten};
use ureq::Agent;
use ureq::http::{Request, Uri};

use super::HookError;

/// Bytes of a response read for its first words.
const ANSWER_BYTES_MAX: u64 = 16 * 1024;
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
    let timeout = call.timeout;
    let line = AbortOnDrop(agent(timeout));
    let sending = tokio::task::spawn_blocking({
        let agent = line.0.clone();
        move || send_now(&agent, &call)
    });
    // The request's own timeout does not cover DNS on every system.
    match tokio::time::timeout(timeout, sending).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panicked)) => Err(HookError(panicked.to_string())),
        Err(_) => Err(HookError(format!("no answer within {} s", timeout.as_secs()))),
    }
}

/// Closes the connection when the waiting task is gone.
struct AbortOnDrop(Agent);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.clone().shutdown();
    }
}

fn agent(timeout: Duration) -> Agent {
    Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .allow_non_standard_methods(true)
        .user_agent(concat!("notbefore-agent/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

fn send_now(agent: &Agent, call: &Call) -> Result<(), HookError> {
    let host = host(&call.url);
    let mut request = Request::builder().method(call.method.as_str()).uri(&call.url);
    if content_type(&call.headers).is_none() {
        request = request.header("Content-Type", "application/json");
    }
    for (name, value) in &call.headers {
        request = request.header(name, value);
    }
    let sent = match call.method.as_str() {
        "GET" | "HEAD" => request.body(()).map(|request| agent.run(request)),
        _ => request.body(call.body.as_str()).map(|request| agent.run(request)),
    };
    let sent = sent.map_err(|error| HookError(error.to_string()))?;
    let mut answer = sent.map_err(|error| HookError(format!("{host} cannot be reached: {error}")))?;
    if answer.status().is_success() {
        return Ok(());
    }
    let read = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).lossy_utf8(true).read_to_string();
    let words = printable(&shorten(read.unwrap_or_default().trim(), ANSWER_CHARS_MAX));
    let words = if words.is_empty() { words } else { format!(": {words}") };
    Err(HookError(format!("{host} answered {}{words}", answer.status().as_u16())))
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
