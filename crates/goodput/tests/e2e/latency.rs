//! Round trips beside the flows, and the search for the highest rate, on loopback.

use std::net::UdpSocket;
use std::path::Path;

use goodput_model::{Kind, Known, RateOutcome, Record};
use goodput_testing::wait_for;

use crate::common::{Home, Server, record, stderr};
use crate::hostile::thread;

#[test]
fn every_way_to_time_round_trips_has_its_numbers() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    for more in [&[][..], &["-R"], &["--udp", "--rate", "10mbit"]] {
        let arguments = [&["test", &server.address, "--latency", "-t", "2", "--json"], more];
        let record = record(&home.run(&arguments.concat()));
        let latency = record.latency.expect("it was asked for");
        for way in [&latency.tcp_connect, &latency.udp_echo] {
            for phase in [&way.idle, &way.loaded] {
                let Known::Value(seen) = phase else { panic!("{more:?}: {way:?}") };
                let order = [seen.min_us, seen.p50_us, seen.p90_us, seen.p99_us, seen.max_us];
                assert!(order.is_sorted() && order[0] > 0.0 && seen.n > 0, "{more:?}: {seen:?}");
            }
        }
        let udp = more.contains(&"--udp");
        assert_eq!(latency.tcp_rtt.loaded.value().is_none(), udp, "{more:?}: {latency:?}");
        assert!(latency.loaded_rpm.value().is_some_and(|rpm| *rpm > 0.0));
    }
}

/// How many UDP sockets of this port are connected, each to one client.
fn connected(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/udp").expect("the kernel reports it");
    let own = format!(":{port:04X}");
    let is_connected = |line: &&str| {
        let mut words = line.split_whitespace().skip(1);
        let (local, remote) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        local.ends_with(&own) && remote != "00000000:0000"
    };
    table.lines().skip(1).filter(is_connected).count()
}

#[test]
fn echoes_have_sockets_of_their_own_while_they_are_measured() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let port: std::net::SocketAddr = server.address.parse().expect("an address");
    let test = ["test", &server.address, "--latency", "-t", "60", "--json", "--no-store"];
    let mut client = home.goodput(&test);
    let mut client = client.stdout(std::process::Stdio::null()).spawn().expect("it starts");
    wait_for("idle, loaded and the clocks have one each", || connected(port.port()) == 3);
    client.kill().expect("it runs");
    client.wait().expect("it was started");
    wait_for("they end with the measurement", || connected(port.port()) == 0);
}

#[test]
fn echoes_wait_for_a_processor_less_long_than_other_things() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let slice_ns = |of: &Path| -> Option<f64> {
        let sched = std::fs::read_to_string(of.join("sched")).ok()?;
        let line = sched.lines().find(|line| line.starts_with("se.slice"))?;
        line.rsplit(':').next()?.trim().parse().ok()
    };
    // This thread is always there, and those of the server come one after the other.
    let Some(usual) = slice_ns(Path::new("/proc/thread-self")) else {
        return goodput_testing::skip(
            "a kernel that reports the time slices of threads (Linux 6.12)",
        );
    };
    let of_server = |name| thread(&server, name).and_then(|thread| slice_ns(&thread));
    wait_for("the usual slice", || of_server("datagrams").is_some_and(|own| own >= usual));
    wait_for("a short slice", || of_server("echoes").is_some_and(|own| own < usual));
}

#[test]
fn a_comparison_has_the_times_under_load_of_every_arm() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let arms = ["compare", &server.address, "socket.nodelay=off,on", "--latency", "-t", "1"];
    let limits = ["--max-time", "8", "--no-store"];
    let output = home.run(&[&arms[..], &limits, &["--json"]].concat());
    // On loopback these arms are alike, or too few runs fit into the time to say so.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{output:?}");
    // Six runs of each arm take twice a second and longer.
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("note: --max-time 8s is too short to judge 2 arms: 6 runs of"), "{said}");
    let record: Record = serde_json::from_slice(&output.stdout).expect("one record");
    let comparison = record.comparison.expect("it is one");
    for arm in &comparison.arms {
        let latency = arm.latency.as_ref().expect("it was asked for");
        for times in [&latency.tcp_connect, &latency.udp_echo] {
            assert!(times.p50_us.value().is_some(), "{times:?}");
        }
    }
    let text = home.run(&[&arms[..], &limits].concat());
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("under load, median (p99)") && text.contains("least delay "), "{text}");
}

#[test]
fn another_program_is_not_probed_and_the_reason_is_reported() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let target = format!("iperf3://{}", server.address);
    let record = record(&home.run(&["test", &target, "--latency", "-t", "1", "--json"]));
    let latency = record.latency.expect("it was asked for");
    let Known::Missing(why) = &latency.tcp_connect.loaded else { panic!("{latency:?}") };
    assert!(why.to_string().contains("only a goodput server"), "{why}");
    assert!(latency.udp_echo.idle.value().is_none());
    assert!(latency.tcp_rtt.loaded.value().is_some(), "{latency:?}");
}

#[test]
fn nobody_else_has_an_echo() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(&server.address).unwrap();
    socket.set_read_timeout(Some(goodput_testing::WAIT_TIMEOUT)).unwrap();
    let datagram = |kind: u8, parts: &[&[u8]]| {
        let mut datagram = [b"goodput".as_slice(), &[kind], &parts.concat()].concat();
        datagram.resize(64, 0);
        datagram
    };
    let (cookie, mut reply) = ([7; 16], [0; 128]);
    // Anyone who asks gets a nonce, but this cookie belongs to no measurement.
    socket.send(&datagram(b'h', &[&cookie])).unwrap();
    assert_eq!(socket.recv(&mut reply).unwrap(), 24);
    let nonce = reply[8..24].to_vec();
    socket.send(&datagram(b'e', &[&cookie, &nonce, &[0; 8]])).unwrap();
    // What is answered next is the next hello, and not the echo.
    socket.send(&datagram(b'h', &[&cookie])).unwrap();
    assert_eq!(socket.recv(&mut reply).unwrap(), 24);
    assert_eq!(&reply[..8], b"goodputq");
}

#[test]
fn a_sender_that_is_held_to_a_rate_is_the_limit() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let arguments = ["test", &server.address, "--udp", "--find-rate", "--datagram-sizes", "64,256"];
    // So few datagrams that all of a trial fit the socket's buffer: a host that is busy loses none.
    let more = ["--max-loss", "5%", "--rate", "100kbit", "-t", "1", "--json"];
    let record = record(&home.run(&[&arguments[..], &more].concat()));
    assert_eq!(record.kind, Kind::FindRate);
    let sizes: Vec<_> = record.rate_searches.iter().map(|s| s.datagram_bytes.0).collect();
    assert_eq!(sizes, [64, 256]);
    for search in &record.rate_searches {
        assert_eq!(search.outcome, RateOutcome::Sender, "{search:?}");
        let rate = search.rate_bits_per_s.expect("there is a rate").0;
        assert!(rate < 1.05e5, "{search:?}");
        assert!(search.trials.iter().any(|trial| trial.confirms && trial.passed));
    }
}

#[test]
fn nonsense_is_refused_in_words() {
    let home = Home::new();
    for (arguments, word) in [
        (&["--find-rate"][..], "--udp"),
        (&["--udp", "--find-rate", "--max-loss", "150%"], "percent"),
        (&["--udp", "--find-rate", "--datagram-sizes", "0"], "at least 1 byte"),
        (&["--udp", "--datagram-sizes", "64"], "--find-rate"),
        (&["--udp", "--find-rate", "--latency"], "--latency"),
        (&["--udp", "--find-rate", "--both"], "--both"),
    ] {
        let output = home.run(&[&["test", "127.0.0.1:9"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(word), "{arguments:?}: {}", stderr(&output));
    }
    let server = Server::start(&home, &[]);
    // `--sizes` is the old name.
    for name in ["--datagram-sizes", "--sizes"] {
        let arguments = ["test", &server.address, "--udp", "--find-rate", name, "8"];
        let output = home.run(&arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("a datagram of 8 bytes"), "{}", stderr(&output));
    }
}
