//! Mutual TLS between nodes: both sides have a certificate of one authority. The files are reloaded with the others.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::operator::server::TlsSource;
use crate::operator::tls::{self, CertificateFiles, TlsError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTlsFiles {
    pub pair: CertificateFiles,
    /// The authority's certificates in PEM. A certificate of one of them is one of a node.
    pub authority: PathBuf,
}

/// The certificates in use.
pub struct NodeTls {
    files: NodeTlsFiles,
    configs: ArcSwap<Configs>,
}

struct Configs {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl NodeTls {
    pub fn load(files: NodeTlsFiles, now: Timestamp) -> Result<Self, TlsError> {
        let configs = Configs::load(&files, now)?;
        Ok(Self { files, configs: ArcSwap::from_pointee(configs) })
    }

    /// Reads the files again. On an error, the old certificates stay in use.
    pub fn reload(&self, now: Timestamp) -> Result<(), TlsError> {
        self.configs.store(Arc::new(Configs::load(&self.files, now)?));
        Ok(())
    }

    /// For new connections to the leader.
    pub fn connector(&self) -> TlsConnector {
        TlsConnector::from(Arc::clone(&self.configs.load().client))
    }
}

impl TlsSource for NodeTls {
    fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.configs.load().server))
    }
}

impl Configs {
    fn load(files: &NodeTlsFiles, now: Timestamp) -> Result<Self, TlsError> {
        let NodeTlsFiles { pair, authority } = files;
        let pem = tls::read(authority)?;
        let mut roots = RootCertStore::empty();
        let certificates: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_slice_iter(&pem).collect();
        roots.add_parsable_certificates(certificates.unwrap_or_default());
        if roots.is_empty() {
            return Err(TlsError::NoCertificate { path: authority.clone() });
        }
        let roots = Arc::new(roots);
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let verifier = verifier
            .build()
            .map_err(|error| TlsError::Authority { path: authority.clone(), error: error.to_string() })?;
        let own = tls::read_pair(pair)?;
        let unusable = |error| pair.unusable(error);
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                let builder = builder.with_client_cert_verifier(verifier);
                builder.with_single_cert(own.chain.clone(), own.secret.clone_key())
            })
            .map_err(unusable)?;
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder.with_root_certificates(roots).with_client_auth_cert(own.chain.clone(), own.secret)
            })
            .map_err(unusable)?;
        tls::warn("the node listener's certificate", pair, own.chain.first(), now);
        Ok(Self { server: Arc::new(server), client: Arc::new(client) })
    }
}
