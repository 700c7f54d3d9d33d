//! The token bucket on the sender's own device, if there is one.

use goodput_model::Missing;

use crate::framing::{Packet, QDISC_EXTRA};
use crate::names;
use crate::view::View;

/// Disciplines that hold a rate.
const SHAPERS: [&str; 4] = ["tbf", "htb", "hfsc", "cake"];
/// Burst below which super-packets of segmentation offload are cut up, bytes: 64 KiB and the
/// headers of their 45 segments.
const BATCH_BYTES: f64 = 70_000.0;
/// Lateness of a wake-up that a bucket must bridge, seconds.
const LATENESS_S: f64 = 0.001;

/// A shaper on the sender's device.
#[derive(Debug, Clone, PartialEq)]
pub struct Shaper<'a> {
    /// Discipline.
    pub kind: &'a str,
    /// Device it sits on.
    pub device: &'a str,
    /// Rate it was told, in the bytes it counts, bits per second.
    pub rate: f64,
    /// Goodput that this rate allows, bits per second.
    pub ceiling: f64,
    /// Length of a full frame as it counts it, bytes.
    pub frame: f64,
}

impl<'a> Shaper<'a> {
    /// The shaper on the sender's device; `None` where there is none.
    pub fn of(view: &View<'a>) -> Result<Option<Self>, Missing> {
        let side = &view.sender;
        let kind = side.text(names::QDISC_KIND)?;
        // A class of htb sends up to its ceil as long as its parent lends.
        let told = side.count(names::QDISC_CEIL).or_else(|_| side.count(names::QDISC_RATE));
        let rate = match told {
            Ok(rate) if rate > 0.0 => rate,
            Err(why) if SHAPERS.contains(&kind) => return Err(why),
            _ => return Ok(None),
        };
        let packet = Packet::of(view)?;
        Ok(Some(Self {
            kind,
            device: side.device()?,
            rate,
            ceiling: rate * packet.share(QDISC_EXTRA),
            frame: packet.counted_frame(),
        }))
    }

    /// Burst that costs neither goodput nor batching: 1 ms of the rate, at least one super-packet.
    pub fn needed_burst(&self) -> f64 {
        BATCH_BYTES.max(self.rate / 8.0 * LATENESS_S)
    }

    /// How late each packet would have to leave, on average, to explain `goodput`: the cycle of one
    /// packet stretches by the lateness that the bucket can't bridge (reference section 3.1).
    /// Microseconds.
    pub fn implied_lateness_us(&self, goodput: f64) -> f64 {
        self.frame * 8.0 / self.rate * (self.ceiling / goodput - 1.0) * 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_follows_the_measured_curve() {
        // 1 Gbit/s with 1600 bytes gives 75 % of its ceiling: 4.1 µs late, as measured.
        let shaper =
            Shaper { kind: "tbf", device: "eth0", rate: 1e9, ceiling: 956.4e6, frame: 1514.0 };
        let late = shaper.implied_lateness_us(0.75 * 956.4e6);
        assert!((3.9..4.3).contains(&late), "{late}");
        assert_eq!(shaper.needed_burst(), 125_000.0);
    }
}
