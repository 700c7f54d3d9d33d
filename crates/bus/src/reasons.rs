//! What NATS and its library say, in words that say what it means and what to do. Nowhere else are their words read.

use std::error::Error;

use async_nats::ConnectErrorKind;
use goodput_model::certificate_in_words;

/// Parts of their messages in small letters, and what they mean. The first that is found counts. The words are those of
/// nats-server (server/errors.json) and of async-nats 0.51 (the `Display` of its kinds of errors).
const MEANINGS: [(&str, &str); 26] = [
    ("insufficient resources", NO_ROOM),
    ("insufficient storage", NO_ROOM),
    ("resource limits exceeded", NO_ROOM),
    ("no space left", "the disk of the NATS server is full; make room there"),
    ("maximum bytes exceeded", FULL),
    ("maximum messages exceeded", FULL),
    ("maximum messages per subject exceeded", FULL),
    (
        "jetstream not enabled for account",
        "the account of this user has no JetStream; allow it in the server's configuration",
    ),
    ("jetstream not enabled", NO_JETSTREAM),
    ("jetstream unavailable", NO_JETSTREAM),
    ("temporarily unavailable", NO_LEADER),
    ("no suitable peers", "too few servers of the cluster run; start the others"),
    ("subjects overlap", "another stream has its subjects; use a NATS account for goodput alone"),
    (
        "name already in use",
        "a stream of this name was made with other settings; use a NATS account for goodput alone",
    ),
    ("missed idle heartbeat", SILENT),
    ("consumer deleted", "someone has removed the consumer"),
    ("consumer not found", "the consumer is gone"),
    ("no stream found", GONE),
    ("stream not found", GONE),
    ("wrong last", "someone else has written there meanwhile"),
    ("payload size exceeded", "the message is longer than the server takes (max_payload)"),
    ("timed out", NO_ANSWER),
    ("no responders", NOBODY),
    ("failed to parse", "the answer of the server can't be read; take nats-server 2.9 or newer"),
    ("broken pipe", BROKEN),
    ("connection reset", BROKEN),
];

const NO_ROOM: &str = "the NATS server has no room left for streams; give JetStream more (max_file_store, max_memory_store)";
const FULL: &str = "the stream is full; give it more room (nats stream edit)";
const NO_JETSTREAM: &str = "the NATS server has no JetStream; start it with -js";
const NO_LEADER: &str = "the NATS servers are electing their leader";
const NO_ANSWER: &str =
    "the server gave no answer in time; it may be away, or the servers are electing their leader";
const NOBODY: &str = "nobody answers there";
const SILENT: &str =
    "the server has said nothing for some seconds: it is away, or has no such consumer any more";
const GONE: &str = "the stream is gone; it is looked for, and made again";
const BROKEN: &str = "the connection to the NATS server broke";

/// Whether this reason, in words, is that the servers of NATS do not answer.
pub(crate) fn is_away(why: &str) -> bool {
    [NO_LEADER, NO_ANSWER, NOBODY, BROKEN, SILENT].contains(&why)
}

/// Whether a server says that it has no room to reserve.
pub(crate) fn is_for_room(why: &(impl Error + ?Sized)) -> bool {
    in_words(why) == NO_ROOM
}

/// Why something failed, in words. What nobody has translated is quoted.
pub(crate) fn in_words(why: &(impl Error + ?Sized)) -> String {
    let text = why.to_string();
    let small = text.to_lowercase();
    tracing::debug!("NATS: {text}");
    match MEANINGS.iter().find(|(part, _)| small.contains(part)) {
        Some((_, meaning)) => (*meaning).into(),
        None => format!("NATS says: {text}"),
    }
}

/// Why there is no connection for this user, and what to do. `cause` is what lies below, such as an error of the system.
pub(crate) fn of_connecting(kind: ConnectErrorKind, cause: Option<&str>, user: &str) -> String {
    if let Some(why) = cause.and_then(of_tls) {
        return why;
    }
    let of_cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    let check = "check the address, and whether the server wants --creds or --nkey, and --tls-ca";
    match kind {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => format!(
            "the server does not let {user} in; name a key or credentials that it knows (--nkey, --creds). After `goodput \
             fleet keys`, give the server the new fleet.conf and reload it"
        ),
        ConnectErrorKind::ServerParse => {
            format!(
                "this is no address of a server{of_cause}; write nats://HOST:PORT or tls://HOST"
            )
        }
        ConnectErrorKind::Dns => format!("its name can't be resolved{of_cause}; check the address"),
        ConnectErrorKind::TimedOut => {
            "the server gave no answer in time; check the address and the firewall between".into()
        }
        ConnectErrorKind::Tls => format!(
            "there is no TLS with it{of_cause}; check --tls-ca, the name in the address, and the clock of this host"
        ),
        ConnectErrorKind::Io | ConnectErrorKind::MaxReconnects => match cause {
            Some(cause) => format!("{cause}; {check}"),
            None => format!("the connection failed; {check}"),
        },
    }
}

/// Why there is no TLS with a server, if that is what `cause` says: rustls's own words (its `Error`).
fn of_tls(cause: &str) -> Option<String> {
    if let Some(why) = certificate_in_words(cause) {
        return Some(format!("{why} (--tls-ca FILE)"));
    }
    if cause.contains("received corrupt message") {
        let why =
            "what answers there speaks no TLS; write nats:// instead of tls://, or check the port";
        return Some(why.into());
    }
    let (_, alert) = cause.split_once("received fatal alert: ")?;
    Some(format!("the server refuses TLS with this host ({alert}); the log of the server says why"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn meaning(text: &str) -> String {
        in_words(&io::Error::other(text))
    }

    #[test]
    fn the_words_of_nats_become_what_they_mean_and_what_to_do() {
        for (text, words) in [
            ("insufficient resources (code 503, error code 10023)", "no room left"),
            ("publish failed: maximum bytes exceeded", "the stream is full"),
            ("missed idle heartbeat", "said nothing for some seconds"),
            ("jetstream request timed out", "no answer in time"),
            ("timed out: didn't receive ack in time", "no answer in time"),
            ("JetStream not enabled for account (code 503, error code 10039)", "this user has no"),
            ("JetStream system temporarily unavailable", "electing their leader"),
            ("subjects overlap with an existing stream", "account for goodput alone"),
        ] {
            let said = meaning(text);
            assert!(said.contains(words), "{text}: {said}");
            assert!(!said.contains("NATS says"), "{said}");
        }
        assert_eq!(meaning("something new"), "NATS says: something new");
        for (text, away) in
            [("request timed out", true), ("Broken pipe", true), ("stream not found", false)]
        {
            assert_eq!(is_away(&meaning(text)), away, "{text}");
        }
    }

    #[test]
    fn each_part_can_be_found() {
        for (number, (part, meaning)) in MEANINGS.iter().enumerate() {
            assert_eq!(*part, part.to_lowercase());
            let first = MEANINGS.iter().position(|(other, _)| part.contains(other));
            assert_eq!(first, Some(number), "{part} ({meaning}) is hidden by one before it");
        }
    }

    #[test]
    fn who_can_t_connect_is_told_once_what_is_wrong() {
        let cause = Some("nats: authorization violation");
        let why = of_connecting(ConnectErrorKind::AuthorizationViolation, cause, "the key UX");
        assert!(why.contains("does not let the key UX in") && !why.contains("violation"), "{why}");
        let cause = Some("invalid peer certificate: NotValidYet");
        // The library gives an error of TLS the kind of one of the system.
        for kind in [ConnectErrorKind::Tls, ConnectErrorKind::Io] {
            let why = of_connecting(kind, cause, "a user");
            assert!(!why.contains("NotValidYet") && why.contains("clock of this host"), "{why}");
            assert!(why.contains("--tls-ca"), "{why}");
        }
        let cause = Some("received corrupt message of type InvalidContentType");
        let why = of_connecting(ConnectErrorKind::Io, cause, "a user");
        assert!(why.starts_with("what answers there speaks no TLS"), "{why}");
        let cause = Some("received fatal alert: CertificateRequired");
        let why = of_connecting(ConnectErrorKind::Io, cause, "a user");
        assert!(why.contains("(CertificateRequired); the log of the server"), "{why}");
        let why = of_connecting(ConnectErrorKind::Io, Some("Connection refused"), "a user");
        assert!(why.starts_with("Connection refused; check the address"), "{why}");
    }
}
