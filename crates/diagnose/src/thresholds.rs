//! Thresholds that several rules share, each with its source.

/// A rate below this multiple of the goodput is not worth a change.
pub const MIN_WORTHWHILE_RATE_RATIO: f64 = 1.05;
/// Share of the flows' time below which a part of the account costs too little to matter. Without a part that took the share
/// s, the same bytes take 1 - s of the time, so the rate grows to 1 / (1 - s) at most: less than this is not worth a change.
pub const MIN_COSTLY_SHARE: f64 = 1.0 - 1.0 / MIN_WORTHWHILE_RATE_RATIO;
/// Share of the ceiling at which nothing is left to gain (order of elimination, step 2).
pub const MIN_SHARE_OF_CEILING: f64 = 0.97;
/// Share of a shaper's rate at which the shaper gives its configured rate. Lower than
/// [`MIN_SHARE_OF_CEILING`]: with a bucket of one frame a shaper still gives 96 % at 100 Mbit/s.
pub const MIN_SHARE_OF_SHAPER_RATE: f64 = 0.95;
/// Share of a shaper's rate at which a shaper that makes packets wait is the limit, though it
/// falls a little short: wake-ups come late on a busy machine.
pub const MIN_SHARE_OF_SHAPER_RATE_IF_WAITING: f64 = 0.9;
/// Share of packets lost or dropped at which loss matters whatever a model says.
pub const MIN_HEAVY_LOSS_SHARE: f64 = 0.005;
/// A cause that holds the sender for at least this share of the time is what limits it.
pub const MIN_LIMITING_TIME_SHARE: f64 = 0.5;
/// Another rate over the present one, at which more is known to be possible: the delivery rate that TCP saw over the
/// goodput, or what another class of a shaper may send over what the own one may.
pub const MIN_SPARE_RATE_RATIO: f64 = 1.15;
/// Round-trip time at which a path is longer than the hosts' own work and scheduling, seconds: below it
/// a window, a queue or a late packet may be due to the hosts.
pub const LONG_PATH_S: f64 = 0.001;
/// How much late scheduling adds to a round trip on a host whose CPUs are all busy, seconds: a time slice of the
/// scheduler (Documentation/scheduler/sched-eevdf.rst; 2.8 ms on two CPUs) at each end. Measured: 0.5 to 4.5 ms.
pub const LATE_S: f64 = 0.006;
/// A writer or reader that waits for less than this share of the time is itself the limit.
pub const MAX_WAIT_SHARE_OF_LIMITING_THREAD: f64 = 0.1;
/// A reader that waits for data less than this share of the time does not keep up. The same applies to
/// a writer that waits for space in its send buffer.
pub const MAX_WAIT_SHARE_OF_SLOW_THREAD: f64 = 0.25;
/// Share of the time in which a thread neither waits nor runs, at which its own work does not explain
/// the time. Late wake-ups alone were measured to give up to 0.15.
pub const MIN_STOPPED_TIME_SHARE: f64 = 0.3;
/// Share of its own turn that a CPU-bound thread spends on the CPU; for the rest it waits for a CPU.
pub const MIN_CPU_SHARE_OF_OWN_TURN: f64 = 0.85;
/// Share of all CPUs of a host in use at which no CPU is left.
pub const MIN_BUSY_SHARE_OF_ALL_CPUS: f64 = 0.95;
/// Share of wall time at which a thread counts as CPU-bound without a second witness.
pub const MIN_CPU_SHARE_OF_WALL_TIME: f64 = 0.9;
/// Share of wall time for which a quota may throttle a process before it counts.
pub const MIN_THROTTLED_TIME_SHARE: f64 = 0.05;
/// Loaded over smallest round-trip time at which a queue on the path counts as full.
pub const MIN_FULL_QUEUE_RTT_RATIO: f64 = 1.25;
/// The same if the rate shows a queue too.
pub const MIN_LIKELY_QUEUE_RTT_RATIO: f64 = 1.1;
/// Relative spread of goodput over slices of the window below which it is a plateau.
pub const MAX_PLATEAU_SPREAD_RATIO: f64 = 0.05;
/// Extrapolation from CPU cost or from a window raises a rate to at most this many times the present one; beyond
/// this, the present share of the CPU or of the window says too little.
pub const MAX_EXTRAPOLATION_RATIO: f64 = 4.0;
