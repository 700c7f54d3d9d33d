//! Probes beside the flows: round trips on the idle path and under load.

use goodput_model::{Fetches, IdleAndLoaded, Missing};

use super::View;

/// Median round trips of one kind of probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probed {
    /// What was timed.
    pub way: &'static str,
    /// Before the flows began, seconds.
    pub idle_s: f64,
    /// While they ran, seconds.
    pub loaded_s: f64,
}

impl Probed {
    /// How much longer they took under load, seconds; below zero if they took less.
    pub fn waits_s(&self) -> f64 {
        self.loaded_s - self.idle_s
    }

    fn of(way: &'static str, trips: &IdleAndLoaded) -> Result<Self, Missing> {
        let (idle, loaded) = (trips.idle.get()?, trips.loaded.get()?);
        Ok(Self { way, idle_s: idle.p50_us / 1e6, loaded_s: loaded.p50_us / 1e6 })
    }
}

impl View<'_> {
    /// How fetching the file went, if the target is a file.
    pub fn fetches(&self) -> Option<&Fetches> {
        self.evidence.fetches.as_ref()
    }

    /// The probes that waited less, connections or echoes: both cross the same queues, and a longer wait of
    /// one kind is due to a host. Missing if none were measured, or no request was answered.
    pub fn probed(&self) -> Result<Probed, Missing> {
        let latency = self.evidence.latency.as_ref();
        let latency =
            latency.ok_or_else(|| Missing::because("no round trips were measured (--latency)"))?;
        let connect = Probed::of("connections", &latency.tcp_connect);
        let echo = Probed::of("echoes", &latency.udp_echo);
        match (connect, echo) {
            (Ok(a), Ok(b)) => Ok(if b.waits_s() < a.waits_s() { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}
