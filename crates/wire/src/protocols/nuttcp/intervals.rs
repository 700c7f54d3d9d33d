//! The lines of a receiving server while payload moves, and `DONE` after them.
//!
//! A sending server prints nothing: its client counts what arrives. The layouts are those of
//! `sigalarm()` (lines 1645 to 1800) and of the formats that begin at line 930.

use goodput_model::Sample;

use super::parameters::{Parameters, format};

/// A MB in nuttcp, bytes.
pub const NUTTCP_MB_BYTES: f64 = 1_048_576.0;

/// A sample that precedes an interval's end by no more than this ends the interval, seconds: the
/// last sample is taken at the last payload, and the others are never quite on time.
const EARLY_S: f64 = 0.02;

/// The interval lines of one measurement.
#[derive(Debug)]
pub struct Intervals {
    /// Seconds from line to line; 0 for none.
    every_s: f64,
    look: LineStyle,
    last: Mark,
    lines: u32,
}

/// The format of lines.
#[derive(Debug, Clone, Copy)]
struct LineStyle {
    /// Whether lost datagrams are known.
    loss: bool,
    parse: bool,
    running_total: bool,
    transmitted: bool,
    datagram_bytes: u64,
}

/// The counts at the end of an interval.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    at_s: f64,
    bytes: u64,
    lost: u64,
    received: u64,
}

impl Intervals {
    /// The lines that a client requested.
    pub fn new(asked: &Parameters) -> Self {
        let wants = |bit: u32| asked.format & u64::from(bit) != 0;
        let look = LineStyle {
            loss: asked.udp && asked.nstream == 1,
            parse: asked.parse(),
            running_total: wants(format::RUNNING_TOTAL),
            transmitted: wants(format::TRANSMITTED),
            datagram_bytes: asked.buflen,
        };
        let every_s = if asked.client_sends { asked.interval_s } else { 0.0 };
        Self { every_s, look, last: Mark::default(), lines: 0 }
    }

    /// The line of the interval that `sample` ends, if it ends one.
    pub fn lines(&mut self, sample: &Sample) -> String {
        let now = Mark::of(sample, self.last);
        let due = f64::from(self.lines + 1) * self.every_s;
        if self.every_s <= 0.0 || now.at_s + EARLY_S < due {
            return String::new();
        }
        self.lines = (((now.at_s + EARLY_S) / self.every_s) as u32).max(self.lines + 1);
        let before = std::mem::replace(&mut self.last, now);
        self.look.line(before, now)
    }

    /// Announces the end of the lines, if lines were requested.
    pub fn close(&self) -> &'static str {
        if self.every_s > 0.0 { "DONE\n" } else { "" }
    }
}

impl Mark {
    /// Only detailed samples have counts of datagrams; without details, the counts stay the same.
    fn of(sample: &Sample, before: Self) -> Self {
        let mut mark = Self { at_s: sample.at_s, bytes: sample.received_bytes, ..before };
        if !sample.flows.is_empty() {
            let counts = || sample.flows.iter().filter_map(|flow| flow.datagrams);
            mark.lost = counts().map(|counts| counts.lost).sum();
            mark.received = counts().map(|counts| counts.received).sum();
        }
        mark
    }
}

impl LineStyle {
    fn line(self, from: Mark, to: Mark) -> String {
        let mut line = if self.parse {
            rate(&["megabytes=", " real_sec=", " rate_Mbps="], from, to, false)
        } else {
            rate(&[" ", " MB / ", " sec = "], from, to, true) + " Mbps"
        };
        if self.loss {
            line.push_str(&self.loss(from, to));
        }
        if self.running_total {
            line.push_str(&if self.parse {
                let names = [" total_megabytes=", " total_real_sec=", " total_rate_Mbps="];
                rate(&names, Mark::default(), to, false)
            } else {
                rate(&[" Tot: ", " MB / ", " sec = "], Mark::default(), to, true) + " Mbps"
            });
        }
        if self.loss && self.transmitted {
            let bytes =
                (lost(from, to) + to.received.saturating_sub(from.received)) * self.datagram_bytes;
            let megabytes = bytes as f64 / NUTTCP_MB_BYTES;
            line.push_str(&match self.parse {
                true => format!(" tx_megabytes={megabytes:.4}"),
                false => format!(" Trans: {megabytes:10.4} MB"),
            });
        }
        line.push('\n');
        line
    }

    /// Late datagrams that reduce an earlier interval's loss don't count as loss of this interval.
    fn loss(self, from: Mark, to: Mark) -> String {
        let drop = lost(from, to);
        let all = drop + to.received.saturating_sub(from.received);
        let percent = if all > 0 { drop as f64 / all as f64 * 100.0 } else { 0.0 };
        match self.parse {
            true => format!(" drop={drop} pkt={all} data_loss={percent:.5}"),
            false => format!(" {drop:5} / {all:5} ~drop/pkt {percent:5.2} ~%loss"),
        }
    }
}

fn lost(from: Mark, to: Mark) -> u64 {
    to.lost.saturating_sub(from.lost)
}

/// Megabytes, seconds and their rate after these words; in columns on request.
fn rate(words: &[&str; 3], from: Mark, to: Mark, columns: bool) -> String {
    let bytes = to.bytes.saturating_sub(from.bytes) as f64;
    let seconds = (to.at_s - from.at_s).max(1e-6);
    let (megabytes, mbps) = (bytes / NUTTCP_MB_BYTES, bytes / seconds / 125_000.0);
    let [first, second, third] = words;
    if columns {
        let first = first.trim_start_matches(' ');
        let blank = if first.is_empty() { "" } else { " " };
        return format!("{blank}{first}{megabytes:10.4}{second}{seconds:6.2}{third}{mbps:9.4}");
    }
    format!("{first}{megabytes:.4}{second}{seconds:.2}{third}{mbps:.4}")
}

#[cfg(test)]
mod tests {
    use super::super::OURS;
    use super::*;
    use goodput_model::{DatagramCounts, FlowSample, Role};

    fn asked(change: impl FnOnce(&mut Parameters)) -> Intervals {
        let mut asked = Parameters { interval_s: 0.5, buflen: 1024, ..Parameters::standard(OURS) };
        change(&mut asked);
        Intervals::new(&asked)
    }

    fn received(at_s: f64, bytes: u64, counts: Option<DatagramCounts>) -> Sample {
        let flow = |datagrams| FlowSample {
            datagrams: Some(datagrams),
            ..FlowSample::unreported(0, Role::Receiver, bytes, "of no matter here")
        };
        Sample {
            at_s,
            sent_bytes: 0,
            received_bytes: bytes,
            flows: counts.map(flow).into_iter().collect(),
        }
    }

    #[test]
    fn a_line_stands_for_each_interval_and_done_behind_the_last() {
        let mut intervals = asked(|_| {});
        assert_eq!(intervals.lines(&received(0.1, 1000, None)), "");
        let line = intervals.lines(&received(0.5, 1 << 20, None));
        assert_eq!(line, "    1.0000 MB /   0.50 sec =   16.7772 Mbps\n");
        assert_eq!(intervals.lines(&received(0.6, 1 << 20, None)), "");
        let line = intervals.lines(&received(0.99, 1 << 20, None));
        assert_eq!(line, "    0.0000 MB /   0.49 sec =    0.0000 Mbps\n");
        assert_eq!(intervals.close(), "DONE\n");
    }

    #[test]
    fn datagrams_are_reported_with_their_loss_and_the_total_where_it_is_wanted() {
        let counts = DatagramCounts { received: 14, lost: 1, ..DatagramCounts::default() };
        let sample = received(0.5, 14 * 1024, Some(counts));
        let classic = |asked: &mut Parameters| (asked.udp, asked.format) = (true, 0x5);
        let mut intervals = asked(classic);
        assert_eq!(
            intervals.lines(&sample),
            "    0.0137 MB /   0.50 sec =    0.2294 Mbps     1 /    15 ~drop/pkt  6.67 ~%loss \
             Tot:     0.0137 MB /   0.50 sec =    0.2294 Mbps Trans:     0.0146 MB\n"
        );
        let mut intervals = asked(|a| (a.udp, a.format) = (true, 0x45));
        assert_eq!(
            intervals.lines(&sample),
            "megabytes=0.0137 real_sec=0.50 rate_Mbps=0.2294 drop=1 pkt=15 data_loss=6.66667 \
             total_megabytes=0.0137 total_real_sec=0.50 total_rate_Mbps=0.2294 tx_megabytes=0.0146\n"
        );
    }

    #[test]
    fn a_sender_says_nothing() {
        let mut sender = asked(|asked| asked.client_sends = false);
        assert_eq!(sender.lines(&received(2.0, 9, None)), "");
        assert_eq!(sender.close(), "");
    }
}
