//! Authentication by user and password, with the least rights.

use std::fs;
use std::path::Path;

use notbefore_etcd::{CompactError, EtcdConfig, EtcdUser, Password};
use notbefore_store::{Outcome, Store};

use crate::support::{
    Etcd, committed, committed_at_last, connect, etcd, eventually, next, put, read_text, refusal,
};

/// An etcd with authentication: `nb` may read and write below `/nb/`, `reader` may read there.
async fn with_users(flags: &[&str]) -> Etcd {
    let etcd = etcd(&[flags, &["--bcrypt-cost", "4"]].concat()).await;
    for (user, password) in [("root", "r"), ("nb", "secret"), ("reader", "secret")] {
        etcd.etcdctl(&["user", "add", &format!("{user}:{password}")]);
    }
    etcd.etcdctl(&["user", "grant-role", "root", "root"]);
    for (role, right) in [("nb", "readwrite"), ("reader", "read")] {
        etcd.etcdctl(&["role", "add", role]);
        etcd.etcdctl(&["role", "grant-permission", role, right, "--prefix=true", "/nb/"]);
        etcd.etcdctl(&["user", "grant-role", role, role]);
    }
    etcd.etcdctl(&["auth", "enable"]);
    etcd
}

fn as_user(etcd: &Etcd, prefix: &str, name: &str, password: Password) -> EtcdConfig {
    EtcdConfig { user: Some(EtcdUser { name: name.to_owned(), password }), ..etcd.config(prefix) }
}

fn text(password: &str) -> Password {
    Password::Text(password.to_owned())
}

#[tokio::test]
async fn readwrite_on_the_prefix_is_enough() {
    let etcd = with_users(&["--unsafe-no-fsync"]).await;
    let store = connect(&as_user(&etcd, "/nb/", "nb", text("secret"))).await;
    let first = committed(&store, put("a", "1")).await;
    let mut watch = store.watch(first).await.unwrap();
    let second = committed(&store, put("a", "2")).await;
    assert_eq!(next(&mut *watch).await.revision, second);
    assert_eq!(store.snapshot().await.unwrap().scan("", None, 10).await.unwrap().records.len(), 1);
    let status = store.status().await;
    assert!(status.endpoints[0].member.is_ok(), "{status:?}");
    // The crate docs list the releases that let only root ask, or compact.
    match store.warnings() {
        [] => {
            assert_eq!((status.members.len(), status.alarms), (1, Some(vec![])));
            store.compact(second).await.unwrap();
            assert!(store.watch(first).await.is_err());
        }
        [warning] => {
            assert!(warning.contains("root user"), "{warning}");
            assert_eq!(store.compact(second).await, Err(CompactError::Denied));
        }
        more => panic!("{more:?}"),
    }
}

#[tokio::test]
async fn missing_rights_and_wrong_passwords_are_named() {
    let etcd = with_users(&["--unsafe-no-fsync"]).await;
    let missing = Password::File("/nowhere/password".into());
    let cases = [
        (etcd.config("/nb/"), "etcd_user_required: ", "set --etcd-user"),
        (as_user(&etcd, "/nb/", "nb", text("wrong")), "etcd_wrong_password: ", "nb"),
        (as_user(&etcd, "/nb/", "nobody", text("secret")), "etcd_wrong_password: ", "nobody"),
        (as_user(&etcd, "/nb/", "nb", missing), "etcd_password_file: ", "/nowhere/password"),
        (
            as_user(&etcd, "/else/", "nb", text("secret")),
            "etcd_permission_denied: ",
            "read keys below /else/",
        ),
        (
            as_user(&etcd, "/nb/", "reader", text("secret")),
            "etcd_permission_denied: ",
            "write keys below /nb/",
        ),
    ];
    for (config, code, part) in cases {
        let text = refusal(&config).await;
        assert!(text.starts_with(code) && text.contains(part), "{part}: {text}");
        assert!(!text.contains("secret") && !text.contains("wrong\""), "{text}");
    }
}

#[tokio::test]
async fn outer_prefix_that_the_user_may_not_read_is_not_checked() {
    let etcd = with_users(&["--unsafe-no-fsync"]).await;
    root(&etcd, &["put", "/cells/", "notbefore: the mark of another cell"]);
    root(&etcd, &["user", "add", "east:secret"]);
    root(&etcd, &["role", "add", "east"]);
    root(&etcd, &["role", "grant-permission", "east", "readwrite", "--prefix=true", "/cells/east/"]);
    root(&etcd, &["user", "grant-role", "east", "east"]);
    let store = connect(&as_user(&etcd, "/cells/east/", "east", text("secret"))).await;
    committed(&store, put("a", "1")).await;
    // With the right to read there, it is.
    root(&etcd, &["role", "grant-permission", "east", "read", "/cells/"]);
    let refused = refusal(&as_user(&etcd, "/cells/east/", "east", text("secret"))).await;
    assert!(refused.starts_with("etcd_nested_prefix: "), "{refused}");
}

#[tokio::test]
async fn a_user_without_authentication_is_a_warning() {
    let etcd = etcd(&["--unsafe-no-fsync"]).await;
    let store = connect(&as_user(&etcd, "/nb/", "nb", text("secret"))).await;
    assert!(store.warnings().iter().any(|text| text.contains("switched off")), "{:?}", store.warnings());
    committed(&store, put("a", "1")).await;
}

fn root(etcd: &Etcd, arguments: &[&str]) {
    etcd.etcdctl(&[&["--user", "root:r"], arguments].concat());
}

#[tokio::test]
async fn tokens_and_passwords_are_renewed() {
    let mut etcd = with_users(&[]).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    fs::write(&file, "secret\n").unwrap();
    let store = connect(&as_user(&etcd, "/nb/", "nb", Password::File(file.clone()))).await;
    committed(&store, put("a", "1")).await;

    // A member that restarts forgets tokens; the new connection gets one before a commit uses it.
    etcd.kill();
    etcd.start_again();
    etcd.wait_until_healthy_as("root:r").await;
    committed_at_last(&store, put("a", "2")).await;

    // A new password invalidates the token.
    change_password(&etcd, &file, "changed");
    assert_eq!(read_text(&store, "a").await.as_deref(), Some("2"), "a read is repeated with a new token");
    change_password(&etcd, &file, "again");
    let refused = store.commit(put("a", "3")).await;
    assert!(
        matches!(&refused, Outcome::Refused(refusal) if refusal.to_string().contains("token")),
        "{refused:?}"
    );
    assert_eq!(read_text(&store, "a").await.as_deref(), Some("2"), "a refused commit has no effect");
    committed(&store, put("a", "4")).await;

    // Rights that are taken away, and given back.
    root(&etcd, &["user", "revoke-role", "nb", "nb"]);
    eventually("a refusal", async || match store.commit(put("a", "5")).await {
        Outcome::Refused(refusal) => refusal.to_string().contains("permit").then_some(()),
        Outcome::Unknown(_) => None,
        other @ (Outcome::Committed(_) | Outcome::Conflict(_)) => panic!("{other:?}"),
    })
    .await;
    root(&etcd, &["user", "grant-role", "nb", "nb"]);
    committed_at_last(&store, put("a", "6")).await;
}

fn change_password(etcd: &Etcd, file: &Path, password: &str) {
    root(etcd, &["user", "delete", "nb"]);
    root(etcd, &["user", "add", &format!("nb:{password}")]);
    root(etcd, &["user", "grant-role", "nb", "nb"]);
    fs::write(file, password).unwrap();
}

/// Tokens with a signature and a fixed end. etcd gives them 1 s here, so the end comes between two commits.
#[tokio::test]
async fn signed_tokens_that_expire_cost_one_refusal() {
    let keys = tempfile::tempdir().unwrap();
    let (public, secret) = (keys.path().join("public.pem"), keys.path().join("secret.pem"));
    let key = rcgen::KeyPair::generate().unwrap();
    fs::write(&secret, key.serialize_pem()).unwrap();
    fs::write(&public, key.public_key_pem()).unwrap();
    let jwt =
        format!("jwt,pub-key={},priv-key={},sign-method=ES256,ttl=1s", public.display(), secret.display());
    let etcd = with_users(&["--unsafe-no-fsync", "--auth-token", &jwt]).await;
    let store = connect(&as_user(&etcd, "/nb/", "nb", text("secret"))).await;
    let text = eventually("a token expires", async || match store.commit(put("a", "1")).await {
        Outcome::Committed(_) => None,
        Outcome::Refused(refusal) => Some(refusal.to_string()),
        other @ (Outcome::Conflict(_) | Outcome::Unknown(_)) => panic!("{other:?}"),
    })
    .await;
    assert!(text.contains("token"), "{text}");
    committed(&store, put("a", "2")).await;
}
