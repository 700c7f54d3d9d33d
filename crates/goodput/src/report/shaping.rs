//! The report on a shaper: its rate, its effect on datagrams, and its effect on TCP.

use goodput_model::{
    BitRate, Bytes, ClassAnswer, Confirmation, CountedLayer, Estimate, FlowSharing, Gaps, Known,
    QueueDiscipline, REST_S, Record, Seconds, Shaping, ShapingKind, ShapingQueue, ShapingTest,
    Transport,
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
            None => out += heading(record),
            // A class that has its rate is limited by that.
            Some(class) if has_its_rate(class.answer) => return out,
            // Its diagnosis knows the path, and not what the class should get of it.
            Some(class) if is_explained(test) => {
                line(
                    &mut out,
                    "TCP",
                    &format!("of {}: the lines above say what limits it", class.name),
                );
                return out;
            }
            Some(class) => out += &format!("\nTCP of {}, beside the others\n", class.name),
        }
    }
    out + &test::text(record, Detail::default())
}

/// Without TCP, the record is that of the datagrams.
fn heading(record: &Record) -> &'static str {
    match record.plan.transport {
        Transport::Udp => "\nDatagrams, without TCP\n",
        _ => "\nTCP\n",
    }
}

fn has_its_rate(answer: ClassAnswer) -> bool {
    matches!(answer, ClassAnswer::Gives | ClassAnswer::TooFast | ClassAnswer::BelowCeil)
}

/// Whether the classes themselves explain what they get.
fn is_explained(test: &ShapingTest) -> bool {
    let of_path = ["elsewhere", "tcp-limit"];
    test.causes.iter().any(|cause| !of_path.contains(&cause.id.as_str()))
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
    let layer = || test.counts.value().map(|layer| layer.words().to_owned());
    lines(out, "counts", counted(test).or_else(layer));
    let when = test.train.value().and_then(|train| when(train, test.tolerance_percent));
    let shown =
        [("datagrams", &test.datagrams_bits_per_s, when), ("tcp", &test.tcp_bits_per_s, None)];
    for (label, rate, when) in shown {
        if let Known::Value(rate) = rate {
            let words = interval(rate, |value| BitRate(value).to_string());
            line(out, label, &(words + when.unwrap_or_default()));
        }
    }
}

/// When datagrams came at their rate, if all of them together came more slowly: what is sent while the bucket has tokens shows
/// the sender's rate.
fn when(train: &Shaping, tolerance_percent: f64) -> Option<&'static str> {
    let (rate, last) = (train.rate_bits_per_s.value()?, train.curve.last()?);
    let came = last.bytes as f64 * 8.0 / last.at_s;
    let is_less = came < rate.low * (1.0 - tolerance_percent / 100.0);
    is_less.then_some(match (train.outages, train.stalled_s) {
        (1.., _) => " while the path was not broken",
        (0, Some(_)) => " while the path did not stand still",
        (0, None) => " while the bucket was empty: the sender let it fill",
    })
}

/// What the shaper that was read counts, if that is none of the usual layers.
fn counted(test: &ShapingTest) -> Option<String> {
    let (shaper, train) = (test.shaper.value()?, test.train.value()?);
    let counted = shaper.counted_frame_bytes.0;
    let extra = counted as f64 - train.packet_bytes.0 as f64;
    let is_usual = CountedLayer::ALL.iter().any(|layer| layer.extra_bytes() == extra);
    (!is_usual)
        .then(|| format!("{counted} bytes for a frame of {}, as it is set", train.frame_bytes.0))
}

/// The rate of datagrams in each layer; nothing if it is the sender's own.
fn layers(test: &ShapingTest) -> Option<String> {
    test.datagrams_bits_per_s.value()?;
    let train = test.train.value()?;
    let frames = train.rate_bits_per_s.value()?.value;
    let of = |bytes: f64| BitRate(frames * bytes / train.frame_bytes.0 as f64);
    let packet = train.packet_bytes.0 as f64;
    Some(format!(
        "{} of payload, {} of IP packets, {} of frames, {} on the wire",
        of(train.payload_bytes.0 as f64),
        of(packet),
        of(packet + CountedLayer::Frame.extra_bytes()),
        of(packet + CountedLayer::Wire.extra_bytes())
    ))
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

/// What is said of a bucket that fills for so many seconds.
fn may_be_more(fills_s: f64) -> String {
    format!(
        "it fills for {}, and the test rested for {}: it holds more if it was not full before",
        Seconds(fills_s),
        Seconds(REST_S)
    )
}

/// What happened to datagrams above the rate.
fn behaviour(out: &mut String, test: &ShapingTest, train: &Shaping) {
    let lost = train.lost as f64 * 100.0 / (train.sent as f64).max(1.0);
    let offered = train.offered_bits_per_s;
    let held = match train.held_percent {
        Known::Value(held) => format!("; the sender waited for its queue {held:.0} % of the time"),
        Known::Missing(_) => String::new(),
    };
    let kind: &str = match train.kind {
        ShapingKind::Shaper => "a shaper: datagrams above the rate wait",
        ShapingKind::Policer => {
            "a policer: it drops datagrams above the rate without letting them wait"
        }
        ShapingKind::None => &no_limit(test, train),
    };
    lines(out, "layers", layers(test));
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
        Known::Value(depth) => {
            let words = bucket(depth, train.frame_bytes);
            lines(
                out,
                "bucket",
                [words].into_iter().chain(train.fills_for_longer().map(may_be_more)),
            );
        }
        Known::Missing(why) if train.kind != ShapingKind::None => {
            line(out, "bucket", &format!("unknown: {}", why.missing));
        }
        Known::Missing(_) => {}
    }
    match &train.queue {
        Known::Value(queue) => lines(out, "queue", queue_words(queue, is_sender_held(test, train))),
        Known::Missing(why) if train.kind == ShapingKind::Shaper => {
            line(out, "queue", &format!("unknown: {}", why.missing));
        }
        Known::Missing(_) => {}
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

/// What a train without a limit shows of what holds the rate.
fn no_limit(test: &ShapingTest, train: &Shaping) -> String {
    let rate = test.configured_bits_per_s;
    let depth = train.excess_bytes(rate);
    if test.is_unheld() {
        return format!(
            "nothing: datagrams come as fast as they are sent (a bucket deeper than {depth} would not show)"
        );
    }
    if train.exceeds(rate, test.tolerance_percent) {
        return format!(
            "unknown: all came as fast as they were sent; a bucket deeper than {depth} would let them through at first"
        );
    }
    match train.lost {
        0 => "unknown: all came as fast as they were sent, and that was no more than the rate".into(),
        _ => "unknown: no more came than the rate, and too few were lost to tell a policer from other losses".into(),
    }
}

/// Whether the datagrams waited in a shaper of the host that sends, so that its socket let no more into the queue.
fn is_sender_held(test: &ShapingTest, train: &Shaping) -> bool {
    let is_own = test.shaper.value().is_some_and(|shaper| shaper.router.is_none());
    is_own && train.lost == 0
}

/// The queue's size, when it drops, and whether it is fair.
fn queue_words(queue: &ShapingQueue, is_sender_held: bool) -> [String; 2] {
    let drops: &str = match &queue.discipline {
        Known::Value(QueueDiscipline::Unfilled) if is_sender_held => {
            "it was never full: the sender's socket holds no more at once"
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{CurvePoint, EndName, LocalShaper, ShapingCause, ShapingClass};

    fn exactly(value: f64) -> Known<Estimate> {
        Known::Value(Estimate { value, low: value, high: value })
    }

    /// Frames of 1514 bytes at 100 Mbit/s.
    fn test_of_frames() -> ShapingTest {
        let train = Shaping {
            kind: ShapingKind::Shaper,
            payload_bytes: Bytes(1472),
            packet_bytes: Bytes(1500),
            frame_bytes: Bytes(1514),
            sent: 10_000,
            lost: 0,
            refused: 0,
            joined: None,
            stalled_s: None,
            outage_s: None,
            outages: 0,
            offered_bits_per_s: BitRate(4.3e8),
            held_percent: Known::Value(0.0),
            rate_waits_per_call: Known::missing("not counted"),
            rate_bits_per_s: exactly(1e8),
            bucket_bytes: Known::missing("not asked"),
            queue: Known::missing("not asked"),
            windows: Vec::new(),
            gaps: Gaps::default(),
            curve: Vec::new(),
        };
        ShapingTest {
            train: Known::Value(train),
            datagrams_bits_per_s: exactly(1e8),
            ..ShapingTest::of(BitRate(1e8))
        }
    }

    #[test]
    fn nothing_is_said_to_hold_the_rate_only_if_more_came() {
        let said = |offered: f64, lost, tcp| {
            let mut test = ShapingTest { tolerance_percent: 2.0, ..test_of_frames() };
            let Known::Value(train) = &mut test.train else { panic!("it has one") };
            (train.kind, train.offered_bits_per_s, train.lost) =
                (ShapingKind::None, BitRate(offered), lost);
            test.tcp_bits_per_s = exactly(tcp);
            no_limit(&test, test.train.value().unwrap())
        };
        let free = said(2e8, 0, 2e8);
        assert!(free.contains("(a bucket deeper than 7.57 MB would not show)"), "{free}");
        let held = said(2e8, 0, 1e8);
        assert!(
            held.starts_with("unknown") && held.contains("deeper than 7.57 MB would let"),
            "{held}"
        );
        let said = |offered, lost| said(offered, lost, 1e8);
        assert!(said(1.01e8, 0).starts_with("unknown: all came as fast"));
        assert!(said(1.04e8, 384).starts_with("unknown: no more came than the rate"));
    }

    #[test]
    fn the_rate_is_said_in_each_layer() {
        let said = "97.2 Mbit/s of payload, 99.1 Mbit/s of IP packets, 100 Mbit/s of frames, 101.6 Mbit/s on the wire";
        assert_eq!(layers(&test_of_frames()).as_deref(), Some(said));
        let own = ShapingTest {
            datagrams_bits_per_s: Known::missing("the sender was too slow"),
            ..test_of_frames()
        };
        assert_eq!(layers(&own), None);
    }

    #[test]
    fn a_rate_that_did_not_hold_all_the_time_says_when_it_did() {
        let said = |mbit: u64| {
            let mut test = ShapingTest { tolerance_percent: 2.0, ..test_of_frames() };
            let Known::Value(train) = &mut test.train else { panic!("it has one") };
            train.curve = vec![CurvePoint { at_s: 2.0, bytes: mbit * 250_000 }];
            let mut out = String::new();
            rates(&mut out, &test);
            let plain = anstream::adapter::strip_str(&out).to_string();
            plain.lines().next().unwrap().to_owned()
        };
        let rate = "datagrams   100 Mbit/s   100 Mbit/s to 100 Mbit/s";
        assert_eq!(said(99), rate);
        let filled = " while the bucket was empty: the sender let it fill";
        assert_eq!(said(90), format!("{rate}{filled}"));
        let mut test = test_of_frames();
        let Known::Value(train) = &mut test.train else { panic!("it has one") };
        (train.outages, train.curve) = (1, vec![CurvePoint { at_s: 2.0, bytes: 5_000_000 }]);
        assert_eq!(when(train, 2.0), Some(" while the path was not broken"));
        (train.outages, train.stalled_s) = (0, Some(0.5));
        assert_eq!(when(train, 2.0), Some(" while the path did not stand still"));
    }

    #[test]
    fn what_no_layer_is_is_said_in_bytes() {
        let counting = |bytes| {
            let shaper = LocalShaper {
                end: EndName::Near,
                router: None,
                device: "eth0".into(),
                kind: "tbf".into(),
                class: None,
                rate_bits_per_s: BitRate(1e8),
                burst_bytes: Known::missing("not asked"),
                limit_bytes: Known::missing("not asked"),
                counted_frame_bytes: Bytes(bytes),
            };
            counted(&ShapingTest { shaper: Known::Value(shaper), ..test_of_frames() })
        };
        assert_eq!([counting(1514), counting(1538)], [None, None]);
        let said = "1696 bytes for a frame of 1514, as it is set";
        assert_eq!(counting(1696).as_deref(), Some(said));
    }

    /// A class whose ceil was set too low is not limited by "the path".
    #[test]
    fn what_the_classes_explain_gets_no_other_verdict() {
        let class = ShapingClass {
            name: "ef".into(),
            rate_bits_per_s: BitRate(2e7),
            ceil_bits_per_s: Known::Value(BitRate(1e7)),
            most_bits_per_s: BitRate(2e7),
            htb_class: Known::Value("1:10".into()),
            alone_bits_per_s: exactly(1e7),
            beside_bits_per_s: exactly(1e7),
            datagrams_bits_per_s: exactly(1e7),
            answer: ClassAnswer::TooSlow,
        };
        let said = |id: &str| {
            let cause = ShapingCause { id: id.into(), text: "the cause".into() };
            let (classes, causes) = (vec![class.clone()], vec![cause]);
            let test = ShapingTest { classes, causes, ..ShapingTest::of(BitRate(1e8)) };
            let record = serde_json::from_str(include_str!("example/record.json")).unwrap();
            text(&Record { shaping: Some(Box::new(test)), ..record })
        };
        let explained = said("low-ceil");
        assert!(explained.ends_with("of ef: the lines above say what limits it\n"), "{explained}");
        assert!(said("elsewhere").contains("\nTCP of ef, beside the others\n"));
    }
}
