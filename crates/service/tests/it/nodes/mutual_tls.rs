//! Mutual TLS between nodes.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use notbefore_engine::cluster::Leader;
use notbefore_service::clock::{Clock, SystemClock};
use notbefore_service::nodes::tls::{NodeTls, NodeTlsFiles};
use notbefore_service::operator::tls::CertificateFiles;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::harness::{Node, NodeOptions, leader, leader_at, new_vm};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate of `signer`, for a node that trusts `trusted`.
fn certificate(dir: &Path, name: &str, signer: &Authority, trusted: &Authority) -> Arc<NodeTls> {
    let path = |kind: &str| dir.join(format!("{name}.{kind}"));
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    fs::write(path("cert"), params.signed_by(&key, signer).unwrap().pem()).unwrap();
    fs::write(path("key"), key.serialize_pem()).unwrap();
    fs::write(path("ca"), trusted.pem()).unwrap();
    let pair = CertificateFiles { cert: path("cert"), key: path("key") };
    Arc::new(NodeTls::load(NodeTlsFiles { pair, authority: path("ca") }, SystemClock.now()).unwrap())
}

#[tokio::test]
async fn only_nodes_with_a_certificate_of_the_authority_talk() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, other) = (authority(), authority());
    let (store, leading) = leader(Arc::new(SystemClock)).await;
    let address = leading.listen(Some(certificate(dir.path(), "a", &ours, &ours))).await;
    let url = format!("https://{address}");
    let encrypted = Leader { url, ..leader_at(address) };
    let cases = [
        ("good", Some(certificate(dir.path(), "b", &ours, &ours)), &encrypted, 201),
        ("of another authority", Some(certificate(dir.path(), "c", &other, &ours)), &encrypted, 503),
        ("trusts another authority", Some(certificate(dir.path(), "d", &ours, &other)), &encrypted, 503),
        ("has none", None, &encrypted, 503),
        ("plain", None, &leader_at(address), 503),
    ];
    for (case, tls, leader, status) in cases {
        let follower = Node::start(&store, NodeOptions { tls, ..NodeOptions::default() }).await;
        follower.follow(Some(leader.clone()));
        let name = case.replace(' ', "-");
        let answered = follower.ask("POST", "/v1/vms", &new_vm(&name, "10.0.0.1")).await;
        assert_eq!(answered.status, status, "{case}: {answered:?}");
    }
}

#[test]
fn failed_reload_keeps_the_certificates() {
    let dir = tempfile::tempdir().unwrap();
    let ours = authority();
    let tls = certificate(dir.path(), "a", &ours, &ours);
    tls.reload(SystemClock.now()).unwrap();
    fs::write(dir.path().join("a.ca"), "no certificate").unwrap();
    let error = tls.reload(SystemClock.now()).unwrap_err().to_string();
    assert!(error.contains("a.ca") && error.contains("no certificate in PEM"), "{error}");
    let _ = tls.connector();
}
