//! What explains what a shaper gives: the causes in words, the sufficient bucket with its arithmetic, and what to change.

use goodput_ceiling::number;
use goodput_model::{Bytes, CeilingLine, EnoughBucket, Known, Seconds, ShapingTest, TimerLateness};

use super::labelled::{line, lines};
use super::remedy::change;
use super::{permanent, style};

/// Adds these lines to a report.
pub(super) fn add(out: &mut String, test: &ShapingTest) {
    lines(out, "why", test.causes.iter().map(|cause| cause.text.clone()));
    if let Known::Value(enough) = &test.enough_bucket {
        bucket(out, enough);
    }
    lines(out, "to try", test.changes.iter().map(change));
    lines(out, "with tc", test.commands.iter().map(style::strong));
    lines(out, "networkd", test.networkd.iter().cloned());
    lines(out, "for good", permanent::lines(&test.permanent));
}

/// The bucket that is enough, and how late timers are.
fn bucket(out: &mut String, enough: &EnoughBucket) {
    let EnoughBucket { for_rate_bytes, bytes, .. } = enough;
    let shown = style::strong(Bytes(bytes.0));
    let words = match bytes > for_rate_bytes {
        true => format!(
            "a bucket of {shown}, with whole super-packets; at least {for_rate_bytes} for the rate alone"
        ),
        false => format!("a bucket of {shown}, for the rate and for whole super-packets"),
    };
    lines(out, "enough", [words].into_iter().chain(enough.lines.iter().map(step)));
    let both = [&enough.timers, &enough.super_packet_timers];
    let watched: Vec<_> = both.iter().filter_map(|timers| timers.value()).map(watched).collect();
    match &enough.timers {
        Known::Value(_) => lines(out, "timers", watched.concat()),
        Known::Missing(why) => line(out, "timers", &format!("unknown: {}", why.missing)),
    }
}

/// How late timers were, and whether the machine was busy meanwhile.
fn watched(timers: &TimerLateness) -> Vec<String> {
    let length =
        timers.timer_us.map(|us| format!(" of {}", Seconds::of_us(us))).unwrap_or_default();
    let mut words = vec![format!(
        "of {} timers{length} half were more than {} late, the latest {}; a bucket that bridges {} loses at most 1 % of the rate to such timers",
        timers.count,
        Seconds::of_us(timers.median_us),
        Seconds::of_us(timers.longest_us),
        Seconds::of_us(timers.bridged_us)
    )];
    if let Some(pauses @ 1..) = timers.pauses {
        words.push(format!("{pauses} met a busy machine, which did something else first"));
    }
    words
}

/// `a frame, and …: 1514 + 100 Mbit/s × 20 µs / 8 = 1764 bytes`.
fn step(step: &CeilingLine) -> String {
    let CeilingLine { label, formula, value, unit } = step;
    format!("{label}: {formula} = {} {unit}", number(*value))
}
