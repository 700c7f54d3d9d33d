//! docs/performance.md: what was measured, on what, and whether the goals were met.

use std::fmt::Write;
use std::fs;

use anyhow::Result;

use super::contest::{
    CONTESTANTS, GOODPUT_EIGHT, GOODPUT_ONE, IPERF3_EIGHT, IPERF3_ONE, Run, UNOBSERVED_ONE, goodput,
};
use super::stats::{CONFIDENCE, Estimate, estimate};
use crate::shell::{capture, command};

/// A quantity of each round, and where it shall be.
struct Goal {
    what: &'static str,
    of: fn(&[Run]) -> f64,
    bound: Bound,
    unit: &'static str,
}

enum Bound {
    AtLeast(f64),
    Below(f64),
    None,
}

const GOALS: [Goal; 6] = [
    Goal {
        what: "throughput, 1 flow: goodput / iperf3",
        of: |runs| runs[GOODPUT_ONE].bits_per_s / runs[IPERF3_ONE].bits_per_s,
        bound: Bound::AtLeast(1.0),
        unit: "",
    },
    Goal {
        what: "throughput, 8 flows: goodput / iperf3",
        of: |runs| runs[GOODPUT_EIGHT].bits_per_s / runs[IPERF3_EIGHT].bits_per_s,
        bound: Bound::AtLeast(1.0),
        unit: "",
    },
    Goal {
        what: "CPU per byte, 1 flow: goodput / iperf3",
        of: |runs| runs[GOODPUT_ONE].cpu_s_per_gb / runs[IPERF3_ONE].cpu_s_per_gb,
        bound: Bound::None,
        unit: "",
    },
    Goal {
        what: "CPU per byte, 8 flows: goodput / iperf3",
        of: |runs| runs[GOODPUT_EIGHT].cpu_s_per_gb / runs[IPERF3_EIGHT].cpu_s_per_gb,
        bound: Bound::None,
        unit: "",
    },
    Goal {
        what: "throughput lost to observing, 1 flow",
        of: |runs| 100.0 * (1.0 - runs[GOODPUT_ONE].bits_per_s / runs[UNOBSERVED_ONE].bits_per_s),
        bound: Bound::Below(2.0),
        unit: " %",
    },
    Goal {
        what: "CPU per byte added by observing, 1 flow",
        of: |runs| {
            100.0 * (runs[GOODPUT_ONE].cpu_s_per_gb / runs[UNOBSERVED_ONE].cpu_s_per_gb - 1.0)
        },
        bound: Bound::None,
        unit: " %",
    },
];

/// The whole page. `load` is that of the machine before the first run, /proc/loadavg.
pub fn page(rounds: &[Vec<Run>], seconds: u32, load: &str) -> Result<String> {
    let mut page = format!(
        "# Performance\n\nWritten by `cargo xtask bench`; run it to get your own machine's.\n\n{}\
         - load before the first run: {} (1, 5 and 15 minutes)\n\n\
         {} rounds of {seconds} s a run. In each round every contestant runs once, in random order, \
         between two network namespaces joined by a veth pair, 128 KiB a write, with the kernel's \
         own socket buffers and congestion control. Throughput is what the receiver counted; CPU \
         is user and system time of both processes, and a GB is 10^9 bytes. Medians, in brackets the order-statistic \
         interval of at least {CONFIDENCE} % confidence.\n\n",
        machine()?,
        load.split(' ').take(3).collect::<Vec<_>>().join(", "),
        rounds.len(),
    );
    contestants(&mut page, rounds)?;
    goals(&mut page, rounds)?;
    Ok(page)
}

fn contestants(page: &mut String, rounds: &[Vec<Run>]) -> Result<()> {
    writeln!(page, "| | Gbit/s | CPU seconds per GB |\n|---|---|---|")?;
    for (index, contestant) in CONTESTANTS.iter().enumerate() {
        let rate = estimate(rounds.iter().map(|runs| runs[index].bits_per_s / 1e9));
        let cpu = estimate(rounds.iter().map(|runs| runs[index].cpu_s_per_gb));
        writeln!(page, "| {} | {} | {} |", contestant.name, shown(rate, ""), shown(cpu, ""))?;
    }
    Ok(())
}

/// Ratios are of runs of the same round.
fn goals(page: &mut String, rounds: &[Vec<Run>]) -> Result<()> {
    writeln!(page, "\n| of the same round | median | goal | met |\n|---|---|---|---|")?;
    for goal in &GOALS {
        let value = estimate(rounds.iter().map(|runs| (goal.of)(runs)));
        let (wanted, met) = goal.bound.judge(value, goal.unit);
        writeln!(page, "| {} | {} | {wanted} | {met} |", goal.what, shown(value, goal.unit))?;
    }
    Ok(())
}

impl Bound {
    /// The goal in words, and whether the median meets it for sure.
    fn judge(&self, value: Estimate, unit: &str) -> (String, &'static str) {
        let (wanted, meets): (_, &dyn Fn(f64) -> bool) = match self {
            Self::AtLeast(bound) => (format!("at least {bound}{unit}"), &|x| x >= *bound),
            Self::Below(bound) => (format!("below {bound}{unit}"), &|x| x < *bound),
            Self::None => return ("none".into(), "–"),
        };
        let sure = value.interval.map(|(low, high)| meets(low) == meets(high));
        let met = match (meets(value.median), sure) {
            (true, Some(true)) => "yes",
            (true, Some(false)) => "yes, but the interval goes beyond",
            (false, Some(true)) => "no",
            (false, Some(false)) => "no, but the interval reaches it",
            (true, None) => "yes, by too few rounds",
            (false, None) => "no, by too few rounds",
        };
        (wanted, met)
    }
}

fn shown(value: Estimate, unit: &str) -> String {
    let interval = match value.interval {
        Some((low, high)) => format!("[{low:.3}, {high:.3}]"),
        None => "[too few rounds]".into(),
    };
    format!("{:.3}{unit} {interval}", value.median)
}

/// What it ran on and with, as a list.
fn machine() -> Result<String> {
    let line = |text: String| text.lines().next().unwrap_or_default().trim().to_owned();
    let file = |path: &str| Ok::<_, anyhow::Error>(line(fs::read_to_string(path)?));
    let cpu = fs::read_to_string("/proc/cpuinfo")?;
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let program = goodput()?;
    let goodput = program.to_str().unwrap_or("goodput");
    let date = capture(command("date").args(["--utc", "+%Y-%m-%d"]))?;
    let iperf3 = capture(command("iperf3").arg("--version"))?;
    Ok(format!(
        "- date: {}\n- machine: {}, {} CPUs\n- kernel: Linux {}\n- congestion control: {}\n\
         - versions: {}; {}; {}\n",
        line(date),
        model.unwrap_or("unknown processor"),
        std::thread::available_parallelism()?,
        file("/proc/sys/kernel/osrelease")?,
        file("/proc/sys/net/ipv4/tcp_congestion_control")?,
        line(capture(command(goodput).arg("--version"))?),
        line(iperf3),
        line(capture(command("rustc").arg("--version"))?),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(median: f64) -> Estimate {
        Estimate { median, interval: Some((median - 0.1, median + 0.1)) }
    }

    #[test]
    fn a_goal_can_be_met_missed_and_open() {
        let at_least = |value| Bound::AtLeast(1.0).judge(value, "").1;
        assert_eq!(at_least(near(1.2)), "yes");
        assert_eq!(at_least(near(0.8)), "no");
        assert_eq!(at_least(near(0.95)), "no, but the interval reaches it");
        assert_eq!(at_least(Estimate { median: 2.0, interval: None }), "yes, by too few rounds");
        assert_eq!(Bound::Below(2.0).judge(near(1.0), " %"), ("below 2 %".into(), "yes"));
    }

    #[test]
    fn goals_compare_the_right_contestants() {
        let run = |rate: f64| Run { bits_per_s: rate, cpu_s_per_gb: rate };
        let runs = [10.0, 20.0, 25.0, 10.0, 30.0].map(run);
        let values: Vec<f64> = GOALS.iter().map(|goal| ((goal.of)(&runs) * 10.0).round()).collect();
        assert_eq!(values, [20.0, 30.0, 20.0, 30.0, 200.0, -200.0]);
    }
}
