//! Where round trips wait: on the way to the receiver, or on the way back.
//!
//! Two witnesses, neither of which needs the offset of the clocks. First, the clock exchanges pass both ways
//! beside the flows. Second, sent, arrived and acknowledged bytes are three curves over time: the delay
//! of the second and third curve at the same byte is the time of each way. A queue that
//! keeps flows apart (fq) delays the exchanges less than the flows, so a witness counts only if both of
//! its ways add up to the waiting time of the flows' round trips at the same time.

use crate::finding::time;
use goodput_model::{EndName, Exchange, FlowSample, Missing, Role, Sample, TcpInfo};

use super::{Side, View};
use crate::bounded::Bounded;
use crate::clocks::Idle;

/// How much longer each way takes under load than idle, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Halves {
    /// From the sender to the receiver.
    pub there_s: Bounded,
    /// From the receiver to the sender.
    pub back_s: Bounded,
    /// By how much longer the way back waits than the way there at the same time.
    pub more_back_s: Bounded,
}

impl View<'_> {
    /// How long the two halves of a round trip waited over the window; each is a median.
    pub fn halves(&self) -> Result<Halves, Missing> {
        let ways = Ways::of(self)?;
        let queue = self.sender.queue_s()?;
        // The hosts' own delay is in the flows' round trips, but hardly in an exchange.
        let late_s = self.late_s();
        let mut whys = Vec::new();
        for seen in [ways.exchanged(), ways.carried()] {
            match seen.and_then(|halves| halves.adds_up_to(queue, late_s)) {
                Ok(halves) => return Ok(halves),
                Err(why) => whys.push(why.to_string()),
            }
        }
        Err(Missing::because(whys.join("; ")))
    }
}

impl Halves {
    fn adds_up_to(self, queue: Bounded, late_s: f64) -> Result<Self, Missing> {
        let sum = self.there_s + self.back_s;
        // Within twice the bound, because both sides of the comparison have one.
        let near = 2.0 * sum.error() + queue.error() + late_s;
        if (sum.value - queue.value).abs() <= near {
            return Ok(self);
        }
        Err(Missing::because(format!(
            "both directions are delayed {} together, the flows' round trips {}",
            time(sum.value),
            time(queue.value)
        )))
    }
}

/// The source of the times of both ways.
struct Ways<'v, 'a> {
    idle: Idle,
    /// Clock readings of the near and the far end when their samples began.
    began_ns: [u64; 2],
    exchanges: &'a [Exchange],
    sender: &'v Side<'a>,
    receiver: &'v Side<'a>,
}

impl<'v, 'a> Ways<'v, 'a> {
    fn of(view: &'v View<'a>) -> Result<Self, Missing> {
        let clocks = &view.evidence.clocks;
        let (near, far) = (view.evidence.near.get()?, view.evidence.far.get()?);
        let later_s = clocks.far_began_later_s(near, far)?;
        let began = |clock: &Option<goodput_model::OwnClock>| clock.as_ref().map(|c| c.began_ns);
        let (Some(near_ns), Some(far_ns)) = (began(&near.clock), began(&far.clock)) else {
            return Err(Missing::because("an end does not report when its samples began"));
        };
        let last_s = |samples: &[Sample]| samples.last().map_or(0.0, |sample| sample.at_s);
        let over_s = last_s(&near.samples).max(last_s(&far.samples) + later_s);
        let loaded = (near_ns, at(near_ns, over_s));
        let idle = Idle::of(&clocks.exchanges, loaded, clocks.relation.get()?)?;
        let (sender, receiver) = (&view.sender, &view.receiver);
        let began_ns = [near_ns, far_ns];
        Ok(Self { idle, began_ns, exchanges: &clocks.exchanges, sender, receiver })
    }

    /// Judged by the exchanges that came back within the window, as the acknowledgements did that samples saw in it.
    fn exchanged(&self) -> Result<Halves, Missing> {
        let near = if self.sender.name == EndName::Near { self.sender } else { self.receiver };
        let (from_s, to_s) = near.window_s();
        let window = at(self.began_ns[0], from_s)..at(self.began_ns[0], to_s);
        let within = self.exchanges.iter().filter(|e| window.contains(&e.back_ns));
        let waited = |e: &Exchange| {
            let out = self.idle.waited_there_s(e.sent_ns, e.received_ns);
            (out, self.idle.waited_back_s(e.answered_ns, e.back_ns))
        };
        let (out, home): (Vec<f64>, Vec<f64>) = within.map(waited).unzip();
        let (there, back) =
            if self.sender.name == EndName::Near { (out, home) } else { (home, out) };
        let errors = [self.idle.error_there_s(), self.idle.error_back_s()];
        let [there_by, back_by] =
            if self.sender.name == EndName::Near { errors } else { [errors[1], errors[0]] };
        let more = there.iter().zip(&back).map(|(there, back)| back - there).collect();
        let median = |waits, by| {
            Bounded::median(waits, "an exchange of the clocks").map(|median| median.wider(by))
        };
        Ok(Halves {
            more_back_s: median(more, there_by + back_by)?,
            there_s: median(there, there_by)?,
            back_s: median(back, back_by)?,
        })
    }

    /// Judged by the flows' own bytes.
    fn carried(&self) -> Result<Halves, Missing> {
        let sent = curve(self.sender, |flow| {
            let tcp = flow.tcp.get()?;
            let again = tcp.retrans_bytes()?;
            Ok((tcp.sent_bytes()?.saturating_sub(again), again))
        })?;
        let acknowledged = curve(self.sender, |flow| Ok((flow.tcp.get()?.acked_bytes()?, 0)))?;
        // The kernel has the bytes before the reader does.
        let arrived = curve(self.receiver, |flow| {
            let kernel = flow.tcp.get().and_then(TcpInfo::received_bytes);
            Ok((kernel.unwrap_or(flow.bytes), 0))
        })?;
        let there_s = self.waited(&sent, self.sender, &arrived, self.receiver)?;
        let back_s = self.waited(&arrived, self.receiver, &acknowledged, self.sender)?;
        Ok(Halves { there_s, back_s, more_back_s: back_s - there_s })
    }

    /// How long bytes waited between two curves, seconds.
    fn waited(
        &self,
        first: &[Point],
        leaves: &Side,
        second: &[Point],
        arrives: &Side,
    ) -> Result<Bounded, Missing> {
        let began = |side: &Side| self.began_ns[side.name as usize];
        let passed = second.iter().filter_map(|point| {
            let (left_s, unsure_s) = reached(first, point.bytes)?;
            let (from, to) = (at(began(leaves), left_s), at(began(arrives), point.at_s));
            let waited = match leaves.name {
                EndName::Near => self.idle.waited_there_s(from, to),
                EndName::Far => self.idle.waited_back_s(from, to),
            };
            Some((waited, unsure_s))
        });
        let (waits, unsure): (Vec<_>, Vec<_>) = passed.unzip();
        let what = "a byte on its way";
        let own = match leaves.name {
            EndName::Near => self.idle.error_there_s(),
            EndName::Far => self.idle.error_back_s(),
        };
        let unsure = Bounded::median(unsure, what)?.value;
        Ok(Bounded::median(waits, what)?.wider(own + unsure))
    }
}

/// A time of an end's own samples on its clock.
fn at(began_ns: u64, at_s: f64) -> u64 {
    began_ns.wrapping_add_signed((at_s * 1e9) as i64)
}

/// Bytes up to a time, and how many were retransmitted.
#[derive(Debug, Clone, Copy)]
struct Point {
    at_s: f64,
    bytes: f64,
    again: f64,
}

fn curve(
    side: &Side,
    read: impl Fn(&FlowSample) -> Result<(u64, u64), Missing>,
) -> Result<Vec<Point>, Missing> {
    let detailed = side.samples()?.filter(|sample| !sample.flows.is_empty());
    detailed.map(|sample| point(sample, side.role, &read)).collect()
}

fn point(
    sample: &Sample,
    role: Role,
    read: impl Fn(&FlowSample) -> Result<(u64, u64), Missing>,
) -> Result<Point, Missing> {
    let mut all = Point { at_s: sample.at_s, bytes: 0.0, again: 0.0 };
    for flow in sample.flows.iter().filter(|flow| flow.role == role) {
        let (bytes, again) = read(flow)?;
        all.bytes += bytes as f64;
        all.again += again as f64;
    }
    Ok(all)
}

/// When a curve reaches this many bytes, and the uncertainty, seconds: how much the pace of a neighbouring
/// interval would change the result. `None` outside the curve, while it stands still, and while bytes are
/// retransmitted, because whatever follows a lost byte waits for it.
fn reached(curve: &[Point], bytes: f64) -> Option<(f64, f64)> {
    let later = curve.partition_point(|point| point.bytes < bytes);
    let place = later.checked_sub(1)?;
    let (from, to) = (curve.get(place)?, curve.get(later)?);
    if to.again > from.again {
        return None;
    }
    let chord = |a: &Point, b: &Point| (b.at_s - a.at_s) / (b.bytes - a.bytes);
    let at_s = from.at_s + chord(from, to) * (bytes - from.bytes);
    let before = place.checked_sub(1).and_then(|before| curve.get(before));
    let by_before = before.map(|before| from.at_s + chord(before, from) * (bytes - from.bytes));
    let by_after =
        curve.get(later + 1).map(|after| to.at_s - chord(to, after) * (to.bytes - bytes));
    let others = [by_before, by_after].into_iter().flatten().filter(|other| other.is_finite());
    // The curve reached it between the two samples, whatever the pace.
    let off = others.map(|other| (other.clamp(from.at_s, to.at_s) - at_s).abs());
    Some((at_s, off.fold(0.0, f64::max)))
}

#[cfg(test)]
mod tests {
    use crate::testing::Case;
    use crate::view::{Halves, View};
    use goodput_model::EndName;

    fn halves(case: Case) -> Result<Halves, goodput_model::Missing> {
        View::new(&case.evidence()).halves()
    }

    /// Round trips that wait 8 ms, and how long exchanges wait there and back.
    fn waiting(there_s: f64, back_s: f64) -> Case {
        let case = Case::path_rate().wobble(0.0).waits(there_s, back_s);
        case.tcp(|tcp, _| (tcp.rtt_us, tcp.min_rtt_us) = (Some(50_000), Some(42_000)))
    }

    #[test]
    fn either_way_is_known_to_its_bound() {
        let found = halves(waiting(0.0075, 0.0005)).unwrap();
        assert!((found.there_s.value - 0.0075).abs() <= found.there_s.error() + 1e-9, "{found:?}");
        assert!((found.back_s.value - 0.0005).abs() <= found.back_s.error() + 1e-9, "{found:?}");
        assert!(found.back_s.error() < 5e-4, "{found:?}");
    }

    #[test]
    fn a_late_start_of_either_end_changes_nothing() {
        let expected = halves(waiting(0.0005, 0.0075)).unwrap();
        for end in [EndName::Near, EndName::Far] {
            let found = halves(waiting(0.0005, 0.0075).began_late(end, 0.1)).unwrap();
            assert!((found.back_s.value - expected.back_s.value).abs() < 1e-4, "{found:?}");
        }
    }

    /// 95.64 Mbit/s is 11.955 MB a second; both curves are linear, and idle ways take 21 ms each.
    #[test]
    fn where_exchanges_pass_the_queue_the_flows_own_bytes_decide() {
        for end in [None, Some(EndName::Near), Some(EndName::Far)] {
            let case = Case::path_rate().wobble(0.0).waits(0.0, 0.0).delivered(0.021);
            let case = case.tcp(|tcp, _| {
                (tcp.rtt_us, tcp.min_rtt_us) = (Some(142_000), Some(42_000));
                // 21 ms to the receiver, 21 ms and 100 ms more back.
                tcp.acked_bytes = tcp.acked_bytes.map(|bytes| bytes.saturating_sub(1_697_610));
            });
            let case = match end {
                Some(end) => case.began_late(end, 0.1),
                None => case,
            };
            let found = halves(case).unwrap();
            assert!((found.back_s.value - 0.1).abs() < 2e-3, "{found:?}");
            assert!(found.there_s.value.abs() < 2e-3, "{found:?}");
        }
    }

    #[test]
    fn what_does_not_add_up_is_not_known() {
        let why = halves(waiting(0.05, 0.05)).unwrap_err().to_string();
        assert!(why.contains("delayed 100"), "{why}");
    }

    /// A flow of a crowd behind a queue of 2.4 s that filled at once: each fourth sample sees one acknowledgement more, and the
    /// smoothed round trip follows slowly, from 42 ms.
    #[test]
    fn smoothed_round_trips_that_lag_behind_the_queue_are_not_compared_with_it() {
        let lagging = |waits_us: f64| {
            let case = Case::path_rate().wobble(0.0).waits(0.0, 2.4);
            case.tcp(move |tcp, number| {
                let acks = number / 4;
                let waits_us = waits_us * (1.0 - 0.875f64.powi(acks as i32));
                tcp.segs_in = Some(acks);
                (tcp.rtt_us, tcp.min_rtt_us) = (Some(42_000 + waits_us as u64), Some(42_000));
            })
        };
        let found = halves(lagging(2_400_000.0)).unwrap();
        assert!((found.back_s.value - 2.4).abs() < 0.01, "{found:?}");
        assert!(halves(lagging(1_400_000.0)).is_err());
    }

    /// Each tenth sample sees an acknowledgement, four in all.
    #[test]
    fn a_few_acknowledgements_do_not_say_how_long_the_queue_is() {
        let seldom = |reports: bool| {
            let case = waiting(0.0, 0.008).tcp(move |tcp, number| {
                let acks = reports.then_some(number / 10);
                (tcp.segs_in, tcp.delivered_segments) = (acks, acks);
            });
            halves(case)
        };
        let why = seldom(true).unwrap_err().to_string();
        assert!(why.contains("a new round trip (tcp_info rtt) was seen "), "{why}");
        // A kernel that counts no acknowledgements has only the smoothed round trips.
        assert!(seldom(false).is_ok());
    }

    #[test]
    fn one_long_round_trip_is_not_the_queue() {
        let case = Case::path_rate().wobble(0.0).waits(0.0, 2.4).tcp(|tcp, number| {
            tcp.min_rtt_us = Some(42_000);
            tcp.rtt_us = Some(if number == 30 { 2_442_000 } else { 142_000 });
        });
        assert!(halves(case).is_err());
    }

    #[test]
    fn without_the_receiver_or_the_clocks_there_are_no_halves() {
        assert!(halves(Case::path_rate().without_far()).is_err());
        let mut evidence = waiting(0.0, 0.008).evidence();
        evidence.clocks = goodput_model::Clocks::not_compared();
        assert!(View::new(&evidence).halves().is_err());
    }
}
