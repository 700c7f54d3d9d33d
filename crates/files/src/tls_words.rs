//! TLS errors in plain words. `rustls` and `webpki` print many of their errors in a form for programmers.

use std::fmt::Debug;
use std::time::Duration;

use rustls::pki_types::pem;
use rustls::{AlertDescription, CertificateError, Error};

/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// Why TLS failed.
pub(crate) fn of_tls(why: &Error) -> String {
    match why {
        Error::InvalidCertificate(why) => of_certificate(why),
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "the server does not speak HTTP/1.1, in which goodput fetches, perhaps only HTTP/2"
                .into()
        }
        Error::AlertReceived(alert) => format!("the server broke it off ({})", plain(alert)),
        Error::PeerIncompatible(why) => {
            format!("the server and goodput have no way of TLS in common ({})", plain(why))
        }
        Error::PeerMisbehaved(why) => format!("the server broke a rule of TLS ({})", plain(why)),
        Error::InvalidMessage(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. } => {
            "the server's answer is no TLS; is it one without encryption?".into()
        }
        other => other.to_string(),
    }
}

/// Why a certificate does not prove the server's identity.
fn of_certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => {
            "its certificate is signed by no authority that is trusted here".into()
        }
        CertificateError::ExpiredContext { time, not_after } => {
            let days = days_between(not_after.as_secs(), time.as_secs());
            format!("its certificate expired {days} days ago")
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            let days = days_between(time.as_secs(), not_before.as_secs());
            format!("its certificate is not valid yet, only in {days} days; is the clock right?")
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<_> = presented.iter().map(|name| inside(name)).collect();
            let names = if names.is_empty() { "nobody".into() } else { names.join(", ") };
            format!("its certificate is not for {}, but for {names}", expected.to_str())
        }
        CertificateError::Other(other) => match other.0.downcast_ref() {
            Some(webpki::Error::CaUsedAsEndEntity) => {
                "its certificate is an authority's, not a server's".into()
            }
            Some(why) => format!("its certificate can't be used ({})", plain(why)),
            None => format!("its certificate can't be used ({other})"),
        },
        other => format!("its certificate can't be used ({})", plain(other)),
    }
}

/// Why a file of certificates can't be read.
pub(crate) fn of_pem(why: &pem::Error) -> String {
    match why {
        pem::Error::Io(cause) => cause.to_string(),
        pem::Error::NoItemsFound => "there is no certificate in it".into(),
        _ => "it is no intact PEM file (-----BEGIN CERTIFICATE-----)".into(),
    }
}

fn days_between(from_s: u64, to_s: u64) -> u64 {
    Duration::from_secs(to_s.saturating_sub(from_s)).as_secs() / DAY_S
}

/// The name of a variant as words: `HandshakeFailure` is "handshake failure".
fn plain(variant: &impl Debug) -> String {
    let name = format!("{variant:?}");
    let mut words = String::new();
    for c in name.chars().take_while(char::is_ascii_alphanumeric) {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

/// The content of a variant: `DnsName("nas")` is "nas".
fn inside(variant: &str) -> &str {
    let inner = variant.split_once('(').map_or(variant, |(_, inner)| inner);
    inner.trim_end_matches(')').trim_matches('"')
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::pki_types::{ServerName, UnixTime};
    use rustls::{InvalidMessage, OtherError, PeerIncompatible};

    use super::*;

    #[test]
    fn no_error_is_shown_as_programmers_see_it() {
        let other = OtherError(Arc::new(webpki::Error::CaUsedAsEndEntity));
        let at = |s| UnixTime::since_unix_epoch(Duration::from_secs(s));
        let all = [
            CertificateError::Other(other).into(),
            CertificateError::UnknownIssuer.into(),
            CertificateError::BadSignature.into(),
            CertificateError::ExpiredContext { time: at(9 * DAY_S), not_after: at(DAY_S) }.into(),
            CertificateError::NotValidForNameContext {
                expected: ServerName::try_from("nas").unwrap(),
                presented: vec!["DnsName(\"localhost\")".into(), "IpAddress(127.0.0.1)".into()],
            }
            .into(),
            Error::AlertReceived(AlertDescription::HandshakeFailure),
            Error::AlertReceived(AlertDescription::NoApplicationProtocol),
            Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13),
            Error::InvalidMessage(InvalidMessage::InvalidContentType),
        ];
        let words: Vec<_> = all.iter().map(of_tls).collect();
        for words in &words {
            let is_camel = |word: &str| word.chars().skip(1).any(|c| c.is_ascii_uppercase());
            let is_plain =
                |word: &str| word == "TLS" || word.starts_with("HTTP/") || !is_camel(word);
            let is_plain = words.split([' ', ';']).all(is_plain);
            assert!(is_plain && !words.contains(['"', '{']), "{words}");
        }
        assert!(words[3].contains("8 days ago"), "{}", words[3]);
        assert!(words[4].ends_with("not for nas, but for localhost, 127.0.0.1"), "{}", words[4]);
        assert!(words[5].contains("handshake failure"), "{}", words[5]);
        assert!(words[6].contains("only HTTP/2"), "{}", words[6]);
    }

    #[test]
    fn a_file_that_is_no_pem_is_not_shown_as_bytes() {
        let why = pem::Error::IllegalSectionStart { line: vec![45; 20] };
        assert!(!of_pem(&why).contains("45"));
    }
}
