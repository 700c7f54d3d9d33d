//! What the programs of a host reached by SSH print: `tc`, `ip`, `ethtool`, `sysctl`, `ifconfig` and others.

use std::net::{IpAddr, Ipv4Addr};

use goodput_model::SettingRef;
use goodput_remote::{Command, Output, RemoteError, Shell, System, systems};

/// One setting of each program whose text is read.
const SETTINGS: [&str; 9] = [
    "link.mtu@eth0",
    "offload.tso@eth0",
    "ring.rx@eth0",
    "coalescing.rx_usecs@eth0",
    "qdisc.kind@eth0",
    "route.rto_min@default",
    "cpu.governor",
    "sysctl.net.ipv4.tcp_rmem",
    "polling@eth0",
];

/// Takes any bytes: what one command after the other prints, each up to a zero byte.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    systems::ALL.iter().for_each(|system| read(*system, &text));
}

fn read(system: &dyn System, text: &str) {
    let shell = || Printing(text.split('\0'));
    let towards = IpAddr::from(Ipv4Addr::LOCALHOST);
    // Each reader accepts the text or names what it does not understand.
    let _ = system.shaper(&mut shell(), towards);
    let _ = system.facts(&mut shell(), Some(towards));
    let _ = system.counters(&mut shell(), Some("eth0"));
    let _ = system.polling(&mut shell(), "eth0");
    let _ = system.processes(&mut shell(), "mark");
    let _ = system.list(&mut shell());
    for setting in SETTINGS.iter().filter_map(|name| name.parse::<SettingRef>().ok()) {
        let _ = system.read(&mut shell(), &setting);
        let _ = system.normalise(&mut shell(), &setting, "1");
    }
}

/// A host on which each command prints the next of these texts.
struct Printing<'a>(std::str::Split<'a, char>);

impl Shell for Printing<'_> {
    fn host(&self) -> &'static str {
        "fuzzed"
    }

    fn run(&mut self, _command: &Command) -> Result<Output, RemoteError> {
        let stdout = self.0.next().unwrap_or_default().to_owned();
        Ok(Output { stdout, ..Output::default() })
    }
}
