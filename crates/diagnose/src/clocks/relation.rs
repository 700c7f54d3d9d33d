//! The far end's clock relative to the near end's, from exchanges: a straight line and a hard bound.
//!
//! The far clock is ahead by θ(t) at time t of the near one. A question left at `sent`, and had arrived
//! by `received`: θ(sent) ≤ received − sent. Its answer left no earlier than `answered`, and had arrived by
//! `back`: θ(back) ≥ answered − back. No delay, queue or asymmetry breaks either bound; the fastest exchanges
//! bind most. θ is assumed to be a straight line of at most 500 ppm, the most that the kernel corrects a clock
//! (`MAXFREQ`, include/linux/timex.h). All lines that satisfy every bound are a convex polygon in offset and
//! drift; its corners give the range of θ at any time.
//!
//! Source: Moon, Skelly, Towsley, "Estimation and removal of clock skew from network delay
//! measurements", INFOCOM 1999; Zhang, Liu, Xia, "Clock synchronization algorithms for network
//! measurements", INFOCOM 2002. The bounds are those of NTP (RFC 5905 section 8).

use goodput_model::{ClockRelation, Exchange, Missing};

/// The largest drift between two clocks, as a share of the time.
pub const MAX_DRIFT_SHARE: f64 = 500e-6;
/// Stamps are whole nanoseconds.
const ROUNDING_NS: f64 = 1.0;

/// A line, nanoseconds: the far clock's lead in the middle of the time, and how much the lead grows from there to
/// the end.
type Line = (f64, f64);

/// The relation of two clocks over the time of these exchanges. `one_clock`: both ends report the same
/// kernel; then the offset is zero, unless an exchange shows that it is not.
pub fn relation(exchanges: &[Exchange], one_clock: bool) -> Result<ClockRelation, Missing> {
    let first = exchanges.iter().map(|e| e.sent_ns).min();
    let last = exchanges.iter().map(|e| e.back_ns).max();
    let (Some(from_ns), Some(to_ns)) = (first, last) else {
        return Err(Missing::because("the ends' clocks were not compared"));
    };
    let bounds = Bounds::of(exchanges, from_ns, to_ns);
    let one_clock = one_clock && bounds.allow(-(bounds.guess_ns as f64));
    if one_clock {
        return Ok(ClockRelation::one_clock(from_ns, to_ns));
    }
    let polygon = bounds.polygon();
    let ends = [-1.0, 1.0].map(|at| {
        let values = polygon.iter().map(|line| line.0 + at * line.1);
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), v| {
            (least.min(v), most.max(v))
        })
    });
    let [(least, most), (least_then, most_then)] = ends;
    if !(least <= most && least_then <= most_then) {
        return Err(Missing::because(
            "the clock exchanges don't fit a straight line: a clock was set, or a host slept",
        ));
    }
    let (ahead, ahead_then) = (f64::midpoint(least, most), f64::midpoint(least_then, most_then));
    let span_ns = to_ns.wrapping_sub(from_ns).max(1) as f64;
    let rounded = ahead.round();
    Ok(ClockRelation {
        from_ns,
        to_ns,
        ahead_ns: bounds.guess_ns.wrapping_add(rounded as i64),
        drift_ppm: (ahead_then - ahead) / span_ns * 1e6,
        // The distance of a straight line from another is greatest at an end.
        error_ns: ((most - least) / 2.0).max((most_then - least_then) / 2.0) + ROUNDING_NS,
    })
}

/// The offsets that exchanges allow. Times run from −1 to 1, and offsets are relative to a guess, so that
/// nothing is lost to rounding.
struct Bounds {
    guess_ns: i64,
    half_span_ns: f64,
    /// At most this much at this time.
    most: Vec<(f64, f64)>,
    /// At least this much at this time.
    least: Vec<(f64, f64)>,
}

impl Bounds {
    fn of(exchanges: &[Exchange], from_ns: u64, to_ns: u64) -> Self {
        let apart = |far: u64, near: u64| far.wrapping_sub(near) as i64;
        let guess_ns = exchanges.first().map_or(0, |e| apart(e.received_ns, e.sent_ns));
        let half_span_ns = (to_ns.wrapping_sub(from_ns).max(1)) as f64 / 2.0;
        let time = |at: u64| at.wrapping_sub(from_ns) as f64 / half_span_ns - 1.0;
        let ahead = |far, near| apart(far, near).wrapping_sub(guess_ns) as f64;
        let most = |e: &Exchange| (time(e.sent_ns), ahead(e.received_ns, e.sent_ns) + ROUNDING_NS);
        let least = |e: &Exchange| (time(e.back_ns), ahead(e.answered_ns, e.back_ns) - ROUNDING_NS);
        Self {
            guess_ns,
            half_span_ns,
            most: exchanges.iter().map(most).collect(),
            least: exchanges.iter().map(least).collect(),
        }
    }

    /// Whether an offset without drift satisfies all bounds.
    fn allow(&self, ahead: f64) -> bool {
        self.most.iter().all(|(_, most)| ahead <= *most)
            && self.least.iter().all(|(_, least)| ahead >= *least)
    }

    /// The corners of the lines that satisfy all bounds; none if no line does.
    fn polygon(&self) -> Vec<Line> {
        let drift = MAX_DRIFT_SHARE * self.half_span_ns;
        let least = self.least.iter().map(|b| b.1).fold(f64::INFINITY, f64::min) - 2.0 * drift;
        let most = self.most.iter().map(|b| b.1).fold(f64::NEG_INFINITY, f64::max) + 2.0 * drift;
        let mut lines = vec![(least, -drift), (most, -drift), (most, drift), (least, drift)];
        for (at, bound) in &self.most {
            lines = cut(&lines, |line| bound - (line.0 + at * line.1));
        }
        for (at, bound) in &self.least {
            lines = cut(&lines, |line| line.0 + at * line.1 - bound);
        }
        lines
    }
}

/// The part of a convex polygon in which `room`, a linear function, is not negative (Sutherland, Hodgman,
/// "Reentrant polygon clipping", CACM 17(1), 1974).
fn cut(polygon: &[Line], room: impl Fn(&Line) -> f64) -> Vec<Line> {
    let mut left = Vec::with_capacity(polygon.len() + 1);
    for (place, line) in polygon.iter().enumerate() {
        let next = &polygon[(place + 1) % polygon.len()];
        let (here, there) = (room(line), room(next));
        if here >= 0.0 {
            left.push(*line);
        }
        if (here >= 0.0) != (there >= 0.0) {
            let part = here / (here - there);
            left.push((line.0 + part * (next.0 - line.0), line.1 + part * (next.1 - line.1)));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A far clock ahead by `ahead` at near time zero, which gains `ppm`.
    fn far(near_ns: f64, ahead: i64, ppm: f64) -> u64 {
        let drifted = (near_ns * ppm * 1e-6).round() as i64;
        ((near_ns as i64) + drifted + ahead) as u64
    }

    /// Exchanges every 50 ms with these delays there and back, nanoseconds, and answers without delay.
    fn exchanges(ahead: i64, ppm: f64, delays: &[(u32, u32)]) -> Vec<Exchange> {
        let each = delays.iter().enumerate().map(|(number, (there, back))| {
            let sent = 1e9 + number as f64 * 50e6;
            let arrives = sent + f64::from(*there);
            let far_ns = far(arrives, ahead, ppm);
            let back_ns = (arrives + f64::from(*back)) as u64;
            Exchange { sent_ns: sent as u64, received_ns: far_ns, answered_ns: far_ns, back_ns }
        });
        each.collect()
    }

    #[test]
    fn the_fastest_exchanges_bound_the_offset() {
        let slow = (400_000, 50_000_000);
        let delays = [[(10_000, 10_000); 2], [slow; 2], [(10_000, 10_000); 2]].concat();
        let found = relation(&exchanges(7_000_000_000, 20.0, &delays), false).unwrap();
        assert!(found.error_ns < 12_000.0, "{found:?}");
        let expected = far(1e9, 7_000_000_000, 20.0) as i64 - 1_000_000_000;
        assert!((found.ahead_ns - expected).abs() as f64 <= found.error_ns, "{found:?}");
    }

    #[test]
    fn one_clock_is_believed_unless_an_exchange_disproves_it() {
        let delays = [(30_000, 40_000); 8];
        let same = relation(&exchanges(0, 0.0, &delays), true).unwrap();
        assert_eq!((same.ahead_ns, same.drift_ppm, same.error_ns), (0, 0.0, 0.0));
        let cloned = relation(&exchanges(90_000, 0.0, &delays), true).unwrap();
        assert!((cloned.ahead_ns as f64 - 90_000.0).abs() <= cloned.error_ns, "{cloned:?}");
    }

    #[test]
    fn a_clock_that_was_set_has_no_relation() {
        let mut all = exchanges(0, 0.0, &[(10_000, 10_000); 20]);
        for exchange in &mut all[10..] {
            exchange.received_ns += 2_000_000_000;
            exchange.answered_ns += 2_000_000_000;
        }
        assert!(relation(&all, true).is_err());
        assert!(relation(&[], true).is_err());
    }

    proptest! {
        #[test]
        fn the_true_offset_lies_within_the_bound(
            ahead in -2_000_000_000_000i64..2_000_000_000_000,
            ppm in -500.0f64..500.0,
            base in (1u32..40_000_000, 1u32..40_000_000),
            queues in proptest::collection::vec((0u32..200_000_000, 0u32..200_000_000), 1..120),
        ) {
            // Keeps far times positive.
            let ahead = ahead + 3_000_000_000_000;
            let delays: Vec<_> =
                queues.iter().map(|(there, back)| (base.0 + there, base.1 + back)).collect();
            let all = exchanges(ahead, ppm, &delays);
            let found = relation(&all, false);
            prop_assert!(found.is_ok(), "{found:?}");
            let found = found.unwrap();
            for at in [found.from_ns, u64::midpoint(found.from_ns, found.to_ns), found.to_ns] {
                let truth = far(at as f64, ahead, ppm) as f64 - at as f64;
                let said = found.ahead_ns as f64
                    + (at - found.from_ns) as f64 * found.drift_ppm * 1e-6;
                prop_assert!((truth - said).abs() <= found.error_ns + 3.0, "{truth} {said} {found:?}");
            }
        }

        #[test]
        fn nothing_makes_it_panic(all in proptest::collection::vec(any::<[u64; 4]>(), 0..20), one: bool) {
            let all: Vec<_> = all.into_iter().map(Exchange::from).collect();
            if let Ok(found) = relation(&all, one) {
                prop_assert!(found.error_ns.is_finite() && found.drift_ppm.is_finite());
            }
        }
    }
}
