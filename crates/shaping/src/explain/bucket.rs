//! What a bucket has to hold, and what a smaller one costs.

use goodput_ceiling::bucket::{BucketNeeds, SUPER_PACKET_BYTES, super_packet};
use goodput_ceiling::counting::{Each, Joined};
use goodput_model::{
    BitRate, Bytes, CeilingLine, CountedLayer, EnoughBucket, LocalShaper, Missing, Seconds,
    ShapingKind, ShapingTest, TimerLateness,
};

use super::local::{counts_for, is_set_otherwise, least_of};
use super::{Answer, Seen, Sender, say};

/// Largest super-packet of most devices, bytes (`GSO_LEGACY_MAX_SIZE`, include/linux/netdevice.h).
const USUAL_GSO_BYTES: f64 = 65_536.0;

/// The bucket that is enough for the local shaper's rate, or for the configured rate of a shaper elsewhere, or of one that is set
/// to another rate. `frame`: of the train, whose timers were watched, bytes.
pub(super) fn enough(
    test: &ShapingTest,
    sender: &Sender,
    shaper: Option<&LocalShaper>,
    frame: f64,
) -> EnoughBucket {
    let set = shaper.filter(|shaper| !is_set_otherwise(test, shaper));
    let rate = set.map_or(test.configured_bits_per_s, |shaper| shaper.rate_bits_per_s).0;
    let counted = shaper.map_or(frame, |shaper| shaper.counted_frame_bytes.0 as f64);
    let watched = match shaper {
        Some(_) => sender.timers.as_ref().map_err(Clone::clone),
        None => Err(Missing::because("the shaper is not at the sending host")),
    };
    let largest = largest_frame(sender, shaper, counted);
    let super_packet = largest_super_packet(sender, largest);
    let timers = watched.clone().and_then(|all| all.frame.lateness(counted * 8.0 / rate));
    let super_timers = watched.and_then(|all| all.super_packet.lateness(super_packet * 8.0 / rate));
    let bridged_s = |timers: &Result<TimerLateness, Missing>| {
        timers.as_ref().ok().map(|timers| timers.bridged_us / 1e6)
    };
    let needs = BucketNeeds {
        rate,
        frame: largest,
        super_packet,
        lateness_s: bridged_s(&timers),
        super_lateness_s: bridged_s(&super_timers),
    };
    let (mut bytes, mut lines) = needs.worked_out();
    // A policer behind a local shaper has a bucket of its own, which that of the shaper does not enlarge.
    let policed = shaper.is_none().then(|| for_policed(test, sender, largest, rate)).flatten();
    if let Some((wanted, line)) = policed {
        bytes = bytes.max(wanted);
        lines.insert(lines.len() - 1, line);
        if let Some(enough) = lines.last_mut() {
            enough.value = bytes as f64;
        }
    }
    EnoughBucket {
        for_rate_bytes: Bytes(needs.for_rate().ceil() as u64),
        bytes: Bytes(bytes),
        lines,
        timers: timers.into(),
        super_packet_timers: super_timers.into(),
    }
}

/// What the bucket of a policer has to let through for TCP, bytes, with the arithmetic: nothing waits behind it.
fn for_policed(
    test: &ShapingTest,
    sender: &Sender,
    frame: f64,
    rate: f64,
) -> Option<(u64, CeilingLine)> {
    test.train.value().filter(|train| train.kind == ShapingKind::Policer)?;
    let rtt_s = sender.min_rtt_s.clone().ok()?;
    let wanted = wanted_by_tcp(sender, frame, rate, rtt_s).ceil();
    let (rate, rtt, burst) = (BitRate(rate), Seconds(rtt_s), burst_of_tcp(sender, frame));
    let line = CeilingLine {
        label: "what TCP has in flight, and a burst".into(),
        formula: format!("{rate} × {rtt} / 8 + {burst:.0}"),
        value: wanted,
        unit: "bytes".into(),
    };
    Some((wanted as u64, line))
}

/// Bytes that TCP sends at once: a super-packet. A window that opens at once is as large, also if the device takes single segments:
/// behind a policer of 10 frames, an initial window of 10 segments passes, and TCP gets 5 % of the rate. `frame`: a full frame, bytes.
fn burst_of_tcp(sender: &Sender, frame: f64) -> f64 {
    largest_super_packet(sender, frame).max(SUPER_PACKET_BYTES)
}

/// Bytes below which a queue or a bucket costs TCP its rate, bits per second: what is in flight, and a burst.
pub(super) fn wanted_by_tcp(sender: &Sender, frame: f64, rate: f64, rtt_s: f64) -> f64 {
    rate / 8.0 * rtt_s + burst_of_tcp(sender, frame)
}

/// A full frame of TCP, or the train's, of which the shaper counts `own` bytes: the larger one, bytes.
pub(super) fn largest_frame(sender: &Sender, shaper: Option<&LocalShaper>, own: f64) -> f64 {
    let Ok((_, packet)) = sender.segment else { return own };
    let frame = packet + CountedLayer::Frame.extra_bytes();
    own.max(shaper.map_or(frame, |shaper| counts_for(sender, shaper, frame)))
}

/// TCP makes super-packets whatever the offloads are, and a device without the offload cuts them up behind its queue
/// (net/core/sock.c, `sk_setup_caps`; net/core/dev.c, `validate_xmit_skb`).
pub(super) fn largest_super_packet(sender: &Sender, frame: f64) -> f64 {
    let fact = |name: &str| sender.before.number(name);
    match (fact("link.gso_max_bytes"), fact("link.gso_max_segments"), &sender.segment) {
        (Ok(bytes), Ok(segments), Ok((payload, _))) => {
            super_packet(bytes, segments, *payload, frame)
        }
        // A router reports none: as most devices have it.
        (_, _, Ok((payload, _))) => super_packet(USUAL_GSO_BYTES, f64::INFINITY, *payload, frame),
        _ => SUPER_PACKET_BYTES,
    }
}

/// The least that a shaper counts for a segment of a super-packet, if that is not what it counts for one that leaves alone.
pub(super) fn least_for_segment(sender: &Sender, shaper: &LocalShaper) -> Option<Each> {
    let (payload, packet) = sender.segment.clone().ok()?;
    let frame = packet + CountedLayer::Frame.extra_bytes();
    let segments = (largest_super_packet(sender, frame) / frame).round();
    least_of(sender, shaper, Joined { segments, payload, frame })
}

/// A bucket that no full frame fits in. Only tbf drops such a frame (net/sched/sch_tbf.c, `tbf_enqueue`): a class of htb may
/// send as long as it owes nothing, whatever the frame costs (net/sched/sch_htb.c, `htb_class_mode`).
pub(super) fn below_a_frame(seen: &Seen) -> Answer {
    let (shaper, burst, frame) = (seen.shaper()?, seen.burst()?, seen.largest_frame()?);
    (is_tbf(shaper) && seen.burst_at_most()? < frame).then(|| {
        say(
            "below-a-frame",
            format!(
                "the bucket of {burst:.0} bytes is smaller than a frame of {frame:.0} bytes: the shaper drops every full frame"
            ),
        )
    })
}

/// A shaper elsewhere that gives too little, with a bucket that was seen to be small.
pub(super) fn small_elsewhere(seen: &Seen) -> Answer {
    let (train, given, enough) =
        (seen.train()?, seen.test.datagrams_bits_per_s.value()?, seen.enough?);
    let bucket = train.bucket_bytes.value()?;
    let configured = seen.test.configured_bits_per_s;
    let lacks =
        train.kind == ShapingKind::Shaper && given.high < configured.0 * (1.0 - seen.tolerance());
    // An interval from zero says only how large the bucket is at most.
    let (about, known) = match bucket.low > 0.0 {
        true => ("about", bucket.value),
        false => ("at most", bucket.high.max(0.0)),
    };
    let is_small = known < enough.for_rate_bytes.0 as f64;
    (seen.shaper().is_none() && lacks && is_small).then(|| {
        say(
            "small-bucket-elsewhere",
            format!(
                "the bucket there lets {about} {} through at once, and {} are enough for {configured}: what comes in while its \
                 timers are late may be lost",
                Bytes(known as u64),
                enough.for_rate_bytes
            ),
        )
    })
}

pub(super) fn is_tbf(shaper: &LocalShaper) -> bool {
    shaper.kind == "tbf"
}

/// A bucket that cuts up super-packets: tbf does (net/sched/sch_tbf.c, `tbf_segment`).
pub(super) fn cuts_batches(seen: &Seen) -> Answer {
    let (shaper, burst, enough) = (seen.shaper()?, seen.burst()?, seen.enough?);
    let frame = seen.largest_frame()?;
    let whole = largest_super_packet(seen.sender, frame);
    let is_small = burst >= frame && seen.burst_at_most()? < whole;
    (is_tbf(shaper) && is_small && enough.bytes > enough.for_rate_bytes).then(|| {
        say(
            "cut-super-packets",
            format!(
                "the bucket of {burst:.0} bytes is smaller than a super-packet of {whole:.0} bytes: tbf cuts one of that size into \
                 {:.0} frames, which costs CPU time",
                whole / frame
            ),
        )
    })
}
