//! TLS by `rustls`, with the cryptography that goodput already uses (aws-lc-rs).

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};

use crate::error::FileError;
use crate::options::Options;
use crate::tls_words;

/// The TLS configuration of one conversation's connections, which share session resumption.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// As configured by the user. `protocols` is offered by ALPN (RFC 7301).
    pub(crate) fn new(options: &Options, protocols: &[&[u8]]) -> Result<Self, FileError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|why| {
                FileError::Refused(format!("TLS can't be used: {}", tls_words::of_tls(&why)))
            })?;
        let verifier: Arc<dyn ServerCertVerifier> = match (options.insecure, &options.authorities) {
            (true, _) => Arc::new(Any(provider)),
            (false, None) => usual(system_roots()?, &provider)?,
            (false, Some(file)) => Arc::new(Listed::new(file, &provider)?),
        };
        let mut config =
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Self(Arc::new(config)))
    }

    /// The beginning of an encrypted connection to `host`.
    pub(crate) fn connection(&self, host: &str) -> Result<ClientConnection, FileError> {
        let unfit = |why: String| FileError::Refused(format!("TLS to {host} can't begin: {why}"));
        let name = ServerName::try_from(host.to_owned()).map_err(|why| unfit(why.to_string()))?;
        ClientConnection::new(Arc::clone(&self.0), name)
            .map_err(|why| unfit(tls_words::of_tls(&why)))
    }
}

/// Fails if the file of authorities can't be used, before a server is asked for anything.
pub fn check_authorities(options: &Options) -> Result<(), FileError> {
    options.authorities.as_ref().map_or(Ok(()), |_| Tls::new(options, &[]).map(drop))
}

/// Version and cipher of a connection.
pub(crate) fn summary(connection: &ClientConnection) -> Option<String> {
    let version = connection.protocol_version()?;
    let suite = connection.negotiated_cipher_suite()?.suite();
    let version = format!("{version:?}").replace("TLSv", "TLS ").replace('_', ".");
    Some(format!("{version} {suite:?}"))
}

/// The error of a handshake, with advice for the user.
pub(crate) fn refused(host: &str, why: &rustls::Error) -> FileError {
    let advice = match why {
        rustls::Error::InvalidCertificate(_) => {
            "; name its authority by --cacert, or check nothing by --insecure"
        }
        _ => "",
    };
    FileError::Refused(format!("no TLS connection to {host}: {}{advice}", tls_words::of_tls(why)))
}

/// The authorities that this host trusts.
fn system_roots() -> Result<RootCertStore, FileError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let why = "this host trusts no authorities (package ca-certificates); name one by --cacert";
        return Err(FileError::Refused(why.into()));
    }
    Ok(roots)
}

/// The usual checks, with these authorities.
fn usual(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, FileError> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|why| FileError::Refused(format!("TLS can't be used: {why}")))
}

/// Trusts the certificates of a file: as authorities, and as the server's own. The usual checks reject a certificate
/// that is both, as many self-signed ones are, as a server's (RFC 5280 section 4.2.1.9).
#[derive(Debug)]
struct Listed {
    usual: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Listed {
    fn new(file: &Path, provider: &Arc<CryptoProvider>) -> Result<Self, FileError> {
        let unfit = |why: String| {
            let file = file.display();
            FileError::Refused(format!("the authorities in {file} can't be used: {why}"))
        };
        let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
        let certificates: Vec<CertificateDer> =
            read.map_err(|why| unfit(tls_words::of_pem(&why)))?;
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            let added = roots.add(certificate.clone());
            added.map_err(|why| unfit(tls_words::of_tls(&why)))?;
        }
        if roots.is_empty() {
            return Err(unfit("there is no certificate in it".into()));
        }
        Ok(Self { usual: usual(roots, provider)?, certificates })
    }
}

/// Whether the usual checks object only because the certificate is an authority's. By then they have checked its dates
/// (`check_issuer_independent_properties` of rustls-webpki), but not the name.
fn is_an_authority(why: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(why)) = why else { return false };
    why.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
}

impl ServerCertVerifier for Listed {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let usual = self.usual.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match usual {
            Err(why) if is_an_authority(&why) && self.certificates.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            usual => usual,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Accepts any certificate. Its owner is unknown; the check that the server holds its key remains.
#[derive(Debug)]
struct Any(Arc<CryptoProvider>);

impl ServerCertVerifier for Any {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Self-signed, an authority, and for localhost; made by openssl req -x509, valid from 2026 to 2126.
    const OWN: &str = "-----BEGIN CERTIFICATE-----\n\
        MIIBmzCCAUGgAwIBAgIUH16L22hYrtdL9HPNTz3WGOi4/NkwCgYIKoZIzj0EAwIw\n\
        FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMzE1MTIzNloYDzIxMjYxMDMw\n\
        MTUxMjM2WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO\n\
        PQMBBwNCAASUm9O+PUCymVKouBx5YcU19ioIxKULJ76SYufCvndJGTboV3lfyG90\n\
        yWzQlG4bOXdyWWKhi8bX5Tez/RqQ8G9to28wbTAdBgNVHQ4EFgQUKCvczXrs8fV7\n\
        kxFfzOKptXr5kfswHwYDVR0jBBgwFoAUKCvczXrs8fV7kxFfzOKptXr5kfswDwYD\n\
        VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI\n\
        zj0EAwIDSAAwRQIgHdnXB6pHE9rfjfjzg0tfI7XVE4fejbtUQxZku3Nk46ECIQCj\n\
        zp+RDfxet5GBUA7I7ANFIGbdu0NH/ktYiw7PT0/aMA==\n\
        -----END CERTIFICATE-----\n";
    /// The same with another key.
    const OTHER: &str = "-----BEGIN CERTIFICATE-----\n\
        MIIBlDCCATugAwIBAgIUB3huMz5yEOHgNYD8J1VhGhLsVlkwCgYIKoZIzj0EAwIw\n\
        FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMzE1MTIzNloYDzIxMjYxMDMw\n\
        MTUxMjM2WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO\n\
        PQMBBwNCAASezblUCCqZ735ZDK/uD8cmDTrz3lk3pieN1iVHFhJssMgsrJnRPy3e\n\
        E9n0Wi+cCPBVhUlQAtEywHEYoB9tNAC0o2kwZzAdBgNVHQ4EFgQUpJixCE8xvDJ0\n\
        ZrQ6XWXYbkuNScIwHwYDVR0jBBgwFoAUpJixCE8xvDJ0ZrQ6XWXYbkuNScIwDwYD\n\
        VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID\n\
        RwAwRAIgJSsEze9I6k9gPbtghezkLHf4aCJx9uojaO3wA1CEbPECIFW5Gh/Q0SgS\n\
        VGWs87H0NCenOaTt6yNrv8eIzaLBDsOn\n\
        -----END CERTIFICATE-----\n";
    /// A time at which both are valid, seconds since 1970.
    const VALID_S: u64 = 1_900_000_000;

    fn verified(listed: &str, shown: &str, name: &'static str, at_s: u64) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("listed.pem");
        std::fs::write(&file, listed).unwrap();
        let listed = Listed::new(&file, &Arc::new(aws_lc_rs::default_provider())).unwrap();
        let shown = CertificateDer::from_pem_slice(shown.as_bytes()).unwrap();
        let name = ServerName::try_from(name).unwrap();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(at_s));
        let verified = listed.verify_server_cert(&shown, &[], &name, &[], now);
        verified.map(drop).map_err(|why| why.to_string())
    }

    #[test]
    fn a_listed_certificate_that_is_its_own_authority_is_trusted() {
        assert_eq!(verified(OWN, OWN, "localhost", VALID_S), Ok(()));
        assert_eq!(verified(&[OTHER, OWN].concat(), OWN, "localhost", VALID_S), Ok(()));
    }

    #[test]
    fn its_name_and_its_dates_count_all_the_same() {
        let name = verified(OWN, OWN, "example.com", VALID_S).unwrap_err();
        assert!(name.contains("not valid for name"), "{name}");
        let early = verified(OWN, OWN, "localhost", 1_000_000_000).unwrap_err();
        assert!(early.contains("not valid yet"), "{early}");
        let late = verified(OWN, OWN, "localhost", 5_000_000_000).unwrap_err();
        assert!(late.contains("expired"), "{late}");
    }

    #[test]
    fn another_that_only_has_its_name_is_refused() {
        assert!(verified(OTHER, OWN, "localhost", VALID_S).is_err());
    }
}
