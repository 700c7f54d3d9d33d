//! The clocks of both ends, on loopback: one kernel, and so one clock.

use goodput_model::{Known, Record};

use crate::common::{Home, Server, record};

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
fn who_does_not_tell_its_clock_is_known_for_it() {
    let home = Home::new();
    let (open, private) = (Server::start(&home, &[]), Server::start(&home, &["--private"]));
    for (server, target, expected) in [
        (&private, "", "the far end does not tell its clock"),
        (&open, "iperf3://", "the far end is not goodput"),
    ] {
        let record = measured(server, &home, target, &[]);
        let Known::Missing(why) = &record.clocks.relation else { panic!("{:?}", record.clocks) };
        assert!(why.to_string().contains(expected), "{target}: {why}");
        assert!(record.clocks.exchanges.is_empty());
    }
}
