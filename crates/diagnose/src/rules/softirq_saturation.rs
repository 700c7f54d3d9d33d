//! # What it means
//! One CPU of the receiving host does nothing but receive packets, and can't receive more.
//!
//! # Why it limits
//! All packets of one receive queue, and of one flow, pass one CPU. When interrupts and softirqs
//! fill that CPU, packets wait and are dropped, and the reading program gets no time on it. Beyond
//! that point, more packets offered means fewer packets delivered (receive livelock).
//!
//! # How it is seen
//! Interrupts and softirqs took at least 90 % of one CPU's time between the snapshots, and
//! meanwhile the reader waited for data or packets were dropped before it.
//!
//! # What to try
//! Fewer, larger packets for the stack (GRO, larger MTU), spreading (more queues, interrupts on
//! several CPUs, RPS, RFS), longer
//! coalescing, threaded or deferred polling.
//!
//! # When it is wrong
//! Other flows of the host, or of other network namespaces, may fill the CPU; the remedy is the
//! same. In a lab both ends share their CPUs, so the sender's softirqs count too. Without
//! CONFIG_IRQ_TIME_ACCOUNTING the share is sampled at the timer's tick.
//!
//! # Source
//! proc(5) (`/proc/stat`); Mogul, Ramakrishnan: Eliminating receive livelock, USENIX ATC 1996;
//! Documentation/networking/scaling.rst, napi.rst; polling(4) of FreeBSD.

use goodput_model::{Change, Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::change::{more_queues, of_host, spread_interrupts, spread_packets};
use crate::finding::{Draft, percent};
use crate::offers::deferred_polling;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{MAX_WAIT_SHARE_OF_SLOW_THREAD, MIN_HEAVY_LOSS_SHARE};
use crate::view::{Side, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "softirq-saturation",
    title: "One CPU is full of softirqs",
    refines: &[parts::RECEIVING_HOST, parts::CUT_WINDOW, parts::RECOVERY],
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "softirq_percent",
    witness_words: ("CPU in softirqs", " %"),
    source: include_str!("softirq_saturation.rs"),
};

/// Share of one CPU's time from which nothing is left of it: the rest is the programs' that the
/// kernel lets run now and then, so that they don't starve (net/core/dev.c, ksoftirqd).
const MIN_SATURATED_CPU_SHARE: f64 = 0.9;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let side = &view.receiver;
    let (cpu, share) = side.softirq_cpu()?;
    if share < MIN_SATURATED_CPU_SHARE || !starves(view)? {
        return Ok(None);
    }
    let place = side.place();
    let text = format!("interrupts and softirqs took {} of CPU {cpu} (/proc/stat)", percent(share));
    let summary = format!("softirqs on CPU {cpu} of the {} end", side.name);
    Draft::new(RULE.id, place, Confidence::Likely, summary)
        .share(share)
        .saw(place, RULE.witness_name, share * 100.0, text)
        .saw_if(place, "reader_blocked_share", side.blocked_share(), |waits| {
            format!("the reader waited for data {} of the time", percent(waits))
        })
        .saw_if(place, "squeezes_per_s", side.squeezes_per_s(), |squeezes| {
            format!("softirqs ran out of budget {squeezes:.0} times a second (softnet_stat)")
        })
        .saw_if(place, "interrupts_part", part_of_interrupts(side, cpu), |part| {
            format!("this CPU handles {} of the card's interrupts", percent(part))
        })
        .predicted(next_after(view, &[RULE.id, "receiver-cpu"]))
        .changes(gro(side))
        .changes(more_queues(side))
        .changes(spread_interrupts(side))
        .changes(spread_packets(side))
        .changes(threaded(side))
        .changes(deferred_polling(side))
        .advice("use several flows (-P) to use several CPUs; one flow stays on one CPU")
        .permanent("/etc/rc.conf (FreeBSD)", "ifconfig_em0=\"DHCP polling\"")
        .found()
}

/// Whether the saturated CPU keeps packets from the reader: it waits for data, or they are dropped.
fn starves(view: &View) -> Result<bool, Missing> {
    let waits = view.receiver.blocked_share()? >= MAX_WAIT_SHARE_OF_SLOW_THREAD;
    let lost = view.receiver.lost_share().or_else(|_| view.sender.retransmitted_share());
    Ok(waits || lost.is_ok_and(|share| share >= MIN_HEAVY_LOSS_SHARE))
}

fn part_of_interrupts(side: &Side, cpu: u32) -> Result<f64, Missing> {
    match side.largest_part("interrupts.device")? {
        (most, part) if most == cpu => Ok(part),
        _ => Err(Missing::because("another CPU handles them")),
    }
}

fn gro(side: &Side) -> Option<Change> {
    let values = (Some("off".into()), "on".into());
    let why = "gives the stack fewer, larger packets";
    let off = side.text("offload.gro").is_ok_and(|gro| gro == "off");
    off.then(|| of_host(side, "offload.gro", side.device().ok(), values, why))
}

/// Polling by a thread, which another CPU can take over.
fn threaded(side: &Side) -> Option<Change> {
    let values = (Some("off".into()), "on".into());
    let why = "a thread is scheduled beside the reader, not before it";
    let off = side.count("napi.threaded").is_ok_and(|threaded| threaded == 0.0);
    off.then(|| of_host(side, "napi.threaded", side.device().ok(), values, why))
}

/// Share of the time that the CPU with most interrupts and softirqs spent in them, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(view.receiver.softirq_share()? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Far;

    fn full() -> Case {
        Case::healthy().cpu(Far, 0.97, 0.99)
    }

    #[test]
    fn fires_on_a_full_cpu_and_is_more_than_a_busy_receiver() {
        let case =
            full().fact(Far, "channels.combined", 1u64).fact(Far, "channels.combined_max", 8u64);
        let finding = fires(&RULE, case);
        assert_eq!(finding.changes[0].as_argument(), "far:channels.combined@eth0=1,2");
        let finding = fires(&RULE, full().fact(Far, "steering.rps_mask", "00"));
        assert_eq!(finding.changes[0].as_argument(), "far:rps.cpus@eth0=0,3");
        let diagnosis = crate::diagnose(&full().evidence());
        assert_eq!(diagnosis.verdict.limit, "softirq-saturation");
        assert!(diagnosis.findings.iter().all(|finding| finding.rule != "receiver-cpu"));
    }

    #[test]
    fn interrupts_that_all_go_to_one_cpu_are_spread() {
        let on = |cpus: &'static str, vectors: u64| {
            let case = full().fact(Far, "interrupts.affinity", cpus);
            let case = case.fact(Far, "interrupts.allowed", "0-3");
            let finding = fires(&RULE, case.fact(Far, "interrupts.vectors", vectors));
            let changes = finding.changes.iter().map(Change::as_argument);
            changes.filter(|change| change.contains("irq.affinity")).collect::<Vec<_>>()
        };
        assert_eq!(on("1", 4), ["far:irq.affinity@eth0=0-3,spread"]);
        assert_eq!(on("1", 1), [""; 0], "one interrupt has one CPU");
        assert_eq!(on("0,1", 4), [""; 0], "they are spread already");
    }

    #[test]
    fn it_is_the_reason_for_rings_that_overflow() {
        let case = Case::path_loss().cpu(Far, 0.97, 0.99).grows(Far, "driver.rx_missed", 7);
        assert_eq!(crate::diagnose(&case.evidence()).verdict.limit, "softirq-saturation");
    }

    #[test]
    fn stays_quiet_with_time_left_or_a_reader_that_never_waits() {
        quiet(&RULE, Case::healthy().cpu(Far, 0.85, 0.99));
        quiet(&RULE, full().reader(0.05, 0.0, 0.9));
    }

    #[test]
    fn cannot_tell_without_the_cpus() {
        cannot_tell(&RULE, full().without(Far, "cpu"));
    }
}
