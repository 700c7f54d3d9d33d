//! An iperf3 server that talks to a script: captured bytes, and failures.

use super::*;
use crate::login::Padding;
use crate::pair::{Alone, origin, sample, server_config, users};
use crate::session::ServerConfig;

/// From a capture of 3.12: `iperf3 -c 127.0.0.1 -n 4K -l 1K`.
const COOKIE: &[u8] = b"to6orkg3aukzfrx3ka2w4iqdn6fkb3iztjdq\0";
const PARAMS_JSON: &str = r#"{"tcp":true,"omit":0,"time":0,"num":4096,"blockcount":0,"parallel":1,"len":1024,"pacing_timer":1000,"client_version":"3.12"}"#;
const RESULTS_JSON: &str = r#"{"cpu_util_total":78.8,"cpu_util_user":0,"cpu_util_system":78.5,"sender_has_retransmits":1,"congestion_used":"bbr","streams":[{"id":1,"bytes":4096,"retransmits":0,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":4e-05}]}"#;

/// A server that talks to a script.
type Talk = Alone<ServerSession>;

impl Talk {
    fn begin(config: ServerConfig) -> Self {
        let mut talk = Self::new(ServerSession::new(origin(), config));
        talk.hear(COOKIE).unwrap();
        assert_eq!(std::mem::take(&mut talk.said), [PARAM_EXCHANGE]);
        talk
    }

    /// Runs up to moving payload.
    fn running(params: &str) -> Self {
        let mut talk = Self::begin(server_config(None));
        talk.hear(framed(params)).unwrap();
        talk.feed(Input::Expecting { data_port: Some(9) }).unwrap();
        assert_eq!(std::mem::take(&mut talk.said), [CREATE_STREAMS]);
        talk.feed(Input::FlowsReady).unwrap();
        assert_eq!(std::mem::take(&mut talk.said), [TEST_START, TEST_RUNNING]);
        talk
    }
}

fn framed(json: &str) -> Vec<u8> {
    [&(json.len() as u32).to_be_bytes()[..], json.as_bytes()].concat()
}

fn error(number: u32) -> Vec<u8> {
    [&[0xfe][..], &number.to_be_bytes(), &[0; 4]].concat()
}

#[test]
fn the_conversation_of_3_12_goes_to_its_end() {
    let mut talk = Talk::running(PARAMS_JSON);
    talk.hear([TEST_END]).unwrap();
    assert!(talk.did(|action| matches!(action, Action::Finish)));
    assert!(talk.said.is_empty(), "asked before the flows have ended");
    talk.feed(Input::Ended(Box::new(sample(1.0, 4096)))).unwrap();
    assert_eq!(std::mem::take(&mut talk.said), [EXCHANGE_RESULTS]);
    talk.hear(framed(RESULTS_JSON)).unwrap();
    assert_eq!(talk.said.pop(), Some(DISPLAY_RESULTS));
    let ours: serde_json::Value = serde_json::from_slice(&talk.said[4..]).unwrap();
    assert_eq!(
        (&ours["streams"][0]["id"], &ours["sender_has_retransmits"]),
        (&1.into(), &(-1).into())
    );
    for key in ["cpu_util_total", "cpu_util_user", "cpu_util_system"] {
        assert!(ours[key].is_number(), "{key} in {ours}");
    }
    assert!(talk.did(|action| match action {
        Action::PeerTotals(totals) => totals.program == "iperf3 3.12",
        _ => false,
    }));
    talk.hear([IPERF_DONE]).unwrap();
    assert!(talk.closed && !talk.ended_sending);
    assert!(!talk.did(|action| matches!(action, Action::Abandon)));
}

#[test]
fn flows_that_end_first_wait_for_the_client_s_end() {
    let mut talk = Talk::running("{}");
    talk.feed(Input::Ended(Box::new(sample(1.0, 4096)))).unwrap();
    assert!(talk.said.is_empty());
    talk.hear([TEST_END]).unwrap();
    assert_eq!(talk.said, [EXCHANGE_RESULTS]);
}

#[test]
fn flows_are_expected_with_the_cookie_and_in_iperf3_s_order() {
    let mut talk = Talk::begin(server_config(None));
    talk.hear(framed(r#"{"udp":true,"parallel":2,"bidirectional":true,"udp_counters_64bit":1}"#))
        .unwrap();
    let tickets = talk.did.iter().find_map(|action| match action {
        Action::ExpectFlows { tickets, flow_setup: FlowSetup::Arrive, .. } => Some(tickets),
        _ => None,
    });
    let tickets = tickets.unwrap();
    let senders: Vec<_> = tickets.iter().map(|ticket| ticket.flow.sender).collect();
    assert_eq!(senders, [EndName::Near, EndName::Near, EndName::Far, EndName::Far]);
    let wide = goodput_framing::iperf3(true);
    assert!(tickets.iter().all(|t| t.proof.0 == COOKIE && t.framing == wide));
}

#[test]
fn what_is_refused_has_iperf3_s_number() {
    let mut long = Talk::begin(server_config(None));
    long.hear(framed(r#"{"time":61}"#)).unwrap();
    assert_eq!(long.said, error(37));
    assert!(long.closed && long.did(|action| matches!(action, Action::Refused(_))));
    for (why, wanted) in [("busy: 1 measurement", vec![0xff]), ("no memory", error(200))] {
        let mut full = Talk::begin(server_config(None));
        full.hear(framed("{}")).unwrap();
        full.feed(Input::FlowsFailed(why.into())).unwrap();
        assert_eq!(full.said, wanted, "{why}");
    }
    let mut odd = Talk::begin(server_config(None));
    odd.hear(framed(r#"{"congestion":"bic"}"#)).unwrap();
    odd.feed(Input::FlowsFailed("it is not available".into())).unwrap();
    assert_eq!(odd.said, error(134));
}

#[test]
fn nonsense_is_answered_with_its_number() {
    let mut params = Talk::begin(server_config(None));
    assert!(params.hear([0x7f, 0xff, 0xff, 0xff]).is_err());
    assert_eq!(params.said, error(114));
    let mut state = Talk::running("{}");
    assert!(state.hear([77]).is_err());
    assert_eq!(state.said, error(110));
    assert!(state.did(|action| matches!(action, Action::Abandon)));
}

#[test]
fn a_client_that_is_interrupted_leaves_nothing_behind() {
    for last in [CLIENT_TERMINATE, IPERF_DONE] {
        let mut talk = Talk::running("{}");
        talk.hear([last]).unwrap();
        assert!(talk.closed && talk.did(|action| matches!(action, Action::Abandon)));
    }
    let mut killed = Talk::running("{}");
    assert!(killed.feed(Input::Closed).is_err());
    assert!(killed.did(|action| matches!(action, Action::Abandon)));
}

#[test]
fn a_test_that_lasts_far_too_long_is_ended() {
    let mut talk = Talk::running(r#"{"time":5,"omit":2}"#);
    talk.wait(Duration::from_secs(46)).unwrap();
    assert!(!talk.closed);
    assert!(talk.wait(Duration::from_secs(1)).is_err());
    assert_eq!(talk.said, error(160));
}

fn with_users() -> ServerConfig {
    ServerConfig { users: Some(users(Padding::Oaep)), ..server_config(None) }
}

/// A client that has sent `params` to a server with users.
fn asking(params: &str) -> Talk {
    let mut talk = Talk::begin(with_users());
    talk.hear(framed(params)).unwrap();
    assert!(!talk.did(|action| matches!(action, Action::ExpectFlows { .. })));
    talk
}

#[test]
fn a_login_goes_to_the_host_as_it_came() {
    let talk = asking(r#"{"authtoken":"AAAA"}"#);
    assert!(talk.did(|action| matches!(action, Action::CheckLogin(token) if token == "AAAA")));
    let talk = asking("{}");
    assert!(talk.did(|action| matches!(action, Action::CheckLogin(token) if token.is_empty())));
}

#[test]
fn a_user_is_let_in() {
    let mut talk = asking(r#"{"authtoken":"AAAA"}"#);
    talk.feed(Input::LoginChecked(Some("mario".into()))).unwrap();
    let user = Credential::User("mario".into());
    assert!(talk.did(|action| matches!(action, Action::Proven(proven) if *proven == user)));
    assert!(talk.did(|action| matches!(action, Action::ExpectFlows { .. })));
}

#[test]
fn whoever_is_not_hears_the_same_on_a_grid_of_time() {
    for (looked_at_ms, answered_ms) in
        [(0, 1000), (3, 1000), (999, 1000), (1000, 2000), (2500, 3000)]
    {
        let mut talk = asking("{}");
        talk.wait(Duration::from_millis(looked_at_ms)).unwrap();
        talk.feed(Input::LoginChecked(None)).unwrap();
        talk.wait(Duration::from_millis(answered_ms - looked_at_ms - 1)).unwrap();
        assert!(talk.said.is_empty(), "{looked_at_ms}");
        assert!(matches!(talk.wait(Duration::from_millis(1)), Err(WireError::NotPermitted(_))));
        assert_eq!(talk.said, error(142));
        assert!(!talk.did(|action| matches!(action, Action::ExpectFlows { .. })));
    }
}

#[test]
fn a_login_that_nobody_looks_at_lets_nobody_in() {
    let mut talk = asking("{}");
    assert!(talk.wait(LOGIN_TIMEOUT).is_err());
    assert_eq!(talk.said, error(142));
    talk.feed(Input::LoginChecked(Some("mario".into()))).unwrap();
    assert!(!talk.did(|action| matches!(action, Action::ExpectFlows { .. })));
}

#[test]
fn an_answer_to_no_login_means_nothing() {
    let mut talk = Talk::begin(server_config(None));
    talk.feed(Input::LoginChecked(Some("mario".into()))).unwrap();
    talk.hear(framed("{}")).unwrap();
    assert!(!talk.did(|action| matches!(action, Action::Proven(_))));
}

#[test]
fn a_client_without_a_credential_is_refused_in_iperf3s_words() {
    let mut talk = Talk::begin(server_config(None));
    talk.hear(framed("{}")).unwrap();
    assert!(!talk.did(|action| matches!(action, Action::Proven(_))));
    let denied = talk.feed(Input::Denied("no credential".into()));
    assert_eq!(denied, Err(WireError::NotPermitted("no credential".into())));
    assert_eq!(talk.said, error(142));
}
