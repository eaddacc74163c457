//! Sessions of the console: sign-in, cookies and sign-in links.

use std::net::Ipv4Addr;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::Name;
use notbefore_engine::records;
use notbefore_service::sessions::{SealedSession, SessionKey};
use notbefore_store::Store;
use notbefore_store::redb::RedbStore;
use serde_json::{Value, json};

use crate::support::http::{EventStream, get};
use crate::support::{Answer, Service, exchange};

/// A sign-in as a browser sends it, with a body that may be shorter than its length.
fn sign_in_with(service: &Service, length: usize, body: &str) -> Answer {
    let request = format!(
        "POST /v1/sign-in HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    exchange(Ipv4Addr::LOCALHOST.into(), service.operator, request.as_bytes())
}

#[test]
fn sign_in_reads_little_and_not_for_long() {
    let service = Service::start(&[]);
    // The rest of the body never comes: only the limit ends the request.
    let large = sign_in_with(&service, 5_000_000, &"x".repeat(5_000));
    assert_eq!((large.status, large.code().as_str()), (413, "body_too_large"), "{large:?}");
    assert!(large.body.contains("4096 bytes"), "{large:?}");
    let slow = sign_in_with(&service, 20, "");
    assert_eq!((slow.status, slow.code().as_str()), (408, "request_timeout"), "{slow:?}");
}

/// A service, and the key of its sessions to seal cookies with.
struct Sealer {
    service: Service,
    key: SessionKey,
    store_revisions: Vec<(Name, u64)>,
}

impl Sealer {
    fn new() -> Self {
        let mut service = Service::start(&[]);
        service.cli(&["token", "create", "other", "--grant", "viewer:/"]);
        assert!(service.terminate().success());
        let (key, store_revisions) = read_store(&service);
        Self { service: service.restart(), key, store_revisions }
    }

    /// The header with a session of a token.
    fn cookie(&self, token: &str, expires_at: Timestamp) -> String {
        let token: Name = token.parse().unwrap();
        let (_, token_revision) = *self.store_revisions.iter().find(|(name, _)| *name == token).unwrap();
        let sealed = self.key.seal(&SealedSession { token, token_revision, expires_at });
        format!("notbefore-{}={sealed}", self.service.operator.port())
    }

    /// A time by the service's clock, in whole seconds.
    fn in_seconds(&self, seconds: i64) -> Timestamp {
        get(self.service.operator, "/healthz").date() + SignedDuration::from_secs(seconds)
    }

    fn request(&self, method: &str, target: &str, cookies: &[&str]) -> Answer {
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\nConnection: close\r\nCookie: {}\r\nContent-Length: 0\r\n\r\n",
            cookies.join("; ")
        );
        exchange(Ipv4Addr::LOCALHOST.into(), self.service.operator, request.as_bytes())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn read_store(service: &Service) -> (SessionKey, Vec<(Name, u64)>) {
    let store = RedbStore::open(service.data().join("store.redb")).unwrap();
    let snapshot = store.snapshot().await.unwrap();
    let mut revisions = Vec::new();
    for name in ["root", "other"] {
        let name: Name = name.parse().unwrap();
        let record = snapshot.get(&records::token(&name)).await.unwrap().unwrap();
        revisions.push((name, record.revision.0));
    }
    (SessionKey::load_or_create(&store).await.unwrap(), revisions)
}

#[test]
fn stream_ends_with_its_session() {
    let sealer = Sealer::new();
    let cookie = sealer.cookie("root", sealer.in_seconds(3));
    EventStream::open_with(&sealer.service, &format!("Cookie: {cookie}\r\n")).read_to_end();
}

#[test]
fn session_of_a_link_ends_with_the_session_that_created_the_link() {
    let sealer = Sealer::new();
    let service = &sealer.service;
    let sign_in = |link: &Answer| {
        assert_eq!(link.status, 201, "{link:?}");
        let body = json!({"code": link.json()["code"]}).to_string();
        sign_in_with(service, body.len(), &body)
    };
    let expires_at = sealer.in_seconds(3_600);
    let cookie = sealer.cookie("root", expires_at);
    let shown = sealer.request("GET", "/v1/session", &[&cookie]).json();
    assert_eq!(shown["session_expires_at"], json!(expires_at));
    let session = sign_in(&sealer.request("POST", "/v1/session/link", &[&cookie]));
    assert_eq!(session.json()["session_expires_at"], json!(expires_at));
    let max_age = session.header("Set-Cookie").unwrap().split("Max-Age=").nth(1).unwrap();
    assert!(max_age.parse::<i64>().unwrap() <= 3_600, "{session:?}");

    let session = sign_in(&service.operator_request("POST", "/v1/session/link", "", ""));
    assert!(session.json()["session_expires_at"].as_str().unwrap() > expires_at.to_string().as_str());
    let bearer = service.operator_request("GET", "/v1/session", "", "").json();
    assert_eq!(bearer["session_expires_at"], Value::Null);

    let soon = sealer.in_seconds(60);
    let link = sealer.request("POST", "/v1/session/link", &[&sealer.cookie("root", soon)]);
    assert_eq!(link.json()["expires_at"], json!(soon), "a link does not outlive the session");
}

#[test]
fn sessions_of_two_tokens_at_once_are_refused() {
    let sealer = Sealer::new();
    let later = sealer.in_seconds(3_600);
    let [root, again, other] = [("root", later), ("root", sealer.in_seconds(60)), ("other", later)]
        .map(|(token, expires_at)| sealer.cookie(token, expires_at));
    let name = root.split('=').next().unwrap();
    let [wrong, empty] = [format!("{name}=1.2.root.x"), format!("{name}=")];
    let shown = |cookies: &[&str]| sealer.request("GET", "/v1/session", cookies);
    for cookies in [&[&*wrong, &*root][..], &[&root, &wrong], &[&again, &empty, &root]] {
        let shown = shown(cookies);
        assert_eq!((shown.status, &shown.json()["token"]), (200, &json!("root")), "{shown:?}");
        assert_eq!(shown.json()["session_expires_at"], json!(later), "the one that lasts longer");
    }
    for (cookies, detail) in [
        (&[&*root, &*other][..], "sessions of two tokens"),
        (&[&other, &wrong, &root], "sessions of two tokens"),
        (&[&wrong, &empty], "this session has ended"),
    ] {
        let refused = shown(cookies);
        assert_eq!((refused.status, refused.code().as_str()), (401, "session_ended"), "{refused:?}");
        assert!(refused.body.contains(detail) && refused.body.contains("sign in again"), "{refused:?}");
    }

    // A cookie at the API's path would be sent besides the new one.
    let token = std::fs::read_to_string(sealer.service.data().join("operator.token")).unwrap();
    let body = json!({"token": token}).to_string();
    let signed_in = sign_in_with(&sealer.service, body.len(), &body);
    let signed_out = sealer.request("DELETE", "/v1/session", &[&root]);
    for answer in [signed_in, signed_out] {
        let expired = format!("{name}=; Path=/v1; HttpOnly; SameSite=Strict; Max-Age=0");
        let cookies: Vec<&str> =
            answer.head.lines().filter_map(|line| line.strip_prefix("set-cookie: ")).collect();
        assert_eq!(cookies.len(), 2, "{answer:?}");
        assert!(cookies[0].contains("; Path=/; ") && cookies[1] == expired, "{answer:?}");
        assert_eq!(answer.header("Cross-Origin-Opener-Policy"), Some("same-origin"), "{answer:?}");
    }
}

#[test]
fn links_count_as_changes() {
    let variables =
        [("NOTBEFORE_OPERATOR_CHANGES_AT_ONCE", "3"), ("NOTBEFORE_OPERATOR_CHANGES_PER_SECOND", "1")];
    let service = Service::start_with(&variables, &[]);
    let viewer = service.cli_json(&["token", "create", "viewer", "--grant", "viewer:/"]);
    let link =
        || service.request_with(viewer["secret"].as_str().unwrap(), "POST", "/v1/session/link", "", "");
    let refused = (0..20).map(|_| link()).find(|link| link.status != 201).unwrap();
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many_changes"), "{refused:?}");
    for _ in 0..20 {
        let link = service.operator_request("POST", "/v1/session/link", "", "");
        assert_eq!(link.status, 201, "a token cannot keep another one from creating links: {link:?}");
    }
}

#[test]
fn sign_ins_and_links_are_in_the_audit_trail() {
    let service = Service::start(&[]);
    let viewer = service.cli_json(&["token", "create", "viewer", "--grant", "viewer:/"]);
    let mut stream = EventStream::open(&service, viewer["secret"].as_str().unwrap(), "");
    let token = std::fs::read_to_string(service.data().join("operator.token")).unwrap();
    let sign_in = |body: Value| {
        let body = body.to_string();
        let answer = sign_in_with(&service, body.len(), &body);
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    sign_in(json!({"token": token}));
    let code = service.operator_request("POST", "/v1/session/link", "", "").json()["code"].clone();
    sign_in(json!({"code": code}));

    let audit = service.cli_json(&["audit", "--changed"]);
    let sessions = audit.as_array().unwrap().iter().filter(|entry| {
        assert!(!entry.to_string().contains(code.as_str().unwrap()), "{entry}");
        ["SignedIn", "SignInLinkCreated"].contains(&entry["type"].as_str().unwrap())
    });
    let shown =
        |entry: &Value| json!([entry["type"], entry["detail"]["method"], entry["by"]["name"], entry["from"]]);
    let expected = json!([
        ["SignedIn", "token", "root", "127.0.0.1"],
        ["SignInLinkCreated", null, "root", "127.0.0.1"],
        ["SignedIn", "link", "root", "127.0.0.1"],
    ]);
    assert_eq!(sessions.map(shown).collect::<Value>(), expected);

    service.cli(&["vm", "add", "new"]);
    loop {
        let line = stream.line();
        assert!(!line.contains("Sign"), "only operators on / see it: {line}");
        if line.contains("VmAdded") {
            break;
        }
    }
}
