//! Where the round trip takes its time: on the way to the receiver, or on the way back.
//!
//! What was sent, what arrived and what was acknowledged are three curves over time. How much later
//! the second and the third reach the same byte is the time of either way.

use goodput_model::{FlowSample, Missing, Role, Sample};

use super::{Side, View, median};

/// Points of a curve: seconds, and bytes so far.
type Curve = Vec<(f64, f64)>;

/// How long either way takes under load, seconds. The two ends' clocks both start with the traffic, and
/// so differ by about one way; what one of these has too much, the other has too little.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Halves {
    /// From the sender to the receiver.
    pub there_s: f64,
    /// From the receiver to the sender, the wait of a delayed acknowledgement included.
    pub back_s: f64,
}

impl View<'_> {
    /// The two halves of a round trip over the window, each the median of the samples. Linear between
    /// two samples, so that it is good to a few milliseconds where the rate swings.
    pub fn halves(&self) -> Result<Halves, Missing> {
        let sent = curve(&self.sender, |flow| {
            let tcp = flow.tcp.get()?;
            Ok(tcp.sent_bytes()?.saturating_sub(tcp.retrans_bytes()?))
        })?;
        let acknowledged = curve(&self.sender, |flow| flow.tcp.get()?.acked_bytes())?;
        let arrived = curve(&self.receiver, |flow| Ok(flow.bytes))?;
        Ok(Halves {
            there_s: median(lags(&sent, &arrived), "what was sent and what arrived")?,
            back_s: median(lags(&arrived, &acknowledged), "what arrived and was acknowledged")?,
        })
    }
}

fn curve(
    side: &Side,
    read: impl Fn(&FlowSample) -> Result<u64, Missing>,
) -> Result<Curve, Missing> {
    let detailed = side.samples()?.filter(|sample| !sample.flows.is_empty());
    detailed.map(|sample| Ok((sample.at_s, total(sample, side.role, &read)?))).collect()
}

fn total(
    sample: &Sample,
    role: Role,
    read: impl Fn(&FlowSample) -> Result<u64, Missing>,
) -> Result<f64, Missing> {
    let mine = sample.flows.iter().filter(|flow| flow.role == role);
    mine.map(|flow| Ok(read(flow)? as f64)).sum()
}

/// How much later than `first` the second curve reaches as many bytes, at each of its points.
fn lags(first: &Curve, second: &Curve) -> Vec<f64> {
    second.iter().filter_map(|(at_s, bytes)| Some(at_s - reached(first, *bytes)?)).collect()
}

/// When a curve reaches so many bytes; `None` outside it and where it stands still.
fn reached(curve: &Curve, bytes: f64) -> Option<f64> {
    let later = curve.partition_point(|point| point.1 < bytes);
    let (from, to) = (curve.get(later.checked_sub(1)?)?, curve.get(later)?);
    Some(from.0 + (to.0 - from.0) * (bytes - from.1) / (to.1 - from.1))
}

#[cfg(test)]
mod tests {
    use crate::testing::Case;
    use crate::view::View;

    #[test]
    fn what_is_acknowledged_late_waits_on_the_way_back() {
        // 95.64 Mbit/s is 1.2 MB in 100 ms; both curves are linear.
        let case = Case::path_rate().wobble(0.0).tcp(|tcp, _| {
            tcp.acked_bytes = tcp.acked_bytes.map(|bytes| bytes.saturating_sub(1_195_500));
        });
        let evidence = case.evidence();
        let halves = View::new(&evidence).halves().unwrap();
        assert!((halves.back_s - 0.1).abs() < 1e-3 && halves.there_s.abs() < 1e-3, "{halves:?}");
    }

    #[test]
    fn without_the_receiver_there_are_no_halves() {
        let evidence = Case::path_rate().without_far().evidence();
        assert!(View::new(&evidence).halves().is_err());
    }
}
