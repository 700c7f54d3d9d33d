//! Conversations that are cut short or spoilt, or whose peer is something else.

use std::time::Duration;

use super::super::ALL;
use super::{TOKENS, joined, measure, observing, observing_with_tokens};
use crate::pair::{Cut, Link, Pair, Peer, client_key, knows, origin, server_config};
use crate::patience;
use crate::session::{Action, Input, Protocol};
use proptest::prelude::*;

/// The longest time until either end notices: a measurement with its allowances.
const DEADLINE: Duration = Duration::from_secs(120);

/// The same if a byte arrives changed. A changed length makes one end wait for the rest of a message, and the other
/// end's pings look like this rest: the conversation ends when the other end has been idle for too long (10 min).
const DEADLINE_CHANGED: Duration = Duration::from_secs(600 + 120);

/// Selects a direction of a pair.
type Side = fn(&mut Pair) -> &mut Link;

const SIDES: [Side; 2] = [|pair| &mut pair.to_client, |pair| &mut pair.to_server];

fn whole_lengths(protocol: &Protocol, token: Option<&str>) -> [usize; 2] {
    let mut pair = joined(protocol, token, vec![measure()]);
    pair.run();
    [pair.to_client.sent, pair.to_server.sent]
}

/// Whether an end knows that something went wrong: from an error of its session, or from an aborted measurement.
fn went_wrong(pair: &Pair) -> bool {
    let failed = [&pair.client, &pair.server].iter().any(|peer| peer.error().is_some());
    failed || pair.client.count(|action| matches!(action, Action::Refused(_))) > 0
}

/// Cuts one direction after `at` bytes.
fn cut(protocol: &Protocol, token: Option<&str>, side: Side, at: usize, how: Cut) {
    let mut pair = joined(protocol, token, vec![measure()]);
    side(&mut pair).cut = Some((at, how));
    pair.run();
    let case = format!("{} cut after {at} bytes: {how:?}", protocol.id);
    // The driver reports a flow that is cut short, not the session.
    assert!(went_wrong(&pair) || !protocol.has_control, "{case}: both take it for a whole one");
    assert!(pair.elapsed() < DEADLINE, "{case}: {:?}", pair.elapsed());
}

#[test]
fn every_truncation_ends_with_an_error_by_its_deadline() {
    for protocol in ALL {
        let lengths = whole_lengths(protocol, None);
        for (side, length) in SIDES.into_iter().zip(lengths) {
            for at in 0..length {
                cut(protocol, None, side, at, Cut::Silence);
                cut(protocol, None, side, at, Cut::Close);
            }
        }
    }
}

#[test]
fn truncations_of_an_encrypted_conversation_end_with_an_error_as_well() {
    for protocol in observing() {
        let lengths = whole_lengths(protocol, TOKENS[1]);
        for (side, length) in SIDES.into_iter().zip(lengths) {
            // Encryption is slow in test builds; a prime step reaches all kinds of positions.
            for at in (0..length).step_by(23) {
                cut(protocol, TOKENS[1], side, at, Cut::Silence);
                cut(protocol, TOKENS[1], side, at, Cut::Close);
            }
        }
    }
}

#[test]
fn a_changed_byte_of_an_encrypted_conversation_ends_it() {
    for protocol in observing() {
        let lengths = whole_lengths(protocol, TOKENS[1]);
        for (side, length) in SIDES.into_iter().zip(lengths) {
            for at in (0..length).step_by(29) {
                let mut pair = joined(protocol, TOKENS[1], vec![measure()]);
                side(&mut pair).flip = Some((at, 0x10));
                pair.run();
                assert!(went_wrong(&pair), "byte {at}");
            }
        }
    }
}

#[test]
fn silence_from_the_start_ends_both_sides_at_the_greeting() {
    for (protocol, token) in observing_with_tokens() {
        let mut unreported = joined(protocol, token, vec![measure()]);
        unreported.to_client.cut = Some((0, Cut::Silence));
        unreported.run();
        assert_ends_within_the_greeting(&unreported.client);
    }
    for protocol in ALL {
        let mut pair = joined(protocol, None, vec![measure()]);
        pair.to_server.cut = Some((0, Cut::Silence));
        pair.run();
        // Without a control connection a client receives nothing.
        let waiting = if protocol.has_control { &pair.client } else { &pair.server };
        assert_ends_within_the_greeting(waiting);
    }
}

fn assert_ends_within_the_greeting(peer: &Peer) {
    assert!(peer.error().is_some(), "{:?}", peer.ended);
    let took = peer.ended_at.unwrap() - origin();
    assert!(took <= patience::GREETING_TIMEOUT, "{took:?}: {:?}", peer.ended);
}

#[test]
fn a_host_that_does_nothing_ends_no_later() {
    type Deafen = fn(&mut Pair);
    let ends: [Deafen; 2] =
        [|pair| pair.client.script.deaf = true, |pair| pair.server.script.deaf = true];
    for (protocol, deafen) in ALL.iter().flat_map(|p| ends.map(|end| (p, end))) {
        let mut pair = joined(protocol, None, vec![measure()]);
        deafen(&mut pair);
        pair.run();
        assert!(went_wrong(&pair), "{}", protocol.id);
    }
}

/// Feeds a session that is alone with bytes and time until it ends.
fn alone(mut session: Box<dyn crate::session::Session>, pieces: &[Vec<u8>]) {
    let mut now = origin();
    for piece in pieces {
        now += Duration::from_millis(10);
        if session.handle(now, Input::Received(piece.clone())).is_err() {
            return;
        }
        while session.poll().is_some() {}
    }
    while let Some(at) = session.next_timeout() {
        assert!(at < origin() + Duration::from_secs(3600), "never ends");
        now = now.max(at);
        if session.handle_timeout(now).is_err() {
            return;
        }
        while session.poll().is_some() {}
    }
}

fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let words = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..80),
        Just(b"goodputc".to_vec()),
        Just(b"goodputs".to_vec()),
        Just(b"goodputk".to_vec()),
        Just([&b"goodputk\0\x20"[..], &[9; 32]].concat()),
        Just([&b"goodputk\0\x60"[..], &[9; 96]].concat()),
        Just([&b"\0\x40"[..], &[9; 64]].concat()),
        Just(b"\0\0\0\x0b{\"ping\":{}}".to_vec()),
        Just(b"\0\0\0\x19{\"hello\":{\"version\":1}}  ".to_vec()),
    ];
    proptest::collection::vec(words, 0..6)
}

/// In the server's messages: they contain all lengths.
#[test]
fn a_changed_length_is_noticed_in_the_end() {
    for protocol in observing() {
        let [to_client, _] = whole_lengths(protocol, None);
        for at in 0..to_client {
            let mut pair = joined(protocol, None, vec![measure()]);
            pair.to_client.flip = Some((at, 2));
            pair.run();
            assert!(pair.elapsed() < DEADLINE_CHANGED, "{}: byte {at}", protocol.id);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn garbage_never_panics_and_never_hangs(pieces in pieces(), with_token: bool, with_keys: bool) {
        let token = TOKENS[usize::from(with_token)];
        for protocol in ALL {
            let (mut client, mut server) = (crate::pair::client_config(token), server_config(token));
            if with_keys {
                (client.key, server.keys) = (Some(client_key(1, Some(2))), Some(knows("", 2)));
            }
            alone((protocol.server)(origin(), server), &pieces);
            alone((protocol.client)(origin(), client), &pieces);
        }
    }

    #[test]
    fn a_changed_byte_in_the_clear_never_panics_and_never_hangs(
        at in 0usize..4000, bits in 1u8.., to_client: bool,
    ) {
        for protocol in ALL {
            let mut pair = joined(protocol, None, vec![measure()]);
            SIDES[usize::from(!to_client)](&mut pair).flip = Some((at, bits));
            pair.run();
            prop_assert!(pair.elapsed() < DEADLINE_CHANGED);
        }
    }
}
