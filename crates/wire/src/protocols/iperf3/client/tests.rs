//! An iperf3 client that talks to a script: captured bytes, and failures.

use super::*;
use crate::login::Padding;
use crate::pair::{Alone, client_config, login, origin, sample};
use goodput_model::{Bytes, Length};

/// A client that talks to a script.
type Talk = Alone<ClientSession>;

impl Talk {
    fn begin(config: ClientConfig) -> Self {
        let mut talk = Self::new(ClientSession::new(origin(), config));
        assert_eq!(std::mem::take(&mut talk.said).len(), 37);
        talk
    }

    /// Runs until the parameters are sent.
    fn proposed(config: ClientConfig, plan: Plan) -> Self {
        let mut talk = Self::begin(config);
        talk.feed(Input::Propose(Box::new(plan))).unwrap();
        talk.hear([PARAM_EXCHANGE]).unwrap();
        talk
    }

    /// Runs up to moving payload.
    fn running(plan: Plan) -> Self {
        let mut talk = Self::proposed(client_config(None), plan);
        talk.hear([CREATE_STREAMS]).unwrap();
        talk.feed(Input::FlowsReady).unwrap();
        talk.hear([TEST_START, TEST_RUNNING]).unwrap();
        talk.feed(Input::Begin).unwrap();
        talk.said.clear();
        talk
    }
}

/// A server's bytes when something fails.
fn error(words: &[u32]) -> Vec<u8> {
    let words = words.iter().flat_map(|word| word.to_be_bytes());
    [SERVER_ERROR].into_iter().chain(words).collect()
}

#[test]
fn the_conversation_of_3_12_goes_to_its_end() {
    let mut talk = Talk::running(Plan { length: Length::Seconds(1.0), ..Plan::standard() });
    talk.feed(Input::Finish(None)).unwrap();
    assert_eq!(std::mem::take(&mut talk.said), [TEST_END]);
    talk.hear([EXCHANGE_RESULTS]).unwrap();
    assert!(matches!(talk.did.last(), Some(Action::PeerStopped)), "its streams are closed");
    assert!(talk.said.is_empty(), "results before the flows have ended");
    talk.feed(Input::Ended(Box::new(sample(1.0, 4096)))).unwrap();
    let ours: serde_json::Value = serde_json::from_slice(&talk.said[4..]).unwrap();
    assert_eq!(ours["streams"][0]["id"], 1);
    talk.said.clear();
    let theirs = br#"{"cpu_util_total":1,"sender_has_retransmits":18446744073709551615,
        "streams":[{"id":1,"bytes":2048,"retransmits":18446744073709551615,"jitter":0,"errors":0,
        "packets":0,"start_time":0,"end_time":8.2e-05}]}"#;
    talk.hear((theirs.len() as u32).to_be_bytes()).unwrap();
    talk.hear(theirs).unwrap();
    talk.hear([DISPLAY_RESULTS]).unwrap();
    assert_eq!(talk.said, [IPERF_DONE]);
    let last_two = &talk.did[talk.did.len() - 2..];
    let [Action::PeerTotals(totals), Action::PeerReported(Known::Missing(_))] = last_two else {
        panic!("{last_two:?}");
    };
    assert_eq!(totals.cookie.as_ref().map(String::len), Some(36));
    talk.feed(Input::Closed).unwrap();
    assert!(talk.closed && !talk.ended_sending);
}

#[test]
fn a_server_that_ends_the_test_itself_has_stopped() {
    let mut talk = Talk::running(Plan::standard());
    talk.hear([EXCHANGE_RESULTS]).unwrap();
    let stopped = talk.did.iter().filter(|action| matches!(action, Action::PeerStopped));
    assert_eq!(stopped.count(), 1, "{:?}", talk.did);
}

#[test]
fn flows_that_end_by_themselves_end_the_test() {
    let mut talk = Talk::running(Plan { length: Length::Bytes(Bytes(4096)), ..Plan::standard() });
    talk.feed(Input::Ended(Box::new(sample(1.0, 4096)))).unwrap();
    assert_eq!(talk.said, [TEST_END]);
    talk.feed(Input::Finish(None)).unwrap();
    assert_eq!(talk.said, [TEST_END], "said once");
}

#[test]
fn a_refusal_is_reported_in_words() {
    let mut busy = Talk::begin(client_config(None));
    busy.hear([ACCESS_DENIED]).unwrap();
    assert!(busy.refusal().contains("busy") && busy.closed);
    let mut limited = Talk::proposed(client_config(None), Plan::standard());
    limited.hear(error(&[37, 0])).unwrap();
    assert!(limited.refusal().contains("--server-max-duration"), "{}", limited.refusal());
    let mut gone = Talk::running(Plan::standard());
    gone.hear([SERVER_TERMINATE]).unwrap();
    assert!(gone.refusal().contains("interrupted"));
}

#[test]
fn an_error_without_all_its_words_is_reported_at_the_end_or_in_time() {
    let mut closed = Talk::proposed(client_config(None), Plan::standard());
    closed.hear(error(&[142])).unwrap();
    assert_eq!(closed.refusal(), "");
    let why = closed.feed(Input::Closed).unwrap_err();
    assert!(matches!(why, WireError::NotPermitted(_)), "{why}");
    let mut silent = Talk::proposed(client_config(None), Plan::standard());
    silent.hear(error(&[])).unwrap();
    silent.wait(ERROR_TIMEOUT).unwrap();
    assert!(silent.refusal().contains("a failure without a reason"));
}

#[test]
fn a_login_goes_with_the_parameters_and_3_21_hangs_up_on_a_wrong_one() {
    let login = Some(login("mario", "rossi", Padding::Oaep));
    let config = ClientConfig { login, ..client_config(None) };
    let mut talk = Talk::proposed(config, Plan::standard());
    let params: serde_json::Value = serde_json::from_slice(&talk.said[4..]).unwrap();
    assert!(params["authtoken"].as_str().is_some_and(|token| token.len() > 100), "{params}");
    let hung_up = talk.feed(Input::Closed).unwrap_err();
    assert!(matches!(hung_up, WireError::NotPermitted(_)), "{hung_up}");
}

#[test]
fn a_login_that_lacks_is_distinguished_from_one_that_is_wrong() {
    let refused = |login| {
        let config = ClientConfig { login, ..client_config(None) };
        let mut talk = Talk::proposed(config, Plan::standard());
        talk.hear(error(&[142, 0])).unwrap_err()
    };
    let none = refused(None);
    let wrong = refused(Some(login("mario", "rossi", Padding::Oaep)));
    for why in [&none, &wrong] {
        assert!(matches!(why, WireError::NotPermitted(_)), "{why}");
    }
    assert!(none.to_string().contains("requires a login"), "{none}");
    assert!(none.to_string().contains("--username"), "{none}");
    assert!(wrong.to_string().contains("password is wrong"), "{wrong}");
}

#[test]
fn what_is_no_iperf3_server_is_named() {
    let mut talk = Talk::begin(client_config(None));
    let why = talk.hear(b"SSH-2.0-OpenSSH_9.2\r\n").unwrap_err().to_string();
    assert!(why.contains("an SSH server"), "{why}");
}

#[test]
fn a_plan_that_cannot_be_said_leaves_room_for_another_and_one_is_measured() {
    let odd = Plan {
        mover: "uring".into(),
        direction: goodput_model::Direction::Reverse,
        ..Plan::standard()
    };
    let mut talk = Talk::proposed(client_config(None), odd);
    assert!(talk.refusal().contains("--mover uring") && talk.said.is_empty());
    talk.did.clear();
    talk.feed(Input::Propose(Box::new(Plan::standard()))).unwrap();
    assert!(!talk.said.is_empty());
    talk.feed(Input::Propose(Box::new(Plan::standard()))).unwrap();
    assert_eq!(talk.refusal(), ONCE);
}

#[test]
fn a_measurement_that_is_broken_off_is_reported_to_the_server() {
    let mut talk = Talk::running(Plan::standard());
    talk.feed(Input::Leave("done".into())).unwrap();
    assert_eq!(talk.said, [CLIENT_TERMINATE]);
    assert!(talk.closed);
}
