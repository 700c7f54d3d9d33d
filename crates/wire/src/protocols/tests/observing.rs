//! Conversations without errors, between peers that observe as goodput does.

use std::collections::HashSet;
use std::time::Duration;

use super::{TOKENS, joined, measure, observing, observing_with_tokens};
use crate::error::WireError;
use crate::pair::{BOOTED_NS, FAR_AHEAD_US, Pair, Step, captured, client_config, server_config};
use crate::session::{Action, SettingRequest};
use crate::ticket::FlowSetup;
use goodput_model::{Direction, Exchange, FarHeads, Known, Length, Plan};

fn is_peer_report(action: &Action) -> bool {
    matches!(action, Action::PeerReported(_))
}

fn assert_complete(pair: &Pair, measurements: usize) {
    assert_eq!(pair.client.ended, Some(Ok(())));
    assert_eq!(pair.server.ended, Some(Ok(())));
    assert_eq!(pair.client.count(is_peer_report), measurements);
    assert_eq!(pair.server.count(is_peer_report), measurements);
    let is_sample = |action: &Action| matches!(action, Action::PeerSampled(_));
    assert_eq!(pair.client.count(is_sample), 3 * measurements);
    assert_eq!(pair.server.count(is_sample), 3 * measurements);
    assert_eq!(pair.server.count(|action| matches!(action, Action::Abandon)), 0);
}

#[test]
fn a_measurement_completes() {
    for (protocol, token) in observing_with_tokens() {
        let mut pair = joined(protocol, token, vec![measure()]);
        pair.run();
        assert_complete(&pair, 1);
        let secured = token.is_some();
        for peer in [&pair.client, &pair.server] {
            let greeted =
                |a: &Action| matches!(a, Action::Greeted { secured: s, .. } if *s == secured);
            assert_eq!(peer.count(greeted), 1);
        }
    }
}

#[test]
fn what_the_far_end_captured_comes_whole_before_its_report() {
    for (protocol, token) in observing_with_tokens() {
        let plan = Plan { far_capture: true, ..Plan::standard() };
        let steps = vec![Step::Measure(plan), measure()];
        let mut pair = joined(protocol, token, steps);
        pair.run();
        assert_complete(&pair, 2);
        let agreed = |action: &Action| matches!(action, Action::PeerCaptures(Known::Value(device)) if device == "eth0");
        assert_eq!(pair.client.count(agreed), 1);
        let mut whole = FarHeads::default();
        let mut parts = 0;
        for action in pair.client.actions.iter().take_while(|action| !is_peer_report(action)) {
            if let Action::PeerCaptured(part) = action {
                whole.add(FarHeads::clone(part));
                parts += 1;
            }
        }
        assert_eq!(whole, *captured());
        assert!(parts > 1, "bounded messages");
    }
}

#[test]
fn the_client_learns_how_the_clocks_differ() {
    for (protocol, token) in observing_with_tokens() {
        let mut pair = joined(protocol, token, vec![measure()]);
        pair.run();
        let right = |action: &Action| match action {
            Action::Greeted { clock: Some(clock), .. } => {
                (clock.ahead_us - FAR_AHEAD_US as f64).abs() <= clock.uncertainty_us
            }
            _ => false,
        };
        assert_eq!(pair.client.count(right), 1, "{}", protocol.id);
    }
}

/// 20 ms there and 70 ms back; the server's clock is ahead by [`FAR_AHEAD_US`].
#[test]
fn clocks_are_compared_over_the_control_connection() {
    for (protocol, token) in observing_with_tokens() {
        let steps = vec![Step::CompareClocks, measure(), Step::CompareClocks];
        let mut pair = joined(protocol, token, steps);
        pair.to_client.delay = Duration::from_millis(70);
        pair.run();
        assert_complete(&pair, 1);
        let compared = pair.client.actions.iter().filter_map(|action| match action {
            Action::ClockCompared(exchange) => Some(*exchange),
            _ => None,
        });
        let compared: Vec<_> = compared.collect();
        assert_eq!(compared.len(), 2, "{}", protocol.id);
        for Exchange { sent_ns, received_ns, answered_ns, back_ns } in compared {
            assert!(sent_ns > BOOTED_NS);
            assert_eq!(received_ns, sent_ns + 20_000_000 + FAR_AHEAD_US * 1000);
            assert_eq!((answered_ns, back_ns), (received_ns, sent_ns + 90_000_000));
        }
    }
}

#[test]
fn a_private_server_does_not_report_its_clock() {
    for (protocol, token) in observing_with_tokens() {
        let mut server = server_config(token);
        server.clock.monotonic_ns = None;
        let mut pair = Pair::new(protocol, client_config(token), server, vec![Step::CompareClocks]);
        pair.run();
        assert_eq!(pair.client.count(|action| matches!(action, Action::ClockCompared(_))), 0);
        // Nothing follows: the server closes a connection that is idle for too long.
        assert!(pair.client.error().is_some());
    }
}

#[test]
fn it_completes_byte_by_byte() {
    for (protocol, token) in observing_with_tokens() {
        let mut pair = joined(protocol, token, vec![measure()]);
        (pair.to_client.piece, pair.to_server.piece) = (1, 1);
        pair.run();
        assert_complete(&pair, 1);
    }
}

#[test]
fn a_second_measurement_goes_over_the_same_connection() {
    for (protocol, token) in observing_with_tokens() {
        let both = Plan { direction: Direction::Both, flows: 3, ..Plan::standard() };
        let mut pair = joined(protocol, token, vec![measure(), Step::Measure(both), measure()]);
        pair.run();
        assert_complete(&pair, 3);
        assert_no_cookie_serves_twice(&pair);
    }
}

#[test]
fn echoes_have_a_cookie_of_their_own_where_a_plan_observes_or_asks_for_the_latency() {
    for (protocol, token) in observing_with_tokens() {
        let blind = || Plan { observe: false, ..Plan::standard() };
        let asks = Step::Measure(Plan { latency: true, ..blind() });
        let mut pair = joined(protocol, token, vec![asks, measure(), Step::Measure(blind())]);
        pair.run();
        assert_complete(&pair, 3);
        let echoes = |actions: &[Action]| -> Vec<_> {
            let echo = |action: &Action| match action {
                Action::Echo(cookie) => Some(*cookie),
                _ => None,
            };
            actions.iter().filter_map(echo).collect()
        };
        let given = echoes(&pair.server.actions);
        assert_eq!(given.len(), 2);
        assert_eq!(echoes(&pair.client.actions), given);
        assert_no_cookie_serves_twice(&pair);
    }
}

fn assert_no_cookie_serves_twice(pair: &Pair) {
    let mut seen = HashSet::new();
    let mut given = Vec::new();
    for action in &pair.server.actions {
        if let Action::ExpectFlows { tickets, .. } = action {
            given.extend(tickets.clone());
            assert!(tickets.iter().all(|ticket| seen.insert(ticket.proof.clone())));
        }
    }
    let mut opened = Vec::new();
    for action in &pair.client.actions {
        if let Action::OpenFlows { tickets, flow_setup } = action {
            opened.extend(tickets.clone());
            assert_eq!(*flow_setup, FlowSetup::Connect { port: Some(40_000), apart: 0 });
        }
    }
    assert_eq!(opened, given);
}

#[test]
fn a_refused_plan_leaves_room_for_another() {
    let too_long = Plan { length: Length::Seconds(61.0), ..Plan::standard() };
    let nonsense = Plan { flows: 0, ..Plan::standard() };
    for protocol in observing() {
        let steps =
            vec![Step::Measure(too_long.clone()), Step::Measure(nonsense.clone()), measure()];
        let mut pair = joined(protocol, None, steps);
        pair.run();
        assert_complete(&pair, 1);
        let refused = |a: &Action| matches!(a, Action::Refused(_));
        assert_eq!(pair.client.count(refused), 2);
        assert_eq!(pair.server.count(|a| matches!(a, Action::ExpectFlows { .. })), 1);
    }
}

#[test]
fn flows_that_cannot_be_had_leave_room_for_another_plan() {
    for protocol in observing() {
        let steps = vec![Step::FailToOpen(Plan::standard()), measure()];
        let mut pair = joined(protocol, None, steps);
        pair.run();
        assert_eq!(pair.client.ended, Some(Ok(())));
        assert_eq!(pair.server.count(|a| matches!(a, Action::Abandon)), 1);
        assert_eq!(pair.client.count(is_peer_report), 1);
        assert!(pair.server.count(|a| matches!(a, Action::Note(why) if why == "no route")) == 1);
    }
}

fn read_setting() -> Step {
    Step::Ask(SettingRequest::Read("far:sysctl.net.ipv4.tcp_rmem".parse().unwrap()))
}

#[test]
fn settings_are_reached_with_the_token() {
    for protocol in observing() {
        let mut pair = joined(protocol, TOKENS[1], vec![read_setting(), measure()]);
        pair.run();
        assert_complete(&pair, 1);
        let done = |a: &Action| matches!(a, Action::SettingAnswered(Ok(v)) if v == "4096 131072");
        assert_eq!(pair.client.count(done), 1);
    }
}

#[test]
fn a_value_is_checked_by_a_server_that_says_that_it_can() {
    for protocol in observing() {
        let setting = "far:sysctl.net.ipv4.tcp_rmem".parse().unwrap();
        let check = Step::Ask(SettingRequest::Check(vec![(setting, "1 2 3".into())]));
        let mut pair = joined(protocol, TOKENS[1], vec![check, measure()]);
        pair.run();
        assert_complete(&pair, 1);
        let asked = |a: &Action| matches!(a, Action::Setting(SettingRequest::Check(..)));
        assert_eq!(pair.server.count(asked), 1);
    }
}

#[test]
fn settings_are_out_of_reach_without_the_token_even_where_the_server_has_one() {
    for (protocol, server_token) in observing_with_tokens() {
        let steps = vec![read_setting(), measure()];
        let mut pair = Pair::new(protocol, client_config(None), server_config(server_token), steps);
        pair.run();
        assert_complete(&pair, 1);
        assert_eq!(pair.server.count(|a| matches!(a, Action::Setting(_))), 0);
        let refused =
            |a: &Action| matches!(a, Action::SettingAnswered(Err(why)) if why.not_permitted);
        assert_eq!(pair.client.count(refused), 1);
    }
}

fn assert_not_permitted(pair: &Pair) {
    for peer in [&pair.client, &pair.server] {
        assert!(matches!(peer.error(), Some(WireError::NotPermitted(_))), "{:?}", peer.ended);
        assert!(peer.actions.is_empty(), "{:?}", peer.actions);
    }
}

#[test]
fn who_has_the_wrong_token_is_turned_away() {
    for protocol in observing() {
        let (ours, theirs) = (client_config(Some("mine")), server_config(Some("yours")));
        let mut pair = Pair::new(protocol, ours, theirs, vec![measure()]);
        pair.run();
        assert_not_permitted(&pair);
    }
}

#[test]
fn who_has_no_token_is_turned_away_where_one_is_required() {
    for protocol in observing() {
        let mut server = server_config(Some("yours"));
        server.credential_required = true;
        let mut pair = Pair::new(protocol, client_config(None), server, vec![measure()]);
        pair.run();
        assert_not_permitted(&pair);
    }
}

#[test]
fn who_brings_a_token_to_a_server_without_one_gets_a_note() {
    for protocol in observing() {
        let (ours, theirs) = (client_config(Some("mine")), server_config(None));
        let mut pair = Pair::new(protocol, ours, theirs, vec![measure()]);
        pair.run();
        assert_not_permitted(&pair);
        let why = pair.client.error().unwrap().to_string();
        assert!(why.contains("has no token"), "{why}");
    }
}
