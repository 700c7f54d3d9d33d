//! The pass before the measurement: alone, so that its time can be compared with later passes.

use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use goodput_model::{Fetch, Known, Role, Transport};
use goodput_mover::{Awaited, FileMover, FlowConfig, Gate, MountedFile, PassLog, Stop};

use crate::error::EngineError;

/// How long the pass may take. The measurement itself brings what does not come in this time.
const MAX_READING_TIME: Duration = Duration::from_secs(10);
/// How long a call may go on after the pass was asked to stop. On a dead mount it never ends.
const MAX_STOPPING_TIME: Duration = Duration::from_secs(5);
/// How often to check for its end. The time of the end is known exactly anyway.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

#[derive(Debug, Default)]
struct First {
    first: OnceLock<Duration>,
    took: OnceLock<Duration>,
}

impl PassLog for First {
    fn began(&self, _flow: u16, _began: Instant, first: Duration) {
        self.first.get_or_init(|| first);
    }

    fn ended(&self, _flow: u16, _began: Instant, took: Duration, _sync: Option<Duration>) {
        self.took.get_or_init(|| took);
    }
}

/// Reads `file` once, `chunk` bytes at a time. Returns what the pass was like.
pub fn read(
    file: OwnedFd,
    whole: MountedFile,
    chunk: usize,
    awaited: &Awaited,
) -> Result<Fetch, EngineError> {
    let (name, log) = (whole.name.clone(), Arc::new(First::default()));
    let whole = MountedFile { passes: Some(1), log: Arc::<First>::clone(&log), ..whole };
    let config =
        FlowConfig { file: Some(whole), ..FlowConfig::new(Role::Receiver, Transport::Tcp, chunk) };
    let stop = Arc::new(Stop::new().map_err(EngineError::io("make the stop signal of a flow"))?);
    let gate = Arc::new(Gate::default());
    gate.open();
    let began = Instant::now();
    let running = goodput_mover::start(&FileMover, config, file, gate, Arc::clone(&stop))
        .map_err(EngineError::io("start the thread of the first pass"))?;
    let counters = Arc::clone(running.counters());
    while !running.is_finished() {
        // Giving up leaves the thread behind: nothing ends a call that the kernel does not end.
        awaited
            .check()
            .map_err(EngineError::io("wait for the first pass"))
            .inspect_err(|_| stop.abort())?;
        if began.elapsed() >= MAX_READING_TIME {
            stop.finish(Duration::ZERO);
        }
        if began.elapsed() >= MAX_READING_TIME + MAX_STOPPING_TIME {
            return Err(EngineError::Flow(format!(
                "{name} can't be read: its server or disk has not answered for {} s; see `dmesg`",
                MAX_STOPPING_TIME.as_secs()
            )));
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    let cut_after = began.elapsed();
    let cpu_wait_us = running.cpu_wait_us().map(|us| us as f64);
    running.join().map_err(|why| EngineError::Flow(why.to_string()))?;
    Ok(Fetch {
        bytes: counters.bytes(),
        whole: log.took.get().is_some(),
        first_byte_us: log.first.get().map_or(Known::missing("no byte came"), |first| {
            Known::Value(first.as_secs_f64() * 1e6)
        }),
        took_s: log.took.get().copied().unwrap_or(cut_after).as_secs_f64(),
        cpu_wait_us,
    })
}
