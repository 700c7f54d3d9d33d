//! The answering side: several clients, one-off, signals, tokens.

use std::os::unix::net::UnixDatagram;
use std::process::Stdio;

use crate::common::{Home, Server, moved, record, stderr, stdout};

#[test]
fn clients_are_served_at_the_same_time() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let clients: Vec<_> = (0..4)
        .map(|_| {
            home.goodput(&["test", &server.address, "--json", "--no-store", "-n", "64M"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for client in clients {
        record(&client.wait_with_output().unwrap());
    }
}

/// Address space of a heap of glibc beside the first, if it begins at a multiple of itself (`HEAP_MAX_SIZE`,
/// malloc/arena.c).
const HEAP_BYTES: u64 = 64 << 20;

/// How many heaps beside the first one a server of glibc has. All of a heap's space is mapped, a part of it without
/// any right.
fn more_heaps(server: &Server) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", server.pid()));
    let maps = maps.expect("the server is there");
    let range = |line: &str| -> Option<(u64, u64, bool)> {
        let mut words = line.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let (rights, inode) = (words.next()?, words.nth(2)?);
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some((number(from)?, number(to)?, inode == "0" && rights != "---p"))
    };
    let ranges: Vec<_> = maps.lines().filter_map(range).collect();
    let is_heap = |pair: &[(u64, u64, bool)]| {
        let [(from, to, is_used), (next, end, next_used)] = *pair else { return false };
        let whole = to == next && end - from == HEAP_BYTES && from % HEAP_BYTES == 0;
        is_used && !next_used && whole
    };
    ranges.windows(2).filter(|pair| is_heap(pair)).count()
}

#[test]
fn threads_that_come_and_go_leave_no_heap_each_behind() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    for way in [&[][..], &["-R"]] {
        let test = ["test", &server.address, "--json", "--no-store", "-n", "2M", "-P", "16"];
        record(&home.run(&[&test[..], way].concat()));
    }
    assert!(more_heaps(&server) <= 1, "{}", more_heaps(&server));
}

#[test]
fn more_measurements_than_allowed_are_refused_as_busy() {
    let home = Home::new();
    let server = Server::start(&home, &["--max-clients", "1"]);
    let mut long = home
        .goodput(&["test", &server.address, "--json-stream", "--no-store", "-t", "30"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // "began" on its output means that the place is taken.
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(long.stdout.take().unwrap()));
    assert!(lines.any(|line| line.unwrap().contains("began")));
    let second = home.run(&["test", &server.address, "--no-store", "-t", "1"]);
    long.kill().unwrap();
    long.wait().unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(stderr(&second).contains("busy"), "{}", stderr(&second));
}

/// A measurement that goes on until it is killed, begun.
fn begun(home: &Home, server: &Server, seconds: &str) -> std::process::Child {
    let arguments = ["test", &server.address, "--json-stream", "--no-store", "-t", seconds];
    let mut client = home
        .goodput(&arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program under test can be started");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(
        client.stdout.take().expect("stdout is piped"),
    ));
    assert!(lines.any(|line| line.expect("a client prints text").contains("began")));
    // Its output goes on, and someone must take it.
    std::thread::spawn(move || lines.for_each(drop));
    client
}

#[test]
fn an_exclusive_server_is_busy_with_one() {
    let home = Home::new();
    let server = Server::start(&home, &["--exclusive"]);
    let mut first = begun(&home, &server, "30");
    let second = home.run(&["test", &server.address, "--no-store", "-t", "1"]);
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(stderr(&second).contains("one at a time"), "{}", stderr(&second));
}

#[test]
fn an_exclusive_server_with_a_queue_serves_one_after_the_other() {
    let home = Home::new();
    let server = Server::start(&home, &["--exclusive=queue"]);
    let mut first = begun(&home, &server, "2");
    let second = record(&home.run(&["test", &server.address, "--json", "--no-store", "-n", "1M"]));
    assert!(first.wait().unwrap().success());
    assert!(moved(&second), "{:?}", second.result);
}

#[test]
fn a_port_that_is_taken_is_reported_and_the_others_are_served() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let protocols = format!("goodput,iperf3={port},nuttcp=0");
    let mut server = Server::start(&home, &["--protocols", &protocols]);
    assert_ne!(server.next_address(), format!("127.0.0.1:{port}"));
    record(&home.run(&["test", &server.address, "--json", "--no-store", "-n", "1M"]));
    let log = std::fs::read_to_string(home.path().join("server.log")).unwrap();
    assert!(
        log.contains(&format!(
            "iperf3 is served only on goodput's port: can't listen on 127.0.0.1:{port}"
        )),
        "{log}"
    );
    let strict =
        ["serve", "--port", "0", "--bind", "127.0.0.1", "--protocols", &protocols, "--strict"];
    let refused = home.run(&strict);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains(&port.to_string()), "{}", stderr(&refused));
}

#[test]
fn a_protocol_that_is_not_chosen_is_not_spoken() {
    let home = Home::new();
    let mut server = Server::start(&home, &["--protocols", "iperf3=0"]);
    let iperf3 = server.next_address();
    let output = home.run(&["test", &server.address, "--no-store", "-t", "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_ne!(iperf3, server.address);
}

#[test]
fn one_off_leaves_after_the_first_measurement() {
    let home = Home::new();
    let mut server = Server::start(&home, &["--one-off"]);
    record(&home.run(&["test", &server.address, "--json", "--no-store", "-n", "1M"]));
    assert!(server.stop("-0").success());
}

#[test]
fn a_signal_stops_the_server_cleanly() {
    let home = Home::new();
    for signal in ["-INT", "-TERM"] {
        assert!(Server::start(&home, &[]).stop(signal).success(), "{signal}");
    }
}

#[test]
fn systemd_is_notified_when_the_server_is_ready() {
    let home = Home::new();
    let path = home.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let mut child = home
        .goodput(&["serve", "--bind", "127.0.0.1", "--port", "0"])
        .env("NOTIFY_SOCKET", &path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut message = [0; 256];
    let length = socket.recv(&mut message).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(String::from_utf8_lossy(&message[..length]).contains("READY=1"));
}

const TOKEN: &str = "4cf1d5a6e0b27c9388ab41f02d6e759c";

#[test]
fn a_token_secures_the_conversation_and_a_wrong_one_is_refused() {
    let home = Home::new();
    let right = home.secret("token", TOKEN);
    let wrong = home.secret("wrong", "7e0b96ac31d5f82448b1c09aa6f3d27e");
    let right = right.to_str().unwrap();
    let server = Server::start(&home, &["--token-file", right, "--require-token"]);
    let test = |more: &[&str]| {
        let mut all = vec!["test", &server.address, "--json", "--no-store", "-n", "1M"];
        all.extend(more);
        home.run(&all)
    };
    record(&test(&["--token-file", right]));
    let denied = test(&["--token-file", wrong.to_str().unwrap()]);
    assert_eq!(denied.status.code(), Some(3), "{}", stderr(&denied));
    let without = test(&[]);
    assert_eq!(without.status.code(), Some(3), "{}", stderr(&without));
}

#[test]
fn without_a_token_nothing_changes_at_the_far_end() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let setting = "far:sysctl.net.ipv4.tcp_no_metrics_save=0,1";
    let output = home.run(&["compare", &server.address, setting, "--no-store", "-t", "1"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("token"), "{}", stderr(&output));
}

#[test]
fn a_token_alone_changes_nothing_at_the_far_end_either() {
    let home = Home::new();
    let token = home.secret("token", TOKEN);
    let token = token.to_str().unwrap();
    let allowed = ["--token-file", token, "--allow-settings", "sysctl.net.ipv4.tcp_sack"];
    for (options, setting, why) in [
        (&allowed[..2], "tcp_no_metrics_save=0,1", "--allow-settings"),
        (&allowed, "tcp_no_metrics_save=0,1", "--allow-settings"),
        (&allowed, "tcp_sack=2,3", "0 to 1"),
        (&allowed, "ip_forward=0,1", "never access this setting"),
    ] {
        let server = Server::start(&home, options);
        let setting = format!("far:sysctl.net.ipv4.{setting}");
        let compare =
            ["compare", &server.address, &setting, "--no-store", "-t", "1", "--token-file", token];
        let output = home.run(&compare);
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
        let own = setting.strip_prefix("far:").unwrap().split(',').next().unwrap();
        let by_hand = format!("by hand     at the far end: goodput settings set {own}\n");
        assert!(stderr(&output).contains(&by_hand), "{}", stderr(&output));
    }
}

#[test]
fn a_token_that_others_can_read_is_refused() {
    let home = Home::new();
    let token = home.file("token", TOKEN);
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&token, readable).unwrap();
    let token = token.to_str().unwrap();
    for command in [&["serve", "--port", "0"][..], &["test", "127.0.0.1", "--no-store"]] {
        let output = home.run(&[command, &["--token-file", token]].concat());
        assert!(!output.status.success());
        assert!(stderr(&output).contains("chmod 600"), "{}", stderr(&output));
    }
}

#[test]
fn a_private_server_reports_nothing_and_is_measured_all_the_same() {
    let home = Home::new();
    let server = Server::start(&home, &["--private"]);
    for direction in [&[][..], &["--reverse"], &["--both"]] {
        let arguments = ["test", &server.address, "--json", "--no-store", "-t", "1"];
        let record = record(&home.run(&[&arguments[..], direction].concat()));
        let why = record.ends.far.get().unwrap_err().to_string();
        assert!(why.contains("--private"), "{why}");
        assert!(moved(&record), "{:?}", record.result);
        assert!(!record.intervals.is_empty());
        let counted = record.doubts.iter().any(|doubt| doubt.contains("acknowledged"));
        assert_eq!(counted, direction != ["--reverse"], "{:?}", record.doubts);
    }
    let left = ["test", &server.address, "--no-store", "-n", "1M", "--both", "--mover", "auto"];
    let shown = stdout(&home.run(&left));
    for does in [
        "near sent by ",
        "the far end does not report how it sent",
        "the far end does not report how it received",
    ] {
        assert!(shown.contains(does), "{does} in {shown}");
    }
}

#[test]
fn what_nobody_counts_is_said_to_be_so() {
    let home = Home::new();
    let server = Server::start(&home, &["--private"]);
    let arguments =
        ["test", &server.address, "--no-store", "-n", "10K", "--udp", "--rate", "1mbit"];
    let output = home.run(&arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no end reports what arrived"), "{}", stderr(&output));
}
