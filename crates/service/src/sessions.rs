//! Sessions of the console: a cookie that stands for a token, and links that sign in once.
//!
//! **Cookie.** Its value names a token by name and revision and has an expiry, sealed with HMAC-SHA256. It never contains
//! the token's secret. The service stores no sessions: a cookie is valid while its seal is, and while the token exists,
//! has the same revision and has not expired. A token that is revoked, or created again under the same name, ends its
//! sessions. The key is a record of the store, so a restart, or another node on the same store, accepts the cookie. An
//! export leaves the key out: in an imported store, all sessions have ended.
//!
//! **Link.** Its code is 256 random bits. The store has a record under a hash of the code. Signing in deletes the
//! record with a comparison of its revision, so of two requests with one code, one succeeds, also on two nodes.
//!
//! **Limit.** Sign-in attempts are limited by source address (GCRA): secrets cannot be guessed, but attempts cost
//! work and fill the audit trail.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use jiff::{SignedDuration, Timestamp};
use notbefore_core::{Actor, Fact, Name, Recorded};
use notbefore_engine::Failure;
use notbefore_engine::records::{self, FactBatch, SignInLink, prefix};
use notbefore_engine::request::{FailureCause, StoreError};
use notbefore_store::{Expect, Outcome, ReadError, Store, Txn};

use crate::guest::rate::{RateLimit, RateState};
use crate::lock;
use crate::random;
use crate::stored_key::{KeyKind, StoredKey, StoredKeyError};
use crate::tokens::{KnownToken, hash};

/// Longest session: a month, so that a screen on a wall needs no daily sign-in.
pub const SESSION_MAX: SignedDuration = SignedDuration::from_hours(30 * 24);
/// How long a sign-in link works.
const LINK_MAX: SignedDuration = SignedDuration::from_mins(5);
/// Most links that exist at a time; scripts that create links in a loop must not fill the store.
const LINKS_MAX: usize = 256;
/// Most links of one token; another one replaces the oldest. One token thus cannot keep others from creating links.
const LINKS_PER_TOKEN_MAX: usize = 4;
/// Most links that one transaction removes, within the limit of its operations.
const LINKS_REMOVED_MAX: usize = 64;
/// Distinguishes the seal from other uses of the key.
const PURPOSE: &[u8] = b"notbefore session 1\0";
/// Sign-in attempts that an address may make at once; then one a second.
const ATTEMPTS_AT_ONCE: u32 = 10;
/// Most addresses with counted attempts.
const SOURCES_MAX: usize = 4_096;

/// The key that seals cookies.
#[derive(Debug)]
pub struct SessionKey(pub(crate) StoredKey);

/// What a cookie says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSession {
    pub token: Name,
    /// The revision of the token's record.
    pub token_revision: u64,
    pub expires_at: Timestamp,
}

impl SealedSession {
    /// A session of a token from now on. It ends with the token at the latest, and with the session that created its
    /// sign-in link: a copied cookie must not renew itself.
    pub fn new(known: &KnownToken, session_expires_at: Option<Timestamp>, now: Timestamp) -> Self {
        let latest = now.checked_add(SESSION_MAX).unwrap_or(Timestamp::MAX);
        let ends = [known.token.expires_at, session_expires_at].into_iter().flatten();
        let expires_at = ends.fold(latest, Timestamp::min);
        Self { token: known.token.name.clone(), token_revision: known.revision, expires_at }
    }
}

impl SessionKey {
    /// Reads the key, or creates it at the first start.
    pub async fn load_or_create(store: &dyn Store) -> Result<Self, StoredKeyError> {
        StoredKey::load_or_create(store, KeyKind::Session).await.map(Self)
    }

    /// Reads the key; none if no node has created it yet.
    pub async fn load(store: &dyn Store) -> Result<Option<Self>, StoredKeyError> {
        Ok(StoredKey::load(store, KeyKind::Session).await?.map(Self))
    }

    /// The value of a cookie.
    pub fn seal(&self, session: &SealedSession) -> String {
        let SealedSession { token, token_revision, expires_at } = session;
        // Names have dots, so the name is last.
        let content = format!("{}.{token_revision}.{}", expires_at.as_second(), token.folded());
        format!("{content}.{}", BASE64URL_NOPAD.encode(&self.0.sign(PURPOSE, content.as_bytes())))
    }

    /// What a cookie says, if its seal is valid and it has not expired.
    pub fn open(&self, value: &str, now: Timestamp) -> Option<SealedSession> {
        let (content, seal) = value.rsplit_once('.')?;
        let seal = BASE64URL_NOPAD.decode(seal.as_bytes()).ok()?;
        if !self.0.verify(PURPOSE, content.as_bytes(), &seal) {
            return None;
        }
        let mut parts = content.splitn(3, '.');
        let expires_at = Timestamp::from_second(parts.next()?.parse().ok()?).ok()?;
        let token_revision = parts.next()?.parse().ok()?;
        let token = parts.next()?.parse().ok()?;
        (now < expires_at).then_some(SealedSession { token, token_revision, expires_at })
    }
}

/// Why a link could not be created.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("{LINKS_MAX} sign-in links exist, which is the limit; repeat the request in five minutes")]
    TooMany,
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Creates a link for a token; returns its code and expiry. A session passes its own expiry on. Removes expired links,
/// and the oldest of the token's above their limit.
pub async fn create_link(
    store: &dyn Store,
    known: &KnownToken,
    session_expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<(String, Timestamp), LinkError> {
    let page = store.snapshot().await?.scan(prefix::LINK, None, LINKS_MAX + 1).await?;
    let (mut removed, mut own) = (Vec::new(), Vec::new());
    for (key, record) in &page.records {
        match records::decode::<SignInLink>(key, &record.value) {
            Ok(link) if now < link.expires_at => {
                let is_own = link.token == known.token.name;
                own.extend(is_own.then_some((link.expires_at, key.clone())));
            }
            // A link that cannot be read cannot be used either.
            Ok(_) | Err(_) => removed.push(key.clone()),
        }
    }
    own.sort();
    own.truncate((own.len() + 1).saturating_sub(LINKS_PER_TOKEN_MAX));
    removed.splice(0..0, own.into_iter().map(|(_, key)| key));
    if page.records.len() - removed.len() >= LINKS_MAX {
        return Err(LinkError::TooMany);
    }
    removed.truncate(LINKS_REMOVED_MAX);
    let unavailable = |why: String| Failure::Unavailable(FailureCause::Store(StoreError(why)));
    let code = BASE64URL_NOPAD.encode(&random::<32>().map_err(|error| unavailable(error.to_string()))?);
    let latest = now.checked_add(LINK_MAX).unwrap_or(Timestamp::MAX);
    let expires_at = session_expires_at.map_or(latest, |at| at.min(latest));
    let token = known.token.name.clone();
    let link = SignInLink { token, token_revision: known.revision, expires_at, session_expires_at };
    let put = vec![(records::link(&hash(&code)), records::encode(&link))];
    match store.commit(Txn { expect: Vec::new(), put, delete: removed }).await {
        Outcome::Committed(_) => Ok((code, expires_at)),
        Outcome::Conflict(_) => Err(unavailable("conflict".to_owned()).into()),
        Outcome::Refused(refusal) => Err(unavailable(refusal.to_string()).into()),
        Outcome::Unknown(why) => Err(Failure::OutcomeUnknown(FailureCause::Store(StoreError(why))).into()),
    }
}

/// Uses a code up and returns its link; none if it is unknown, used or expired.
pub async fn use_link(
    store: &dyn Store,
    code: &str,
    now: Timestamp,
) -> Result<Option<SignInLink>, LinkError> {
    let key = records::link(&hash(code));
    let Some(record) = store.snapshot().await?.get(&key).await? else { return Ok(None) };
    let Ok(link) = records::decode::<SignInLink>(&key, &record.value) else { return Ok(None) };
    let expect = vec![Expect { key: key.clone(), revision: Some(record.revision) }];
    match store.commit(Txn { expect, put: Vec::new(), delete: vec![key] }).await {
        Outcome::Committed(_) => Ok(Some(link).filter(|link| now < link.expires_at)),
        Outcome::Conflict(_) => Ok(None),
        Outcome::Refused(refusal) => {
            Err(Failure::Unavailable(FailureCause::Store(StoreError(refusal.to_string()))).into())
        }
        // The code may be used up. A new link is the cure.
        Outcome::Unknown(why) => Err(Failure::OutcomeUnknown(FailureCause::Store(StoreError(why))).into()),
    }
}

/// Records a sign-in or a new link in the audit trail. It has happened already, so a failure is only logged.
pub async fn record_fact(store: &dyn Store, by: Actor, from: Option<IpAddr>, fact: Fact, now: Timestamp) {
    let log_failure = |why: String| {
        tracing::error!(?fact, %why, "cannot store a fact of the console's sessions: it is in the log only");
    };
    let n = match random() {
        Ok(bytes) => u32::from_be_bytes(bytes),
        Err(error) => return log_failure(error.to_string()),
    };
    let facts = vec![Recorded { at: now, by, fact: fact.clone() }];
    let batch = FactBatch { scope: None, from, first: 0, facts };
    let put = vec![(records::fact(now, "session", n.into()), records::encode(&batch))];
    match store.commit(Txn { put, ..Txn::default() }).await {
        Outcome::Committed(_) => {}
        failed @ (Outcome::Conflict(_) | Outcome::Refused(_) | Outcome::Unknown(_)) => {
            log_failure(format!("{failed:?}"));
        }
    }
}

/// Rate limit of sign-in attempts by source address.
#[derive(Debug, Default)]
pub struct SignInLimit(Mutex<HashMap<IpAddr, RateState>>);

impl SignInLimit {
    /// Counts an attempt; over the limit, returns the time to wait.
    pub fn try_acquire(&self, from: Option<IpAddr>, uptime: Duration) -> Result<(), Duration> {
        let (limit, burst) = (RateLimit::new(NonZeroU32::MIN), Duration::from_secs(ATTEMPTS_AT_ONCE.into()));
        let mut sources = lock(&self.0);
        if sources.len() >= SOURCES_MAX {
            // The state of an address that has waited long enough says nothing.
            sources.retain(|_, state| !state.is_full(uptime));
        }
        // Attempts of many addresses at once: the surplus shares one state.
        let known = group(from).filter(|from| sources.len() < SOURCES_MAX || sources.contains_key(from));
        let key = known.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
        limit.acquire(sources.entry(key).or_default(), uptime, burst)
    }
}

/// An IPv4 address, or the /64 network of an IPv6 address: one machine has a whole network of them.
fn group(from: Option<IpAddr>) -> Option<IpAddr> {
    from.map(|from| match from.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
        v4 @ IpAddr::V4(_) => v4,
    })
}

#[cfg(test)]
mod tests {
    use notbefore_store::memory::MemoryStore;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).unwrap()
    }

    fn session() -> SealedSession {
        SealedSession { token: "ops.night".parse().unwrap(), token_revision: 12, expires_at: at(60) }
    }

    fn known(expires_at: Option<Timestamp>) -> KnownToken {
        KnownToken::new(notbefore_core::Token { expires_at, ..named("ops").token }, 7)
    }

    fn named(name: &str) -> KnownToken {
        let token = notbefore_core::Token {
            name: name.parse().unwrap(),
            hash: hash("s"),
            grants: Vec::new(),
            created_at: at(0),
            created_by: None,
            expires_at: None,
        };
        KnownToken::new(token, 7)
    }

    #[test]
    fn sealed_session_opens_until_it_expires_and_only_unchanged() {
        let key = SessionKey(StoredKey::of(&[7; 32]).unwrap());
        let value = key.seal(&session());
        assert_eq!(key.open(&value, at(59)), Some(session()));
        assert_eq!(key.open(&value, at(60)), None, "expired");
        assert_eq!(SessionKey(StoredKey::of(&[8; 32]).unwrap()).open(&value, at(0)), None, "another key");
        for (from, to) in [(".12.", ".13."), ("ops", "opt"), ("1790000060", "1790000061")] {
            assert!(value.contains(from));
            assert_eq!(key.open(&value.replacen(from, to, 1), at(0)), None, "{from} changed");
        }
        for value in ["", ".", "a.b.c.d", &value[..value.len() - 1], "1790000060.12.ops"] {
            assert_eq!(key.open(value, at(0)), None, "{value}");
        }
    }

    #[test]
    fn session_ends_with_its_token() {
        assert_eq!(SealedSession::new(&known(Some(at(5))), None, at(0)).expires_at, at(5));
        assert_eq!(SealedSession::new(&known(Some(at(5))), Some(at(4)), at(0)).expires_at, at(4));
        assert_eq!(SealedSession::new(&known(None), None, at(0)).expires_at, at(30 * 86_400));
    }

    #[tokio::test]
    async fn link_signs_in_once_and_for_five_minutes() {
        let store = MemoryStore::new();
        let (code, expires_at) = create_link(&store, &known(None), None, at(0)).await.unwrap();
        assert_eq!(expires_at, at(300));
        assert_eq!(use_link(&store, "other", at(0)).await.unwrap(), None);
        let link = use_link(&store, &code, at(299)).await.unwrap().unwrap();
        assert_eq!((link.token.as_str(), link.token_revision), ("ops", 7));
        assert_eq!(use_link(&store, &code, at(299)).await.unwrap(), None, "it works once");
        let (late, _) = create_link(&store, &known(None), None, at(0)).await.unwrap();
        assert_eq!(use_link(&store, &late, at(300)).await.unwrap(), None, "it has expired");
        let page = store.snapshot().await.unwrap().scan("", None, 10).await.unwrap();
        assert!(page.records.is_empty(), "used and expired links leave nothing");
    }

    async fn links(store: &MemoryStore) -> usize {
        store.snapshot().await.unwrap().scan("", None, 1_000).await.unwrap().records.len()
    }

    #[tokio::test]
    async fn fifth_link_of_a_token_replaces_its_oldest() {
        let (store, mut codes) = (MemoryStore::new(), Vec::new());
        let (other, _) = create_link(&store, &named("other"), None, at(0)).await.unwrap();
        for second in 0..6 {
            codes.push(create_link(&store, &known(None), None, at(second)).await.unwrap().0);
        }
        assert_eq!(links(&store).await, LINKS_PER_TOKEN_MAX + 1);
        let mut works = Vec::new();
        for code in codes.iter().chain([&other]) {
            works.push(use_link(&store, code, at(6)).await.unwrap().is_some());
        }
        assert_eq!(works, [false, false, true, true, true, true, true]);
    }

    #[tokio::test]
    async fn links_are_limited_until_they_expire() {
        let store = MemoryStore::new();
        for n in 0..LINKS_MAX {
            let token = named(&format!("t{}", n / LINKS_PER_TOKEN_MAX));
            create_link(&store, &token, None, at(0)).await.unwrap();
        }
        assert!(matches!(create_link(&store, &known(None), None, at(1)).await, Err(LinkError::TooMany)));
        create_link(&store, &named("t0"), None, at(1)).await.unwrap();
        for _ in 0..LINKS_MAX / LINKS_REMOVED_MAX {
            create_link(&store, &known(None), None, at(300)).await.unwrap();
        }
        assert_eq!(links(&store).await, 1 + LINKS_MAX / LINKS_REMOVED_MAX, "expired links are removed");
    }

    #[test]
    fn attempts_are_limited_by_address() {
        let limit = SignInLimit::default();
        let allowed = |from: &str, second| {
            (0..20)
                .filter(|_| {
                    limit.try_acquire(Some(from.parse().unwrap()), Duration::from_secs(second)).is_ok()
                })
                .count()
        };
        assert_eq!((allowed("10.0.0.1", 0), allowed("10.0.0.2", 0)), (10, 10));
        assert_eq!((allowed("10.0.0.1", 0), allowed("10.0.0.1", 3)), (0, 3));
        assert_eq!((allowed("fd00::1", 0), allowed("fd00::2", 0)), (10, 0), "one network, one limit");
        for n in 0..10_000_u32 {
            let _ = limit.try_acquire(Some(IpAddr::from(n.to_be_bytes())), Duration::from_secs(3));
        }
        assert!(lock(&limit.0).len() <= SOURCES_MAX + 1);
    }
}
