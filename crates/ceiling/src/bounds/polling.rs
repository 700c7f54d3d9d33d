//! A card that the host polls at a fixed rate, and that gives a limited number of packets each time.

use goodput_model::{CeilingInputs, Missing};

use super::packet_rate::goodput_of;
use super::{Bound, counts};
use crate::inputs::{count, given};
use crate::lines::{Lines, number};

pub(super) const BOUND: Bound = Bound {
    id: "polling",
    title: "packets per poll",
    source: "HZ × burst_max packets/s (FreeBSD, polling(4)) × payload of a packet × 8",
    needs: "--hz and --poll-burst, with what makes a packet",
    asked: |inputs| inputs.polls_per_s.is_some() || inputs.poll_packets.is_some(),
    work_out,
    beside: counts,
    example: || CeilingInputs {
        polls_per_s: Some(1000.0),
        poll_packets: Some(150),
        ..super::shaper::tcp()
    },
    rises: &[
        |inputs, factor| inputs.polls_per_s = inputs.polls_per_s.map(|hz| hz * factor),
        |inputs, factor| {
            inputs.poll_packets = inputs.poll_packets.map(|n| (n as f64 * factor) as u64)
        },
    ],
};

fn work_out(inputs: &CeilingInputs, lines: &mut Lines) -> Result<f64, Missing> {
    let polls = given(inputs.polls_per_s, "number of polls per second")?;
    let packets = count(inputs.poll_packets, "number of packets per poll")?;
    let formula = format!("{} polls/s × {} packets", number(polls), number(packets));
    let rate = lines.add("packets", formula, polls * packets, "packets/s");
    goodput_of(rate, inputs, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FreeBSD's polling(4): 150 packets at HZ=1000 are 150 000 packets/s, enough for 100 Mbit/s, where the
    /// shortest frames come 148 810 times a second.
    #[test]
    fn the_defaults_of_freebsd_keep_up_with_100_megabits() {
        let mut lines = Lines::default();
        let got = work_out(&(BOUND.example)(), &mut lines).unwrap();
        let packets = lines.into_vec()[0].value;
        assert_eq!(packets, 150_000.0);
        assert!(packets > 148_810.0);
        assert_eq!(got, 150_000.0 * 1448.0 * 8.0);
    }
}
