//! `/v1/sign-in` and `/v1/session`: sessions of the console ([`crate::sessions`]).
//!
//! A browser sends a session's cookie by itself, also for a page of another site that makes it send a request. These
//! checks keep such requests out:
//!
//! - The cookie is `SameSite=Strict`, so browsers send it only with requests of the same site.
//! - Ports do not separate sites: a page at `http://localhost:3000` is of the same site as `http://localhost:9255`. A
//!   request with a cookie must therefore come from the same origin, as the browser says in `Sec-Fetch-Site`, or in
//!   `Origin` if the browser does not send the former.
//! - A request that is not safe must be JSON: no form can send that.
//!
//! The cookie's name has the port, because browsers do not separate cookies by port either.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use notbefore_core::{Actor, Fact, SignInMethod};
use notbefore_wire::operator::session::{Session, SignIn, SignInLink};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::access::{self, Principal};
use super::problem::{ApiResult, Problem};
use super::visibility::Caller;
use super::{Operator, audit, reader, tokens};
use crate::clock::UPTIME;
use crate::proxy::AddressPrefix;
use crate::sessions::{self, LinkError, SealedSession, SessionKey, SignInLimit};
use crate::tokens::KnownToken;
use crate::view::View;

/// Largest body of a request without a token.
pub const SIGN_IN_BYTES_MAX: usize = 4_096;
/// Time limit of the body: without a token, a connection must not be held for long.
const SIGN_IN_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// What sessions need.
pub struct Sessions {
    pub key: SessionKey,
    pub sign_ins: SignInLimit,
    /// The listener's port.
    pub port: u16,
    pub has_tls: bool,
    /// Reverse proxies, whose `X-Forwarded-Proto` and `X-Forwarded-For` count.
    pub proxies: Vec<AddressPrefix>,
}

/// What the node that a browser talks to knows of the browser's connection. A forwarded request brings it along, and
/// is marked by it: no client can set a request's extensions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Browser {
    /// The browser's address: that of the peer, or what a reverse proxy says.
    pub client: Option<IpAddr>,
    /// The listener's port.
    pub port: u16,
    /// Whether the browser's connection is encrypted, here or at a reverse proxy.
    pub is_encrypted: bool,
}

impl Browser {
    /// The cookie's name. A browser accepts the prefix `__Host-` only over TLS, for this host and all paths.
    fn cookie_name(&self) -> String {
        let prefix = if self.is_encrypted { "__Host-" } else { "" };
        format!("{prefix}notbefore-{}", self.port)
    }

    /// The values of `Set-Cookie`. Without TLS, another page of this host can set a cookie of this name at the API's path,
    /// which browsers send first; such a cookie is removed. The prefix `__Host-` forbids other paths.
    fn set_cookies(&self, value: &str, max_age_s: i64) -> Vec<String> {
        let name = self.cookie_name();
        let cookie = |value: &str, path: &str, max_age_s: i64| {
            format!("{name}={value}; Path={path}; HttpOnly; SameSite=Strict; Max-Age={max_age_s}")
        };
        let own = cookie(value, "/", max_age_s);
        if self.is_encrypted { vec![own + "; Secure"] } else { vec![own, cookie("", "/v1", 0)] }
    }
}

impl Sessions {
    /// The browser of a request, here or at the node that has forwarded it.
    pub fn browser(&self, extensions: &Extensions, headers: &HeaderMap) -> Browser {
        let forwarded = extensions.get::<Browser>().cloned();
        forwarded.unwrap_or_else(|| self.own_browser(access::source(extensions), headers))
    }

    fn own_browser(&self, from: Option<IpAddr>, headers: &HeaderMap) -> Browser {
        let (client, is_encrypted) = (self.client(from, headers), self.is_encrypted(from, headers));
        Browser { client, port: self.port, is_encrypted }
    }

    fn is_proxy(&self, from: Option<IpAddr>) -> bool {
        from.is_some_and(|from| self.proxies.iter().any(|proxy| proxy.contains(from)))
    }

    /// Whether the browser's connection is encrypted, here or at a reverse proxy. Each proxy of a chain adds a value, so
    /// the first is the browser's. A browser that sends one itself changes only its own cookie.
    fn is_encrypted(&self, from: Option<IpAddr>, headers: &HeaderMap) -> bool {
        let first = || headers.get("X-Forwarded-Proto")?.to_str().ok()?.split(',').next();
        let by_proxy =
            || self.is_proxy(from) && first().is_some_and(|proto| proto.trim().eq_ignore_ascii_case("https"));
        self.has_tls || by_proxy()
    }

    fn client(&self, from: Option<IpAddr>, headers: &HeaderMap) -> Option<IpAddr> {
        let last =
            || headers.get_all("X-Forwarded-For").iter().next_back()?.to_str().ok()?.rsplit(',').next();
        let forwarded = || last()?.trim().parse().ok();
        if self.is_proxy(from) { forwarded().or(from) } else { from }
    }

    /// The token and the expiry of a request's session, or why there is none; nothing if the request has no cookie.
    /// Cookies without a valid session are ignored: other pages of this host can set them.
    pub fn find<B>(
        &self,
        request: &Request<B>,
        view: &View,
        now: Timestamp,
    ) -> Option<Result<Found, Problem>> {
        let headers = request.headers();
        let name = self.browser(request.extensions(), headers).cookie_name();
        let values = cookies(headers, &name);
        if values.is_empty() {
            return None;
        }
        if let Err(problem) = check_origin(request.method(), headers) {
            return Some(Err(problem));
        }
        let known = |session: SealedSession| {
            let known = view.tokens.named(&session.token)?;
            (known.revision == session.token_revision).then(|| (Arc::clone(known), session.expires_at))
        };
        let found: Vec<_> =
            values.iter().filter_map(|value| self.key.open(value, now)).filter_map(known).collect();
        let ended = |detail| Problem::new(StatusCode::UNAUTHORIZED, "session_ended", detail);
        // Which of two tokens the browser's user means is not known.
        let is_other = |known: &Arc<KnownToken>| found.iter().any(|(other, _)| !Arc::ptr_eq(known, other));
        Some(match found.iter().max_by_key(|(_, expires_at)| *expires_at) {
            Some((known, _)) if is_other(known) => {
                Err(ended("the browser sent sessions of two tokens; sign in again"))
            }
            Some((known, expires_at)) => Ok((Arc::clone(known), Some(*expires_at))),
            None => {
                Err(ended("this session has ended, or its token was revoked or has expired; sign in again"))
            }
        })
    }
}

/// A token, and the expiry of its session.
type Found = (Arc<KnownToken>, Option<Timestamp>);

/// The values of all cookies of a name. A browser sends one for each path and domain that set it.
fn cookies<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a str> {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(found, _)| *found == name).map(|(_, value)| value).collect()
}

/// Refuses requests that a page of another origin made a browser send. A request that is not safe must be JSON, and say
/// its origin.
fn check_origin(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let same_origin = match (text("Sec-Fetch-Site"), text("Origin"), text("Host")) {
        // Without an initiator: typed, or a bookmark.
        (Some("none"), _, _) => Some(method.is_safe()),
        (Some(site), _, _) => Some(site == "same-origin"),
        // A reverse proxy may end TLS, so the scheme is not compared.
        (None, Some(origin), Some(host)) => {
            Some(origin.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host)))
        }
        (None, Some(_), None) => Some(false),
        (None, None, _) => None,
    };
    if !same_origin.unwrap_or(method.is_safe()) {
        let detail = "a request with a session must come from the console's own pages: send Sec-Fetch-Site: same-origin or a matching Origin; programs send 'Authorization: Bearer TOKEN' instead";
        return Err(Problem::new(StatusCode::FORBIDDEN, "cross_site", detail));
    }
    let media = text("Content-Type").and_then(|value| value.split(';').next()).unwrap_or_default();
    if !method.is_safe() && !media.trim().eq_ignore_ascii_case("application/json") {
        let detail = "a request with a session must have the header Content-Type: application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", detail));
    }
    Ok(())
}

/// Sign a browser in, by a token or by the code of a sign-in link
///
/// The response sets a cookie that stands for the token. It needs `Content-Type: application/json`, and
/// `Sec-Fetch-Site: same-origin` or an `Origin` that matches `Host`, as browsers send them. Programs do not sign in; they
/// send the token with each request.
#[utoipa::path(post, path = "/sign-in", tag = "session", request_body = SignIn, security(()), responses((status = 200, body = Session)))]
pub async fn sign_in(State(operator): State<Operator>, request: Request) -> Result<Response, Problem> {
    let (sessions, now) = (&operator.sessions, operator.clock.now());
    let browser = admit_sign_in(&operator, &request)?;
    let client = browser.client;
    let body = in_time(access::read_body(request, &(), SIGN_IN_BYTES_MAX)).await??;
    let (known, session_expires_at, method) = match read_sign_in(&body)? {
        SignInSecret::Token(secret) => {
            (operator.views.newest().tokens.by_secret(&secret).cloned(), None, SignInMethod::Token)
        }
        SignInSecret::Code(code) => {
            let link = sessions::use_link(&*operator.store, &code, now).await?;
            let link = link.ok_or_else(|| {
                let detail =
                    "this sign-in link was used or has expired; create another with 'notbefore console'";
                Problem::new(StatusCode::UNAUTHORIZED, "link_refused", detail)
            })?;
            let view = operator.views.newest();
            let known = view.tokens.named(&link.token);
            let known = known.filter(|known| known.revision == link.token_revision).cloned();
            (known, link.session_expires_at, SignInMethod::Link)
        }
    };
    let known = known.filter(|known| !known.token.is_expired(now)).ok_or_else(access::token_refused)?;
    known.mark_used(now);
    let name = known.token.name.as_str();
    audit::log_change(name, client, "POST /v1/sign-in");
    let by = Actor::Token(name.to_owned());
    sessions::record_fact(&*operator.store, by, client, Fact::SignedIn { method }, now).await;
    let sealed = SealedSession::new(&known, session_expires_at, now);
    let max_age_s = sealed.expires_at.as_second() - now.as_second();
    let cookies = browser.set_cookies(&sessions.key.seal(&sealed), max_age_s);
    Ok((set_cookies(&cookies)?, Json(session(&known, Some(sealed.expires_at), now))).into_response())
}

/// What a browser signs in by.
pub enum SignInSecret {
    Token(String),
    /// Of a sign-in link.
    Code(String),
}

/// Checks what needs no body: the origin, and the rate limit of the browser's address.
pub fn admit_sign_in(operator: &Operator, request: &Request) -> Result<Browser, Problem> {
    check_origin(request.method(), request.headers())?;
    let browser = operator.sessions.browser(request.extensions(), request.headers());
    let admitted = operator.sessions.sign_ins.try_acquire(browser.client, UPTIME.elapsed());
    admitted.map_err(|wait| {
        let detail =
            "too many attempts to sign in from this address; wait for the time that Retry-After gives";
        Problem::too_many("too_many_sign_ins", detail, wait)
    })?;
    Ok(browser)
}

/// Reads the body of a sign-in.
pub fn read_sign_in(body: &[u8]) -> Result<SignInSecret, Problem> {
    match reader::described_at(&Method::POST, "/v1/sign-in").body(body)? {
        SignIn { token: Some(secret), code: None } => Ok(SignInSecret::Token(secret.trim().to_owned())),
        SignIn { token: None, code: Some(code) } => Ok(SignInSecret::Code(code)),
        SignIn { .. } => Err(Problem::bad_request("bad_body", "give a token or a code, one of them")),
    }
}

/// Applies the time limit of a body without a token.
pub async fn in_time<T>(reading: impl Future<Output = T>) -> Result<T, Problem> {
    timeout(SIGN_IN_BODY_TIMEOUT, reading).await.map_err(|_| {
        let detail =
            format!("the body took longer than {} s; repeat the request", SIGN_IN_BODY_TIMEOUT.as_secs());
        Problem::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", detail)
    })
}

fn set_cookies(cookies: &[String]) -> Result<HeaderMap, Problem> {
    let mut headers = HeaderMap::new();
    for cookie in cookies {
        let value = HeaderValue::from_str(cookie).map_err(|_| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the cookie is not valid")
        })?;
        headers.append(header::SET_COOKIE, value);
    }
    Ok(headers)
}

fn session(known: &KnownToken, session_expires_at: Option<Timestamp>, now: Timestamp) -> Session {
    let token = &known.token;
    Session {
        token: token.name.to_string(),
        grants: token.grants.iter().map(tokens::grant).collect(),
        expires_at: token.expires_at,
        session_expires_at,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now,
    }
}

/// Show who is calling: the token's name and grants
#[utoipa::path(get, path = "/session", tag = "session", responses((status = 200, body = Session)))]
pub async fn show(caller: Caller) -> ApiResult<Session> {
    let Principal { known, session_expires_at, .. } = caller.principal();
    Ok(Json(session(known, *session_expires_at, caller.now())))
}

/// Sign a browser out: remove its cookie
///
/// A copy of the cookie stays valid until it expires or the token is revoked.
#[utoipa::path(delete, path = "/session", tag = "session", responses((status = 204)))]
pub async fn sign_out(caller: Caller, request: Request) -> Result<Response, Problem> {
    let cookies = caller.sessions().browser(request.extensions(), request.headers()).set_cookies("", 0);
    Ok((StatusCode::NO_CONTENT, set_cookies(&cookies)?).into_response())
}

/// Create a link that signs a browser in once, as the caller's token; it works for five minutes
#[utoipa::path(post, path = "/session/link", tag = "session", responses((status = 201, body = SignInLink)))]
pub async fn create_link(caller: Caller) -> Result<Response, Problem> {
    let (code, expires_at) = caller.create_sign_in_link().await?;
    audit::log_change(caller.principal().name(), caller.principal().from, "POST /v1/session/link");
    Ok((StatusCode::CREATED, Json(SignInLink { code, expires_at })).into_response())
}

impl From<LinkError> for Problem {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::TooMany => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_links", error.to_string())
            }
            LinkError::Read(error) => error.into(),
            LinkError::Failed(failure) => failure.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored_key::StoredKey;

    fn headers(text: &str) -> HeaderMap {
        let pairs = text.lines().filter_map(|line| line.split_once(": "));
        pairs
            .map(|(name, value)| (name.parse::<header::HeaderName>().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn only_the_same_origin_may_use_a_cookie() {
        const JSON: &str = "Content-Type: application/json\n";
        let code = |method: Method, text: &str| {
            let checked = check_origin(&method, &headers(&format!("Host: 127.0.0.1:9255\n{text}")));
            checked
                .err()
                .map_or("", |problem| if problem.is("cross_site") { "cross_site" } else { "not_json" })
        };
        for (text, get, post) in [
            ("Sec-Fetch-Site: same-origin", "", ""),
            ("Sec-Fetch-Site: none", "", "cross_site"),
            ("Sec-Fetch-Site: same-site", "cross_site", "cross_site"),
            ("Sec-Fetch-Site: cross-site", "cross_site", "cross_site"),
            ("Sec-Fetch-Site: cross-site\nOrigin: http://127.0.0.1:9255", "cross_site", "cross_site"),
            ("Origin: http://127.0.0.1:9255", "", ""),
            ("Origin: https://127.0.0.1:9255", "", ""),
            ("Origin: http://127.0.0.1:3000", "cross_site", "cross_site"),
            ("Origin: http://evil.example", "cross_site", "cross_site"),
            ("Origin: null", "cross_site", "cross_site"),
            ("", "", "cross_site"),
        ] {
            assert_eq!(code(Method::GET, text), get, "GET {text}");
            assert_eq!(code(Method::POST, &format!("{JSON}{text}")), post, "POST {text}");
            assert_eq!(code(Method::DELETE, &format!("{JSON}{text}")), post, "DELETE {text}");
        }
        let same = "Sec-Fetch-Site: same-origin\n";
        for (kind, expected) in [
            ("", "not_json"),
            ("Content-Type: text/plain", "not_json"),
            ("Content-Type: application/x-www-form-urlencoded", "not_json"),
            ("Content-Type: Application/JSON; charset=utf-8", ""),
        ] {
            assert_eq!(code(Method::POST, &format!("{same}{kind}")), expected, "{kind}");
        }
    }

    fn sessions(has_tls: bool) -> Sessions {
        let key = SessionKey(StoredKey::of(&[7; 32]).unwrap());
        let proxies = vec!["10.0.0.9".parse().unwrap()];
        Sessions { key, sign_ins: SignInLimit::default(), port: 9255, has_tls, proxies }
    }

    #[test]
    fn cookie_is_secure_and_bound_to_the_host_with_tls() {
        let [browser, proxy] = ["10.0.0.1", "10.0.0.9"].map(|text| Some(text.parse::<IpAddr>().unwrap()));
        let forwarded = headers("X-Forwarded-Proto: https\nX-Forwarded-For: 192.0.2.1, 192.0.2.7");
        let plain = "notbefore-9255=v; Path=/; HttpOnly; SameSite=Strict; Max-Age=60";
        let secure = format!("__Host-{plain}; Secure");
        let cookie = |has_tls, from, headers: &HeaderMap| {
            sessions(has_tls).own_browser(from, headers).set_cookies("v", 60).remove(0)
        };
        assert_eq!(cookie(false, browser, &HeaderMap::new()), plain);
        assert_eq!(cookie(true, browser, &HeaderMap::new()), secure);
        assert_eq!(cookie(false, proxy, &forwarded), secure, "a proxy ends TLS");
        assert_eq!(cookie(false, browser, &forwarded), plain, "only a configured proxy is believed");
        for (value, expected) in [("https, http", &*secure), ("http, https", plain), ("HTTPS ,http", &secure)]
        {
            let chain = headers(&format!("X-Forwarded-Proto: {value}"));
            assert_eq!(cookie(false, proxy, &chain), expected, "the browser's is the first of {value}");
        }
        let client = |from| sessions(false).own_browser(from, &forwarded).client.unwrap().to_string();
        assert_eq!((client(proxy), client(browser)), ("192.0.2.7".to_owned(), "10.0.0.1".to_owned()));
    }

    #[test]
    fn cookies_are_found_by_their_whole_name() {
        let headers =
            headers("Cookie: a=1; notbefore-92=no; notbefore-9255=yes.x==\nCookie: notbefore-9255=again");
        assert_eq!(cookies(&headers, "notbefore-9255"), ["yes.x==", "again"]);
        assert!(cookies(&headers, "notbefore-925").is_empty());
    }
}
