//! What a bucket has to hold, and what a smaller one costs.

use goodput_ceiling::bucket::{
    BucketNeeds, PLAUSIBLE_LATENESS_S, SUPER_PACKET_BYTES, lateness_to_bridge, super_packet,
};
use goodput_ceiling::time;
use goodput_model::{
    Bytes, EnoughBucket, Known, LocalShaper, Missing, ShapingKind, ShapingTest, TimerLateness,
    median,
};

use super::{Answer, Seen, Sender, say};

/// The bucket that is enough for the local shaper's rate, or for the configured rate of a shaper elsewhere.
pub(super) fn enough(
    test: &ShapingTest,
    sender: &Sender,
    shaper: Option<&LocalShaper>,
    frame: f64,
) -> EnoughBucket {
    let rate = shaper.map_or(test.configured_bits_per_s, |shaper| shaper.rate_bits_per_s).0;
    let counted = shaper.map_or(frame, |shaper| shaper.counted_frame_bytes.0 as f64);
    let timers = match shaper {
        Some(_) => lateness(sender, counted * 8.0 / rate),
        None => Err(Missing::because("the shaper is not at the sending host")),
    };
    let super_packet = largest_super_packet(sender, counted);
    let super_lateness = |latenesses: &Vec<f64>| {
        let cycle_s = super_packet * 8.0 / rate;
        lateness_to_bridge(latenesses, sender.timer_s, cycle_s).filter(|_| timers.is_ok())
    };
    let needs = BucketNeeds {
        rate,
        frame: counted,
        super_packet,
        lateness_s: timers.as_ref().ok().map(|timers| timers.bridged_us / 1e6),
        super_lateness_s: sender.latenesses_s.as_ref().ok().and_then(super_lateness),
    };
    let (bytes, lines) = needs.worked_out();
    EnoughBucket {
        for_rate_bytes: Bytes(needs.for_rate().ceil() as u64),
        bytes: Bytes(bytes),
        lines,
        timers: timers.into(),
    }
}

fn lateness(sender: &Sender, cycle_s: f64) -> Result<TimerLateness, Missing> {
    let late = sender.latenesses_s.clone()?;
    let few = || Missing::because("no timer was watched");
    Ok(TimerLateness {
        count: late.len() as u64,
        median_us: median(late.iter().copied()).ok_or_else(few)? * 1e6,
        longest_us: late.iter().copied().fold(0.0, f64::max) * 1e6,
        bridged_us: lateness_to_bridge(&late, sender.timer_s, cycle_s).ok_or_else(few)? * 1e6,
        pauses: Some(late.iter().filter(|one| **one > sender.timer_s).count() as u64),
    })
}

/// TCP makes super-packets whatever the offloads are, and a device without the offload cuts them up behind its queue
/// (net/core/sock.c, `sk_setup_caps`; net/core/dev.c, `validate_xmit_skb`).
fn largest_super_packet(sender: &Sender, frame: f64) -> f64 {
    let fact = |name: &str| sender.before.number(name);
    match (fact("link.gso_max_bytes"), fact("link.gso_max_segments"), &sender.segment) {
        (Ok(bytes), Ok(segments), Ok((payload, _))) => {
            super_packet(bytes, segments, *payload, frame)
        }
        _ => SUPER_PACKET_BYTES,
    }
}

/// A bucket that no full frame fits in. Only tbf drops such a frame (net/sched/sch_tbf.c, `tbf_enqueue`): a class of htb may
/// send as long as it owes nothing, whatever the frame costs (net/sched/sch_htb.c, `htb_class_mode`).
pub(super) fn below_a_frame(seen: &Seen) -> Answer {
    let (shaper, burst) = (seen.shaper()?, seen.burst()?);
    let frame = shaper.counted_frame_bytes;
    (is_tbf(shaper) && seen.burst_at_most()? < frame.0 as f64).then(|| {
        say(
            "below-a-frame",
            format!(
                "the bucket of {burst:.0} bytes is smaller than a frame of {} bytes: it drops every full frame",
                frame.0
            ),
        )
    })
}

/// A bucket that overflows whenever a timer is late.
pub(super) fn late_timers(seen: &Seen) -> Answer {
    let (shaper, burst, lacks) = (seen.shaper()?, seen.burst()?, seen.shortfall()?);
    let (frame, rate) = (shaper.counted_frame_bytes.0 as f64, shaper.rate_bits_per_s);
    // A class of htb sends a frame on credit, and the whole bucket bridges a late timer.
    let spare = if is_tbf(shaper) { burst - frame } else { burst };
    let (bridged_s, short_percent) = (spare * 8.0 / rate.0, lacks * 100.0);
    if spare < 0.0 || !is_explained(seen, lacks) {
        return None;
    }
    let timers = match &seen.enough?.timers {
        Known::Value(timers) => format!("timers here were up to {} late", short(timers.longest_us)),
        Known::Missing(why) => format!("how late timers are there is unknown ({why})"),
    };
    Some(say(
        "late-timers",
        format!(
            "the bucket of {burst:.0} bytes bridges timers that are up to {} late at {rate}; {timers}, and what comes in \
             while it is full is lost: {:.1} % of the rate",
            short(bridged_s * 1e6),
            short_percent
        ),
    ))
}

/// A shaper elsewhere that gives too little, with a bucket that was seen to be small.
pub(super) fn small_elsewhere(seen: &Seen) -> Answer {
    let (train, given, enough) =
        (seen.train()?, seen.test.datagrams_bits_per_s.value()?, seen.enough?);
    let bucket = train.bucket_bytes.value()?;
    let configured = seen.test.configured_bits_per_s;
    let lacks =
        train.kind == ShapingKind::Shaper && given.high < configured.0 * (1.0 - seen.tolerance());
    let is_small = bucket.value < enough.for_rate_bytes.0 as f64;
    (seen.shaper().is_none() && lacks && is_small).then(|| {
        say(
            "small-bucket-elsewhere",
            format!(
                "the bucket there lets about {} through at once, and {} are enough for {configured}: what comes in while its \
                 timers are late may be lost",
                Bytes(bucket.value.max(0.0) as u64),
                enough.for_rate_bytes
            ),
        )
    })
}

fn is_tbf(shaper: &LocalShaper) -> bool {
    shaper.kind == "tbf"
}

/// Microseconds with three digits.
fn short(us: f64) -> String {
    let digit = 10f64.powf(us.abs().max(1e-3).log10().floor() - 2.0);
    time((us / digit).round() * digit / 1e6)
}

/// Whether late timers explain that this share of the rate is missing: the bucket is smaller than what they need, and each
/// frame would be late by no more than timers are. A class of htb needs no bucket for the frame itself.
pub(super) fn is_explained(seen: &Seen, short: f64) -> bool {
    let (Some(shaper), Some(burst), Some(enough)) = (seen.shaper(), seen.burst(), seen.enough)
    else {
        return false;
    };
    let frame = shaper.counted_frame_bytes.0 as f64;
    let cycle_s = frame * 8.0 / shaper.rate_bits_per_s.0;
    let credit = if is_tbf(shaper) { 0.0 } else { frame };
    let mean_s = cycle_s * short / (1.0 - short);
    let longest_s = enough.timers.value().map_or(0.0, |timers| timers.longest_us / 1e6);
    burst + credit < enough.for_rate_bytes.0 as f64 && mean_s <= longest_s.max(PLAUSIBLE_LATENESS_S)
}

/// A bucket that cuts up super-packets: tbf does (net/sched/sch_tbf.c, `tbf_segment`).
pub(super) fn cuts_batches(seen: &Seen) -> Answer {
    let (shaper, burst, enough) = (seen.shaper()?, seen.burst()?, seen.enough?);
    let frame = shaper.counted_frame_bytes.0 as f64;
    let whole = largest_super_packet(seen.sender, frame);
    let is_small = burst >= frame && seen.burst_at_most()? < whole;
    (is_tbf(shaper) && is_small && enough.bytes > enough.for_rate_bytes).then(|| {
        say(
            "cut-super-packets",
            format!(
                "the bucket of {burst:.0} bytes is smaller than a super-packet of {whole:.0} bytes: tbf cuts each one into {:.0} \
                 frames, which costs CPU time",
                whole / frame
            ),
        )
    })
}
