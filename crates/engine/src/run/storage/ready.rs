//! Makes a source warm or cold, and reads it alone to find its own rate.

use std::io;
use std::time::Duration;

use goodput_model::{BitRate, Cache, Fact, Known, Length, Plan, Source};
use goodput_mover::cache::{ReadAlone, drop_cached, read_alone, resident_percent};
use goodput_mover::{Awaited, FileSink, FileSource, write_alone};

use super::FileAccess;
use crate::error::StorageError;

/// How long a server reads a file for a client before it sends it.
const MAX_SERVED_READ_TIME: Duration = Duration::from_secs(5);
/// How long a user's file is read to warm it: as long as it takes.
const MAX_OWN_READ_TIME: Duration = Duration::from_secs(86_400);
/// How long a file is read alone for its rate: short, but longer than a disk's own cache lasts.
const READ_ALONE_TIME: Duration = Duration::from_secs(2);
/// The same for a file that is already in memory.
const READ_ALONE_WARM_TIME: Duration = Duration::from_millis(250);
/// How long a sink is written alone for its rate.
const WRITE_ALONE_TIME: Duration = Duration::from_secs(2);
/// Share of the file that may be in the wrong place without a warning, percent.
const IGNORED_RESIDENT_PERCENT: f64 = 1.0;

/// What was found.
#[derive(Default)]
pub struct Ready {
    /// By name, `source.…`.
    pub facts: Vec<(String, Known<Fact>)>,
    /// For people.
    pub doubts: Vec<String>,
}

/// Makes `file` warm or cold as `source` says, and reads it alone.
pub fn make_ready(
    file: &FileSource,
    source: &Source,
    chunk: usize,
    reach: &FileAccess,
    awaited: &Awaited,
) -> Result<Ready, StorageError> {
    let Some(bytes) = file.bytes else {
        let unknown = Known::missing("a pipe can be read only once");
        return Ok(Ready { facts: facts("input", None, unknown, no_pages()), ..Ready::default() });
    };
    let failed =
        |cause: io::Error| StorageError::of(format!("can't read {}: {cause}", file.name), &cause);
    let read = |limit| read_alone(&file.file, bytes, chunk, limit, awaited).map_err(failed);
    let (kind, alone) = match source {
        Source::File { cache: Cache::Cold, .. } => {
            drop_cached(&file.file).map_err(|cause| no_drop(&file.name, &cause))?;
            let alone = read(READ_ALONE_TIME)?;
            drop_cached(&file.file).map_err(|cause| no_drop(&file.name, &cause))?;
            ("cold", alone)
        }
        Source::File { cache: Cache::Warm, .. } => {
            read(if matches!(reach, FileAccess::User) {
                MAX_OWN_READ_TIME
            } else {
                MAX_SERVED_READ_TIME
            })?;
            ("warm", read(READ_ALONE_WARM_TIME)?)
        }
        Source::Memory(_) | Source::Input => ("memory", read(READ_ALONE_WARM_TIME)?),
    };
    let resident = resident_percent(&file.file, bytes);
    let doubts = doubt(&file.name, kind, &resident).into_iter().collect();
    Ok(Ready { facts: facts(kind, Some(bytes), rate(&alone), resident), doubts })
}

/// Empties `sink`, as the first payload does, writes to it alone, and reports the time: over old content a disk need
/// not find room.
pub fn write_sink_alone(
    sink: &FileSink,
    plan: &Plan,
    awaited: &Awaited,
) -> Result<(String, Known<Fact>), StorageError> {
    let chunk_bytes = plan.chunk_bytes.0 as usize;
    let most_bytes = match plan.length {
        Length::Bytes(all) => all.0.div_ceil(u64::from(plan.flows.max(1))),
        Length::Seconds(_) | Length::Auto { .. } | Length::Source => u64::MAX,
    };
    sink.empty()
        .map_err(|cause| StorageError::of(format!("can't empty {}: {cause}", sink.name), &cause))?;
    let alone = write_alone(sink, chunk_bytes, most_bytes, WRITE_ALONE_TIME, awaited);
    let alone = alone.map_err(|cause| {
        StorageError::of(format!("can't write to {}: {cause}", sink.name), &cause)
    })?;
    Ok(("sink.alone_bits_per_s".into(), alone.map(|rate| Fact::Real(rate.0))))
}

fn no_drop(name: &str, cause: &io::Error) -> StorageError {
    let why = format!("can't drop {name} from the page cache: {cause}; leave out --cold");
    StorageError::of(why, cause)
}

fn no_pages() -> Known<f64> {
    Known::missing("a pipe has no pages in the cache")
}

fn rate(alone: &ReadAlone) -> Known<BitRate> {
    alone.rate()
}

fn facts(
    kind: &str,
    bytes: Option<u64>,
    alone: Known<BitRate>,
    resident: Known<f64>,
) -> Vec<(String, Known<Fact>)> {
    let bytes = match bytes {
        Some(bytes) => Known::Value(Fact::Count(bytes)),
        None => Known::missing("a pipe has no length"),
    };
    vec![
        ("source.cache".into(), Known::Value(Fact::Text(kind.into()))),
        ("source.bytes".into(), bytes),
        ("source.alone_bits_per_s".into(), alone.map(|rate| Fact::Real(rate.0))),
        ("source.resident_percent".into(), resident.map(Fact::Real)),
    ]
}

/// What a reader should know about the page cache.
fn doubt(name: &str, kind: &str, resident: &Known<f64>) -> Option<String> {
    match (kind, resident) {
        ("cold", Known::Value(percent)) if *percent > IGNORED_RESIDENT_PERCENT => Some(format!(
            "{percent:.0} % of {name} is still in the page cache after goodput dropped it: another program has it mapped, or its file system keeps pages in memory (tmpfs)"
        )),
        ("cold", Known::Missing(why)) => Some(format!(
            "whether {name} was dropped from the page cache is unknown: {}",
            why.missing
        )),
        ("warm", Known::Value(percent)) if *percent < 100.0 - IGNORED_RESIDENT_PERCENT => {
            Some(format!(
                "only {percent:.0} % of {name} is in the page cache after one read: the disk affects the result"
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_where_it_should_be_is_reported() {
        let doubt_of = |kind, percent| doubt("big", kind, &Known::Value(percent));
        assert!(doubt_of("cold", 0.0).is_none() && doubt_of("warm", 100.0).is_none());
        assert!(doubt_of("memory", 3.0).is_none());
        assert!(doubt_of("cold", 40.0).unwrap().contains("40 % of big is still"));
        assert!(doubt_of("warm", 43.0).unwrap().contains("only 43 %"));
        let why = Known::missing("the kernel reports it only to the owner of the file");
        assert!(doubt("big", "cold", &why).unwrap().contains("only to the owner"));
    }
}
