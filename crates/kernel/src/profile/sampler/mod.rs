//! The perf event of one thread.

mod buffer;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use goodput_model::{Missing, ProfileClock};
use perf_event_open_sys::bindings::{
    PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_SW_CPU_CLOCK, PERF_FLAG_FD_CLOEXEC, PERF_SAMPLE_CALLCHAIN,
    PERF_SAMPLE_IP, PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, perf_event_attr,
};

use super::refusal;
use super::sample::Sample;
use buffer::SampleBuffer;

/// Most functions of a call chain, from the innermost one: enough to leave helpers of helpers.
const MAX_CHAIN: u16 = 16;

/// Takes the samples of one thread.
#[derive(Debug)]
pub struct ThreadSampler(SampleBuffer);

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
        self.0.drain(|kind, misc, body| {
            Sample::parse(kind, misc, body).into_iter().for_each(&mut take)
        });
    }
}

fn sampler(thread: i32, samples_per_s: u32, clock: ProfileClock) -> io::Result<SampleBuffer> {
    let (kind, config) = match clock {
        ProfileClock::Cycles => (PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES.into()),
        ProfileClock::CpuClock => (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK.into()),
    };
    let mut event = perf_event_attr::default();
    event.type_ = kind;
    event.config = config;
    event.size = size_of::<perf_event_attr>() as u32;
    event.sample_type = u64::from(PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN);
    event.sample_max_stack = MAX_CHAIN;
    event.__bindgen_anon_1.sample_freq = samples_per_s.into();
    event.set_freq(1);
    event.set_exclude_hv(1);
    event.set_exclude_callchain_user(1);
    SampleBuffer::of(opened(&mut event, thread)?)
}

/// Counts in this thread, on any CPU.
#[expect(unsafe_code, reason = "the bindings are as unsafe as the call")]
fn opened(event: &mut perf_event_attr, thread: i32) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads the attributes, as long as they say, and may write the length that it knows.
    let opened = unsafe {
        perf_event_open_sys::perf_event_open(event, thread, -1, -1, PERF_FLAG_FD_CLOEXEC.into())
    };
    match opened {
        0.. => {
            // SAFETY: the descriptor is new, and nobody else has it.
            Ok(unsafe { OwnedFd::from_raw_fd(opened) })
        }
        _ => Err(io::Error::last_os_error()),
    }
}
