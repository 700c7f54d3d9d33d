//! The packet scheduler's arithmetic: sizes as times at a rate, in steps of 64 ns.
//!
//! tbf and htb keep a burst as the time it takes at their rate, and report that time in ticks.
//! This code repeats the kernel's own integer steps (include/net/sch_generic.h `psched_l2t_ns`,
//! net/sched/sch_generic.c `psched_ratecfg_precompute__`, include/net/pkt_sched.h
//! `PSCHED_SHIFT`), so that a size reads back as it was set, as far as ticks can express it.

/// Nanoseconds in one tick: `1 << PSCHED_SHIFT`.
const TICK_NS: u128 = 64;
const NS_PER_S: u64 = 1_000_000_000;
/// Bytes of `struct tc_ratespec`, include/uapi/linux/pkt_sched.h.
pub(crate) const RATE_SPEC_BYTES: usize = 12;
/// `TC_LINKLAYER_ETHERNET`.
const LINK_LAYER_ETHERNET: u8 = 1;
/// `TC_LINKLAYER_ATM`.
const LINK_LAYER_ATM: u8 = 2;
/// A cell of ATM, and its payload (`psched_l2t_ns`).
const CELL_BYTES: u128 = 53;
const CELL_PAYLOAD_BYTES: u128 = 48;

/// How lengths are counted at a rate: the fields of `struct tc_ratespec` beside the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSpec {
    pub(crate) cell_log: u8,
    pub(crate) link_layer: u8,
    pub(crate) overhead: u16,
    pub(crate) cell_align: i16,
    pub(crate) mpu: u16,
}

impl Default for RateSpec {
    fn default() -> Self {
        Self { cell_log: 0, link_layer: LINK_LAYER_ETHERNET, overhead: 0, cell_align: 0, mpu: 0 }
    }
}

impl RateSpec {
    /// Bytes that are counted with each packet beside its own.
    pub fn overhead_bytes(&self) -> u16 {
        self.overhead
    }

    /// The fewest bytes that are counted for a packet.
    pub fn least_bytes(&self) -> u16 {
        self.mpu
    }

    /// Whether lengths are counted in cells of ATM: 48 bytes of payload in 53 (`TC_LINKLAYER_ATM`).
    pub fn counts_cells(&self) -> bool {
        self.link_layer == LINK_LAYER_ATM
    }

    /// Splits `struct tc_ratespec` into its other fields and its 32 bit rate in bytes per second.
    pub(crate) fn parse(bytes: &[u8; RATE_SPEC_BYTES]) -> (Self, u32) {
        let spec = Self {
            cell_log: bytes[0],
            link_layer: bytes[1],
            overhead: u16::from_ne_bytes([bytes[2], bytes[3]]),
            cell_align: i16::from_ne_bytes([bytes[4], bytes[5]]),
            mpu: u16::from_ne_bytes([bytes[6], bytes[7]]),
        };
        (spec, u32::from_ne_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]))
    }

    /// `struct tc_ratespec` at `rate` bytes per second; 2^32-1 stands for all higher rates.
    pub(crate) fn emit(&self, rate: u64) -> [u8; RATE_SPEC_BYTES] {
        let mut bytes = [0; RATE_SPEC_BYTES];
        bytes[0] = self.cell_log;
        bytes[1] = self.link_layer;
        bytes[2..4].copy_from_slice(&self.overhead.to_ne_bytes());
        bytes[4..6].copy_from_slice(&self.cell_align.to_ne_bytes());
        bytes[6..8].copy_from_slice(&self.mpu.to_ne_bytes());
        let rate = u32::try_from(rate).unwrap_or(u32::MAX);
        bytes[8..].copy_from_slice(&rate.to_ne_bytes());
        bytes
    }
}

/// A rate in the form in which the kernel computes with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    mult: u64,
    shift: u32,
    spec: RateSpec,
}

impl Clock {
    /// `rate` in bytes per second. `None` for rate 0, at which nothing takes a finite time.
    pub(crate) fn new(rate: u64, spec: RateSpec) -> Option<Self> {
        if rate == 0 {
            return None;
        }
        let (mut factor, mut shift) = (NS_PER_S, 0);
        loop {
            let mult = factor / rate;
            if mult & (1 << 31) != 0 || factor & (1 << 63) != 0 {
                return Some(Self { mult: mult.max(1), shift, spec });
            }
            factor <<= 1;
            shift += 1;
        }
    }

    /// The time that `bytes` take, with what is counted beside them (`psched_l2t_ns`).
    fn ns(&self, bytes: u32) -> u128 {
        let long = u128::from(bytes) + u128::from(self.spec.overhead);
        let long = long.max(self.spec.mpu.into());
        let counted = match self.spec.counts_cells() {
            true => long.div_ceil(CELL_PAYLOAD_BYTES) * CELL_BYTES,
            false => long,
        };
        (counted * u128::from(self.mult)) >> self.shift
    }

    /// The ticks that the kernel reports for a burst of `bytes`.
    pub(crate) fn ticks(&self, bytes: u32) -> u32 {
        let ns = self.ns(bytes).min(u32::MAX.into());
        u32::try_from(ns / TICK_NS).unwrap_or(u32::MAX)
    }

    /// The smallest size that the kernel reports as `ticks`.
    pub(crate) fn bytes(&self, ticks: u32) -> u32 {
        let (mut low, mut high) = (0, u32::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.ns(middle) < u128::from(ticks) * TICK_NS {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// The largest size with the same report as `bytes`.
    pub(crate) fn widest(&self, bytes: u32) -> u32 {
        let next = self.bytes(self.ticks(bytes).saturating_add(1));
        next.saturating_sub(1).max(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(rate: u64) -> Clock {
        Clock::new(rate, RateSpec::default()).unwrap()
    }

    /// As the kernel reported them: `tc -r -d` of `burst 15000 mpu 64 overhead 10 linklayer atm` at 1 Gbit/s.
    #[test]
    fn cells_of_atm_and_the_least_size_count_as_in_the_kernel() {
        let spec = |link_layer, overhead, mpu| {
            let spec = RateSpec { link_layer, overhead, mpu, ..RateSpec::default() };
            Clock::new(125_000_000, spec).unwrap()
        };
        let cells = spec(LINK_LAYER_ATM, 10, 64);
        assert_eq!(cells.ticks(15_000), 0x819);
        let least = cells.bytes(0x819);
        assert_eq!((least, cells.ticks(least), cells.ticks(least - 1)), (14_967, 0x819, 0x813));
        assert_eq!(cells.widest(least), cells.widest(15_000), "the same step");
        let least = spec(LINK_LAYER_ETHERNET, 0, 64);
        assert_eq!(least.ticks(1), least.ticks(64));
    }

    #[test]
    fn below_125_mbit_every_burst_is_read_exactly() {
        for rate in [12_500_000, 1_250_000, 131_071, 15_000_000] {
            for bytes in [1, 1250, 1514, 1600, 65_536, 125_000] {
                let ticks = clock(rate).ticks(bytes);
                // The kernel holds less than 2^32 ns; longer bursts come back as its limit.
                if ticks < u32::MAX / 64 {
                    assert_eq!(clock(rate).bytes(ticks), bytes, "{rate} {bytes}");
                    assert_eq!(clock(rate).widest(bytes), bytes, "{rate} {bytes}");
                }
            }
        }
    }

    #[test]
    fn above_it_the_widest_burst_of_the_tick_lets_the_same_packets_through() {
        for rate in [125_000_000, 1_250_000_000, 6_250_000_000] {
            for bytes in [1514, 65_000, 125_000] {
                let clock = clock(rate);
                let read = clock.bytes(clock.ticks(bytes));
                assert!(read <= bytes && clock.widest(read) >= bytes, "{rate} {bytes} {read}");
                assert_eq!(clock.ticks(clock.widest(read)), clock.ticks(bytes));
                assert_eq!(clock.bytes(clock.ticks(clock.widest(read))), read);
            }
        }
    }

    #[test]
    fn no_rate_has_no_clock() {
        assert!(Clock::new(0, RateSpec::default()).is_none());
        assert!(Clock::new(u64::MAX, RateSpec::default()).is_some());
    }

    #[test]
    fn a_rate_spec_survives_its_bytes() {
        let spec = RateSpec { cell_log: 3, link_layer: 2, overhead: 18, cell_align: -1, mpu: 64 };
        assert_eq!(RateSpec::parse(&spec.emit(125_000)), (spec, 125_000));
        assert_eq!(RateSpec::parse(&spec.emit(1 << 40)), (spec, u32::MAX));
    }
}
