//! What holds for every bound.

use goodput_model::{BitRate, CeilingInputs, Family, Transport};
use proptest::prelude::*;

use super::{ALL, Bound};
use crate::lines::Lines;

fn gives(bound: &Bound, inputs: &CeilingInputs) -> Option<f64> {
    (bound.work_out)(inputs, &mut Lines::default()).ok()
}

#[test]
fn ids_are_unique_and_texts_are_there() {
    for (number, bound) in ALL.iter().enumerate() {
        assert!(ALL[..number].iter().all(|other| other.id != bound.id), "{}", bound.id);
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(bound.id.chars().all(plain), "{}", bound.id);
        assert!(bound.title.len() <= 40 && !bound.source.is_empty(), "{}", bound.id);
        assert!(bound.needs.contains("--"), "{}", bound.id);
    }
}

#[test]
fn nothing_is_asked_of_nothing() {
    for bound in ALL {
        assert!(!(bound.asked)(&CeilingInputs::default()), "{}", bound.id);
        assert_eq!(gives(bound, &CeilingInputs::default()), None, "{}", bound.id);
    }
}

#[test]
fn every_example_gives_a_rate_whose_last_step_it_is() {
    for bound in ALL {
        let inputs = (bound.example)();
        assert!((bound.asked)(&inputs), "{}", bound.id);
        let mut lines = Lines::default();
        let rate = (bound.work_out)(&inputs, &mut lines).expect(bound.id);
        let lines = lines.into_vec();
        let last = lines.last().expect(bound.id);
        assert_eq!((last.value, &*last.unit), (rate, "bit/s"), "{}", bound.id);
        for line in &lines {
            assert!(line.label.chars().count() <= 24, "{}: {}", bound.id, line.label);
        }
        assert!(!bound.rises.is_empty(), "{}", bound.id);
    }
}

proptest! {
    #[test]
    fn no_bound_falls_when_what_it_rises_with_rises(factor in 1.0f64..1e6) {
        for bound in ALL {
            let before = gives(bound, &(bound.example)()).expect(bound.id);
            for (number, rise) in bound.rises.iter().enumerate() {
                let mut inputs = (bound.example)();
                rise(&mut inputs, factor);
                let after = gives(bound, &inputs).expect(bound.id);
                prop_assert!(after >= before * (1.0 - 1e-9), "{} {number}: {after} < {before}", bound.id);
            }
        }
    }

    #[test]
    fn whatever_is_typed_a_bound_is_above_zero_or_missing(inputs in any_inputs()) {
        for bound in crate::ceiling(&inputs).bounds {
            if let Some(BitRate(rate)) = bound.bits_per_s.value() {
                prop_assert!(rate.is_finite() && *rate > 0.0, "{} {rate}", bound.id);
            }
            prop_assert!(bound.lines.iter().all(|line| line.value.is_finite()), "{}", bound.id);
        }
    }
}

fn number() -> impl Strategy<Value = Option<f64>> {
    let odd = prop::sample::select(vec![0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300, 1e300]);
    prop::option::of(prop_oneof![odd, 0.0f64..1e12])
}

fn whole() -> impl Strategy<Value = Option<u64>> {
    prop::option::of(prop_oneof![0u64..3000, any::<u64>()])
}

fn word(words: &'static [&'static str]) -> impl Strategy<Value = Option<String>> {
    prop::option::of(prop::sample::select(words).prop_map(String::from))
}

fn any_inputs() -> impl Strategy<Value = CeilingInputs> {
    let packet = (
        prop::option::of(prop::sample::select(vec![Transport::Tcp, Transport::Udp])),
        prop::option::of(prop::sample::select(vec![Family::V4, Family::V6])),
        (whole(), whole(), whole(), whole(), whole()),
        prop::collection::vec(
            prop::sample::select(&["vxlan6", "pppoe", "wireguard", "x"][..]),
            0..4,
        ),
        (
            prop::option::of(any::<u16>()),
            prop::option::of(any::<u8>()),
            prop::option::of(any::<bool>()),
        ),
        (
            word(&["ethernet", "hdlc", "none", "x"]),
            word(&["isa8", "usb2", "pcie3x8", "pcie0x0", "x"]),
        ),
    );
    let rates = (number(), number(), number(), number(), number(), number(), number(), number());
    let counts = (whole(), whole(), whole(), whole(), whole(), whole(), whole());
    (packet, rates, counts).prop_map(|(packet, rates, counts)| {
        let (transport, family, sizes, tunnels, (flows, vlan_tags, half_duplex), words) = packet;
        CeilingInputs {
            transport,
            family,
            mtu_bytes: sizes.0,
            mss_bytes: sizes.1,
            tcp_option_bytes: sizes.2,
            datagram_bytes: sizes.3,
            tunnel_mtu_bytes: sizes.4,
            flows,
            tunnels: tunnels.into_iter().map(String::from).collect(),
            vlan_tags,
            framing: words.0,
            half_duplex,
            link_bits_per_s: rates.0.map(BitRate),
            shaper_bits_per_s: rates.1.map(BitRate),
            rtt_us: rates.2,
            loss_percent: rates.3,
            bus_clock_hz: rates.4,
            drain_gap_us: rates.5,
            packets_per_s: rates.6,
            polls_per_s: rates.7,
            window_bytes: counts.0,
            pcie_payload_bytes: counts.1,
            ring_frames: counts.2,
            room_bytes: counts.3,
            burst_frames: counts.4,
            poll_packets: counts.5,
            transfer_bytes: counts.6,
            loss_model: None,
            bus: words.1,
        }
    })
}
