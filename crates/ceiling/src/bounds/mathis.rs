//! Reno-like congestion control at a given loss.

use goodput_model::{CeilingInputs, Missing, Transport};

use super::Bound;
use crate::inputs::Read;
use crate::lines::{Lines, number, time};
use crate::models;
use crate::packet::Packet;

pub(super) const BOUND: Bound = Bound {
    id: "mathis",
    title: "Reno at this loss",
    source: "MSS × 8 / RTT × sqrt(1.5 / p) (Mathis, Semke, Mahdavi, Ott 1997; RFC 3148)",
    needs: "--loss and --rtt, with --flows and what makes a packet",
    asked,
    work_out,
    beside: |inputs| beside(inputs, BOUND.id),
    example,
    rises: RISES,
};

/// Whether the inputs have a loss that TCP answers to.
pub(super) fn asked(inputs: &CeilingInputs) -> bool {
    inputs.loss_percent.is_some_and(|loss| loss != 0.0) && inputs.transport != Some(Transport::Udp)
}

/// Why the model `id` does not count, if another one does.
pub(super) fn beside(inputs: &CeilingInputs, id: &str) -> Option<String> {
    match inputs.loss_model.as_deref().unwrap_or("cubic") {
        chosen if chosen == id => None,
        "none" => Some("by --loss-model none, nothing slows down at loss".into()),
        chosen => Some(format!("--loss-model {chosen} counts")),
    }
}

/// A loss of 0.1 % and a round-trip time of 20 ms.
pub(super) fn example() -> CeilingInputs {
    CeilingInputs { loss_percent: Some(0.1), rtt_us: Some(20_000.0), ..super::shaper::tcp() }
}

/// Less loss, shorter round trips, more flows.
pub(super) const RISES: &[fn(&mut CeilingInputs, f64)] = &[
    |inputs, factor| inputs.loss_percent = inputs.loss_percent.map(|loss| loss / factor),
    |inputs, factor| inputs.rtt_us = inputs.rtt_us.map(|rtt| rtt / factor),
    |inputs, factor| inputs.flows = Some((factor.min(60_000.0)) as u16),
];

/// What all models are computed from.
pub(super) struct Lossy {
    /// Payload of a segment, bytes.
    pub mss: f64,
    /// Round-trip time, seconds.
    pub rtt: f64,
    /// Lost segments, a share.
    pub loss: f64,
    /// Connections.
    pub flows: f64,
}

impl Lossy {
    /// Reads the inputs.
    pub(super) fn of(inputs: &CeilingInputs) -> Result<Self, Missing> {
        let (rtt, loss, flows) = (inputs.rtt_s()?, inputs.loss()?, inputs.flow_count()?);
        Ok(Self { mss: Packet::of(inputs)?.payload, rtt, loss, flows })
    }

    /// Notes what all flows together reach, if `one` is what one does by `formula`.
    pub(super) fn all(&self, formula: String, one: f64, lines: &mut Lines) -> f64 {
        let formula = match self.flows {
            flows if flows > 1.0 => format!("{formula} × {flows} flows"),
            _ => formula,
        };
        lines.add("goodput", formula, one * self.flows, "bit/s")
    }
}

fn work_out(inputs: &CeilingInputs, lines: &mut Lines) -> Result<f64, Missing> {
    let lossy = Lossy::of(inputs)?;
    let Lossy { mss, rtt, loss, .. } = lossy;
    let formula =
        format!("{} bytes × 8 / {} × sqrt(1.5 / {})", number(mss), time(rtt), number(loss));
    Ok(lossy.all(formula, models::mathis(mss, rtt, loss), lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_loss_is_no_bound_and_nothing_arrives_at_a_loss_of_all() {
        let at = |loss| CeilingInputs { loss_percent: Some(loss), ..example() };
        assert!(!asked(&at(0.0)) && asked(&at(-1.0)));
        assert!(work_out(&at(100.0), &mut Lines::default()).is_err());
        assert!(work_out(&at(-1.0), &mut Lines::default()).is_err());
    }

    #[test]
    fn only_the_chosen_model_counts() {
        let chosen = |model: &str| CeilingInputs { loss_model: Some(model.into()), ..example() };
        assert_eq!(beside(&chosen("mathis"), "mathis"), None);
        assert_eq!(beside(&example(), "cubic"), None);
        assert!(beside(&chosen("none"), "cubic").is_some());
    }
}
