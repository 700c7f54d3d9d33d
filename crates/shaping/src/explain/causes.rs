//! The causes that are looked for, the likeliest first.

use goodput_model::{ShapingCause, ShapingKind};

use super::short::in_tc;
use super::{
    Answer, Seen, bucket, captured_bursts, downstream, late_timers, queue, rates, say, tree,
};

/// All that explain what was seen.
pub(super) fn all(seen: &Seen) -> Vec<ShapingCause> {
    const ALL: [fn(&Seen) -> Answer; 25] = [
        rates::set_otherwise,
        rates::other_traffic,
        bucket::below_a_frame,
        late_timers::of_frames,
        late_timers::of_super_packets,
        tree::peak_rate,
        rates::own_firewall,
        rates::second_shaper,
        downstream::drops_bursts,
        rates::ignored,
        tree::past_htb,
        rates::elsewhere,
        faster_policer,
        bucket::small_elsewhere,
        rates::never_borrows,
        rates::children_above_parent,
        tree::small_quantum,
        queue::policed_tcp,
        queue::counts_packets,
        queue::too_short,
        tcp_limit,
        captured_bursts::bursts,
        rates::counts_more,
        bucket::cuts_batches,
        queue::too_long,
    ];
    let found = ALL.iter().filter_map(|cause| cause(seen));
    found.chain(rates::headers(seen)).collect()
}

/// What holds TCP, if it gets less than datagrams and less than the shaper's configured rate, and not for its bucket.
fn tcp_limit(seen: &Seen) -> Answer {
    let limit = &seen.sender.tcp_limit.as_ref()?.words;
    let least = seen.test.configured_bits_per_s.0 * (1.0 - seen.tolerance());
    let is_bucket = [bucket::below_a_frame, late_timers::of_frames, late_timers::of_super_packets]
        .iter()
        .any(|of| of(seen).is_some());
    let than = match seen.test.datagrams_bits_per_s.value() {
        Some(_) => "datagrams",
        None => "the rate",
    };
    (seen.tcp_lags() && seen.test.tcp_bits_per_s.value()?.high < least && !is_bucket)
        .then(|| say("tcp-limit", format!("TCP gets less than {than}: {limit}")))
}

/// A policer that TCP meets, at a rate that the datagrams did not reach.
fn faster_policer(seen: &Seen) -> Answer {
    let limit = seen.sender.tcp_limit.as_ref().filter(|limit| limit.rule == "policer")?;
    let (train, tcp) = (seen.train()?, seen.test.tcp_bits_per_s.value()?);
    (train.kind == ShapingKind::None).then(|| {
        let (offered, again) = (train.offered_bits_per_s, in_tc(three_digits(tcp.value)));
        let met = &limit.words;
        let text = format!(
            "datagrams at {offered} showed no limit, but TCP meets {met}: test with --rate {again}"
        );
        say("faster-policer", text)
    })
}

/// A rate as it is worth typing.
fn three_digits(rate: f64) -> u64 {
    let unit = 10f64.powf((rate.max(1.0).log10().floor() - 2.0).max(0.0));
    ((rate / unit).round() * unit) as u64
}
