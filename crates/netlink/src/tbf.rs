//! The token bucket filter's parameters and their bytes (net/sched/sch_tbf.c `tbf_change`,
//! `tbf_dump`; include/uapi/linux/pkt_sched.h `TCA_TBF_*`).

use crate::psched::{Clock, RATE_SPEC_BYTES, RateSpec};
use crate::raw::attribute;
use crate::two_rates::{Kinds, TwoRates, rate64};

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_PRATE64: u16 = 5;
const TCA_TBF_BURST: u16 = 6;
const TCA_TBF_PBURST: u16 = 7;
const KINDS: Kinds =
    Kinds { parms: TCA_TBF_PARMS, first64: TCA_TBF_RATE64, second64: TCA_TBF_PRATE64 };
/// `struct tc_tbf_qopt`: rate, peak rate, limit, buffer, mtu.
const PARMS_BYTES: usize = 2 * RATE_SPEC_BYTES + 12;

/// A token bucket.
///
/// The kernel keeps the burst as a time and reports it in steps of 64 ns. Below 125 Mbit/s the size reads
/// back to the byte. Above that the step is `rate × 64 ns` (8 bytes at 1 Gbit/s, 80 at 10), and reading gives the
/// smallest size of the step. A written burst is widened to the largest size of its step, so that putting
/// back a read burst never makes a bucket too small for a packet that fitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tbf {
    /// Sustained rate, bytes per second; at least 1.
    pub rate_bytes_per_s: u64,
    /// Size of the bucket, bytes. Packets larger than this are segmented or dropped.
    pub burst_bytes: u32,
    /// Bytes that may wait for tokens.
    pub limit_bytes: u32,
    /// Rate at which the bucket may be emptied, bytes per second.
    pub peak_rate_bytes_per_s: Option<u64>,
    /// Bucket of the peak rate, bytes; with a peak rate only.
    pub mtu_bytes: Option<u32>,
    rate_spec: RateSpec,
    peak_spec: RateSpec,
}

impl Tbf {
    /// A bucket without a peak rate.
    pub fn new(rate_bytes_per_s: u64, burst_bytes: u32, limit_bytes: u32) -> Self {
        Self {
            rate_bytes_per_s,
            burst_bytes,
            limit_bytes,
            peak_rate_bytes_per_s: None,
            mtu_bytes: None,
            rate_spec: RateSpec::default(),
            peak_spec: RateSpec::default(),
        }
    }

    /// How lengths are counted at its rate.
    pub fn counting(&self) -> RateSpec {
        self.rate_spec
    }

    /// The same bucket as the kernel will report it once set, for verification.
    pub fn as_read_back(&self) -> Self {
        let mut read = self.clone();
        if let Some(clock) = self.rate_clock() {
            read.burst_bytes = clock.bytes(clock.ticks(self.burst_bytes));
        }
        if let (Some(clock), Some(mtu)) = (self.peak_clock(), self.mtu_bytes) {
            read.mtu_bytes = Some(clock.bytes(clock.ticks(mtu)));
        }
        read
    }

    /// Reads `TCA_OPTIONS`. `None` if the bytes are not a token bucket's.
    pub(crate) fn parse(options: &[u8]) -> Option<Self> {
        let parms = TwoRates::<PARMS_BYTES>::parse(options, &KINDS)?;
        let ((rate, rate_spec), (peak, peak_spec)) = (parms.first, parms.second);
        let mut tbf = Self::new(rate, 0, parms.word(24)?);
        tbf.rate_spec = rate_spec;
        tbf.burst_bytes = tbf.rate_clock()?.bytes(parms.word(28)?);
        if peak != 0 {
            tbf.peak_spec = peak_spec;
            tbf.peak_rate_bytes_per_s = Some(peak);
            tbf.mtu_bytes = Some(tbf.peak_clock()?.bytes(parms.word(32)?));
        }
        Some(tbf)
    }

    /// Writes the content of `TCA_OPTIONS`.
    pub(crate) fn emit(&self) -> Vec<u8> {
        let peak = self.peak_rate_bytes_per_s.unwrap_or(0);
        let burst = self.rate_clock().map_or(self.burst_bytes, |c| c.widest(self.burst_bytes));
        let mut options = attribute(TCA_TBF_PARMS, &self.parms(burst, peak));
        options.extend(attribute(TCA_TBF_BURST, &burst.to_ne_bytes()));
        options.extend(rate64(TCA_TBF_RATE64, self.rate_bytes_per_s));
        options.extend(rate64(TCA_TBF_PRATE64, peak));
        if let (Some(clock), Some(mtu)) = (self.peak_clock(), self.mtu_bytes) {
            options.extend(attribute(TCA_TBF_PBURST, &clock.widest(mtu).to_ne_bytes()));
        }
        options
    }

    fn parms(&self, burst: u32, peak: u64) -> Vec<u8> {
        let peak_spec = if peak == 0 { [0; RATE_SPEC_BYTES] } else { self.peak_spec.emit(peak) };
        let buffer = self.rate_clock().map_or(0, |clock| clock.ticks(burst));
        let mtu = self.peak_clock().zip(self.mtu_bytes).map_or(0, |(c, bytes)| c.ticks(bytes));
        let mut bytes = self.rate_spec.emit(self.rate_bytes_per_s).to_vec();
        bytes.extend(peak_spec);
        bytes.extend(self.limit_bytes.to_ne_bytes());
        bytes.extend(buffer.to_ne_bytes());
        bytes.extend(mtu.to_ne_bytes());
        bytes
    }

    fn rate_clock(&self) -> Option<Clock> {
        Clock::new(self.rate_bytes_per_s, self.rate_spec)
    }

    fn peak_clock(&self) -> Option<Clock> {
        Clock::new(self.peak_rate_bytes_per_s?, self.peak_spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_options_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Tbf::parse(&bytes);
            let mut options = vec![40, 0, 1, 0];
            options.extend(bytes);
            let _ = Tbf::parse(&options).map(|tbf| tbf.emit());
        }

        #[test]
        fn any_bucket_reads_back_the_same_after_a_second_writing(
            rate in 1u64..1 << 40, burst in 1u32..1 << 30, limit in any::<u32>()
        ) {
            let first = Tbf::parse(&Tbf::new(rate, burst, limit).emit()).unwrap();
            let second = Tbf::parse(&first.emit()).unwrap();
            prop_assert_eq!(first, second);
        }
    }

    #[test]
    fn a_bucket_survives_its_bytes() {
        for rate in [12_500_000, 125_000_000, 5_000_000_000] {
            let mut tbf = Tbf::new(rate, 12_500, 300_000);
            assert_eq!(Tbf::parse(&tbf.emit()), Some(tbf.as_read_back()));
            tbf.peak_rate_bytes_per_s = Some(rate * 2);
            tbf.mtu_bytes = Some(1600);
            assert_eq!(Tbf::parse(&tbf.emit()), Some(tbf.as_read_back()));
        }
    }

    #[test]
    fn bytes_cut_short_are_no_bucket() {
        let bytes = Tbf::new(12_500_000, 12_500, 300_000).emit();
        for length in 0..PARMS_BYTES + 4 {
            assert_eq!(Tbf::parse(&bytes[..length]), None, "{length}");
        }
    }
}
