//! The units for systemd, as systemd itself judges them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use goodput_wire::protocols;

use crate::common::{exe, stderr, stdout};

/// Highest exposure that `systemd-analyze security` may find, tenths: 0 is none, 100 is all. It counts
/// against a server that it has a network at all.
const EXPOSURE: &str = "--threshold=15";

const SERVICES: [&str; 4] = [
    "goodput.service",
    "goodput-watch.service",
    "goodput-agent.service",
    "goodput-coordinator.service",
];

fn unit(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(unit(name)).expect("the unit is there")
}

/// `None` without systemd.
fn analyze(arguments: &[&str]) -> Option<Output> {
    match Command::new("systemd-analyze").args(arguments).output() {
        Ok(output) => Some(output),
        Err(why) => {
            let needs = format!("systemd-analyze (package systemd): {why}");
            goodput_testing::skip(&needs);
            None
        }
    }
}

#[test]
fn systemd_understands_the_units() {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let program = exe().to_str().expect("the program has a plain name");
    let names = [&SERVICES[..], &["goodput.socket"]].concat();
    let files: Vec<_> = names.iter().map(|name| place.path().join(name)).collect();
    for (name, file) in names.iter().zip(&files) {
        let here = text(name).replace("/usr/bin/goodput", program);
        std::fs::write(file, here).expect("it is writable");
    }
    let files = files.iter().map(|file| file.to_str().expect("it has a plain name"));
    let arguments: Vec<_> = ["verify", "--man=no"].into_iter().chain(files).collect();
    let Some(output) = analyze(&arguments) else { return };
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    // What it does not know it ignores, with a line that names the unit.
    assert!(!names.iter().any(|name| said.contains(name)), "{said}");
}

#[test]
fn the_services_are_exposed_as_little_as_a_program_of_the_network_can_be() {
    for name in SERVICES {
        let service = unit(name);
        let service = service.to_str().expect("the sources have a plain name");
        let arguments = ["security", "--offline=true", EXPOSURE, service];
        let Some(output) = analyze(&arguments) else { return };
        assert!(output.status.success(), "{}", stdout(&output));
    }
}

#[test]
fn the_socket_unit_has_the_usual_port_of_every_protocol() {
    let text = text("goodput.socket");
    let ports = |key: &str| -> Vec<u16> {
        let values = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        values.map(|value| value.parse().expect("a port")).collect()
    };
    let (streams, datagrams) = (ports("ListenStream"), ports("ListenDatagram"));
    assert_eq!(streams, datagrams);
    // The first is goodput's own.
    assert_eq!(streams.first(), Some(&protocols::ALL[0].port));
    for protocol in protocols::ALL {
        assert!(streams.contains(&protocol.port), "{} is missing", protocol.id);
    }
}
