//! Times of queueing disciplines that the kernel keeps in its own units. It rounds them down when they are set
//! and again when they are read: 3999 µs written to codel reads 3998, and 3998 written back reads 3997.

use crate::raw::{attribute, attributes};

/// `1 << CODEL_SHIFT`, include/net/codel.h.
const CODEL_UNIT_NS: u64 = 1024;
/// `1 << PSCHED_SHIFT`, include/net/pkt_sched.h.
const TICK_NS: u64 = 64;
const NS_PER_US: u64 = 1000;

/// The unit of a kind of queueing discipline, and its attributes that are times in this unit, microseconds in 32
/// bits: `*_change` and `*_dump` of net/sched/sch_{codel,fq_codel,pie}.c, numbers from
/// include/uapi/linux/pkt_sched.h.
fn times_of(kind: &str) -> (u64, &'static [u16]) {
    match kind {
        // TCA_CODEL_TARGET, _INTERVAL, _CE_THRESHOLD
        "codel" => (CODEL_UNIT_NS, &[1, 3, 5]),
        // TCA_FQ_CODEL_TARGET, _INTERVAL, _CE_THRESHOLD
        "fq_codel" => (CODEL_UNIT_NS, &[1, 3, 7]),
        // TCA_PIE_TARGET
        "pie" => (TICK_NS, &[1]),
        _ => (1, &[]),
    }
}

/// The content of `TCA_OPTIONS` to write so that the kernel reads back `options`.
pub(crate) fn written_for(kind: &str, options: &[u8]) -> Vec<u8> {
    let (unit_ns, times) = times_of(kind);
    if times.is_empty() {
        return options.to_vec();
    }
    let rewritten = attributes(options).map(|(id, value)| match <[u8; 4]>::try_from(value) {
        Ok(read_us) if times.contains(&id) => {
            let written_us = smallest_read_as(u32::from_ne_bytes(read_us), unit_ns);
            attribute(id, &written_us.to_ne_bytes())
        }
        _ => attribute(id, value),
    });
    rewritten.flatten().collect()
}

/// The smallest time, microseconds, that reads back as `read_us` after the kernel has kept it as whole units.
fn smallest_read_as(read_us: u32, unit_ns: u64) -> u32 {
    let units = (u64::from(read_us) * NS_PER_US).div_ceil(unit_ns);
    let written_us = (units * unit_ns).div_ceil(NS_PER_US);
    u32::try_from(written_us).unwrap_or(read_us)
}

/// What the kernel reports for an attribute of a kind of queueing discipline after `written_us` microseconds were
/// set; the same number if the attribute is no such time.
pub fn kept_time(kind: &str, attribute: u16, written_us: u32) -> u32 {
    match times_of(kind) {
        (unit_ns, times) if times.contains(&attribute) => kept(written_us, unit_ns),
        _ => written_us,
    }
}

/// A time that the kernel keeps as whole units: both divisions round down.
fn kept(written_us: u32, unit_ns: u64) -> u32 {
    let units = u64::from(written_us) * NS_PER_US / unit_ns;
    u32::try_from(units * unit_ns / NS_PER_US).unwrap_or(written_us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_times_are_rewritten() {
        let options = |target: u32| {
            [attribute(1, &target.to_ne_bytes()), attribute(2, &3998u32.to_ne_bytes())].concat()
        };
        assert_eq!(written_for("codel", &options(3998)), options(3999));
        assert_eq!(written_for("fq", &options(3998)), options(3998));
        assert_eq!(written_for("pfifo", &[1, 2, 3, 4]), [1, 2, 3, 4]);
    }

    proptest! {
        #[test]
        fn what_was_read_is_read_again(written_us in any::<u32>(), ticks: bool) {
            let unit_ns = if ticks { TICK_NS } else { CODEL_UNIT_NS };
            let read_us = kept(written_us, unit_ns);
            prop_assert_eq!(kept(smallest_read_as(read_us, unit_ns), unit_ns), read_us);
        }
    }
}
