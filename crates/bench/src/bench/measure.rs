//! The measures of a run: each value is kept under its measure's id.

use std::collections::BTreeMap;

/// The measured values of a run, under the ids of the measures.
pub type Values = BTreeMap<String, f64>;

/// One measure, and how a page shows it.
#[derive(Debug)]
pub struct Measure {
    /// Its name in the kept results, with the unit.
    pub id: &'static str,
    /// The head of its column.
    pub heading: &'static str,
    /// The factor from the kept to the shown value.
    pub scale: f64,
    /// Digits after the decimal point.
    pub digits: usize,
    /// Which of two contestants is better.
    pub better: Better,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    Higher,
    Lower,
}

const fn measure(
    id: &'static str,
    heading: &'static str,
    scale: f64,
    digits: usize,
    better: Better,
) -> Measure {
    Measure { id, heading, scale, digits, better }
}

/// The receiver's count.
pub static RATE: Measure = measure("bits_per_s", "Gbit/s", 1e-9, 3, Better::Higher);
/// The same in datagrams.
pub static PACKETS: Measure = measure("packets_per_s", "1000 packets/s", 1e-3, 1, Better::Higher);
/// Datagrams that were sent and not received.
pub static LOSS: Measure = measure("lost_percent", "lost, %", 1.0, 2, Better::Lower);
/// User and system time of both processes, from start to end, per 10^9 received bytes.
pub static CPU: Measure = measure("cpu_s_per_gb", "CPU s/GB", 1.0, 3, Better::Lower);
/// High-resolution timers that the kernel served, for all programs of the machine.
pub static TIMERS: Measure = measure("timers_per_s", "1000 timers/s", 1e-3, 1, Better::Lower);
/// Share of CPU time: all threads except those of the flows, relative to all threads of both processes.
pub static BESIDE: Measure =
    measure("beside_percent", "CPU beside the flows, %", 1.0, 3, Better::Lower);
/// The highest resident memory of the client, 10^6 bytes (`VmHWM`, proc_pid_status(5)).
pub static NEAR_PEAK: Measure = measure("near_peak_bytes", "client, MB", 1e-6, 1, Better::Lower);
/// The same for the server.
pub static FAR_PEAK: Measure = measure("far_peak_bytes", "server, MB", 1e-6, 1, Better::Lower);
/// How far the mean rate at the receiving device is from the requested rate, in either direction.
pub static RATE_ERROR: Measure =
    measure("rate_error_percent", "mean off by, %", 1.0, 4, Better::Lower);
/// Gaps between packets at the receiving device within 20 % of the ideal.
pub static EVEN_GAPS: Measure =
    measure("even_gaps_percent", "gaps within 20 %, %", 1.0, 2, Better::Higher);
/// From before the client is started to the first payload on the wire.
pub static FIRST_BYTE: Measure =
    measure("first_byte_ms", "first byte after, ms", 1.0, 2, Better::Lower);
/// Clients of many that ended with an error, or without a count.
pub static FAILED: Measure =
    measure("failed_percent", "clients that failed, %", 1.0, 1, Better::Lower);
/// CPU time of a server that no client uses, microseconds per second.
pub static AT_REST: Measure =
    measure("at_rest_us_per_s", "CPU at rest, µs/s", 1.0, 1, Better::Lower);
/// The program file without symbols.
pub static STRIPPED: Measure = measure("stripped_bytes", "MB", 1e-6, 2, Better::Lower);

impl Measure {
    /// Whether `this` is better than `that`.
    pub fn prefers(&self, this: f64, that: f64) -> bool {
        match self.better {
            Better::Higher => this > that,
            Better::Lower => this < that,
        }
    }
}
