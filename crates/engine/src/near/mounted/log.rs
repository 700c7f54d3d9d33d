//! What becomes known of the passes over a file on a mount, in bounded memory whatever their number.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use goodput_model::{Fetch, FetchTimes, Fetches, Known, median};
use goodput_mover::PassLog;

/// Most times of one kind that are kept for their median: more would change it little.
const MAX_KEPT_TIMES: usize = 10_000;

/// What is the same for all passes.
#[derive(Debug)]
pub struct About {
    /// The protocol, as far as the mount shows it: "nfs4 4.2".
    pub version: String,
    /// What is mounted.
    pub source: String,
    /// Length of the file, bytes.
    pub file_bytes: u64,
    /// Connections of the mount, if it counts them.
    pub connections: Known<u64>,
}

/// The passes of all flows.
#[derive(Debug)]
pub struct MountLog {
    about: About,
    first: OnceLock<Fetch>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    passes: u64,
    first_byte_us: Vec<f64>,
    longest_first_byte_us: f64,
    whole_s: Vec<f64>,
}

impl MountLog {
    /// No passes yet.
    pub fn new(about: About) -> Self {
        Self { about, first: OnceLock::new(), inner: Mutex::default() }
    }

    /// Sets the pass before the measurement.
    pub fn first(&self, first: Fetch) {
        self.first.get_or_init(|| first);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that is known at the end of a measurement.
    pub fn conclude(&self) -> Fetches {
        let inner = self.inner();
        let none = "no pass has begun";
        let middle = |times: &Vec<f64>, none: &'static str| {
            median(times.clone()).map_or(Known::missing(none), Known::Value)
        };
        Fetches {
            version: Known::Value(self.about.version.clone()),
            server: Known::Value(self.about.source.clone()),
            tls: None,
            moved_to: None,
            remarks: BTreeMap::new(),
            first: match self.first.get() {
                Some(first) => Known::Value(first.clone()),
                None => Known::missing("there was no pass before the measurement"),
            },
            confirmed_us: None,
            proxy: None,
            file_bytes: Known::Value(self.about.file_bytes),
            answers: inner.passes,
            connections: self.about.connections.clone(),
            longest_first_byte_us: match inner.first_byte_us.is_empty() {
                true => Known::missing(none),
                false => Known::Value(inner.longest_first_byte_us),
            },
            first_byte_us: middle(&inner.first_byte_us, none),
            whole_times: FetchTimes::of(&inner.whole_s),
            alone_times: Known::missing("a file on a mount is read alone only once"),
            whole_s: middle(&inner.whole_s, "no pass has come to its end"),
            asking_share: Known::missing("who reads a file on a mount does not see the kernel ask"),
            rpcs: None,
        }
    }
}

impl PassLog for MountLog {
    fn began(&self, _flow: u16, _began: Instant, first: Duration) {
        let mut inner = self.inner();
        let first_us = first.as_secs_f64() * 1e6;
        inner.passes += 1;
        inner.longest_first_byte_us = inner.longest_first_byte_us.max(first_us);
        keep(&mut inner.first_byte_us, first_us);
    }

    fn ended(&self, _flow: u16, _began: Instant, took: Duration, _sync: Option<Duration>) {
        keep(&mut self.inner().whole_s, took.as_secs_f64());
    }
}

fn keep(times: &mut Vec<f64>, time: f64) {
    if times.len() < MAX_KEPT_TIMES {
        times.push(time);
    }
}
