//! In place of a sampler, on processors that the library for perf events doesn't know.

use goodput_model::{Missing, ProfileClock};

use super::sample::Sample;

/// Exists nowhere.
#[derive(Debug)]
pub enum ThreadSampler {}

/// The outcome of an attempt to sample a thread.
pub enum Opened {
    /// Never.
    #[expect(dead_code, reason = "the same shape on all processors")]
    Sampler(ThreadSampler, ProfileClock),
    /// Always.
    Refused(Missing),
    /// Never.
    #[expect(dead_code, reason = "the same shape on all processors")]
    ThreadIsGone,
}

impl ThreadSampler {
    /// Always refused.
    pub fn open(_thread: i32, _samples_per_s: u32, _clock: Option<ProfileClock>) -> Opened {
        Opened::Refused(Missing::because(
            "goodput takes samples by perf events on x86, arm64 and riscv64 only",
        ))
    }

    /// Never called.
    pub fn drain(&mut self, _take: impl FnMut(Sample)) {
        match *self {}
    }
}
