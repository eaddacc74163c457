//! Three members, one of which is killed or stands still.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use notbefore_etcd::{EtcdConfig, EtcdStore, MemberState};
use notbefore_store::{Outcome, Store};
use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::support::{
    Etcd, committed, committed_at_last, connect, eventually, next, put, read, three_members,
};

/// Settings with the endpoint of etcd's leader first, and the number of the leader.
async fn leader_first(members: &[Etcd; 3]) -> (EtcdConfig, usize) {
    let urls: Vec<&str> = members.iter().map(|member| &*member.client_url).collect();
    let store = connect(&EtcdConfig::new(urls.clone(), "/nb/")).await;
    let name =
        eventually("a leader", async || store.status().await.leader().map(|leader| leader.name.clone()))
            .await;
    let leader = members.iter().position(|member| member.name == name).unwrap();
    let mut ordered = urls.clone();
    ordered.rotate_left(leader);
    (EtcdConfig::new(ordered, "/nb/"), leader)
}

/// Commits one key after the other until it is told to stop. Returns the outcomes.
async fn write(store: EtcdStore, writer: usize, stop: Arc<AtomicBool>) -> Vec<(String, Outcome)> {
    let mut outcomes = Vec::new();
    while !stop.load(Relaxed) {
        let key = format!("w/{writer}/{}", outcomes.len());
        let outcome = store.commit(put(&key, "1")).await;
        outcomes.push((key, outcome));
    }
    outcomes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_are_true_when_the_leader_is_killed() {
    let mut members = three_members().await;
    let (config, leader) = leader_first(&members).await;
    let store = connect(&config).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> =
        (0..8).map(|writer| tokio::spawn(write(store.clone(), writer, Arc::clone(&stop)))).collect();
    eventually("all writers write", async || {
        let page = store.snapshot().await.unwrap().scan("w/", None, 100).await.unwrap();
        (page.records.len() >= 50).then_some(())
    })
    .await;
    members[leader].kill();
    committed_at_last(&store, put("after", "1")).await;
    stop.store(true, Relaxed);
    let mut outcomes = Vec::new();
    for writer in writers {
        outcomes.extend(writer.await.unwrap());
    }

    // A write through another member is an order: nothing older can land after it.
    committed_at_last(&store, put("end", "1")).await;
    let snapshot = store.snapshot().await.unwrap();
    let mut unknown = 0;
    for (key, outcome) in &outcomes {
        let there = snapshot.get(key).await.unwrap().map(|record| record.revision);
        match outcome {
            Outcome::Committed(revision) => assert_eq!(there, Some(*revision), "{key} is lost"),
            Outcome::Refused(refusal) => assert_eq!(there, None, "{key} was refused ({refusal}) and written"),
            Outcome::Unknown(_) => unknown += 1,
            Outcome::Conflict(_) => panic!("{key}: {outcome:?}"),
        }
    }
    assert!(unknown > 0, "commits that were under way have no outcome: {}", outcomes.len());
    let dead = &members[leader].client_url;
    let status = store.status().await;
    let silent = status.members.iter().filter(|member| matches!(member.state, MemberState::Silent { .. }));
    assert_eq!(silent.map(|member| &member.client_urls[0]).collect::<Vec<_>>(), [dead]);
    assert_eq!(store.identity_changed(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_stands_still_is_left() {
    let members = three_members().await;
    let (config, leader) = leader_first(&members).await;
    let store = connect(&config).await;
    let first = committed(&store, put("a", "1")).await;
    let mut stalled = store.watch(first).await.unwrap();

    members[leader].signal(Signal::STOP);
    let hanging = tokio::spawn({
        let store = store.clone();
        async move { store.commit(put("hangs", "1")).await }
    });
    // Later commits, reads and watches use the other members.
    let mut later = JoinSet::new();
    let second = eventually("a commit by another member", async || {
        let store = store.clone();
        later.spawn(async move { store.commit(put("a", "2")).await });
        match later.try_join_next()?.unwrap() {
            Outcome::Committed(revision) => Some(revision),
            Outcome::Refused(_) | Outcome::Unknown(_) => None,
            other @ Outcome::Conflict(_) => panic!("{other:?}"),
        }
    })
    .await;
    assert!(read(&store, "a").await.map(|record| record.revision) >= Some(second));
    let mut watch = eventually("a watch", async || store.watch(first).await.ok()).await;
    while next(&mut *watch).await.revision < second {}
    while later.join_next().await.is_some() {}
    let outcome = hanging.await.unwrap();
    assert!(matches!(outcome, Outcome::Unknown(_)), "{outcome:?}");

    // The member comes back; its watch shows the same commits, and nothing goes back.
    members[leader].signal(Signal::CONT);
    members[leader].wait_until_healthy().await;
    let third = committed_at_last(&store, put("a", "3")).await;
    loop {
        match stalled.next().await {
            Ok(batch) if batch.revision < third => {}
            Ok(batch) => break assert_eq!(batch.revision, third),
            // The keep-alive found the member dead.
            Err(error) => break assert_eq!(error, notbefore_store::WatchError::Closed),
        }
    }
    assert_eq!(store.identity_changed(), None);
}
