//! In place of a sampler, on processors that the library for perf events doesn't know.

use goodput_model::{Missing, ProfileClock};

use super::sample::Sample;

/// Exists nowhere.
#[derive(Debug)]
pub enum ThreadSampler {}

impl ThreadSampler {
    /// Always refused.
    pub fn open(
        _thread: i32,
        _samples_per_s: u32,
        _clock: Option<ProfileClock>,
    ) -> Result<Option<(Self, ProfileClock)>, Missing> {
        Err(Missing::because("goodput takes samples by perf events on x86, arm64 and riscv64 only"))
    }

    /// Never called.
    pub fn drain(&mut self, _take: impl FnMut(Sample)) {
        match *self {}
    }
}
