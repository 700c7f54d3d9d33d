//! The clocks of both ends, on loopback: one kernel, and so one clock.

use std::io::copy;
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::thread;

use goodput_model::{Known, Record};

use crate::common::{Home, Server, both_sockets, record};

fn measured(server: &Server, home: &Home, target: &str, more: &[&str]) -> Record {
    let target = format!("{target}{}", server.address);
    let arguments = [&["test", target.as_str(), "-t", "2", "--json", "--no-store"], more];
    record(&home.run(&arguments.concat()))
}

#[test]
fn ends_of_one_kernel_have_one_clock() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    for more in [&[][..], &["-R"], &["--udp", "--rate", "10mbit", "--latency"]] {
        let record = measured(&server, &home, "", more);
        let relation = record.clocks.relation.get().unwrap_or_else(|why| panic!("{more:?}: {why}"));
        assert_eq!((relation.ahead_ns, relation.error_ns), (0, 0.0), "{more:?}: {relation:?}");
        let (near, far) = (record.ends.near.get().unwrap(), record.ends.far.get().unwrap());
        let later_s = record.clocks.far_began_later_s(near, far).unwrap();
        // Nobody begins to count before the measurement, or after it.
        assert!(later_s.abs() < 60.0, "{more:?}: {later_s}");
        for exchange in &record.clocks.exchanges {
            let [sent, received, answered, back]: [u64; 4] = (*exchange).into();
            assert!(sent <= received && received <= answered && answered <= back, "{exchange:?}");
        }
    }
}

#[test]
fn who_does_not_report_its_clock_is_known_for_it() {
    let home = Home::new();
    let (open, private) = (Server::start(&home, &[]), Server::start(&home, &["--private"]));
    for (server, target, expected) in [
        (&private, "", "the far end does not report its clock"),
        (&open, "iperf3://", "the far end is not goodput"),
    ] {
        let record = measured(server, &home, target, &[]);
        let Known::Missing(why) = &record.clocks.relation else { panic!("{:?}", record.clocks) };
        assert!(why.to_string().contains(expected), "{target}: {why}");
        assert!(record.clocks.exchanges.is_empty());
    }
}

/// A way to `to` that lets connections through, and no datagram: its port, and the socket that is silent.
fn without_udp(to: &str) -> (u16, UdpSocket) {
    let (listener, silent) = both_sockets();
    let port = silent.local_addr().expect("it is bound").port();
    let to = to.to_owned();
    thread::spawn(move || pass_on(&listener, &to));
    (port, silent)
}

/// Passes every connection on until the test ends.
fn pass_on(listener: &TcpListener, to: &str) {
    for near in listener.incoming().map_while(Result::ok) {
        let Ok(far) = TcpStream::connect(to) else { return };
        for stream in [&near, &far] {
            stream.set_nodelay(true).expect("it is a connection");
        }
        let other = |stream: &TcpStream| stream.try_clone().expect("a descriptor can be had");
        for (mut from, mut into) in [(other(&near), other(&far)), (far, near)] {
            thread::spawn(move || {
                // Who has gone hears no more.
                let _ = copy(&mut from, &mut into);
                let _ = into.shutdown(Shutdown::Write);
            });
        }
    }
}

#[test]
fn where_no_udp_comes_through_the_control_connection_compares_the_clocks() {
    let home = Home::new();
    let (open, private) = (Server::start(&home, &[]), Server::start(&home, &["--private"]));
    let through = |server: &Server| {
        let (port, _silent) = without_udp(&server.address);
        let target = format!("127.0.0.1:{port}");
        record(&home.run(&["test", &target, "-t", "1", "--json", "--no-store"]))
    };
    let record = through(&open);
    let relation = record.clocks.relation.get().unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(relation.error_ns, 0.0, "one kernel");
    for exchange in &record.clocks.exchanges {
        let [sent, received, answered, back]: [u64; 4] = (*exchange).into();
        assert!(sent <= received && received <= answered && answered <= back, "{exchange:?}");
    }
    let near = record.ends.near.get().unwrap();
    let began_ns = near.clock.as_ref().unwrap().began_ns;
    assert!(record.clocks.exchanges.iter().any(|exchange| exchange.back_ns <= began_ns));
    let kept = through(&private);
    let Known::Missing(why) = &kept.clocks.relation else { panic!("{:?}", kept.clocks) };
    assert!(why.to_string().contains("firewall"), "{why}");
}
