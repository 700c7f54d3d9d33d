//! Entries that are not programs: what this machine can do at best, measured in the same round.

use std::time::Duration;

use anyhow::Result;
use goodput_mover::reference::{beyond_cache_bytes, call_cost, copy_speed};

use crate::bench::contest::{Entry, Kind};
use crate::bench::load::Load;
use crate::bench::measure::RATE;
use crate::bench::measure::Values;
use crate::bench::stage::Stage;

/// How long each is measured.
const MEASURING_TIME: Duration = Duration::from_millis(200);

/// Copying a chunk that stays in the caches, like payload that is sent from the same buffer.
pub const COPY_IN_CACHE: Entry =
    Entry { name: "copying alone, in cache", kind: Kind::Measured(copy_in_cache) };

/// Copying memory that no cache holds.
pub const COPY_IN_MEMORY: Entry =
    Entry { name: "copying alone, in memory", kind: Kind::Measured(copy_in_memory) };

/// One empty system call per chunk, and no copy.
pub const CALLS: Entry = Entry { name: "empty system calls alone", kind: Kind::Measured(calls) };

fn copy_in_cache(_: &Stage<'_>, load: &Load) -> Result<Values> {
    Ok(rate(copy_speed(load.chunk_bytes.into(), MEASURING_TIME).bytes_per_s))
}

fn copy_in_memory(_: &Stage<'_>, _: &Load) -> Result<Values> {
    Ok(rate(copy_speed(beyond_cache_bytes(), MEASURING_TIME).bytes_per_s))
}

fn calls(_: &Stage<'_>, load: &Load) -> Result<Values> {
    let call_s = call_cost(MEASURING_TIME).nanoseconds / 1e9;
    Ok(rate(f64::from(load.chunk_bytes) / call_s))
}

fn rate(bytes_per_s: f64) -> Values {
    Values::from([(RATE.id.into(), bytes_per_s * 8.0)])
}
