//! The operator listener with TLS: own certificates, verification by the command line, and reload on SIGHUP.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support;
use crate::support::{Service, binary, wait_for};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use tempfile::TempDir;

/// A CA, and a certificate for `localhost` that it issued.
struct Pki {
    dir: TempDir,
}

impl Pki {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pki = Self { dir };
        pki.renew((2099, 1, 1));
        pki
    }

    /// Recreates all certificates.
    fn renew(&self, ends: (i32, u8, u8)) {
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        fs::write(self.ca(), authority.self_signed(&authority_key).unwrap().pem()).unwrap();
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().unwrap();
        let mut params =
            CertificateParams::new(vec!["localhost".to_owned(), "ops.example".to_owned()]).unwrap();
        params.not_after = date_time_ymd(ends.0, ends.1, ends.2);
        fs::write(self.cert(), params.signed_by(&key, &issuer).unwrap().pem()).unwrap();
        fs::write(self.key(), key.serialize_pem()).unwrap();
        fs::set_permissions(self.key(), fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// A self-signed CA certificate, as `openssl req -x509` creates it.
    fn self_signed(&self, name: &str) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        fs::write(self.cert(), params.self_signed(&key).unwrap().pem()).unwrap();
        fs::write(self.key(), key.serialize_pem()).unwrap();
    }

    fn ca(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    fn cert(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    fn key(&self) -> PathBuf {
        self.dir.path().join("key.pem")
    }

    fn serve(&self, flags: &[&str]) -> Service {
        let (cert, key) = (self.cert(), self.key());
        let mut all =
            vec!["--operator-cert", cert.to_str().unwrap(), "--operator-key", key.to_str().unwrap()];
        all.extend(flags);
        Service::start_with(&[("NOTBEFORE_LOG", "trace")], &all)
    }
}

/// The command line as on another machine: with URL, token, and optionally a CA.
fn remote(service: &Service, url: &str, ca: Option<&Path>) -> Output {
    let token = fs::read_to_string(service.data().join("operator.token")).unwrap();
    let mut command = Command::new(binary());
    command.args(["vm", "list"]).env("NOTBEFORE_OPERATOR", url).env("NOTBEFORE_TOKEN", token.trim());
    if let Some(ca) = ca {
        command.env("NOTBEFORE_CA", ca);
    }
    command.output().unwrap()
}

fn stderr_text(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn send_sighup(service: &Service) {
    let pid = rustix::process::Pid::from_raw(service.pid().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
}

fn logged(service: &Service, text: &str) {
    wait_for(&format!("{text:?} in the log"), || service.log().contains(text).then_some(()));
}

#[test]
fn https_works_locally_and_remotely() {
    let pki = Pki::new();
    // A remote address needs no further flag with a certificate.
    let service = pki.serve(&["--operator", "0.0.0.0:0"]);
    let port = service.operator.port();
    // On the same machine the data directory is enough.
    assert_eq!(
        fs::read_to_string(service.data().join("operator.url")).unwrap(),
        format!("https://127.0.0.1:{port}\n")
    );
    service.cli(&["vm", "list"]);
    assert_eq!(service.cli(&["healthy"]), "ready\n");
    service.cli(&[
        "event",
        "schedule",
        "--type",
        "reboot",
        service.cli_json(&["vm", "list"])[0]["name"].as_str().unwrap(),
    ]);

    // A remote client verifies the name and the CA.
    let localhost = format!("https://localhost:{port}");
    let found = remote(&service, &localhost, Some(&pki.ca()));
    assert!(found.status.success(), "{found:?}");
    let unknown = stderr_text(&remote(&service, &localhost, None));
    assert!(
        unknown.contains("cannot verify the certificate") && unknown.contains("--operator-ca"),
        "{unknown}"
    );
    let other = stderr_text(&remote(&service, &localhost, Some(&Pki::new().ca())));
    assert!(other.contains("cannot verify the certificate"), "{other}");
    let misnamed = stderr_text(&remote(&service, &format!("https://127.0.0.1:{port}"), Some(&pki.ca())));
    assert!(
        misnamed.contains("cannot verify the certificate") && misnamed.contains("not valid for name"),
        "{misnamed}"
    );
    let missing = stderr_text(&remote(&service, &localhost, Some(Path::new("/nowhere.pem"))));
    assert!(missing.contains("/nowhere.pem"), "{missing}");

    // Plain HTTP is not answered.
    let plain = support::exchange(
        Ipv4Addr::LOCALHOST.into(),
        ([127, 0, 0, 1], port).into(),
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(plain.status, 0, "{plain:?}");
    let versions = |version: &str| {
        let target = format!("127.0.0.1:{port}");
        let output = Command::new("openssl")
            .args(["s_client", "-connect", &target, version, "-alpn", "h2,http/1.1"])
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for version in ["-tls1_2", "-tls1_3"] {
        let output = versions(version);
        assert!(output.contains("ALPN protocol: http/1.1"), "{version}: {output}");
    }
    assert!(versions("-tls1_1").contains("Cipher is (NONE)"));
}

#[test]
fn certificate_reload_applies_new_and_refuses_invalid() {
    let pki = Pki::new();
    let service = pki.serve(&[]);
    let url = format!("https://localhost:{}", service.operator.port());
    let old = pki.dir.path().join("old.pem");
    fs::copy(pki.ca(), &old).unwrap();

    // A key that does not match the certificate.
    fs::write(pki.key(), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    send_sighup(&service);
    logged(&service, "the previous one stays in use");
    logged(&service, "is not that of the certificate");
    assert!(remote(&service, &url, Some(&old)).status.success());

    pki.renew((2099, 1, 1));
    send_sighup(&service);
    wait_for("the new certificate", || {
        remote(&service, &url, Some(&pki.ca())).status.success().then_some(())
    });
    assert!(!remote(&service, &url, Some(&old)).status.success());
    service.cli(&["vm", "list"]);

    // A self-signed certificate can be given directly; its name is checked remotely, but not locally.
    for (name, trusted) in [("localhost", true), ("ops.example", false)] {
        pki.self_signed(name);
        send_sighup(&service);
        let copy = service.data().join("operator.ca");
        wait_for("the certificate to be left here", || {
            (fs::read(&copy).unwrap() == fs::read(pki.cert()).unwrap()).then_some(())
        });
        service.cli(&["vm", "list"]);
        assert_eq!(remote(&service, &url, Some(&pki.cert())).status.success(), trusted, "{name}");
    }
    // It is still the same process with the same data.
    assert!(service.cli_json(&["audit"]).as_array().unwrap().iter().any(|one| one["type"] == "TokenCreated"));
}

#[test]
fn certificate_errors_are_reported() {
    let pki = Pki::new();
    let refused = |cert: &Path, key: &Path| {
        let data = tempfile::tempdir().unwrap();
        let output = Command::new(binary())
            .args(["serve", "--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0", "--data"])
            .arg(data.path().join("data"))
            .arg("--operator-cert")
            .arg(cert)
            .arg("--operator-key")
            .arg(key)
            .output()
            .unwrap();
        assert!(!data.path().join("data").exists(), "nothing is left behind");
        stderr_text(&output)
    };
    let other = Pki::new();
    let stderr = refused(&pki.cert(), &other.key());
    assert!(stderr.contains("is not that of the certificate"), "{stderr}");
    let stderr = refused(Path::new("/nowhere.pem"), &pki.key());
    assert!(stderr.contains("cannot read /nowhere.pem"), "{stderr}");
    let stderr = refused(&pki.key(), &pki.key());
    assert!(stderr.contains("holds no certificate"), "{stderr}");
    let stderr = refused(&pki.cert(), &pki.cert());
    assert!(stderr.contains("holds no private key"), "{stderr}");
    let half = Command::new(binary()).args(["serve", "--operator-cert"]).arg(pki.cert()).output().unwrap();
    assert!(stderr_text(&half).contains("--operator-key"));

    // Usable but questionable files cause a warning.
    pki.renew((2021, 1, 1));
    fs::set_permissions(pki.key(), fs::Permissions::from_mode(0o644)).unwrap();
    let service = pki.serve(&[]);
    logged(&service, "has expired");
    logged(&service, "all users of this machine can read the private key");
    service.cli(&["vm", "list"]);
    let url = format!("https://localhost:{}", service.operator.port());
    for trusted in [pki.ca(), pki.cert()] {
        let stderr = stderr_text(&remote(&service, &url, Some(&trusted)));
        assert!(stderr.contains("expired"), "{stderr}");
    }
}

#[test]
fn loopback_refuses_other_host_names() {
    let pki = Pki::new();
    let encrypted = pki.serve(&[]);
    let plain = Service::start_with(&[("NOTBEFORE_OPERATOR_HOSTS", "proxied.example")], &[]);
    let by_tls = |host: &str| {
        let url = format!("https://localhost:{}/healthz", encrypted.operator.port());
        let output = Command::new("curl")
            .args(["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--insecure"])
            .args(["--noproxy", "*", "--header", &format!("Host: {host}"), &url])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).parse::<u16>().unwrap()
    };
    let local = Ipv4Addr::LOCALHOST.into();
    let in_the_clear = |request: String| support::exchange(local, plain.operator, request.as_bytes());
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    for (host, expected, encrypted_expected) in [
        ("localhost:9255", 200, 200),
        ("127.0.0.1:9255", 200, 200),
        ("[::1]", 200, 200),
        ("192.0.2.7", 200, 200),
        (machine.as_str(), 200, 200),
        ("proxied.example:80", 200, 421),
        ("ops.example", 421, 200),
        ("evil.example:9255", 421, 421),
    ] {
        let close = "Connection: close\r\n\r\n";
        let answer = in_the_clear(format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n{close}"));
        assert_eq!(answer.status, expected, "{host}: {answer:?}");
        let answer = in_the_clear(format!("GET http://{host}/healthz HTTP/1.1\r\n{close}"));
        assert_eq!(answer.status, expected, "the target names {host}: {answer:?}");
        assert_eq!(by_tls(host), encrypted_expected, "{host}");
    }
    let refused =
        in_the_clear("GET /v1/vms HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n".to_owned());
    assert_eq!(refused.json()["code"], "wrong_host");
    assert!(refused.head.contains("application/problem+json"), "{refused:?}");
    let without = in_the_clear("GET /healthz HTTP/1.0\r\n\r\n".to_owned());
    assert_eq!(without.status, 200, "there is no name to judge");
}
