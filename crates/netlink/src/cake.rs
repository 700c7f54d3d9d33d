//! What cake shapes to, and how it counts lengths (net/sched/sch_cake.c `cake_dump`, `cake_calc_overhead`;
//! include/uapi/linux/pkt_sched.h `TCA_CAKE_*`).

use crate::raw::attributes;

const TCA_CAKE_BASE_RATE64: u16 = 2;
const TCA_CAKE_ATM: u16 = 4;
const TCA_CAKE_OVERHEAD: u16 = 6;
const TCA_CAKE_AUTORATE: u16 = 9;
const TCA_CAKE_RAW: u16 = 12;
const TCA_CAKE_MPU: u16 = 14;
/// `CAKE_ATM_ATM` and `CAKE_ATM_PTM`.
const CAKE_ATM_ATM: u32 = 1;
const CAKE_ATM_PTM: u32 = 2;

/// The shaper in cake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cake {
    /// Its `bandwidth`, bytes per second; `None` if that is unlimited.
    pub rate_bytes_per_s: Option<u64>,
    /// Whether it sets the rate itself, by what comes in (`autorate-ingress`).
    pub sets_rate: bool,
    /// Whether whole frames are counted (`raw`), and not only the IP packets in them.
    pub counts_frames: bool,
    /// Bytes that are counted beside each of them, which may be fewer than none.
    pub overhead_bytes: i32,
    /// The fewest bytes that are counted for a packet (`mpu`).
    pub least_bytes: u32,
    /// How the sum of both travels.
    pub cells: CakeCells,
}

/// The link layer that cake accounts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CakeCells {
    /// None (`noatm`).
    None,
    /// Cells of ATM: 48 bytes of payload in 53.
    Atm,
    /// One byte more for each 64, or part of them, as in the PTM of VDSL.
    Ptm,
}

impl Cake {
    /// Reads the content of `TCA_OPTIONS`. `None` if the bytes are not cake's, or of a cake that goodput does not know.
    pub fn parse(options: &[u8]) -> Option<Self> {
        let find = |wanted| attributes(options).find(|(kind, _)| *kind == wanted);
        let word =
            |kind| find(kind).map(|(_, value)| Some(u32::from_ne_bytes(*value.first_chunk()?)));
        let (_, rate) = find(TCA_CAKE_BASE_RATE64)?;
        let rate = u64::from_ne_bytes(*rate.first_chunk()?);
        let cells = match word(TCA_CAKE_ATM).unwrap_or(Some(0))? {
            0 => CakeCells::None,
            CAKE_ATM_ATM => CakeCells::Atm,
            CAKE_ATM_PTM => CakeCells::Ptm,
            _ => return None,
        };
        Some(Self {
            rate_bytes_per_s: (rate > 0).then_some(rate),
            sets_rate: word(TCA_CAKE_AUTORATE).unwrap_or(Some(0))? > 0,
            counts_frames: find(TCA_CAKE_RAW).is_some(),
            overhead_bytes: word(TCA_CAKE_OVERHEAD)??.cast_signed(),
            least_bytes: word(TCA_CAKE_MPU).unwrap_or(Some(0))?,
            cells,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::attribute;
    use proptest::prelude::*;

    /// What `cake_dump` of Linux 6.12 writes, in its order, for a rate, an overhead and what follows it.
    fn options(rate: u64, overhead: i32, is_raw: bool, atm: u32, mpu: u32) -> Vec<u8> {
        let words = |all: &[(u16, u32)]| {
            all.iter().flat_map(|(kind, value)| attribute(*kind, &value.to_ne_bytes())).collect()
        };
        let before: Vec<u8> =
            words(&[(5, 7), (7, 100_000), (8, 5000), (10, 0), (9, 0), (15, 0), (16, 0), (11, 0)]);
        let raw: Vec<u8> = if is_raw { words(&[(TCA_CAKE_RAW, 0)]) } else { Vec::new() };
        let overhead = attribute(TCA_CAKE_OVERHEAD, &overhead.to_ne_bytes());
        let after: Vec<u8> = words(&[(TCA_CAKE_ATM, atm), (TCA_CAKE_MPU, mpu), (17, 1), (18, 0)]);
        let rate = attribute(TCA_CAKE_BASE_RATE64, &rate.to_ne_bytes());
        [rate, before, words(&[(3, 0), (13, 0)]), overhead, raw, after].concat()
    }

    #[test]
    fn a_rate_with_whole_frames_is_read() {
        let cake = Cake::parse(&options(1_250_000, 0, true, 0, 0)).unwrap();
        let expected = Cake {
            rate_bytes_per_s: Some(1_250_000),
            sets_rate: false,
            counts_frames: true,
            overhead_bytes: 0,
            least_bytes: 0,
            cells: CakeCells::None,
        };
        assert_eq!(cake, expected);
    }

    #[test]
    fn overhead_cells_and_the_least_length_are_read_as_cake_has_them() {
        let cake = Cake::parse(&options(5_000_000_000, 44, false, 1, 96)).unwrap();
        assert_eq!(cake.rate_bytes_per_s, Some(5_000_000_000));
        assert_eq!((cake.overhead_bytes, cake.least_bytes), (44, 96));
        assert_eq!(cake.cells, CakeCells::Atm);
        let ptm = Cake::parse(&options(1, -4, false, 2, 0)).unwrap();
        assert_eq!((ptm.overhead_bytes, ptm.cells), (-4, CakeCells::Ptm));
        assert!(!ptm.counts_frames);
        let both = Cake::parse(&options(1, 44, true, 0, 0)).unwrap();
        assert!(both.counts_frames && both.overhead_bytes == 44);
    }

    #[test]
    fn no_bandwidth_is_no_rate_and_an_unknown_layer_is_no_answer() {
        assert_eq!(Cake::parse(&options(0, 0, true, 0, 0)).unwrap().rate_bytes_per_s, None);
        assert_eq!(Cake::parse(&options(1, 0, true, 3, 0)), None);
        assert_eq!(Cake::parse(&[]), None);
    }

    proptest! {
        #[test]
        fn no_options_make_it_panic(bytes in prop::collection::vec(0u8..20, 0..120)) {
            let _ = Cake::parse(&bytes);
        }
    }
}
