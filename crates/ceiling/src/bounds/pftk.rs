//! Reno at a given loss, with the timeouts that follow when too few acknowledgements come back.

use goodput_model::{CeilingInputs, Missing};

use super::Bound;
use super::mathis::{Lossy, RISES, asked, beside, example};
use crate::lines::{Lines, number, time};
use crate::models;

pub(super) const BOUND: Bound = Bound {
    id: "pftk",
    title: "Reno at this loss, with timeouts",
    source: "MSS / (RTT × sqrt(2p/3) + RTO × min(1, 3 × sqrt(3p/8)) × p × (1 + 32p²)) (Padhye, Firoiu, \
             Towsley, Kurose 1998; RFC 5348 section 3.1); Linux avoids most of these timeouts (RFC 8985)",
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
    let timeout = models::timeout_s(rtt);
    lines.add("timeout", format!("{} + 200 ms (RTO_MIN)", time(rtt)), timeout, "s");
    let recovery = rtt * (2.0 * loss / 3.0).sqrt();
    let share = number(loss);
    lines.add("recovery", format!("{} × sqrt(2 × {share} / 3)", time(rtt)), recovery, "s");
    let one = models::pftk(mss, rtt, loss, timeout);
    let waiting = mss * 8.0 / one - recovery;
    let chance = models::timeout_share(loss);
    lines.add("timing out", format!("3 × sqrt(3 × {share} / 8), at most 1"), chance, "");
    let formula = format!("{} × {} × {share} × (1 + 32 × {share}²)", time(timeout), number(chance));
    lines.add("timeouts", formula, waiting, "s");
    let formula = format!("{} bytes × 8 / ({} + {})", number(mss), time(recovery), time(waiting));
    Ok(lossy.all(formula, one, lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 3 % over 20 ms: the equation gives 2.3 Mbit/s, but 4.0 were measured, because Linux
    /// avoids the timeouts.
    #[test]
    fn it_is_the_lower_the_more_is_lost() {
        let at = |loss| {
            let inputs = CeilingInputs { loss_percent: Some(loss), ..example() };
            work_out(&inputs, &mut Lines::default()).unwrap()
        };
        assert!(at(3.0) < 2.4e6, "{}", at(3.0));
        assert!(at(0.001) > 0.9 * models::mathis(1448.0, 0.02, 1e-5));
    }
}
