//! Encryption with the operator's certificate.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// What a server shows its clients.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// A certificate that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("can't use {what}: {why}")]
pub struct TlsError {
    /// The file, or both.
    what: String,
    /// Why.
    why: String,
}

impl Tls {
    /// The certificate of the file `certificate`, with those that vouch for it, in PEM. `key` is the text of its
    /// private key.
    ///
    /// # Errors
    /// When one can't be read, or they don't fit.
    pub fn new(certificate: &Path, key: &str) -> Result<Self, TlsError> {
        let shown = certificate.display();
        let failed = |what: String| {
            move |why: &dyn std::fmt::Display| TlsError { what, why: why.to_string() }
        };
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|why| failed(format!("the certificate {shown}"))(&why))?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
            .map_err(|why| failed(format!("the private key of the certificate {shown}"))(&why))?;
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
        let config =
            config.map_err(|why| failed(format!("the certificate {shown} with its key"))(&why))?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Encrypts connections.
    pub(crate) fn acceptor(&self) -> &TlsAcceptor {
        &self.0
    }
}
