//! TLS with client certificates: renewal without a restart, and what messages say about wrong files.

use std::fs;
use std::path::{Path, PathBuf};

use notbefore_etcd::{ClientCertificateFiles, EtcdConfig, EtcdTlsFiles};
use notbefore_store::{Outcome, Store};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use crate::support::{
    Etcd, committed, committed_at_last, connect, etcd, etcdctl_command, eventually, put, read_text, refusal,
};

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Writes a certificate for 127.0.0.1 and its key.
    fn sign(&self, files: &ClientCertificateFiles) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "node");
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        fs::write(&files.cert, params.signed_by(&key, &self.issuer).unwrap().pem()).unwrap();
        fs::write(&files.key, key.serialize_pem()).unwrap();
    }
}

fn pair(dir: &Path, name: &str) -> ClientCertificateFiles {
    ClientCertificateFiles { cert: dir.join(format!("{name}.pem")), key: dir.join(format!("{name}.key")) }
}

/// An etcd that asks for client certificates, and files for a node.
struct Secured {
    etcd: Etcd,
    dir: TempDir,
    one: Authority,
    other: Authority,
    server: ClientCertificateFiles,
    node: ClientCertificateFiles,
    authority: PathBuf,
    trusted: PathBuf,
}

impl Secured {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (Authority::new("one"), Authority::new("other"));
        let (server, node) = (pair(dir.path(), "server"), pair(dir.path(), "node"));
        let (authority, trusted) = (dir.path().join("authority.pem"), dir.path().join("trusted.pem"));
        one.sign(&server);
        one.sign(&node);
        fs::write(&authority, &one.pem).unwrap();
        fs::write(&trusted, &one.pem).unwrap();
        let flags =
            [("--cert-file", &server.cert), ("--key-file", &server.key), ("--trusted-ca-file", &trusted)];
        let flags: Vec<&str> = flags
            .iter()
            .flat_map(|(flag, path)| [*flag, path.to_str().unwrap()])
            .chain(["--client-cert-auth"])
            .collect();
        let etcd = Etcd::prepare("https", &flags);
        let secured = Self { etcd, dir, one, other, server, node, authority, trusted };
        secured.wait_until_healthy().await;
        secured
    }

    /// By etcdctl, with a pair of its own that etcd trusts.
    async fn wait_until_healthy(&self) {
        let own = pair(self.dir.path(), "etcdctl");
        let trusted = fs::read_to_string(&self.trusted).unwrap();
        match trusted == self.one.pem {
            true => self.one.sign(&own),
            false => self.other.sign(&own),
        }
        eventually("etcd is healthy", async || {
            let mut command = etcdctl_command();
            command.args([
                "--endpoints",
                &self.etcd.client_url,
                "endpoint",
                "health",
                "--command-timeout",
                "1s",
            ]);
            command
                .arg("--cacert")
                .arg(&self.authority)
                .arg("--cert")
                .arg(&own.cert)
                .arg("--key")
                .arg(&own.key);
            command.output().unwrap().status.success().then_some(())
        })
        .await;
    }

    fn config(&self) -> EtcdConfig {
        let tls = EtcdTlsFiles { authority: self.authority.clone(), client: Some(self.node.clone()) };
        EtcdConfig { tls: Some(tls), ..self.etcd.config("/nb/") }
    }
}

#[tokio::test]
async fn renewed_certificates_need_no_restart() {
    let mut secured = Secured::start().await;
    let store = connect(&secured.config()).await;
    committed(&store, put("a", "1")).await;

    // etcd changes its authority for clients.
    secured.etcd.kill();
    fs::write(&secured.trusted, &secured.other.pem).unwrap();
    secured.etcd.start_again();
    secured.wait_until_healthy().await;
    let text = eventually("a refusal", async || match store.commit(put("a", "2")).await {
        Outcome::Refused(refusal) => Some(refusal.to_string()).filter(|text| text.contains("certificate")),
        Outcome::Unknown(_) => None,
        other @ (Outcome::Committed(_) | Outcome::Conflict(_)) => panic!("{other:?}"),
    })
    .await;
    assert!(text.contains("--trusted-ca-file"), "{text}");

    // Half of the renewal: the pair does not match, so the earlier one is used, and refused.
    fs::copy(&secured.server.key, &secured.node.key).unwrap();
    assert!(matches!(store.commit(put("a", "3")).await, Outcome::Refused(_)));
    secured.other.sign(&secured.node);
    committed_at_last(&store, put("a", "4")).await;
    assert_eq!(read_text(&store, "a").await.as_deref(), Some("4"));
    assert!(store.status().await.leader().is_some());
    let newest = store.snapshot().await.unwrap().revision();
    assert!(store.watch(newest).await.is_ok());
}

#[tokio::test]
async fn unreadable_renewal_keeps_the_earlier_certificate() {
    let mut secured = Secured::start().await;
    let store = connect(&secured.config()).await;
    committed(&store, put("a", "1")).await;
    fs::write(&secured.node.cert, "half of a file").unwrap();
    secured.etcd.kill();
    secured.etcd.start_again();
    committed_at_last(&store, put("a", "2")).await;
}

#[tokio::test]
async fn wrong_certificates_are_named_with_the_cure() {
    let secured = Secured::start().await;
    let good = secured.config();
    let with = |change: &dyn Fn(&mut EtcdConfig)| {
        let mut config = good.clone();
        change(&mut config);
        config
    };
    let tls = |config: &mut EtcdConfig, authority: &Path, client: Option<ClientCertificateFiles>| {
        config.tls = Some(EtcdTlsFiles { authority: authority.to_owned(), client });
    };
    let (foreign, empty) = (secured.dir.path().join("foreign.pem"), secured.dir.path().join("empty.pem"));
    fs::write(&foreign, &secured.other.pem).unwrap();
    fs::write(&empty, "").unwrap();
    let unknown = pair(secured.dir.path(), "unknown");
    secured.other.sign(&unknown);
    let mixed = ClientCertificateFiles { cert: secured.node.cert.clone(), key: unknown.key.clone() };
    let no_key = ClientCertificateFiles { cert: secured.node.cert.clone(), key: secured.node.cert.clone() };
    let url = &secured.etcd.client_url;

    let cases: Vec<(EtcdConfig, &str, &str)> = vec![
        (
            with(&|config| tls(config, &foreign, Some(secured.node.clone()))),
            "etcd_unreachable",
            "not signed by the given authority",
        ),
        (with(&|config| tls(config, &secured.authority, None)), "etcd_unreachable", "client certificate"),
        (
            with(&|config| tls(config, &secured.authority, Some(unknown.clone()))),
            "etcd_unreachable",
            "client certificate",
        ),
        (with(&|config| tls(config, &secured.authority, Some(mixed.clone()))), "etcd_tls", "matching pair"),
        (with(&|config| tls(config, &secured.authority, Some(no_key.clone()))), "etcd_tls", "no private key"),
        (with(&|config| tls(config, &empty, None)), "etcd_tls", "no certificate"),
        (with(&|config| tls(config, Path::new("/nowhere"), None)), "etcd_tls", "/nowhere"),
        (
            with(&|config| config.endpoints = vec![url.replace("127.0.0.1", "localhost")]),
            "etcd_unreachable",
            "another name",
        ),
        (
            EtcdConfig::new([url.replace("https", "http")], "/nb/"),
            "etcd_unreachable",
            "write https if it has TLS",
        ),
    ];
    for (config, code, part) in cases {
        let text = refusal(&config).await;
        assert!(text.starts_with(code) && text.contains(part), "{part}: {text}");
    }

    let plain = etcd(&["--unsafe-no-fsync"]).await;
    let text =
        refusal(&with(&|config| config.endpoints = vec![plain.client_url.replace("http", "https")])).await;
    assert!(text.contains("write http instead of https"), "{text}");
}
