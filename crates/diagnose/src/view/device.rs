//! Counts of the devices, and of the CPUs that serve them, between the two snapshots.

use goodput_model::Missing;

use super::{Side, positive};
use crate::names;

/// Counters of frames that found no free receive descriptor. Driver, standard statistics and device
/// count the same events, so the largest counter applies and never their sum
/// (Documentation/networking/statistics.rst).
const RING: [&str; 9] = [
    names::LINK_RX_MISSED,
    "link.rx_fifo_errors",
    "link.rx_over_errors",
    "driver.rx_missed",
    "driver.rx_no_buffer",
    "driver.rx_discards",
    "driver.rx_fifo",
    "qstats.rx_hw_drop_overruns",
    "qstats.rx_alloc_fail",
];
/// Counters of frames that arrived broken.
const BROKEN: [&str; 5] = [
    "link.rx_crc_errors",
    "link.rx_frame_errors",
    "driver.rx_crc",
    "standard.fcs_errors",
    "standard.alignment_errors",
];
/// Counters of collisions after the first 64 bytes, which a link whose ends agree never has
/// (IEEE 802.3 clause 4.1.2.2). `tx_window_errors` is where drivers put them (if_link.h).
const LATE: [&str; 3] =
    ["link.tx_window_errors", "driver.late_collisions", "standard.late_collisions"];
/// Counters of pause frames from the other end of the cable.
const PAUSED: [&str; 3] = ["pause.rx_frames", "driver.rx_pause", "standard.pause_received"];
/// Counters of pause frames to the other end of the cable.
const PAUSING: [&str; 3] = ["pause.tx_frames", "driver.tx_pause", "standard.pause_sent"];

impl<'a> Side<'a> {
    /// Frames that the device lost because no receive descriptor was free.
    pub fn ring_drops(&self) -> Result<f64, Missing> {
        self.most_grown(&RING)
    }

    /// Frames that arrived broken.
    pub fn broken_frames(&self) -> Result<f64, Missing> {
        self.most_grown(&BROKEN)
    }

    /// Collisions later than the first 64 bytes.
    pub fn late_collisions(&self) -> Result<f64, Missing> {
        self.most_grown(&LATE)
    }

    /// Pause frames that asked this device to stop.
    pub fn pauses_received(&self) -> Result<f64, Missing> {
        self.most_grown(&PAUSED)
    }

    /// Pause frames by which this device asked the other end of its cable to stop.
    pub fn pauses_sent(&self) -> Result<f64, Missing> {
        self.most_grown(&PAUSING)
    }

    /// Whether the path's device is hardware; a virtual one has no cable, no ring and no bus.
    pub fn on_hardware(&self) -> Result<bool, Missing> {
        match self.text(names::LINK_KIND) {
            Ok(kind) => Ok(kind == "hardware"),
            // A host that reports its device but no kind names a driver or a speed.
            Err(_) => self.device().map(|_| true),
        }
    }

    /// Growth of the counter that grew most. Missing counters count as zero as long as one
    /// is there.
    fn most_grown(&self, names: &[&str]) -> Result<f64, Missing> {
        let read: Vec<_> = names.iter().map(|name| self.grown(name)).collect();
        let most = read.iter().filter_map(|grown| grown.as_ref().ok()).max().copied();
        match (most, read.into_iter().find_map(Result::err)) {
            (Some(most), _) => Ok(most as f64),
            (None, Some(why)) => Err(why),
            (None, None) => Err(Missing::because("no counter was asked for")),
        }
    }

    /// The counter of `names` that grew most, by name.
    fn name_of_most(&self, names: &[&'static str]) -> Option<&'static str> {
        let grown = |name: &&&str| self.grown(name).unwrap_or(0);
        names.iter().filter(|name| grown(name) > 0).max_by_key(grown).copied()
    }

    /// Name of the counter that [`Self::ring_drops`] read.
    pub fn ring_counter(&self) -> &'static str {
        self.name_of_most(&RING).unwrap_or(names::LINK_RX_MISSED)
    }

    /// Name of the counter that [`Self::broken_frames`] read.
    pub fn broken_counter(&self) -> &'static str {
        self.name_of_most(&BROKEN).unwrap_or("link.rx_crc_errors")
    }

    /// Times per second that a CPU left packets in a ring because it ran out of budget or time.
    pub fn squeezes_per_s(&self) -> Result<f64, Missing> {
        Ok(self.grown(names::SOFTNET_SQUEEZED)? as f64 / self.span_s()?)
    }

    /// How long the receive ring takes to fill at the link's full rate, seconds: frames of the
    /// device's MTU with 38 bytes around each (IEEE 802.3).
    pub fn ring_s(&self) -> Result<f64, Missing> {
        let speed = positive(self.count(names::LINK_SPEED)?, "the link's speed")?;
        let frame = self.count(names::LINK_MTU)? + crate::framing::WIRE_EXTRA_BYTES;
        Ok(self.count(names::RING_RX)? * frame * 8.0 / speed)
    }

    /// The CPU that spent the largest share of its time in interrupts and softirqs, and that share.
    pub fn softirq_cpu(&self) -> Result<(u32, f64), Missing> {
        let shares = self.interrupt_shares()?;
        let most = shares.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        most.ok_or_else(|| Missing::because("no CPU is known"))
    }

    /// The CPU with the largest share of the per-CPU counter `prefix.N`, and that share, if the counter grew.
    pub fn largest_part(&self, prefix: &str) -> Result<(u32, f64), Missing> {
        let end = self.end()?;
        let number = |name: &'a String| -> Option<u32> {
            name.strip_prefix(prefix)?.strip_prefix('.')?.parse().ok()
        };
        let cpus = end.before.facts.keys().filter_map(number);
        let grown = cpus.filter_map(|cpu| {
            let grown = end.before.grown(&end.after, &format!("{prefix}.{cpu}"));
            Some((cpu, grown.ok()? as f64))
        });
        let grown: Vec<_> = grown.collect();
        let sum = grown.iter().map(|(_, count)| count).sum();
        let sum = positive(sum, prefix)?;
        let most = grown.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        most.map(|(cpu, count)| (cpu, count / sum))
            .ok_or_else(|| Missing::because(format!("{prefix} is not counted by CPU")))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Case;
    use crate::view::View;
    use goodput_model::EndName::Far;

    #[test]
    fn views_of_the_same_events_are_not_added_up() {
        let case = Case::healthy().grows(Far, "driver.rx_missed", 70).grows(
            Far,
            "link.rx_missed_errors",
            70,
        );
        let evidence = case.evidence();
        let view = View::new(&evidence);
        assert_eq!(view.receiver.ring_drops(), Ok(70.0));
        assert!(view.receiver.pauses_sent().is_err());
    }

    #[test]
    fn a_ring_of_256_lasts_3_ms_at_a_gigabit() {
        let evidence = Case::healthy().fact(Far, crate::names::RING_RX, 256u64).evidence();
        let lasts = View::new(&evidence).receiver.ring_s().unwrap();
        assert!((lasts - 3.15e-3).abs() < 1e-5, "{lasts}");
    }

    #[test]
    fn the_cpu_that_counted_most_is_named() {
        let case = Case::healthy().grows(Far, "softnet.0.dropped", 1);
        let case = case.grows(Far, "interrupts.device.0", 10).grows(Far, "interrupts.device.1", 30);
        let evidence = case.evidence();
        let receiver = &View::new(&evidence).receiver;
        assert_eq!(receiver.largest_part("interrupts.device"), Ok((1, 0.75)));
        assert!(receiver.largest_part("interrupts.other").is_err());
    }
}
