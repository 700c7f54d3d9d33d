//! Thresholds that several rules share, each with where it comes from.

/// Share of the ceiling from which nothing is left to gain (order of elimination, step 2).
pub const MIN_SHARE_OF_CEILING: f64 = 0.97;
/// Share of a shaper's rate from which the shaper gives what it is configured to. Lower than
/// [`MIN_SHARE_OF_CEILING`]: with a bucket of one frame a shaper still gives 96 % at 100 Mbit/s.
pub const MIN_SHARE_OF_SHAPER_RATE: f64 = 0.95;
/// Share of a shaper's rate from which a shaper that makes packets wait is what limits, though it
/// falls a little short: wake-ups come late on a busy machine.
pub const MIN_SHARE_OF_SHAPER_RATE_IF_WAITING: f64 = 0.9;
/// Share of the packets lost or dropped from which it matters whatever a model says.
pub const MIN_HEAVY_LOSS_SHARE: f64 = 0.005;
/// A cause that holds the sender for at least this share of the time is what limits it.
pub const MIN_LIMITING_TIME_SHARE: f64 = 0.5;
/// Share of the time from which a window or buffer contributes to the limit, if something else holds the sender
/// longer and it would allow no more than [`MAX_CONTRIBUTING_RATE_RATIO`] times the goodput.
pub const MIN_CONTRIBUTING_TIME_SHARE: f64 = 0.15;
/// Rate that a contributing window or buffer would allow, over the goodput, see [`MIN_CONTRIBUTING_TIME_SHARE`].
pub const MAX_CONTRIBUTING_RATE_RATIO: f64 = 1.6;
/// Delivery rate that TCP saw, over the goodput, from which the path is known to carry more.
pub const MIN_SPARE_RATE_RATIO: f64 = 1.15;
/// Round-trip time from which a path is longer than the hosts' own work and scheduling, seconds: below it
/// a window, a queue or a late packet may be theirs.
pub const LONG_PATH_S: f64 = 0.001;
/// What late scheduling adds to a round trip on a host whose CPUs are all busy, seconds: a time slice of the
/// scheduler (Documentation/scheduler/sched-eevdf.rst; 2.8 ms on two CPUs) at each end. Measured: 0.5 to 4.5 ms.
pub const LATE_S: f64 = 0.006;
/// A writer or reader that waits for less than this share of the time is itself what limits.
pub const MAX_WAIT_SHARE_OF_LIMITING_THREAD: f64 = 0.1;
/// A reader that waits for data less than this share of the time does not keep up, and neither does
/// a writer that waits for space in its send buffer so rarely.
pub const MAX_WAIT_SHARE_OF_SLOW_THREAD: f64 = 0.25;
/// Share of the time in which a thread neither waits nor runs, from which it is not its own work that
/// takes the time. Late wake-ups alone were measured to give up to 0.15.
pub const MIN_STOPPED_TIME_SHARE: f64 = 0.3;
/// Share of its own turn that a CPU-bound thread spends on the CPU. The rest it waits for a CPU.
pub const MIN_CPU_SHARE_OF_OWN_TURN: f64 = 0.85;
/// Share of all CPUs of a host in use from which none is left.
pub const MIN_BUSY_SHARE_OF_ALL_CPUS: f64 = 0.95;
/// Share of wall time from which a thread counts as CPU-bound without a second witness.
pub const MIN_CPU_SHARE_OF_WALL_TIME: f64 = 0.9;
/// Share of wall time that a quota may hold a process back before it counts.
pub const MIN_THROTTLED_TIME_SHARE: f64 = 0.05;
/// Loaded over smallest round-trip time from which a queue on the path counts as full.
pub const MIN_FULL_QUEUE_RTT_RATIO: f64 = 1.25;
/// The same if the rate shows a queue too.
pub const MIN_LIKELY_QUEUE_RTT_RATIO: f64 = 1.1;
/// Relative spread of goodput over slices of the window below which it is a plateau.
pub const MAX_PLATEAU_SPREAD_RATIO: f64 = 0.05;
/// A rate is raised to at most this many times the present one by extrapolating CPU cost; beyond
/// it the present share of CPU says too little.
pub const MAX_EXTRAPOLATION_RATIO: f64 = 4.0;
