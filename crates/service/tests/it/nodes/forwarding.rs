//! Changes and approvals through a follower.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::http::header;
use notbefore_core::EventId;
use notbefore_engine::cluster::NodeIdentity;
use notbefore_engine::{Address, Role};
use notbefore_service::clock::SystemClock;
use notbefore_service::cluster::Standing;
use notbefore_service::guest::caller::{Caller, ListenerIdentity, ProxyClaim};
use notbefore_service::guest::platform::{ApproveError, Platform};
use notbefore_service::nodes::ForwardLimits;
use notbefore_service::nodes::key::NodeKey;
use notbefore_service::nodes::messages::{Approval, GuestIdentity};
use notbefore_store::memory::MemoryStore;
use notbefore_store::{Revision, Store, Txn};
use tokio::sync::watch;
use tokio::time::timeout;

use super::harness::{CLIENT, Cluster, NodeOptions, OffClock, SECRET, leader_at, new_vm, records};
use crate::PATIENCE;

#[tokio::test]
async fn change_through_follower_takes_effect_once_and_is_visible_there() {
    let cluster = Cluster::new().await;
    let key = [("authorization", format!("Bearer {SECRET}")), ("idempotency-key", "one".to_owned())];
    for _ in 0..2 {
        let answered = cluster.follower.ask_with("POST", "/v1/vms", &key, &new_vm("web", "10.0.0.1")).await;
        assert_eq!(answered.status, 201, "{answered:?}");
        assert!(cluster.follower.has_vm("web"), "the follower shows the change when it is answered");
    }
    assert_eq!(records(&*cluster.store, "vm/").await.len(), 1);
    assert_eq!(cluster.follower.forwarded("answered"), 2);
    let facts = records(&*cluster.store, "fact/").await;
    let address = CLIENT.to_string();
    assert!(facts.iter().any(|fact| fact.contains(&address)), "the client's address is kept: {facts:?}");
    let read = cluster.follower.ask("GET", "/v1/scopes", "").await;
    assert_eq!((read.status.as_u16(), cluster.follower.forwarded("answered")), (200, 2), "reads are local");
    let read = cluster.follower.ask("GET", "/v1/vms/web", "").await;
    assert_eq!(read.status, 200);
    assert_eq!(cluster.follower.forwarded("answered"), 3, "only the leader knows whether a VM listens");
}

#[tokio::test]
async fn every_change_is_visible_at_the_follower_when_it_is_answered() {
    let cluster = Cluster::new().await;
    for n in 0..50 {
        let name = format!("vm-{n}");
        let answered = cluster.follower.ask("POST", "/v1/vms", &new_vm(&name, &format!("10.0.1.{n}"))).await;
        assert_eq!(answered.status, 201, "{answered:?}");
        assert!(cluster.follower.has_vm(&name), "{name}");
    }
}

#[tokio::test]
async fn refusals_are_the_leaders() {
    let cluster = Cluster::new().await;
    let cases = [
        ("POST", "/v1/vms", "{", 400),
        ("POST", "/v1/nothing", "{}", 404),
        ("DELETE", "/v1/vms/unknown", "", 404),
        ("PUT", "/v1/status", "{}", 405),
    ];
    for (method, path, body, status) in cases {
        let there = cluster.follower.ask(method, path, body).await;
        let here = cluster.leader.ask(method, path, body).await;
        assert_eq!((there.status.as_u16(), &there.body), (status, &here.body), "{method} {path}");
    }
    let reader = r#"{"name":"reader","grants":[{"role":"viewer","path":"/"}]}"#;
    let created = cluster.follower.ask("POST", "/v1/tokens", reader).await;
    let reader = [("authorization", format!("Bearer {}", created.body["secret"].as_str().unwrap()))];
    let refused = cluster.follower.ask_with("POST", "/v1/vms", &reader, &new_vm("web", "10.0.0.1")).await;
    assert_eq!(refused.problem(), (403, "not_permitted"));
    let counts = &cluster.leader.operator.refusals.counts;
    let counted = counts.get_or_create(&[("code", "not_permitted".to_owned())]).get();
    assert_eq!(counted, 1, "the leader keeps the audit trail");
}

#[tokio::test]
async fn token_created_at_the_leader_works_at_a_follower_at_once() {
    let cluster = Cluster::new().await;
    let grants = r#"{"name":"ops","grants":[{"role":"operator","path":"/"}]}"#;
    let created = cluster.leader.ask("POST", "/v1/tokens", grants).await;
    let secret = created.body["secret"].as_str().unwrap_or_else(|| panic!("{created:?}"));
    let with_token = [("authorization", format!("Bearer {secret}"))];
    let answered =
        cluster.follower.ask_with("POST", "/v1/vms", &with_token, &new_vm("web", "10.0.0.1")).await;
    assert_eq!(answered.status, 201, "{answered:?}");
}

#[tokio::test]
async fn console_signs_in_and_changes_through_a_follower() {
    let cluster = Cluster::new().await;
    let browser = |cookie: Option<&str>, site: &str| {
        let mut headers = vec![
            ("host", "127.0.0.1:9002".to_owned()),
            ("sec-fetch-site", site.to_owned()),
            ("content-type", "application/json".to_owned()),
        ];
        headers.extend(cookie.map(|cookie| ("cookie", cookie.to_owned())));
        headers
    };
    let sign_in = format!("{{\"token\":\"{SECRET}\"}}");
    let signed_in =
        cluster.follower.ask_with("POST", "/v1/sign-in", &browser(None, "same-origin"), &sign_in).await;
    assert_eq!(signed_in.status, 200, "{signed_in:?}");
    let cookie =
        signed_in.headers[header::SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
    assert!(cookie.starts_with("notbefore-9002="), "the cookie is one of the follower: {cookie}");
    assert_eq!(signed_in.headers.get_all(header::SET_COOKIE).iter().count(), 2);

    let headers = browser(Some(&cookie), "cross-site");
    let crossed = cluster.follower.ask_with("POST", "/v1/vms", &headers, "{}").await;
    assert_eq!(crossed.problem(), (403, "cross_site"));
    let headers = browser(Some(&cookie), "same-origin");
    let changed = cluster.follower.ask_with("POST", "/v1/vms", &headers, &new_vm("web", "10.0.0.1")).await;
    assert_eq!(changed.status, 201, "{changed:?}");

    // Signing out removes only the cookie, so it needs no leader.
    cluster.follower.follow(None);
    let signed_out = cluster.follower.ask_with("DELETE", "/v1/session", &headers, "").await;
    assert_eq!(signed_out.status, 204, "{signed_out:?}");
    assert!(signed_out.headers[header::SET_COOKIE].to_str().unwrap().starts_with("notbefore-9002=;"));
}

#[tokio::test]
async fn forwarded_request_that_finds_no_leader_goes_no_further() {
    let cluster = Cluster::new().await;
    // The follower's leader has lost the lead to the follower's own node, as far as it knows.
    cluster.leader.standing.send_modify(|standing| standing.role = Role::Follow);
    cluster.leader.follow(Some(leader_at(cluster.address)));
    let refused = cluster.follower.ask("POST", "/v1/vms", &new_vm("web", "10.0.0.1")).await;
    assert_eq!(refused.problem(), (503, "unavailable"));
    assert_eq!(refused.headers[header::RETRY_AFTER], "1");
    assert_eq!(cluster.leader.refused("not_leader"), 1);
    assert!(records(&*cluster.store, "vm/").await.is_empty());
}

#[tokio::test]
async fn messages_do_not_depend_on_wall_clocks() {
    let clocks: [Arc<OffClock>; 2] = Default::default();
    let [leaders, followers] = clocks.clone();
    followers.boot.store(86_400, Relaxed);
    let options = NodeOptions { clock: followers, ..NodeOptions::default() };
    let cluster = Cluster::with(leaders, options).await;
    // Both are set back together, then they differ by more than minutes.
    for (n, walls) in [[0, 0], [-600, -600], [-600, 600], [3_600, -3_600]].into_iter().enumerate() {
        clocks.iter().zip(walls).for_each(|(clock, wall)| clock.wall.store(wall, Relaxed));
        let answered = cluster
            .follower
            .ask("POST", "/v1/vms", &new_vm(&format!("vm-{n}"), &format!("10.0.1.{n}")))
            .await;
        assert_eq!(answered.status, 201, "{walls:?}: {answered:?}");
    }
}

#[tokio::test]
async fn nodes_read_the_key_again_when_it_was_replaced() {
    let clock = Arc::new(OffClock::default());
    let options = NodeOptions { clock: clock.clone(), ..NodeOptions::default() };
    let cluster = Cluster::with(clock.clone(), options).await;
    cluster.follower.key.get().await.unwrap();
    let key = format!("1 {{\"key\":\"{}\"}}", "0a".repeat(32));
    let put = vec![("secret/node-key".into(), key.into())];
    cluster.store.commit(Txn { put, ..Txn::default() }).await;
    let ask = async || cluster.follower.ask("POST", "/v1/vms", &new_vm("web", "10.0.0.1")).await;
    let refused = ask().await;
    assert_eq!(refused.problem(), (503, "unavailable"), "the store is read at most once a second");
    assert_eq!(cluster.leader.refused("signature"), 1);
    clock.boot.store(1, Relaxed);
    let answered = ask().await;
    assert_eq!(answered.status, 201, "{answered:?}");
    assert_eq!(cluster.leader.refused("signature"), 2, "the follower read the key after its first hello");
}

#[tokio::test]
async fn only_a_leader_creates_the_key() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let me = NodeIdentity { name: "a".to_owned(), epoch: "1".to_owned(), url: String::new(), level: 2 };
    let (standing, standings) = watch::channel(Standing { is_ready: true, ..Standing::new(me) });
    let key = Arc::new(NodeKey::new(Arc::clone(&store), Arc::new(SystemClock)));
    let creating = Arc::clone(&key);
    let creation = tokio::spawn(async move { creating.create_when_leading(standings).await });
    tokio::task::yield_now().await;
    assert!(key.get().await.is_none() && records(&*store, "secret/").await.is_empty());
    standing.send_modify(|standing| standing.role = Role::Lead(Revision(1)));
    let created = async {
        while key.get().await.is_none() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, created).await.unwrap();
    assert_eq!(records(&*store, "secret/").await.len(), 1);
    drop(standing);
    timeout(PATIENCE, creation).await.unwrap().unwrap();
}

/// A follower may show a commit before the leader knows its outcome.
#[tokio::test]
async fn request_is_not_judged_by_an_older_state_than_its_follower_has_shown() {
    // The leader refuses after half of it.
    let short = ForwardLimits { operator_timeout: Duration::from_secs(6), ..ForwardLimits::default() };
    for is_late in [true, false] {
        let limits = if is_late { short } else { ForwardLimits::default() };
        let options = NodeOptions { limits, ..NodeOptions::default() };
        let (cluster, hold) = Cluster::with_late_outcomes(options).await;
        let added = cluster.follower.ask("POST", "/v1/vms", &new_vm("web", "10.0.0.1")).await;
        assert_eq!(added.status, 201, "{added:?}");
        hold.send_replace(true);
        let event = "{\"type\":\"Reboot\",\"vms\":[\"web\"]}";
        let scheduled = cluster.leader.ask("POST", "/v1/events", event);
        let through_follower = async {
            let (event, revision) = cluster.follower.event_of("web").await;
            let cancel = format!("/v1/events/{event}/cancel");
            let with_token = ("authorization", format!("Bearer {SECRET}"));
            let if_match = [with_token, ("if-match", format!("\"{revision}\""))];
            if is_late {
                let refused = cluster.follower.ask("POST", &cancel, "").await;
                assert_eq!(refused.problem(), (503, "unavailable"), "not 404: {refused:?}");
                let refused = cluster.follower.ask_with("DELETE", "/v1/vms/web", &if_match, "").await;
                assert_eq!(refused.problem(), (503, "unavailable"), "not 412: {refused:?}");
                assert_eq!(refused.headers[header::RETRY_AFTER], "1");
                assert_eq!((cluster.leader.refused("behind"), cluster.follower.forwarded("refused")), (2, 2));
                hold.send_replace(false);
            } else {
                let asked = cluster.follower.ask_with("POST", &cancel, &if_match, "");
                let (canceled, _) = tokio::join!(asked, async { hold.send_replace(false) });
                assert_eq!(canceled.status, 200, "{canceled:?}");
            }
        };
        let (scheduled, ()) = tokio::join!(scheduled, through_follower);
        assert_eq!(scheduled.status, 201, "{scheduled:?}");
        assert!(cluster.follower.has_vm("web"));
    }
}

/// A VM with an event, added through the leader.
async fn vm_with_event(cluster: &Cluster, name: &str, ip: &str) -> EventId {
    let added = cluster.follower.ask("POST", "/v1/vms", &new_vm(name, ip)).await;
    assert_eq!(added.status, 201, "{added:?}");
    let event = format!("{{\"type\":\"Reboot\",\"vms\":[\"{name}\"]}}");
    let scheduled = cluster.follower.ask("POST", "/v1/events", &event).await;
    assert!(scheduled.status.is_success(), "{scheduled:?}");
    let view = cluster.follower.operator.views.newest();
    view.scope_of(cluster.follower.vm(name)).unwrap().scope.events.first().unwrap().id
}

fn caller(ip: &str) -> Caller {
    let listener = Arc::new(ListenerIdentity::Network("default".to_owned()));
    Caller::new(listener, ip.parse().unwrap(), "10.9.9.9".parse().unwrap())
}

#[tokio::test]
async fn approval_through_follower_is_visible_there() {
    let cluster = Cluster::new().await;
    let event = vm_with_event(&cluster, "web", "10.0.0.1").await;
    let (platform, caller) = (&cluster.follower.platform, caller("10.0.0.1"));
    let guest = platform.guest(&caller, &ProxyClaim::default()).unwrap();
    let now = cluster.follower.operator.clock.now();
    let unknown = uuid::Uuid::from_u128(7);
    let refused = platform.approve(&guest, &caller, vec![unknown], now).await;
    assert_eq!(refused, Err(ApproveError::UnknownEvent(unknown)));
    platform.approve(&guest, &caller, vec![event.0], now).await.unwrap();
    let view = cluster.follower.operator.views.newest();
    let scope = view.scope_of(cluster.follower.vm("web")).unwrap();
    assert!(scope.scope.events.iter().all(|event| event.is_started()), "{:?}", scope.scope.events);
}

#[tokio::test]
async fn fast_path_identifies_no_caller_after_the_end_of_the_trust() {
    let cluster = Cluster::new().await;
    vm_with_event(&cluster, "web", "10.0.0.1").await;
    let (platform, caller) = (&cluster.follower.platform, caller("10.0.0.1"));
    let is_known_at = |uptime| platform.guest_by_address(&caller, uptime).is_some();
    let day = Duration::from_secs(86_400);
    assert!(is_known_at(day), "a single service trusts its addresses for ever");
    platform.trust_addresses_for(Duration::from_secs(600));
    assert!(is_known_at(Duration::ZERO));
    assert!(!is_known_at(day), "the worker woke up too late");
    platform.trust_addresses_for(Duration::ZERO);
    assert!(!is_known_at(Duration::ZERO));
    assert!(platform.guest(&caller, &ProxyClaim::default()).is_none());
}

#[tokio::test]
async fn approval_with_an_address_that_moved_is_refused_unless_vouched_for() {
    let cluster = Cluster::new().await;
    let event = vm_with_event(&cluster, "web", "10.0.0.1").await;
    let other: IpAddr = [10, 0, 0, 2].into();
    let added = cluster.follower.ask("POST", "/v1/vms", &new_vm("db", "10.0.0.2")).await;
    assert_eq!(added.status, 201);
    let (vm, db) = (cluster.follower.vm("web"), cluster.follower.vm("db"));
    let view = cluster.follower.operator.views.newest();
    assert_eq!(view.addresses(db), [Address { network: "default".parse().unwrap(), ip: other }]);
    let approval = |identity, address| Approval {
        identity,
        address,
        vm,
        scope: view.scope_of(vm).unwrap().scope.id(),
        events: vec![event],
        shown: Revision(0),
    };
    let by_address = || GuestIdentity::Address { network: "default".to_owned() };
    // The sender's view is old: by the leader's, this address is that of another VM, or of none.
    for address in [other, [10, 0, 0, 3].into()] {
        let refused = cluster.follower.nodes.approve(&approval(by_address(), address)).await;
        assert_eq!(refused, Err(ApproveError::UnknownCaller), "{address}");
    }
    let gone = Approval { vm: db, ..approval(GuestIdentity::Vouched, other) };
    assert_eq!(
        cluster.follower.nodes.approve(&gone).await,
        Err(ApproveError::UnknownCaller),
        "another scope"
    );
    assert_eq!(cluster.follower.nodes.approve(&approval(GuestIdentity::Vouched, other)).await, Ok(()));
}
