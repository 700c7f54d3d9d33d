//! The client against transcripts of servers.

use super::*;
use crate::pair::{Alone, client_config, end, origin, sample};
use crate::session::Session;
use crate::ticket::FlowSetup;
use goodput_model::{Bytes, Direction, FlowTotals, Known, Length, Totals, Transport};

/// A client, and all its outputs.
type Asking = Alone<ClientSession>;

impl Asking {
    /// Greeted by a server of this version.
    fn greeted(version: &str) -> Self {
        let mut asking = Self::new(ClientSession::new(origin(), client_config(None)));
        asking.hear(format!("HELO nuttcp v{version}\n")).unwrap();
        asking
    }

    fn proposed(version: &str, plan: &Plan) -> Self {
        let mut asking = Self::greeted(version);
        asking.feed(Input::Propose(Box::new(plan.clone()))).unwrap();
        asking
    }

    /// Runs up to moving payload.
    fn begun(plan: &Plan) -> Self {
        let mut asking = Self::proposed("6.1.2", plan);
        asking.feed(Input::Expecting { data_port: None }).unwrap();
        asking.hear("OK v6.1.2\n").unwrap();
        asking.feed(Input::FlowsReady).unwrap();
        asking.feed(Input::Begin).unwrap();
        asking
    }

    fn flow_setup(&self) -> Option<&FlowSetup> {
        self.did.iter().find_map(|action| match action {
            Action::OpenFlows { flow_setup, .. } => Some(flow_setup),
            _ => None,
        })
    }

    fn totals(&self) -> (&Totals, &FlowTotals) {
        let totals = self.did.iter().find_map(|action| match action {
            Action::PeerTotals(totals) => Some(&**totals),
            _ => None,
        });
        (totals.unwrap(), &totals.unwrap().flows[0])
    }
}

fn seconds(seconds: f64) -> Plan {
    Plan { length: Length::Seconds(seconds), ..Plan::standard() }
}

/// The last lines of a receiving server, as 6.1.2 prints them with `-fparse`.
const REPORT: &str = "nuttcp-r: megabytes=2.4375 real_seconds=1.02 rate_KBps=2438.62 \
    rate_Mbps=19.9772\nnuttcp-r: stats=cpu user=0.0 system=0.0 elapsed=0:01 cpu=3% memory=0i+0d\n";

#[test]
fn a_measurement_is_asked_for_in_the_words_of_the_servers_version() {
    let mut asking = Asking::proposed("6.1.2", &seconds(2.0));
    assert_eq!(
        asking.text(),
        "HELO nuttcp v8.2.2\nbuflen = 131072, nbuf = 2147483647, win = 0, nstream = 1, \
         rate = 4294967295, port = 5101, trans = 1, braindead = 0, timeout = 2.000000, udp = 0, \
         vers = 6.1.2, interval = 0.000000, reverse = 0, format = 2112, traceroute = 0, irate = 0, \
         thirdparty = _NULL_ , multicast = 0 , datamss = 0 , tos = 0 , nbuf_bytes = 0 , \
         rate_pps = 0 , nodelay = 0\n"
    );
    assert_eq!(asking.flow_setup(), None, "not before it is accepted");
    asking.hear("OK v6.1.2\n").unwrap();
    assert_eq!(asking.flow_setup(), Some(&FlowSetup::Connect { port: Some(5101), apart: 1 }));
    assert!(Asking::proposed("9.1.1", &seconds(2.0)).text().contains("vers = 8.2.2"));
}

#[test]
fn the_data_goes_to_the_port_that_was_asked_for_or_nowhere() {
    let plan = Plan { data_port: Some(6000), ..seconds(2.0) };
    let mut tcp = Asking::proposed("6.1.2", &plan);
    assert!(tcp.text().contains("port = 6000"), "{}", tcp.text());
    tcp.hear("OK v6.1.2\n").unwrap();
    assert_eq!(tcp.flow_setup(), Some(&FlowSetup::Connect { port: Some(6000), apart: 1 }));
    let (transport, direction, chunk_bytes) = (Transport::Udp, Direction::Reverse, Bytes(1400));
    let mut udp = Asking::proposed("6.1.2", &Plan { transport, direction, chunk_bytes, ..plan });
    assert_eq!(udp.flow_setup(), Some(&FlowSetup::Listen { first_port: 6000 }));
    udp.feed(Input::FlowsFailed("taken".into())).unwrap();
    assert_eq!(udp.did.iter().filter(|did| matches!(did, Action::OpenFlows { .. })).count(), 1);
}

#[test]
fn a_far_sender_is_connected_to_over_tcp_and_awaited_over_udp() {
    let reverse = Plan { direction: Direction::Reverse, ..seconds(2.0) };
    let mut tcp = Asking::proposed("6.1.2", &reverse);
    assert!(
        tcp.text().contains("trans = 0") && tcp.text().contains("reverse = 1"),
        "{}",
        tcp.text()
    );
    tcp.hear("OK v6.1.2\n").unwrap();
    assert_eq!(tcp.flow_setup(), Some(&FlowSetup::Connect { port: Some(5101), apart: 1 }));
    let (transport, chunk_bytes) = (Transport::Udp, Bytes(1400));
    let mut udp = Asking::proposed("6.1.2", &Plan { transport, chunk_bytes, ..reverse });
    assert_eq!(udp.flow_setup(), Some(&FlowSetup::Listen { first_port: 5101 }));
    assert_eq!(udp.text(), "HELO nuttcp v8.2.2\n", "no port is named before this end has it");
    udp.feed(Input::FlowsFailed("taken".into())).unwrap();
    assert_eq!(udp.did.iter().filter(|did| matches!(did, Action::OpenFlows { .. })).count(), 2);
    udp.feed(Input::Expecting { data_port: None }).unwrap();
    assert!(udp.text().contains("port = 5102, trans = 0"), "{}", udp.text());
    udp.feed(Input::FlowsFailed("nobody came".into())).unwrap();
    assert_eq!(udp.did.iter().filter(|did| matches!(did, Action::OpenFlows { .. })).count(), 2);
}

#[test]
fn flows_that_come_before_the_ok_are_not_ready_before_it() {
    let plan = Plan {
        direction: Direction::Reverse,
        transport: Transport::Udp,
        chunk_bytes: Bytes(1400),
        ..seconds(1.0)
    };
    let mut asking = Asking::proposed("8.2.2", &plan);
    asking.feed(Input::Expecting { data_port: None }).unwrap();
    asking.feed(Input::FlowsReady).unwrap();
    assert!(!asking.did.iter().any(|action| matches!(action, Action::PeerReady)));
    asking.hear("OK v8.2.2\n").unwrap();
    assert!(matches!(asking.did.last(), Some(Action::PeerReady)));
}

#[test]
fn a_no_is_passed_on_with_its_reasons_made_plain() {
    let mut asking = Asking::proposed("8.2.2", &seconds(1.0));
    let no = "KO\nnuttcp-r: v8.2.2: Error: bind() on data stream failed\n\
              Error: Address already \x1b[1min use\nKO\n";
    asking.hear(no).unwrap();
    let why = asking.refusal();
    assert!(why.contains("bind() on data stream failed Error: Address already"), "{why}");
    assert!(!why.contains('\x1b'));
    asking.feed(Input::Propose(Box::new(seconds(1.0)))).unwrap();
    assert!(asking.refusal().contains("one measurement per connection"));
}

#[test]
fn what_has_no_words_is_refused_before_anything_is_said() {
    let both = Plan { direction: Direction::Both, ..seconds(1.0) };
    let asking = Asking::proposed("8.2.2", &both);
    assert!(asking.refusal().contains("--both"));
    assert_eq!(asking.text(), "HELO nuttcp v8.2.2\n");
}

#[test]
fn a_report_ends_the_measurement_when_both_ends_have_ended() {
    let mut asking = Asking::begun(&seconds(1.0));
    asking.feed(Input::Finish(None)).unwrap();
    asking.hear(REPORT).unwrap();
    asking.feed(Input::Closed).unwrap();
    assert!(!asking.did.iter().any(|action| matches!(action, Action::PeerTotals(_))));
    asking.feed(Input::Ended(Box::new(sample(1.0, 2_555_904)))).unwrap();
    assert!(matches!(asking.did.last(), Some(Action::PeerReported(Known::Missing(_)))));
    let (totals, flow) = asking.totals();
    assert_eq!((&totals.cpu_percent, &flow.bytes), (&Known::Value(3.0), &Known::Value(2_555_904)));
    assert!(!asking.ended_sending, "a sender over TCP says and ends nothing");
    assert!(!asking.closed);
    asking.feed(Input::Report(Known::Value(Box::new(end("near"))))).unwrap();
    assert!(asking.closed);
}

#[test]
fn half_a_report_is_an_error_with_the_servers_complaint() {
    let mut asking = Asking::begun(&seconds(1.0));
    asking.hear("nuttcp-r: v6.1.2: Error: bind: Address already in use\n").unwrap();
    asking.hear(REPORT.lines().next().unwrap()).unwrap();
    let why = asking.feed(Input::Closed).unwrap_err().to_string();
    assert!(why.contains("all its counts; it reported: nuttcp-r: v6.1.2: Error: bind"), "{why}");
}

#[test]
fn a_far_sender_is_stopped_by_the_end_of_the_control_connection() {
    let mut asking = Asking::begun(&Plan { direction: Direction::Reverse, ..seconds(9.0) });
    asking.feed(Input::Finish(None)).unwrap();
    assert!(asking.ended_sending && !asking.closed);
}

#[test]
fn other_servers_are_named_and_old_ones_turned_away() {
    let answer = |text: &str| {
        let mut session = ClientSession::new(origin(), client_config(None));
        session.handle(origin(), Input::Received(text.into())).unwrap_err()
    };
    assert!(matches!(answer("HTTP/1.1 400 Bad Request\r\n"), WireError::Foreign { .. }));
    assert!(answer("HELO nuttcp v5.3.1\n").to_string().contains("6.1.2 and later"));
}
