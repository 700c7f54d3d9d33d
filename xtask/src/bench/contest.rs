//! One run of one contestant: its throughput, and the CPU time of both its processes.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;

use super::net::{FAR, Net, wait_for};
use crate::shell::{capture, command, root};

/// A program with its options.
pub struct Contestant {
    /// Its name in the report.
    pub name: &'static str,
    program: Program,
    flows: u32,
}

enum Program {
    Iperf3,
    Goodput { observing: bool },
}

/// Places of the contestants in [`CONTESTANTS`].
pub const IPERF3_ONE: usize = 0;
pub const GOODPUT_ONE: usize = 1;
pub const UNOBSERVED_ONE: usize = 2;
pub const IPERF3_EIGHT: usize = 3;
pub const GOODPUT_EIGHT: usize = 4;

/// Everyone who runs in a round. All send 128 KiB a write, which is iperf3's own choice for TCP.
pub const CONTESTANTS: [Contestant; 5] = [
    Contestant { name: "iperf3, 1 flow", program: Program::Iperf3, flows: 1 },
    Contestant { name: "goodput, 1 flow", program: Program::Goodput { observing: true }, flows: 1 },
    Contestant {
        name: "goodput, 1 flow, not observing",
        program: Program::Goodput { observing: false },
        flows: 1,
    },
    Contestant { name: "iperf3, 8 flows", program: Program::Iperf3, flows: 8 },
    Contestant {
        name: "goodput, 8 flows",
        program: Program::Goodput { observing: true },
        flows: 8,
    },
];

/// What came out of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// What the receiver counted, bits per second.
    pub bits_per_s: f64,
    /// User and system time of both processes, from start to end, per 10^9 bytes,
    /// which are throughput × duration.
    pub cpu_s_per_gb: f64,
}

const PORT: u16 = 5201;

/// The goodput that is measured.
pub fn goodput() -> Result<PathBuf> {
    let chosen = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = root().join(chosen.unwrap_or_else(|| "target".into()));
    let program = target.join("release/goodput");
    if program.is_file() { Ok(program) } else { bail!("{} is not built", program.display()) }
}

/// Runs one contestant for `seconds`.
pub fn run(contestant: &Contestant, net: &Net, seconds: u32) -> Result<Run> {
    let cpu_before = children_cpu_s()?;
    let mut server = Server::start(contestant.serve(net)?)?;
    net.wait_for_listener(&mut server.0, PORT)?;
    let printed = capture(&mut contestant.test(seconds)?).context(contestant.name)?;
    server.wait()?;
    let cpu_s = children_cpu_s()? - cpu_before;
    let json = serde_json::from_str(&printed).context("the result is not JSON")?;
    let bits_per_s = contestant.throughput(&json)?;
    if bits_per_s <= 0.0 {
        bail!("{} moved nothing", contestant.name);
    }
    // Not every contestant reports the bytes of the whole run, so this is how all are counted.
    let bytes = bits_per_s / 8.0 * f64::from(seconds);
    Ok(Run { bits_per_s, cpu_s_per_gb: cpu_s / (bytes / 1e9) })
}

impl Contestant {
    fn serve(&self, net: &Net) -> Result<Command> {
        let port = PORT.to_string();
        Ok(match self.program {
            Program::Iperf3 => {
                let mut command = net.at_far_end("iperf3");
                command.args(["--server", "--one-off", "--bind", FAR, "--port", &port]);
                command
            }
            Program::Goodput { .. } => {
                let program = goodput()?;
                let program = program.to_str().context("the target directory is not UTF-8")?;
                let mut command = net.at_far_end(program);
                command.args(["serve", "--one-off", "--bind", FAR, "--port", &port]);
                command
            }
        })
    }

    fn test(&self, seconds: u32) -> Result<Command> {
        let (port, seconds, flows) =
            (PORT.to_string(), seconds.to_string(), self.flows.to_string());
        let mut test;
        match self.program {
            Program::Iperf3 => {
                test = command("iperf3");
                test.args(["--client", FAR, "--port", &port, "--json", "--length", "128K"]);
                test.args(["--time", &seconds, "--parallel", &flows]);
            }
            Program::Goodput { observing } => {
                test = Command::new(goodput()?);
                test.args(["test", &format!("{FAR}:{port}"), "--json", "--no-store"]);
                test.args(["--mover", "copy", "--chunk", "128K", "-t", &seconds, "-P", &flows]);
                if !observing {
                    test.arg("--no-observe");
                }
            }
        }
        Ok(test)
    }

    /// Bits per second that the receiver counted.
    fn throughput(&self, json: &Value) -> Result<f64> {
        let place = match self.program {
            Program::Iperf3 => "/end/sum_received/bits_per_second",
            Program::Goodput { .. } => "/result/goodput_bits_per_s",
        };
        let value = json.pointer(place).and_then(Value::as_f64);
        value.with_context(|| format!("{}: the result has no {place}", self.name))
    }
}

/// A server that does not outlive us.
struct Server(Child);

impl Server {
    fn start(mut command: Command) -> Result<Self> {
        let quiet = command.stdout(Stdio::null());
        Ok(Self(quiet.spawn().context("can't start the server")?))
    }

    /// Waits until it has ended, as one that serves once does; then its CPU time counts as ours.
    fn wait(&mut self) -> Result<()> {
        wait_for("the server to end", || Ok(self.0.try_wait()?.is_some()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Where this fails the server has ended before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// User and system time of all our children that have ended, getrusage(2).
fn children_cpu_s() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let times = [usage.user_time(), usage.system_time()];
    Ok(times.iter().map(|t| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_receivers_count_is_taken_of_both() {
        let iperf3 = json!({"end": {
            "sum_sent": {"bits_per_second": 9.0},
            "sum_received": {"bits_per_second": 8.0},
        }});
        let goodput = json!({"result": {"goodput_bits_per_s": 6.0}});
        assert_eq!(CONTESTANTS[IPERF3_ONE].throughput(&iperf3).unwrap(), 8.0);
        assert_eq!(CONTESTANTS[GOODPUT_ONE].throughput(&goodput).unwrap(), 6.0);
        assert!(CONTESTANTS[IPERF3_ONE].throughput(&goodput).is_err());
    }

    #[test]
    fn places_name_the_right_contestants() {
        assert_eq!(CONTESTANTS[IPERF3_EIGHT].name, "iperf3, 8 flows");
        assert_eq!(CONTESTANTS[GOODPUT_EIGHT].name, "goodput, 8 flows");
        assert_eq!(CONTESTANTS[UNOBSERVED_ONE].name, "goodput, 1 flow, not observing");
    }
}
