//! The perf event of one thread, and its buffer of samples.

use std::fmt;
use std::io;

use goodput_model::{Missing, ProfileClock};
use perf_event::events::{Hardware, Software};
use perf_event::{Builder, SampleFlag, Sampler};

use super::refusal;
use super::sample::Sample;

/// Length of the buffer, bytes: a power of two pages. With call chains, a sample takes up to 160 bytes, so that it holds
/// those of 0.8 s.
const BUFFER_BYTES: usize = 64 << 10;

/// Most functions of a call chain, from the innermost one: enough to leave helpers of helpers.
const MAX_CHAIN: u16 = 16;

/// Takes the samples of one thread.
pub struct ThreadSampler(Sampler);

impl fmt::Debug for ThreadSampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ThreadSampler")
    }
}

impl ThreadSampler {
    /// Begins to sample `thread` of this process: by `clock`, or by the processor's cycles, if it counts them for us.
    /// Returns the clock as well; `None` if the thread has ended.
    pub fn open(
        thread: i32,
        samples_per_s: u32,
        clock: Option<ProfileClock>,
    ) -> Result<Option<(Self, ProfileClock)>, Missing> {
        let clocks = match clock {
            Some(same) => vec![same],
            None => vec![ProfileClock::Cycles, ProfileClock::CpuClock],
        };
        let mut refused = io::Error::from(io::ErrorKind::Unsupported);
        for clock in clocks {
            match sampler(thread, samples_per_s, clock) {
                Ok(sampler) => return Ok(Some((Self(sampler), clock))),
                Err(cause) => refused = cause,
            }
        }
        match refused.raw_os_error() {
            Some(libc::ESRCH) => Ok(None),
            _ => Err(refusal::reason(&refused)),
        }
    }

    /// Takes all samples out of the buffer.
    pub fn drain(&mut self, mut take: impl FnMut(Sample)) {
        while let Some(record) = self.0.next_record() {
            if let Some(sample) = Sample::parse(record.ty(), record.misc(), &record.to_contiguous())
            {
                take(sample);
            }
        }
    }
}

fn sampler(thread: i32, samples_per_s: u32, clock: ProfileClock) -> io::Result<Sampler> {
    let mut event = match clock {
        ProfileClock::Cycles => Builder::new(Hardware::CPU_CYCLES),
        ProfileClock::CpuClock => Builder::new(Software::CPU_CLOCK),
    };
    event
        .observe_pid(thread)
        .any_cpu()
        .include_kernel()
        .sample_frequency(samples_per_s.into())
        .sample(SampleFlag::IP | SampleFlag::CALLCHAIN)
        .exclude_callchain_user(true)
        .sample_max_stack(MAX_CHAIN);
    let mut sampler = event.build()?.sampled(BUFFER_BYTES)?;
    sampler.enable()?;
    Ok(sampler)
}
