//! The goodput of each flow over time; of many flows, of the slowest and of the fastest.

use std::collections::BTreeMap;

use goodput_model::{EndName, Record, Role, Sample};

use crate::clip::Point;
use crate::palette;
use crate::plot::{Layer, Shape};
use crate::series::{end, flow_of, flows, growth};
use crate::thin::thinned;
use crate::words;

/// Flows with a line and a column of their own; of more, lines would hide each other.
const MAX_FLOWS: usize = 8;

/// The flows of a direction, if there are several.
pub struct EachFlow<'a> {
    flows: Vec<u16>,
    detailed: Vec<&'a Sample>,
}

impl<'a> EachFlow<'a> {
    /// What the receiver of `sender`'s payload counted; `None` of a single flow, whose goodput is that of all.
    pub fn of(record: &'a Record, sender: EndName) -> Option<Self> {
        let receiver = end(record, sender.other())?;
        let flows = flows(receiver, Role::Receiver);
        let detailed = receiver.samples.iter().filter(|sample| !sample.flows.is_empty()).collect();
        (flows.len() > 1).then_some(Self { flows, detailed })
    }

    fn are_few(&self) -> bool {
        self.flows.len() <= MAX_FLOWS
    }

    /// Lines of one colour: which flow is which stands in the table.
    pub fn layers(&self) -> Vec<Layer> {
        let lines = self.flows.iter().map(|flow| self.line(*flow));
        let (name, lines): (String, Vec<Vec<Point>>) = match self.are_few() {
            true => (format!("each of {} flows", self.flows.len()), lines.collect()),
            false => {
                let name = format!("slowest and fastest of {} flows", self.flows.len());
                (name, extremes(lines).into())
            }
        };
        let layer = |(number, line): (usize, Vec<Point>)| Layer {
            name: Some(name.clone()).filter(|_| number == 0),
            ..Layer::unnamed(palette::GREY, Shape::Thin(line))
        };
        lines.into_iter().enumerate().map(layer).collect()
    }

    fn line(&self, flow: u16) -> Vec<Point> {
        let counted = thinned(&self.detailed).copied();
        growth(counted, |sample| Some(flow_of(sample, flow)?.bytes as f64 * 8.0))
    }

    /// Headings of the columns of [`cells`](Self::cells).
    pub fn columns(&self) -> Vec<String> {
        match self.are_few() {
            true => self.flows.iter().map(|flow| format!("flow {flow}")).collect(),
            false => ["slowest flow", "fastest flow"].map(Into::into).into(),
        }
    }

    /// The goodput from one time to another: of each flow, or of the slowest and of the fastest.
    pub fn cells(&self, from_s: f64, to_s: f64) -> Vec<String> {
        let rates = self.rates(from_s, to_s);
        let written = |rate: Option<f64>| rate.map_or("unknown".into(), words::rate);
        if self.are_few() {
            return rates.into_iter().map(written).collect();
        }
        let known = || rates.iter().copied().flatten();
        [known().reduce(f64::min), known().reduce(f64::max)].map(written).into()
    }

    /// Bits per second of each flow between the last counts before and the first ones after the two times.
    fn rates(&self, from_s: f64, to_s: f64) -> Vec<Option<f64>> {
        let last = self.detailed.len().saturating_sub(1);
        let before =
            self.detailed.partition_point(|sample| sample.at_s <= from_s).saturating_sub(1);
        let after = self.detailed.partition_point(|sample| sample.at_s < to_s).min(last);
        let (Some(one), Some(other)) = (self.detailed.get(before), self.detailed.get(after)) else {
            return vec![None; self.flows.len()];
        };
        let seconds = other.at_s - one.at_s;
        let rate = |flow: &u16| {
            let grown = flow_of(other, *flow)?.bytes.checked_sub(flow_of(one, *flow)?.bytes)?;
            Some(grown as f64 * 8.0 / seconds).filter(|_| seconds > 0.0)
        };
        self.flows.iter().map(rate).collect()
    }
}

/// The lowest and the highest value at each time.
fn extremes(lines: impl Iterator<Item = Vec<Point>>) -> [Vec<Point>; 2] {
    let mut at: BTreeMap<u64, (f64, f64, f64)> = BTreeMap::new();
    for (time, rate) in lines.flatten() {
        // Times are not below zero, so their bits are in the order of their values.
        let (_, low, high) = at.entry(time.to_bits()).or_insert((time, rate, rate));
        (*low, *high) = (low.min(rate), high.max(rate));
    }
    [
        at.values().map(|(time, low, _)| (*time, *low)).collect(),
        at.values().map(|(time, _, high)| (*time, *high)).collect(),
    ]
}

#[cfg(test)]
mod tests {
    use goodput_model::FlowSample;

    use super::*;

    fn sample(second: u16, flows: u16) -> Sample {
        let flow = |flow: u16| {
            let bytes = 1000 * u64::from(second) * u64::from(flow + 1);
            FlowSample::unreported(flow, Role::Receiver, bytes, "not looked at")
        };
        let flows = (0..flows).map(flow).collect();
        Sample { at_s: f64::from(second), sent_bytes: 0, received_bytes: 0, flows }
    }

    #[test]
    fn few_flows_have_a_line_and_a_column_each_and_many_have_their_extremes() {
        for (count, lines, cells) in
            [(2, 2, vec!["8 kbit/s", "16 kbit/s"]), (64, 2, vec!["8 kbit/s", "512 kbit/s"])]
        {
            let samples: Vec<Sample> = (0..5).map(|second| sample(second, count)).collect();
            let flows =
                EachFlow { flows: (0..count).collect(), detailed: samples.iter().collect() };
            let layers = flows.layers();
            assert_eq!(
                (layers.len(), layers.iter().filter(|l| l.name.is_some()).count()),
                (lines, 1)
            );
            assert_eq!(flows.cells(1.0, 2.0), cells);
            assert_eq!(flows.cells(0.5, 9.0), cells, "by the counts around it");
            assert_eq!(flows.columns().len(), cells.len());
            assert_eq!(flows.cells(7.0, 8.0)[0], "unknown", "nothing was counted then");
        }
    }
}
