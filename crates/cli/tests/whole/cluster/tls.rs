//! The guide's sections about TLS and backups, typed on three machines with the samples of `dist/`: see `tls.sh`.

#[test]
fn cluster_of_the_samples_uses_tls_everywhere_and_restores_backups() {
    super::guide::run_script("tls.sh", &[("/usr/bin/etcd", "etcd-server"), ("/usr/bin/jq", "jq")]);
}
