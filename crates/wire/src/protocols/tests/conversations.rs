//! Conversations without errors, for every protocol.

use std::time::Duration;

use super::super::ALL;
use super::{joined, measure};
use crate::pair::{Pair, Step, client_config, limits, server_config};
use crate::session::Action;
use goodput_model::{Length, Plan};

fn is_peer_report(action: &Action) -> bool {
    matches!(action, Action::PeerReported(_))
}

fn assert_complete(pair: &Pair, case: &str) {
    for (name, peer) in [("client", &pair.client), ("server", &pair.server)] {
        assert_eq!(peer.ended, Some(Ok(())), "{case}: {name}");
        assert_eq!(peer.count(|a| matches!(a, Action::Greeted { .. })), 1, "{case}: {name}");
        assert_eq!(peer.count(|a| matches!(a, Action::Begin)), 1, "{case}: {name}");
        assert_eq!(peer.count(is_peer_report), 1, "{case}: {name}");
    }
    assert_eq!(pair.client.count(|a| matches!(a, Action::PeerReady)), 1, "{case}");
    assert_eq!(pair.server.count(|a| matches!(a, Action::Abandon)), 0, "{case}");
}

#[test]
fn a_measurement_completes_in_pieces_of_any_size() {
    for protocol in ALL {
        for piece in [1, 7, usize::MAX] {
            let mut pair = joined(protocol, None, vec![measure()]);
            (pair.to_client.piece, pair.to_server.piece) = (piece, piece);
            pair.run();
            assert_complete(&pair, &format!("{} in pieces of {piece}", protocol.id));
        }
    }
}

#[test]
fn another_program_is_not_taken_for_goodput() {
    for protocol in ALL {
        let mut pair = joined(protocol, None, vec![measure()]);
        pair.run();
        let ours = protocol.id == "goodput";
        for peer in [&pair.client, &pair.server] {
            let greeted =
                |a: &Action| matches!(a, Action::Greeted { peer, .. } if peer.is_goodput() == ours);
            assert_eq!(peer.count(greeted), 1, "{}: Host::foreign says who it is", protocol.id);
        }
    }
}

#[test]
fn nonsense_is_refused_before_anything_is_opened() {
    let nonsense = Plan { flows: 0, ..Plan::standard() };
    for protocol in ALL {
        let mut pair = joined(protocol, None, vec![Step::Measure(nonsense.clone()), measure()]);
        pair.run();
        assert_complete(&pair, protocol.id);
        assert_eq!(pair.client.count(|a| matches!(a, Action::Refused(_))), 1, "{}", protocol.id);
    }
}

#[test]
fn flows_that_cannot_be_had_leave_room_for_another_plan() {
    for protocol in ALL {
        let steps = vec![Step::FailToOpen(Plan::standard())];
        let mut pair = joined(protocol, None, steps);
        pair.run();
        assert_eq!(pair.client.ended, Some(Ok(())), "{}", protocol.id);
        assert_eq!(pair.client.count(is_peer_report), 0, "{}", protocol.id);
    }
}

#[test]
fn a_server_lets_payload_move_no_longer_than_its_limit() {
    let plan = Plan { length: Length::Seconds(30.0), ..Plan::standard() };
    for protocol in ALL {
        let mut server = server_config(None);
        server.limits = crate::session::Limits { duration_s: 30.0, ..limits() };
        let steps = vec![Step::Measure(plan.clone())];
        let mut pair = Pair::new(protocol, client_config(None), server, steps);
        pair.client.script.never_finishes = true;
        pair.run();
        assert!(pair.elapsed() < Duration::from_secs(90), "{}: {:?}", protocol.id, pair.elapsed());
        let finished = |a: &Action| matches!(a, Action::Finish | Action::Abandon);
        assert!(pair.server.count(finished) > 0, "{}", protocol.id);
    }
}
