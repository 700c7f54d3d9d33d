//! Recognises a peer that is not goodput by its first bytes.

/// How a protocol's first bytes begin, and the protocol's name.
struct Sign {
    begins: &'static [u8],
    seems: &'static str,
}

/// How servers answer, or greet before they are asked.
///
/// TLS records: RFC 8446 section 5.1. FTP and SMTP greetings: RFC 959, RFC 5321. SSH: RFC 4253
/// section 4.2. IMAP, POP3: RFC 9051, RFC 1939. nuttcp answers an unknown line with `KO`; iperf3
/// answers any 37 bytes with its state 9 (send parameters), or -1 while it is busy.
const SERVERS: &[Sign] = &[
    Sign { begins: b"SSH-", seems: "an SSH server" },
    Sign { begins: b"HTTP/", seems: "a web server (HTTP)" },
    Sign { begins: b"<!DOCTYPE", seems: "a web server (HTTP)" },
    Sign { begins: b"<html", seems: "a web server (HTTP)" },
    Sign { begins: b"\x15\x03", seems: "a TLS service, such as HTTPS" },
    Sign { begins: b"KO", seems: "a nuttcp server; try nuttcp://" },
    Sign { begins: b"+OK", seems: "a POP3 mail server" },
    Sign { begins: b"* OK", seems: "an IMAP mail server" },
    Sign { begins: b"RFB ", seems: "a VNC server" },
    Sign { begins: b"-ERR", seems: "a Redis server" },
    Sign { begins: b"\xff\xfd", seems: "a telnet server" },
    Sign { begins: b"\xff\xfb", seems: "a telnet server" },
];

/// How clients open.
const CLIENTS: &[Sign] = &[
    Sign { begins: b"GET ", seems: "a web client (HTTP)" },
    Sign { begins: b"HEAD ", seems: "a web client (HTTP)" },
    Sign { begins: b"POST ", seems: "a web client (HTTP)" },
    Sign { begins: b"OPTIONS ", seems: "a web client (HTTP)" },
    Sign { begins: b"CONNECT ", seems: "a web client (HTTP)" },
    Sign { begins: b"PRI * HTTP/2", seems: "a web client (HTTP/2)" },
    Sign { begins: b"\x16\x03", seems: "a TLS client, such as a web browser" },
    Sign { begins: b"SSH-", seems: "an SSH client" },
    Sign { begins: b"EHLO", seems: "a mail client (SMTP)" },
    Sign { begins: b"HELO nuttcp", seems: "a nuttcp client" },
    Sign { begins: b"HELO", seems: "a mail client (SMTP)" },
];

/// At most this many bytes of an unknown protocol are shown.
const SHOWN_BYTES: usize = 24;

/// Length of an iperf3 cookie: 36 printable characters and a NUL (iperf3 source, `iperf_util.c`).
const IPERF3_COOKIE_BYTES: usize = 37;

/// Describes a server that answered `bytes`.
pub fn server(bytes: &[u8]) -> String {
    if bytes.starts_with(b"220") {
        return greeting_220(bytes).into();
    }
    match bytes {
        [0x09] | [0xff] => "an iperf3 server; try iperf3://".into(),
        _ => named(SERVERS, bytes),
    }
}

/// Whether a client of iperf3 (`iperf.h`: the words that open and answer a stream up to 3.11 and
/// since 3.12, in either byte order) or of nuttcp (`BOD0`, `EOD1` and the like) opens a flow with
/// this datagram.
pub fn opens_a_flow(datagram: &[u8]) -> bool {
    match datagram {
        [b'B' | b'E', b'O', b'D', _] => true,
        word => {
            matches!(word, b"9876" | b"6789" | [0x15, 0xcd, 0x5b, 0x07] | [7, 0x5b, 0xcd, 0x15])
        }
    }
}

/// Describes a client that opened with `bytes`, if it is certain.
pub fn known_client(bytes: &[u8]) -> Option<String> {
    let is_known = is_cookie(bytes) || CLIENTS.iter().any(|sign| bytes.starts_with(sign.begins));
    is_known.then(|| client(bytes))
}

fn is_cookie(bytes: &[u8]) -> bool {
    bytes.get(..IPERF3_COOKIE_BYTES).is_some_and(|cookie| {
        cookie[IPERF3_COOKIE_BYTES - 1] == 0
            && cookie[..IPERF3_COOKIE_BYTES - 1].iter().all(u8::is_ascii_graphic)
    })
}

/// Describes a client that opened with `bytes`.
pub fn client(bytes: &[u8]) -> String {
    if is_cookie(bytes) { "an iperf3 client".into() } else { named(CLIENTS, bytes) }
}

fn greeting_220(bytes: &[u8]) -> &'static str {
    let text = String::from_utf8_lossy(bytes).to_ascii_uppercase();
    match (text.contains("SMTP"), text.contains("FTP")) {
        (true, _) => "a mail server (SMTP)",
        (false, true) => "an FTP server",
        (false, false) => "an FTP or mail server (it greets with 220)",
    }
}

fn named(signs: &[Sign], bytes: &[u8]) -> String {
    match signs.iter().find(|sign| bytes.starts_with(sign.begins)) {
        Some(sign) => sign.seems.into(),
        None => {
            let shown = &bytes[..bytes.len().min(SHOWN_BYTES)];
            format!("something that begins with \"{}\"", shown.escape_ascii())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn greetings_are_distinguished() {
        assert_eq!(server(b"220 mx.example.org ESMTP Postfix\r\n"), "a mail server (SMTP)");
        assert_eq!(server(b"220 (vsFTPd 3.0.3)\r\n"), "an FTP server");
        assert!(server(b"220 welcome\r\n").contains("FTP or mail"));
    }

    #[test]
    fn a_lone_state_byte_is_iperf3_and_a_telnet_option_is_not() {
        assert!(server(&[9]).contains("iperf3://"));
        assert!(server(&[0xff]).contains("iperf3://"));
        assert_eq!(server(b"\xff\xfd\x18"), "a telnet server");
    }

    #[test]
    fn the_unknown_is_shown_escaped_and_short() {
        let seems = server(&[b'"', 0, b'\n', 0x1b, b'z'].repeat(20));
        assert!(seems.starts_with(r#"something that begins with "\"\x00\n\x1bz"#), "{seems}");
        assert!(seems.len() < 120 && seems.is_ascii(), "{seems}");
    }

    #[test]
    fn an_iperf3_cookie_is_known_by_its_nul() {
        let cookie = [vec![b'a'; 36], vec![0]].concat();
        assert_eq!(client(&cookie), "an iperf3 client");
        assert!(client(b"GET / HTTP/1.1\r\n").contains("web client"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_named(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(server(&bytes).is_ascii() && client(&bytes).is_ascii());
        }
    }
}
