//! Ctrl-C while a fleet's bus or its database does not answer: the program ends at once, and as it would if it had waited.

use std::net::{SocketAddr, TcpListener, TcpStream};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Home, stderr};
use crate::fleet_stage::PAIR;

/// A server that accepts, and says nothing.
struct Silent(TcpListener);

impl Silent {
    fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").expect("a port is free"))
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("it is bound")
    }

    /// Who has connected.
    fn client(&self) -> TcpStream {
        self.0.accept().expect("it is connected to").0
    }
}

/// Interrupts goodput once it has connected to this server. Returns its exit code, and what it said.
fn interrupted(silent: &Silent, arguments: &[&str]) -> (Option<i32>, String) {
    let home = Home::new();
    let mesh = home.file("mesh.toml", PAIR).display().to_string();
    let arguments: Vec<_> =
        arguments.iter().map(|one| if *one == "MESH" { &*mesh } else { *one }).collect();
    let mut command = home.goodput(&arguments);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("it starts");
    let client = silent.client();
    kill_process(Pid::from_child(&child), Signal::INT).expect("it is ours");
    let output = child.wait_with_output().expect("it ends");
    drop(client);
    (output.status.code(), stderr(&output))
}

#[test]
fn ctrl_c_ends_who_connects_to_a_silent_nats_server_at_once() {
    let silent = Silent::new();
    let url = format!("nats://{}", silent.address());
    for (arguments, code) in [
        (&["fleet", "agent", "--name", "a"][..], 0),
        (&["fleet", "run", "MESH", "--once"], 2),
        (&["fleet", "run", "MESH", "--stay"], 0),
        (&["fleet", "test", "a", "b", "--mesh", "MESH"], 2),
    ] {
        let (ended, said) = interrupted(&silent, &[arguments, &["--nats", &url]].concat());
        assert_eq!(ended, Some(code), "{arguments:?}: {said}");
        assert!(!said.contains("can't connect"), "it waited: {arguments:?}: {said}");
    }
}

#[test]
fn ctrl_c_ends_a_coordinator_whose_database_is_silent_at_once() {
    let silent = Silent::new();
    let store = format!("postgres://me@{}/x?sslmode=disable", silent.address());
    let fleet = ["fleet", "run", "MESH", "--nats", "nats://127.0.0.1:1", "--store", &store];
    for (more, code) in [("--once", 2), ("--stay", 0)] {
        let (ended, said) = interrupted(&silent, &[&fleet[..], &[more]].concat());
        assert_eq!(ended, Some(code), "{more}: {said}");
        assert!(!said.contains("no answer within"), "it waited: {said}");
    }
}
