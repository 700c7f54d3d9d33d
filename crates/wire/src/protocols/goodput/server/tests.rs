//! How a server session handles everything that a client may send.

use std::time::{Duration, Instant};

use super::super::deflate::{deflated, inflated, is_deflated};
use super::super::messages::{About, AskSetting, Finish, Message, OneSample, Propose, Report};
use super::super::preamble::Role;
use super::super::times::{
    ACCEPT_TIMEOUT, BEGIN_TIMEOUT, FLOWS_TIMEOUT, FLUSH_TIMEOUT, GRACE_TIME, IDLE_TIMEOUT,
    REPORTS_TIMEOUT,
};
use super::*;
use crate::frame::Decoder;
use crate::keys::{AuthorizedKeys, KeyAuthorization};
use crate::pair::{end, host, key, knows, limits, origin, sample, server_config};
use crate::session::{Action, Limits, Output, Session, SettingRequest};
use goodput_model::{BitRate, FlowSample, Known, Length, Plan, Sample, TcpInfo};
use serde_json::Value;

/// A server session, and a client's messages in the clear.
struct Rig {
    session: ServerSession,
    now: Instant,
    said: Vec<String>,
    actions: Vec<Action>,
    replies: Decoder<4>,
}

impl Rig {
    fn new(limits: Limits) -> Self {
        let config = ServerConfig { limits, ..server_config(None) };
        let now = origin();
        let session = ServerSession::new(now, config);
        let replies = Decoder::new(1 << 20);
        Self { session, now, said: Vec::new(), actions: Vec::new(), replies }
    }

    fn greeted(limits: Limits) -> Self {
        let mut rig = Self::new(limits);
        rig.take(Input::Received(Role::Control.preamble().to_vec())).unwrap();
        let hello = super::super::messages::Hello::of(&host("near"), 0).unwrap();
        rig.say(&Message::Hello(hello)).unwrap();
        rig
    }

    /// Runs up to moving payload.
    fn running(plan: Plan) -> Self {
        let mut rig = Self::greeted(limits());
        rig.propose(1, plan).unwrap();
        rig.take(Input::Expecting { data_port: None }).unwrap();
        rig.take(Input::FlowsReady).unwrap();
        rig.say(&Message::Begin(About { measurement: 1 })).unwrap();
        rig
    }

    fn take(&mut self, input: Input) -> Result<(), WireError> {
        let outcome = self.session.handle(self.now, input);
        self.collect();
        outcome
    }

    fn say(&mut self, message: &Message) -> Result<(), WireError> {
        let (body, mut bytes) = (serde_json::to_vec(message).unwrap(), Vec::new());
        crate::frame::encode::<4>(&body, &mut bytes).unwrap();
        self.take(Input::Received(bytes))
    }

    fn propose(&mut self, measurement: u32, plan: Plan) -> Result<(), WireError> {
        self.say(&Message::Propose(Propose { measurement, plan: Box::new(plan) }))
    }

    fn wait(&mut self, time: Duration) -> Result<(), WireError> {
        self.now += time;
        // The client is alive: only the server's own deadlines matter.
        self.say(&Message::Ping(super::super::messages::Ping::default()))?;
        let outcome = self.session.handle_timeout(self.now);
        self.collect();
        outcome
    }

    fn collect(&mut self) {
        while let Some(output) = self.session.poll() {
            match output {
                Output::Do(action) => self.actions.push(action),
                Output::Send(bytes) if bytes == Role::Control.preamble() => {}
                Output::Send(bytes) => {
                    self.replies.push(&bytes);
                    let body = self.replies.next_body().unwrap().unwrap();
                    self.said.push(
                        String::from_utf8(if is_deflated(&body) {
                            inflated(&body, 1 << 20).unwrap()
                        } else {
                            body
                        })
                        .unwrap(),
                    );
                }
                Output::EndSending => self.said.push("end".into()),
                Output::Close => self.said.push("close".into()),
            }
        }
    }

    fn last_said(&self) -> &str {
        self.said.iter().rev().find(|said| !said.contains("\"ping\"")).map_or("", |said| said)
    }

    fn count(&self, is: impl Fn(&Action) -> bool) -> usize {
        self.actions.iter().filter(|action| is(action)).count()
    }
}

fn is_abandon(action: &Action) -> bool {
    matches!(action, Action::Abandon)
}

#[test]
fn a_connection_that_has_not_greeted_costs_little() {
    let mut rig = Rig::new(limits());
    rig.take(Input::Received(b"good".to_vec())).unwrap();
    let config = &rig.session.config.host;
    let strings = config.name.len() + config.kernel.len() + config.goodput.len();
    let held = size_of::<ServerSession>() + rig.session.channel.held() + strings;
    assert!(held < 2048, "{held} bytes");
}

#[test]
fn a_greeting_longer_than_4_kib_is_cut_off_before_it_is_there() {
    let mut rig = Rig::new(limits());
    rig.take(Input::Received(Role::Control.preamble().to_vec())).unwrap();
    let outcome = rig.take(Input::Received(vec![0, 0, 0x10, 0x01]));
    assert!(matches!(outcome, Err(WireError::Protocol(_))), "{outcome:?}");
    assert!(rig.said.iter().any(|said| said.contains(r#""code":"protocol""#)), "{:?}", rig.said);
}

#[test]
fn long_messages_are_taken_only_from_an_accepted_plan_to_its_end() {
    let too_long = vec![0, 1, 0, 1];
    let mut rig = Rig::greeted(limits());
    assert!(rig.take(Input::Received(too_long.clone())).is_err());
    let mut rig = Rig::running(Plan::standard());
    assert!(rig.take(Input::Received(too_long)).is_ok());
    let mut rig = Rig::running(Plan::standard());
    let one_flow = (1 << 20) + 4096u32;
    assert!(rig.take(Input::Received((one_flow + 1).to_be_bytes().to_vec())).is_err());
    let mut rig = Rig::running(Plan::standard());
    assert!(rig.take(Input::Received(one_flow.to_be_bytes().to_vec())).is_ok());
    let mut rig = Rig::running(Plan::standard());
    rig.take(Input::FlowsFailed("over".into())).unwrap();
    assert!(rig.take(Input::Received(vec![0, 1, 0, 1])).is_err(), "the measurement is over");
}

#[test]
fn a_flood_of_messages_ends_the_session() {
    let mut rig = Rig::greeted(limits());
    let spaces = [b"{\"ping\":{}}".to_vec(), vec![b' '; 60_000]].concat();
    let mut frame = Vec::new();
    crate::frame::encode::<4>(&spaces, &mut frame).unwrap();
    let outcome = (0..1000).try_for_each(|_| rig.take(Input::Received(frame.clone())));
    assert!(matches!(outcome, Err(WireError::Protocol(_))), "{outcome:?}");
}

#[test]
fn a_long_report_is_taken() {
    let mut rig = Rig::running(Plan::standard());
    let mut report = end("near");
    for number in 0..200 {
        report.after.put(format!("sysctl.{number}"), "x".repeat(4096));
    }
    rig.say(&Message::Report(Report { measurement: 1, end: Known::Value(Box::new(report)) }))
        .unwrap();
    assert_eq!(rig.count(|a| matches!(a, Action::PeerReported(_))), 1);
    assert_eq!(rig.count(|a| matches!(a, Action::Finish)), 1, "a report is a finish as well");
}

/// Every field is set, with numbers as long as in a long test.
fn full_sample(flows: u16) -> Sample {
    let flow = |flow: u16| {
        let empty = serde_json::to_value(FlowSample::unreported(
            flow,
            goodput_model::Role::Sender,
            1 << 40,
            "?",
        ));
        let mut json = empty.unwrap();
        for count in ["blocked_us", "paced_us", "calls", "cpu_us", "cpu_wait_us", "queued_bytes"] {
            json[count] = 3_600_000_000_u64.into();
        }
        for count in ["source_us", "sink_us", "copied_sends", "mapped_bytes", "exhausted_buffers"] {
            json[count] = 3_600_000_000_u64.into();
        }
        let tcp = schemars::schema_for!(TcpInfo);
        let fields = tcp.get("properties").and_then(Value::as_object).unwrap().keys();
        let numbers = fields.map(|field| (field.clone(), 3_600_000_000_u64.into()));
        json["tcp"] = Value::Object(numbers.filter(|(f, _)| f != "length_bytes").collect());
        serde_json::from_value(json).unwrap()
    };
    Sample {
        at_s: 1.0,
        sent_bytes: 1 << 50,
        received_bytes: 1 << 50,
        flows: (0..flows).map(flow).collect(),
    }
}

#[test]
fn the_samples_of_as_many_flows_as_are_allowed_are_taken_however_they_come() {
    let plan = Plan { flows: 1000, ..Plan::standard() };
    let body = |measurement| {
        let sample = Box::new(full_sample(1000));
        serde_json::to_vec(&Message::Sample(OneSample { measurement, sample })).unwrap()
    };
    for deflate in [false, true] {
        let mut rig = Rig::greeted(Limits { flows: 1000, ..limits() });
        rig.propose(1, plan.clone()).unwrap();
        rig.take(Input::Expecting { data_port: None }).unwrap();
        rig.take(Input::FlowsReady).unwrap();
        rig.say(&Message::Begin(About { measurement: 1 })).unwrap();
        for second in 0..20 {
            let said = if deflate { deflated(body(1)) } else { body(1) };
            let mut bytes = Vec::new();
            crate::frame::encode::<4>(&said, &mut bytes).unwrap();
            rig.take(Input::Received(bytes)).unwrap();
            rig.now += Duration::from_secs(10);
            assert_eq!(rig.count(|a| matches!(a, Action::PeerSampled(_))), second + 1);
        }
    }
}

#[test]
fn a_stream_is_not_inflated_for_a_peer_that_did_not_say_so() {
    let mut rig = Rig::new(limits());
    rig.take(Input::Received(Role::Control.preamble().to_vec())).unwrap();
    let hello = super::super::messages::Hello::of(&host("near"), 0).unwrap();
    let mut hello = serde_json::to_value(Message::Hello(hello)).unwrap();
    hello["hello"]["inflates"] = false.into();
    let say = |rig: &mut Rig, body: &[u8]| {
        let mut bytes = Vec::new();
        crate::frame::encode::<4>(body, &mut bytes).unwrap();
        rig.take(Input::Received(bytes))
    };
    say(&mut rig, hello.to_string().as_bytes()).unwrap();
    let stream = deflated([b"{\"ping\":{}}".to_vec(), vec![b' '; 2000]].concat());
    assert!(matches!(say(&mut rig, &stream), Err(WireError::Protocol(_))));
}

#[test]
fn another_version_is_reported_at_once_and_by_both_numbers() {
    let mut rig = Rig::new(limits());
    rig.take(Input::Received(Role::Control.preamble().to_vec())).unwrap();
    let body = br#"{"hello":{"version":7,"host":"a later shape"}}"#;
    let mut bytes = Vec::new();
    crate::frame::encode::<4>(body, &mut bytes).unwrap();
    let outcome = rig.take(Input::Received(bytes));
    assert_eq!(outcome, Err(WireError::Version { ours: 1, theirs: 7 }));
    assert!(rig.said[0].starts_with(r#"{"hello":{"version":1,"#), "{:?}", rig.said);
    assert!(rig.said[1].contains(r#""code":"version""#), "{:?}", rig.said);
}

#[test]
fn foreign_clients_are_named() {
    for (first, seems) in [
        (&b"GET / HTTP/1.1\r\n"[..], "web client"),
        (b"\x16\x03\x01\x02\x00\x01", "TLS client"),
        (b"\0\0\0\0", "begins with"),
    ] {
        match Rig::new(limits()).take(Input::Received(first.to_vec())) {
            Err(WireError::Foreign { seems: said }) => assert!(said.contains(seems), "{said}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_data_connection_and_an_unknown_role_are_not_conversations() {
    let data = crate::protocols::goodput::preamble::data_opening(&crate::session::Cookie([1; 16]));
    for first in [&data[..], b"goodputX"] {
        let mut rig = Rig::new(limits());
        let outcome = rig.take(Input::Received(first.to_vec()));
        assert!(matches!(outcome, Err(WireError::Protocol(_))), "{outcome:?}");
        assert!(rig.said.iter().all(|said| said == "close"), "{:?}", rig.said);
    }
}

#[test]
fn an_unknown_message_is_named_in_the_goodbye() {
    let mut rig = Rig::greeted(limits());
    let mut bytes = Vec::new();
    crate::frame::encode::<4>(br#"{"dance":{}}"#, &mut bytes).unwrap();
    rig.take(Input::Received(bytes)).unwrap_err();
    let goodbye = rig.said.iter().find(|said| said.contains("goodbye")).unwrap();
    assert!(goodbye.contains("dance"), "{goodbye}");
    assert_eq!(rig.said.last().unwrap(), "close");
}

#[test]
fn a_plan_beyond_a_limit_is_refused_in_words() {
    let mut rig = Rig::greeted(limits());
    rig.propose(1, Plan { flows: 129, ..Plan::standard() }).unwrap();
    assert!(
        rig.last_said().contains("129 is too much; this server allows 128"),
        "{}",
        rig.last_said()
    );
    assert_eq!(rig.count(|a| matches!(a, Action::ExpectFlows { .. })), 0);
}

#[test]
fn a_key_has_the_limits_of_its_line_as_it_is_at_each_plan_and_none_once_it_is_withdrawn() {
    let mut rig = Rig::greeted(limits());
    let list = |options: &str| {
        let line = format!("ann measure {} {options}", key(1).public());
        Some(AuthorizedKeys::parse(&line).unwrap())
    };
    let knows = knows("ann measure KEY1", 2);
    let clients = knows.clients.clone();
    rig.session.client = clients.find(&key(1).public(), server_config(None).peer.ip()).ok();
    rig.session.config.keys = Some(knows);
    let plan = Plan { length: Length::Seconds(600.0), ..Plan::standard() };
    let accepted = |rig: &Rig| rig.count(|a| matches!(a, Action::ExpectFlows { .. }));
    clients.set(list("max-duration=5m"));
    rig.propose(1, plan.clone()).unwrap();
    assert_eq!(accepted(&rig), 0);
    clients.set(list("max-duration=20m"));
    rig.propose(2, plan.clone()).unwrap();
    assert_eq!(accepted(&rig), 1);
    rig.take(Input::FlowsFailed("not now".into())).unwrap();
    for (now, word) in [(None, "at the moment"), (AuthorizedKeys::parse("").ok(), "withdrawn")] {
        let mut rig = Rig::greeted(limits());
        rig.session.client = clients.find(&key(1).public(), server_config(None).peer.ip()).ok();
        let known = crate::keys::Clients::default();
        known.set(now);
        rig.session.config.keys = Some(KeyAuthorization { own: key(2), clients: known });
        let refused = rig.propose(1, Plan::standard()).unwrap_err();
        let WireError::NotPermitted(why) = refused else { panic!("{refused}") };
        assert!(why.contains(word) && why.contains("key of ann"), "{why}");
    }
}

#[test]
fn cookies_go_out_only_when_the_host_expects_them() {
    let mut rig = Rig::greeted(limits());
    rig.propose(1, Plan::standard()).unwrap();
    assert!(!rig.last_said().contains("accept"));
    rig.take(Input::Expecting { data_port: Some(9) }).unwrap();
    assert!(rig.last_said().contains(r#""data_port":9"#), "{}", rig.last_said());
}

#[test]
fn a_rate_limit_is_reported_to_a_plan_without_a_rate() {
    let capped = Limits { rate_bits_per_s: Some(1e8), ..limits() };
    for (rate, expected) in [(None, true), (Some(BitRate(1e7)), false)] {
        let mut rig = Rig::greeted(capped);
        rig.propose(1, Plan { rate_bits_per_s: rate, ..Plan::standard() }).unwrap();
        rig.take(Input::Expecting { data_port: None }).unwrap();
        assert_eq!(rig.last_said().contains("100 Mbit/s"), expected, "{}", rig.last_said());
    }
}

#[test]
fn every_stage_of_a_measurement_has_its_deadline() {
    type Stage = fn(&mut Rig);
    let stages: [(Stage, Duration); 3] = [
        (|_| {}, ACCEPT_TIMEOUT),
        (|rig| rig.take(Input::Expecting { data_port: None }).unwrap(), FLOWS_TIMEOUT),
        (|rig| rig.take(Input::FlowsReady).unwrap(), BEGIN_TIMEOUT),
    ];
    for reached in 1..=stages.len() {
        let mut rig = Rig::greeted(limits());
        rig.propose(1, Plan::standard()).unwrap();
        stages[..reached].iter().for_each(|(reach, _)| reach(&mut rig));
        rig.wait(stages[reached - 1].1 - Duration::from_millis(1)).unwrap();
        assert_eq!(rig.count(is_abandon), 0, "stage {reached}");
        rig.wait(Duration::from_millis(1)).unwrap();
        assert_eq!(rig.count(is_abandon), 1, "stage {reached}");
        assert!(rig.last_said().contains("in time"), "{}", rig.last_said());
    }
}

#[test]
fn payload_that_the_client_does_not_end_is_ended_and_then_broken_off() {
    let plan = Plan { length: Length::Seconds(4.0), ..Plan::standard() };
    let mut rig = Rig::running(plan);
    let is_finish = |action: &Action| matches!(action, Action::Finish);
    rig.wait(Duration::from_secs(4) + GRACE_TIME - Duration::from_millis(1)).unwrap();
    assert_eq!(rig.count(is_finish), 0);
    rig.wait(Duration::from_millis(1)).unwrap();
    assert_eq!(rig.count(is_finish), 1);
    assert!(rig.last_said().contains(r#"{"finish":{"measurement":1,"why":"#));
    rig.wait(FLUSH_TIMEOUT - GRACE_TIME).unwrap();
    assert_eq!(rig.count(is_abandon), 1);
    assert!(rig.last_said().starts_with(r#"{"refuse":"#), "{}", rig.last_said());
    rig.propose(2, Plan::standard()).unwrap();
    assert_eq!(rig.count(|a| matches!(a, Action::ExpectFlows { .. })), 2);
}

/// A sink that takes minutes to flush to disk.
#[test]
fn a_report_that_takes_minutes_is_waited_for_and_the_client_has_its_own_time_after_it() {
    let plan = Plan { length: Length::Seconds(4.0), ..Plan::standard() };
    let mut rig = Rig::running(plan);
    rig.say(&Message::Finish(Finish { measurement: 1, why: None, soon: false })).unwrap();
    rig.wait(Duration::from_secs(600)).unwrap();
    assert_eq!(rig.count(is_abandon), 0, "it is still writing");
    rig.take(Input::Report(Known::Value(Box::new(end("far"))))).unwrap();
    assert!(rig.last_said().starts_with(r#"{"report":"#), "{}", rig.last_said());
    rig.wait(REPORTS_TIMEOUT - GRACE_TIME).unwrap();
    assert_eq!(rig.count(is_abandon), 0, "the report is on a slow way");
    let report = Report { measurement: 1, end: Known::Value(Box::new(end("near"))) };
    rig.say(&Message::Report(report)).unwrap();
    assert_eq!(rig.count(|a| matches!(a, Action::PeerReported(_))), 1);
    rig.propose(2, Plan::standard()).unwrap();
    assert_eq!(rig.count(|a| matches!(a, Action::ExpectFlows { .. })), 2);
}

#[test]
fn a_client_that_never_reports_is_not_waited_for_without_end() {
    let mut rig = Rig::running(Plan { length: Length::Seconds(4.0), ..Plan::standard() });
    rig.say(&Message::Finish(Finish { measurement: 1, why: None, soon: false })).unwrap();
    rig.take(Input::Report(Known::Value(Box::new(end("far"))))).unwrap();
    rig.wait(REPORTS_TIMEOUT).unwrap();
    assert_eq!(rig.count(is_abandon), 1);
}

#[test]
fn a_plan_of_bytes_moves_payload_no_longer_than_the_limit() {
    let plan = Plan { length: Length::Bytes(goodput_model::Bytes(1)), ..Plan::standard() };
    let mut rig = Rig::running(plan);
    for _ in 0..6 {
        rig.wait(Duration::from_secs(10)).unwrap();
    }
    assert_eq!(rig.count(|a| matches!(a, Action::Finish)), 0);
    rig.wait(GRACE_TIME).unwrap();
    assert_eq!(rig.count(|a| matches!(a, Action::Finish)), 1);
}

#[test]
fn a_client_that_waits_for_the_end_has_it_soon() {
    let mut rig = Rig::running(Plan::standard());
    rig.say(&Message::Finish(Finish { measurement: 1, why: None, soon: true })).unwrap();
    assert_eq!(rig.count(|a| matches!(a, Action::FinishSoon)), 1);
    rig.say(&Message::Finish(Finish { measurement: 1, why: None, soon: false })).unwrap();
    assert_eq!(rig.count(|a| matches!(a, Action::Finish)), 0, "it has begun");
}

#[test]
fn what_is_said_of_a_measurement_that_is_over_is_passed_over() {
    let mut rig = Rig::running(Plan::standard());
    rig.take(Input::FlowsFailed("no more memory".into())).unwrap();
    assert!(rig.last_said().contains("no more memory"));
    let late = OneSample { measurement: 1, sample: Box::new(sample(1.0, 1)) };
    rig.say(&Message::Sample(late)).unwrap();
    rig.say(&Message::Finish(Finish { measurement: 1, why: None, soon: false })).unwrap();
    rig.take(Input::Report(Known::Value(Box::new(end("far"))))).unwrap();
    assert_eq!(rig.count(|a| matches!(a, Action::PeerSampled(_) | Action::Finish)), 0);
    assert!(rig.say(&Message::Begin(About { measurement: 2 })).is_err());
}

#[test]
fn a_flood_of_samples_ends_the_session_and_the_measurement() {
    let mut rig = Rig::running(Plan::standard());
    let outcome = (0..1000).try_for_each(|i| {
        let sample = Box::new(sample(f64::from(i) / 1e6, 1));
        rig.say(&Message::Sample(OneSample { measurement: 1, sample }))
    });
    assert!(matches!(outcome, Err(WireError::Protocol(_))), "{outcome:?}");
    assert_eq!(rig.count(is_abandon), 1);
}

#[test]
fn a_client_that_does_nothing_is_asked_to_leave() {
    let mut rig = Rig::greeted(limits());
    let outcome = (0..100).try_for_each(|_| rig.wait(Duration::from_secs(10)));
    assert!(matches!(outcome, Err(WireError::TimedOut(_))), "{outcome:?}");
    assert_eq!(rig.now, origin() + IDLE_TIMEOUT);
}

#[test]
fn a_client_that_falls_silent_is_gone_after_15_seconds() {
    let mut rig = Rig::running(Plan { length: Length::Seconds(60.0), ..Plan::standard() });
    let mut outcome = Ok(());
    while outcome.is_ok() {
        rig.now = rig.session.next_timeout().unwrap();
        outcome = rig.session.handle_timeout(rig.now);
        rig.collect();
    }
    assert!(matches!(outcome, Err(WireError::TimedOut(_))), "{outcome:?}");
    assert_eq!(rig.now, origin() + Duration::from_secs(15));
    assert_eq!(rig.count(is_abandon), 1);
    assert_eq!(rig.said.iter().filter(|said| said.contains("ping")).count(), 2);
}

#[test]
fn a_setting_without_the_token_never_reaches_the_host() {
    let mut rig = Rig::greeted(limits());
    for id in 0..100 {
        let request = SettingRequest::Restore;
        rig.say(&Message::Setting(AskSetting { id, request })).unwrap();
        assert!(rig.last_said().contains(r#""not_permitted":true"#), "{}", rig.last_said());
    }
    assert_eq!(rig.count(|a| matches!(a, Action::Setting(_))), 0);
}

#[test]
fn a_client_that_hangs_up_in_the_middle_leaves_nothing_behind() {
    let mut rig = Rig::running(Plan::standard());
    assert!(matches!(rig.take(Input::Closed), Err(WireError::Closed(_))));
    assert_eq!(rig.count(is_abandon), 1);
    assert_eq!(rig.session.next_timeout(), None);
    assert_eq!(rig.take(Input::Closed), Ok(()));
}
