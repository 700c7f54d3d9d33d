//! One window of payload in each round trip.

use goodput_model::{CeilingInputs, Missing, Transport};

use super::{Bound, counts};
use crate::inputs::{Read, count};
use crate::lines::{Lines, number, rate, time};

pub(super) const BOUND: Bound = Bound {
    id: "window",
    title: "one window per round trip",
    source: "window × 8 / RTT; the window that fills a link is speed × RTT / 8 (RFC 6349 section 3.3.1)",
    needs: "--window and --rtt, with --flows; with --link it shows the window that would fill it",
    asked: |inputs| {
        let full_link = inputs.rtt_us.is_some() && inputs.link_bits_per_s.is_some();
        let tcp = inputs.transport != Some(Transport::Udp);
        tcp && (inputs.window_bytes.is_some() || full_link)
    },
    work_out,
    beside: counts,
    example: || CeilingInputs {
        window_bytes: Some(65_536),
        rtt_us: Some(25_000.0),
        ..CeilingInputs::default()
    },
    rises: &[
        |inputs, factor| {
            inputs.window_bytes = inputs.window_bytes.map(|w| (w as f64 * factor) as u64)
        },
        |inputs, factor| inputs.rtt_us = inputs.rtt_us.map(|rtt| rtt / factor),
        |inputs, factor| inputs.flows = Some((factor.min(60_000.0)) as u16),
    ],
};

fn work_out(inputs: &CeilingInputs, lines: &mut Lines) -> Result<f64, Missing> {
    let (rtt, flows) = (inputs.rtt_s()?, inputs.flow_count()?);
    let (trip, each) =
        (time(rtt), if flows > 1.0 { format!(" / {flows} flows") } else { String::new() });
    if let Ok(link) = inputs.link() {
        let formula = format!("{} × {trip} / 8{each}", rate(link));
        lines.add("fills link", formula, link * rtt / 8.0 / flows, "bytes");
    }
    let window = count(inputs.window_bytes, "window")?;
    let times = if flows > 1.0 { format!(" × {flows} flows") } else { String::new() };
    let formula = format!("{} bytes × 8 / {trip}{times}", number(window));
    Ok(lines.add("goodput", formula, window * 8.0 / rtt * flows, "bit/s"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::BitRate;

    /// RFC 6349 section 3.3.1: link, round-trip time, and the window that fills it, KB (of 1000 bytes).
    #[test]
    fn the_windows_of_rfc_6349_are_met() {
        for (mbit, rtt_ms, kilobytes) in [
            (1.536, 20.0, 3.84),
            (1.536, 50.0, 9.60),
            (1.536, 100.0, 19.20),
            (44.21, 10.0, 55.26),
            (44.21, 15.0, 82.89),
            (44.21, 25.0, 138.16),
            (100.0, 1.0, 12.50),
            (100.0, 5.0, 62.50),
            (1000.0, 0.1, 12.50),
            (1000.0, 1.0, 125.00),
            (10_000.0, 0.05, 62.50),
            (10_000.0, 0.3, 375.00),
        ] {
            let inputs = CeilingInputs {
                link_bits_per_s: Some(BitRate(mbit * 1e6)),
                rtt_us: Some(rtt_ms * 1e3),
                ..CeilingInputs::default()
            };
            let mut lines = Lines::default();
            let why = work_out(&inputs, &mut lines).unwrap_err().to_string();
            assert_eq!(why, "no window was given");
            let needed = lines.into_vec()[0].value / 1e3;
            assert!((needed - kilobytes).abs() < 0.006, "{mbit} {rtt_ms} {needed}");
        }
    }

    /// Measured: 64 KiB over 20.4 ms gave 25.2 of 25.7 Mbit/s.
    #[test]
    fn a_window_of_64k_gives_what_was_measured() {
        let inputs = CeilingInputs { rtt_us: Some(20_400.0), ..(BOUND.example)() };
        let got = work_out(&inputs, &mut Lines::default()).unwrap();
        assert!((got - 25.7e6).abs() < 0.01e6, "{got}");
    }
}
