//! What is wrong with the certificate of a server, in words: libraries name the case, and say neither which certificate it is
//! nor what to do.

/// Parts of what rustls says of a certificate (rustls `CertificateError`, rustls-webpki `Error`), and what each means with what to
/// do. The first one counts.
const MEANINGS: [(&str, &str); 14] = [
    (
        "CaUsedAsEndEntity",
        "the server's certificate is that of an authority (CA:TRUE), which can't stand for a server; make one with CA:FALSE for \
         the server, signed by this authority or by itself",
    ),
    (
        "EndEntityUsedAsCa",
        "what signed the server's certificate is no authority (CA:FALSE); make the certificate of the authority with CA:TRUE, and \
         sign the server's again",
    ),
    (
        "UnknownIssuer",
        "this host does not trust the authority that signed the server's certificate; name that authority's own certificate",
    ),
    (
        "BadSignature",
        "the server's certificate is not signed by the authority that it names; name that authority's present certificate",
    ),
    (
        "RevocationList",
        "the list of revoked certificates can't be used; get the authority's present list",
    ),
    (
        "revocation list",
        "the list of revoked certificates is too old; get the authority's present list",
    ),
    ("Revoked", "the authority has revoked the server's certificate; give the server a new one"),
    (
        "xpired",
        "the server's certificate has expired; renew it, or set the clock of this host if it is ahead",
    ),
    (
        "ot valid yet",
        "the server's certificate is not valid yet; set the clock of this host, or that of who makes certificates",
    ),
    (
        "NotValidYet",
        "the server's certificate is not valid yet; set the clock of this host, or that of who makes certificates",
    ),
    (
        "extended key usage",
        "the server's certificate is not for servers; make one whose extended key usage has serverAuth",
    ),
    (
        "InvalidPurpose",
        "the server's certificate is not for servers; make one whose extended key usage has serverAuth",
    ),
    (
        "UnsupportedSignature",
        "the server's certificate is signed in a way that is not safe or not known, as with SHA-1; make one with RSA or ECDSA \
         and SHA-256",
    ),
    (
        "UnsupportedCertVersion",
        "the server's certificate has an old form; make one of X.509 version 3, with the server's name as subjectAltName",
    ),
];

/// What rustls says before what is wrong with a certificate.
const INVALID: &str = "invalid peer certificate: ";

/// What is wrong with the server's certificate and what to do, if `text` is what rustls says of that. None: it is about
/// something else.
pub fn certificate_in_words(text: &str) -> Option<String> {
    let (_, wrong) = text.split_once(INVALID)?;
    if let Some(words) = wrong_name(wrong) {
        return Some(words);
    }
    let known = MEANINGS.iter().find(|(part, _)| wrong.contains(part));
    Some(match known {
        Some((_, meaning)) => (*meaning).into(),
        None => {
            format!("the server's certificate can't be used ({wrong}); give the server another one")
        }
    })
}

/// `certificate not valid for name "h"; certificate is only valid for DnsName("n") or IpAddress(192.0.2.1)`, or that it has no
/// name at all.
fn wrong_name(wrong: &str) -> Option<String> {
    if wrong.contains("NotValidForName") {
        return Some(not_for("this name", "others"));
    }
    let (_, rest) = wrong.split_once("not valid for name \"")?;
    let (asked, rest) = rest.split_once('"')?;
    let names = rest.split_once("only valid for ").map(|(_, names)| plain_names(names));
    Some(not_for(asked, names.as_deref().unwrap_or("no name at all")))
}

fn not_for(asked: &str, names: &str) -> String {
    format!(
        "the server's certificate is not for {asked}, but for {names}; write a name that it has in the address, or make one \
         that has {asked} as subjectAltName"
    )
}

/// The names without what the library calls their kinds.
fn plain_names(names: &str) -> String {
    names.replace("DnsName(", "").replace("IpAddress(", "").replace([')', '"'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(wrong: &str) -> String {
        certificate_in_words(&format!("{INVALID}{wrong}")).unwrap()
    }

    #[test]
    fn what_is_wrong_with_a_certificate_is_said_with_what_to_do() {
        for (wrong, said) in [
            ("Other(OtherError(CaUsedAsEndEntity))", "that of an authority (CA:TRUE)"),
            ("UnknownIssuer", "name that authority's own certificate"),
            ("Expired", "has expired; renew it"),
            (
                "certificate expired: verification time 9 (UNIX), but certificate is not valid after 7 (2 seconds ago)",
                "has expired; renew it",
            ),
            (
                "certificate not valid yet: verification time 7 (UNIX), but certificate is not valid before 9 (2 seconds in future)",
                "not valid yet; set the clock",
            ),
            ("BadSignature", "not signed by the authority that it names"),
            ("Revoked", "has revoked"),
            (
                "certificate does not allow extended key usage for server authentication, allows x",
                "serverAuth",
            ),
            ("Other(OtherError(UnsupportedCertVersion))", "version 3"),
        ] {
            let found = words(wrong);
            assert!(found.contains(said), "{wrong}: {found}");
            assert!(!found.contains("OtherError") && !found.contains("UNIX"), "{found}");
        }
        assert!(
            words("Other(OtherError(Newer))").contains("can't be used (Other(OtherError(Newer)))")
        );
        assert_eq!(certificate_in_words("Connection refused"), None);
    }

    #[test]
    fn a_certificate_for_another_name_is_said_with_its_names() {
        let wrong = "certificate not valid for name \"nats\"; certificate is only valid for DnsName(\"bus\") or IpAddress(192.0.2.1)";
        let said = words(wrong);
        assert!(said.contains("is not for nats, but for bus or 192.0.2.1;"), "{said}");
        let none = "certificate not valid for name \"nats\"; certificate is not valid for any names (according to its subjectAltName extension)";
        assert!(words(none).contains("but for no name at all"), "{}", words(none));
    }

    #[test]
    fn each_part_can_be_found() {
        for (number, (part, meaning)) in MEANINGS.iter().enumerate() {
            let first = MEANINGS.iter().position(|(other, _)| part.contains(other));
            assert_eq!(first, Some(number), "{part} ({meaning}) is hidden by one before it");
        }
    }
}
