//! A key of the bus that one process holds for as long as it renews it: the name of an agent, the lease of the
//! coordinator. What the looks mean is decided in `goodput_fleet`.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use anyhow::{Error, Result, anyhow};
use goodput_bus::{BusError, Entry, Keys};
use goodput_engine::Interrupt;
use goodput_fleet::{Rival, is_sure};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use tokio::time::sleep;

use super::places::{BEAT, EXPIRY};

/// Time between two looks at a key that someone else holds.
const LOOK: Duration = Duration::from_millis(500);

/// A key that this process holds.
pub(super) struct Held<'a> {
    keys: &'a Keys,
    key: &'a str,
    /// Its `session` tells it apart from those of other processes.
    value: RefCell<Value>,
    revision: Cell<u64>,
    /// When the last renewal that succeeded was asked for.
    renewed: Cell<Duration>,
    /// The clock of the server, seconds since 1970, and when it was read.
    clock: Cell<(f64, Duration)>,
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
    /// Waits until the key is free, and takes it; also while the server is away. `rival` hears of a holder that is
    /// certainly alive, and says whether to wait on. A holder that was killed is not alive, and its key expires.
    pub async fn take(
        keys: &'a Keys,
        key: &'a str,
        value: Value,
        interrupt: &Interrupt,
        mut rival: impl FnMut(&Entry) -> bool,
    ) -> Result<Taken<'a>> {
        let mut seen = Rival::default();
        loop {
            match Self::taken(keys, key, &value).await {
                Ok(Ok(held)) => return Ok(Taken::Held(held)),
                Ok(Err(Some(entry))) if seen.is_alive(entry.revision) && !rival(&entry) => {
                    return Ok(Taken::Rival(entry));
                }
                Ok(Err(_)) => {}
                Err(why) => tracing::warn!("{why}; trying again"),
            }
            tokio::select! {
                () = sleep(LOOK) => {}
                () = interrupt.raised() => return Ok(Taken::Interrupted),
            }
        }
    }

    /// Takes the key; otherwise, what it has.
    async fn taken(
        keys: &'a Keys,
        key: &'a str,
        value: &Value,
    ) -> Result<Result<Self, Option<Entry>>, BusError> {
        let asked = awake_or_not();
        let mut revision = keys.create(key, value).await?;
        if revision.is_none() {
            // Only the answer to the last try may have been lost.
            match keys.entry(key).await? {
                Some(entry) if is_of(&entry, value) => {
                    revision = keys.update(key, value, entry.revision).await?;
                }
                entry => return Ok(Err(entry)),
            }
        }
        let Some(revision) = revision else { return Ok(Err(None)) };
        let (revision, renewed) = (Cell::new(revision), Cell::new(asked));
        let (value, clock) = (RefCell::new(value.clone()), Cell::new((0.0, asked)));
        let held = Self { keys, key, value, revision, renewed, clock };
        held.read_clock().await?;
        Ok(Ok(held))
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

    /// Has others see this value from the next renewal on.
    pub fn say(&self, value: Value) {
        *self.value.borrow_mut() = value;
    }

    /// Renews the key. Returns whether it is still ours.
    pub async fn renew(&self) -> Result<bool, BusError> {
        let asked = awake_or_not();
        let value = self.value.borrow().clone();
        let mut next = self.keys.update(self.key, &value, self.revision.get()).await?;
        if next.is_none() {
            // It has expired, or the answer to the last renewal was lost.
            next = match self.keys.entry(self.key).await? {
                None => self.keys.create(self.key, &value).await?,
                Some(entry) if is_of(&entry, &value) => {
                    self.keys.update(self.key, &value, entry.revision).await?
                }
                Some(_) => None,
            };
        }
        if next.is_none() {
            // The answer to this one may have been lost, too.
            let entry = self.keys.entry(self.key).await?.filter(|entry| is_of(entry, &value));
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
            self.clock.set((entry.written_s, awake_or_not()));
        }
        Ok(())
    }

    /// Waits until the key is ours for certain. While the server is away, nobody knows.
    pub async fn wait_until_sure(&self) {
        while !is_sure(since(self.renewed.get()), EXPIRY.as_secs_f64()) {
            sleep(LOOK).await;
        }
    }

    /// The time by the clock of the server, seconds since 1970.
    pub fn now_s(&self) -> f64 {
        let (then_s, read) = self.clock.get();
        then_s + since(read)
    }

    /// Gives the key back at once.
    pub async fn release(self) {
        if let Err(why) = self.keys.remove(self.key, self.revision.get()).await {
            tracing::debug!("{why}; it expires by itself");
        }
    }
}

/// Whether the same process has written both.
fn is_of(entry: &Entry, value: &Value) -> bool {
    let found = serde_json::from_slice::<Value>(&entry.value);
    found.is_ok_and(|found| !found["session"].is_null() && found["session"] == value["session"])
}

/// The time since this host began, also while it was suspended (clock_gettime(2), `CLOCK_BOOTTIME`): a key expires
/// meanwhile.
fn awake_or_not() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

fn since(then: Duration) -> f64 {
    awake_or_not().saturating_sub(then).as_secs_f64()
}
