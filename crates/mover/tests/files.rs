//! What every mover that can send a file, or write to one, must do.

mod common;

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use common::{Ended, Pair, patience};
use goodput_model::{Bytes, Role, Source, Transport};
use goodput_mover::{ALL, FileSink, FileSource, FlowConfig, MoveError, Mover, find};
use rustix::fs::{MemfdFlags, OFlags, memfd_create};
use rustix::pipe::{PipeFlags, pipe_with};

/// No multiple of a page or a chunk.
const LEN: usize = 3_000_001;
const HEADER: usize = 512;

fn in_memory() -> File {
    File::from(memfd_create("goodput-test", MemfdFlags::CLOEXEC).expect("a file in memory"))
}

fn content() -> Vec<u8> {
    (0..LEN as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn source(bytes: Option<u64>, again: bool) -> Arc<FileSource> {
    let mut file = in_memory();
    file.write_all(&content()).expect("there is memory");
    file.rewind().expect("a file");
    Arc::new(FileSource { file: file.into(), name: "content".into(), bytes, again })
}

fn sink(file: impl Into<OwnedFd>) -> Arc<FileSink> {
    let name = "copy".into();
    Arc::new(FileSink { file: file.into(), name, direct: false, fsync: true, allowance: None })
}

fn written(sink: &FileSink) -> Vec<u8> {
    let mut file = File::from(sink.file.try_clone().expect("a descriptor"));
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("readable");
    bytes
}

fn copy() -> &'static dyn Mover {
    find("copy").expect("it is in the list")
}

fn that_take(source: &Source) -> Vec<&'static dyn Mover> {
    let movers: Vec<_> = ALL.iter().copied().filter(|mover| mover.takes(source)).collect();
    assert!(!movers.is_empty());
    movers
}

fn files() -> Vec<&'static dyn Mover> {
    that_take(&Source::Memory(Bytes(1)))
}

fn run(
    send: &'static dyn Mover,
    receive: &'static dyn Mover,
    adjust: impl Fn(&mut FlowConfig),
) -> (Ended, Ended) {
    let pair = Pair::start_two([send, receive], Transport::Tcp, adjust);
    pair.gate.open();
    pair.join()
}

#[test]
fn a_file_arrives_as_it_is_without_its_header() {
    for mover in files() {
        for (cork, more) in [(false, false), (true, false), (false, true)] {
            let (source, sink) = (source(Some(LEN as u64), false), sink(in_memory()));
            let (sent, received) = run(mover, copy(), |config| {
                let storage = &mut config.storage;
                match config.role {
                    Role::Sender => storage.source = Some(Arc::clone(&source)),
                    Role::Receiver => storage.sink = Some(Arc::clone(&sink)),
                }
                (storage.header_bytes, storage.header_more) = (HEADER, more);
                storage.cork = cork;
            });
            sent.result.unwrap();
            received.result.unwrap();
            assert!(written(&sink) == content(), "{} {cork} {more}", mover.id());
            assert_eq!(sent.counters.bytes(), (LEN + HEADER) as u64);
            assert_eq!(received.counters.bytes(), sent.counters.bytes());
            assert!(received.counters.sink_us() > 0);
        }
    }
}

#[test]
fn every_mover_that_stores_writes_what_comes() {
    for mover in ALL.iter().copied().filter(|mover| mover.stores()) {
        let (source, sink) = (source(Some(LEN as u64), false), sink(in_memory()));
        let (sent, received) = run(copy(), mover, |config| match config.role {
            Role::Sender => config.storage.source = Some(Arc::clone(&source)),
            Role::Receiver => config.storage.sink = Some(Arc::clone(&sink)),
        });
        sent.result.unwrap();
        received.result.unwrap();
        assert!(written(&sink) == content(), "{}", mover.id());
    }
}

#[test]
fn a_file_is_sent_again_until_the_limit() {
    for mover in files() {
        let (source, sink) = (source(Some(LEN as u64), true), sink(in_memory()));
        let limit = 2 * LEN + 5;
        let (sent, received) = run(mover, copy(), |config| match config.role {
            Role::Sender => {
                config.storage.source = Some(Arc::clone(&source));
                config.limit_bytes = Some(limit as u64);
            }
            Role::Receiver => config.storage.sink = Some(Arc::clone(&sink)),
        });
        sent.result.unwrap();
        received.result.unwrap();
        let content = content();
        let whole = [&content[..], &content[..], &content[..5]].concat();
        assert!(written(&sink) == whole, "{}", mover.id());
    }
}

#[test]
fn a_stop_ends_a_file_that_is_sent_again_and_again() {
    for mover in files() {
        let source = source(Some(LEN as u64), true);
        let pair = Pair::start(mover, Transport::Tcp, |config| {
            config.storage.source = Some(Arc::clone(&source));
        });
        pair.gate.open();
        patience(|| pair.sender.counters().bytes() > 2 * LEN as u64);
        pair.finish();
        let (sent, received) = pair.join();
        sent.result.unwrap();
        received.result.unwrap();
        assert_eq!(sent.counters.bytes(), received.counters.bytes(), "{}", mover.id());
    }
}

#[test]
fn a_file_that_was_cut_is_named() {
    for mover in files() {
        let source = source(Some(LEN as u64 + 100_000), false);
        let (sent, _) = run(mover, copy(), |config| {
            if config.role == Role::Sender {
                config.storage.source = Some(Arc::clone(&source));
            }
        });
        match sent.result {
            Err(MoveError::Shrunk { had, has, .. }) => {
                assert_eq!((had, has), (LEN as u64 + 100_000, LEN as u64), "{}", mover.id());
            }
            other => panic!("{}: {other:?}", mover.id()),
        }
    }
}

#[test]
fn a_pipe_is_sent_to_its_end() {
    for mover in that_take(&Source::Input) {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        rustix::fs::fcntl_setfl(&out, OFlags::NONBLOCK).unwrap();
        let writer = std::thread::spawn(move || File::from(into).write_all(&content()).unwrap());
        let name = "pipe".into();
        let source = Arc::new(FileSource { file: out, name, bytes: None, again: false });
        let sink = sink(in_memory());
        let (sent, received) = run(mover, copy(), |config| match config.role {
            Role::Sender => config.storage.source = Some(Arc::clone(&source)),
            Role::Receiver => config.storage.sink = Some(Arc::clone(&sink)),
        });
        writer.join().unwrap();
        sent.result.unwrap();
        received.result.unwrap();
        assert!(written(&sink) == content(), "{}", mover.id());
    }
}

#[test]
fn an_empty_pipe_holds_no_stop_up() {
    for mover in that_take(&Source::Input) {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        rustix::fs::fcntl_setfl(&out, OFlags::NONBLOCK).unwrap();
        let name = "pipe".into();
        let source = Arc::new(FileSource { file: out, name, bytes: None, again: false });
        let (alone, peer) = Pair::start_alone(mover, Transport::Tcp, Role::Sender, |config| {
            config.storage.source = Some(Arc::clone(&source));
        });
        alone.gate.open();
        patience(|| alone.flow.counters().source_us() > 1000);
        alone.stop.finish(Duration::from_secs(60));
        alone.flow.join().unwrap();
        drop((peer, into));
    }
}

#[test]
fn a_full_disk_ends_both_flows_of_an_end_with_its_error() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let sink = sink(full());
    let (_, received) = run(copy(), copy(), |config| {
        if config.role == Role::Receiver {
            config.storage.sink = Some(Arc::clone(&sink));
        }
    });
    let why = received.result.unwrap_err().to_string();
    assert!(why.contains("the sink copy") && why.contains("make room"), "{why}");
}

/// Allows this many bytes in all.
#[derive(Debug)]
struct AtMost(std::sync::atomic::AtomicU64);

impl goodput_mover::Allowance for AtMost {
    fn take(&self, bytes: u64) -> Result<(), String> {
        use std::sync::atomic::Ordering::Relaxed;
        let left = self.0.try_update(Relaxed, Relaxed, |left| left.checked_sub(bytes));
        left.map(drop).map_err(|_| "no more than a million".into())
    }
}

#[test]
fn a_sink_takes_no_more_than_its_limit() {
    let source = source(Some(LEN as u64), false);
    let allowance = Some(Arc::new(AtMost(1_000_000.into())) as Arc<dyn goodput_mover::Allowance>);
    let file = in_memory().into();
    let sink = Arc::new(FileSink { allowance, ..FileSink { file, ..plain("copy") } });
    let (_, received) = run(copy(), copy(), |config| match config.role {
        Role::Sender => config.storage.source = Some(Arc::clone(&source)),
        Role::Receiver => config.storage.sink = Some(Arc::clone(&sink)),
    });
    let why = received.result.unwrap_err().to_string();
    assert!(why.contains("no more than a million"), "{why}");
    assert!(written(&sink).len() <= 1_000_000);
}

fn plain(name: &str) -> FileSink {
    let file = in_memory().into();
    FileSink { file, name: name.into(), direct: false, fsync: false, allowance: None }
}

/// Past the page cache, the last part that is no whole block is written too.
#[test]
fn a_file_is_written_past_the_page_cache_to_its_last_byte() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("copy");
    let flags = OFlags::DIRECT | OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(&path, flags, rustix::fs::Mode::RUSR) else {
        return goodput_testing::skip(&format!("O_DIRECT at {}", path.display()));
    };
    let sink = Arc::new(FileSink { file, direct: true, fsync: true, ..plain("copy") });
    let source = source(Some(LEN as u64), false);
    let (sent, received) = run(copy(), copy(), |config| match config.role {
        Role::Sender => config.storage.source = Some(Arc::clone(&source)),
        Role::Receiver => config.storage.sink = Some(Arc::clone(&sink)),
    });
    sent.result.unwrap();
    received.result.unwrap();
    assert!(std::fs::read(path).unwrap() == content());
}
