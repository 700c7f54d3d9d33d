//! Clients that run measurements, each with a different protocol and different options; some are killed.

use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::seq::IndexedRandom;

use crate::bench::net::{Net, address};
use crate::bench::place::Place;
use crate::crowd::SERVER_PORT;

/// The target schemes that they use.
const TARGETS: &[&str] = &["", "goodput://", "iperf2://", "iperf3://", "nuttcp://", "ttcp://"];
/// Additional options; not every protocol can express all of them.
const OPTIONS: &[&[&str]] = &[
    &[],
    &["--reverse"],
    &["-P", "8"],
    &["-P", "8", "--reverse"],
    &["--udp", "--rate", "10mbit"],
    &["--udp", "--rate", "10mbit", "--reverse"],
    &["--rate", "50mbit"],
    &["--bidir"],
    &["--latency"],
    &["-n", "20M"],
];
/// Share of the clients that are killed, as a divisor.
const KILLED_PERCENT: u32 = 5;
/// How long a client may take; a protocol whose end marker is lost waits for a while.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a client is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The clients to start.
#[derive(Debug, Clone, Copy)]
pub struct Clients<'a> {
    pub program: &'a Path,
    pub workers: u32,
}

/// The outcomes of the clients.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClientsOutcome {
    /// Ended successfully.
    pub measured: u32,
    /// Refused, or a plan that the protocol can't express.
    pub failed: u32,
    /// Killed by us.
    pub killed: u32,
}

impl Clients<'_> {
    /// Runs clients one after the other in each worker, for this time.
    pub fn come(self, how_long: Duration) -> ClientsOutcome {
        let until = Instant::now() + how_long;
        let work = || {
            let mut came = ClientsOutcome::default();
            while Instant::now() < until {
                match self.one() {
                    Some(true) => came.measured += 1,
                    Some(false) => came.failed += 1,
                    None => came.killed += 1,
                }
            }
            came
        };
        let all = thread::scope(|scope| {
            let workers: Vec<_> = (0..self.workers).map(|_| scope.spawn(work)).collect();
            workers.into_iter().filter_map(|worker| worker.join().ok()).collect::<Vec<_>>()
        });
        all.into_iter().fold(ClientsOutcome::default(), |sum, came| ClientsOutcome {
            measured: sum.measured + came.measured,
            failed: sum.failed + came.failed,
            killed: sum.killed + came.killed,
        })
    }

    /// Whether one ended successfully; `None`: it was killed.
    fn one(self) -> Option<bool> {
        let mut random = rand::rng();
        let scheme = TARGETS.choose(&mut random).copied().unwrap_or_default();
        let options = OPTIONS.choose(&mut random).copied().unwrap_or_default();
        // Foreign protocols have their own ports.
        let port = if scheme.len() < 2 || scheme.starts_with("goodput") {
            format!(":{SERVER_PORT}")
        } else {
            String::new()
        };
        let target = format!("{scheme}{}{port}", address(Place::Veth));
        let mut client = Net::at_client(Place::Veth, &self.program.to_string_lossy());
        client.args(["test", &target, "--no-store", "--json", "-t", "1"]).args(options);
        client.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(mut client) = client.spawn() else { return Some(false) };
        let kill = random.random_range(0..KILLED_PERCENT) == 0;
        let patience =
            if kill { Duration::from_millis(random.random_range(1..1500)) } else { WAIT_TIMEOUT };
        let until = Instant::now() + patience;
        while Instant::now() < until {
            if let Ok(Some(status)) = client.try_wait() {
                return Some(status.success());
            }
            thread::sleep(POLL_INTERVAL);
        }
        // If this fails, it has ended meanwhile.
        let _ = client.kill();
        let _ = client.wait();
        if kill { None } else { Some(false) }
    }
}
