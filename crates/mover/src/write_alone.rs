//! Writing to a sink without a network, to find the sink's own rate.

use std::io;
use std::time::{Duration, Instant};

use goodput_model::{BitRate, Known};
use rustix::fs::{FileType, fdatasync, fstat, ftruncate};
use rustix::io::{Errno, write};

use crate::awaited::Awaited;
use crate::payload;
use crate::storage::FileSink;

/// Alignment of address, length and offset that `O_DIRECT` requires on any disk of today, bytes (open(2)).
const ALIGNMENT_BYTES: usize = 4096;
/// Bytes between two flushes of a sink whose flushes count as part of the measurement: a single flush at the end may
/// take far longer than the time limit.
const FLUSHED_BYTES: u64 = 16 << 20;

/// Writes payload to a sink, `chunk_bytes` at a time, until `limit` is over, `most_bytes` are written or its allowance
/// is used up, as long as the result is awaited, including the flushes that the sink asks for. The written data is then
/// cut off. A pipe or a device would keep the data, so nothing is written to it.
pub fn write_alone(
    sink: &FileSink,
    chunk_bytes: usize,
    most_bytes: u64,
    limit: Duration,
    awaited: &Awaited,
) -> io::Result<Known<BitRate>> {
    if FileType::from_raw_mode(fstat(&sink.file)?.st_mode) != FileType::RegularFile {
        return Ok(Known::missing("only a regular file can be written alone first"));
    }
    let length = chunk_bytes.max(1).next_multiple_of(ALIGNMENT_BYTES);
    let mut buffer = vec![0; length + ALIGNMENT_BYTES];
    let start = buffer.as_ptr().align_offset(ALIGNMENT_BYTES).min(ALIGNMENT_BYTES);
    let block = &mut buffer[start..start + length];
    payload::fill(0, block);
    let began = Instant::now();
    let (mut written, mut flushed) = (0, 0);
    while written < most_bytes && began.elapsed() < limit {
        awaited.check()?;
        let allowed = sink.allowance.as_ref().map(|allowance| allowance.take(length as u64));
        if let Some(Err(why)) = allowed {
            if written == 0 {
                return Ok(Known::missing(why));
            }
            break;
        }
        written += write_whole(sink, block)?;
        if sink.fsync && written - flushed >= FLUSHED_BYTES {
            fdatasync(&sink.file)?;
            flushed = written;
        }
    }
    if sink.fsync && written > flushed {
        fdatasync(&sink.file)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    ftruncate(&sink.file, 0)?;
    let rate = BitRate::over(written, seconds).filter(|rate| rate.0 > 0.0);
    Ok(rate.map_or(Known::missing("nothing was written"), Known::Value))
}

/// Writes all of `block`, and returns its length.
fn write_whole(sink: &FileSink, block: &[u8]) -> io::Result<u64> {
    let mut at = 0;
    while at < block.len() {
        match write(&sink.file, &block[at..]) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
            Ok(written) => at += written,
            Err(Errno::INTR) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
    Ok(block.len() as u64)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::sync::Arc;

    use super::*;
    use crate::awaited::Waiter;
    use crate::storage::Allowance;

    #[derive(Debug)]
    struct Never;

    impl Allowance for Never {
        fn take(&self, _: u64) -> Result<(), String> {
            Err("no room".into())
        }
    }

    fn sink(file: OwnedFd) -> FileSink {
        FileSink { file, name: "sink".into(), direct: false, fsync: true, allowance: None }
    }

    fn alone(sink: &FileSink) -> Known<BitRate> {
        let waiter = Waiter::default();
        write_alone(sink, 5000, 1 << 20, Duration::from_secs(3600), &waiter.awaited()).unwrap()
    }

    #[test]
    fn a_file_has_a_rate_and_is_empty_afterwards() {
        let file = tempfile();
        let sink = sink(file.try_clone().unwrap().into());
        assert!(alone(&sink).value().is_some_and(|rate| rate.0 > 0.0));
        assert_eq!(file.metadata().unwrap().len(), 0);
    }

    #[test]
    fn what_would_keep_it_or_must_not_have_it_is_not_written() {
        let null = File::options().write(true).open("/dev/null").unwrap();
        assert!(alone(&sink(null.into())).get().is_err());
        let full = FileSink { allowance: Some(Arc::new(Never)), ..sink(tempfile().into()) };
        assert_eq!(alone(&full).get().unwrap_err().to_string(), "no room");
    }

    /// A file without a name.
    fn tempfile() -> File {
        let flags = rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::RDWR;
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::open(std::env::temp_dir(), flags, mode).unwrap().into()
    }
}
