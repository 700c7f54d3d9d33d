//! How a client session handles peers that are not goodput, or not this version of it.

use std::time::{Duration, Instant};

use goodput_model::{FarHeads, Known, PacketHead};

use super::super::messages::{About, Accept, Captured, Hello, HexCookie, Message};
use super::super::preamble::Role;
use super::*;
use crate::pair::{client_config, client_key, host, origin};
use crate::session::{Cookie, Output, Session};

fn client(token: Option<&str>) -> ClientSession {
    let mut session = ClientSession::new(origin(), client_config(token));
    while session.poll().is_some() {}
    session
}

/// Feeds the session and lets time pass until it ends; the error and when.
fn ends(mut session: ClientSession, pieces: &[&[u8]], closes: bool) -> (WireError, Duration) {
    let mut now = origin();
    for piece in pieces {
        now += Duration::from_millis(50);
        if let Err(error) = session.handle(now, Input::Received(piece.to_vec())) {
            return (error, now - origin());
        }
    }
    if closes && let Err(error) = session.handle(now, Input::Closed) {
        return (error, now - origin());
    }
    loop {
        let at: Instant = session.next_timeout().expect("an open session has a deadline");
        if let Err(error) = session.handle_timeout(at) {
            return (error, at - origin());
        }
    }
}

fn seems(pieces: &[&[u8]], closes: bool) -> (String, Duration) {
    match ends(client(None), pieces, closes) {
        (WireError::Foreign { seems }, after) => (seems, after),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_whole_line_is_named_at_once() {
    for (line, name) in [
        (&b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"[..], "SSH"),
        (b"HTTP/1.1 400 Bad Request\r\n", "HTTP"),
        (b"220 mx.example.org ESMTP\r\n", "SMTP"),
        (b"220 ProFTPD Server\r\n", "FTP"),
        (b"KO\n", "nuttcp"),
    ] {
        let (seems, after) = seems(&[line], false);
        assert!(seems.contains(name), "{seems}");
        assert_eq!(after, Duration::from_millis(50));
    }
}

#[test]
fn a_greeting_in_pieces_is_waited_for() {
    let pieces: Vec<&[u8]> = vec![b"2", b"2", b"0 mx ES", b"MTP\r\n"];
    assert!(seems(&pieces, false).0.contains("SMTP"));
}

#[test]
fn what_has_no_line_is_named_after_half_a_second_or_at_the_end() {
    let half = Duration::from_millis(550);
    for (first, name) in
        [(&[9u8][..], "iperf3"), (&[0xff], "iperf3"), (b"\x15\x03\x03\0\x02\x02\x32", "TLS")]
    {
        let (waited, after) = seems(&[first], false);
        assert!(waited.contains(name), "{waited}");
        assert_eq!(after, half);
        let (closed, after) = seems(&[first], true);
        assert!(closed.contains(name), "{closed}");
        assert_eq!(after, Duration::from_millis(50));
    }
}

#[test]
fn silence_and_a_closed_door_have_their_words() {
    let (silent, after) = ends(client(None), &[], false);
    assert!(
        matches!(&silent, WireError::TimedOut(why) if why.contains("said nothing")),
        "{silent}"
    );
    // The third copy of a lost packet leaves after 7 s.
    assert_eq!(after, Duration::from_secs(8));
    // Known causes come first; no other cause is certain.
    let closed = ends(client(None), &[], true).0.to_string();
    assert!(closed.starts_with("the server closed the connection without an answer; "), "{closed}");
    for likely in ["--deny", "full", "another program", "try again later"] {
        assert!(closed.contains(likely), "{likely} in {closed}");
    }
    assert!(!closed.contains("too old"), "{closed}");
}

fn said(message: &Message) -> Vec<u8> {
    let mut bytes = Role::Control.preamble().to_vec();
    let body = serde_json::to_vec(message).unwrap();
    crate::frame::encode::<4>(&body, &mut bytes).unwrap();
    bytes
}

#[test]
fn another_version_is_reported_by_both_numbers() {
    let mut hello = Hello::of(&host("far"), 0).unwrap();
    hello.version = 2;
    let bytes = said(&Message::Hello(hello));
    let (error, _) = ends(client(None), &[&bytes], false);
    assert_eq!(error, WireError::Version { ours: 1, theirs: 2 });
}

#[test]
fn a_client_with_a_token_never_goes_on_in_the_clear() {
    let bytes = said(&Message::Hello(Hello::of(&host("far"), 0).unwrap()));
    let (error, _) = ends(client(Some("mine")), &[&bytes], false);
    assert!(matches!(error, WireError::Protocol(_)), "{error:?}");
}

#[test]
fn a_client_without_a_token_expects_no_handshake() {
    let (error, _) = ends(client(None), &[&Role::Secured.preamble()], false);
    assert!(matches!(error, WireError::Protocol(_)), "{error:?}");
}

/// The server doesn't know the role, and sends nothing (server/tests.rs).
#[test]
fn a_server_that_is_too_old_for_keys_is_named() {
    let config = ClientConfig { key: Some(client_key(1, None)), ..client_config(None) };
    let mut session = ClientSession::new(origin(), config);
    while session.poll().is_some() {}
    let error = ends(session, &[], true).0.to_string();
    for likely in ["without an answer", "--deny", "too old for keys", "--no-key"] {
        assert!(error.contains(likely), "{likely} in {error}");
    }
}

#[test]
fn the_hello_provokes_services_that_wait_for_a_line() {
    let mut session = ClientSession::new(origin(), client_config(None));
    let mut sent = Vec::new();
    while let Some(Output::Send(bytes)) = session.poll() {
        sent.extend(bytes);
    }
    assert!(sent.starts_with(b"goodputc") && sent.ends_with(b"\r\n\r\n"));
}

#[test]
fn a_server_that_speaks_out_of_turn_is_refused() {
    let hello = said(&Message::Hello(Hello::of(&host("far"), 0).unwrap()));
    for text in [
        &br#"{"begin":{"measurement":0}}"#[..],
        br#"{"accept":{"measurement":1,"cookies":[],"longest_s":1}}"#,
        br#"{"hello":{"version":1}}"#,
        br#"{"propose":{}}"#,
        b"[]",
    ] {
        let mut bytes = hello.clone();
        crate::frame::encode::<4>(text, &mut bytes).unwrap();
        let (error, _) = ends(client(None), &[&bytes], false);
        assert!(matches!(error, WireError::Protocol(_)), "{error:?}");
    }
}

#[test]
fn an_acceptance_of_thousands_of_flows_is_taken() {
    let mut session = client(None);
    let (now, flows) = (origin(), 5000u16);
    let say = |session: &mut ClientSession, message: &Message| {
        let mut bytes = Vec::new();
        crate::frame::encode::<4>(&serde_json::to_vec(message).unwrap(), &mut bytes).unwrap();
        session.handle(now, Input::Received(bytes)).unwrap();
    };
    session.handle(now, Input::Received(Role::Control.preamble().to_vec())).unwrap();
    say(&mut session, &Message::Hello(Hello::of(&host("far"), 0).unwrap()));
    let plan = Box::new(Plan { flows, ..Plan::standard() });
    session.handle(now, Input::Propose(plan)).unwrap();
    let cookies = vec![HexCookie(Cookie([7; 16])); usize::from(flows)];
    let accept = Accept {
        measurement: 1,
        cookies,
        data_port: None,
        echo: None,
        receive_hash: None,
        capture: None,
        sets: Vec::new(),
        longest_s: 1.0,
        note: None,
    };
    say(&mut session, &Message::Accept(accept));
    let outputs: Vec<_> = std::iter::from_fn(|| session.poll()).collect();
    let opens = |output: &Output| matches!(output, Output::Do(Action::OpenFlows { tickets, .. }) if tickets.len() == 5000);
    assert!(outputs.iter().any(opens), "{outputs:?}");
}

/// An older server ignores unknown options, so it accepts the plan.
#[test]
fn a_server_that_does_not_know_an_option_is_not_measured_with() {
    for (sets, refused) in [(Vec::new(), true), (vec!["quickack".to_owned()], false)] {
        let (mut session, now) = (client(None), origin());
        let mut say = |message: &[u8]| {
            session.handle(now, Input::Received(message.to_vec())).unwrap();
        };
        say(&Role::Control.preamble());
        let framed = |message: &Message| {
            let mut bytes = Vec::new();
            crate::frame::encode::<4>(&serde_json::to_vec(message).unwrap(), &mut bytes).unwrap();
            bytes
        };
        say(&framed(&Message::Hello(Hello::of(&host("far"), 0).unwrap())));
        let mut plan = Plan::standard();
        plan.socket.quickack = Some(true);
        session.handle(now, Input::Propose(Box::new(plan))).unwrap();
        let accept = Accept {
            measurement: 1,
            cookies: vec![HexCookie(Cookie([7; 16]))],
            data_port: None,
            echo: None,
            receive_hash: None,
            capture: None,
            sets,
            longest_s: 1.0,
            note: None,
        };
        let accept = framed(&Message::Accept(accept));
        session.handle(now, Input::Received(accept)).unwrap();
        let outputs: Vec<_> = std::iter::from_fn(|| session.poll()).collect();
        let says = |output: &Output| matches!(output, Output::Do(Action::Refused(why)) if why.contains("--quickack"));
        assert_eq!(outputs.iter().any(says), refused, "{outputs:?}");
        let opens = |output: &Output| matches!(output, Output::Do(Action::OpenFlows { .. }));
        assert_eq!(outputs.iter().any(opens), !refused, "{outputs:?}");
    }
}

/// A session that has proposed a plan with a capture, and what a server says to it.
fn asks_for_a_capture(capture: Option<Known<String>>) -> (ClientSession, Vec<Output>) {
    let (mut session, now) = (client(None), origin());
    session.handle(now, Input::Received(Role::Control.preamble().to_vec())).unwrap();
    hears(&mut session, &Message::Hello(Hello::of(&host("far"), 0).unwrap())).unwrap();
    let plan = Plan { far_capture: true, ..Plan::standard() };
    session.handle(now, Input::Propose(Box::new(plan))).unwrap();
    let accept = Accept {
        measurement: 1,
        cookies: vec![HexCookie(Cookie([7; 16]))],
        data_port: None,
        echo: None,
        receive_hash: None,
        capture,
        sets: Vec::new(),
        longest_s: 1.0,
        note: None,
    };
    hears(&mut session, &Message::Accept(accept)).unwrap();
    session.handle(now, Input::FlowsReady).unwrap();
    hears(&mut session, &Message::FlowsReady(About { measurement: 1 })).unwrap();
    session.handle(now, Input::Begin).unwrap();
    let outputs = std::iter::from_fn(|| session.poll()).collect();
    (session, outputs)
}

fn hears(session: &mut ClientSession, message: &Message) -> Result<(), WireError> {
    let mut bytes = Vec::new();
    crate::frame::encode::<4>(&serde_json::to_vec(message).unwrap(), &mut bytes).unwrap();
    session.handle(origin(), Input::Received(bytes))
}

fn heads_of(bytes: usize) -> Message {
    let mut part = Box::new(FarHeads::default());
    let head = PacketHead { at_ns: 1, bytes: 1500, is_outgoing: false, head: &[0x45; 100] };
    while part.heads.bytes() < bytes && part.heads.push(&head, usize::MAX) {}
    Message::Captured(Captured { measurement: 1, part })
}

/// An older server ignores the wish, and the measurement goes on.
#[test]
fn a_server_that_captures_nothing_is_measured_with() {
    let older = asks_for_a_capture(None);
    let forbids = asks_for_a_capture(Some(Known::missing("its operator forbids it")));
    for ((mut session, outputs), words) in [(older, "older"), (forbids, "forbids")] {
        let says = |output: &Output| {
            matches!(output, Output::Do(Action::PeerCaptures(Known::Missing(why)))
                if why.missing.contains(words))
        };
        assert_eq!(outputs.iter().filter(|output| says(output)).count(), 1, "{outputs:?}");
        assert!(outputs.iter().any(|output| matches!(output, Output::Do(Action::Begin))));
        let unasked = hears(&mut session, &heads_of(1)).unwrap_err();
        assert!(unasked.to_string().contains("more captured packets than agreed"), "{unasked}");
    }
}

#[test]
fn a_server_sends_no_more_heads_than_agreed() {
    let (mut session, _) = asks_for_a_capture(Some(Known::Value("eth0".into())));
    let part = heads_of(1 << 20);
    let heard = (0..8).try_for_each(|_| hears(&mut session, &part));
    assert!(heard.unwrap_err().to_string().contains("more captured packets than agreed"));
}
