//! Which tests run beside each other. Most wait most of the time, and one after the other they leave the machine idle;
//! but what a test measures must not depend on what runs beside it.
//!
//! So there are three groups, one after the other. Tests that judge no measurement run beside each other: a busy machine
//! slows them down and changes nothing else. Tests of slow paths run beside each other as long as all of them together
//! move few packets, by what their scenarios plant. Any other test runs alone.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use goodput_ceiling::models::cubic;
use goodput_lab::Scenario;
use goodput_lab::scenario::{DEFAULT_MTU, PayloadPath};
use goodput_testing::{as_test, skip};
use libtest_mimic::{Arguments, Failed, Trial, run};

/// Share of the CPUs that tests which run beside each other may use. Up to it each has what it needs.
pub const MAX_BUSY_SHARE: f64 = 0.4;
/// CPU time of a packet that is sent, relayed and received, seconds: the most that any scenario needed, with unoptimised
/// programs on a virtual machine.
const CPU_S_PER_PACKET: f64 = 45e-6;
/// Tests at once for each CPU: their programs also start and end.
const TESTS_PER_CPU: usize = 2;

/// What a test needs of the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Needs {
    /// It judges no measurement.
    Nothing,
    /// It measures, and this many packets per second are the most that it moves.
    PacketsPerS(u64),
    /// It measures, and moves more than tests beside each other may, or an unknown number.
    All,
}

/// A test, and what it needs.
pub struct Test {
    name: String,
    needs: Needs,
    runs: Box<dyn FnOnce() -> Result<(), Failed> + Send>,
}

impl Test {
    pub fn new(
        name: impl Into<String>,
        needs: Needs,
        test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
    ) -> Self {
        let name = name.into();
        // A test that skips something says which one it is.
        let own = name.clone();
        Self { name, needs, runs: Box::new(move || as_test(&own, test)) }
    }

    /// One that judges no measurement.
    pub fn of_facts(
        name: impl Into<String>,
        test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
    ) -> Self {
        Self::new(name, Needs::Nothing, test)
    }

    /// One that this machine can't host.
    pub fn skipped(name: impl Into<String>, needs: String) -> Self {
        Self::of_facts(name, move || {
            skip(&needs);
            Ok(())
        })
    }
}

impl Needs {
    /// Of measuring a scenario's path. CUBIC alone reacts to each loss, and so may be slower than the rate of the path.
    pub fn of(scenario: &Scenario) -> Self {
        let Some(path) = scenario.payload_path() else { return Self::All };
        let is_one_cubic =
            scenario.value("--congestion").is_some_and(|name: String| name == "cubic")
                && !["--udp", "--flows"].into_iter().any(|option| scenario.has(option));
        let by_loss = packets_by_loss(&path).filter(|_| is_one_cubic);
        let by_rate = path.rate.map(|rate| packets_per_s(rate.0, path.packet_bytes));
        by_rate.into_iter().chain(by_loss).min().map_or(Self::All, Self::of_packets)
    }

    /// Of sending full packets of Ethernet at this rate, bits per second.
    pub fn of_rate(bits_per_s: f64) -> Self {
        Self::of_packets(packets_per_s(bits_per_s, DEFAULT_MTU))
    }

    fn of_packets(per_s: u64) -> Self {
        if per_s <= most_packets_per_s() { Self::PacketsPerS(per_s) } else { Self::All }
    }
}

/// What tests beside each other may move on this machine, all together.
fn most_packets_per_s() -> u64 {
    (MAX_BUSY_SHARE * cpus() as f64 / CPU_S_PER_PACKET) as u64
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn packets_per_s(bits_per_s: f64, packet_bytes: u32) -> u64 {
    (bits_per_s / 8.0 / f64::from(packet_bytes)) as u64
}

/// Packets per second of CUBIC at the path's loss.
fn packets_by_loss(path: &PayloadPath) -> Option<u64> {
    let (rtt, loss) = (path.round_trip.as_secs_f64(), path.loss_percent / 100.0);
    // Segments of one byte: as many bytes as packets.
    (rtt > 0.0 && loss > 0.0).then(|| packets_per_s(cubic(1.0, rtt, loss), 1))
}

/// The packets that the tests which are running may still move, all together.
struct Budget {
    left: Mutex<u64>,
    grew: Condvar,
}

/// A part of it, until it is dropped.
struct Part<'a>(&'a Budget, u64);

impl Budget {
    const fn of(packets_per_s: u64) -> Self {
        Self { left: Mutex::new(packets_per_s), grew: Condvar::new() }
    }

    /// Waits until there is as much.
    fn take(&self, packets_per_s: u64) -> Part<'_> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.grew.wait_while(left, |left| *left < packets_per_s);
        *waited.unwrap_or_else(PoisonError::into_inner) -= packets_per_s;
        Part(self, packets_per_s)
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        *self.0.left.lock().unwrap_or_else(PoisonError::into_inner) += self.1;
        self.0.grew.notify_all();
    }
}

/// Runs all tests, group by group.
pub fn run_all(arguments: &Arguments, tests: Vec<Test>) -> ExitCode {
    let budget = Arc::new(Budget::of(most_packets_per_s()));
    let (mut facts, mut slow, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for Test { name, needs, runs } in tests {
        match needs {
            Needs::Nothing => facts.push(Trial::test(name, runs)),
            Needs::PacketsPerS(packets) => {
                let budget = Arc::clone(&budget);
                let within_budget = move || {
                    let _part = budget.take(packets);
                    runs()
                };
                slow.push((packets, Trial::test(name, within_budget)));
            }
            Needs::All => alone.push(Trial::test(name, runs)),
        }
    }
    // Small ones first: in the end a large one would have nobody beside it anyway.
    slow.sort_by_key(|(packets, _)| *packets);
    let slow = slow.into_iter().map(|(_, trial)| trial).collect();
    let at_once = TESTS_PER_CPU * cpus();
    let failed = [(facts, at_once), (slow, at_once), (alone, 1)].map(|(trials, at_once)| {
        let asked = arguments.test_threads.unwrap_or(at_once);
        let arguments = Arguments { test_threads: Some(asked.min(at_once)), ..arguments.clone() };
        run(&arguments, trials).has_failed()
    });
    if failed.contains(&true) { ExitCode::from(101) } else { ExitCode::SUCCESS }
}

/// Tests of this file, in a harness that has none of its own.
pub fn all() -> Vec<Test> {
    vec![
        Test::of_facts("neighbours::a_slow_path_needs_few_packets", a_slow_path_needs_few_packets),
        Test::of_facts("neighbours::a_budget_is_never_overdrawn", a_budget_is_never_overdrawn),
    ]
}

fn a_slow_path_needs_few_packets() -> Result<(), Failed> {
    let needs = |text: &str| -> Result<Needs, Failed> {
        Ok(Needs::of(&format!("name = \"x\"\ntitle = \"X.\"\n{text}").parse()?))
    };
    let loss = "[link.path]\nrate = \"1200mbit\"\ndelay = \"10ms\"\nloss = \"1%\"\n";
    let cubic = format!("{loss}[run]\nclient = [\"--congestion\", \"cubic\"]");
    // RTT 20 ms, loss 0.01: CUBIC's curve has 1.8 segments, and Reno's sqrt(1.5 / 0.01) = 12.2.
    let reno = match needs(&cubic)? {
        Needs::PacketsPerS(packets) => packets == 612,
        _ => false,
    };
    let cases = [
        (needs("")? == Needs::All, "nothing is planted"),
        (needs(loss)? == Needs::of_rate(1.2e9), "a rate, and who reacts to loss is unknown"),
        (Needs::of_packets(u64::MAX) == Needs::All, "more than the machine can"),
        (reno, "a loss"),
        (needs("[run]\nclient = [\"--both\"]")? == Needs::All, "both directions"),
    ];
    let wrong = cases.iter().find(|(holds, _)| !holds);
    wrong.map_or(Ok(()), |(_, what)| Err((*what).into()))
}

fn a_budget_is_never_overdrawn() -> Result<(), Failed> {
    let budget = Budget::of(3);
    let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for part in [1, 2, 3].repeat(20) {
            let (budget, now, most) = (&budget, &now, &most);
            scope.spawn(move || {
                let _part = budget.take(part);
                let taken = now.fetch_add(part, Ordering::SeqCst) + part;
                most.fetch_max(taken, Ordering::SeqCst);
                std::thread::yield_now();
                now.fetch_sub(part, Ordering::SeqCst);
            });
        }
    });
    match most.into_inner() {
        1..=3 => Ok(()),
        taken => Err(format!("{taken} of 3 were taken at once").into()),
    }
}
