//! The server against transcripts of clients.

use super::*;
use crate::pair::{Alone, end, origin, server_config};
use crate::session::CREDENTIAL_REQUIRED;
use goodput_model::{Direction, FlowSample, Plan, Role, SocketMemory, TcpInfo};

/// A line of Debian's 6.1.2, unless a test changes it.
const LINE: &str = "buflen = 1024, nbuf = 4, win = 0, nstream = 1, rate = 4294967295, port = 5001, \
    trans = 1, braindead = 0, timeout = 0.000000, udp = 0, vers = 6.1.2, interval = 0.000000, \
    reverse = 0, format = 2048, traceroute = 0, irate = 0, thirdparty = _NULL_ , multicast = 0 , \
    datamss = 0 , tos = 0 , nbuf_bytes = 0 , rate_pps = 0 , nodelay = 0\n";

/// A server, and all its outputs.
type Served = Alone<ServerSession>;

impl Served {
    fn unasked() -> Self {
        Self::new(ServerSession::new(origin(), server_config(None)))
    }

    /// Runs up to the flows, with these changes of the line.
    fn asked(changes: &[(&str, &str)]) -> Self {
        let line = changes.iter().fold(LINE.to_string(), |line, (from, to)| {
            assert!(line.contains(from), "{from}");
            line.replace(from, to)
        });
        let mut served = Self::unasked();
        served.hear("HELO nuttcp v6.1.2\n").unwrap();
        served.hear(line).unwrap();
        served
    }

    fn run(changes: &[(&str, &str)], last: Sample) -> Self {
        let mut served = Self::asked(changes);
        served.feed(Input::Expecting { data_port: None }).unwrap();
        served.feed(Input::FlowsReady).unwrap();
        served.feed(Input::Sampled(Box::new(last.clone()))).unwrap();
        served.feed(Input::Ended(Box::new(last))).unwrap();
        served.feed(Input::Report(Known::Value(Box::new(end("far"))))).unwrap();
        assert!(served.closed && !served.ended_sending);
        assert!(matches!(served.did.last(), Some(Action::PeerReported(_))));
        served
    }

    fn flow_setup(&self) -> (&Plan, &FlowSetup) {
        let expects = self.did.iter().find_map(|action| match action {
            Action::ExpectFlows { plan, flow_setup, .. } => Some((&**plan, flow_setup)),
            _ => None,
        });
        expects.unwrap()
    }
}

fn flow(bytes: u64, role: Role) -> FlowSample {
    let tcp = TcpInfo {
        snd_mss_bytes: Some(1448),
        snd_cwnd_segments: Some(100),
        total_retrans_segments: Some(2),
        min_rtt_us: Some(1234),
        ..TcpInfo::default()
    };
    let memory = SocketMemory {
        rmem_alloc_bytes: 0,
        rcvbuf_bytes: 131_072,
        wmem_alloc_bytes: 0,
        sndbuf_bytes: 3_939_840,
        wmem_queued_bytes: 0,
        backlog_bytes: 0,
        drops: 0,
    };
    FlowSample {
        cpu_us: Known::Value(100_000),
        tcp: Known::Value(tcp),
        memory: Known::Value(memory),
        calls: Known::Value(5),
        ..FlowSample::unreported(0, role, bytes, "of no matter here")
    }
}

fn received(bytes: u64) -> Sample {
    let flows = vec![flow(bytes, Role::Receiver)];
    Sample { at_s: 1.0, sent_bytes: 0, received_bytes: bytes, flows }
}

fn sent(flows: Vec<FlowSample>) -> Sample {
    let bytes = flows.iter().map(|flow| flow.bytes).sum();
    Sample { at_s: 1.0, sent_bytes: bytes, received_bytes: 0, flows }
}

#[test]
fn a_client_that_sends_learns_what_came() {
    let served = Served::run(&[], received(1 << 20));
    assert_eq!(served.flow_setup().1, &FlowSetup::Listen { first_port: 5001 });
    let lines: Vec<_> = served.text().lines().collect();
    assert_eq!(lines[..2], ["HELO nuttcp v8.2.2", "OK v8.2.2"]);
    assert_eq!(
        lines[3..],
        [
            "nuttcp-r: buflen=1024, nbuf=4, nstream=1, port=5001 tcp",
            "nuttcp-r: accept from 192.0.2.1 af=inet",
            "nuttcp-r: send window size = 3939840, receive window size = 131072",
            "nuttcp-r: 1.0000 MB in 1.00 real seconds = 1024.00 KB/sec = 8.3886 Mbps",
            "nuttcp-r: 1.0000 MB in 0.10 CPU seconds = 10240.00 KB/cpu sec",
            "nuttcp-r: 5 I/O calls, msec/call = 204.80, calls/sec = 5.00",
            "nuttcp-r: 0.0user 0.1sys 0:01real 10%",
        ]
    );
}

#[test]
fn a_client_that_receives_is_connected_to_and_learns_of_the_path() {
    let changes = [("trans = 1", "trans = 0"), ("nstream = 1", "nstream = 2"), ("2048", "2112")];
    let served = Served::run(&changes, sent(vec![flow(1 << 20, Role::Sender); 2]));
    let (plan, flow_setup) = served.flow_setup();
    assert_eq!(flow_setup, &FlowSetup::Connect { port: Some(5001), apart: 1 });
    assert_eq!(plan.direction, Direction::Reverse);
    for line in [
        "nuttcp-t: buflen=1024 nbuf=4 nstream=2 port=5001 mode=tcp\n",
        "nuttcp-t: connect=192.0.2.1 mss=1448 rtt_ms=1.234 af=inet\n",
        "nuttcp-t: megabytes=2.0000 real_seconds=1.00 rate_KBps=2048.00 rate_Mbps=16.7772\n",
        "nuttcp-t: retrans=4 retrans_by_stream=2+2 cwnd=282 cwnd_by_stream=141+141\n",
        "nuttcp-t: stats=cpu user=0.0 system=0.2 elapsed=0:01 cpu=20%\n",
    ] {
        assert!(served.text().contains(line), "{line}in\n{}", served.text());
    }
}

#[test]
fn who_connects_can_be_reversed() {
    let listens = Served::asked(&[("trans = 1", "trans = 0"), ("reverse = 0", "reverse = 1")]);
    assert_eq!(listens.flow_setup().1, &FlowSetup::Listen { first_port: 5001 });
    let connects = Served::asked(&[("reverse = 0", "reverse = 1")]);
    assert_eq!(connects.flow_setup().1, &FlowSetup::Connect { port: Some(5001), apart: 1 });
}

#[test]
fn interval_lines_come_before_done_and_the_rest() {
    let served = Served::run(&[("interval = 0.000000", "interval = 1.000000")], received(1 << 20));
    let at = |text: &str| served.text().find(text).unwrap_or_else(|| panic!("{}", served.text()));
    assert!(at("    1.0000 MB /   1.00 sec =    8.3886 Mbps\n") < at("DONE\n"));
    assert!(at("DONE\n") < at("nuttcp-r: interval reporting every 1.00 second\n"));
}

#[test]
fn no_is_said_between_two_kos() {
    let cases = [
        ("traceroute = 0", "traceroute = 1", "doesn't run traceroute for a client"),
        ("port = 5001", "port = 1023", "invalid port/nstream"),
        ("nbuf = 4", "nbuf = 0", "invalid nbuf"),
    ];
    for (from, to, why) in cases {
        let served = Served::asked(&[(from, to)]);
        let (greeting, rest) = served.text().split_once('\n').unwrap();
        assert_eq!(greeting, "HELO nuttcp v8.2.2");
        assert_eq!(rest, format!("KO\nnuttcp-r: v8.2.2: {why}\nKO\n"));
        assert!(served.closed && matches!(served.did.last(), Some(Action::Refused(_))));
    }
    let mut busy = Served::asked(&[]);
    busy.feed(Input::FlowsFailed("busy:\nDONE".into())).unwrap();
    assert!(busy.text().ends_with("KO\nnuttcp-r: v8.2.2: busy: DONE\nKO\n"), "{}", busy.text());
}

/// A client that names a third party, up to the server's reply after the host's answer.
fn third_party(answer: Input) -> Served {
    let mut served =
        Served::asked(&[("thirdparty = _NULL_", "thirdparty = b.example , brief3 = 1")]);
    assert!(
        matches!(served.did.last(), Some(Action::MeasureWithThirdParty(test)) if test.host == "b.example")
    );
    served.feed(answer).unwrap();
    served
}

#[test]
fn what_a_third_party_brings_is_said_up_to_done() {
    let mut served = third_party(Input::Expecting { data_port: None });
    served.feed(Input::ThirdPartyOutput("    1.0000 MB\n".into())).unwrap();
    served.feed(Input::ThirdPartyDone(Ok(()))).unwrap();
    assert!(served.text().ends_with("OK v8.2.2\n    1.0000 MB\nDONE\n"), "{}", served.text());
    assert!(served.closed);
    let mut failed = third_party(Input::Expecting { data_port: None });
    failed.feed(Input::ThirdPartyDone(Err("refused\nDONE".into()))).unwrap();
    let why = "OK v8.2.2\nnuttcp-t: v8.2.2: Error: refused DONE\nDONE\n";
    assert!(failed.text().ends_with(why), "{}", failed.text());
    let refused = third_party(Input::FlowsFailed("doesn't allow 3rd party nuttcp".into()));
    let why = "KO\nnuttcp-t: v8.2.2: doesn't allow 3rd party nuttcp\nKO\n";
    assert!(refused.closed && refused.text().ends_with(why), "{}", refused.text());
}

#[test]
fn a_third_party_ends_with_its_client_and_in_time() {
    for input in [Input::Closed, Input::Received(b"x".to_vec())] {
        let mut served = third_party(Input::Expecting { data_port: None });
        assert!(served.feed(input).is_err());
        assert!(matches!(served.did.last(), Some(Action::Abandon)));
    }
    let mut served = third_party(Input::Expecting { data_port: None });
    assert!(served.wait_until_due().is_err());
    let said = served.text();
    assert!(said.contains("Error: ") && said.ends_with("DONE\n"), "{said}");
}

#[test]
fn what_a_client_says_is_never_said_back() {
    let mut served = Served::unasked();
    let why = served.hear("GET /\x1b[2Jevil HTTP/1.1\r\n").unwrap_err().to_string();
    assert!(why.contains("a web client"), "{why}");
    assert_eq!(served.text(), "KO\nnuttcp-r: v8.2.2: error scanning parameters\nKO\n");
    let strange = Served::asked(&[("thirdparty = _NULL_", "thirdparty = \x1b[2J;evil")]);
    assert!(!strange.text().contains("evil"), "{}", strange.text());
}

#[test]
fn parameters_without_a_greeting_are_served() {
    let mut served = Served::unasked();
    served.hear(LINE).unwrap();
    served.feed(Input::Expecting { data_port: None }).unwrap();
    assert_eq!(served.text(), "OK v8.2.2\n");
}

#[test]
fn a_server_that_asks_for_a_token_says_so() {
    let mut served = Served::asked(&[]);
    served.feed(Input::Denied(CREDENTIAL_REQUIRED.into())).unwrap();
    assert!(served.text().contains("requires a token") && served.closed);
}

#[test]
fn a_receiving_client_ends_it_with_anything_that_can_be_read() {
    for input in [Input::Closed, Input::Received(b"x".to_vec())] {
        let mut served = Served::asked(&[("trans = 1", "trans = 0")]);
        served.feed(Input::Expecting { data_port: None }).unwrap();
        served.feed(Input::FlowsReady).unwrap();
        served.feed(input).unwrap();
        assert!(matches!(served.did.last(), Some(Action::Finish)));
    }
    let mut served = Served::asked(&[]);
    served.feed(Input::Expecting { data_port: None }).unwrap();
    served.feed(Input::FlowsReady).unwrap();
    assert!(served.feed(Input::Closed).is_err(), "a sender over TCP that is gone");
    assert!(served.did.iter().any(|action| matches!(action, Action::Abandon)));
}
