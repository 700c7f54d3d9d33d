//! What explains what a shaper gives: the causes in words, the sufficient bucket with its arithmetic, and what to change.

use goodput_ceiling::number;
use goodput_model::{
    Bytes, CeilingLine, EnoughBucket, Known, Seconds, ShapingKind, ShapingTest, TimerLateness,
};

use super::labelled::{line, lines};
use super::remedy::change;
use super::{permanent, style};

/// Adds these lines to a report.
pub(super) fn add(out: &mut String, test: &ShapingTest) {
    lines(out, "why", test.causes.iter().map(|cause| cause.text.clone()));
    if let Known::Value(enough) = &test.enough_bucket {
        let kind = test.train.value().map(|train| train.kind);
        bucket(out, test, enough, kind == Some(ShapingKind::Policer));
    }
    lines(out, "to try", test.changes.iter().map(change));
    lines(out, "with tc", test.commands.iter().map(style::strong));
    lines(out, "networkd", test.networkd.iter().cloned());
    lines(out, "for good", permanent::lines(&test.permanent));
}

/// The bucket that is enough, and how late timers are.
fn bucket(out: &mut String, test: &ShapingTest, enough: &EnoughBucket, is_policer: bool) {
    let EnoughBucket { for_rate_bytes, bytes, .. } = enough;
    let shown = style::strong(Bytes(bytes.0));
    let words = match bytes > for_rate_bytes {
        true if is_policer => format!(
            "a bucket of {shown}, for bursts of TCP; at least {for_rate_bytes} for the rate alone"
        ),
        true => format!(
            "a bucket of {shown}, with whole super-packets; at least {for_rate_bytes} for the rate alone"
        ),
        false => format!("a bucket of {shown}, for the rate and for whole super-packets"),
    };
    let most = test.max_burst_bytes.filter(|most| most < bytes).map(|most| {
        format!("bursts of {most} at most were asked for: such a bucket lets larger ones through")
    });
    let steps = enough.lines.iter().map(step);
    lines(out, "enough", [words].into_iter().chain(most).chain(steps));
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
    let [median, longest, bridged] =
        [timers.median_us, timers.longest_us, timers.bridged_us].map(Seconds::of_us);
    let late = match timers.count {
        _ if longest.0 <= 0.0 => match timers.count {
            1 => format!("one timer{length} was on time"),
            count => format!("{count} timers{length} were on time"),
        },
        1 => format!("one timer{length} was {longest} late"),
        count if median.0 <= 0.0 => {
            format!("of {count} timers{length} half were on time, the latest was {longest} late")
        }
        count => {
            format!(
                "of {count} timers{length} half were more than {median} late, the latest {longest}"
            )
        }
    };
    let mut words = vec![match bridged.0 > 0.0 {
        true => format!(
            "{late}; a bucket that bridges {bridged} loses at most 1 % of the rate to such timers"
        ),
        false => format!("{late}; any bucket loses at most 1 % of the rate to such timers"),
    }];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_on_time_are_not_late_by_nothing() {
        let said = |count, median_us, longest_us| {
            let (bridged_us, timer_us, pauses) = (0.0, Some(5e5), None);
            let late = TimerLateness { count, timer_us, median_us, longest_us, bridged_us, pauses };
            watched(&late).concat()
        };
        let rest = "; any bucket loses at most 1 % of the rate to such timers";
        assert_eq!(said(1, 0.0, 0.0), format!("one timer of 500 ms was on time{rest}"));
        assert_eq!(said(3, 0.0, 0.0), format!("3 timers of 500 ms were on time{rest}"));
        let some = "of 3 timers of 500 ms half were on time, the latest was 20 µs late";
        assert_eq!(said(3, 0.0, 20.0), format!("{some}{rest}"));
    }

    #[test]
    fn one_timer_has_no_half() {
        let said = |count| {
            let (median_us, longest_us, bridged_us) = (10.0, 20.0, 30.0);
            let timer_us = Some(5e5);
            let pauses = None;
            let late = TimerLateness { count, timer_us, median_us, longest_us, bridged_us, pauses };
            watched(&late).concat()
        };
        assert!(said(1).starts_with("one timer of 500 ms was 20 µs late; a bucket"), "{}", said(1));
        let several =
            "of 2 timers of 500 ms half were more than 10 µs late, the latest 20 µs; a bucket";
        assert!(said(2).starts_with(several), "{}", said(2));
    }
}
