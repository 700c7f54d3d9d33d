//! What the bus of a network card carries in one direction: a row for each kind.

use goodput_model::{CeilingInputs, Missing};

use crate::inputs::given;
use crate::lines::{Lines, number, rate};

/// Part of a PCI Express link that flow control and acknowledgements of the data link layer leave
/// (Neugebauer et al.: Understanding PCIe performance for end host networking, SIGCOMM 2018).
const LINK_LAYER_SHARE: f64 = 0.9;
/// Payload of a PCI Express packet if nothing else is known, bytes.
const DEFAULT_TLP_PAYLOAD_BYTES: f64 = 256.0;
/// Its header, sequence number, check and framing, bytes (the same paper).
const TLP_OVERHEAD_BYTES: f64 = 26.0;
/// Payloads that the specification allows, bytes (PCI Express base specification, `Max_Payload_Size`).
const TLP_PAYLOADS_BYTES: std::ops::RangeInclusive<f64> = 128.0..=4096.0;
/// Lanes of the widest link.
const LANES: [u32; 7] = [1, 2, 4, 8, 12, 16, 32];

/// A bus that moves words in step with a clock, or a serial one whose rate is fixed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bus {
    /// What users type.
    pub id: &'static str,
    /// What it is, for a person.
    pub title: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Words of `bits`, one in `clocks` of a clock of `hz`.
    Parallel { bits: f64, clocks: f64, hz: f64 },
    /// Packets of `bytes`, `count` of them in each of `per_s` (micro)frames.
    Framed { bytes: f64, count: f64, per_s: f64 },
    /// A line code that leaves `data` of `coded` bits.
    Coded { bits_per_s: f64, data: f64, coded: f64 },
}

const fn parallel(id: &'static str, title: &'static str, bits: f64, hz: f64, clocks: f64) -> Bus {
    Bus { id, title, kind: Kind::Parallel { bits, clocks, hz } }
}

/// 33 1/3 MHz, of which PCI's other clocks are multiples (PCI local bus specification 3.0).
const PCI_HZ: f64 = 100e6 / 3.0;

/// All but PCI Express. Sources: IEEE P996 for ISA (3 clocks with no wait state for 8 bits; the Ethernet HOWTO
/// has the 5.3 MB/s of 16 bits in 3 clocks at 8 MHz); PCI local bus 3.0 and PCI-X 2.0 (one word a clock within a
/// burst; address and turn-around take more); USB 1.1 section 5.8, USB 2.0 section 5.8.4 (most bulk packets in a
/// frame), USB 3.2 sections 6.3 and 3.2 (8b/10b, 128b/132b).
pub const ALL: &[Bus] = &[
    parallel("isa8", "8-bit ISA", 8.0, 8e6, 3.0),
    parallel("isa16", "16-bit ISA", 16.0, 8e6, 3.0),
    parallel("pci", "PCI, 32 bits at 33 MHz", 32.0, PCI_HZ, 1.0),
    parallel("pci-66", "PCI, 32 bits at 66 MHz", 32.0, 2.0 * PCI_HZ, 1.0),
    parallel("pci64", "PCI, 64 bits at 33 MHz", 64.0, PCI_HZ, 1.0),
    parallel("pci64-66", "PCI, 64 bits at 66 MHz", 64.0, 2.0 * PCI_HZ, 1.0),
    parallel("pcix-66", "PCI-X at 66 MHz", 64.0, 2.0 * PCI_HZ, 1.0),
    parallel("pcix-100", "PCI-X at 100 MHz", 64.0, 3.0 * PCI_HZ, 1.0),
    parallel("pcix-133", "PCI-X at 133 MHz", 64.0, 4.0 * PCI_HZ, 1.0),
    parallel("pcix-266", "PCI-X 2.0, 266", 64.0, 8.0 * PCI_HZ, 1.0),
    parallel("pcix-533", "PCI-X 2.0, 533", 64.0, 16.0 * PCI_HZ, 1.0),
    Bus { id: "usb1", title: "USB 1.1", kind: framed(64.0, 19.0, 1000.0) },
    Bus { id: "usb2", title: "USB 2.0", kind: framed(512.0, 13.0, 8000.0) },
    Bus { id: "usb3", title: "USB 3, 5 Gbit/s", kind: coded(5e9, 8.0, 10.0) },
    Bus { id: "usb3-10g", title: "USB 3, 10 Gbit/s", kind: coded(10e9, 128.0, 132.0) },
    Bus { id: "usb3-20g", title: "USB 3, 20 Gbit/s", kind: coded(20e9, 128.0, 132.0) },
];

const fn framed(bytes: f64, count: f64, per_s: f64) -> Kind {
    Kind::Framed { bytes, count, per_s }
}

const fn coded(bits_per_s: f64, data: f64, coded: f64) -> Kind {
    Kind::Coded { bits_per_s, data, coded }
}

/// The buses by the speed that USB devices report, bits per second.
const USB_SPEEDS: [(f64, &str); 5] =
    [(12e6, "usb1"), (480e6, "usb2"), (5e9, "usb3"), (10e9, "usb3-10g"), (20e9, "usb3-20g")];

/// A generation of PCI Express.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Generation {
    number: u32,
    gt_per_s: f64,
    /// Data bits, and the bits on the line that carry them.
    data: f64,
    coded: f64,
}

const fn generation(number: u32, gt_per_s: f64, data: f64, coded: f64) -> Generation {
    Generation { number, gt_per_s, data, coded }
}

/// PCI Express base specification: 8b/10b up to generation 2, 128b/130b up to 5, 242 of the 256 bytes of a
/// flit from 6 on.
const GENERATIONS: [Generation; 7] = [
    generation(1, 2.5, 8.0, 10.0),
    generation(2, 5.0, 8.0, 10.0),
    generation(3, 8.0, 128.0, 130.0),
    generation(4, 16.0, 128.0, 130.0),
    generation(5, 32.0, 128.0, 130.0),
    generation(6, 64.0, 242.0, 256.0),
    generation(7, 128.0, 242.0, 256.0),
];

impl Bus {
    /// What it carries at its usual clock, bits per second.
    pub fn gives(&self) -> f64 {
        self.worked_out(None, &mut Lines::default())
    }

    fn worked_out(&self, clock: Option<f64>, lines: &mut Lines) -> f64 {
        let (formula, rate) = match self.kind {
            Kind::Parallel { bits, clocks, hz } => {
                let hz = clock.unwrap_or(hz);
                let mhz = number(hz / 1e6);
                let formula = format!("{mhz} MHz × {bits} bits / {clocks} clocks per word");
                (formula, hz * bits / clocks)
            }
            Kind::Framed { bytes, count, per_s } => {
                let formula = format!("{count} packets × {bytes} bytes × 8 × {per_s} frames/s");
                (formula, count * bytes * 8.0 * per_s)
            }
            Kind::Coded { bits_per_s, data, coded } => {
                let formula = format!("{} Gbit/s × {data} / {coded} (code)", bits_per_s / 1e9);
                (formula, bits_per_s * data / coded)
            }
        };
        lines.add(self.title, formula, rate, "bit/s")
    }
}

/// The bus of a USB device that reports this speed, bits per second.
pub fn usb(bits_per_s: f64) -> Option<&'static Bus> {
    let (_, id) = USB_SPEEDS.iter().find(|(speed, _)| *speed == bits_per_s)?;
    ALL.iter().find(|bus| bus.id == *id)
}

/// The bus of that id, if it is not PCI Express.
pub fn find(id: &str) -> Option<&'static Bus> {
    ALL.iter().find(|bus| bus.id == id)
}

/// What one direction of a PCI Express link carries for a card, bits per second: `gt_per_s` thousand million
/// transfers a second on each of `lanes`.
pub fn pcie(gt_per_s: f64, lanes: f64) -> f64 {
    worked_out_pcie(&of_speed(gt_per_s), lanes, DEFAULT_TLP_PAYLOAD_BYTES, &mut Lines::default())
}

/// The id of such a link, as users type it; none if no generation is that fast.
pub fn pcie_id(gt_per_s: f64, lanes: u64) -> Option<String> {
    let known = GENERATIONS.iter().find(|generation| generation.gt_per_s == gt_per_s)?;
    Some(format!("pcie{}x{lanes}", known.number))
}

/// The code of a speed between two generations is that of the faster one.
fn of_speed(gt_per_s: f64) -> Generation {
    let [.., last] = GENERATIONS;
    let at_least = GENERATIONS.into_iter().find(|generation| gt_per_s <= generation.gt_per_s);
    Generation { gt_per_s, ..at_least.unwrap_or(last) }
}

fn worked_out_pcie(of: &Generation, lanes: f64, payload: f64, lines: &mut Lines) -> f64 {
    let raw = of.gt_per_s * 1e9 * lanes * of.data / of.coded;
    let formula =
        format!("{} GT/s × {lanes} (lanes) × {} / {} (code)", of.gt_per_s, of.data, of.coded);
    lines.add("lanes", formula, raw, "bit/s");
    let formula = format!(
        "{} × {LINK_LAYER_SHARE} (less flow control) × {} / ({} + {TLP_OVERHEAD_BYTES} (header))",
        rate(raw),
        number(payload),
        number(payload)
    );
    let carried = raw * LINK_LAYER_SHARE * payload / (payload + TLP_OVERHEAD_BYTES);
    lines.add("packets", formula, carried, "bit/s")
}

/// What the bus of the inputs carries, bits per second, with its arithmetic.
pub(crate) fn of(inputs: &CeilingInputs, lines: &mut Lines) -> Result<f64, Missing> {
    let id = inputs.bus.as_deref().ok_or_else(|| Missing::because("no bus was given"))?;
    if let Some((generation, lanes)) = pcie_words(id) {
        let payload =
            inputs.pcie_payload_bytes.map_or(DEFAULT_TLP_PAYLOAD_BYTES, |bytes| bytes as f64);
        if !TLP_PAYLOADS_BYTES.contains(&payload) {
            return Err(Missing::because(format!(
                "a PCI Express packet carries 128 to 4096 bytes, not {}",
                number(payload)
            )));
        }
        if inputs.bus_clock_hz.is_some() {
            return Err(Missing::because("the generation of PCI Express decides on its clock"));
        }
        return Ok(worked_out_pcie(&generation, f64::from(lanes), payload, lines));
    }
    let bus = find(id).ok_or_else(|| unknown(id))?;
    let clock = match (inputs.bus_clock_hz, bus.kind) {
        (None, _) => None,
        (clock, Kind::Parallel { .. }) => Some(given(clock, "clock of the bus")?),
        _ => return Err(Missing::because(format!("{} has no clock to choose", bus.title))),
    };
    Ok(bus.worked_out(clock, lines))
}

/// Whether there is such a bus.
///
/// # Errors
/// Those that there are.
pub fn check(id: &str) -> Result<(), Missing> {
    match pcie_words(id).is_some() || find(id).is_some() {
        true => Ok(()),
        false => Err(unknown(id)),
    }
}

/// `pcie3x8`.
fn pcie_words(id: &str) -> Option<(Generation, u32)> {
    let (number, lanes) = id.strip_prefix("pcie")?.split_once('x')?;
    let lanes = lanes.parse().ok().filter(|lanes| LANES.contains(lanes))?;
    let number: u32 = number.parse().ok()?;
    GENERATIONS.into_iter().find(|known| known.number == number).map(|known| (known, lanes))
}

fn unknown(id: &str) -> Missing {
    let known: Vec<_> = ALL.iter().map(|bus| bus.id).collect();
    Missing::because(format!(
        "{id:?} is not a bus; write {} or pcie1x1 to pcie7x32 (generation and lanes)",
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique() {
        for (number, bus) in ALL.iter().enumerate() {
            assert!(ALL[..number].iter().all(|other| other.id != bus.id), "{}", bus.id);
            assert_eq!(check(bus.id), Ok(()));
        }
    }

    /// Megabytes per second that the specifications and their readers publish.
    #[test]
    fn parallel_buses_carry_what_is_published() {
        for (id, megabytes) in [
            ("isa8", 2.667),
            ("isa16", 5.33),
            ("pci", 133.3),
            ("pci-66", 266.7),
            ("pci64-66", 533.3),
            ("pcix-133", 1066.7),
            ("usb1", 1.216),
            ("usb2", 53.2),
            ("usb3", 500.0),
            ("usb3-10g", 1212.0),
            ("usb3-20g", 2424.0),
        ] {
            let got = find(id).unwrap().gives() / 8e6;
            assert!((got / megabytes - 1.0).abs() < 2e-3, "{id} {got}");
        }
    }

    /// Gbit/s of one direction, by the model of Neugebauer et al. with packets of 256 bytes.
    #[test]
    fn pci_express_carries_what_is_published() {
        for (gt, lanes, gbit) in [
            (2.5, 1.0, 1.6),
            (5.0, 2.0, 6.6),
            (8.0, 4.0, 26.0),
            (16.0, 16.0, 207.0),
            (32.0, 16.0, 415.0),
            (64.0, 8.0, 398.0),
        ] {
            let given = pcie(gt, lanes) / 1e9;
            assert!((given / gbit - 1.0).abs() < 0.03, "{gt} {lanes} {given}");
        }
    }

    #[test]
    fn a_card_s_link_has_a_name_that_is_understood() {
        let id = pcie_id(8.0, 4).unwrap();
        assert_eq!(id, "pcie3x4");
        let inputs = CeilingInputs { bus: Some(id), ..CeilingInputs::default() };
        assert_eq!(of(&inputs, &mut Lines::default()), Ok(pcie(8.0, 4.0)));
        assert_eq!(pcie_id(9.0, 4), None);
        assert_eq!(usb(480e6).map(|bus| bus.id), Some("usb2"));
    }

    #[test]
    fn contradictions_are_said() {
        let why = |bus: &str, clock, payload| {
            let inputs = CeilingInputs {
                bus: Some(bus.into()),
                bus_clock_hz: clock,
                pcie_payload_bytes: payload,
                ..CeilingInputs::default()
            };
            of(&inputs, &mut Lines::default()).unwrap_err().to_string()
        };
        assert!(why("pcie9x1", None, None).contains("pcie1x1 to pcie7x32"));
        assert!(why("pcie3x5", None, None).contains("is not a bus"));
        assert!(why("pcie3x4", Some(8e6), None).contains("generation"));
        assert!(why("pcie3x4", None, Some(64)).contains("128 to 4096"));
        assert!(why("usb2", Some(8e6), None).contains("no clock to choose"));
        assert!(why("isa8", Some(0.0), None).contains("clock of the bus is 0"));
    }
}
