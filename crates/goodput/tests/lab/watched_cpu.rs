//! What `goodput watch` costs the host that watches: the CPU time of each test on a line of 100 Mbit/s, with the share of the
//! default budget that a test of ten targets has. Prints the figure of docs/decisions/watching.md, and judges none: it
//! depends on the machine and on how the program was built.
//!
//! `GOODPUT_WATCHED=40 cargo test --profile dist -p goodput --test lab -- --exact watched_cpu::each_test --nocapture`

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use goodput_kernel::Root;
use goodput_kernel::parse::process::parse_cpu;
use goodput_lab::{Lab, Scenario, Server};
use libtest_mimic::Failed;
use serde_json::Value;

use crate::neighbours::{Needs, Test};
use crate::stage::exe;

const SCENARIO: &str = "name = \"watched\"\ntitle = \"A line of 100 Mbit/s.\"\n\
     [link.path]\nrate = \"100mbit\"\ndelay = \"5ms\"\n";
/// Tests of a day: ten targets, each every quarter of an hour.
const DAY: f64 = 960.0;
/// As of such a watch: a test costs 1/970 of 5 GB, of which 90 % is payload.
const OPTIONS: [&str; 6] = ["-n", "4640000", "--every", "10s", "--budget", "5000GB/day"];
const TARGETS: usize = 10;

/// The test, if it is asked for.
pub fn all() -> Vec<Test> {
    let asked = std::env::var("GOODPUT_WATCHED").ok();
    let test = |count: String| {
        Test::new("watched_cpu::each_test", Needs::All, move || print_cpu(count.parse()?))
    };
    asked.map(test).into_iter().collect()
}

/// A watch, which ends with this.
struct Watch(Child);

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Watch {
    /// CPU time so far, user and system, seconds.
    fn cpu_s(&self) -> Result<[f64; 2], Failed> {
        let stat = Root::default().read(&format!("proc/{}/stat", self.0.id()));
        let stat = stat.map_err(|why| why.to_string())?;
        let (user, system) = parse_cpu(&stat).ok_or("the kernel reports CPU times")?;
        let per_s = rustix::param::clock_ticks_per_second() as f64;
        Ok([user, system].map(|ticks| ticks as f64 / per_s))
    }
}

fn print_cpu(count: usize) -> Result<(), Failed> {
    let scenario = Scenario::parse("watched", SCENARIO)?;
    let lab = Lab::up(&scenario)?;
    let server = Server::start(&lab, &scenario, exe())?;
    let home = tempfile::tempdir()?;
    let mut command = lab.near().command(exe())?;
    command.args(["watch", "--json"]).args([server.target(); TARGETS]).args(OPTIONS);
    command.env("XDG_DATA_HOME", home.path()).env("XDG_CONFIG_HOME", home.path());
    command.env("GOODPUT_STATE_DIR", home.path()).stdin(Stdio::null());
    let mut watch = Watch(command.stdout(Stdio::piped()).spawn()?);
    let lines = BufReader::new(watch.0.stdout.take().ok_or("stdout is piped")?).lines();
    let mut tested = lines.filter(|line| line.as_ref().is_ok_and(|line| is_tested(line)));
    // The first test loads what the others find loaded.
    tested.next().ok_or("the first test has a result")??;
    let before = watch.cpu_s()?;
    for number in 0..count {
        tested.next().ok_or_else(|| format!("{number} tests, and then no more"))??;
    }
    let after = watch.cpu_s()?;
    let [user, system] = [0, 1].map(|part| (after[part] - before[part]) / count as f64 * 1e3);
    let both = user + system;
    let day_s = both * DAY / 1e3;
    println!(
        "{both:.1} ms of CPU time for each of {count} tests: {user:.1} user, {system:.1} system; {day_s:.1} s for {DAY}"
    );
    Ok(())
}

fn is_tested(line: &str) -> bool {
    serde_json::from_str(line).is_ok_and(|event: Value| event["event"] == "tested")
}
