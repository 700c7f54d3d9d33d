//! A key of the bus that one process holds for as long as it renews it: the name of an agent, the lease of the
//! coordinator. What the looks mean is decided in `goodput_fleet`.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};
use goodput_bus::{BusError, Entry, Keys};
use goodput_engine::Interrupt;
use goodput_fleet::{Rival, is_sure};
use serde_json::Value;
use tokio::time::sleep;

use super::places::{BEAT, EXPIRY};

/// Time between two looks at a key that someone else holds.
const LOOK: Duration = Duration::from_millis(500);

/// A key that this process holds.
pub(super) struct Held<'a> {
    keys: &'a Keys,
    key: &'a str,
    /// No other process writes the same.
    value: Value,
    revision: Cell<u64>,
    /// When the last renewal that succeeded was asked for.
    renewed: Cell<Instant>,
    /// The clock of the server, seconds since 1970, and when it was read.
    clock: Cell<(f64, Instant)>,
}

/// What became of a wish.
pub(super) enum Taken<'a> {
    /// It is ours.
    Held(Held<'a>),
    /// It belongs to someone who is alive.
    Rival(Entry),
    /// The user ended the wait.
    Interrupted,
}

impl<'a> Held<'a> {
    /// Waits until the key is free, and takes it. `rival` hears of a holder that is certainly alive, and says whether to
    /// wait on. A holder that was killed is not alive, and its key expires.
    pub async fn take(
        keys: &'a Keys,
        key: &'a str,
        value: Value,
        interrupt: &Interrupt,
        mut rival: impl FnMut(&Entry) -> bool,
    ) -> Result<Taken<'a>> {
        let mut seen = Rival::default();
        loop {
            let asked = Instant::now();
            if let Some(revision) = keys.create(key, &value).await? {
                let (revision, renewed) = (Cell::new(revision), Cell::new(asked));
                let clock = Cell::new((0.0, asked));
                let held = Self { keys, key, value, revision, renewed, clock };
                held.read_clock().await?;
                return Ok(Taken::Held(held));
            }
            if let Some(entry) = keys.entry(key).await?
                && seen.is_alive(entry.revision)
                && !rival(&entry)
            {
                return Ok(Taken::Rival(entry));
            }
            tokio::select! {
                () = sleep(LOOK) => {}
                () = interrupt.raised() => return Ok(Taken::Interrupted),
            }
        }
    }

    /// Renews the key until someone else has it, which is the result. While the server is away, goes on trying.
    pub async fn keep(&self) -> Error {
        loop {
            sleep(BEAT).await;
            match self.renew().await {
                Ok(true) => {}
                Ok(false) => {
                    let key = self.key;
                    return anyhow!(
                        "another process has taken the name {key} meanwhile; NATS was out of reach for too long"
                    );
                }
                Err(why) => tracing::warn!("{why}; trying again"),
            }
        }
    }

    /// Returns whether the key is still ours.
    async fn renew(&self) -> Result<bool, BusError> {
        let asked = Instant::now();
        let mut next = self.keys.update(self.key, &self.value, self.revision.get()).await?;
        if next.is_none() {
            // It has expired, or the answer to the last renewal was lost.
            next = match self.keys.entry(self.key).await? {
                None => self.keys.create(self.key, &self.value).await?,
                Some(entry) if is(&entry, &self.value) => {
                    self.keys.update(self.key, &self.value, entry.revision).await?
                }
                Some(_) => None,
            };
        }
        if next.is_none() {
            // The answer to this one may have been lost, too.
            let entry = self.keys.entry(self.key).await?.filter(|entry| is(entry, &self.value));
            next = entry.map(|entry| entry.revision);
        }
        let Some(revision) = next else { return Ok(false) };
        self.revision.set(revision);
        self.renewed.set(asked);
        self.read_clock().await?;
        Ok(true)
    }

    async fn read_clock(&self) -> Result<(), BusError> {
        if let Some(entry) = self.keys.entry(self.key).await? {
            self.clock.set((entry.written_s, Instant::now()));
        }
        Ok(())
    }

    /// Waits until the key is ours for certain. While the server is away, nobody knows.
    pub async fn wait_until_sure(&self) {
        while !is_sure(self.renewed.get().elapsed().as_secs_f64(), EXPIRY.as_secs_f64()) {
            sleep(LOOK).await;
        }
    }

    /// The time by the clock of the server, seconds since 1970.
    pub fn now_s(&self) -> f64 {
        let (then_s, read) = self.clock.get();
        then_s + read.elapsed().as_secs_f64()
    }

    /// Gives the key back at once.
    pub async fn release(self) {
        if let Err(why) = self.keys.remove(self.key, self.revision.get()).await {
            tracing::debug!("{why}; it expires by itself");
        }
    }
}

fn is(entry: &Entry, value: &Value) -> bool {
    serde_json::from_slice::<Value>(&entry.value).is_ok_and(|found| found == *value)
}
