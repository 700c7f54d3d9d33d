//! Reading and writing a part of a file on a mount, in passes.

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use goodput_model::{Role, Transport};
use goodput_mover::{FileMover, FlowConfig, Gate, MountedFile, PassLog, RunningFlow, Stop};
use goodput_testing::wait_for;

/// No multiple of a page or a chunk.
const LEN: u64 = 300_001;
const CHUNK: usize = 10_000;

/// Passes that have begun, and that have ended, with whether they synced.
#[derive(Debug, Default)]
struct Seen {
    began: Mutex<u64>,
    ended: Mutex<Vec<bool>>,
}

impl PassLog for Seen {
    fn began(&self, _flow: u16, _began: Instant, _first: Duration) {
        *self.began.lock().expect("no thread panicked") += 1;
    }

    fn ended(&self, _flow: u16, _began: Instant, _took: Duration, sync: Option<Duration>) {
        self.ended.lock().expect("no thread panicked").push(sync.is_some());
    }
}

fn file(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("file");
    std::fs::write(&path, vec![7; LEN as usize]).expect("there is room");
    path
}

struct Running {
    flow: RunningFlow,
    seen: Arc<Seen>,
    stop: Arc<Stop>,
}

fn start(file: impl Into<OwnedFd>, role: Role, config: impl FnOnce(&mut FlowConfig)) -> Running {
    let (seen, stop) = (Arc::new(Seen::default()), Arc::new(Stop::new().expect("descriptors")));
    let mounted = MountedFile {
        name: "file".into(),
        direct: false,
        part: 0..LEN,
        passes: Some(3),
        log: Arc::<Seen>::clone(&seen),
        confirmed: Arc::default(),
    };
    let standard = FlowConfig::new(role, Transport::Tcp, CHUNK);
    let mut wanted = FlowConfig { file: Some(mounted), ..standard };
    config(&mut wanted);
    let gate = Arc::new(Gate::default());
    gate.open();
    let flow = goodput_mover::start(&FileMover, wanted, file.into(), gate, Arc::clone(&stop));
    Running { flow: flow.expect("a thread"), seen, stop }
}

fn part(config: &mut FlowConfig) -> &mut MountedFile {
    config.file.as_mut().expect("it has one")
}

#[test]
fn a_file_is_read_as_often_as_was_asked() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(File::open(file(folder.path())).unwrap(), Role::Receiver, |_| ());
    let counters = Arc::clone(running.flow.counters());
    running.flow.join().unwrap();
    assert_eq!(counters.bytes(), 3 * LEN);
    assert_eq!(*running.seen.began.lock().unwrap(), 3);
    assert_eq!(*running.seen.ended.lock().unwrap(), [false; 3]);
}

#[test]
fn a_part_is_read_alone() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(File::open(file(folder.path())).unwrap(), Role::Receiver, |config| {
        *part(config) = MountedFile { part: 8192..LEN, passes: Some(1), ..part(config).clone() };
    });
    let counters = Arc::clone(running.flow.counters());
    running.flow.join().unwrap();
    assert_eq!(counters.bytes(), LEN - 8192);
}

#[test]
fn a_stop_ends_a_pass_that_is_not_over() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(File::open(file(folder.path())).unwrap(), Role::Receiver, |config| {
        part(config).passes = None;
    });
    wait_for("a pass", || !running.seen.ended.lock().unwrap().is_empty());
    running.stop.finish(Duration::ZERO);
    running.flow.join().unwrap();
}

#[test]
fn what_is_written_is_brought_to_the_disk_in_each_pass() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scratch");
    let scratch = OpenOptions::new().write(true).create_new(true).open(&path).unwrap();
    let running = start(scratch, Role::Sender, |config| {
        *part(config) = MountedFile { part: 0..81_920, passes: Some(2), ..part(config).clone() };
    });
    let counters = Arc::clone(running.flow.counters());
    let confirmed = running.flow.config().file.clone().expect("it has one");
    running.flow.join().unwrap();
    assert_eq!(confirmed.confirmed_bytes(), counters.bytes());
    assert_eq!(counters.bytes(), 2 * 81_920);
    assert_eq!(
        std::fs::metadata(&path).unwrap().len(),
        81_920,
        "the second pass is over the first"
    );
    assert_eq!(*running.seen.ended.lock().unwrap(), [true; 2]);
}

#[test]
fn a_file_that_shrinks_is_an_error_and_no_endless_loop() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(File::open(file(folder.path())).unwrap(), Role::Receiver, |config| {
        part(config).part = 0..2 * LEN;
    });
    let why = running.flow.join().unwrap_err().to_string();
    assert!(why.contains("file ends after 300001 bytes"), "{why}");
}

#[test]
fn a_file_that_can_not_be_read_says_where() {
    let folder = tempfile::tempdir().unwrap();
    file(folder.path());
    let write_only = OpenOptions::new().write(true).open(folder.path().join("file")).unwrap();
    let running = start(write_only, Role::Receiver, |_| ());
    let why = running.flow.join().unwrap_err().to_string();
    assert!(why.contains("file at byte 0"), "{why}");
}

#[test]
fn a_flow_ends_at_its_last_byte() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(File::open(file(folder.path())).unwrap(), Role::Receiver, |config| {
        config.limit_bytes = Some(LEN + 12_345);
    });
    let counters = Arc::clone(running.flow.counters());
    running.flow.join().unwrap();
    assert_eq!(counters.bytes(), LEN + 12_345);
}
