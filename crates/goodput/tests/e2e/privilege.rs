//! What a server gives up before it answers, and that it measures anyway.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use goodput_model::{Plan, Role, Transport};
use goodput_mover::movers::{self, Mover};
use goodput_wire::protocols;

use crate::common::{Home, Server, exe, moved, record, stderr};

/// A line of /proc/PID/status (proc_pid_status(5)), without its name.
fn status(server: &Server, name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let mut lines = text.lines().filter_map(|line| line.split_once(":\t"));
    let found = lines.find(|(key, _)| *key == name);
    found.unwrap_or_else(|| panic!("no {name} in {text}")).1.trim().to_owned()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn without_privileges(server: &Server) {
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(u64::from_str_radix(&status(server, set), 16), Ok(0), "{set}");
    }
    assert_eq!(status(server, "NoNewPrivs"), "1");
    // 2: a filter of system calls.
    assert_eq!(status(server, "Seccomp"), "2");
    if is_root() {
        assert_eq!(u64::from_str_radix(&status(server, "CapBnd"), 16), Ok(0));
        let ids = status(server, "Uid") + "\t" + &status(server, "Gid");
        assert!(ids.split_whitespace().all(|id| id != "0"), "{ids}");
        assert_eq!(status(server, "Groups"), "");
    }
}

#[test]
fn a_server_has_no_privileges_once_it_listens() {
    let home = Home::new();
    without_privileges(&Server::start(&home, &[]));
    let token = home.file("token", "4cf1d5a6e0b27c9388ab41f02d6e759c");
    crate::common::set_mode(&token, 0o600);
    let token = token.to_str().expect("temporary directories have plain names");
    let settings = ["--token-file", token, "--allow-settings", "sysctl.net.ipv4.*"];
    without_privileges(&Server::start(&home, &settings));
}

/// Users who may not lock much memory, which are most, get a line in the log before the privileges are
/// dropped.
#[test]
fn a_log_from_the_beginning_keeps_no_server_from_starting() {
    let home = Home::new();
    let mut server = Command::new("sh")
        .args(["-c", "ulimit -l 64; exec \"$@\"", "sh"])
        .arg(exe())
        .args(["-vv", "serve", "--port", "0", "--bind", "127.0.0.1"])
        .env("GOODPUT_STATE_DIR", home.path().join("state"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell can be started");
    let mut line = String::new();
    let stdout = server.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut line).expect("it is a pipe");
    server.kill().expect("it is a child");
    server.wait().expect("it is a child");
    assert!(line.contains("listening on"), "{line:?}");
}

#[test]
fn a_server_for_debugging_stays_who_it_is() {
    let home = Home::new();
    let server = Server::start(&home, &["--no-sandbox"]);
    assert_eq!(status(&server, "NoNewPrivs"), "0");
    assert_eq!(status(&server, "Seccomp"), "0");
    let own = rustix::process::geteuid().as_raw().to_string();
    assert!(status(&server, "Uid").split_whitespace().all(|id| id == own));
}

#[test]
fn every_mover_works_in_a_server_without_privileges() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    without_privileges(&server);
    for mover in movers::ALL {
        for role in mover.roles() {
            works(&home, &server, *mover, *role);
        }
    }
}

fn works(home: &Home, server: &Server, mover: &dyn Mover, role: Role) {
    let is_udp = mover.transports() == [Transport::Udp];
    let transport = if is_udp { Transport::Udp } else { Transport::Tcp };
    let plan = Plan { transport, mover: mover.id().into(), ..Plan::standard() };
    if mover.id() == "xdp" {
        return; // See below: this is one that takes a privilege.
    }
    if let Err(why) = mover.can_run(&plan) {
        // That this host lacks it says its own test.
        eprintln!("{} can't run here: {why}", mover.id());
        return;
    }
    let mut all = vec!["test", &server.address, "--json", "--no-store", "-n", "100K"];
    all.extend(if is_udp { &["-u", "--rate", "20M"][..] } else { &[] });
    match role {
        Role::Sender => all.extend(["-R", "--mover", mover.id()]),
        Role::Receiver => all.extend(["--receive-mover", mover.id()]),
    }
    let output = home.run(&all);
    assert!(moved(&record(&output)), "{all:?}: {}", stderr(&output));
}

#[test]
fn a_server_without_privileges_says_that_it_can_send_no_frames() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    without_privileges(&server);
    let args = ["test", &server.address, "--no-store", "-u", "-R", "--mover", "xdp", "-n", "10K"];
    let output = home.run(&args);
    assert!(!output.status.success());
    let said = stderr(&output);
    assert!(said.contains("CAP_NET_RAW") || said.contains("CONFIG_XDP_SOCKETS"), "{said}");
}

#[test]
fn every_protocol_is_answered_without_privileges() {
    let home = Home::new();
    let others: Vec<_> = protocols::ALL.iter().skip(1).map(|p| format!("{}=0", p.id)).collect();
    let spoken = format!("{},{}", protocols::ALL[0].id, others.join(","));
    let mut server = Server::start(&home, &["--protocols", &spoken]);
    let mut targets = vec![format!("{}://{}", protocols::ALL[0].id, server.address)];
    for protocol in &protocols::ALL[1..] {
        targets.push(format!("{}://{}", protocol.id, server.next_address()));
    }
    without_privileges(&server);
    for target in targets {
        let output = home.run(&["test", &target, "--json", "--no-store", "-t", "1"]);
        assert!(moved(&record(&output)), "{target}: {}", stderr(&output));
    }
}

#[test]
fn a_file_that_only_root_may_read_is_not_served() {
    let home = Home::new();
    let server = Server::start(&home, &["--files", "/etc"]);
    let get =
        |name| home.run(&["test", &server.address, "--json", "--no-store", "-R", "--source", name]);
    let secret = get("shadow");
    assert!(!secret.status.success());
    assert!(stderr(&secret).contains("Permission denied"), "{}", stderr(&secret));
    assert!(moved(&record(&get("passwd"))));
}

#[test]
fn a_directory_that_is_closed_to_the_server_is_named_when_it_starts() {
    if !is_root() {
        // Then the server is the user whose directory it is.
        return;
    }
    let home = Home::new();
    let closed = home.path().join("closed");
    std::fs::create_dir(&closed).expect("a new directory");
    crate::common::set_mode(&closed, 0o700);
    let closed = closed.to_str().expect("temporary directories have plain names");
    for option in ["--files", "--sinks"] {
        let output = home.run(&["serve", "--bind", "127.0.0.1", "--port", "0", option, closed]);
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        for word in [closed, "--user", "user "] {
            assert!(stderr(&output).contains(word), "{word} in {}", stderr(&output));
        }
    }
    // Root without capabilities still owns its files.
    let server = Server::start(&home, &["--files", closed, "--user", "root"]);
    assert_eq!(u64::from_str_radix(&status(&server, "CapEff"), 16), Ok(0));
}

#[test]
fn a_user_that_is_not_there_is_refused() {
    let home = Home::new();
    let arguments = ["serve", "--bind", "127.0.0.1", "--port", "0", "--user", "no-such-user"];
    let output = home.run(&arguments);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("no-such-user"), "{}", stderr(&output));
}
