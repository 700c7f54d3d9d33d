//! What a far end that is not goodput reported about itself, as the numbers of a measurement.

use std::sync::Arc;

use goodput_model::{End, FlowTotals, Known, Missing, Role, Totals};

/// The flows of a far end's report in one role.
pub struct FarCounts<'a>(Result<Vec<&'a FlowTotals>, Missing>);

impl<'a> FarCounts<'a> {
    /// What the far end reported in `totals` about the flows on which it has this role; if nothing, `far` has the reason.
    pub fn of(totals: Option<&'a Totals>, far: &Known<Arc<End>>, role: Role) -> Self {
        let flows = totals.into_iter().flat_map(|totals| &totals.flows);
        let flows: Vec<_> = flows.filter(|flow| flow.role == role).collect();
        match far {
            _ if !flows.is_empty() => Self(Ok(flows)),
            Known::Missing(why) => Self(Err(why.clone())),
            Known::Value(_) => {
                Self(Err(Missing::because("the far end reported its flows instead")))
            }
        }
    }

    /// The sum of a count over all flows; missing if a flow does not have it.
    pub fn sum(&self, count: impl Fn(&FlowTotals) -> &Known<u64>) -> Known<u64> {
        let beyond = || Missing::because("its report adds up to more than a counter holds");
        let counts = self.each(|flow| count(flow).get().copied());
        let sum = |counts: Vec<u64>| counts.into_iter().try_fold(0, u64::checked_add);
        counts.and_then(|counts| sum(counts).ok_or_else(beyond)).into()
    }

    /// The worst jitter of its flows.
    pub fn jitter_us(&self) -> Known<f64> {
        self.largest(|flow| &flow.jitter_us)
    }

    /// The longest time that one of its flows counted.
    pub fn duration_s(&self) -> Known<f64> {
        self.largest(|flow| &flow.duration_s)
    }

    /// Datagrams that did not arrive, percent of those sent. `sent_bytes` are what this end sent: if the far end
    /// counted no datagrams, the bytes that it did not get show the same.
    pub fn lost_percent(&self, sent_bytes: &Known<u64>) -> Known<f64> {
        let counted = self.lost_datagrams().or_else(|why| {
            let sent = *sent_bytes.get()?;
            let received = *self.sum(|flow| &flow.bytes).get()?;
            Ok((sent.checked_sub(received).ok_or(why)?, sent))
        });
        let percent = counted.and_then(|(lost, all)| match all {
            0 => Err(Missing::because("nothing was sent")),
            _ => Ok(lost as f64 / all as f64 * 100.0),
        });
        percent.into()
    }

    fn lost_datagrams(&self) -> Result<(u64, u64), Missing> {
        let lost = *self.sum(|flow| &flow.lost).get()?;
        let all = *self.sum(|flow| &flow.datagrams).get()?;
        if lost > all {
            return Err(Missing::because("it reported more lost datagrams than were sent"));
        }
        Ok((lost, all))
    }

    fn largest(&self, read: impl Fn(&FlowTotals) -> &Known<f64>) -> Known<f64> {
        let all = self.each(|flow| read(flow).get().copied());
        all.map(|all| all.into_iter().fold(0.0, f64::max)).into()
    }

    fn each<T>(&self, read: impl Fn(&FlowTotals) -> Result<T, Missing>) -> Result<Vec<T>, Missing> {
        self.0.as_ref().map_err(Clone::clone)?.iter().map(|flow| read(flow)).collect()
    }
}

/// What was seen here, or else what the far end reported.
pub fn seen_or_reported<T>(seen: Known<T>, reported: Known<T>) -> Known<T> {
    match (seen, reported) {
        (Known::Missing(_), reported @ Known::Value(_)) => reported,
        (seen, _) => seen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{EndName, Host, Plan, Sample, Transport};

    use crate::result::measurement::Measurement;

    fn flow(bytes: u64, duration_s: f64) -> FlowTotals {
        FlowTotals {
            bytes: Known::Value(bytes),
            duration_s: Known::Value(duration_s),
            ..FlowTotals::unreported(0, Role::Receiver, "not reported")
        }
    }

    fn sent_over_udp(flows: Vec<FlowTotals>) -> Measurement {
        let sample =
            |at_s, sent_bytes| Sample { at_s, sent_bytes, received_bytes: 0, flows: Vec::new() };
        let samples = vec![sample(0.0, 0), sample(2.0, 4000)];
        let plan = Plan { transport: Transport::Udp, ..Plan::standard() };
        let near = End { samples, ..End::unobserved(Host::foreign("near")) };
        let far_totals = Some(Totals {
            program: "iperf 2.1.8".into(),
            cpu_percent: Known::missing("not reported"),
            cpu_user_percent: None,
            cpu_system_percent: None,
            congestion: None,
            cookie: None,
            flows,
            text: None,
        });
        let far = Known::missing("it does not observe");
        Measurement { far_totals, ..Measurement::made_up(plan, near, far) }
    }

    #[test]
    fn the_goodput_of_what_was_sent_is_what_the_far_end_reported() {
        let measurement = sent_over_udp(vec![flow(1000, 1.0), flow(2000, 2.0)]);
        let measured = measurement.measured(EndName::Near).unwrap();
        assert!((measured.goodput.0 - 12_000.0).abs() < 1e-6, "{measured:?}");
        assert_eq!((measured.from_s, measured.to_s), (0.0, 2.0));
        let why = measured.precision_percent.get().unwrap_err().to_string();
        assert!(why.starts_with("the far end reported one number"), "{why}");
    }

    #[test]
    fn without_its_duration_the_time_of_sending_counts() {
        let untimed = FlowTotals { duration_s: Known::missing("not reported"), ..flow(1000, 0.0) };
        let mut measurement = sent_over_udp(vec![untimed]);
        let near = Arc::make_mut(&mut measurement.near);
        let sample = |at_s, sent_bytes| Sample { at_s, sent_bytes, ..near.samples[0].clone() };
        near.samples =
            vec![sample(0.0, 0), sample(1.0, 2000), sample(2.0, 4000), sample(3.0, 4000)];
        measurement.steady_samples = Some((2, 0));
        let measured = measurement.reported().unwrap();
        // 1000 bytes in the 2 s in which this end sent, whatever part of them is steady.
        assert!((measured.goodput.0 - 4000.0).abs() < 1e-6, "{measured:?}");
        let why = measured.precision_percent.get().unwrap_err().to_string();
        assert!(why.contains("no duration"), "{why}");
    }

    #[test]
    fn one_silent_flow_leaves_the_goodput_unknown() {
        let silent = FlowTotals::unreported(1, Role::Receiver, "it reported nothing");
        assert!(sent_over_udp(vec![flow(1000, 1.0), silent]).reported().is_none());
        assert!(sent_over_udp(Vec::new()).reported().is_none());
    }

    #[test]
    fn loss_is_counted_by_datagrams_or_else_by_bytes() {
        let counted =
            FlowTotals { datagrams: Known::Value(200), lost: Known::Value(10), ..flow(3000, 1.0) };
        let percent = |flow| {
            let measurement = sent_over_udp(vec![flow]);
            measurement.far_counts(Role::Receiver).lost_percent(&Known::Value(4000))
        };
        assert_eq!(percent(counted.clone()), Known::Value(5.0));
        assert_eq!(percent(flow(3000, 1.0)), Known::Value(25.0));
        assert!(percent(flow(4001, 1.0)).value().is_none());
        // More losses than datagrams are no valid count; the bytes are.
        assert_eq!(percent(FlowTotals { lost: Known::Value(201), ..counted }), Known::Value(25.0));
    }
}
