//! Lines over time, made from the cumulative counts of a record's samples.

use goodput_model::{End, EndName, FlowSample, Known, Record, Role, Sample, TcpInfo, median};

use crate::clip::Point;

/// What one end saw, if it reported.
pub fn end(record: &Record, name: EndName) -> Option<&End> {
    let end = match name {
        EndName::Near => &record.ends.near,
        EndName::Far => &record.ends.far,
    };
    end.value()
}

/// A count that grows, as its rate per second from one sample to the next. A rate stands at the end of the time that
/// it is of. Samples that lack the count are passed over. A time that steps back has no rate.
pub fn growth<'a>(
    samples: impl Iterator<Item = &'a Sample>,
    count: impl Fn(&Sample) -> Option<f64>,
) -> Vec<Point> {
    growth_of(samples.filter_map(|sample| Some((sample.at_s, count(sample)?))).collect())
}

/// The same of counts with their times.
pub fn growth_of(counted: Vec<Point>) -> Vec<Point> {
    let kept = joined(counted, |point| point.0);
    let rate = |pair: &[Point]| (pair[1].0, (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0));
    let forward = kept.windows(2).filter(|pair| pair[1].0 > pair[0].0);
    forward.map(rate).filter(|(_, rate)| rate.is_finite()).collect()
}

/// Cumulative counts without those that soon had another: a count that follows one much sooner than usual takes its place.
/// The last of a run does, and a rate over so short a time says nothing.
pub fn joined<T>(counted: Vec<T>, at_s: impl Fn(&T) -> f64) -> Vec<T> {
    let usual = median(counted.windows(2).map(|pair| at_s(&pair[1]) - at_s(&pair[0])));
    let usual = usual.unwrap_or(0.0);
    let mut kept: Vec<T> = Vec::new();
    for now in counted {
        let is_soon = match kept[..] {
            // Many that come soon, as at the beginning of a long run, are not joined to more than one of the usual length.
            [.., ref one, ref before] => {
                let since = |other: &T| at_s(&now) - at_s(other);
                (0.0..=usual / 2.0).contains(&since(before)) && since(one) <= usual * 1.5
            }
            _ => false,
        };
        if is_soon {
            // Joined with the time before it, so that its bytes are not left out.
            kept.pop();
        }
        kept.push(now);
    }
    kept
}

/// What one flow's kernel reported over time, as `read` takes it from each sample that has it.
pub fn gauge(end: &End, flow: u16, read: impl Fn(&TcpInfo) -> Option<f64>) -> Vec<Point> {
    let seen = end.samples.iter().filter_map(|sample| Some((sample.at_s, tcp(sample, flow)?)));
    seen.filter_map(|(at_s, tcp)| Some((at_s, read(tcp)?))).collect()
}

/// The sum of what these flows' kernel reported over time; only from samples in which each of them has it.
pub fn gauge_sum(end: &End, flows: &[u16], read: impl Fn(&TcpInfo) -> Option<f64>) -> Vec<Point> {
    let sum = |sample: &Sample| {
        let each: Option<Vec<f64>> = flows.iter().map(|flow| read(tcp(sample, *flow)?)).collect();
        Some((sample.at_s, each.filter(|each| !each.is_empty())?.into_iter().sum()))
    };
    end.samples.iter().filter_map(sum).collect()
}

fn tcp(sample: &Sample, flow: u16) -> Option<&TcpInfo> {
    flow_of(sample, flow)?.tcp.value()
}

/// One flow in a sample.
pub fn flow_of(sample: &Sample, flow: u16) -> Option<&FlowSample> {
    sample.flows.iter().find(|detail| detail.flow == flow)
}

/// The flows that an end sends or receives, by their numbers.
pub fn flows(end: &End, role: Role) -> Vec<u16> {
    let Some(detailed) = end.samples.iter().rev().find(|sample| !sample.flows.is_empty()) else {
        return Vec::new();
    };
    detailed.flows.iter().filter(|flow| flow.role == role).map(|flow| flow.flow).collect()
}

/// The sum of a count over all flows of a role; `None` if one of them lacks it.
pub fn sum(sample: &Sample, role: Role, count: impl Fn(&FlowSample) -> Known<u64>) -> Option<f64> {
    let flows: Vec<_> = sample.flows.iter().filter(|flow| flow.role == role).collect();
    let counts: Option<Vec<u64>> = flows.iter().map(|flow| count(flow).value().copied()).collect();
    let counts = counts.filter(|counts| !counts.is_empty())?;
    Some(counts.into_iter().map(|count| count as f64).sum())
}

/// The highest value of some lines; 0 if there is none above zero.
pub fn highest<'a>(lines: impl IntoIterator<Item = &'a [Point]>) -> f64 {
    lines.into_iter().flatten().map(|(_, y)| *y).fold(0.0, f64::max)
}

/// The same as the length of an axis: 1 if there is none above zero.
pub fn axis_height<'a>(lines: impl IntoIterator<Item = &'a [Point]>) -> f64 {
    let highest = highest(lines);
    if highest > 0.0 { highest } else { 1.0 }
}

/// The last time of some lines, seconds; 0 if there is none.
pub fn last<'a>(lines: impl IntoIterator<Item = &'a [Point]>) -> f64 {
    lines.into_iter().flatten().map(|(x, _)| *x).fold(0.0, f64::max)
}

/// The same as the length of an axis: 1 if there is none.
pub fn axis_length<'a>(lines: impl IntoIterator<Item = &'a [Point]>) -> f64 {
    let last = last(lines);
    if last > 0.0 { last } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: f64, received_bytes: u64) -> Sample {
        Sample { at_s, sent_bytes: 0, received_bytes, flows: Vec::new() }
    }

    #[test]
    fn an_axis_has_a_length_whatever_the_lines_are_and_a_maximum_is_that_of_the_lines() {
        let (nothing, half) = ([(0.0, 0.0), (1.0, 0.0)], [(0.0, 0.5)]);
        assert_eq!((highest([&nothing[..]]), axis_height([&nothing[..]])), (0.0, 1.0));
        assert_eq!((highest([&half[..]]), axis_height([&half[..]])), (0.5, 0.5));
        assert_eq!((highest([]), axis_height([])), (0.0, 1.0));
        assert_eq!((last([&nothing[..]]), axis_length([&nothing[..]])), (1.0, 1.0));
        assert_eq!((last([&half[..]]), axis_length([&half[..]])), (0.0, 1.0));
    }

    #[test]
    fn counts_become_rates_and_nothing_is_invented() {
        let samples = [(0.0, 0), (1.0, 100), (1.0, 100), (2.0, 300), (3.0, 400), (3.1, 900)];
        let samples = samples.map(|(at_s, bytes)| sample(at_s, bytes));
        let rates = growth(samples.iter(), |sample| Some(sample.received_bytes as f64));
        assert_eq!(rates, [(1.0, 100.0), (2.0, 200.0), (3.1, 600.0 / 1.1)]);
        assert!(growth(samples.iter(), |_| None).is_empty());
    }

    /// The beginning of a long run is kept whole, the rest is not.
    #[test]
    fn a_dense_beginning_keeps_its_course() {
        let dense = (0..=50_u32).map(|tenth| f64::from(tenth) / 10.0);
        let rest = (6..=200_u32).map(f64::from);
        let samples: Vec<Sample> =
            dense.chain(rest).map(|at| sample(at, (at * 100.0) as u64)).collect();
        let rates = growth(samples.iter(), |sample| Some(sample.received_bytes as f64));
        assert!(rates.iter().filter(|(at, _)| *at <= 5.0).count() >= 3, "{rates:?}");
        assert!(rates.iter().all(|(_, rate)| (rate - 100.0).abs() < 2.0), "{rates:?}");
    }

    #[test]
    fn a_time_that_steps_back_has_no_rate_and_those_behind_it_have_theirs() {
        let samples = [(0.0, 0), (1.0, 100), (2.0, 200), (0.5, 300), (1.5, 500), (2.5, 600)];
        let samples = samples.map(|(at_s, bytes)| sample(at_s, bytes));
        let rates = growth(samples.iter(), |sample| Some(sample.received_bytes as f64));
        assert_eq!(rates, [(1.0, 100.0), (2.0, 100.0), (1.5, 200.0), (2.5, 100.0)]);
    }
}
