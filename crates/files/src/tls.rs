//! TLS by `rustls`, with the cryptography that goodput has anyway (aws-lc-rs).

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use crate::conversation::Options;
use crate::error::FileError;

/// How connections of one conversation are encrypted; they share what resumes a session.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// As the user wants it. `protocols` is what is offered by ALPN (RFC 7301).
    pub(crate) fn new(options: &Options, protocols: &[&[u8]]) -> Result<Self, FileError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|why| FileError::Refused(format!("TLS can't be used: {why}")))?;
        let mut config = match options.insecure {
            true => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Any(provider)))
                .with_no_client_auth(),
            false => builder.with_root_certificates(roots(options)?).with_no_client_auth(),
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Self(Arc::new(config)))
    }

    /// The beginning of an encrypted connection to `host`.
    pub(crate) fn connection(&self, host: &str) -> Result<ClientConnection, FileError> {
        let unfit = |why: String| FileError::Refused(format!("TLS to {host} can't begin: {why}"));
        let name = ServerName::try_from(host.to_owned()).map_err(|why| unfit(why.to_string()))?;
        ClientConnection::new(Arc::clone(&self.0), name).map_err(|why| unfit(why.to_string()))
    }
}

/// Version and cipher of a connection.
pub(crate) fn summary(connection: &ClientConnection) -> Option<String> {
    let version = connection.protocol_version()?;
    let suite = connection.negotiated_cipher_suite()?.suite();
    let version = format!("{version:?}").replace("TLSv", "TLS ").replace('_', ".");
    Some(format!("{version} {suite:?}"))
}

/// The error of a handshake, with what the user can do.
pub(crate) fn refused(host: &str, why: &rustls::Error) -> FileError {
    let advice = match why {
        rustls::Error::InvalidCertificate(_) => {
            "; name its authority by --cacert, or check nothing by --insecure"
        }
        _ => "",
    };
    FileError::Refused(format!("no TLS connection to {host}: {why}{advice}"))
}

/// The authorities that are trusted.
fn roots(options: &Options) -> Result<RootCertStore, FileError> {
    let mut roots = RootCertStore::empty();
    let Some(file) = &options.authorities else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            let why =
                "this host trusts no authorities (package ca-certificates); name one by --cacert";
            return Err(FileError::Refused(why.into()));
        }
        return Ok(roots);
    };
    let unfit = |why: String| {
        FileError::Refused(format!("the authorities in {} can't be used: {why}", file.display()))
    };
    for certificate in CertificateDer::pem_file_iter(file).map_err(|why| unfit(why.to_string()))? {
        let certificate = certificate.map_err(|why| unfit(why.to_string()))?;
        roots.add(certificate).map_err(|why| unfit(why.to_string()))?;
    }
    if roots.is_empty() { Err(unfit("there is no certificate in it".into())) } else { Ok(roots) }
}

/// Takes any certificate. Whose it is, nobody knows; that the server holds its key is still checked.
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
