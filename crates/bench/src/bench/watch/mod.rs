//! Observes a run from outside its programs: packets with the kernel's time of each, threads, or timers.

mod capture;
mod even;
mod first_byte;
mod threads;
mod timers;

use std::time::SystemTime;

use anyhow::Result;

use super::measure::Values;
use super::programs::{Job, Program};
use super::stage::Stage;
use capture::Capture;
use threads::Threads;
use timers::Timers;

/// What to observe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// Nothing.
    Nothing,
    /// How evenly paced datagrams arrive at the receiving device.
    Even,
    /// When the first payload is on the wire.
    FirstByte,
    /// Which threads of goodput use the CPU.
    Threads,
    /// How many high-resolution timers the kernel serves.
    Timers,
}

/// A run under observation.
pub enum Watched {
    Nothing,
    Even(Capture),
    FirstByte(Capture),
    Threads(Threads),
    Timers(Timers),
}

/// Packets that suffice to find the first one with payload: a busy device would fill the disk.
const FIRST_PACKETS: u32 = 4000;

impl Watched {
    /// Starts; packets from now on are seen.
    pub fn start(watch: Watch, stage: &Stage<'_>) -> Result<Self> {
        Ok(match watch {
            Watch::Nothing => Self::Nothing,
            Watch::Even => Self::Even(Capture::start(stage, "udp and greater 200", None)?),
            Watch::FirstByte => Self::FirstByte(Capture::start(stage, "tcp", Some(FIRST_PACKETS))?),
            Watch::Threads => Self::Threads(Threads::default()),
            Watch::Timers => Self::Timers(Timers::start()?),
        })
    }

    /// Samples the processes of a run. Called repeatedly until the client has ended.
    pub fn look(&mut self, processes: [u32; 2]) {
        if let Self::Threads(threads) = self {
            processes.into_iter().for_each(|process| threads.look(process));
        }
    }

    /// Ends, and returns the observations of the run whose client was started at `began`.
    pub fn finish(self, job: &Job<'_>, program: &Program, began: SystemTime) -> Result<Values> {
        match self {
            Self::Nothing => Ok(Values::new()),
            Self::Even(capture) => even::values(&capture.finish()?, job.load),
            Self::FirstByte(capture) => first_byte::values(&capture.finish()?, program, began),
            Self::Threads(threads) => threads.values(),
            Self::Timers(timers) => timers.values(),
        }
    }
}
