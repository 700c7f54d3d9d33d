//! Both sessions, with arbitrary input in any order from a peer, a driver and the clock.

use std::time::Duration;

use goodput_model::{Known, Plan};
use proptest::prelude::*;

use super::PROTOCOL;
use crate::pair::{client_config, end, origin, sample, server_config};
use crate::session::{Input, Output, Session};

/// What a peer may send: states, errors, the cookie, parameters, results, and nonsense.
fn word() -> impl Strategy<Value = Vec<u8>> {
    let framed = |json: &str| [&(json.len() as u32).to_be_bytes()[..], json.as_bytes()].concat();
    prop_oneof![
        prop::sample::select(vec![1u8, 2, 4, 9, 10, 11, 12, 13, 14, 16, 0xff, 0xfe, 77])
            .prop_map(|state| vec![state]),
        Just(b"to6orkg3aukzfrx3ka2w4iqdn6fkb3iztjdq\0".to_vec()),
        Just(framed("{}")),
        Just(framed(r#"{"udp":true,"parallel":3,"bidirectional":true,"get_server_output":1}"#)),
        Just(framed(r#"{"streams":[{"id":1,"bytes":18446744073709551615,"retransmits":-1}]}"#)),
        proptest::collection::vec(any::<u8>(), 0..40),
    ]
}

/// What a driver or the clock may bring.
fn drive(session: &mut dyn Session, which: u8, now: &mut std::time::Instant) -> bool {
    *now += Duration::from_millis(5);
    let input = match which % 10 {
        0 => Input::Propose(Box::new(Plan::standard())),
        1 => Input::Expecting { data_port: Some(9) },
        2 => Input::FlowsReady,
        3 => Input::FlowsFailed("busy: no".into()),
        4 => Input::Begin,
        5 => Input::Sampled(Box::new(sample(1.0, 1))),
        6 => Input::Finish(None),
        7 => Input::Ended(Box::new(sample(2.0, 2))),
        8 => Input::Report(Known::Value(Box::new(end("here")))),
        _ => {
            let Some(at) = session.next_timeout() else { return true };
            *now = at.max(*now);
            return session.handle_timeout(*now).is_ok();
        }
    };
    session.handle(*now, input).is_ok()
}

fn survives(mut session: Box<dyn Session>, steps: &[(Option<u8>, Vec<u8>)]) {
    let mut now = origin();
    for (drives, said) in steps {
        let goes_on = match drives {
            Some(which) => drive(session.as_mut(), *which, &mut now),
            None => session.handle(now, Input::Received(said.clone())).is_ok(),
        };
        let closed = std::iter::from_fn(|| session.poll()).any(|o| matches!(o, Output::Close));
        if !goes_on || closed {
            assert_eq!(session.next_timeout(), None, "an ended session waits for nothing");
            return;
        }
    }
    // Every wait takes at most an hour, the longest test that the limits allow.
    while let Some(at) = session.next_timeout() {
        assert!(at < origin() + Duration::from_secs(3600));
        now = at.max(now);
        if session.handle_timeout(now).is_err() {
            return;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_order_of_anything_ends_in_order(
        steps in proptest::collection::vec((proptest::option::of(any::<u8>()), word()), 0..24),
    ) {
        survives((PROTOCOL.client)(origin(), client_config(None)), &steps);
        survives((PROTOCOL.server)(origin(), server_config(None)), &steps);
    }
}
