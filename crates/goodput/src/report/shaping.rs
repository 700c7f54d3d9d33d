//! The report on a shaper: its rate, its effect on datagrams, and its effect on TCP.

use goodput_model::{
    BitRate, Bytes, ClassAnswer, Confirmation, Estimate, FlowSharing, Gaps, Known, QueueDiscipline,
    Record, Seconds, Shaping, ShapingKind, ShapingQueue, ShapingTest,
};

use super::classes;
use super::curve::{bars, curve};
use super::explained;
use super::labelled::{line, lines};
use super::proof;
use super::style;
use super::test::{self, Detail};

/// The whole report.
pub fn text(record: &Record) -> String {
    let mut out = String::from("\n");
    if let Some(test) = &record.shaping {
        verdict(&mut out, test);
        rates(&mut out, test);
        match &test.train {
            Known::Value(train) => behaviour(&mut out, test, train),
            Known::Missing(_) if !test.classes.is_empty() => {}
            Known::Missing(why) => {
                line(&mut out, "datagrams", &format!("unknown: {}", why.missing))
            }
        }
        classes::add(&mut out, &test.classes, test.tolerance_percent);
        explained::add(&mut out, test);
        proof::add(&mut out, record, test);
        since(&mut out, test);
        match test.furthest_below().map(|place| &test.classes[place]) {
            None => out += "\nTCP\n",
            // A class that has its rate is limited by that.
            Some(class) if has_its_rate(class.answer) => return out,
            Some(class) => out += &format!("\nTCP of {}, beside the others\n", class.name),
        }
    }
    out + &test::text(record, Detail::default())
}

fn has_its_rate(answer: ClassAnswer) -> bool {
    matches!(answer, ClassAnswer::Gives | ClassAnswer::TooFast | ClassAnswer::BelowCeil)
}

fn verdict(out: &mut String, test: &ShapingTest) {
    let mut configured = format!("{} ± {} %", test.configured_bits_per_s, test.tolerance_percent);
    if let Some(most) = test.max_burst_bytes {
        configured += &format!(" with bursts of {most} at most");
    }
    let words = match test.confirmation {
        Confirmation::Confirmed => style::good(format!("gives {configured}")),
        Confirmation::Missed => style::bad(format!("does not give {configured}")),
        Confirmation::Inconclusive => format!("whether it gives {configured} is unknown"),
    };
    lines(out, "shaper", [words].into_iter().chain(test.reasons.iter().cloned()));
}

fn rates(out: &mut String, test: &ShapingTest) {
    if let Known::Value(layer) = &test.counts {
        line(out, "counts", layer.words());
    }
    let shown = [("datagrams", &test.datagrams_bits_per_s), ("tcp", &test.tcp_bits_per_s)];
    for (label, rate) in shown {
        if let Known::Value(rate) = rate {
            line(out, label, &interval(rate, |value| BitRate(value).to_string()));
        }
    }
}

/// What changed since the last test of the same shaper.
fn since(out: &mut String, test: &ShapingTest) {
    let Some(last) = &test.since else { return };
    let begins = match last.changes[..] {
        [] => format!("{}: nothing that counts has changed", last.started),
        _ => format!("{}:", last.started),
    };
    lines(out, "since", [begins].into_iter().chain(last.changes.iter().cloned()));
}

/// The value and its interval.
fn interval(estimate: &Estimate, words: impl Fn(f64) -> String) -> String {
    let Estimate { value, low, high } = *estimate;
    format!("{}   {} to {}", style::strong(words(value)), words(low.max(0.0)), words(high))
}

/// A depth of which only the upper bound is known is said as that.
fn bucket(depth: &Estimate, frame: Bytes) -> String {
    let words = |value: f64| Bytes(value.round() as u64).to_string();
    if depth.low <= 0.0 {
        return format!("{} at most", style::strong(words(depth.high.max(0.0))));
    }
    format!("{}   about {:.0} frames", interval(depth, words), depth.value / frame.0 as f64)
}

/// What happened to datagrams above the rate.
fn behaviour(out: &mut String, test: &ShapingTest, train: &Shaping) {
    let lost = train.lost as f64 * 100.0 / (train.sent as f64).max(1.0);
    let offered = train.offered_bits_per_s;
    let held = match train.held_percent {
        Known::Value(held) => format!("; the sender waited for its queue {held:.0} % of the time"),
        Known::Missing(_) => String::new(),
    };
    let kind = match train.kind {
        ShapingKind::Shaper => "a shaper: datagrams above the rate wait",
        ShapingKind::Policer => {
            "a policer: it drops datagrams above the rate without letting them wait"
        }
        ShapingKind::None if offered.0 < test.configured_bits_per_s.0 => {
            "unknown: the sender stayed below the rate, and all came as fast as they were sent"
        }
        ShapingKind::None => "nothing: datagrams come as fast as they are sent",
    };
    line(out, "kind", kind);
    line(
        out,
        "train",
        &format!(
            "{} datagrams sent, in frames at {offered} on average; {lost:.1} % lost{held}",
            train.sent
        ),
    );
    match &train.bucket_bytes {
        Known::Value(depth) => line(out, "bucket", &bucket(depth, train.frame_bytes)),
        Known::Missing(why) if train.kind != ShapingKind::None => {
            line(out, "bucket", &format!("unknown: {}", why.missing));
        }
        Known::Missing(_) => {}
    }
    if let Known::Value(queue) = &train.queue {
        lines(out, "queue", queue_words(queue));
    }
    let windows = train.windows.iter().map(|window| {
        format!(
            "{} to {} in windows of {}",
            window.lowest_bits_per_s,
            window.highest_bits_per_s,
            Seconds(window.window_s)
        )
    });
    lines(out, "evenness", windows);
    gaps(out, &train.gaps);
    lines(out, "bytes, time", curve(train));
}

/// The queue's size, when it drops, and whether it is fair.
fn queue_words(queue: &ShapingQueue) -> [String; 2] {
    let drops: &str = match &queue.discipline {
        Known::Value(QueueDiscipline::Unfilled) => "it was never full",
        Known::Value(QueueDiscipline::DropTail) => "a full queue drops what comes",
        Known::Value(QueueDiscipline::DropHead) => "a full queue drops its oldest",
        Known::Value(QueueDiscipline::ActiveManagement) => "drops before the queue is full",
        Known::Missing(why) => &format!("when it drops is unknown: {}", why.missing),
    };
    let shared: &str = match &queue.between_flows {
        Known::Value(FlowSharing::OneQueue) => "all flows wait in it",
        Known::Value(FlowSharing::FairQueue) => {
            "fair: a second flow does not wait behind the first"
        }
        Known::Missing(why) => &format!("whether it is fair is unknown: {}", why.missing),
    };
    let wait = Seconds(queue.longest_wait_s);
    [format!("{}   up to {wait}; {drops}", queue.bytes), shared.to_owned()]
}

fn gaps(out: &mut String, gaps: &Gaps) {
    line(out, "gaps", &format!("the longest is {}", Seconds(gaps.longest_s)));
    if let Some(rhythm) = gaps.rhythm {
        let period = Seconds(rhythm.period_s);
        line(out, "bursts", &format!("{} every {period}", rhythm.burst_bytes));
    }
    let counts = gaps.histogram.iter().map(|bin| {
        let from = Seconds(bin.from_s);
        (format!("from {from}"), bin.count)
    });
    lines(out, "", bars(&counts.collect::<Vec<_>>()));
}
