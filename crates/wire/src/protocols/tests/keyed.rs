//! Clients and servers that know each other by keys of their own.

use std::time::Duration;

use super::measure;
use crate::error::WireError;
use crate::keys::{Clients, KeyAuthorization};
use crate::pair::{
    Cut, Link, Pair, Step, client_config, client_key, key, knows, limits, server_config,
};
use crate::protocols::goodput::PROTOCOL;
use crate::session::{Action, ClientKey, Credential, Limits, SettingRequest};
use goodput_model::{Length, Plan};

/// The server's entry for the client with key number 1.
const ANN: &str = "ann measure KEY1";

fn joined(
    client: ClientKey,
    server: Option<KeyAuthorization>,
    required: bool,
    steps: Vec<Step>,
) -> Pair {
    let (mut near, mut far) = (client_config(None), server_config(None));
    (near.key, far.keys, far.credential_required) = (Some(client), server, required);
    far.limits = Limits { duration_s: 60.0, ..limits() };
    Pair::new(&PROTOCOL, near, far, steps)
}

fn known(steps: Vec<Step>) -> Pair {
    joined(client_key(1, Some(2)), Some(knows(ANN, 2)), true, steps)
}

fn proven(pair: &Pair) -> Vec<String> {
    let name = |action: &Action| match action {
        Action::Proven(credential) => Some(credential.to_string()),
        _ => None,
    };
    pair.server.actions.iter().filter_map(name).collect()
}

fn notes(pair: &Pair) -> String {
    let text = |action: &Action| match action {
        Action::Note(text) => Some(text.clone()),
        _ => None,
    };
    pair.server.actions.iter().filter_map(text).collect()
}

fn measured(pair: &Pair) -> usize {
    pair.client.count(|action| matches!(action, Action::PeerReported(_)))
}

fn not_permitted(error: Option<&WireError>) -> String {
    match error {
        Some(WireError::NotPermitted(why)) => why.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_that_is_known_measures_whatever_the_pieces() {
    for piece in [1, 7, usize::MAX] {
        let mut pair = known(vec![measure(), measure()]);
        (pair.to_client.piece, pair.to_server.piece) = (piece, piece);
        pair.run();
        assert_eq!((&pair.client.ended, &pair.server.ended), (&Some(Ok(())), &Some(Ok(()))));
        assert_eq!((measured(&pair), proven(&pair)), (2, vec!["key ann".to_string()]));
        for peer in [&pair.client, &pair.server] {
            assert_eq!(peer.count(|a| matches!(a, Action::Greeted { secured: true, .. })), 1);
        }
        let server = key(2).public();
        assert_eq!(pair.client.count(|a| matches!(a, Action::ServerShowed(k) if *k == server)), 1);
    }
}

#[test]
fn a_key_that_is_not_known_proves_nothing() {
    let mut pair = joined(client_key(3, None), Some(knows(ANN, 2)), false, vec![measure()]);
    pair.run();
    assert_eq!((measured(&pair), proven(&pair)), (1, vec![]));
    assert!(notes(&pair).contains(&key(3).public().to_string()), "{}", notes(&pair));
    let mut pair = joined(client_key(3, None), Some(knows(ANN, 2)), true, vec![measure()]);
    pair.run();
    assert_eq!(measured(&pair), 0);
    for peer in [&pair.client, &pair.server] {
        let why = not_permitted(peer.error());
        assert!(why.contains(&key(3).public().to_string()), "{why}");
    }
}

#[test]
fn a_key_from_the_wrong_place_proves_nothing() {
    let far_away = format!("{ANN} from=203.0.113.0/24");
    let server = Some(knows(&far_away, 2));
    let mut pair = joined(client_key(1, None), server, true, vec![measure()]);
    pair.run();
    assert!(not_permitted(pair.server.error()).contains("192.0.2.1"));
}

#[test]
fn a_server_with_another_key_is_left() {
    let mut pair = joined(client_key(1, Some(4)), Some(knows(ANN, 2)), false, vec![measure()]);
    pair.run();
    let why = not_permitted(pair.client.error());
    assert!(why.contains("line 1 of known_servers"), "{why}");
    assert!(not_permitted(pair.server.error()).contains("another key"));
    assert_eq!((measured(&pair), proven(&pair)), (0, vec![]));
    // The server doesn't know yet whose key it was.
    assert!(pair.server.actions.is_empty(), "{:?}", pair.server.actions);
}

#[test]
fn a_client_with_a_key_never_goes_on_in_the_clear() {
    let unusable = KeyAuthorization { clients: Clients::default(), ..knows(ANN, 2) };
    for (server, word) in [(None, "--authorized-keys"), (Some(unusable), "at the moment")] {
        let mut pair = joined(client_key(1, None), server, false, vec![measure()]);
        pair.run();
        let why = not_permitted(pair.client.error());
        assert!(why.contains(word) && measured(&pair) == 0, "{why}");
    }
}

#[test]
fn what_a_key_may_do_takes_the_place_of_what_everybody_may() {
    let longer = Plan { length: Length::Seconds(600.0), ..Plan::standard() };
    for (options, done) in [("", 0), (" max-duration=10m", 1), (" max-duration=10m max-rate=1k", 0)]
    {
        let plan = Plan { rate_bits_per_s: Some(goodput_model::BitRate(1e6)), ..longer.clone() };
        let server = Some(knows(&format!("{ANN}{options}"), 2));
        let mut pair = joined(client_key(1, Some(2)), server, true, vec![Step::Measure(plan)]);
        pair.run();
        assert_eq!(measured(&pair), done, "{options}");
    }
}

#[test]
fn where_clients_have_keys_the_token_is_for_measuring() {
    for (keys, settings) in [(None, true), (Some(knows(ANN, 2)), false)] {
        let (near, mut far) = (client_config(Some("shared")), server_config(Some("shared")));
        far.keys = keys;
        let read = SettingRequest::Read("sysctl.net.ipv4.tcp_rmem".parse().unwrap());
        let mut pair = Pair::new(&PROTOCOL, near, far, vec![Step::Ask(read), measure()]);
        pair.run();
        let token = Credential::Token { settings };
        let is_token = |action: &Action| matches!(action, Action::Proven(c) if *c == token);
        assert_eq!((pair.server.count(is_token), measured(&pair)), (1, 1), "{settings}");
    }
}

#[test]
fn every_truncation_and_every_changed_byte_ends_it() {
    type Side = fn(&mut Pair) -> &mut Link;
    let sides: [Side; 2] = [|pair| &mut pair.to_client, |pair| &mut pair.to_server];
    let mut whole = known(vec![measure()]);
    whole.run();
    // Encryption is slow in test builds; a prime step reaches all kinds of positions, and more of the handshake.
    let handshake = 8 + 2 + 96 + 2 + 64 + 2;
    for (side, length) in sides.into_iter().zip([whole.to_client.sent, whole.to_server.sent]) {
        let later = (handshake..length).step_by(397);
        for at in (0..handshake).step_by(11).chain(later) {
            for spoil in 0..3 {
                let mut pair = known(vec![measure()]);
                let link = side(&mut pair);
                match spoil {
                    0 => link.cut = Some((at, Cut::Silence)),
                    1 => link.cut = Some((at, Cut::Close)),
                    _ => link.flip = Some((at, 0x10)),
                }
                pair.run();
                let failed = pair.client.error().or(pair.server.error()).is_some();
                let refused = pair.client.count(|a| matches!(a, Action::Refused(_))) > 0;
                assert!(failed || refused, "byte {at}, {spoil}");
                assert!(pair.elapsed() < Duration::from_secs(120), "{:?}", pair.elapsed());
            }
        }
    }
}
