//! Sockets handed over by systemd (sd_listen_fds(3)), by a stand-in for it.

use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use command_fds::{CommandFdExt, FdMapping};

use crate::common::{Home, both_sockets, exe, moved, record};

/// A server that was given these sockets as descriptors 3, 4, ….
fn activated(home: &Home, sockets: Vec<OwnedFd>) -> Child {
    let count = sockets.len().to_string();
    let mappings = sockets.into_iter().zip(3..);
    let mappings = mappings.map(|(parent_fd, child_fd)| FdMapping { parent_fd, child_fd });
    // LISTEN_PID must be the server's own number, which only a shell that becomes it can know.
    Command::new("sh")
        .args(["-c", "LISTEN_PID=$$ exec \"$0\" serve"])
        .arg(exe())
        .env("LISTEN_FDS", count)
        .env("GOODPUT_STATE_DIR", home.path().join("state"))
        .stdout(Stdio::null())
        .fd_mappings(mappings.collect())
        .expect("no descriptor is mapped twice")
        .spawn()
        .expect("the program under test can be started")
}

#[test]
fn sockets_of_systemd_are_served() {
    let home = Home::new();
    let (tcp, udp) = both_sockets();
    let address = tcp.local_addr().unwrap();
    let mut server = activated(&home, vec![tcp.into(), udp.into()]);
    // The socket listens already, so a client may come before the server is up.
    let target = address.to_string();
    let tcp = home.run(&["test", &target, "--json", "--no-store", "-n", "1M"]);
    let udp =
        home.run(&["test", &target, "--json", "--no-store", "-n", "20K", "-u", "--rate", "5M"]);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(moved(&record(&tcp)));
    assert!(moved(&record(&udp)));
}

#[test]
fn a_tcp_socket_alone_is_enough() {
    let home = Home::new();
    // The server opens the other one.
    let (tcp, _) = both_sockets();
    let target = tcp.local_addr().unwrap().to_string();
    let mut server = activated(&home, vec![tcp.into()]);
    let udp =
        home.run(&["test", &target, "--json", "--no-store", "-n", "20K", "-u", "--rate", "5M"]);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(moved(&record(&udp)));
}
