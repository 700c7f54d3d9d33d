//! CPUs that are slowed down, taken away, or full of interrupts.

use goodput_model::{Change, Confidence, Missing};

use super::super::{Answer, Check, HostView, Scope};
use super::cards::more_queues;
use crate::change::{
    AFFINITY, FULL_CLOCK, PERFORMANCE, SOFTIRQ_BUDGETS, SPREAD, SPREADS, SPREADS_INTERRUPTS,
    all_cpus, one_cpu_for_several, one_governor,
};
use crate::finding::percent;
use crate::names::{
    CPU_KINDS, GOVERNOR, INTERRUPT_ALLOWED, INTERRUPT_CPUS, INTERRUPT_VECTORS, QUOTA,
    QUOTA_PERCENT, RPS_MASK, THROTTLED_US,
};
use crate::offers::{DEFERRED, DEFERRED_WHY, INTERRUPTS, is_interrupting};
use crate::view::positive;

/// Share of the CPU time that a hypervisor may take before it counts.
const MIN_STOLEN_TIME_SHARE: f64 = 0.02;
/// Share of one CPU's time in interrupts at which it has little left for programs.
const MIN_SOFTIRQ_CPU_SHARE: f64 = 0.9;
/// Unfinished polls per second at which packets wait.
const MIN_SQUEEZED_POLLS_PER_S: f64 = 10.0;

pub(super) const FREQUENCY: Check = Check {
    id: "cpu-frequency",
    title: "CPUs kept slow to save power",
    scope: Scope::Host,
    ask: &frequency,
};
pub(super) const QUOTA_CHECK: Check = Check {
    id: "cpu-quota",
    title: "a quota on the CPU time of this process",
    scope: Scope::Host,
    ask: &quota,
};
pub(super) const STEAL: Check = Check {
    id: "cpu-steal",
    title: "CPU time taken by the hypervisor",
    scope: Scope::Host,
    ask: &steal,
};
pub(super) const SOFTIRQ: Check = Check {
    id: "softirq-saturation",
    title: "a CPU full of interrupts",
    scope: Scope::Host,
    ask: &softirq,
};
pub(super) const BUDGET: Check = Check {
    id: "napi-budget",
    title: "packets left after a poll",
    scope: Scope::Host,
    ask: &budget,
};

fn frequency(check: &Check, host: &HostView) -> Answer {
    let governor = host.text(GOVERNOR)?;
    if !governor.contains("powersave") {
        return Ok(None);
    }
    let text = format!("the CPUs' frequency governor is {governor}");
    check
        .draft(Confidence::Possible, GOVERNOR, 1.0, &text)
        .changes(
            one_governor(governor)
                .map(|now| host.change_of_host("cpu.governor", now, PERFORMANCE, FULL_CLOCK)),
        )
        .permanent("tuned", "tuned-adm profile network-throughput")
        .found()
}

fn quota(check: &Check, host: &HostView) -> Answer {
    let quota = host.text(QUOTA)?;
    if quota == "none" {
        return Ok(None);
    }
    let share = host.number(QUOTA_PERCENT)?;
    let held_back = host.grown(THROTTLED_US).is_ok_and(|growth| growth.count > 0);
    let (confidence, held) = match held_back {
        true => (Confidence::Likely, ", and the quota held programs back while watched"),
        false => (Confidence::Possible, ""),
    };
    let text = format!("programs started here may use {share:.0} % of one CPU ({quota}){held}");
    check
        .draft(confidence, QUOTA_PERCENT, share, &text)
        .advice("raise CPUQuota= of the unit, or the container's CPU limit")
        .found()
}

/// Growth of some kinds of CPU time as a share of all of it.
fn share(host: &HostView, cpu: &str, kinds: &[&str]) -> Result<f64, Missing> {
    let grown = |kind: &&str| Ok(host.grown(&format!("{cpu}.{kind}_us"))?.count as f64);
    let sum = |kinds: &[&str]| kinds.iter().map(grown).sum::<Result<f64, Missing>>();
    Ok(sum(kinds)? / positive(sum(&CPU_KINDS)?, "the CPU time that was watched")?)
}

fn steal(check: &Check, host: &HostView) -> Answer {
    let stolen = share(host, "cpu", &["steal"])?;
    if stolen < MIN_STOLEN_TIME_SHARE {
        return Ok(None);
    }
    let text = format!("the hypervisor took {} of the CPU time", percent(stolen));
    check
        .draft(Confidence::Likely, "cpu.steal_us", stolen * 100.0, &text)
        .advice("use a host with dedicated CPUs; until then, results vary")
        .found()
}

fn softirq(check: &Check, host: &HostView) -> Answer {
    let cpus = host.count("cpu.count")? as u32;
    let shares: Vec<f64> = (0..cpus)
        .filter_map(|n| share(host, &format!("cpu.{n}"), &["irq", "softirq"]).ok())
        .collect();
    let Some(most) = shares.into_iter().reduce(f64::max) else {
        // Gives the reason why no CPU could be read.
        return share(host, "cpu.0", &["softirq"]).map(|_| None);
    };
    if most < MIN_SOFTIRQ_CPU_SHARE {
        return Ok(None);
    }
    let text = format!("one CPU spent {} of its time in interrupts", percent(most));
    check
        .draft(Confidence::Certain, "softirq_percent", most * 100.0, &text)
        .changes(
            [
                more_queues(host),
                spread_interrupts(host),
                spread_packets(host),
                deferred_polling(host),
            ]
            .into_iter()
            .flatten(),
        )
        .advice("programs that wait for answers can poll themselves (net.core.busy_poll)")
        .permanent("FreeBSD /etc/rc.conf", "ifconfig_DEV=\"… polling\"")
        .found()
}

fn budget(check: &Check, host: &HostView) -> Answer {
    let squeezed = host.grown("softnet.squeezed")?;
    let dropped = host.grown("softnet.dropped")?;
    if squeezed.rate() < MIN_SQUEEZED_POLLS_PER_S || dropped.count == 0 {
        return Ok(None);
    }
    let text = format!(
        "{:.0} polls a second left packets in the queue, and some were dropped",
        squeezed.rate()
    );
    check
        .draft(Confidence::Likely, "softnet.squeezed", squeezed.rate(), &text)
        .changes(SOFTIRQ_BUDGETS.iter().filter_map(|(name, times)| larger(host, name, *times)))
        .advice(
            "the budgets belong to the machine: in a network namespace, raise them outside of it",
        )
        .permanent(
            "/etc/sysctl.d/90-goodput.conf",
            "net.core.netdev_budget = 600\nnet.core.netdev_budget_usecs = 8000",
        )
        .found()
}

/// A CPU for each interrupt, if all of them go to one CPU.
fn spread_interrupts(host: &HostView) -> Option<Change> {
    host.device?;
    let on = host.text(INTERRUPT_CPUS).ok()?;
    let vectors = host.count(INTERRUPT_VECTORS).ok()?;
    let is_one = one_cpu_for_several(on, vectors, host.count("cpu.count").ok()? as u32);
    let from = host.text(INTERRUPT_ALLOWED).ok().map(Into::into);
    is_one.then(|| host.change(AFFINITY, from, SPREAD, SPREADS_INTERRUPTS))
}

/// Packets handed on to all CPUs, if the CPU that takes them in hands on none.
fn spread_packets(host: &HostView) -> Option<Change> {
    host.device?;
    let cpus = host.count("cpu.count").ok()? as u32;
    let all = all_cpus(host.text(RPS_MASK).ok()?, cpus)?;
    Some(host.change("rps.cpus", Some("0".into()), &all, SPREADS))
}

fn deferred_polling(host: &HostView) -> Option<Change> {
    let change = || host.change("polling", Some(INTERRUPTS.into()), DEFERRED, DEFERRED_WHY);
    (host.device.is_some() && is_interrupting(host.now)).then(change)
}

fn larger(host: &HostView, fact: &str, times: u64) -> Option<Change> {
    let name = fact.trim_start_matches("sysctl.");
    let now = host.sysctl_number(name)?;
    let to = now.checked_mul(times)?.to_string();
    Some(host.sysctl(name, &now.to_string(), &to, "more packets in each turn of a softirq"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Snapshot;

    fn cpu(softirq: u64, idle: u64) -> Snapshot {
        let mut facts = Snapshot::default();
        facts.put("cpu.count", 1u64);
        for kind in CPU_KINDS {
            let us = match kind {
                "softirq" => softirq,
                "idle" => idle,
                _ => 0,
            };
            facts.put(format!("cpu.0.{kind}_us"), us);
        }
        facts
    }

    #[test]
    fn a_cpu_full_of_interrupts_is_seen_over_time_only() {
        let (before, now) = (cpu(0, 0), cpu(95, 5));
        let view = HostView { device: None, now: &now, before: None };
        assert!(SOFTIRQ.check(&view).unwrap_err().to_string().contains("--watch"));
        let view = HostView { before: Some((&before, 1.0)), ..view };
        let found = SOFTIRQ.check(&view).unwrap().unwrap();
        assert_eq!(found.summary, "one CPU spent 95 % of its time in interrupts");
    }

    #[test]
    fn a_governor_and_a_full_cpu_have_changes_to_try() {
        let mut facts = Snapshot::default();
        facts.put(GOVERNOR, "powersave");
        facts.put("cpu.count", 4u64);
        facts.put("channels.combined", 1u64);
        facts.put("channels.combined_max", 2u64);
        facts.put(RPS_MASK, "0");
        facts.put(INTERRUPT_CPUS, "2");
        facts.put(INTERRUPT_ALLOWED, "0-3");
        facts.put(INTERRUPT_VECTORS, 3u64);
        facts.put("sysctl.net.core.netdev_budget", "300");
        let view = HostView { device: Some("eth0"), now: &facts, before: None };
        let governor = &FREQUENCY.check(&view).unwrap().unwrap().changes[0];
        assert_eq!(governor.as_argument(), "cpu.governor=powersave,performance");
        let queues = more_queues(&view).unwrap().as_argument();
        assert_eq!(queues, "channels.combined@eth0=1,2");
        assert_eq!(spread_packets(&view).unwrap().as_argument(), "rps.cpus@eth0=0,f");
        let affinity = spread_interrupts(&view).unwrap().as_argument();
        assert_eq!(affinity, "irq.affinity@eth0=0-3,spread", "not the effective CPU");
        let (name, times) = SOFTIRQ_BUDGETS[0];
        let budget = larger(&view, name, times).unwrap().as_argument();
        assert_eq!(budget, "sysctl.net.core.netdev_budget=300,600");
        let nowhere = HostView { device: None, ..view };
        assert_eq!(spread_packets(&nowhere), None);
    }

    #[test]
    fn a_quota_is_worth_a_line() {
        let mut facts = Snapshot::default();
        facts.put(QUOTA, "20 ms each 100 ms");
        facts.put(QUOTA_PERCENT, 20.0);
        let view = HostView { device: None, now: &facts, before: None };
        assert_eq!(QUOTA_CHECK.check(&view).unwrap().unwrap().confidence, Confidence::Possible);
        facts.put(QUOTA, "none");
        let view = HostView { device: None, now: &facts, before: None };
        assert_eq!(QUOTA_CHECK.check(&view), Ok(None));
    }
}
