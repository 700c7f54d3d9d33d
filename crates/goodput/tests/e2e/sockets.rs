//! What the data connections are made of: their local ports, and MPTCP.

use std::net::TcpListener;

use goodput_model::{End, Known, Record};

use crate::common::{Home, Server, moved, record, stderr, unused_ports};

fn local_ports(record: &Record) -> Vec<u16> {
    record.connections.iter().map(|connection| connection.local.port()).collect()
}

#[test]
fn flows_have_the_source_ports_that_were_asked_for_and_skip_one_that_is_taken() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let run = |first: u16, options: &[&str]| {
        let first = format!("--source-port={first}");
        let all = ["test", &server.address, "--json", "--no-store", "-n", "100K", &first];
        record(&home.run(&[&all[..], options].concat()))
    };
    let first = unused_ports(3);
    let tcp = run(first, &["-P", "3"]);
    assert_eq!(local_ports(&tcp), [first, first + 1, first + 2]);
    // Connections that wait for their last packets to die (TIME_WAIT) do not keep their ports.
    let again = run(first, &["-P", "3", "--reverse"]);
    assert_eq!(local_ports(&again), local_ports(&tcp));
    let first = unused_ports(2);
    let udp = run(first, &["-u", "--rate", "10mbit", "-P", "2", "--reverse"]);
    assert_eq!(local_ports(&udp), [first, first + 1]);
    let first = unused_ports(3);
    let taken = TcpListener::bind(("0.0.0.0", first + 1)).expect("nobody else uses it");
    let around = run(first, &["-P", "2"]);
    assert_eq!(local_ports(&around), [first, first + 2]);
    let words = format!("{} is in use, so flow 1 has {}", first + 1, first + 2);
    assert!(around.doubts.iter().any(|doubt| doubt.contains(&words)), "{:?}", around.doubts);
    drop(taken);
}

#[test]
fn ports_that_cannot_be_spread_are_one_after_the_other_and_it_is_said_why() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let first = unused_ports(2);
    let spread = format!("--source-port=spread:{first}");
    let all = ["test", &server.address, "--json", "--no-store", "-n", "100K", "-P", "2", &spread];
    let unreported = "far end: the server shows its card's hash key only to clients with a token";
    for (way, why) in [(&[][..], unreported), (&["--reverse"], "near end: lo has no receive hash")]
    {
        let record = record(&home.run(&[&all[..], way].concat()));
        assert_eq!(local_ports(&record), [first, first + 1]);
        assert!(record.connections.iter().all(|flow| flow.expected_queue.is_none()));
        let why = format!("over receive queues: {why}");
        assert!(record.doubts.iter().any(|doubt| doubt.contains(&why)), "{:?}", record.doubts);
    }
}

#[test]
fn ports_beyond_the_last_are_refused() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let options = ["--no-store", "--source-port", "65535", "-P", "2"];
    let output = home.run(&[&["test", &server.address][..], &options].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("65535 to 65536"), "{}", stderr(&output));
}

/// A host with several addresses answers from the one that was asked: another's answer would be nobody's.
#[test]
fn udp_is_answered_from_the_address_that_was_asked() {
    let home = Home::new();
    for bind in ["0.0.0.0", "::"] {
        let mut server = Server::start(&home, &["--bind", bind, "--protocols", "goodput,iperf3=0"]);
        let port = |address: &str| address.rsplit(':').next().unwrap_or_default().to_string();
        let targets = [format!("127.0.0.9:{}", port(&server.address)), {
            format!("iperf3://127.0.0.9:{}", port(&server.next_address()))
        }];
        for target in targets {
            for way in [&[][..], &["-R"]] {
                let all = ["test", &target, "--json", "--no-store", "-n", "50K", "-u"];
                let record = record(&home.run(&[&all[..], &["--rate", "10mbit"], way].concat()));
                assert!(moved(&record), "{bind} {target} {way:?} {:?}", record.result);
            }
        }
    }
}

/// The most subflows that a flow of an end was seen with.
fn subflows(end: Option<&End>) -> Option<u64> {
    let samples = end?.samples.iter().flat_map(|sample| &sample.flows);
    samples.filter_map(|flow| flow.mptcp_subflows.as_ref()?.value().copied()).max()
}

/// Whether this kernel makes MPTCP sockets (protocol 262, include/uapi/linux/in.h).
fn has_mptcp() -> bool {
    let (domain, kind) = (socket2::Domain::IPV4, socket2::Type::STREAM);
    let has = socket2::Socket::new(domain, kind, Some(socket2::Protocol::MPTCP)).is_ok();
    if !has {
        goodput_testing::skip("a kernel with MPTCP, and net.mptcp.enabled = 1");
    }
    has
}

#[test]
fn mptcp_is_used_at_both_ends_and_its_subflows_are_reported() {
    if !has_mptcp() {
        return;
    }
    let home = Home::new();
    let server = Server::start(&home, &[]);
    for options in [&[][..], &["--reverse"], &["--both", "-P", "2"], &["--mover", "sendfile"]] {
        let all = ["test", &server.address, "--json", "--no-store", "-t", "1", "--mptcp"];
        let record = record(&home.run(&[&all[..], options].concat()));
        // A connection that the other end has closed already has none left when it is looked at.
        let most = [record.ends.near.value(), record.ends.far.value()].map(subflows);
        let one_at_most = |most: Option<u64>| most.is_some_and(|most| most <= 1);
        assert!(most.into_iter().all(one_at_most), "{options:?} {most:?} {:?}", record.doubts);
        let fell = record.doubts.iter().any(|doubt| doubt.contains("fell back"));
        assert!(!fell && moved(&record), "{options:?} {:?} {:?}", record.doubts, record.result);
    }
    let zerocopy = ["test", &server.address, "--no-store", "--mptcp", "--mover", "zerocopy"];
    let refused = home.run(&zerocopy);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("MPTCP"), "{}", stderr(&refused));
}

/// A server of another protocol listens for TCP: the kernel falls back, and the record says so.
#[test]
fn a_fallback_to_tcp_is_reported() {
    if !has_mptcp() {
        return;
    }
    let home = Home::new();
    let mut server = Server::start(&home, &["--protocols", "goodput,iperf3=0"]);
    let target = format!("iperf3://{}", server.next_address());
    let options = ["--json", "--no-store", "-t", "1", "--mptcp"];
    let record = record(&home.run(&[&["test", &target][..], &options].concat()));
    let doubted = record.doubts.iter().any(|doubt| doubt.contains("fell back to TCP"));
    assert!(doubted, "{:?}", record.doubts);
    let near = record.ends.near.value().expect("this end is known");
    let flow = near.samples.iter().flat_map(|sample| &sample.flows).next().expect("a flow");
    assert!(matches!(flow.mptcp_subflows, Some(Known::Missing(_))), "{flow:?}");
}

/// Nobody listens there, and nobody is asked.
#[test]
fn what_no_server_takes_is_refused_before_one_is_asked() {
    let home = Home::new();
    for (factor, words) in [
        ("socket.priority=default,7", ["socket.priority=7: a socket priority of 7", "allow 6"]),
        ("socket.busy_poll=default,2000", ["socket.busy_poll=2000: ", "allow 1000 us"]),
    ] {
        let output = home.run(&["compare", "127.0.0.1:9", factor, "--no-store"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}
