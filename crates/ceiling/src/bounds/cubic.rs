//! CUBIC at a given loss.

use goodput_model::{CeilingInputs, Missing};

use super::Bound;
use super::mathis::{Lossy, RISES, asked, beside, example};
use crate::lines::{Lines, number, time};
use crate::models;

pub(super) const BOUND: Bound = Bound {
    id: "cubic",
    title: "CUBIC at this loss",
    source: "1.054 × (RTT / p)^0.75 segments per RTT, at least as much as Reno (RFC 9438 section 5)",
    needs: "--loss and --rtt, with --flows and what makes a packet",
    asked,
    work_out,
    beside: |inputs| beside(inputs, BOUND.id),
    example,
    rises: RISES,
};

fn work_out(inputs: &CeilingInputs, lines: &mut Lines) -> Result<f64, Missing> {
    let lossy = Lossy::of(inputs)?;
    let Lossy { mss, rtt, loss, .. } = lossy;
    let (share, trip) = (number(loss), time(rtt));
    let own = models::cubic_segments(rtt, loss);
    lines.add("CUBIC", format!("1.054 × ({} s / {share})^0.75", number(rtt)), own, "segments");
    let reno = (1.5 / loss).sqrt();
    lines.add("Reno", format!("sqrt(1.5 / {share})"), reno, "segments");
    let formula = format!("{} × {} bytes × 8 / {trip}", number(own.max(reno)), number(mss));
    Ok(lossy.all(formula, models::cubic(mss, rtt, loss), lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_window_counts() {
        let rate = |rtt_ms: f64| {
            let inputs = CeilingInputs { rtt_us: Some(rtt_ms * 1e3), ..example() };
            let mut lines = Lines::default();
            let rate = work_out(&inputs, &mut lines).unwrap();
            let lines = lines.into_vec();
            assert!(rate * rtt_ms / 1e3 >= lines[0].value.max(lines[1].value) * 1448.0 * 7.99);
            rate
        };
        assert_eq!(rate(20.0), models::mathis(1448.0, 0.02, 1e-3));
        assert!(rate(1000.0) > models::mathis(1448.0, 1.0, 1e-3));
    }
}
