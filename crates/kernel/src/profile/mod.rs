//! Where the CPU time of this process's threads goes: samples of what they do, by perf events (perf_event_open(2)).

mod counts;
mod groups;
mod refusal;
mod sample;
#[cfg_attr(
    not(any(
        target_arch = "x86_64",
        target_arch = "x86",
        target_arch = "aarch64",
        target_arch = "riscv64"
    )),
    path = "no_sampler.rs"
)]
mod sampler;
mod symbols;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use goodput_model::{CpuProfile, Known, Missing, ProfileClock};

use counts::Counts;
use sampler::ThreadSampler;
pub use symbols::Symbols;

/// Samples of each thread for each second of its CPU time. Not a divisor of the scheduler's ticks, which would always
/// be met at the same place.
const SAMPLES_PER_S: u32 = 499;

/// How often the samples are taken out of the kernel's buffers, which hold several times as many.
const DRAIN_EVERY: Duration = Duration::from_millis(200);

/// Most threads that are sampled. Each takes a descriptor and 68 KiB of locked memory.
const MAX_THREADS: usize = 64;

/// Samples the threads of this process until it is finished, or dropped.
#[derive(Debug)]
pub struct Profiler {
    stop: Sender<()>,
    thread: JoinHandle<Known<CpuProfile>>,
}

impl Profiler {
    /// Begins to sample every thread of this process except its own, also those that start later. `symbols` names the
    /// functions of the kernel.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn begin(symbols: Result<Symbols, Missing>) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let work = move || Watch::new(symbols).run(&stopped);
        let thread = Builder::new().name("profiler".into()).spawn(work)?;
        Ok(Self { stop, thread })
    }

    /// Ends the sampling. The profile is missing if the kernel refused, with the reason and what would permit it.
    pub fn finish(self) -> Known<CpuProfile> {
        // The thread ends when the other end of its channel is gone.
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_| Known::missing("the profiling thread panicked"))
    }
}

/// The threads that are sampled, and what was seen.
struct Watch {
    counts: Counts,
    samplers: BTreeMap<i32, ThreadSampler>,
    clock: Option<ProfileClock>,
    sampled: u32,
    unsampled: BTreeMap<i32, Missing>,
}

impl Watch {
    fn new(symbols: Result<Symbols, Missing>) -> Self {
        Self {
            counts: Counts::new(symbols),
            samplers: BTreeMap::new(),
            clock: None,
            sampled: 0,
            unsampled: BTreeMap::new(),
        }
    }

    fn run(mut self, stopped: &Receiver<()>) -> Known<CpuProfile> {
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        loop {
            self.attach(own);
            let waited = stopped.recv_timeout(DRAIN_EVERY);
            self.drain();
            if waited != Err(RecvTimeoutError::Timeout) {
                return self.profile().into();
            }
            // Without a permission, nothing changes later.
            if self.samplers.is_empty() && !self.unsampled.is_empty() {
                let _ = stopped.recv();
            }
        }
    }

    /// Begins to sample threads that are new, and forgets those that have ended.
    fn attach(&mut self, own: i32) {
        let threads = own_threads();
        self.samplers.retain(|thread, _| threads.contains(thread));
        for thread in threads.into_iter().filter(|thread| *thread != own) {
            if self.samplers.contains_key(&thread) || self.unsampled.contains_key(&thread) {
                continue;
            }
            let opened = match self.samplers.len() < MAX_THREADS {
                true => ThreadSampler::open(thread, SAMPLES_PER_S, self.clock),
                false => Err(Missing::because(format!(
                    "at most {MAX_THREADS} threads are sampled at once"
                ))),
            };
            match opened {
                Ok(Some((sampler, clock))) => {
                    self.clock = Some(clock);
                    self.sampled += 1;
                    self.samplers.insert(thread, sampler);
                }
                Err(why) => {
                    self.unsampled.insert(thread, why);
                }
                Ok(None) => {}
            }
        }
    }

    fn drain(&mut self) {
        for sampler in self.samplers.values_mut() {
            sampler.drain(|sample| self.counts.add(&sample));
        }
    }

    fn profile(self) -> Result<CpuProfile, Missing> {
        let Some(clock) = self.clock else {
            let why = self.unsampled.into_values().next();
            return Err(why.unwrap_or_else(|| Missing::because("there was no thread to sample")));
        };
        let (samples, lost_samples) = (self.counts.samples(), self.counts.lost());
        if samples == 0 {
            return Err(Missing::because(
                "no sample was taken: the threads used hardly any CPU time",
            ));
        }
        let (groups, unnamed) = self.counts.shares();
        Ok(CpuProfile {
            clock,
            samples_per_s: SAMPLES_PER_S,
            samples,
            lost_samples,
            threads: self.sampled,
            unsampled_threads: u32::try_from(self.unsampled.len()).unwrap_or(u32::MAX),
            unnamed,
            groups,
        })
    }
}

/// The ids of this process's threads (proc_pid_task(5)).
fn own_threads() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let id = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.flatten().filter_map(id).collect()
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::Root;

    /// A thread that is busy until a sampler has seen it enough, or the kernel refuses.
    #[test]
    fn a_busy_thread_is_seen_or_the_reason_says_what_would_permit_it() {
        let over = AtomicBool::new(false);
        let profile = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    black_box(rustix::process::getppid());
                }
            });
            let mut watch = Watch::new(Symbols::read(&Root::default()));
            let own = rustix::thread::gettid().as_raw_nonzero().get();
            watch.attach(own);
            let has_seen = |watch: &mut Watch| {
                watch.drain();
                watch.samplers.is_empty() || watch.counts.samples() >= 20
            };
            goodput_testing::wait_for("samples", || has_seen(&mut watch));
            over.store(true, Ordering::Relaxed);
            watch.profile()
        });
        match profile {
            Ok(profile) => {
                assert!(profile.samples >= 20 && profile.threads > 0, "{profile:?}");
                let sum: f64 = profile.groups.iter().map(|share| share.percent).sum();
                assert!((sum - 100.0).abs() < 1e-6, "{profile:?}");
                assert!(profile.groups.iter().all(|share| share.percent > 0.0));
            }
            Err(why) => assert!(why.missing.contains("perf"), "{why}"),
        }
    }

    #[test]
    fn a_profiler_that_is_dropped_or_finished_at_once_ends() {
        drop(Profiler::begin(Err(Missing::because("no names"))).unwrap());
        let finished = Profiler::begin(Err(Missing::because("no names"))).unwrap().finish();
        if let Known::Value(profile) = finished {
            assert_eq!(profile.unnamed, Some(Missing::because("no names")));
        }
    }
}
