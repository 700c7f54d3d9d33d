//! TLS to the database by `rustls`, with the cryptography that goodput already uses (aws-lc-rs).

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Checks the server's certificate by the authorities of a file, or of this host.
///
/// # Errors
/// In words: the file can't be used, or this host knows no authority.
pub(super) fn connector(authorities: Option<&Path>) -> Result<MakeRustlsConnect, String> {
    let roots = match authorities {
        Some(file) => of_file(file)
            .map_err(|why| format!("the authorities in {} can't be used: {why}", file.display()))?,
        None => of_host()?,
    };
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|why| format!("TLS can't be used: {why}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn of_host() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let why = found.errors.first().map(|why| format!(": {why}")).unwrap_or_default();
    known(found.certs).ok_or_else(|| {
        format!("this host has no list of authorities{why}; install the package ca-certificates")
    })
}

/// The certificates that can be used, if there are any.
fn known(certificates: Vec<CertificateDer<'static>>) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let (used, _) = roots.add_parsable_certificates(certificates);
    (used > 0).then_some(roots)
}

fn of_file(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let read = CertificateDer::pem_file_iter(file).map_err(|why| why.to_string())?;
    for certificate in read {
        let certificate = certificate.map_err(|why| why.to_string())?;
        roots.add(certificate).map_err(|why| why.to_string())?;
    }
    if roots.is_empty() {
        return Err("there is no certificate in it".into());
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_a_certificate_is_none() {
        assert!(known(Vec::new()).is_none());
        assert!(known(vec![CertificateDer::from(vec![0; 9])]).is_none());
    }

    #[test]
    fn a_file_without_a_certificate_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        for text in
            [None, Some(""), Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")]
        {
            if let Some(text) = text {
                std::fs::write(&file, text).unwrap();
            }
            let why = connector(Some(&file)).err().unwrap();
            assert!(why.contains("ca.pem can't be used: "), "{why}");
        }
    }
}
