//! How a host polls its network cards instead of taking interrupts.

/// Clock ticks per second below which polling(4) advises against polling: packets wait for the next tick.
const LEAST_HZ: u64 = 1000;

/// How a host polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollingRates {
    /// Clock ticks per second; every interface is polled at each tick.
    pub hz: u64,
    /// Most packets taken each time.
    pub burst_max: u64,
    /// Whether the idle CPU polls too, so that the product is no bound.
    pub idle_poll: bool,
}

impl PollingRates {
    /// Most packets per second that an interface can receive, unless the idle CPU polls.
    pub fn packets_per_s(self) -> u64 {
        self.hz.saturating_mul(self.burst_max)
    }

    /// The bound in words; `None` if an idle CPU polls too, between the ticks and as often as it can.
    pub fn bound(self, device: &str) -> Option<String> {
        (!self.idle_poll).then(|| {
            format!(
                "polling takes at most {} packets/s from {device} (HZ {} × burst_max {})",
                self.packets_per_s(),
                self.hz,
                self.burst_max
            )
        })
    }

    /// What is wrong with the clock, if it is too slow.
    pub fn too_slow(self) -> Option<String> {
        (self.hz < LEAST_HZ).then(|| {
            format!(
                "the host's clock has {} ticks/s, and packets wait for the next tick; polling(4) asks for at least {LEAST_HZ}: \
                 write kern.hz=\"{LEAST_HZ}\" into /boot/loader.conf and reboot",
                self.hz
            )
        })
    }
}
