//! TLS certificate verification of the operator API's client.
//!
//! - A remote service is verified with the public CAs, or with the CAs or the certificate in `--operator-ca`.
//! - A local service, found by its data directory, is verified by certificate pinning: only the certificate that it
//!   wrote there is accepted, under any name. A user who can write there could replace the service anyway.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use notbefore_wire::operator::certificate::ends_at;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

#[derive(Clone, Debug)]
pub enum Trust {
    /// Public CAs (webpki roots).
    Usual,
    /// CAs or server certificates in a file.
    Authorities(std::path::PathBuf),
    /// Pinned: exactly this certificate, under any name.
    Exactly { path: std::path::PathBuf, pem: String },
}

/// TLS client configuration for a trust setting.
pub fn tls(trust: &Trust) -> Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let verifier = match trust {
        Trust::Usual => {
            let roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            return Ok(builder.with_root_certificates(roots).with_no_client_auth());
        }
        Trust::Authorities(path) => {
            let pem = std::fs::read(path);
            let pem = pem.with_context(|| format!("cannot read the certificates in {}", path.display()))?;
            Verifier::new(certificates(path, &pem)?, true, provider)?
        }
        Trust::Exactly { path, pem } => Verifier::new(certificates(path, pem.as_bytes())?, false, provider)?,
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    Ok(builder.with_no_client_auth())
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let shown = path.display();
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) | Err(_) => {
            bail!("{shown} contains no PEM certificate (-----BEGIN CERTIFICATE-----)")
        }
    }
}

/// Accepts a certificate that is one of those given, or was issued by one of them.
#[derive(Debug)]
struct Verifier {
    given: Vec<CertificateDer<'static>>,
    /// Whether to check names, validity and issuers; false for a pinned certificate.
    in_full: bool,
    authorities: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(
        given: Vec<CertificateDer<'static>>,
        in_full: bool,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        if in_full {
            roots.add_parsable_certificates(given.iter().cloned());
        }
        let has_roots = !roots.is_empty();
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let authorities = has_roots.then(|| verifier.build()).transpose()?;
        Ok(Self { given, in_full, authorities, provider })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // Only the first certificate of a chain is the service's own; the rest are issuers.
        let exact = match self.in_full {
            true => self.given.contains(own),
            false => self.given.first() == Some(own),
        };
        match (&self.authorities, exact) {
            (_, true) if !self.in_full => Ok(ServerCertVerified::assertion()),
            // A self-signed certificate is often also a CA, which webpki refuses as a server certificate.
            (_, true) => {
                verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
                let ends = ends_at(own).and_then(|at| u64::try_from(at.as_second()).ok());
                let not_after = UnixTime::since_unix_epoch(Duration::from_secs(ends.unwrap_or(0)));
                match now < not_after {
                    true => Ok(ServerCertVerified::assertion()),
                    false => Err(CertificateError::ExpiredContext { time: now, not_after }.into()),
                }
            }
            (Some(authorities), false) => authorities.verify_server_cert(own, intermediates, name, ocsp, now),
            (None, false) => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
